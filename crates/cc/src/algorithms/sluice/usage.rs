//! How much of the rate the source and the pacer use.

/// Time constant, s: measured beside 0.15 and 0.3 (`docs/sluice.md`).
const TIME: f64 = 0.1;
/// Time constant with which an excess is forgotten, s.
const EXCESS_TIME: f64 = 0.3;
/// Time constant of the mean deviation, s.
const BURST_TIME: f64 = 2.0;
/// Greatest excess that counts as such, s.
const MOST_BURST: f64 = 0.2;
/// Greatest excess rate that is believed, of the rate.
const MOST_EXCESS: f64 = 100.0;

/// Sums over the last packets reported. A mean of ratios would not do: trains of packets bias it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    sent: f64,
    arrived: f64,
    allowed: f64,
    /// What was sent beyond the rate of late, s.
    excess: f64,
    burst: f64,
}

impl Usage {
    /// Takes the bits sent and arrived in `time` s, those that the rate allowed (more than zero), and whether the rate was
    /// steady.
    pub(super) fn observe(&mut self, time: f64, sent: f64, arrived: f64, allowed: f64, is_steady: bool) {
        let keep = libm::exp(-time / TIME);
        self.sent = self.sent * keep + sent;
        self.arrived = self.arrived * keep + arrived;
        self.allowed = self.allowed * keep + allowed;
        if !is_steady {
            self.excess = 0.0;
            return;
        }
        let more = (sent / allowed - 1.0).min(MOST_EXCESS) * time;
        self.excess = self.excess * libm::exp(-time / EXCESS_TIME) + more;
        let weight = 1.0 - libm::exp(-time / BURST_TIME);
        self.burst += weight * (self.excess.abs().min(MOST_BURST) - self.burst);
    }

    /// Mean deviation of what was sent from what the rate allowed, in seconds of the rate.
    pub(super) fn burst(&self) -> f64 {
        self.burst
    }

    /// Share of the rate that was sent, 0 to 2.
    pub(super) fn sent(&self) -> f64 {
        self.share(self.sent)
    }

    /// Share of the rate that arrived, 0 to 2.
    pub(super) fn arrived(&self) -> f64 {
        self.share(self.arrived)
    }

    fn share(&self, bits: f64) -> f64 {
        if self.allowed > 0.0 { (bits / self.allowed).min(2.0) } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_of_packets_do_not_bias_the_share() {
        let mut u = Usage::default();
        assert_eq!((u.sent(), u.arrived()), (1.0, 1.0));
        // 500 kbit/s as two packets each 38.4 ms, 4 ms apart; one message each.
        for _ in 0..200 {
            u.observe(0.004, 9_600.0, 9_600.0, 0.004 * 500e3, true);
            u.observe(0.0344, 9_600.0, 4_800.0, 0.0344 * 500e3, true);
        }
        assert!((0.85..1.15).contains(&u.sent()) && (0.55..0.85).contains(&u.arrived()), "{u:?}");
    }

    #[test]
    fn a_limited_source_shows_within_a_tenth_of_a_second() {
        let mut u = Usage::default();
        (0..40).for_each(|_| u.observe(0.025, 25e3, 25e3, 25e3, true));
        (0..4).for_each(|_| u.observe(0.025, 1e3, 1e3, 25e3, true));
        assert!(u.sent() < 0.45, "{}", u.sent());
    }

    #[test]
    fn bursts_are_deviations_from_a_steady_rate() {
        let (mut even, mut uneven, mut changing) = (Usage::default(), Usage::default(), Usage::default());
        for k in 0..400 {
            // 1 Mbit/s in messages of 50 ms; frames of 0.2 and 1.8 times their mean, in runs of four messages.
            let bits = if k % 8 < 4 { 10e3 } else { 90e3 };
            even.observe(0.05, 50e3, 50e3, 50e3, true);
            uneven.observe(0.05, bits, bits, 50e3, true);
            changing.observe(0.05, bits, bits, 50e3, false);
        }
        assert!(even.burst() < 1e-9 && changing.burst() < 1e-9, "{even:?} {changing:?}");
        assert!((0.03..0.15).contains(&uneven.burst()), "{uneven:?}");
    }
}
