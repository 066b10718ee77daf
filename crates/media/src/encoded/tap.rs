use crate::{CodedFrame, Picture};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use weir_units::Timestamp;

/// A picture as it was encoded.
#[derive(Clone, Copy, Debug)]
pub struct Captured<'a> {
    /// Its RTP timestamp, before the session's random offset.
    pub rtp_timestamp: u32,
    /// When it was due.
    pub captured: Timestamp,
    /// The original.
    pub picture: &'a Picture,
    /// What the encoder made of it; without data where it left the picture out or failed.
    pub coded: &'a CodedFrame,
}

/// Called with each picture as it is encoded.
pub type Tap = Box<dyn FnMut(Captured<'_>) + Send>;

/// The latest originals of an [`EncodedSource`](crate::EncodedSource), for a meter of quality at the other end: the source
/// fills it by a tap, the meter takes pictures out by RTP timestamp. A bounded queue behind a lock, so that both ends may
/// be moved to a thread together or apart; the oldest gives way.
///
/// Copies rather than draws the pictures again: a clip from a file or a camera cannot be asked twice, and a copy costs
/// little beside an encoder.
#[derive(Clone, Debug)]
pub struct Originals(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    limit: usize,
    pictures: VecDeque<(u32, Picture)>,
    spare: Vec<Picture>,
    lost: u64,
}

impl Kept {
    fn push(&mut self, rtp_timestamp: u32, picture: &Picture) {
        if self.pictures.len() == self.limit
            && let Some((_, oldest)) = self.pictures.pop_front()
        {
            self.lost += 1;
            self.spare.push(oldest);
        }
        let size = |p: &Picture| (p.width(), p.height());
        let copy = match self.spare.pop().filter(|p| size(p) == size(picture)) {
            Some(mut spare) => {
                spare.as_i420_mut().copy_from_slice(picture.as_i420());
                spare
            }
            None => picture.clone(),
        };
        self.pictures.push_back((rtp_timestamp, copy));
    }
}

impl Originals {
    /// Keeps at most so many pictures (at least one): those of the longest time from capture to playout, and some more. A
    /// picture takes width x height x 1.5 bytes.
    pub fn new(limit: usize) -> Self {
        let (pictures, spare) = (VecDeque::new(), Vec::new());
        Self(Arc::new(Mutex::new(Kept { limit: limit.max(1), pictures, spare, lost: 0 })))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Kept> {
        // Nothing is left half done where a holder panics.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tap that fills it.
    pub fn tap(&self) -> Tap {
        let this = self.clone();
        Box::new(move |c| this.kept().push(c.rtp_timestamp, c.picture))
    }

    /// Hands out, in order, and lets go of the originals up to and including the one of this timestamp, as the source
    /// counts it: those of frames that never came lie in front of it.
    pub fn take_to(&self, rtp_timestamp: u32, mut each: impl FnMut(u32, &Picture)) {
        let mut kept = self.kept();
        while let Some((t, picture)) = kept.pictures.pop_front_if(|(t, _)| rtp_timestamp.wrapping_sub(*t) as i32 >= 0) {
            each(t, &picture);
            kept.spare.push(picture);
        }
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.kept().pictures.len()
    }
    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// How many have given way to newer ones before anybody took them.
    pub fn lost(&self) -> u64 {
        self.kept().lost
    }
}
