use crate::error::ConfigError;
use crate::steps::check_times;
use std::sync::Arc;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// A rate from a given time on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Start, counted from zero of the clock.
    pub at: TimeDelta,
    /// The rate until the next step.
    pub rate: DataRate,
}

/// A piecewise constant capacity, optionally repeated. Cheap to clone.
#[derive(Clone, PartialEq, Debug)]
pub struct Schedule(Arc<Table>);

#[derive(PartialEq, Debug)]
struct Table {
    steps: Vec<Step>,
    /// The rate of each step, or the last one above zero before it.
    above_zero: Vec<DataRate>,
    /// Length of a cycle in nanoseconds, if it repeats.
    period: Option<i64>,
    /// Bits times nanoseconds a second transmitted in a cycle.
    work: u128,
}

/// A position in a schedule: the start of the cycle, and the step.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    epoch: i64,
    index: usize,
}

impl Schedule {
    /// A schedule of steps that begin at zero in increasing order; with `period`, it repeats. Errors: no steps, a first
    /// step that is not at zero, steps out of order, or a period that ends before the last step begins.
    pub fn new(steps: Vec<Step>, period: Option<TimeDelta>) -> Result<Self, ConfigError> {
        let at: Vec<_> = steps.iter().map(|s| s.at).collect();
        let fields = ["capacity.steps", "capacity.steps[0].at", "capacity.steps.at", "capacity.period"];
        check_times(&at, period, fields)?;
        let period = period.map(TimeDelta::as_nanos);
        let ends = steps.iter().skip(1).map(|s| s.at.as_nanos()).chain(period);
        let work = steps.iter().zip(ends).map(|(s, e)| u128::from(s.rate.as_bps()) * span(s.at.as_nanos(), e)).sum();
        Ok(Self(Arc::new(Table { above_zero: above_zero(&steps, period.is_some()), steps, period, work })))
    }

    /// The steps of one cycle.
    pub fn steps(&self) -> &[Step] {
        &self.0.steps
    }
    /// The length of a cycle, if it repeats.
    pub fn period(&self) -> Option<TimeDelta> {
        self.0.period.map(TimeDelta::from_nanos)
    }
    /// The rate at a time; before zero of the clock, that of the first step.
    pub fn rate_at(&self, at: Timestamp) -> DataRate {
        self.0.steps[self.locate(at).index].rate
    }
    /// The rate at a time, or if it is zero, the last one above zero.
    pub(crate) fn above_zero_at(&self, at: Timestamp) -> DataRate {
        self.0.above_zero[self.locate(at).index]
    }

    /// The first time from `at` on at which the rate is above zero; `Timestamp::MAX` for never.
    pub(crate) fn next_above_zero(&self, at: Timestamp) -> Timestamp {
        let mut cursor = self.locate(at);
        if self.0.steps[cursor.index].rate > DataRate::ZERO {
            return at;
        }
        // Each step of a cycle once.
        for _ in 0..self.0.steps.len() {
            let end = self.end(&cursor);
            if end == i64::MAX {
                break;
            }
            self.seek(&mut cursor, end);
            if self.0.steps[cursor.index].rate > DataRate::ZERO {
                return Timestamp::from_nanos(end);
            }
        }
        Timestamp::MAX
    }

    fn locate(&self, at: Timestamp) -> Cursor {
        let mut c = Cursor::default();
        self.seek(&mut c, at.as_nanos().max(0));
        c
    }

    /// Moves a cursor forward to the step in force at `t`.
    fn seek(&self, c: &mut Cursor, t: i64) {
        if t < self.end(c) {
            return;
        }
        if let Some(p) = self.0.period
            && t - c.epoch >= p
        {
            *c = Cursor { epoch: c.epoch + (t - c.epoch) / p * p, index: 0 };
        }
        let offset = TimeDelta::from_nanos(t - c.epoch);
        c.index += self.0.steps[c.index..].partition_point(|s| s.at <= offset).max(1) - 1;
    }

    /// When the step under the cursor ends.
    fn end(&self, c: &Cursor) -> i64 {
        match self.0.steps.get(c.index + 1) {
            Some(s) => c.epoch.saturating_add(s.at.as_nanos()),
            None => self.0.period.map_or(i64::MAX, |p| c.epoch.saturating_add(p)),
        }
    }

    /// When the transmission of `size`, begun at `start`, ends; moves the cursor there. `Timestamp::MAX` for never.
    #[inline]
    pub(crate) fn finish(&self, c: &mut Cursor, start: Timestamp, size: DataSize) -> Timestamp {
        let t = start.as_nanos();
        self.seek(c, t);
        match self.0.steps[c.index].rate.time_for(size) {
            Some(d) if t.saturating_add(d.as_nanos()) <= self.end(c) => start + d,
            _ => self.finish_across(c, t, size),
        }
    }

    fn finish_across(&self, c: &mut Cursor, mut t: i64, size: DataSize) -> Timestamp {
        let mut left = u128::from(size.as_bytes()) * 8_000_000_000;
        if left == 0 {
            return Timestamp::from_nanos(t);
        }
        loop {
            let (rate, end) = (u128::from(self.0.steps[c.index].rate.as_bps()), self.end(c));
            let work = rate * span(t, end);
            if rate > 0 && left <= work {
                let took = i64::try_from(left.div_ceil(rate)).unwrap_or(i64::MAX);
                return Timestamp::from_nanos(t.saturating_add(took));
            }
            if end == i64::MAX {
                return Timestamp::MAX;
            }
            left -= work;
            t = end;
            c.index += 1;
            if let (true, Some(period)) = (c.index == self.0.steps.len(), self.0.period) {
                *c = Cursor { epoch: t, index: 0 };
                if self.0.work == 0 {
                    return Timestamp::MAX;
                }
                // Whole cycles are skipped at once, except for a remainder above zero that determines where in a cycle
                // it ends.
                let cycles = i64::try_from((left - 1) / self.0.work).unwrap_or(i64::MAX);
                left -= u128::from(cycles.unsigned_abs()) * self.0.work;
                t = t.saturating_add(cycles.saturating_mul(period));
                c.epoch = t;
            }
        }
    }
}

