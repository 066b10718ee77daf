//! Configuration of a session over DCCP.

use weir_dccp::connection::{Ccids, Config};
use weir_dccp::packet::ServiceCode;
use weir_units::TimeDelta;

/// How the send queue is sized by the frames that pass through it (S. Jero, 2013, section 3.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueSizing {
    /// Factor by which the queue grows when a frame does not fit (2).
    pub growth: usize,
    /// Number of frames after which it shrinks to the largest of them, if that is smaller (1,000).
    pub period: u32,
    /// Most packets that it may hold. The thesis has no bound; this one limits memory.
    pub max: usize,
}

impl Default for QueueSizing {
    fn default() -> Self {
        Self { growth: 2, period: 1_000, max: 8_192 }
    }
}

/// Configuration of a session over DCCP. The connection's own queue and congestion control are in
/// [`Config`](weir_dccp::connection::Config).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DccpConfig {
    /// How the send queue is sized; `None` leaves it unchanged.
    pub sizing: Option<QueueSizing>,
    /// Age, measured from capture, at which a frame's packets expire; `None` for never. Queues that drop use it.
    pub max_wait: Option<TimeDelta>,
    /// Least interval between [`TransportRate`](weir_cc::cue::TransportRate) cues, which accompany frames; controllers
    /// sample them as needed.
    pub rate_interval: TimeDelta,
    /// Idle time after which an empty datagram is sent to keep address translators' bindings (RFC 5762, section 4.1: 15
    /// s); `None` disables it.
    pub keep_alive: Option<TimeDelta>,
}

impl Default for DccpConfig {
    fn default() -> Self {
        Self {
            sizing: Some(QueueSizing::default()),
            max_wait: None,
            rate_interval: TimeDelta::ZERO,
            keep_alive: Some(TimeDelta::from_secs(15)),
        }
    }
}

/// A connection for video with this congestion control in both directions: service code RTPV (RFC 5762, section 5.2;
/// the thesis's code has RTPA), defaults otherwise. RTCP uses the same connection.
pub fn video_connection(ccid: u8) -> Config {
    Config { service_code: ServiceCode::RTP_VIDEO, ccids: Ccids::both(ccid), ..Config::default() }
}

/// The queue's size by frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizing {
    config: QueueSizing,
    frames: u32,
    largest: usize,
}

impl Sizing {
    pub(super) fn new(config: QueueSizing) -> Self {
        Self { config, frames: 0, largest: 0 }
    }

    /// A frame of `packets` packets arrives at a queue of this capacity; returns the new capacity if it changes.
    pub(super) fn on_frame(&mut self, packets: usize, capacity: usize) -> Option<usize> {
        let mut wanted = capacity;
        if packets > wanted {
            wanted = wanted.saturating_mul(self.config.growth.max(1)).min(self.config.max).max(capacity);
        }
        self.largest = self.largest.max(packets);
        self.frames += 1;
        if self.frames >= self.config.period.max(1) {
            wanted = wanted.min(self.largest.max(1));
            (self.frames, self.largest) = (0, 0);
        }
        (wanted != capacity).then_some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_with_a_larger_frame_and_shrinks_after_a_thousand() {
        let mut sizing = Sizing::new(QueueSizing::default());
        let mut capacity = 5;
        let mut frame = |packets| {
            capacity = sizing.on_frame(packets, capacity).unwrap_or(capacity);
            capacity
        };
        // Once per frame, however large it is.
        assert_eq!([5, 6, 100, 100, 100, 100].map(&mut frame), [5, 10, 20, 40, 80, 160]);
        assert_eq!((6..999).map(|_| frame(7)).max(), Some(160));
        // The thousandth frame: the largest had 100 packets. After the next thousand the size is 8.
        assert_eq!(frame(7), 100);
        assert_eq!((0..999).map(|n| frame(7 + n % 2)).min(), Some(100));
        assert_eq!([7, 9].map(&mut frame), [8, 16]);
    }

    #[test]
    fn stays_within_its_bound() {
        let mut sizing = Sizing::new(QueueSizing { max: 12, ..QueueSizing::default() });
        assert_eq!([5, 10, 12].map(|c| sizing.on_frame(1_000, c)), [Some(10), Some(12), None]);
        // A capacity that was larger before is kept.
        assert_eq!(sizing.on_frame(1_000, 20), None);
        let mut odd = Sizing::new(QueueSizing { growth: 0, period: 0, max: 0 });
        assert_eq!([odd.on_frame(9, 5), odd.on_frame(0, 5)], [None, Some(1)]);
    }
}
