//! The proportional response to L4S marks: a bound on the rate that moves as TCP Prague's window does
//! (draft-briscoe-iccrg-prague-congestion-control), so that both meet at equal rates in one queue.

use super::super::quantity::{PACKET, Rate, Span, Time};

/// Weight of each round's share of marks in the mean (Prague's g).
const GAIN: f64 = 1.0 / 16.0;
/// Round-trip time below which the increase does not become faster (Prague's virtual round-trip time).
const LEAST_RTT: Span = Span::secs(0.025);
/// Capacity below which marks set no bound: there a packet alone takes longer than the milliseconds from which links mark, so
/// that marks show packets rather than load.
const LEAST_CAPACITY: Rate = Rate::bps(4e6);
/// Rounds without a mark after which dispersion may show that there is room.
const CLEAR_ROUNDS: u32 = 2;
/// Ratio of the rate that dispersion shows and the bound from which there is room.
const SHOWN: f64 = 1.1;
/// Growth of the bound in each round with room.
const ROOM: f64 = 1.5;
/// Time without a mark after which the bound is lifted: from there the rate grows as on any link.
const CLEAR: Span = Span::secs(2.0);

/// Marks of one feedback message, and the state of the flow at its arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    /// Arrival of the message.
    pub(super) now: Time,
    /// Packets received with a mark.
    pub(super) marked: u32,
    /// Packets received.
    pub(super) received: u32,
    /// Departure of the newest packet reported.
    pub(super) newest: Time,
    /// The rate in force.
    pub(super) rate: Rate,
    /// The capacity that the packets' dispersion shows, if known.
    pub(super) shown: Option<Rate>,
    /// Round-trip time.
    pub(super) rtt: Span,
    /// The share of one flow that this one takes, 0 to 1.
    pub(super) weight: f64,
}

/// The bound, and the marks that it is derived from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct L4sBound {
    /// The bound, while marks are seen.
    rate: Option<Rate>,
    /// Mean share of packets marked.
    alpha: f64,
    round: Round,
    marked_at: Time,
    /// Rounds without a mark.
    clear: u32,
}

/// A round trip's packets.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    marked: u32,
    received: u32,
    /// Its begin: packets sent from here on end it.
    from: Time,
}

impl L4sBound {
    /// The greatest rate; `None` without a bound.
    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Mean share of packets marked; zero where there is no bound.
    pub(super) fn alpha(&self) -> f64 {
        if self.rate.is_some() { self.alpha } else { 0.0 }
    }

    /// Takes a message.
    pub(super) fn update(&mut self, r: Report) {
        self.round.marked += r.marked;
        self.round.received += r.received;
        let share = f64::from(self.round.marked) / f64::from(self.round.received.max(1));
        let Some(bound) = &mut self.rate else {
            if r.marked > 0 && r.shown.is_some_and(|shown| shown > LEAST_CAPACITY) {
                (self.rate, self.alpha) = (Some(r.rate), self.alpha.max(share));
                self.cut();
                self.marked_at = r.now;
            }
            self.begin_round(r.now);
            return;
        };
        if r.shown.is_some_and(|shown| shown < LEAST_CAPACITY) && r.rate < LEAST_CAPACITY {
            self.rate = None;
            return;
        }
        if r.newest < self.round.from {
            return;
        }
        self.alpha += GAIN * (share - self.alpha);
        let rtt = r.rtt.max(LEAST_RTT);
        let rounds = (r.now - self.round.from).clamp(Span::ZERO, Span::secs(1.0)) / rtt;
        // A bound that is not used is not known to be free.
        *bound = bound.min(2.0 * r.rate) + rounds * r.weight * PACKET / rtt;
        if self.clear >= CLEAR_ROUNDS && r.shown.is_some_and(|shown| shown > SHOWN * *bound) {
            *bound *= ROOM;
        }
        self.clear = if self.round.marked > 0 { 0 } else { self.clear.saturating_add(1) };
        if self.round.marked > 0 {
            self.marked_at = r.now;
            self.cut();
        }
        self.begin_round(r.now);
        if r.now - self.marked_at >= CLEAR {
            self.rate = None;
        }
    }

    fn begin_round(&mut self, now: Time) {
        self.round = Round { from: now, ..Round::default() };
    }

    fn cut(&mut self) {
        if let Some(bound) = &mut self.rate {
            *bound *= 1.0 - 0.5 * self.alpha;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of ten packets each 25 ms, on a round trip of 50 ms.
    fn message(now: f64, marked: u32, rate: f64, shown: Option<f64>) -> Report {
        Report {
            now: Time::secs(now),
            marked,
            received: 10,
            newest: Time::secs(now - 0.045),
            rate: Rate::bps(rate),
            shown: shown.map(Rate::bps),
            rtt: Span::secs(0.05),
            weight: 1.0,
        }
    }

    fn bound(b: &L4sBound) -> f64 {
        b.rate().expect("marked").as_bps()
    }

    #[test]
    fn marks_cut_in_proportion_and_their_absence_adds_a_packet_a_round() {
        let mut b = L4sBound::default();
        b.update(message(0.0, 0, 4e6, None));
        assert_eq!((b.rate(), b.alpha()), (None, 0.0), "no mark, no bound");
        b.update(message(0.01, 5, 1e6, Some(2e6)));
        assert_eq!(b.rate(), None, "packets take longer than the marks' threshold");
        b.update(message(0.025, 5, 4e6, Some(8e6)));
        assert!((bound(&b) - 3e6).abs() < 1.0 && b.alpha() == 0.5, "half of them marked: a quarter less");
        // The round lasts until packets that were sent after the cut are reported.
        b.update(message(0.05, 10, 3e6, None));
        assert!((bound(&b) - 3e6).abs() < 1.0);
        b.update(message(0.1, 0, 3e6, None));
        let before = bound(&b);
        b.update(message(0.15, 0, 3e6, None));
        assert!((bound(&b) - before - (PACKET / Span::secs(0.05)).as_bps()).abs() < 1.0, "{b:?} {before}");
        // Two seconds without a mark.
        (0..50).for_each(|k| b.update(message(0.2 + 0.05 * f64::from(k), 0, 20e6, None)));
        assert_eq!(b.rate(), None);
    }

    #[test]
    fn dispersion_beyond_the_bound_shows_room_after_rounds_without_a_mark() {
        let (mut hidden, mut shown) = (L4sBound::default(), L4sBound::default());
        for k in 0..8 {
            let marked = u32::from(k == 0);
            hidden.update(message(0.1 * f64::from(k), marked, 5e6, (k == 0).then_some(20e6)));
            shown.update(message(0.1 * f64::from(k), marked, 5e6, Some(20e6)));
        }
        assert!(bound(&shown) > 1.4 * bound(&hidden), "{hidden:?} {shown:?}");
    }

    #[test]
    fn a_source_that_does_not_use_the_bound_does_not_raise_it() {
        let mut b = L4sBound::default();
        b.update(message(0.0, 1, 1e6, Some(8e6)));
        (1..15).for_each(|k| b.update(message(0.1 * f64::from(k), 0, 0.2e6, None)));
        assert!(bound(&b) < 0.4e6 + 2.0 * 2.0 * (PACKET / Span::secs(0.05)).as_bps(), "{b:?}");
    }
}
