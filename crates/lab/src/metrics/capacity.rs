//! A link's capacity over time.

use weir_units::{DataRate, TimeDelta, Timestamp};

/// Capacity as steps in time.
#[derive(Clone, PartialEq, Debug)]
pub struct Capacity {
    /// Start of each step and its rate, in order.
    steps: Vec<(Timestamp, DataRate)>,
    /// Bits times 10^9 from the first step's start to each step's start.
    before: Vec<u128>,
}

impl Capacity {
    /// One rate for the whole run.
    pub fn constant(rate: DataRate) -> Self {
        Self::steps(vec![(Timestamp::ZERO, rate)])
    }
    /// Steps in order of time; each lasts until the next, the last indefinitely, and the first also applies before its
    /// start. A step that is not later than the previous one replaces it; no steps at all are a capacity of zero.
    pub fn steps(steps: Vec<(Timestamp, DataRate)>) -> Self {
        let mut ordered: Vec<(Timestamp, DataRate)> = Vec::with_capacity(steps.len().max(1));
        for (at, rate) in steps {
            while ordered.last().is_some_and(|&(last, _)| last >= at) {
                ordered.pop();
            }
            if ordered.last().is_none_or(|&(_, last)| last != rate) {
                ordered.push((at, rate));
            }
        }
        if ordered.is_empty() {
            ordered.push((Timestamp::ZERO, DataRate::ZERO));
        }
        let mut before = Vec::with_capacity(ordered.len());
        let mut sum = 0u128;
        for (i, &(at, _)) in ordered.iter().enumerate() {
            if i > 0 {
                let (from, rate) = ordered[i - 1];
                sum += bit_ns(rate, at - from);
            }
            before.push(sum);
        }
        Self { steps: ordered, before }
    }
    /// Steps of `every` up to `duration`, each with the value of `rate` at its start.
    pub fn sampled(duration: TimeDelta, every: TimeDelta, mut rate: impl FnMut(Timestamp) -> DataRate) -> Self {
        let every = every.max(TimeDelta::from_millis(1));
        let count = duration.as_nanos().max(0) / every.as_nanos() + 1;
        Self::steps((0..count).map(|i| Timestamp::ZERO + every * i).map(|t| (t, rate(t))).collect())
    }
    /// The rate at an instant.
    pub fn at(&self, t: Timestamp) -> DataRate {
        self.steps[self.step(t)].1
    }
    /// Bits that fit between two times; zero if they are not in order.
    pub fn bits(&self, from: Timestamp, to: Timestamp) -> f64 {
        if to <= from {
            return 0.0;
        }
        let upto = |t: Timestamp| {
            let i = self.step(t);
            let (at, rate) = self.steps[i];
            // The first step's rate also applies before it, so the time since then may be negative.
            self.before[i] as f64 + rate.as_bps_f64() * (t - at).as_nanos() as f64
        };
        (upto(to) - upto(from)) * 1e-9
    }
    /// Changes by at least a tenth that last for at least `hold` (or are the last), after the beginning.
    pub(super) fn lasting_changes(&self, hold: TimeDelta) -> Vec<(Timestamp, DataRate)> {
        let mut out = Vec::new();
        for i in 1..self.steps.len() {
            let (at, rate) = self.steps[i];
            let (old, new) = (self.steps[i - 1].1.as_bps_f64(), rate.as_bps_f64());
            let holds = self.steps.get(i + 1).is_none_or(|&(next, _)| next - at >= hold);
            if holds && (new - old).abs() >= 0.1 * old.max(new) {
                out.push((at, rate));
            }
        }
        out
    }
    fn step(&self, t: Timestamp) -> usize {
        self.steps.partition_point(|&(at, _)| at <= t).saturating_sub(1)
    }
}

fn bit_ns(rate: DataRate, span: TimeDelta) -> u128 {
    u128::from(rate.as_bps()) * u128::try_from(span.as_nanos()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper() -> Capacity {
        let kbps = [2_000, 1_500, 1_000, 500, 1_000, 1_500];
        Capacity::steps((0..).zip(kbps).map(|(i, k)| (Timestamp::from_secs(20 * i), DataRate::from_kbps(k))).collect())
    }

    #[test]
    fn integrates_over_steps() {
        let c = paper();
        assert_eq!(c.at(Timestamp::from_millis(19_999)), DataRate::from_kbps(2_000));
        assert_eq!(c.at(Timestamp::from_secs(20)), DataRate::from_kbps(1_500));
        // 10 s at 2 Mbit/s and 5 s at 1.5 Mbit/s.
        assert!((c.bits(Timestamp::from_secs(10), Timestamp::from_secs(25)) - 27.5e6).abs() < 1e-3);
        assert!((c.bits(Timestamp::ZERO, Timestamp::from_secs(120)) - 150e6).abs() < 1e-3);
        assert_eq!(c.bits(Timestamp::from_secs(2), Timestamp::from_secs(1)), 0.0);
        assert_eq!(c.lasting_changes(TimeDelta::from_secs(5)).len(), 5);
        assert_eq!(c.lasting_changes(TimeDelta::from_secs(21)).len(), 1);
    }

    #[test]
    fn odd_steps_are_taken_as_they_come() {
        let late = Capacity::steps(vec![(Timestamp::from_secs(5), DataRate::from_bps(8))]);
        assert!((late.bits(Timestamp::ZERO, Timestamp::from_secs(10)) - 80.0).abs() < 1e-9);
        assert_eq!(Capacity::steps(vec![]).bits(Timestamp::ZERO, Timestamp::from_secs(1)), 0.0);
        let back = Capacity::steps(vec![
            (Timestamp::from_secs(1), DataRate::from_bps(1)),
            (Timestamp::from_secs(0), DataRate::from_bps(2)),
        ]);
        assert_eq!(back.at(Timestamp::from_secs(3)), DataRate::from_bps(2));
    }
}
