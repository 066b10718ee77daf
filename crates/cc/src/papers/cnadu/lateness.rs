//! When a frame is expected, and how late it arrived.

use weir_units::{TimeDelta, Timestamp};

const BUCKETS: usize = 16;

/// Minimum over a sliding window, with a resolution of a sixteenth of it.
#[derive(Clone, Debug)]
struct WindowMin {
    least: [TimeDelta; BUCKETS],
    bucket: TimeDelta,
    newest: i64,
}

impl WindowMin {
    fn update(&mut self, value: TimeDelta, now: Timestamp) -> TimeDelta {
        let number = now.as_nanos().div_euclid(self.bucket.as_nanos());
        let passed = number.saturating_sub(self.newest).clamp(0, BUCKETS as i64);
        for k in 0..passed {
            self.least[(number - k).rem_euclid(BUCKETS as i64) as usize] = TimeDelta::MAX;
        }
        self.newest = self.newest.max(number);
        let slot = &mut self.least[self.newest.rem_euclid(BUCKETS as i64) as usize];
        *slot = (*slot).min(value);
        self.least.iter().copied().fold(TimeDelta::MAX, TimeDelta::min)
    }
}

/// Measures the delay of frames against the minimum of the window.
#[derive(Clone, Debug)]
pub(super) struct Lateness {
    base: WindowMin,
    /// Sum of d(i): the delay of the newest frame relative to the first.
    delay: TimeDelta,
    late_by: TimeDelta,
    rising: bool,
    row: u32,
}

impl Lateness {
    pub(super) fn new(window: TimeDelta) -> Self {
        let bucket = (window / BUCKETS as i64).max(TimeDelta::from_nanos(1));
        Self {
            base: WindowMin { least: [TimeDelta::MAX; BUCKETS], bucket, newest: 0 },
            delay: TimeDelta::ZERO,
            late_by: TimeDelta::ZERO,
            rising: false,
            row: 0,
        }
    }

    /// Takes d(i) of a frame received at `now`; frames more than `margin` behind are late.
    pub(super) fn on_frame(&mut self, delay: TimeDelta, margin: TimeDelta, now: Timestamp) {
        self.delay += delay;
        let late_by = self.delay - self.base.update(self.delay, now);
        self.rising = late_by >= self.late_by;
        self.late_by = late_by;
        self.row = if late_by > margin { self.row.saturating_add(1) } else { 0 };
    }

    /// How much later than expected the newest frame arrived.
    pub(super) fn late_by(&self) -> TimeDelta {
        self.late_by
    }
    /// Whether the newest frame was at least as late as the one before.
    pub(super) fn is_rising(&self) -> bool {
        self.rising
    }
    /// Consecutive late frames.
    pub(super) fn row(&self) -> u32 {
        self.row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARGIN: TimeDelta = TimeDelta::from_millis(40);

    #[test]
    fn counts_from_the_earliest_frame_of_the_window() {
        let mut l = Lateness::new(TimeDelta::from_secs(10));
        let mut take = |d_ms: i64, at_ms: i64| {
            l.on_frame(TimeDelta::from_millis(d_ms), MARGIN, Timestamp::from_millis(at_ms));
            (l.late_by().as_millis(), l.is_rising(), l.row())
        };
        assert_eq!(take(10, 0), (0, true, 0));
        assert_eq!(take(-5, 33), (0, true, 0));
        assert_eq!(take(40, 66), (40, true, 0));
        assert_eq!(take(1, 100), (41, true, 1));
        assert_eq!(take(20, 133), (61, true, 2));
        assert_eq!(take(-10, 166), (51, false, 3));
        assert_eq!(take(-20, 200), (31, false, 0));
        // It stays 31 ms later: after ten seconds that is the expected arrival.
        assert_eq!(take(0, 9_000), (31, true, 0));
        assert_eq!(take(0, 10_100), (0, false, 0));
        assert_eq!(take(50, 10_133), (50, true, 1));
    }

    #[test]
    fn bears_any_delay() {
        let mut l = Lateness::new(TimeDelta::from_nanos(1));
        for ns in [i64::MAX, i64::MIN, i64::MIN, 0, i64::MAX] {
            l.on_frame(TimeDelta::from_nanos(ns), MARGIN, Timestamp::from_nanos(i64::MAX));
            assert!(l.late_by() >= TimeDelta::ZERO);
        }
    }
}
