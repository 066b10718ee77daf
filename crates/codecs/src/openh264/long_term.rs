//! Long-term references: the picture to which the library's encoder can return.
//!
//! The encoder marks a picture every few frames and waits for its confirmation. Once confirmed, the picture replaces
//! the previous one. A key frame counts as confirmed. After a loss it encodes from the confirmed picture. This is the
//! behaviour of OpenH264 2.6; what it has marked is parsed from its slices.

use super::slice::Slice;
use std::collections::VecDeque;

/// Frames from a confirmation, or a key frame, to the next mark; 133 ms at 30 frames per second.
pub(super) const MARK_EVERY: u32 = 4;
/// Frames after which an unconfirmed mark is given up: 0.5 s at 30 a second, above the round-trip times of live video.
const AWAIT: u64 = 16;
/// Frames whose numbers are remembered; feedback arrives earlier.
const REMEMBERED: usize = 256;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mark {
    /// The marked picture, and its number.
    picture: u64,
    frame_num: u32,
    /// The frame that signals it.
    by: u64,
}

/// A message to the encoder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Word {
    /// The picture with this number was received, or was lost.
    Marked { frame_num: u32, idr_pic_id: u32, success: bool },
    /// The receiver has the first, and nothing after it up to the second, which was coded last.
    Lost { last_correct: u32, current: u32, idr_pic_id: u32 },
}

#[derive(Clone, Debug, Default)]
pub(super) struct LongTerm {
    /// Frames and their numbers since the last key frame.
    frames: VecDeque<(u64, u32)>,
    idr_pic_id: u32,
    confirmed: Option<u64>,
    /// Confirmed; the encoder applies it with the next frame.
    confirming: Option<u64>,
    marked: Option<Mark>,
}

impl LongTerm {
    /// A frame was encoded; returns the message to send before the next.
    pub(super) fn coded(&mut self, id: u64, slice: Slice) -> Option<Word> {
        self.confirmed = self.confirming.take().or(self.confirmed);
        if let Some(idr_pic_id) = slice.idr_pic_id {
            *self = Self { idr_pic_id, confirmed: Some(id), ..Self::default() };
        } else if slice.marks_itself {
            self.marked = Some(Mark { picture: id, frame_num: slice.frame_num, by: id });
        } else if slice.marks_previous {
            let previous = self.frames.back().copied();
            self.marked = previous.map(|(picture, frame_num)| Mark { picture, frame_num, by: id });
        }
        if self.frames.len() == REMEMBERED {
            self.frames.pop_front();
        }
        self.frames.push_back((id, slice.frame_num));
        let given_up = self.marked.take_if(|m| id >= m.by + AWAIT)?;
        Some(self.word(given_up, false))
    }

    const fn word(&self, mark: Mark, success: bool) -> Word {
        Word::Marked { frame_num: mark.frame_num, idr_pic_id: self.idr_pic_id, success }
    }

    /// The receiver has decoded this frame.
    pub(super) fn acknowledge(&mut self, id: u64) -> Option<Word> {
        let mark = self.marked.take_if(|m| m.by == id)?;
        self.confirming = Some(mark.picture);
        Some(self.word(mark, true))
    }

    /// This is the last frame that the receiver has decoded; `None` if nothing is kept from before the loss.
    pub(super) fn select(&mut self, id: u64) -> Option<Word> {
        let number = |&(_, frame_num): &(u64, u32)| frame_num;
        let last_correct = self.frames.iter().find(|f| f.0 == id).map(number)?;
        let current = self.frames.back().map(number)?;
        if self.confirmed.is_none_or(|c| c > id) || self.confirming.is_some_and(|c| c > id) {
            return None;
        }
        self.marked.take_if(|m| m.picture > id || m.by > id);
        Some(Word::Lost { last_correct, current, idr_pic_id: self.idr_pic_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Slice =
        Slice { frame_num: 0, idr_pic_id: None, marks_itself: false, marks_previous: false, from_long_term: false };

    fn started() -> LongTerm {
        let mut long = LongTerm::default();
        assert_eq!(long.coded(100, Slice { idr_pic_id: Some(7), ..PLAIN }), None);
        for n in 1..4 {
            assert_eq!(long.coded(100 + n, Slice { frame_num: n as u32, ..PLAIN }), None);
        }
        long
    }

    #[test]
    fn a_mark_is_confirmed_by_the_frame_that_made_it() {
        let mut long = started();
        long.coded(104, Slice { frame_num: 4, marks_previous: true, ..PLAIN });
        assert_eq!(long.acknowledge(103), None);
        assert_eq!(long.acknowledge(104), Some(Word::Marked { frame_num: 3, idr_pic_id: 7, success: true }));
        assert_eq!((long.acknowledge(104), long.confirmed), (None, Some(100)));
        long.coded(105, Slice { frame_num: 5, marks_itself: true, ..PLAIN });
        assert_eq!(long.confirmed, Some(103));
        assert_eq!(long.acknowledge(105), Some(Word::Marked { frame_num: 5, idr_pic_id: 7, success: true }));
    }

    #[test]
    fn a_mark_without_a_word_is_given_up() {
        let mut long = started();
        long.coded(104, Slice { frame_num: 4, marks_itself: true, ..PLAIN });
        for n in 5..20 {
            assert_eq!(long.coded(100 + n, Slice { frame_num: n as u32, ..PLAIN }), None);
        }
        let lost = Word::Marked { frame_num: 4, idr_pic_id: 7, success: false };
        assert_eq!(long.coded(120, Slice { frame_num: 20, ..PLAIN }), Some(lost));
        assert_eq!(long.acknowledge(104), None);
    }

    #[test]
    fn going_back_needs_a_confirmed_picture_from_before_the_loss() {
        let mut long = started();
        assert_eq!(long.select(102), Some(Word::Lost { last_correct: 2, current: 3, idr_pic_id: 7 }));
        assert_eq!((long.select(99), long.select(104)), (None, None));
        long.coded(104, Slice { frame_num: 4, marks_itself: true, ..PLAIN });
        long.acknowledge(104);
        long.coded(105, Slice { frame_num: 5, ..PLAIN });
        assert_eq!(long.select(103), None);
        assert!(long.select(104).is_some());
        long.coded(106, Slice { frame_num: 6, marks_itself: true, ..PLAIN });
        assert!(long.select(105).is_some() && long.marked.is_none());
        long.coded(107, Slice { idr_pic_id: Some(8), ..PLAIN });
        assert_eq!((long.select(106), long.confirmed), (None, Some(107)));
    }
}
