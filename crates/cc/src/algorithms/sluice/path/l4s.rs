//! The proportional response to L4S marks: a bound on the rate that moves as TCP Prague's window does
//! (draft-briscoe-iccrg-prague-congestion-control), so that both meet at equal rates in one queue. Where there may be room, trains of
//! packets ask for it before the rate does.

use super::super::quantity::{PACKET, Rate, Span, Time};

/// Weight of each round's share of marks in the mean (Prague's g).
const GAIN: f64 = 1.0 / 16.0;
/// Round-trip time below which the increase does not become faster (Prague's virtual round-trip time).
const LEAST_RTT: Span = Span::secs(0.025);
/// Capacity below which marks set no bound: there a packet alone takes longer than the milliseconds from which links mark, so
/// that marks show packets rather than load.
const LEAST_CAPACITY: Rate = Rate::bps(4e6);
/// Queue from which marks alone would take too long: from there the rate follows what the link serves, which such a queue shows.
const OVERFULL: Span = Span::secs(0.003);
/// The same in packets.
const OVERFULL_PACKETS: f64 = 2.0;
/// Queue without marks that no L4S link leaves, and the same in packets.
const UNMARKED: Span = Span::secs(0.005);
const UNMARKED_PACKETS: f64 = 3.0;
/// Excess of the pacing rate over the bound: a frame's train of 33 ms makes a queue of a millisecond by it, and what waits at
/// the sender becomes less.
const LEAST_ASK: f64 = 0.03;
/// Greatest excess: a train that asks for twice the rate.
const MOST_ASK: f64 = 1.0;
/// Growth of the excess where the one before was not marked: measured beside 2 and 3 (`docs/sluice-tried.md`).
const ASK_GROWTH: f64 = 4.0;
/// Time for which trains ask before the rate follows: at 30 frames a second the first whole one ends by then.
const ASKED: Span = Span::secs(0.05);
/// Ratio of the bound and the rate at which packets were marked from which there may be room: measured beside 1.03.
const PASSED: f64 = 1.05;
/// Time without a mark from which there may be room once the bound is above that rate.
const CLEAR: Span = Span::secs(2.0);
/// Ratio of the rate that dispersion shows and the bound from which there may be room.
const SHOWN: f64 = 1.1;
/// Share of the bound from which it holds the rate.
pub(in super::super) const NEAR: f64 = 0.95;
/// Cuts in a row, without a message that has no mark, from which marks come from load that is shared, and go on.
const GO_ON: u32 = 2;
/// Most round trips that one cut stands for.
const MOST_ROUNDS: f64 = 2.0;
/// Time without a mark after which the path is another one, and the bound ends.
const FORGOTTEN: Span = Span::secs(10.0);

/// Marks of one feedback message, and the state of the flow at its arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    /// Arrival of the message.
    pub(super) now: Time,
    /// Packets received with a mark.
    pub(super) marked: u32,
    /// Packets received.
    pub(super) received: u32,
    /// Departure of the first packet reported.
    pub(super) first: Time,
    /// Departure of the newest packet reported.
    pub(super) newest: Time,
    /// Least queueing delay of the packets.
    pub(super) queue: Span,
    /// The rate in force.
    pub(super) rate: Rate,
    /// The capacity that the packets' dispersion shows, if known.
    pub(super) shown: Option<Rate>,
    /// Round-trip time.
    pub(super) rtt: Span,
    /// The share of one flow that this one takes, 0 to 1.
    pub(super) weight: f64,
}

/// The greatest rates that marks allow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(in super::super) struct L4sRates {
    /// Of the rate.
    pub(in super::super) bound: Rate,
    /// Of the pacing rate.
    pub(in super::super) pacing: Rate,
}

