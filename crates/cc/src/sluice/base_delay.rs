//! The least one-way delay of the last one to two windows.

use weir_units::TimeDelta;

/// A minimum over time. Delays are differences of two clocks, so that only their differences mean anything.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BaseDelay {
    current: Option<i64>,
    previous: Option<i64>,
    since: f64,
}

impl BaseDelay {
    /// Takes a delay in ns, observed at `now` s; a minimum expires after one to two times `window`.
    pub(super) fn observe(&mut self, delay: i64, now: f64, window: TimeDelta) {
        if self.current.is_none() {
            self.since = now;
        } else if now - self.since > window.as_secs_f64() {
            self.previous = self.current.take();
            self.since = now;
        }
        self.current = Some(self.current.map_or(delay, |c| c.min(delay)));
    }

    /// The minimum in ns; `None` before the first delay.
    pub(super) fn get(&self) -> Option<i64> {
        match (self.current, self.previous) {
            (Some(c), Some(p)) => Some(c.min(p)),
            (c, p) => c.or(p),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_minimum_for_one_to_two_windows() {
        let second = TimeDelta::from_secs(1);
        let mut b = BaseDelay::default();
        assert_eq!(b.get(), None);
        b.observe(-30, 0.0, second);
        b.observe(-20, 1.0, second);
        b.observe(-20, 1.5, second);
        assert_eq!(b.get(), Some(-30));
        b.observe(-10, 2.6, second);
        assert_eq!(b.get(), Some(-20));
    }
}
