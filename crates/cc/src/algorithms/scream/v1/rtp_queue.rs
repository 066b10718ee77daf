//! The RTP queue as seen by the media rate control (RFC 8298, section 4.1.3, rtp_queue_size).

use crate::cue::{QueueState, SentPacket};
use weir_units::DataSize;

/// Bytes held back by the window and the pacer.
///
/// The queue is measured when a frame enters, without that frame: a frame still being paced out does not signal
/// congestion. (The RFC does not say when to measure; the C++ also subtracts the latest frame.)
#[derive(Clone, Debug, Default)]
pub(super) struct RtpQueue {
    behind: DataSize,
    queued: DataSize,
}

impl RtpQueue {
    pub(super) fn on_frame(&mut self, queue: &QueueState) {
        self.behind = queue.queued.saturating_sub(queue.added);
        self.queued = queue.queued;
    }
    pub(super) fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.queued = packet.queued;
    }
    /// rtp_queue_size.
    pub(super) fn size(&self) -> DataSize {
        self.behind.min(self.queued)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{TimeDelta, Timestamp};

    #[test]
    fn the_latest_frame_does_not_count() {
        let bytes = DataSize::from_bytes;
        let mut q = RtpQueue::default();
        let frame = |added, queued| QueueState {
            now: Timestamp::ZERO,
            added: bytes(added),
            queued: bytes(queued),
            oldest_age: TimeDelta::ZERO,
        };
        q.on_frame(&frame(8_000, 8_000));
        assert_eq!(q.size(), bytes(0));
        q.on_frame(&frame(8_000, 11_000));
        assert_eq!(q.size(), bytes(3_000));
        q.on_packet_sent(&SentPacket { queued: bytes(500), ..SentPacket::media(Timestamp::ZERO, 0, bytes(1_000)) });
        assert_eq!(q.size(), bytes(500));
    }
}
