//! What makes frames.

use crate::{Frame, MediaKind, Payloads, SourceFeedback};
use weir_units::{DataRate, DataSize, Timestamp};

/// Something that makes frames at a rate it is asked for.
pub trait FrameSource {
    /// A new target rate.
    fn on_target(&mut self, rate: DataRate, now: Timestamp);
    /// When the next frame is due, or `None` while none is to come.
    fn next_frame_at(&self) -> Option<Timestamp>;
    /// The frame that is due at `now`, if any; ask again until there is none.
    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame>;
    /// Makes the next frame a key frame.
    fn request_key_frame(&mut self, now: Timestamp);
    /// The rate that the source now means to generate, before random variation.
    fn generated_rate(&self) -> DataRate;
    /// Writes the payloads of the frame that was polled last, each of at most `max` bytes, into `out`, which is empty;
    /// `false` where it has a size and no content.
    fn take_payloads(&mut self, max: DataSize, out: &mut Payloads) -> bool {
        let _ = (max, out);
        false
    }
    /// What the other end tells of its pictures; `false` where nothing comes of it.
    fn on_feedback(&mut self, feedback: SourceFeedback, now: Timestamp) -> bool {
        let _ = (feedback, now);
        false
    }
    /// What it makes, which says what clock its timestamps have.
    fn media(&self) -> MediaKind {
        MediaKind::Video
    }
    /// How many bytes of headers each packet costs of the rate that [`Self::on_target`] gives. A source that sends few
    /// bytes a packet (audio) makes fewer and longer packets by it; zero, the default, where the target is for
    /// payloads alone.
    fn set_packet_overhead(&mut self, overhead: DataSize, now: Timestamp) {
        let _ = (overhead, now);
    }
}
