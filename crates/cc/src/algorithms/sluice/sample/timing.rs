//! When feedback comes: its interval, the round-trip time, and the packets that wait to be reported.

use super::super::quantity::{Span, Time};

/// Weight of each message in the mean feedback interval, and of each sample below the round-trip time.
const WEIGHT: f64 = 0.125;
/// Share of the feedback interval within which a message continues the one before.
const CONTINUED: f64 = 0.1;
/// Greatest excess of the round-trip time over its last sample: behind a queue of seconds that has been emptied, the next silence is
/// not waited for as long.
const EMPTIED: Span = Span::secs(0.2);
/// Time constant with which the round-trip time without a queue rises: queues that are taken for the path's pass.
const LONGER: Span = Span::secs(60.0);
/// Delay of feedback, beyond a round trip and two intervals, from which it is missing.
const LATE: Span = Span::secs(0.05);
/// Time constant with which it is forgotten that feedback was late, and the longest lateness that is reckoned with.
const MEMORY: Span = Span::secs(10.0);
const LATEST: Span = Span::secs(0.5);

/// Times of feedback as known from the messages so far.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Timing {
    interval: Span,
    /// Round-trip time: rises at once, falls slowly.
    rtt: Span,
    /// The same without the queue, if known: falls at once, rises slowly.
    path: Option<Span>,
    /// Departure of the newest packet reported.
    newest: Time,
    /// Departure of the first packet that is not reported.
    waiting_since: Option<Time>,
    /// Arrival of the last message that did not continue another.
    reported_at: Time,
    /// How late feedback has been of packets that were not: its own path lost or delayed it.
    lateness: Span,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            interval: Span::secs(0.05),
            rtt: Span::secs(0.1),
            path: None,
            newest: Time::START,
            waiting_since: None,
            reported_at: Time::START,
            lateness: Span::ZERO,
        }
    }
}

impl Timing {
    /// A message arrives at `now` whose packets, if most of them have arrived, have waited for `queue` at most. Whether it is late by
    /// more than they were: then the silence before it was not theirs.
    pub(in super::super) fn judge_silence(&mut self, now: Time, queue: Option<Span>) -> bool {
        let elapsed = (now - self.reported_at).max(Span::ZERO);
        self.lateness *= libm::exp(-(elapsed / MEMORY));
        let Some(queue) = queue else { return false };
        let late = now - self.awaited() - self.rtt - self.interval - queue;
        // A message that would not have counted as missing is ordinary.
        if late > self.interval + LATE {
            self.lateness = self.lateness.max(late.min(LATEST));
        }
        late > queue
    }

    /// A sample of the round-trip time of a packet that has waited for `queue`, before its message is reported.
    pub(in super::super) fn observe_path(&mut self, now: Time, rtt: Span, queue: Span) {
        let path = (rtt - queue).max(Span::ZERO);
        let elapsed = (now - self.reported_at).clamp(Span::ZERO, Span::secs(1.0));
        let least = self.path.map_or(path, |least| least + (1.0 - libm::exp(-(elapsed / LONGER))) * (path - least));
        self.path = Some(path.min(least));
    }

    /// Time until a change of the rate shows, without a queue: a round trip and a feedback interval.
    pub(in super::super) fn loop_time(&self) -> Span {
        self.path.unwrap_or(self.rtt) + self.interval
    }

    /// A message arrives at `now` with this sample of the round-trip time; the newest packet that it reports left at `departure`.
    pub(in super::super) fn report(&mut self, now: Time, rtt: Option<Span>, departure: Time, in_flight: bool) {
        let gap = (now - self.reported_at).clamp(Span::ZERO, Span::secs(1.0));
        // Packets that do not fit into a message follow at once in others, which say nothing of the interval.
        if gap > CONTINUED * self.interval {
            self.interval += WEIGHT * (gap.min(2.0 * self.interval + Span::secs(0.01)) - self.interval);
            self.reported_at = now;
        }
        if let Some(rtt) = rtt {
            self.rtt = rtt.max((self.rtt + WEIGHT * (rtt - self.rtt)).min(rtt + EMPTIED));
        }
        self.newest = self.newest.max(departure);
        self.waiting_since = in_flight.then_some(self.newest);
    }

    /// A packet is sent while none waits to be reported.
    pub(in super::super) fn send(&mut self, now: Time) {
        self.waiting_since = Some(now);
    }

