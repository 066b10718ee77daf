//! Aggregation: bytes acknowledged faster than the bandwidth estimate allows, for which the window is widened
//! (`UpdateAckAggregationBytes`, `CalculateCongestionWindow`).

use super::max_filter::MaxFilter;
use super::times;
use weir_units::{DataRate, DataSize, Timestamp};

/// The measure of aggregation.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    since: Option<Timestamp>,
    bytes: DataSize,
    extra: MaxFilter<DataSize>,
    /// Bytes acknowledged since the queue was last drained.
    undrained: DataSize,
    /// Multiple of the extra bytes while the queue is not drained; zero for them once, always.
    gain: f64,
}

impl Aggregation {
    pub(super) fn new(window: u64, gain: f64) -> Self {
        let (bytes, undrained) = (DataSize::ZERO, DataSize::ZERO);
        Self { since: None, bytes, extra: MaxFilter::new(window), undrained, gain }
    }
    /// A packet was sent.
    pub(super) fn on_sent(&mut self, now: Timestamp) {
        self.since.get_or_insert(now);
    }
    /// Bytes were acknowledged, in this round trip and at this estimate of the bandwidth.
    pub(super) fn on_acked(&mut self, acked: DataSize, drained: bool, bandwidth: DataRate, round: u64, now: Timestamp) {
        self.undrained = if drained { DataSize::ZERO } else { self.undrained + acked };
        let Some(since) = self.since else { return };
        let expected = bandwidth.size_in(now - since);
        if self.bytes <= expected {
            (self.bytes, self.since) = (acked, Some(now));
            return;
        }
        self.bytes += acked;
        self.extra.update(self.bytes.saturating_sub(expected), round);
    }
    /// Bytes by which aggregation widens the window.
    pub(super) fn extra(&self) -> DataSize {
        let extra = self.extra.best();
        if self.gain == 0.0 {
            return extra;
        }
        // Half of what was acknowledged, so that sending does not stop for long where the queue is not drained.
        times(extra, self.gain).saturating_sub(DataSize::from_bytes(self.undrained.as_bytes() / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B: fn(u64) -> DataSize = DataSize::from_bytes;
    const MS: fn(i64) -> Timestamp = Timestamp::from_millis;
    const RATE: DataRate = DataRate::from_kbps(800);

    #[test]
    fn what_arrives_beyond_the_bandwidth_is_extra() {
        let mut a = Aggregation::new(10, 0.0);
        a.on_acked(B(9_000), true, RATE, 1, MS(0));
        assert_eq!(a.extra(), B(0), "nothing was sent");
        a.on_sent(MS(0));
        a.on_acked(B(3_000), true, RATE, 1, MS(10));
        // 3,000 and 2,000 bytes in 10 ms, in which 1,000 were expected.
        a.on_acked(B(2_000), true, RATE, 1, MS(20));
        assert_eq!(a.extra(), B(4_000));
        // 5,000 bytes in 60 ms are less than expected: it begins again.
        a.on_acked(B(1_000), true, RATE, 2, MS(70));
        a.on_acked(B(1_000), true, RATE, 2, MS(71));
        assert_eq!(a.extra(), B(4_000), "the greatest of the window");
    }

    #[test]
    fn a_gain_applies_while_the_queue_is_drained() {
        let mut a = Aggregation::new(10, 2.0);
        a.on_sent(MS(0));
        a.on_acked(B(3_000), true, RATE, 1, MS(10));
        a.on_acked(B(2_000), true, RATE, 1, MS(20));
        assert_eq!(a.extra(), B(8_000));
        a.on_acked(B(6_000), false, RATE, 2, MS(80));
        assert_eq!(a.extra(), B(5_000));
        a.on_acked(B(60_000), false, RATE, 3, MS(900));
        assert_eq!(a.extra(), B(0));
    }
}
