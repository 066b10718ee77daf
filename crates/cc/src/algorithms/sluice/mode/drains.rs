//! Drains: the queue is emptied from time to time, beyond what is known of it, so that the least delay is seen again.

use super::super::config::DrainConfig;
use super::super::quantity::{Bits, Rate, Span, Time};
use super::super::queue::Queue;

/// Share of the service rate that is sent during a drain which empties the queue soon.
const SHARE: f64 = 0.5;
/// Part of the interval between drains after which the first one follows where the delay is uneven.
const FIRST: f64 = 0.125;
/// Time from the end of the start to the first drain: the queue added at the start is measured soon.
const AFTER_START: Span = Span::secs(0.5);
/// Part of the interval between drains after which another flow's drain is joined, and the fall of the delay that shows one:
/// a drain of one of a dozen flows takes out little more.
const JOIN: f64 = 0.5;
const FALL: Span = Span::secs(0.004);
/// Time over which the delay falls.
const PEAK_TIME: Span = Span::secs(0.15);
/// Fall from one message to the next for which a drain goes on, how far beyond the next message, and the longest time in all.
const FALLING: Span = Span::secs(0.001);
const BEYOND: Span = Span::secs(0.03);
const LONGEST_FALL: Span = Span::secs(0.6);
/// Longest queue expected that a drain takes out.
const LONGEST: Span = Span::secs(0.2);

/// The path at one message.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Moment {
    /// Arrival of the message.
    pub(in super::super) now: Time,
    /// Departure of the packet with the least delay.
    pub(in super::super) departure: Time,
    /// Data sent up to that packet.
    pub(in super::super) sent: Bits,
    /// Feedback interval.
    pub(in super::super) interval: Span,
    /// Least delay of its packets, of queue and path: what is taken for the path's does not move it.
    pub(in super::super) delay: Span,
    /// The rate at which the link serves this flow, if known.
    pub(in super::super) service: Option<Rate>,
    /// Whether the delay is even: else it falls without any drain.
    pub(in super::super) is_even: bool,
    /// Whether the delay has been uneven of late, by jitter or stalls.
    pub(in super::super) is_noisy: bool,
}

/// A drain that begins.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in super::super) struct Begun {
    /// Its end.
    pub(in super::super) until: Time,
    /// Share of the service rate that is sent.
    pub(in super::super) sent: f64,
}