    /// Mean interval of feedback.
    pub(in super::super) fn interval(&self) -> Span {
        self.interval
    }

    /// Round-trip time.
    pub(in super::super) fn rtt(&self) -> Span {
        self.rtt
    }

    /// Departure of the newest packet reported.
    pub(in super::super) fn newest(&self) -> Time {
        self.newest
    }

    /// Time in which a packet is reported that does not wait.
    pub(in super::super) fn report_time(&self) -> Span {
        self.loop_time() + self.lateness
    }

    /// Departure of the packet whose report is awaited.
    fn awaited(&self) -> Time {
        self.waiting_since.unwrap_or(self.newest)
    }

    /// Time from `now` until feedback counts as missing.
    pub(in super::super) fn patience(&self, now: Time) -> Span {
        self.awaited() + self.rtt + 2.0 * self.interval + LATE + self.lateness - now
    }

    /// Least delay in the queue of the packet that is awaited, if none has been lost.
    pub(in super::super) fn unreported_queue(&self, now: Time) -> Span {
        now - self.awaited() - self.rtt - self.interval - self.lateness
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feedback each 50 ms on a round trip of 100 ms until 1 s.
    fn settled() -> Timing {
        let mut t = Timing::default();
        for k in 0..20 {
            let now = Time::secs(0.05 * f64::from(k));
            t.report(now, Some(Span::secs(0.1)), now - Span::secs(0.1), true);
        }
        t
    }

    #[test]
    fn silence_whose_packets_came_in_time_is_the_feedbacks_and_the_next_one_is_waited_for() {
        let (mut own, mut outage) = (settled(), settled());
        let (now, before) = (Time::secs(1.25), own.patience(Time::secs(1.25)));
        assert!(before < Span::ZERO, "it was missing");
        // The packet awaited left at 0.85 s.
        assert!(own.judge_silence(now, Some(Span::secs(0.01))));
        assert!((0.23..0.25).contains(&(own.patience(now) - before).as_secs()), "{own:?}");
        assert!(!outage.judge_silence(now, Some(Span::secs(0.24))), "the packets waited as long");
        assert!(!outage.judge_silence(now, None), "most of them were lost");
        assert_eq!(outage.patience(now), before);
    }

    #[test]
    fn a_queue_of_seconds_that_has_been_emptied_is_not_waited_for_again() {
        let mut t = settled();
        let silence = |t: &Timing, now: Time| t.patience(now).as_secs();
        let now = Time::secs(4.0);
        t.report(now, Some(Span::secs(3.0)), Time::secs(1.0), true);
        assert!(silence(&t, now) > 0.1, "{t:?}");
        t.report(now + Span::secs(0.05), Some(Span::secs(0.1)), now - Span::secs(0.05), true);
        let patience = silence(&t, now + Span::secs(0.05));
        assert!((0.2..0.5).contains(&patience), "0.3 s of round trip at most: {patience}");
    }

    #[test]
    fn the_loop_is_that_of_the_least_queue_and_follows_a_longer_path_slowly() {
        let mut t = settled();
        let ms = |t: &Timing| t.loop_time().as_millis();
        assert!((149.0..151.0).contains(&ms(&t)), "{t:?}");
        let mut observe = |from: f64, seconds: f64, rtt: f64, queue: f64| {
            for k in 0..(20.0 * seconds) as u32 {
                let now = Time::secs(from + 0.05 * f64::from(k));
                t.observe_path(now, Span::secs(rtt), Span::secs(queue));
                t.report(now, Some(Span::secs(rtt)), now - Span::secs(rtt), true);
            }
            ms(&t)
        };
        assert!((149.0..151.0).contains(&observe(1.0, 5.0, 0.4, 0.3)), "a queue");
        let longer = observe(6.0, 60.0, 0.4, 0.0);
        assert!((330.0..350.0).contains(&longer), "two thirds of the way in 60 s: {longer}");
        assert!((149.0..151.0).contains(&observe(66.0, 0.1, 0.1, 0.0)), "a shorter path");
    }

    #[test]
    fn feedback_within_its_time_changes_nothing() {
        let mut t = settled();
        assert!(t.judge_silence(Time::secs(1.05), Some(Span::ZERO)));
        assert_eq!(t.lateness, Span::ZERO);
    }
}
