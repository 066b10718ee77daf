//! Record of packets sent: bytes between reports, pauses, and the mean size of recent packets.

use crate::cue::SentPacket;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Slices of the window over which the packet size is averaged.
const SLICES: usize = 16;

#[derive(Clone, Debug)]
pub(super) struct Sent {
    bytes: DataSize,
    since: Option<Timestamp>,
    last: Option<Timestamp>,
    longest_pause: TimeDelta,
    sizes: Sizes,
}

/// Packets sent between two report blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentInterval {
    pub(super) bytes: DataSize,
    /// From the previous block, or the first packet, to this one.
    pub(super) duration: TimeDelta,
    /// Longest time without a packet that ends in the interval or continues beyond it.
    pub(super) longest_pause: TimeDelta,
}

impl Sent {
    pub(super) fn new() -> Self {
        Self { bytes: DataSize::ZERO, since: None, last: None, longest_pause: TimeDelta::ZERO, sizes: Sizes::default() }
    }

    /// Records a packet; sizes are averaged over `window`.
    pub(super) fn on_packet(&mut self, packet: &SentPacket, window: TimeDelta) {
        let from = self.last.unwrap_or(packet.now);
        self.longest_pause = self.longest_pause.max(packet.now.saturating_since(from));
        self.since.get_or_insert(packet.now);
        self.last = Some(packet.now);
        self.bytes += packet.size;
        self.sizes.add(packet.now, packet.size, window);
    }

    /// When the last packet was sent.
    pub(super) fn last(&self) -> Option<Timestamp> {
        self.last
    }

    /// s: mean packet size over the last window that had packets.
    pub(super) fn mean_size(&self) -> DataSize {
        self.sizes.mean()
    }

    /// Ends the interval at a report block. `None` before the first packet.
    pub(super) fn take(&mut self, now: Timestamp) -> Option<SentInterval> {
        let since = self.since?;
        let from = self.last.unwrap_or(now);
        let interval = SentInterval {
            bytes: self.bytes,
            duration: now.saturating_since(since),
            longest_pause: self.longest_pause.max(now.saturating_since(from)),
        };
        (self.bytes, self.since, self.longest_pause) = (DataSize::ZERO, Some(now), TimeDelta::ZERO);
        Some(interval)
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Slice {
    bytes: u64,
    packets: u64,
}

#[derive(Clone, Debug, Default)]
struct Sizes {
    slices: [Slice; SLICES],
    at: usize,
    start: Timestamp,
}

impl Sizes {
    fn add(&mut self, now: Timestamp, size: DataSize, window: TimeDelta) {
        let slice = (window / SLICES as i64).max(TimeDelta::from_nanos(1));
        let passed = now.saturating_since(self.start).as_nanos() / slice.as_nanos();
        if passed > 0 {
            for _ in 0..passed.min(SLICES as i64) {
                self.at = (self.at + 1) % SLICES;
                self.slices[self.at] = Slice::default();
            }
            self.start += slice * passed;
        }
        let current = &mut self.slices[self.at];
        current.bytes = current.bytes.saturating_add(size.as_bytes());
        current.packets += 1;
    }

    fn mean(&self) -> DataSize {
        let bytes = self.slices.iter().fold(0u64, |sum, s| sum.saturating_add(s.bytes));
        let packets: u64 = self.slices.iter().map(|s| s.packets).sum();
        DataSize::from_bytes(bytes.checked_div(packets).unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: TimeDelta = TimeDelta::from_millis(160);

    fn send(s: &mut Sent, ms: i64, bytes: u64) {
        let packet = SentPacket::media(Timestamp::from_millis(ms), ms as u64, DataSize::from_bytes(bytes));
        s.on_packet(&packet, WINDOW);
    }

    #[test]
    fn intervals_run_from_block_to_block() {
        let mut s = Sent::new();
        assert!(s.take(Timestamp::from_millis(5)).is_none());
        send(&mut s, 100, 1_000);
        send(&mut s, 400, 500);
        let first = s.take(Timestamp::from_millis(500)).expect("sent");
        assert_eq!((first.bytes.as_bytes(), first.duration.as_millis()), (1_500, 400));
        assert_eq!(first.longest_pause.as_millis(), 300);
        let idle = s.take(Timestamp::from_millis(900)).expect("sent before");
        assert_eq!((idle.bytes.as_bytes(), idle.longest_pause.as_millis()), (0, 500));
        send(&mut s, 950, 10);
        assert_eq!(s.take(Timestamp::from_millis(1_000)).expect("sent").longest_pause.as_millis(), 550);
    }

    #[test]
    fn the_size_is_that_of_the_last_window() {
        let mut s = Sent::new();
        assert_eq!(s.mean_size(), DataSize::ZERO);
        for ms in 0..100 {
            send(&mut s, ms, 200);
        }
        assert_eq!(s.mean_size().as_bytes(), 200);
        // 15 whole slices of 10 ms and the current one: the packets of 100 ms ago are still in.
        send(&mut s, 159, 1_000);
        assert_eq!(s.mean_size().as_bytes(), (100 * 200 + 1_000) / 101);
        send(&mut s, 249, 1_000);
        assert_eq!(s.mean_size().as_bytes(), (10 * 200 + 2_000) / 12, "those of 90 to 99 ms");
        send(&mut s, 9_000, 600);
        assert_eq!(s.mean_size().as_bytes(), 600);
    }
}