fn span(from: i64, to: i64) -> u128 {
    u128::from(u64::try_from(to.saturating_sub(from)).unwrap_or(0))
}

fn above_zero(steps: &[Step], repeats: bool) -> Vec<DataRate> {
    let rates = || steps.iter().map(|s| s.rate);
    let first = rates().find(|&r| r > DataRate::ZERO).unwrap_or(DataRate::ZERO);
    let last = rates().rfind(|&r| r > DataRate::ZERO).unwrap_or(DataRate::ZERO);
    let mut held = if repeats { last } else { first };
    rates()
        .map(|r| {
            held = if r > DataRate::ZERO { r } else { held };
            held
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schedule(steps: &[(i64, u64)], period: Option<i64>) -> Schedule {
        let steps =
            steps.iter().map(|&(ms, kbps)| Step { at: TimeDelta::from_millis(ms), rate: DataRate::from_kbps(kbps) });
        Schedule::new(steps.collect(), period.map(TimeDelta::from_millis)).expect("sound")
    }
    fn finish(s: &Schedule, start_ms: i64, bytes: u64) -> Timestamp {
        s.finish(&mut Cursor::default(), Timestamp::from_millis(start_ms), DataSize::from_bytes(bytes))
    }

    #[test]
    fn a_packet_across_a_step_takes_both_rates() {
        // 8 kbit/s transmit 1 byte per millisecond, 16 kbit/s two.
        let s = schedule(&[(0, 8), (100, 0), (150, 16)], Some(200));
        assert_eq!(finish(&s, 0, 100), Timestamp::from_millis(100));
        assert_eq!(finish(&s, 0, 120), Timestamp::from_millis(160));
        assert_eq!(finish(&s, 120, 2), Timestamp::from_millis(151));
        // A cycle transmits 100 + 100 bytes.
        assert_eq!(finish(&s, 0, 100 + 10 * 200), Timestamp::from_millis(2_100));
        assert_eq!(finish(&s, 0, 2 + 1_000_000 * 200), Timestamp::from_millis(200_000_002));
    }

    #[test]
    fn nothing_passes_a_dead_link_and_nothing_hangs() {
        assert_eq!(finish(&schedule(&[(0, 0), (5, 0)], Some(10)), 3, 1), Timestamp::MAX);
        assert_eq!(finish(&schedule(&[(0, 8), (5, 0)], None), 3, 3), Timestamp::MAX);
        assert_eq!(finish(&schedule(&[(0, 8), (5, 0)], None), 3, 2), Timestamp::from_millis(5));
    }

    #[test]
    fn an_outage_remembers_the_rate_before_it() {
        let s = schedule(&[(0, 0), (10, 8), (20, 0)], Some(30));
        let at = |ms| s.above_zero_at(Timestamp::from_millis(ms)).as_bps();
        assert_eq!((at(0), at(15), at(25), s.rate_at(Timestamp::from_millis(55)).as_bps()), (8_000, 8_000, 8_000, 0));
        let mixed = schedule(&[(0, 16), (10, 0), (20, 8)], None);
        assert_eq!(mixed.above_zero_at(Timestamp::from_millis(12)).as_bps(), 16_000);
    }

    #[test]
    fn errors_name_the_step() {
        let step = |ms, kbps| Step { at: TimeDelta::from_millis(ms), rate: DataRate::from_kbps(kbps) };
        let err = |steps, p: Option<i64>| {
            Schedule::new(steps, p.map(TimeDelta::from_millis)).expect_err("unsound").to_string()
        };
        assert!(err(vec![], None).contains("at least one step"));
        assert!(err(vec![step(1, 1)], None).contains("steps[0].at is 1 ms"));
        assert!(err(vec![step(0, 1), step(0, 2)], None).contains("later time"));
        assert!(err(vec![step(0, 1), step(9, 2)], Some(9)).contains("period is 9 ms"));
    }

    proptest! {
        /// A step-by-step integration is the oracle: bytes are transmitted at their rate, in milliseconds.
        #[test]
        fn agrees_with_integration(
            rates in proptest::collection::vec(0u64..4, 1..6),
            start in 0i64..100,
            bytes in 1u64..200,
            repeat: bool,
        ) {
            let steps: Vec<_> = rates.iter().enumerate().map(|(i, &r)| (10 * i as i64, 8 * r)).collect();
            let n = rates.len() as i64;
            let s = schedule(&steps, repeat.then_some(10 * n));
            let rate = |ms: i64| {
                let i = ms / 10;
                rates[usize::try_from(if repeat { i % n } else { i.min(n - 1) }).expect("small")]
            };
            let (mut left, mut ms) = (i64::try_from(bytes).expect("small"), start);
            while left > 0 && ms < start + 100_000 {
                left -= rate(ms) as i64;
                ms += 1;
            }
            let got = finish(&s, start, bytes);
            if left > 0 {
                prop_assert_eq!(got, Timestamp::MAX);
            } else {
                let (end, t) = (Timestamp::from_millis(ms), TimeDelta::from_millis(1));
                prop_assert!(got <= end && got > end - t, "{:?} against {:?}", got, end);
            }
        }
    }
}
