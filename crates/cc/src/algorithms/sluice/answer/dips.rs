//! Dips of a bound: for moments less is sent, so that others find tokens in a policer's bucket and places in a short queue.
//!
//! A flow that sends at just the rate of a policer leaves its bucket empty: whoever comes later loses nearly all packets, and sees no
//! rate at which it does not. Dips also show whose the losses are: chance goes on in them, a policer's losses end.

use super::super::quantity::{Span, Time};
use super::evidence::Counts;

/// Time between two dips, and that of one: some round trips, in which others can grow.
const APART: Span = Span::secs(1.0);
const LENGTH: Span = Span::secs(0.5);
/// Share of the bound that is sent in a dip: a third of the time, it costs 7 % where the bucket is too small to make up for it.
const DEPTH: f64 = 0.8;
/// Share lost outside dips from which there are none: who loses so much leaves no tokens, and has to find out whether losses end.
const MOST_LOST: f64 = 0.1;
/// Newest packets outside dips that count, and packets in dips from which older ones count half.
const NEWEST: f64 = 400.0;
const MOST: f64 = 200.0;

/// The last dip, and the packets sent in dips and outside.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dips {
    /// Its begin, and its end once it is over.
    from: Time,
    until: Time,
    is_on: bool,
    low: Counts,
    high: Counts,
}

impl Dips {
    /// The first one follows some time from now on.
    pub(super) fn from(now: Time) -> Self {
        Self { from: now, until: now, is_on: false, low: Counts::default(), high: Counts::default() }
    }

    /// Factor on the bound.
    pub(super) fn factor(&self) -> f64 {
        if self.is_on { DEPTH } else { 1.0 }
    }

    /// Takes a message, the first packet of which left at `begin`. Whether a dip is on, or the message is of one.
    pub(super) fn observe(&mut self, counts: Counts, begin: Time, now: Time, may_begin: bool) -> bool {
        let is_low = begin >= self.from && (self.is_on || begin < self.until);
        if is_low {
            self.low += counts;
        } else {
            self.high = self.high.scaled(1.0 - (counts.all() / NEWEST).min(1.0)) + counts;
        }
        if self.is_on && now >= self.from + LENGTH {
            (self.is_on, self.until) = (false, now);
            if self.low.all() > MOST {
                (self.low, self.high) = (self.low.scaled(0.5), self.high.scaled(0.5));
            }
        } else if !self.is_on && may_begin && self.high.share() < MOST_LOST && now >= self.until + APART {
            (self.is_on, self.from) = (true, now);
        }
        self.is_on || is_low
    }

    /// Logarithm of the ratio of likelihoods that losses have ended in dips, and that they have not.
    pub(super) fn answer(&self) -> f64 {
        self.high.answer(self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of ten packets each 50 ms, 100 ms after they left, of which so many are lost outside dips and in them. The dips' times.
    fn drive(d: &mut Dips, seconds: f64, lost: (f64, f64)) -> Vec<f64> {
        let mut begun = vec![];
        for k in 0..(seconds / 0.05).round() as i32 {
            let now = Time::secs(0.05 * f64::from(k));
            let begin = now - Span::secs(0.1);
            let was_on = d.is_on;
            let lost = if begin >= d.from && (d.is_on || begin < d.until) { lost.1 } else { lost.0 };
            d.observe(Counts { received: 10.0 - lost, lost }, begin, now, true);
            if d.is_on && !was_on {
                begun.push((now - Time::START).as_secs());
            }
        }
        begun
    }

    #[test]
    fn a_dip_of_half_a_second_follows_each_second() {
        let mut d = Dips::from(Time::START);
        let begun = drive(&mut d, 4.5, (0.9, 0.0));
        assert_eq!(begun.len(), 3, "{begun:?}");
        assert!(begun.iter().zip([1.0, 2.5, 4.0]).all(|(at, expected)| (at - expected).abs() < 0.051), "{begun:?}");
        assert_eq!(d.factor(), DEPTH);
        assert!(
            !Dips::from(Time::START).observe(Counts::default(), Time::START, Time::secs(9.0), false),
            "not allowed"
        );
    }

    #[test]
    fn losses_that_end_in_dips_are_no_chance_and_those_that_go_on_are() {
        let (mut own, mut chance) = (Dips::from(Time::START), Dips::from(Time::START));
        drive(&mut own, 6.0, (0.9, 0.0));
        drive(&mut chance, 6.0, (0.9, 0.9));
        assert!(own.answer() > 3.0 && chance.answer() < 0.0, "{} {}", own.answer(), chance.answer());
    }
}
