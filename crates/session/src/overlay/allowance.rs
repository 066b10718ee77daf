//! Capacity of a node's uplink that is left for repeated packets.

use weir_units::{DataRate, Timestamp};

/// Share of what the node can forward that its uplink carries at most, repeated packets included (calibrated). A degree is
/// less than what an uplink can carry by what the node keeps for this.
const SHARE: f64 = 1.15;
/// Longest time over which unused capacity counts, and over which more than it is held against repeated packets.
const SPAN_S: f64 = 0.1;

/// A token bucket that packets of the tree empty and repeated packets need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    /// Bytes a second, and the bytes left.
    rate: f64,
    left: f64,
    at: Timestamp,
}

impl Allowance {
    /// A node that can forward nothing.
    pub(super) const fn new(now: Timestamp) -> Self {
        Self { rate: 0.0, left: 0.0, at: now }
    }

    /// The node can forward to this many children at this rate each.
    pub(super) fn set(&mut self, children: u32, rate: DataRate, now: Timestamp) {
        self.refill(now);
        self.rate = rate.as_bps_f64() / 8.0 * f64::from(children) * SHARE;
    }

    fn refill(&mut self, now: Timestamp) {
        let time = now.saturating_since(self.at).as_secs_f64();
        self.left = (self.left + time * self.rate).min(self.rate * SPAN_S);
        self.at = self.at.max(now);
    }

    /// A packet of the tree is forwarded.
    pub(super) fn on_forwarded(&mut self, bytes: u64, now: Timestamp) {
        self.refill(now);
        self.left = (self.left - bytes as f64).max(-self.rate * SPAN_S);
    }

    /// Whether a packet may be repeated; takes its bytes if so.
    pub(super) fn take(&mut self, bytes: u64, now: Timestamp) -> bool {
        self.refill(now);
        let is_enough = self.left >= bytes as f64;
        if is_enough {
            self.left -= bytes as f64;
        }
        is_enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_packets_get_what_the_tree_leaves() {
        let mut allowance = Allowance::new(Timestamp::ZERO);
        assert!(!allowance.take(1, Timestamp::from_secs(1)), "it has no children");
        // 10,000 bytes a second to each of ten, and 15 % more.
        allowance.set(10, DataRate::from_kbps(80), Timestamp::from_secs(1));
        let (mut forwarded, mut repeated) = (0, 0);
        for ms in 1_000..5_000 {
            let now = Timestamp::from_millis(ms);
            if ms % 10 == 0 {
                allowance.on_forwarded(1_000, now);
                forwarded += 1;
            }
            repeated += u32::from(allowance.take(1_000, now));
        }
        // Of 115 packets a second.
        assert_eq!(forwarded, 400);
        assert!((50..=62).contains(&repeated), "{repeated}");
        // Nothing is saved up for longer than 0.1 s.
        let later = Timestamp::from_secs(60);
        assert!((0..11).all(|_| allowance.take(1_000, later)));
        assert!(!allowance.take(1_000, later));
    }
}