/// The bound, and the marks that it is derived from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct L4sBound {
    /// The bound, from the first mark on.
    rate: Option<Rate>,
    /// Mean share of packets marked.
    alpha: f64,
    round: Round,
    /// Arrival of the message before.
    updated: Time,
    /// Arrival of the last message with a mark.
    marked_at: Time,
    /// Packets sent after this time show the effect of the last cut.
    cut_at: Time,
    /// Whether a message since then had no mark.
    is_clear: bool,
    /// Cuts in a row.
    cuts: u32,
    /// The bound before the last cut.
    knee: Rate,
    /// Excess of the pacing rate over the bound.
    ask: f64,
    /// Packets sent after this time were paced by that excess.
    asked_at: Time,
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

    /// The greatest rates; `None` without a bound.
    pub(super) fn rates(&self) -> Option<L4sRates> {
        self.rate.map(|bound| L4sRates { bound, pacing: bound * (1.0 + self.ask) })
    }

    /// Takes a message.
    pub(super) fn update(&mut self, r: Report) {
        let elapsed = (r.now - self.updated).clamp(Span::ZERO, Span::secs(1.0));
        self.updated = r.now;
        let Some(mut bound) = self.rate else {
            if let Some(shown) = r.shown.filter(|shown| r.marked > 0 && *shown > LEAST_CAPACITY) {
                *self = Self { alpha: self.alpha, updated: r.now, marked_at: r.now, ..Self::default() };
                let bound = r.rate.min(shown);
                (self.rate, self.knee) = (Some(bound), bound);
                self.hold_back(&r);
                self.round.from = r.now;
            }
            return;
        };
        let is_small = r.shown.is_some_and(|shown| shown < LEAST_CAPACITY) && r.rate < LEAST_CAPACITY;
        let packet = PACKET / bound;
        let is_clear = r.now - self.marked_at > FORGOTTEN;
        if is_small || is_clear || (r.marked == 0 && r.queue > UNMARKED.max(UNMARKED_PACKETS * packet)) {
            self.rate = None;
            return;
        }
        let share = f64::from(r.marked) / f64::from(r.received.max(1));
        let rtt = r.rtt.max(LEAST_RTT);
        // A bound that is not used is not known to be free.
        if 2.0 * r.rate > bound {
            bound += elapsed / rtt * (1.0 - share) * r.weight * PACKET / rtt;
        }
        if r.marked > 0 {
            self.marked_at = r.now;
        }
        if r.queue > overfull(packet) {
            // The rate of service is known, and marks of the queue's packets say no more.
            bound = bound.at_most(r.shown);
            (self.rate, self.knee) = (Some(bound), bound);
            self.hold_back(&r);
            return;
        }
        self.count(&r);
        self.is_clear |= r.marked == 0 && r.first >= self.cut_at;
        if r.marked > 0 {
            self.ask = LEAST_ASK;
            // Marks of packets sent before the last cut do not show its effect.
            if r.first >= self.cut_at {
                // A cut on a cut is at less than the rate that was too high.
                self.knee = bound.max(0.5 * (bound + self.knee));
                // Marks that go on call for a cut each round trip, of which feedback shows fewer.
                let rounds = ((r.now - self.cut_at) / rtt).clamp(1.0, MOST_ROUNDS);
                self.cuts = if self.is_clear { 1 } else { self.cuts.saturating_add(1) };
                let rounds = if self.cuts > GO_ON { rounds } else { 1.0 };
                bound *= 1.0 - 0.5 * (self.alpha * rounds).min(1.0);
                self.hold_back(&r);
            }
        } else if r.first >= self.asked_at
            && r.newest - self.asked_at > ASKED
            && r.rate > NEAR * bound
            && self.may_have_room(bound, &r)
        {
            // Trains that asked for more were not marked.
            bound *= 1.0 + self.ask;
            (self.ask, self.asked_at) = ((ASK_GROWTH * self.ask).min(MOST_ASK), r.now);
        }
        self.rate = Some(bound);
    }

    /// Whether the bound has passed the rate at which packets were marked, or none have been for a while, or dispersion shows more.
    fn may_have_room(&self, bound: Rate, r: &Report) -> bool {
        bound > PASSED * self.knee
            || (bound > self.knee && r.now - self.marked_at > CLEAR)
            || r.shown.is_some_and(|shown| shown > SHOWN * bound)
    }

    /// Counts a message's packets in the mean share of marks, which moves once a round.
    fn count(&mut self, r: &Report) {
        self.round.marked += r.marked;
        self.round.received += r.received;
        if r.newest >= self.round.from {
            let share = f64::from(self.round.marked) / f64::from(self.round.received.max(1));
            self.alpha += GAIN * (share - self.alpha);
            self.round = Round { from: r.now, ..Round::default() };
        }
    }

    /// Packets sent from now on show what has changed.
    fn hold_back(&mut self, r: &Report) {
        (self.ask, self.asked_at, self.cut_at, self.is_clear) = (LEAST_ASK, r.now, r.now, false);
    }
}

