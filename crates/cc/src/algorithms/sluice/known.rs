//! What the link has served while it was busy, for the way back after an outage.

/// Time constant, s of a busy link.
const TIME: f64 = 2.0;
/// Longest time that one message stands for, s.
const MOST: f64 = 0.25;
/// Share of that rate towards which the rate grows: measured beside 0.5 and 0.9 (`docs/sluice.md`).
const SHARE: f64 = 0.7;

/// The mean rate of service of a busy link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    rate: f64,
    at: f64,
}

impl Known {
    /// The link is busy and serves `served` bit/s.
    pub(super) fn observe(&mut self, served: f64, now: f64) {
        let weight = 1.0 - libm::exp(-(now - self.at).clamp(0.0, MOST) / TIME);
        self.rate += weight * (served - self.rate);
        self.at = now;
    }

    /// The rate after one round of growth with room: half of the way to what is known, in logarithms. From the floor this
    /// is a few packets per frame at once, whose dispersion shows the capacity.
    pub(super) fn towards(&self, rate: f64) -> f64 {
        libm::sqrt(rate * SHARE * self.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_rounds_lead_back_from_the_floor_and_no_further() {
        let mut known = Known::default();
        assert_eq!(known.towards(1e6), 0.0, "nothing is known yet");
        (0..400).for_each(|k| known.observe(20e6, 0.025 * f64::from(k)));
        let mut rate = 0.1e6;
        for least in [1.1e6, 3.8e6, 7e6] {
            rate = known.towards(rate);
            assert!(rate > least, "{rate} {least}");
        }
        assert!(known.towards(15e6) < 15e6);
        // An outage of 200 ms in it changes little; seconds at less replace it.
        known.observe(0.1e6, 10.2);
        assert!(known.towards(14e6) > 13e6);
        (0..400).for_each(|k| known.observe(1e6, 10.2 + 0.025 * f64::from(k)));
        assert!(known.towards(1e6) < 1.0e6);
    }
}
