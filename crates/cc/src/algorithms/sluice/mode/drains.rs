//! Drains: the queue is emptied from time to time, beyond what is known of it, so that the least delay is seen again.

use super::super::config::DrainConfig;
use super::super::quantity::{Rate, Span, Time};

/// Share of the service rate that is sent during a drain.
pub(in super::super) const SHARE: f64 = 0.5;
/// Part of the interval between drains after which the first one follows where the delay is uneven.
const FIRST: f64 = 0.125;
/// Time from the end of the start to the first drain: the queue added at the start is measured soon.
const AFTER_START: Span = Span::secs(0.5);
/// Longest queue expected that a drain takes out.
const LONGEST: Span = Span::secs(0.2);

/// The last drain.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Drains {
    /// When the queue was known to be empty, or a drain began.
    emptied_at: Time,
    /// End of the drain.
    until: Time,
    /// The rate after a drain that has not ended.
    then: Option<Rate>,
}

impl Drains {
    /// The queue is empty, or nothing can be known of it.
    pub(super) fn put_off(&mut self, now: Time) {
        self.emptied_at = now;
    }

    /// The start has ended.
    pub(super) fn after_start(&mut self, now: Time, c: &DrainConfig) {
        self.emptied_at = now - Span::from(c.interval) + AFTER_START;
    }

    /// Whether the queue is being drained.
    pub(super) fn is_on(&self, now: Time) -> bool {
        now < self.until
    }

    /// Whether a drain is due. `is_uneven`: delay and service are uneven, and no drain has shown yet what remains.
    pub(super) fn is_due(&self, is_uneven: bool, now: Time, c: &DrainConfig) -> bool {
        let interval = Span::from(c.interval);
        let interval = if is_uneven { interval * FIRST } else { interval };
        now - self.emptied_at >= interval
    }

    /// Begins a drain of the queue expected, after which the rate is `then`. Returns its end.
    pub(super) fn begin(&mut self, expected: Span, then: Rate, now: Time, c: &DrainConfig) -> Time {
        self.emptied_at = now;
        let depth = expected.min(LONGEST) + Span::from(c.depth);
        self.until = now + depth / (1.0 - SHARE);
        self.then = then.positive();
        self.until
    }

    /// The end of the drain whose rate is still in force.
    pub(in super::super) fn end(&self) -> Option<Time> {
        self.then.map(|_| self.until)
    }

    /// Takes the rate after a drain that has ended.
    pub(in super::super) fn take_end(&mut self, now: Time) -> Option<Rate> {
        if now >= self.until { self.then.take() } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_lasts_for_the_queue_and_the_depth_at_half_of_the_rate() {
        let (mut d, c) = (Drains::default(), DrainConfig::default());
        assert!(!d.is_due(false, Time::secs(7.9), &c) && d.is_due(false, Time::secs(8.0), &c));
        assert!(d.is_due(true, Time::secs(1.0), &c), "an eighth of the interval where the delay is uneven");
        let until = d.begin(Span::secs(0.02), Rate::bps(1e6), Time::secs(8.0), &c);
        assert!((until - Time::secs(8.1)).abs() < Span::secs(1e-9) && d.end() == Some(until));
        assert!(d.is_on(Time::secs(8.05)) && d.take_end(Time::secs(8.05)).is_none());
        assert_eq!(d.take_end(Time::secs(8.2)), Some(Rate::bps(1e6)));
        assert_eq!((d.take_end(Time::secs(8.3)), d.end()), (None, None));
        assert!(!d.is_due(false, Time::secs(15.0), &c));
    }

    #[test]
    fn the_first_drain_follows_the_start_soon() {
        let (mut d, c) = (Drains::default(), DrainConfig::default());
        d.after_start(Time::secs(3.0), &c);
        assert!(!d.is_due(false, Time::secs(3.4), &c) && d.is_due(false, Time::secs(3.6), &c));
    }
}
