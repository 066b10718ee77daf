//! Queue-delay target and its adaptation to competing flows (RFC 8298, section 4.1.2.3).

use super::config::Config;
use weir_units::TimeDelta;

/// Samples in the variance. The RFC's list of state variables says 100, its pseudocode 200; so does the C++.
const LONG: usize = 200;
/// Samples in the average.
const SHORT: usize = 50;
/// Loss event rate above which competing flows are assumed.
const COMPETING_LOSS: f64 = 0.002;
/// Normalised variance below which the queue delay is steady.
const STEADY: f64 = 0.2;

/// qdelay_target.
///
/// The RFC adjusts it on each acknowledgement; here it is once per sample of 50 ms, as in the C++, so that the history
/// spans 10 s for any feedback interval. Sums are in whole microseconds: exact, with constant work per sample.
#[derive(Clone, Debug)]
pub(super) struct TargetDelay {
    low: TimeDelta,
    high: TimeDelta,
    adapts: bool,
    target: TimeDelta,
    history: [u32; LONG],
    next: usize,
    sum: u64,
    sum_of_squares: u64,
    short_sum: u64,
}

impl TargetDelay {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            low: config.qdelay_target_lo,
            high: config.qdelay_target_hi.max(config.qdelay_target_lo),
            adapts: config.adapt_qdelay_target,
            target: config.qdelay_target_lo,
            history: [0; LONG],
            next: 0,
            sum: 0,
            sum_of_squares: 0,
            short_sum: 0,
        }
    }

    /// qdelay_target.
    pub(super) fn get(&self) -> TimeDelta {
        self.target
    }

    /// adjust_qdelay_target.
    pub(super) fn sample(&mut self, queue_delay: TimeDelta, loss_event_rate: f64) {
        if !self.adapts {
            return;
        }
        self.push(queue_delay);
        let low = self.low.as_secs_f64() * 1e6;
        // Both factors are exact: a queue delay is at most 10 s.
        let variance = (LONG as u64 * self.sum_of_squares - self.sum * self.sum) as f64 / (LONG * LONG) as f64;
        let variance = variance / (low * low);
        let average = self.short_sum as f64 / SHORT as f64 / low;
        let new_target = self.low.mul_f64(average + libm::sqrt(variance));
        self.target = if loss_event_rate > COMPETING_LOSS {
            new_target.mul_f64(1.5)
        } else if variance < STEADY {
            new_target
        } else if new_target < self.low {
            self.target.mul_f64(0.5).max(new_target)
        } else {
            self.target.mul_f64(0.9)
        };
        self.target = self.target.min(self.high).max(self.low);
    }

    fn push(&mut self, queue_delay: TimeDelta) {
        let new = u32::try_from(queue_delay.as_micros()).unwrap_or(0);
        let old = core::mem::replace(&mut self.history[self.next], new);
        let leaving = self.history[(self.next + LONG - SHORT) % LONG];
        self.next = (self.next + 1) % LONG;
        let square = |x: u32| u64::from(x) * u64::from(x);
        self.sum = self.sum + u64::from(new) - u64::from(old);
        self.sum_of_squares = self.sum_of_squares + square(new) - square(old);
        self.short_sum = self.short_sum + u64::from(new) - u64::from(leaving);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }
    fn target() -> TargetDelay {
        TargetDelay::new(&Config::default())
    }

    #[test]
    fn a_steady_high_delay_raises_the_target_to_it() {
        let mut t = target();
        (0..200).for_each(|_| t.sample(ms(250), 0.0));
        // Variance 0, average 2.5 x 100 ms.
        assert_eq!(t.get(), ms(250));
        (0..200).for_each(|_| t.sample(ms(30), 0.0));
        assert_eq!(t.get(), ms(100));
    }

    #[test]
    fn average_and_deviation_are_those_of_the_equations() {
        let mut t = target();
        // 100 samples of 60 ms and 100 of 140 ms, by turns: deviation 40 ms (variance 0.16), average 100 ms.
        (0..200).for_each(|i| t.sample(ms(if i % 2 == 0 { 60 } else { 140 }), 0.0));
        assert_eq!(t.get(), ms(140));
        // With losses half as much again.
        t.sample(ms(60), 0.003);
        assert_eq!(t.get(), ms(210));
    }

    #[test]
    fn an_unsteady_delay_lowers_the_target() {
        let mut t = target();
        (0..200).for_each(|_| t.sample(ms(300), 0.0));
        assert_eq!(t.get(), ms(300));
        // Fifty samples of 0 among 150 of 300 ms: deviation 130 ms (variance 1.69), average 0, so new_target is 130 ms,
        // not below 100 ms: the slow branch, taken since the fifth.
        (0..50).for_each(|_| t.sample(ms(0), 0.0));
        assert_eq!(t.get(), ms(100));
        let mut t = target();
        (0..200).for_each(|_| t.sample(ms(300), 0.0));
        // The variance with n zeros among 200 is 9 (n/200) (1 - n/200): 0.18 at the fourth, 0.22 at the fifth.
        (0..5).for_each(|_| t.sample(ms(0), 0.0));
        let fifth = t.get();
        t.sample(ms(0), 0.0);
        assert_eq!(t.get(), fifth.mul_f64(0.9));
    }

    #[test]
    fn it_stays_between_its_bounds_or_still() {
        let mut t = target();
        (0..400).for_each(|_| t.sample(TimeDelta::from_secs(10), 0.1));
        assert_eq!(t.get(), ms(400));
        let mut off = TargetDelay::new(&Config { adapt_qdelay_target: false, ..Config::default() });
        (0..400).for_each(|_| off.sample(ms(300), 0.1));
        assert_eq!(off.get(), ms(100));
    }
}