/// Queue from which a link under L4S marks is overfull, of packets that take this long.
pub(in super::super) fn overfull(packet: Span) -> Span {
    OVERFULL.max(OVERFULL_PACKETS * packet)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of ten packets each 25 ms, on a round trip of 50 ms, with no queue.
    fn message(now: f64, marked: u32, rate: f64, shown: Option<f64>) -> Report {
        Report {
            now: Time::secs(now),
            marked,
            received: 10,
            first: Time::secs(now - 0.065),
            newest: Time::secs(now - 0.045),
            queue: Span::ZERO,
            rate: Rate::bps(rate),
            shown: shown.map(Rate::bps),
            rtt: Span::secs(0.05),
            weight: 1.0,
        }
    }

    /// A bound of 10 Mbit/s since 0 s.
    fn at_10_mbps() -> L4sBound {
        let mut b = L4sBound::default();
        b.update(message(0.0, 5, 12e6, Some(10e6)));
        b
    }

    fn bound(b: &L4sBound) -> f64 {
        b.rate().expect("marked").as_bps()
    }

    /// Messages each 25 ms from one time to another.
    fn run(b: &mut L4sBound, (from, to): (f64, f64), marked: u32, shown: Option<f64>) {
        let count = libm::round((to - from) / 0.025) as u32;
        for k in 0..count {
            let rate = bound(b);
            b.update(message(from + 0.025 * f64::from(k), marked, rate, shown));
        }
    }

    /// Growth by a packet a round trip in 25 ms.
    fn step() -> f64 {
        0.5 * (PACKET / Span::secs(0.05)).as_bps()
    }

    #[test]
    fn the_first_mark_sets_a_bound_at_what_the_link_serves() {
        let mut b = L4sBound::default();
        b.update(message(0.0, 0, 4e6, None));
        assert_eq!((b.rate(), b.alpha(), b.rates()), (None, 0.0, None), "no mark, no bound");
        b.update(message(0.01, 5, 1e6, Some(2e6)));
        assert_eq!(b.rate(), None, "packets take longer than the marks' threshold");
        b.update(message(0.025, 5, 12e6, Some(10e6)));
        let rates = b.rates().expect("marked");
        assert_eq!((rates.bound.as_bps(), b.alpha()), (10e6, 0.0));
        assert!((rates.pacing.as_bps() - 10.3e6).abs() < 1.0);
    }

    #[test]
    fn a_cut_counts_for_packets_sent_after_the_one_before() {
        let mut b = at_10_mbps();
        b.alpha = 0.5;
        b.update(message(0.025, 10, 10e6, None));
        assert_eq!(bound(&b), 10e6, "it was sent before, and nothing grows while all is marked");
        b.update(message(0.075, 10, 10e6, None));
        let cut = 0.5 * b.alpha();
        assert!(b.alpha() > 0.5 && (bound(&b) / 10e6 - (1.0 - cut)).abs() < 1e-9, "{b:?}");
        let before = bound(&b);
        run(&mut b, (0.1, 0.14), 10, None);
        assert_eq!(bound(&b), before);
        run(&mut b, (0.15, 0.2), 0, None);
        assert!((bound(&b) - before - 2.0 * step()).abs() < 1.0, "a packet a round trip");
    }

    #[test]
    fn the_share_of_marks_moves_once_a_round() {
        let mut b = at_10_mbps();
        run(&mut b, (0.025, 0.05), 10, None);
        assert_eq!(b.alpha(), 0.0);
        run(&mut b, (0.05, 0.075), 10, None);
        assert!((b.alpha() - GAIN).abs() < 1e-9, "{b:?}");
    }

    #[test]
    fn marks_that_go_on_count_for_each_round_trip() {
        let (mut cut, mut b) = (vec![], at_10_mbps());
        for k in 1..=4 {
            b.alpha = 0.1;
            b.round = Round { from: Time::secs(100.0), ..Round::default() };
            let before = bound(&b);
            b.update(message(0.2 * f64::from(k), 10, before, None));
            cut.push(1.0 - bound(&b) / before);
        }
        assert!(cut[..2].iter().all(|c| (c - 0.05).abs() < 1e-9), "{cut:?}");
        assert!(cut[2..].iter().all(|c| (c - 0.1).abs() < 1e-9), "{cut:?}");
    }

    #[test]
    fn trains_ask_before_the_rate_follows_and_a_mark_is_an_answer() {
        let mut b = at_10_mbps();
        // 3.8 Mbit/s a second: 10.5 Mbit/s after 0.14 s.
        run(&mut b, (0.025, 0.2), 0, None);
        assert!((1.05 * 10e6..11.2e6).contains(&bound(&b)), "{b:?}");
        let (before, asked) = (bound(&b), b.ask);
        assert!((asked - 4.0 * LEAST_ASK).abs() < 1e-9, "{b:?}");
        run(&mut b, (0.2, 0.4), 0, None);
        assert!(bound(&b) > before * (1.0 + asked) && b.ask <= MOST_ASK && b.ask > asked, "{b:?}");
        let before = bound(&b);
        b.update(message(0.4, 1, before, None));
        assert!(b.ask == LEAST_ASK && bound(&b) < before + step() && b.knee.as_bps() >= before, "{b:?}");
    }

    #[test]
    fn dispersion_beyond_the_bound_asks_at_once() {
        let (mut hidden, mut shown) = (at_10_mbps(), at_10_mbps());
        run(&mut hidden, (0.025, 0.125), 0, None);
        run(&mut shown, (0.025, 0.125), 0, Some(20e6));
        assert!(bound(&shown) > 1.02 * bound(&hidden), "{hidden:?} {shown:?}");
    }

    #[test]
    fn of_an_overfull_link_the_service_is_the_bound() {
        let mut b = at_10_mbps();
        b.alpha = 0.5;
        let full = Report { queue: Span::secs(0.02), ..message(0.1, 10, 10e6, Some(3e6)) };
        b.update(full);
        assert_eq!((bound(&b), b.alpha()), (3e6, 0.5));
        // Two packets at 3 Mbit/s take 6.4 ms.
        b.update(Report { now: Time::secs(0.2), queue: Span::secs(0.006), shown: Some(Rate::bps(1e6)), ..full });
        assert!(bound(&b) > 2e6, "{b:?}");
    }

    #[test]
    fn a_bound_ends_where_a_queue_is_not_marked_or_nothing_for_long() {
        let mut b = at_10_mbps();
        b.update(Report { queue: Span::secs(0.006), ..message(0.1, 0, 10e6, None) });
        assert_eq!(b.rate(), None, "{b:?}");
        let mut b = at_10_mbps();
        run(&mut b, (0.025, 10.0), 0, None);
        assert!(b.rate().is_some());
        b.update(message(10.01, 0, 20e6, None));
        assert_eq!(b.rate(), None);
    }

    #[test]
    fn a_source_that_does_not_use_the_bound_does_not_raise_it() {
        let mut b = at_10_mbps();
        (1..40).for_each(|k| b.update(message(0.1 * f64::from(k), 0, 0.2e6, None)));
        assert_eq!(bound(&b), 10e6);
    }
}