/// The last drain.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Drains {
    /// When the queue was known to be empty, or a drain began.
    emptied_at: Time,
    /// End of the drain.
    until: Time,
    /// The rate after a drain that has not ended.
    then: Option<Rate>,
    /// Begin of the drain.
    begun: Time,
    /// The messages with the longest delay in this and in the last span of the fall, and the last one.
    peak: Moment,
    before: Moment,
    last: Moment,
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

    /// Takes a message. While the queue falls a drain goes on: others drain too, and together they empty it.
    pub(super) fn observe(&mut self, m: &Moment) {
        let falls = self.last.delay - m.delay > FALLING;
        if m.is_even && falls && self.is_on(m.now) && m.now - self.begun < LONGEST_FALL {
            self.until = self.until.max(m.now + m.interval + BEYOND);
        }
        if m.delay > self.peak.delay {
            self.peak = *m;
        } else if m.now - self.peak.now > PEAK_TIME {
            (self.before, self.peak) = (self.peak, *m);
        }
        self.last = *m;
    }

    /// Whether others drain the queue: it falls by more than this flow has yielded. One flow alone cannot empty a queue that
    /// others hold, and would lose sight of the least delay.
    pub(super) fn joins(&self, c: &DrainConfig) -> bool {
        let last = &self.last;
        if !last.is_even || last.now - self.emptied_at < Span::from(c.interval) * JOIN {
            return false;
        }
        let peak = if self.before.delay > self.peak.delay { &self.before } else { &self.peak };
        // By what was sent and not by the rate, which a source of frames meets in the mean alone.
        let (time, sent) = (last.departure - peak.departure, last.sent - peak.sent);
        let yielded = peak.service.map_or(Span::ZERO, |service| (time - sent / service).max(Span::ZERO));
        peak.delay - last.delay > FALL + yielded
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

    /// Begins a drain of the queue expected, after which the rate is `then`.
    pub(super) fn begin(&mut self, queue: Queue, then: Rate, m: &Moment, c: &DrainConfig) -> Begun {
        (self.emptied_at, self.begun) = (m.now, m.now);
        let depth = queue.expected.min(LONGEST) + Span::from(c.depth);
        // Where only jitter makes the delay, there is little to empty: what remains is seen as the full rate makes it. A longer
        // queue, as after a stall, has to go soon.
        let is_shallow = m.is_noisy && queue.expected <= queue.wanted;
        let sent = if is_shallow { c.shallow } else { SHARE };
        self.until = m.now + depth / (1.0 - sent);
        self.then = then.positive();
        Begun { until: self.until, sent }
    }

    /// The end of the drain whose rate is still in force.
    pub(in super::super) fn end(&self) -> Option<Time> {
        self.then.map(|_| self.until)
    }

    /// Takes the rate after a drain that something else cuts short.
    pub(in super::super) fn cut_short(&mut self) -> Option<Rate> {
        self.then.take()
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
        let Begun { until, sent } = d.begin(queue(20.0), Rate::bps(1e6), &at(8.0, false), &c);
        assert_eq!(sent, 0.5);
        assert!((until - Time::secs(8.1)).abs() < Span::secs(1e-9) && d.end() == Some(until));
        assert!(d.is_on(Time::secs(8.05)) && d.take_end(Time::secs(8.05)).is_none());
        assert_eq!(d.take_end(Time::secs(8.2)), Some(Rate::bps(1e6)));
        assert_eq!((d.take_end(Time::secs(8.3)), d.end()), (None, None));
        assert!(!d.is_due(false, Time::secs(15.0), &c));
    }

    #[test]
    fn a_drain_is_shallow_where_the_delay_is_noisy_and_the_queue_no_longer_than_wanted() {
        let (mut d, c) = (Drains::default(), DrainConfig::default());
        let mut begin = |expected, is_noisy| d.begin(queue(expected), Rate::bps(1e6), &at(8.0, is_noisy), &c);
        let shallow = begin(30.0, true);
        assert_eq!(shallow.sent, 0.85);
        assert!((shallow.until - Time::secs(8.4)).abs() < Span::secs(1e-9), "60 ms at 0.15 of the rate");
        assert_eq!(begin(30.1, true).sent, 0.5, "a queue that has to go");
        assert_eq!(begin(30.0, false).sent, 0.5);
    }

    /// A queue of so many ms is expected, of 30 wanted.
    fn queue(expected: f64) -> Queue {
        Queue { expected: Span::secs(expected * 1e-3), wanted: Span::secs(0.03) }
    }

    fn at(now: f64, is_noisy: bool) -> Moment {
        Moment { now: Time::secs(now), is_noisy, ..Moment::default() }
    }

    /// A message every 50 ms from `from` s on with these delays in ms, of a flow that is served at 1 Mbit/s.
    fn delays(d: &mut Drains, from: f64, delays: &[f64]) {
        fall(d, from, 1e6, delays);
    }

    /// The same of a flow that sends at this rate.
    fn fall(d: &mut Drains, from: f64, rate: f64, delays: &[f64]) {
        for (k, delay) in delays.iter().enumerate() {
            let now = Time::secs(from + 0.05 * k as f64);
            let (departure, interval) = (now - Span::secs(0.1), Span::secs(0.05));
            let (delay, service) = (Span::secs(delay * 1e-3), Some(Rate::bps(1e6)));
            let sent = Rate::bps(rate) * (departure - Time::START);
            d.observe(&Moment { now, departure, sent, interval, delay, service, is_even: true, is_noisy: false });
        }
    }

    #[test]
    fn a_queue_that_others_drain_is_drained_with_them() {
        let c = DrainConfig::default();
        let joins = |from: f64, sent: f64, of: &[f64]| {
            let mut d = Drains::default();
            fall(&mut d, from, sent, of);
            d.joins(&c)
        };
        let falls = [30.0, 31.0, 29.0, 25.0];
        assert!(joins(5.0, 1e6, &falls));
        assert!(!joins(3.0, 1e6, &falls), "in the first half of the interval");
        assert!(!joins(5.0, 0.9e6, &falls), "this flow has yielded 10 ms in 100 ms");
        assert!(!joins(5.0, 1e6, &[30.0, 31.0, 29.0, 28.0]));
        assert!(joins(5.0, 0.9e6, &[60.0, 40.0, 30.0, 20.0]), "more than that");
    }

    #[test]
    fn a_drain_goes_on_while_the_queue_falls() {
        let (mut d, c) = (Drains::default(), DrainConfig::default());
        delays(&mut d, 7.95, &[60.0]);
        let until = d.begin(queue(20.0), Rate::bps(1e6), &at(8.0, false), &c).until;
        delays(&mut d, 8.0, &[60.0, 60.0]);
        assert_eq!(d.end(), Some(until), "nothing falls");
        delays(&mut d, 8.09, &[50.0, 40.0, 30.0, 20.0, 20.0]);
        let end = d.end().expect("a drain") - Time::secs(8.24 + 0.05 + 0.03);
        assert!(end.abs() < Span::secs(1e-9), "until one message after the last fall");
        // However long it falls, no message after 0.6 s makes it longer.
        let falling: Vec<f64> = (0..40).map(|k| 200.0 - 2.0 * f64::from(k)).collect();
        delays(&mut d, 8.29, &falling);
        assert!(d.end().expect("a drain") - Time::secs(8.0) < Span::secs(0.7));
    }

    #[test]
    fn the_first_drain_follows_the_start_soon() {
        let (mut d, c) = (Drains::default(), DrainConfig::default());
        d.after_start(Time::secs(3.0), &c);
        assert!(!d.is_due(false, Time::secs(3.4), &c) && d.is_due(false, Time::secs(3.6), &c));
    }
}
