//! Key frames of an outgoing stream, and the identification of its pictures.

use crate::picture::{FirId, PictureCounters, PictureFeedback, Pictures};
use weir_units::Timestamp;

/// Requests for key frames, and key frames made.
#[derive(Debug)]
pub(crate) struct PictureState {
    pub(super) config: PictureFeedback,
    /// When a key frame was last requested from the source, and when it last made one.
    pub(super) asked: Option<Timestamp>,
    pub(super) made: Option<Timestamp>,
    /// Whether to request a key frame as soon as another one is allowed.
    pub(super) wanted: bool,
    /// The last FIR.
    pub(super) fir: Option<FirId>,
    /// The last acknowledged picture.
    pub(super) decoded: Option<u32>,
    /// Pictures by the source's timestamps.
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
    /// A picture has been made from these payloads.
    pub(super) fn on_picture(&mut self, rtp_timestamp: u32, payload: Option<&[u8]>) {
        self.pictures.note(self.config.name, rtp_timestamp, payload);
    }

    pub(super) fn may_ask(&self, now: Timestamp) -> bool {
        self.asked.max(self.made).is_none_or(|t| now.saturating_since(t) >= self.config.min_key_frame_interval)
    }
}
