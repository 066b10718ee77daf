//! Counts of packets while too many are lost, and the comparison of two shares lost.

use super::super::config::AnswerConfig;
use super::super::quantity::{Bits, Rate, Span, Time};
use super::super::sample::Sample;
use core::ops::{Add, AddAssign};

/// Share of the former loss that is left where losses answer: less than what none would leave, more than nothing, since others
/// may share the policer.
const LEFT: f64 = 1.0 / 3.0;
/// Least number of messages by which what arrives is measured.
const MESSAGES: f64 = 2.0;
/// Losses beyond those that begin a trial, as a multiple, at which older ones are forgotten.
const FORGET: f64 = 2.0;

/// Packets by their fate.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Counts {
    pub(super) received: f64,
    pub(super) lost: f64,
}

impl Counts {
    /// Those of a message.
    pub(super) fn of(sample: &Sample) -> Self {
        Self { received: sample.received.into(), lost: f64::from(sample.lost) - f64::from(sample.revoked) }
    }

    pub(super) fn all(self) -> f64 {
        self.received + self.lost
    }

    /// The share lost.
    pub(super) fn share(self) -> f64 {
        if self.all() > 0.0 { (self.lost / self.all()).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The share lost less the error of its number.
    pub(super) fn least_share(self) -> f64 {
        let lost = self.lost.max(0.0);
        if self.all() > 0.0 { (lost - libm::sqrt(lost)).max(0.0) / self.all() } else { 0.0 }
    }

    /// Logarithm of the ratio of two likelihoods of the losses at a lower rate: that losses answer to the rate, and that they do not.
    ///
    /// Given the losses at both rates together, those at the lower one have a binomial distribution, whatever the share lost is:
    /// by the packets sent where losses are chance, by a third of them where they answer (the conditional test of two Poisson
    /// rates of Przyborowski and Wilenski, Biometrika 31, 1940, as a ratio of likelihoods).
    pub(super) fn answer(self, low: Self) -> f64 {
        let (high, ratio) = (self, low.all() / self.all().max(1.0));
        let (chance, own) = (ratio / (1.0 + ratio), LEFT * ratio / (1.0 + LEFT * ratio));
        if ratio <= 0.0 {
            return 0.0;
        }
        low.lost.max(0.0) * libm::log(own / chance) + high.lost * libm::log((1.0 - own) / (1.0 - chance))
    }
}

impl Add for Counts {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { received: self.received + other.received, lost: self.lost + other.lost }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

/// Packets since more than the share tested are lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    counts: Counts,
    /// Losses beyond the share tested, since that has last been none.
    excess: f64,
    /// Data received by the messages after the first, and their time by departure.
    size: Bits,
    time: Span,
    messages: f64,
    newest: Time,
}

impl Evidence {
    /// Takes a message. `least` is the share from which losses count.
    pub(super) fn observe(&mut self, sample: &Sample, counts: Counts, least: f64, c: &AnswerConfig) {
        self.excess += counts.lost - least * counts.all();
        if self.excess <= 0.0 {
            *self = Self { newest: sample.last_departure, ..Self::default() };
            return;
        }
        self.counts += counts;
        if self.messages > 0.0 && sample.last_departure > self.newest {
            self.size += sample.size;
            self.time += sample.last_departure - self.newest;
        }
        self.messages += 1.0;
        self.newest = self.newest.max(sample.last_departure);
        if self.counts.lost > FORGET * c.losses {
            self.counts = Counts { received: 0.5 * self.counts.received, lost: 0.5 * self.counts.lost };
            (self.size, self.time, self.excess) = (self.size * 0.5, self.time * 0.5, self.excess * 0.5);
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether there are enough messages and losses to go by.
    pub(super) fn is_enough(&self, c: &AnswerConfig) -> bool {
        self.messages >= MESSAGES && self.counts.lost >= c.losses
    }

    /// The rate that arrives.
    pub(super) fn arrived(&self) -> Option<Rate> {
        (self.time > Span::ZERO).then(|| self.size / self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(received: f64, lost: f64) -> Counts {
        Counts { received, lost }
    }

    #[test]
    fn a_share_that_falls_with_the_rate_answers_and_one_that_stays_does_not() {
        let high = counts(380.0, 20.0);
        // Nothing lost of a third as many packets: 20 ln((1 + 1/3) / (1 + 1/9)).
        let none = high.answer(counts(400.0 / 3.0, 0.0));
        assert!((none - 20.0 * libm::log(1.2)).abs() < 1e-9, "{none}");
        // As many of as many: 20 ln((1/4) / (1/2)) + 20 ln((3/4) / (1/2)).
        let same = high.answer(counts(380.0, 20.0));
        assert!((same - 20.0 * libm::log(0.75)).abs() < 1e-9, "{same}");
        assert_eq!(high.answer(Counts::default()), 0.0);
    }

    #[test]
    fn the_error_of_few_losses_is_large() {
        assert_eq!([counts(96.0, 4.0).least_share(), counts(99.0, 1.0).least_share()], [0.02, 0.0]);
        assert_eq!([Counts::default().least_share(), counts(3.0, -1.0).share()], [0.0, 0.0]);
    }
}
