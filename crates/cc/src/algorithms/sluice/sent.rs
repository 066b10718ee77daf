//! What the rate allowed to be sent since a time: the integral of the rate.

/// Changes kept.
const KEPT: usize = 128;

/// From a time on: bits allowed until then by the rate and by the reference, and both from then on.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    at: f64,
    bits: f64,
    reference_bits: f64,
    rate: f64,
    reference: f64,
}

/// The rate over time, and the reference that it was derived from.
#[derive(Clone, Debug)]
pub(super) struct RateHistory {
    ring: [Change; KEPT],
    count: usize,
}

impl RateHistory {
    /// A rate since time zero, its own reference.
    pub(super) fn new(rate: f64) -> Self {
        let mut ring = [Change::default(); KEPT];
        ring[0] = Change { rate, reference: rate, ..Change::default() };
        Self { ring, count: 1 }
    }

    /// Rate and reference change at `now`.
    pub(super) fn set(&mut self, rate: f64, reference: f64, now: f64) {
        let old = self.ring[(self.count - 1) % KEPT];
        if old.rate == rate && old.reference == reference {
            return;
        }
        let at = now.max(old.at);
        let bits = old.bits + old.rate * (at - old.at);
        let reference_bits = old.reference_bits + old.reference * (at - old.at);
        self.ring[self.count % KEPT] = Change { at, bits, reference_bits, rate, reference };
        self.count += 1;
    }

    /// The last change up to `time`, or the oldest kept.
    fn before(&self, time: f64) -> &Change {
        let kept = self.count.min(KEPT);
        let mut all = (1..=kept).map(|k| &self.ring[(self.count - k) % KEPT]);
        let oldest = &self.ring[(self.count - kept) % KEPT];
        all.find(|c| c.at <= time).unwrap_or(oldest)
    }

    /// Bits that the rate allowed until `time`; for times older than the history, as if its first rate had held.
    pub(super) fn bits(&self, time: f64) -> f64 {
        let c = self.before(time);
        c.bits + c.rate * (time - c.at)
    }

    /// The mean rate between two times; NaN for none.
    pub(super) fn mean(&self, from: f64, to: f64) -> f64 {
        (self.bits(to) - self.bits(from)) / (to - from)
    }

    /// What the rate allowed over what the reference would have, between two times; 1 where that is nothing.
    pub(super) fn ratio(&self, from: f64, to: f64) -> f64 {
        let reference = |time: f64| {
            let c = self.before(time);
            c.reference_bits + c.reference * (time - c.at)
        };
        let (rate, reference) = (self.bits(to) - self.bits(from), reference(to) - reference(from));
        if rate > 0.0 && reference > 0.0 { rate / reference } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrates_the_rate() {
        let mut h = RateHistory::new(100.0);
        h.set(200.0, 100.0, 1.0);
        h.set(0.0, 100.0, 2.0);
        assert_eq!([h.bits(0.5), h.bits(1.5), h.bits(5.0)], [50.0, 200.0, 300.0]);
        assert_eq!([h.ratio(0.0, 1.0), h.ratio(1.0, 2.0), h.ratio(0.5, 1.5), h.ratio(3.0, 3.0)], [1.0, 2.0, 1.5, 1.0]);
        (0..1_000).for_each(|k| h.set(f64::from(k % 2), 1.0, 5.0 + f64::from(k)));
        let whole = h.bits(1_004.0) - h.bits(1_000.0);
        assert!((whole - 2.0).abs() < 1e-9, "{whole}");
    }
}
