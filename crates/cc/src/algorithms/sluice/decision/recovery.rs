//! The way back after an outage: towards the rate that the link has served while it was busy.

use super::super::quantity::{Rate, Span, Time};

/// Time constant of the mean, of a busy link.
const TIME: Span = Span::secs(2.0);
/// Longest time that one message stands for.
const LONGEST: Span = Span::secs(0.25);
/// Share of the mean towards which the rate grows: measured beside 0.5 and 0.9 (`docs/sluice-tried.md`).
const SHARE: f64 = 0.7;

/// Share of the mean below which it has fallen: measured beside 0.6 (`docs/sluice-tried.md`).
const FALLEN: f64 = 0.75;

/// The mean rate of service of a busy link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    mean: Rate,
    updated: Time,
    /// Weight of all that the mean holds, 0 to 1.
    weight: f64,
}

impl Recovery {
    /// The link is busy and serves this flow at a rate.
    pub(super) fn observe(&mut self, served: Rate, now: Time) {
        let elapsed = (now - self.updated).clamp(Span::ZERO, LONGEST);
        let weight = 1.0 - libm::exp(-(elapsed / TIME));
        self.mean += weight * (served - self.mean);
        self.weight += weight * (1.0 - self.weight);
        self.updated = now;
    }

    /// The mean of what has been measured; zero if nothing has.
    pub(super) fn known(&self) -> Rate {
        if self.weight > 0.0 { self.mean / self.weight } else { Rate::ZERO }
    }

    /// Whether the rate of service is much less than the mean.
    pub(super) fn has_fallen(&self, served: Rate) -> bool {
        served < FALLEN * self.mean
    }

    /// The rate after one round of growth with room: half of the way to the mean, in logarithms. From the floor this is a few
    /// packets per frame at once, whose dispersion shows the capacity.
    pub(super) fn towards(&self, rate: Rate) -> Rate {
        (rate * SHARE).geometric_mean(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_rounds_lead_back_from_the_floor_and_no_further() {
        let mut recovery = Recovery::default();
        assert_eq!(recovery.towards(Rate::bps(1e6)), Rate::ZERO, "no rate was measured yet");
        assert_eq!(recovery.known(), Rate::ZERO);
        let mut first = recovery;
        first.observe(Rate::bps(3e6), Time::secs(0.1));
        assert!((first.known().as_bps() - 3e6).abs() < 1e-3, "one sample is all that is known");
        let mut serve = |mbps: f64, from: f64, count: u32| {
            (0..count).for_each(|k| recovery.observe(Rate::bps(mbps * 1e6), Time::secs(from + 0.025 * f64::from(k))));
            recovery
        };
        let busy = serve(20.0, 0.0, 400);
        assert!(busy.has_fallen(Rate::bps(14e6)) && !busy.has_fallen(Rate::bps(16e6)));
        let towards = |r: Recovery, mbps: f64| r.towards(Rate::bps(mbps * 1e6)).as_bps() / 1e6;
        let mut rate = 0.1;
        for least in [1.1, 3.8, 7.0] {
            rate = towards(busy, rate);
            assert!(rate > least, "{rate} {least}");
        }
        assert!(towards(busy, 15.0) < 15.0);
        // An outage of 200 ms in it changes little; seconds at less replace it.
        assert!(towards(serve(0.1, 10.2, 1), 14.0) > 13.0);
        assert!(towards(serve(1.0, 10.2, 400), 1.0) < 1.0);
    }
}
