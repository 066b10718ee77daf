//! Stops of the link: radio stands still for 0.1 to 0.3 s every few seconds, and serves as before afterwards. The capacity is that of
//! the time between; the queue that such a stop fills is as long as what was sent in it until the first loss.

use super::super::quantity::{Bits, Span, Time};
use super::OUTAGE;

/// Longest stop that is left out of the service: after a longer one the capacity may be another. Measured beside 0.4 s and none.
const LONGEST: Span = Span::secs(0.3);
/// Ratio of the gap of a stop to those before and after it, where the link serves as before: no fall of the capacity makes it.
const FASTER: f64 = 8.0;
/// Share of the time in which packets were sent within which they come after a stop: the queue shrinks.
const CAUGHT_UP: f64 = 0.9;
/// Stop from which data in flight is not bounded: after an outage of seconds what was kept at the sender is late too.
const LONG: Span = Span::secs(0.6);
/// Time for which a long stop and an overflow are remembered.
const MEMORY: Span = Span::secs(120.0);

/// Service of one packet: the gap to the one ahead, in which the link was busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gap {
    pub(super) time: Span,
    /// Data served in it.
    pub(super) size: Bits,
    /// Time in which that had been sent.
    pub(super) sending: Span,
}

/// A time in which the link served nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stop {
    /// Departure until which a packet was sent in it.
    until: Time,
    /// Data sent up to the last packet served before it.
    sent: Bits,
}

/// Stops of late, and the queue that they overflowed.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Stops {
    /// A long gap, until the next packet shows what it was.
    pending: Option<(Gap, Stop)>,
    last: Option<Stop>,
    /// The gap before.
    usual: Option<Span>,
    /// End of the last long stop.
    long: Option<Time>,
    /// Data that the queue has room for, and when that was last seen.
    room: Option<(Bits, Time)>,
}

impl Stops {
    /// A packet that has waited was served in `gap`, and left the queue at `at`, by the sender's clock; `sent` had been sent before it.
    /// Returns what counts as busy time now.
    pub(super) fn pass(&mut self, gap: Gap, at: Time, sent: Bits) -> [Option<Gap>; 2] {
        if gap.time >= LONG {
            self.long = Some(at);
        }
        let usual = self.usual.replace(gap.time);
        let before = match self.pending.take() {
            // Behind a path that has become longer packets come as they were sent.
            Some((p, stop)) if FASTER * gap.time < p.time && gap.time < CAUGHT_UP * gap.sending => {
                self.last = Some(stop);
                None
            }
            pending => pending.map(|(gap, _)| gap),
        };
        let is_unusual = usual.is_some_and(|usual| FASTER * usual < gap.time);
        if is_unusual && (OUTAGE..LONGEST).contains(&gap.time) {
            self.pending = Some((gap, Stop { until: at, sent }));
            return [before, None];
        }
        [before, Some(gap)]
    }

    /// A packet has not waited: what is pending was no stop.
    pub(super) fn interrupt(&mut self) -> Option<Gap> {
        self.pending.take().map(|(gap, _)| gap)
    }

    /// A packet was lost that left at `departure`, when `sent` had been sent before it.
    pub(super) fn lose(&mut self, departure: Time, sent: Bits) {
        if let Some(stop) = self.last.filter(|stop| departure < stop.until) {
            let room = sent - stop.sent;
            let known = self.room_at(departure).filter(|known| *known < room);
            self.room = Some((known.unwrap_or(room), departure));
        }
    }

    fn room_at(&self, now: Time) -> Option<Bits> {
        self.room.filter(|(_, at)| now - *at < MEMORY).map(|(room, _)| room)
    }

    /// Data that the link's queue has room for, where short stops have overflowed it of late.
    pub(in super::super) fn room(&self, now: Time) -> Option<Bits> {
        self.room_at(now).filter(|_| self.long.is_none_or(|at| now - at > MEMORY))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(ms: f64) -> Gap {
        Gap { time: Span::secs(ms * 1e-3), size: Bits::new(9_600.0), sending: Span::secs(0.003) }
    }

    fn bits(packets: f64) -> Bits {
        Bits::new(9_600.0 * packets)
    }

    /// A link that stops from 10 s on for so many ms, and whose queue has room for 20 packets of 50 that are sent in it.
    fn stopped(s: &mut Stops, ms: f64) -> f64 {
        let end = 10.0 + ms * 1e-3;
        let mut busy = 0.0;
        for (k, time) in [2.0, ms, 2.0, 2.0].into_iter().enumerate() {
            let found = s.pass(gap(time), Time::secs(end + 0.002 * k as f64), bits(99.0 + k as f64));
            busy += found.iter().flatten().map(|g| g.time.as_millis()).sum::<f64>();
        }
        s.lose(Time::secs(end - 0.01), bits(120.0));
        s.lose(Time::secs(end - 0.005), bits(130.0));
        busy
    }

    #[test]
    fn a_short_stop_is_no_service_and_shows_how_long_the_queue_is() {
        let mut s = Stops::default();
        assert!((stopped(&mut s, 200.0) - 6.0).abs() < 1e-9);
        let now = Time::secs(11.0);
        assert_eq!(s.room(now), Some(bits(20.0)), "up to the first loss");
        assert_eq!(s.room(now + MEMORY), None, "forgotten");
    }

    #[test]
    fn a_long_stop_is_service_and_nothing_is_bounded_after_it() {
        let mut s = Stops::default();
        stopped(&mut s, 200.0);
        s.pass(gap(700.0), Time::secs(20.0), bits(200.0));
        assert_eq!(s.room(Time::secs(20.1)), None);
        assert!((stopped(&mut Stops::default(), 350.0) - 356.0).abs() < 1e-9);
    }

    #[test]
    fn a_fall_of_the_capacity_is_no_stop() {
        let mut s = Stops::default();
        let busy = |found: [Option<Gap>; 2]| found.map(|g| g.map(|g| g.time.as_millis().round()));
        let mut pass = |ms: f64, at: f64| busy(s.pass(gap(ms), Time::secs(at), bits(at)));
        assert_eq!(pass(150.0, 1.0), [None, Some(150.0)], "a slow link");
        assert_eq!(pass(2.0, 1.1), [None, Some(2.0)]);
        assert_eq!(pass(150.0, 1.3), [None, None]);
        assert_eq!(pass(20.0, 1.4), [Some(150.0), Some(20.0)]);
        pass(2.0, 1.5);
        assert_eq!(pass(150.0, 1.7), [None, None]);
        assert_eq!(s.interrupt(), Some(gap(150.0)));
        s.lose(Time::secs(0.9), bits(9.0));
        assert_eq!(s.room(Time::secs(1.0)), None);
    }
}
