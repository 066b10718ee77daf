//! The clock of an end that has one of its own.

use crate::scenario::{Clock, ClockStep};
use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

const BILLION: i128 = 1_000_000_000;

/// Converts between the simulation's time and an end's own.
///
/// The end's time drifts and is coarse but never goes back, as a monotonic clock; a step sets only the clock that its timestamps
/// are read from ([`weir_session::RtcpControl::set_clock_offset`]).
#[derive(Clone, Debug)]
pub struct EndClock {
    /// The instant at which both are the same.
    start: Timestamp,
    /// Nanoseconds of the end in 10^9 of the simulation's.
    speed: i128,
    granularity: i64,
    /// Steps to come, in order.
    steps: VecDeque<ClockStep>,
    offset: TimeDelta,
}

impl EndClock {
    /// A clock that is right at `start`.
    pub fn new(clock: &Clock, start: Timestamp) -> Self {
        Self {
            start,
            speed: BILLION + i128::from(clock.drift_ppb),
            granularity: clock.granularity.as_nanos().max(1),
            steps: clock.steps.iter().copied().collect(),
            offset: TimeDelta::ZERO,
        }
    }

    /// The end's own time.
    pub fn read(&self, now: Timestamp) -> Timestamp {
        let elapsed = i128::from((now - self.start).as_nanos()) * self.speed;
        let own = elapsed.div_euclid(BILLION) as i64;
        self.start + TimeDelta::from_nanos(own - own.rem_euclid(self.granularity))
    }

    /// The first instant of the simulation at which the end's own time is `own` or later.
    pub fn when(&self, own: Timestamp) -> Timestamp {
        let elapsed = (own - self.start).as_nanos();
        let tick = elapsed.saturating_add(self.granularity - 1);
        let tick = i128::from(tick - tick.rem_euclid(self.granularity));
        // Rounded up.
        let at = -(-tick * BILLION).div_euclid(self.speed);
        self.start + TimeDelta::from_nanos(at.clamp(i64::MIN.into(), i64::MAX.into()) as i64)
    }

    /// How far the clock that timestamps are read from has been set, if it has been since the last call.
    pub fn set_until(&mut self, now: Timestamp) -> Option<TimeDelta> {
        let before = self.steps.len();
        while let Some(step) = self.steps.front().filter(|s| Timestamp::ZERO + s.at <= now) {
            self.offset += step.by;
            self.steps.pop_front();
        }
        (self.steps.len() < before).then_some(self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(drift_ppb: i64, granularity_ms: i64) -> EndClock {
        let steps = [(5, 2_000), (7, -3_000)];
        let steps = steps.map(|(at, by)| ClockStep { at: TimeDelta::from_secs(at), by: TimeDelta::from_millis(by) });
        let granularity = TimeDelta::from_millis(granularity_ms);
        EndClock::new(&Clock { drift_ppb, granularity, steps: steps.into() }, Timestamp::from_secs(3))
    }

    #[test]
    fn a_clock_drifts_from_its_start() {
        let c = clock(100_000, 0);
        assert_eq!(c.read(Timestamp::from_secs(3)), Timestamp::from_secs(3));
        assert_eq!(c.read(Timestamp::from_secs(1_003)), Timestamp::from_millis(1_003_100));
        assert_eq!(clock(-100_000, 0).read(Timestamp::from_secs(1_003)), Timestamp::from_millis(1_002_900));
    }

    #[test]
    fn a_deadline_is_the_first_instant_at_which_the_clock_shows_it() {
        for c in [clock(0, 0), clock(81_007, 0), clock(-333_333, 4), clock(0, 4), clock(99_999, 15)] {
            for i in 0..2_000i64 {
                let own = Timestamp::from_secs(3) + TimeDelta::from_nanos(i * 7_777_777);
                let at = c.when(own);
                assert!(c.read(at) >= own, "{c:?} at {own}");
                assert!(c.read(at - TimeDelta::from_nanos(1)) < own, "{c:?} at {own}");
            }
        }
    }

    #[test]
    fn a_coarse_clock_shows_multiples() {
        let c = clock(0, 4);
        let at = |us| c.read(Timestamp::from_secs(3) + TimeDelta::from_micros(us)) - Timestamp::from_secs(3);
        assert_eq!([0, 3_999, 4_000, 8_001].map(|us| at(us).as_nanos()), [0, 0, 4_000_000, 8_000_000]);
    }

    #[test]
    fn steps_add_up_and_are_told_once() {
        let mut c = clock(0, 0);
        assert_eq!(c.set_until(Timestamp::from_millis(4_999)), None);
        assert_eq!(c.set_until(Timestamp::from_secs(5)), Some(TimeDelta::from_secs(2)));
        assert_eq!(c.set_until(Timestamp::from_secs(6)), None);
        assert_eq!(c.set_until(Timestamp::from_secs(9)), Some(TimeDelta::from_secs(-1)));
        assert_eq!(c.set_until(Timestamp::from_secs(99)), None);
    }
}
