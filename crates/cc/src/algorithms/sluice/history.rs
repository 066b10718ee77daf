//! The integral of the rate: how much it allowed to be sent until a time.

use super::quantity::{Bits, Rate, Span, Time};

/// Changes remembered.
const CAPACITY: usize = 128;

/// Bits allowed until a time by the rate and by its reference, and both from then on.
#[derive(Clone, Copy, Debug, Default)]
struct Change {
    at: Time,
    bits: Bits,
    reference_bits: Bits,
    rate: Rate,
    reference: Rate,
}

/// The rate over time, and the reference that it was derived from.
#[derive(Clone, Debug)]
pub(super) struct RateHistory {
    ring: [Change; CAPACITY],
    count: usize,
    /// The last change.
    last: Change,
}

impl RateHistory {
    /// A rate since the controller's start, its own reference.
    pub(super) fn new(rate: Rate) -> Self {
        let last = Change { rate, reference: rate, ..Change::default() };
        let mut ring = [Change::default(); CAPACITY];
        ring[0] = last;
        Self { ring, count: 1, last }
    }

    /// The rate in force.
    pub(super) fn rate(&self) -> Rate {
        self.last.rate
    }

    /// The reference of the rate in force.
    pub(super) fn reference(&self) -> Rate {
        self.last.reference
    }

    /// Rate and reference change at `now`.
    pub(super) fn set(&mut self, rate: Rate, reference: Rate, now: Time) {
        let old = self.last;
        if old.rate == rate && old.reference == reference {
            return;
        }
        let at = now.max(old.at);
        let bits = old.bits + old.rate * (at - old.at);
        let reference_bits = old.reference_bits + old.reference * (at - old.at);
        self.last = Change { at, bits, reference_bits, rate, reference };
        self.ring[self.count % CAPACITY] = self.last;
        self.count += 1;
    }

    /// The last change up to `time`, or the oldest remembered.
    fn before(&self, time: Time) -> &Change {
        let remembered = self.count.min(CAPACITY);
        let mut all = (1..=remembered).map(|k| &self.ring[(self.count - k) % CAPACITY]);
        let oldest = &self.ring[(self.count - remembered) % CAPACITY];
        all.find(|c| c.at <= time).unwrap_or(oldest)
    }

    /// Bits that the rate allowed until `time`; for times older than the history, as if its first rate had held.
    pub(super) fn bits(&self, time: Time) -> Bits {
        let c = self.before(time);
        c.bits + c.rate * (time - c.at)
    }

    /// The rates in force from a time until `to`, which is now, each with the time for which it was.
    pub(super) fn rates(&self, from: Time, to: Time) -> impl Iterator<Item = (Rate, Span)> {
        let remembered = self.count.min(CAPACITY);
        let change = move |k: usize| &self.ring[(self.count - k) % CAPACITY];
        let since = (1..=remembered).find(|k| change(*k).at <= from).unwrap_or(remembered);
        (1..=since).rev().map(move |k| {
            let begin = if k == since { from } else { change(k).at };
            let end = if k == 1 { to } else { change(k - 1).at };
            (change(k).rate, (end - begin).max(Span::ZERO))
        })
    }

    /// The mean rate between two times; `None` if they are one.
    pub(super) fn mean(&self, from: Time, to: Time) -> Option<Rate> {
        (from != to).then(|| (self.bits(to) - self.bits(from)) / (to - from))
    }

    /// Bits that the rate allowed over those that the reference would have, between two times; 1 where that is nothing.
    pub(super) fn ratio(&self, from: Time, to: Time) -> f64 {
        let reference = |time: Time| {
            let c = self.before(time);
            c.reference_bits + c.reference * (time - c.at)
        };
        let (rate, reference) = (self.bits(to) - self.bits(from), reference(to) - reference(from));
        if rate > Bits::ZERO && reference > Bits::ZERO { rate / reference } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integrates_the_rate() {
        let mut h = RateHistory::new(Rate::bps(100.0));
        let mut set = |rate: f64, reference: f64, at: f64| h.set(Rate::bps(rate), Rate::bps(reference), Time::secs(at));
        set(200.0, 100.0, 1.0);
        set(0.0, 100.0, 2.0);
        assert_eq!([0.5, 1.5, 5.0].map(|at| h.bits(Time::secs(at)).as_bits()), [50.0, 200.0, 300.0]);
        let ratio = |from: f64, to: f64| h.ratio(Time::secs(from), Time::secs(to));
        assert_eq!([ratio(0.0, 1.0), ratio(1.0, 2.0), ratio(0.5, 1.5), ratio(3.0, 3.0)], [1.0, 2.0, 1.5, 1.0]);
        assert_eq!(h.mean(Time::secs(0.0), Time::secs(2.0)), Some(Rate::bps(150.0)));
        assert_eq!(h.mean(Time::secs(1.0), Time::secs(1.0)), None);
        let rates = |from: f64, to: f64| -> Vec<(f64, f64)> {
            let all = h.rates(Time::secs(from), Time::secs(to));
            all.map(|(rate, time)| (rate.as_bps(), time.as_secs())).collect()
        };
        assert_eq!(rates(0.5, 3.0), [(100.0, 0.5), (200.0, 1.0), (0.0, 1.0)]);
        assert_eq!(rates(2.0, 3.0), [(0.0, 1.0)]);
        for k in 0..1_000 {
            h.set(Rate::bps(f64::from(k % 2)), Rate::bps(1.0), Time::secs(5.0 + f64::from(k)));
        }
        let whole = (h.bits(Time::secs(1_004.0)) - h.bits(Time::secs(1_000.0))).as_bits();
        assert!((whole - 2.0).abs() < 1e-9, "{whole}");
    }
}
