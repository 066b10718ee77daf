//! Sent pictures, and feedback on them.

use crate::{SourceFeedback, VideoEncoder};
use std::collections::VecDeque;

/// Frames whose picture IDs are remembered; feedback on older ones is ignored.
const REMEMBERED: usize = 256;

/// Picture numbers of frames, by RTP timestamp.
#[derive(Clone, Debug, Default)]
pub(super) struct SentPictures(VecDeque<(u32, u64)>);

impl SentPictures {
    pub(super) fn note(&mut self, rtp_timestamp: u32, picture_id: u64) {
        if self.0.len() == REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((rtp_timestamp, picture_id));
    }

    fn find(&self, rtp_timestamp: u32) -> Option<u64> {
        self.0.iter().rev().find(|s| s.0 == rtp_timestamp).map(|s| s.1)
    }

    /// Passes feedback to the encoder. If the reference has been dropped, a key frame is made.
    pub(super) fn on_feedback(&self, feedback: SourceFeedback, encoder: &mut dyn VideoEncoder) -> Applied {
        match feedback {
            SourceFeedback::Decoded { rtp_timestamp } => {
                let known = self.find(rtp_timestamp);
                known.into_iter().for_each(|id| encoder.acknowledge(id));
                if known.is_some() { Applied::Done } else { Applied::Nothing }
            }
            SourceFeedback::ReferenceWanted { rtp_timestamp } => {
                if self.find(rtp_timestamp).is_some_and(|id| encoder.select_reference(id)) {
                    return Applied::Selected;
                }
                encoder.request_key_frame();
                Applied::Done
            }
            SourceFeedback::SliceSize(size) if encoder.config().slice_size == size => Applied::Done,
            SourceFeedback::SliceSize(size) => match encoder.set_slice_size(size) {
                Ok(()) => Applied::Done,
                Err(_) => Applied::Nothing,
            },
            SourceFeedback::Shape(shape) => match encoder.set_shape(shape) {
                Ok(true) => Applied::Done,
                Ok(false) | Err(_) => Applied::Nothing,
            },
            SourceFeedback::FractionLost(_) => Applied::Nothing,
        }
    }
}

/// The effect of feedback.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Applied {
    Nothing,
    Done,
    Selected,
}
