//! The pacing rate.

use super::super::config::PacingConfig;
use super::super::path::{L4sRates, NEAR};
use super::super::quantity::{Bits, PACKET, Rate, Span};

/// Packets that may leave in the burst time.
const BURST_PACKETS: f64 = 5.0;
/// Stalls below this are none: no other traffic interferes.
const SETTLED_STALL: Span = Span::secs(0.001);
/// Mean share of marks from which they hold the queue.
const MARKED: f64 = 0.2;
/// Factor on the rate where losses bound it and packets do not wait: between trains a policer's bucket fills. Packets sent each when
/// its tokens have just come would leave none to others.
const POLICED: f64 = 2.0;
/// Share of the bound by losses from which it holds the rate.
const BOUND_NEAR: f64 = 0.95;
/// Time in which data that waits at the sender is to leave, and the least share of the rate that media has meanwhile.
const CLEARED: Span = Span::secs(0.2);
const LEAST_MEDIA: f64 = 0.5;

/// The media rate under L4S marks, where packets leave hardly faster than media comes, and where a full flight holds them: frames of a higher
/// rate would wait at the sender for long. `waiting` is the data there, without the newest frame.
pub(in super::super) fn media(rate: Rate, waiting: Bits) -> Rate {
    (rate - waiting / CLEARED).max(LEAST_MEDIA * rate)
}

/// The flow's state by which it is paced.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Pacing {
    /// The rate in force.
    pub(in super::super) rate: Rate,
    /// Whether no queue has been seen yet.
    pub(in super::super) is_starting: bool,
    /// Rounds of growth since the rate was held.
    pub(in super::super) rounds: u32,
    /// Mean stall.
    pub(in super::super) stall: Span,
    /// Mean share of packets marked.
    pub(in super::super) marked: f64,
    /// Bound on the rate by losses.
    pub(in super::super) bound: Option<Rate>,
    /// Bounds on rate and pacing rate by L4S marks.
    pub(in super::super) marks: Option<L4sRates>,
    /// Whether losses bound the rate, of packets that do not wait.
    pub(in super::super) is_policed: bool,
}

impl Pacing {
    /// The pacing rate of a source that deviates by `burst` from the rate.
    pub(in super::super) fn of_source(&self, burst: Span, c: &PacingConfig) -> Rate {
        if self.is_policed {
            return POLICED * self.rate;
        }
        if self.marks.is_some() {
            return self.of_trains(c);
        }
        // A source's bursts in the queue look like a lower capacity, to this flow and to others.
        if !self.is_starting && burst > c.burst_least.into() {
            return self.rate * c.bursts;
        }
        self.of_trains(c)
    }

    /// The pacing rate of a source without bursts: faster where trains of packets have something to show.
    pub(in super::super) fn of_trains(&self, c: &PacingConfig) -> Rate {
        let is_settled = !self.is_starting && self.rounds == 0 && self.stall < SETTLED_STALL;
        let (factor, burst) = match (self.is_starting, is_settled) {
            (true, _) => (c.start, c.burst_time),
            (_, true) => (c.settled, c.burst_time_settled),
            _ => (c.factor, c.burst_time),
        };
        if let Some(L4sRates { bound, pacing }) = self.marks {
            let pacing = if self.rate > NEAR * bound { pacing } else { (self.rate * factor).min(pacing) };
            // The floor wins: a bound below it would keep packets at the sender.
            return pacing.max(self.rate);
        }
        // Where losses hold the queue short, a train that the link spreads is a queue of its own.
        let is_bound = self.bound.is_some_and(|bound| self.rate > BOUND_NEAR * bound);
        if (is_settled && self.marked > MARKED) || is_bound {
            return self.rate;
        }
        (self.rate * factor).max(BURST_PACKETS * PACKET / Span::from(burst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Pacing = Pacing {
        rate: Rate::bps(10e6),
        is_starting: false,
        rounds: 0,
        stall: Span::ZERO,
        marked: 0.0,
        bound: None,
        marks: None,
        is_policed: false,
    };

    #[test]
    fn trains_are_faster_than_the_rate_where_they_have_something_to_show() {
        let c = PacingConfig::default();
        let mbps = |p: Pacing| p.of_source(Span::ZERO, &c).as_bps() / 1e6;
        assert_eq!(mbps(HELD), 10.0);
        assert_eq!(mbps(Pacing { is_starting: true, ..HELD }), 22.0);
        assert_eq!(mbps(Pacing { rounds: 1, ..HELD }), 15.0);
        assert_eq!(mbps(Pacing { stall: Span::secs(0.01), ..HELD }), 15.0);
        assert_eq!(mbps(Pacing { rate: Rate::bps(1e6), ..HELD }), 2.4, "five packets in 20 ms");
    }

    #[test]
    fn a_policers_bucket_fills_between_trains() {
        let c = PacingConfig::default();
        let policed = Pacing { is_policed: true, bound: Some(HELD.rate), ..HELD };
        assert_eq!(policed.of_source(Span::secs(0.02), &c).as_bps(), 20e6);
    }

    #[test]
    fn under_l4s_marks_trains_exceed_the_bound_by_what_they_ask_for() {
        let c = PacingConfig::default();
        let rates = |bound: f64| Some(L4sRates { bound: Rate::bps(bound), pacing: Rate::bps(1.1 * bound) });
        let mbps = |p: Pacing| p.of_source(Span::secs(0.02), &c).as_bps() / 1e6;
        assert!((mbps(Pacing { marks: rates(10e6), ..HELD }) - 11.0).abs() < 1e-9, "bursts or not");
        assert!((mbps(Pacing { marks: rates(20e6), rounds: 1, ..HELD }) - 15.0).abs() < 1e-9);
        assert!((mbps(Pacing { marks: rates(12e6), rounds: 1, ..HELD }) - 13.2).abs() < 1e-9);
        assert_eq!(mbps(Pacing { marks: rates(0.0), ..HELD }), 10.0, "the floor is above the bound");
    }

    #[test]
    fn media_leaves_room_for_what_waits_at_the_sender() {
        let rate = Rate::bps(10e6);
        assert_eq!(media(rate, Bits::ZERO), rate);
        assert!((media(rate, Bits::new(0.4e6)).as_bps() - 8e6).abs() < 1e-3);
        assert_eq!(media(rate, Bits::new(4e6)), 0.5 * rate);
    }

    #[test]
    fn bursts_and_marks_slow_the_trains() {
        let c = PacingConfig::default();
        let rate = Rate::bps(1e6);
        let slow = Pacing { rate, ..HELD };
        assert!((slow.of_source(Span::secs(0.02), &c).as_bps() - 1.1e6).abs() < 1.0);
        assert_eq!(Pacing { marked: 0.5, ..slow }.of_trains(&c), rate);
        assert_eq!(Pacing { rounds: 3, bound: Some(rate), ..slow }.of_trains(&c), rate);
    }
}
