//! Queue delay by base delay history (RFC 6817, section 3.4.2).

use weir_units::{TimeDelta, Timestamp};

/// Longest history that a configuration may request.
pub(super) const MAX_HISTORY: usize = 60;
/// Upper bound of a queue delay, above any real one: forged or broken times are limited to it, so that averages
/// recover.
pub(super) const MAX_QUEUE_DELAY: TimeDelta = TimeDelta::from_secs(10);

/// The minimum one-way delay over a history of intervals, against which queue delay is measured.
#[derive(Clone, Debug)]
pub(super) struct BaseDelay {
    interval: TimeDelta,
    length: usize,
    /// Minimum of each past interval, a ring.
    past: [TimeDelta; MAX_HISTORY],
    next: usize,
    past_minimum: TimeDelta,
    current: TimeDelta,
    current_since: Timestamp,
}

impl BaseDelay {
    /// Keeps the minimum of each `interval` for `length` intervals, including the current one.
    pub(super) fn new(interval: TimeDelta, length: u32, now: Timestamp) -> Self {
        Self {
            interval,
            length: (length as usize).clamp(1, MAX_HISTORY + 1) - 1,
            past: [TimeDelta::MAX; MAX_HISTORY],
            next: 0,
            past_minimum: TimeDelta::MAX,
            current: TimeDelta::MAX,
            current_since: now,
        }
    }

    /// Takes a one-way delay.
    pub(super) fn update(&mut self, delay: TimeDelta, now: Timestamp) {
        if now - self.current_since >= self.interval {
            if self.length > 0 {
                self.past[self.next] = self.current;
                self.next = (self.next + 1) % self.length;
                self.past_minimum = self.past[..self.length].iter().copied().min().unwrap_or(TimeDelta::MAX);
            }
            self.current = TimeDelta::MAX;
            self.current_since = now;
        }
        self.current = self.current.min(delay);
    }

    /// How far a delay exceeds the base; zero if it is below.
    pub(super) fn queue_delay(&self, delay: TimeDelta) -> TimeDelta {
        (delay - self.past_minimum.min(self.current)).max(TimeDelta::ZERO).min(MAX_QUEUE_DELAY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }
    const fn at(s: i64) -> Timestamp {
        Timestamp::from_secs(s)
    }

    #[test]
    fn the_base_is_the_least_of_all_kept_intervals() {
        let mut b = BaseDelay::new(TimeDelta::from_secs(60), 3, at(0));
        b.update(ms(-500), at(0));
        assert_eq!(b.queue_delay(ms(-470)), ms(30));
        b.update(ms(-520), at(1));
        assert_eq!(b.queue_delay(ms(-470)), ms(50));
        // Intervals of 60 s: the old base is kept while it is among the last three.
        b.update(ms(-490), at(60));
        b.update(ms(-490), at(120));
        assert_eq!(b.queue_delay(ms(-470)), ms(50));
        b.update(ms(-490), at(180));
        assert_eq!(b.queue_delay(ms(-470)), ms(20));
    }

    #[test]
    fn wild_times_are_cut() {
        let mut b = BaseDelay::new(TimeDelta::from_secs(60), 1, at(0));
        b.update(TimeDelta::from_nanos(i64::MIN), at(0));
        assert_eq!(b.queue_delay(TimeDelta::MAX), MAX_QUEUE_DELAY);
        b.update(ms(3), at(60));
        assert_eq!(b.queue_delay(ms(5)), ms(2));
    }
}
