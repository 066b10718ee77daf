//! Counts of packets while too many are lost, and the comparison of two shares lost.

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
/// Greatest index of dispersion: of losses that come so clustered, a trial would take too long.
const MOST_DISPERSION: f64 = 20.0;
/// Packets by which clusters are counted, and the least number of such groups that show them.
const GROUP: f64 = 32.0;
const LEAST_GROUPS: f64 = 3.0;
/// Losses for each unit of dispersion that a verdict takes, about: none in as many packets as had 7.4 is 20 to 1.
const EFFECTIVE: f64 = 8.0;

/// Packets by their fate.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Counts {
    pub(super) received: f64,
    pub(super) lost: f64,
}

impl Counts {
    /// Those of a message. What a full queue has dropped is the queue's.
    pub(super) fn of(sample: &Sample) -> Self {
        let lost = f64::from(sample.lost) - f64::from(sample.lost_waiting) - f64::from(sample.revoked);
        Self { received: sample.received.into(), lost }
    }

    pub(super) fn all(self) -> f64 {
        self.received + self.lost
    }

    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { received: self.received * factor, lost: self.lost * factor }
    }

    /// The share lost.
    pub(super) fn share(self) -> f64 {
        if self.all() > 0.0 { (self.lost / self.all()).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The share lost and the error of its number.
    pub(super) fn most_share(self) -> f64 {
        let lost = self.lost.max(0.0);
        if self.all() > 0.0 { (lost + libm::sqrt(lost)) / self.all() } else { 0.0 }
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

/// Sums over groups of `GROUP` packets or a few more, n each, of which l are lost, by which clusters of losses are known.
#[derive(Clone, Copy, Debug, Default)]
struct Clusters {
    /// The group that is not full.
    group: Counts,
    groups: f64,
    all: Counts,
    /// Of n², n l and l².
    packets: f64,
    products: f64,
    losses: f64,
}

impl Clusters {
    fn observe(&mut self, counts: Counts) {
        self.group += counts;
        let (n, l) = (self.group.all(), self.group.lost);
        if n < GROUP {
            return;
        }
        self.all += self.group;
        self.groups += 1.0;
        self.packets += n * n;
        self.products += n * l;
        self.losses += l * l;
        self.group = Counts::default();
    }

    fn halve(&mut self) {
        self.all = self.all.scaled(0.5);
        for sum in [&mut self.groups, &mut self.packets, &mut self.products, &mut self.losses] {
            *sum *= 0.5;
        }
    }

    /// Index of dispersion: the variance of the losses of a group over that of independent ones, at least 1. It divides
    /// logarithms of likelihoods (quasi-likelihood: Wedderburn, Biometrika 61, 1974).
    fn dispersion(&self) -> f64 {
        let share = self.all.share();
        let independent = share * (1.0 - share) * self.all.all();
        if self.groups < LEAST_GROUPS || independent <= 0.0 {
            return 1.0;
        }
        let squares = self.losses - 2.0 * share * self.products + share * share * self.packets;
        (squares / independent * self.groups / (self.groups - 1.0)).clamp(1.0, MOST_DISPERSION)
    }
}

/// Packets since more than the share tested are lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Evidence {
    counts: Counts,
    clusters: Clusters,
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
    pub(super) fn observe(&mut self, sample: &Sample, counts: Counts, least: f64, losses: f64, dispersion: f64) {
        self.excess += counts.lost - least * counts.all();
        if self.excess <= 0.0 {
            *self = Self { newest: sample.last_departure, ..Self::default() };
            return;
        }
        self.counts += counts;
        self.clusters.observe(counts);
        if self.messages > 0.0 && sample.last_departure > self.newest {
            self.size += sample.size;
            self.time += sample.last_departure - self.newest;
        }
        self.messages += 1.0;
        self.newest = self.newest.max(sample.last_departure);
        if self.counts.lost > FORGET * Self::needed(losses, dispersion) {
            self.counts = self.counts.scaled(0.5);
            self.clusters.halve();
            (self.size, self.time, self.excess) = (self.size * 0.5, self.time * 0.5, self.excess * 0.5);
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// How clustered the losses are: 1 where they are independent.
    pub(super) fn dispersion(&self) -> f64 {
        self.clusters.dispersion()
    }

    /// Losses to go by.
    fn needed(losses: f64, dispersion: f64) -> f64 {
        (EFFECTIVE * dispersion).max(losses)
    }

    /// Whether there are enough messages and losses to go by.
    pub(super) fn is_enough(&self, losses: f64, dispersion: f64) -> bool {
        self.messages >= MESSAGES && self.counts.lost >= Self::needed(losses, dispersion)
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
    fn clusters_of_losses_count_less_than_single_ones() {
        let dispersion = |groups: &[(f64, f64)]| {
            let mut clusters = Clusters::default();
            groups.iter().for_each(|&(received, lost)| clusters.observe(counts(received, lost)));
            clusters.dispersion()
        };
        assert_eq!(
            [dispersion(&[(20.0, 20.0); 4]), dispersion(&[(40.0, 0.0), (0.0, 40.0)])],
            [1.0, 1.0],
            "regular, few"
        );
        // Of 160 packets in groups of 40, 40 are lost in one: (3 * 10² + 30²) / (160 * 1/4 * 3/4) of four, with three free.
        let clustered = dispersion(&[(40.0, 0.0), (40.0, 0.0), (0.0, 40.0), (40.0, 0.0)]);
        assert!((clustered - 20.0).abs() < 1e-9, "{clustered}");
    }

    #[test]
    fn the_error_of_few_losses_is_large() {
        assert_eq!([counts(96.0, 4.0).most_share(), counts(99.0, 1.0).most_share()], [0.06, 0.02]);
        assert_eq!([Counts::default().most_share(), counts(3.0, -1.0).share()], [0.0, 0.0]);
    }
}
