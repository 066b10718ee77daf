//! When feedback comes: its interval, the round-trip time, and the packets that wait to be reported.

use super::super::quantity::{Span, Time};

/// Weight of each message in the mean feedback interval, and of each sample below the round-trip time.
const WEIGHT: f64 = 0.125;
/// Share of the feedback interval within which a message continues the one before.
const CONTINUED: f64 = 0.1;
/// Delay of feedback, beyond a round trip and two intervals, from which it is missing.
const LATE: Span = Span::secs(0.05);

/// Times of feedback as known from the messages so far.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Timing {
    interval: Span,
    /// Round-trip time: rises at once, falls slowly.
    rtt: Span,
    /// Departure of the newest packet reported.
    newest: Time,
    /// Departure of the first packet that is not reported.
    waiting_since: Option<Time>,
    /// Arrival of the last message that did not continue another.
    reported_at: Time,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            interval: Span::secs(0.05),
            rtt: Span::secs(0.1),
            newest: Time::START,
            waiting_since: None,
            reported_at: Time::START,
        }
    }
}

impl Timing {
    /// A message arrives at `now` with this sample of the round-trip time; the newest packet that it reports left at `departure`.
    pub(in super::super) fn report(&mut self, now: Time, rtt: Option<Span>, departure: Time, in_flight: bool) {
        let gap = (now - self.reported_at).clamp(Span::ZERO, Span::secs(1.0));
        // Packets that do not fit into a message follow at once in others, which say nothing of the interval.
        if gap > CONTINUED * self.interval {
            self.interval += WEIGHT * (gap.min(2.0 * self.interval + Span::secs(0.01)) - self.interval);
            self.reported_at = now;
        }
        if let Some(rtt) = rtt {
            self.rtt = rtt.max(self.rtt + WEIGHT * (rtt - self.rtt));
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

    /// Departure of the packet whose report is awaited.
    fn awaited(&self) -> Time {
        self.waiting_since.unwrap_or(self.newest)
    }

    /// Time from `now` until feedback counts as missing.
    pub(in super::super) fn patience(&self, now: Time) -> Span {
        self.awaited() + self.rtt + 2.0 * self.interval + LATE - now
    }

    /// Least delay in the queue of the packet that is awaited, if none has been lost.
    pub(in super::super) fn unreported_queue(&self, now: Time) -> Span {
        now - self.awaited() - self.rtt - self.interval
    }
}
