//! Falls of capacity that are foretold and do not come. A forecast that has every fall come in a second, again and again, would otherwise
//! hold a call at its floor, and nothing that is delivered there disproves it.

use weir_units::{TimeDelta, Timestamp};

/// Time after the horizon in which a foretold fall is expected (guess: 1 s, for forecasts that come late).
const LATE: TimeDelta = TimeDelta::from_secs(1);
/// Ratio to the rate foretold up to which the present has fallen as far (guess: 1.1).
const NEAR: f64 = 1.1;
/// Time after which a fall that is foretold no longer is forgotten (guess: 10 s). Until then another one is the same.
const FORGOTTEN: TimeDelta = TimeDelta::from_secs(10);

/// The next fall that is foretold.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Postponed {
    next: Option<Fall>,
}

#[derive(Clone, Copy, Debug)]
struct Fall {
    /// When it was foretold first, and last.
    since: Timestamp,
    last: Timestamp,
    /// Its rate in bit/s, as foretold first.
    rate: f64,
}

impl Postponed {
    /// Whether the next fall is postponed, by the rates in bit/s that are forecast for the present and at least up to the horizon.
    pub(super) fn is_next(
        &mut self,
        (present, least): (Option<f64>, Option<f64>),
        horizon: TimeDelta,
        now: Timestamp,
    ) -> bool {
        let present = present.unwrap_or(f64::INFINITY);
        self.next.take_if(|f| present <= NEAR * f.rate || now.saturating_since(f.last) > FORGOTTEN);
        let Some(rate) = least.filter(|least| *least < present) else { return false };
        let next = self.next.get_or_insert(Fall { since: now, last: now, rate });
        next.last = now;
        now.saturating_since(next.since) > horizon + LATE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HORIZON: TimeDelta = TimeDelta::from_millis(1_500);

    fn at(p: &mut Postponed, s: f64, present: f64, least: f64) -> bool {
        let now = Timestamp::ZERO + TimeDelta::from_secs_f64(s);
        p.is_next((Some(present).filter(|p| p.is_finite()), Some(least)), HORIZON, now)
    }

    #[test]
    fn a_fall_that_comes_is_none_that_is_postponed() {
        let mut p = Postponed::default();
        // A stair of four steps, a second each, and a second hole right behind it.
        let capacity =
            |s: f64| [800.0, 600.0, 400.0, 200.0, 800.0, 100.0, 800.0][(s as usize).saturating_sub(3).min(6)];
        for tenth in 0..120 {
            let s = f64::from(tenth) / 10.0;
            let least = (0..=15).map(|ahead| capacity(s + f64::from(ahead) / 10.0)).fold(f64::INFINITY, f64::min);
            assert!(!at(&mut p, s, capacity(s), least), "{s}");
        }
    }

    #[test]
    fn one_that_never_comes_is_postponed_after_the_horizon_and_a_second() {
        let mut p = Postponed::default();
        let first = (0..100).map(|tenth| f64::from(tenth) / 10.0).find(|s| at(&mut p, *s, f64::INFINITY, 0.0));
        assert_eq!(first, Some(2.6));
        // Withdrawn for a moment, it is the same.
        assert!(!at(&mut p, 5.0, 900.0, 900.0) && at(&mut p, 6.0, 900.0, 50.0));
        // It comes, or is forgotten.
        assert!(!at(&mut p, 7.0, 0.0, 0.0) && !at(&mut p, 8.0, 900.0, 50.0));
        assert!(at(&mut p, 11.0, 900.0, 50.0) && !at(&mut p, 22.0, 900.0, 50.0));
    }
}
