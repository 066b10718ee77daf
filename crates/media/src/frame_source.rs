//! Sources of frames.

use crate::{Frame, MediaKind, Payloads, SourceFeedback};
use weir_units::{DataRate, DataSize, Timestamp};

/// A source of frames at a target rate.
pub trait FrameSource {
    /// Sets a new target rate.
    fn on_target(&mut self, rate: DataRate, now: Timestamp);
    /// When the next frame is due, or `None` if there is none.
    fn next_frame_at(&self) -> Option<Timestamp>;
    /// The frame due at `now`, if any; call it until it returns `None`.
    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame>;
    /// Makes the next frame a key frame.
    fn request_key_frame(&mut self, now: Timestamp);
    /// The rate at which the source currently aims, before random variation.
    fn generated_rate(&self) -> DataRate;
    /// Writes the payloads of the last polled frame, of at most `max` bytes each, into `out`, which is empty; `false`
    /// if the frame has a size and no content.
    fn take_payloads(&mut self, max: DataSize, out: &mut Payloads) -> bool {
        let _ = (max, out);
        false
    }
    /// Feedback from the other end about pictures; `false` if it has no effect.
    fn on_feedback(&mut self, feedback: SourceFeedback, now: Timestamp) -> bool {
        let _ = (feedback, now);
        false
    }
    /// Limits the size of key frames from the next on, as far as the source can code with less detail; `false` if it does not follow,
    /// as one whose key frames come at an interval of its own.
    fn limit_key_frames(&mut self, most: DataSize) -> bool {
        let _ = most;
        false
    }
    /// Leaves out the picture due at `now`, which is not coded, so that no later frame refers to it; `false` if none is due or the
    /// source cannot do so.
    fn skip_picture(&mut self, now: Timestamp) -> bool {
        let _ = now;
        false
    }
    /// Leaves out one of so many frames before the encoder from now on, none at zero; the target has been reduced as if nothing followed this
    /// (`weir_cc::Controller::left_out_frames`). Without effect on a source that models no such encoder.
    fn leave_out(&mut self, one_of: u32, now: Timestamp) {
        let _ = (one_of, now);
    }
    /// Pixels of the picture of the last frame, where the source models or knows them.
    fn pixels(&self) -> Option<u32> {
        None
    }
    /// The kind of media, which determines the clock of timestamps.
    fn media(&self) -> MediaKind {
        MediaKind::Video
    }
    /// Header bytes per packet included in the rate of [`Self::on_target`]. A source with small packets (audio) uses it
    /// to make fewer and longer ones; zero, the default, if the target is for payloads only.
    fn set_packet_overhead(&mut self, overhead: DataSize, now: Timestamp) {
        let _ = (overhead, now);
    }
}
