//! Key frames of an outgoing stream, and what its pictures are named by.

use crate::picture::{FirId, PictureCounters, PictureFeedback, Pictures};
use weir_units::Timestamp;

/// Key frames as they are asked for and made.
#[derive(Debug)]
pub(crate) struct PictureState {
    pub(super) config: PictureFeedback,
    /// When the source was last asked for a key frame, and when it last made one.
    pub(super) asked: Option<Timestamp>,
    pub(super) made: Option<Timestamp>,
    /// A key frame is to be asked for as soon as there may be another.
    pub(super) wanted: bool,
    /// The last FIR.
    pub(super) fir: Option<FirId>,
    /// The picture that was acknowledged last.
    pub(super) decoded: Option<u32>,
    /// By the source's timestamps.
    pub(super) pictures: Pictures,
    pub counters: PictureCounters,
}

impl PictureState {
    pub(super) fn new(config: PictureFeedback) -> Self {
        Self {
            config,
            asked: None,
            made: None,
            wanted: false,
            fir: None,
            decoded: None,
            pictures: Pictures::default(),
            counters: PictureCounters::default(),
        }
    }

    pub(super) fn on_key_frame(&mut self, now: Timestamp) {
        (self.made, self.wanted) = (Some(now), false);
    }
    /// A picture is made of these payloads.
    pub(super) fn on_picture(&mut self, rtp_timestamp: u32, payload: Option<&[u8]>) {
        self.pictures.note(self.config.name, rtp_timestamp, payload);
    }

    pub(super) fn may_ask(&self, now: Timestamp) -> bool {
        self.asked.max(self.made).is_none_or(|t| now.saturating_since(t) >= self.config.min_key_frame_interval)
    }
}
