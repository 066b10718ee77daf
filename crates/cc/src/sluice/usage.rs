//! How much of the rate the source and the pacer use.

/// Time constant, s: measured beside 0.15 and 0.3 (`docs/sluice.md`).
const TIME: f64 = 0.1;

/// Sums over the last packets reported. A mean of ratios would not do: trains of packets bias it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    sent: f64,
    arrived: f64,
    allowed: f64,
}

impl Usage {
    /// Takes the bits sent and arrived in `time` s, and those that the rate allowed (more than zero).
    pub(super) fn observe(&mut self, time: f64, sent: f64, arrived: f64, allowed: f64) {
        let keep = libm::exp(-time / TIME);
        self.sent = self.sent * keep + sent;
        self.arrived = self.arrived * keep + arrived;
        self.allowed = self.allowed * keep + allowed;
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
            u.observe(0.004, 9_600.0, 9_600.0, 0.004 * 500e3);
            u.observe(0.0344, 9_600.0, 4_800.0, 0.0344 * 500e3);
        }
        assert!((0.85..1.15).contains(&u.sent()) && (0.55..0.85).contains(&u.arrived()), "{u:?}");
    }

    #[test]
    fn a_limited_source_shows_within_a_tenth_of_a_second() {
        let mut u = Usage::default();
        (0..40).for_each(|_| u.observe(0.025, 25e3, 25e3, 25e3));
        (0..4).for_each(|_| u.observe(0.025, 1e3, 1e3, 25e3));
        assert!(u.sent() < 0.45, "{}", u.sent());
    }
}
