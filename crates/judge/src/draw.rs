//! Draws of generated links.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

/// Draws of one link.
pub(crate) struct Draw(Pcg64Mcg);

impl Draw {
    /// Draws of the link with a number, of a seed.
    pub(crate) fn of(seed: u64, number: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed.wrapping_mul(1 << 32).wrapping_add(number)))
    }

    /// Uniform in the logarithm.
    pub(crate) fn log(&mut self, (low, high): (f64, f64)) -> f64 {
        let (low, high) = (libm::log(low), libm::log(high));
        libm::exp(low + (high - low) * self.0.random::<f64>())
    }

    /// A whole number from 0 to `n` - 1.
    pub(crate) fn below(&mut self, n: u32) -> u32 {
        self.0.random_range(0..n)
    }

    /// `rate = { steps = ... }`: rates of `over` times `rate`, each for a time in s of `time`, up to `end`.
    pub(crate) fn steps(&mut self, rate: f64, over: (f64, f64), time: (f64, f64), end: f64) -> String {
        let (mut at, mut steps) = (0.0, Vec::new());
        while at < end {
            steps.push(format!("{{ at = \"{at:.3} s\", rate = \"{:.0} bps\" }}", rate * self.log(over)));
            at += self.log(time);
        }
        format!("rate = {{ steps = [{}] }}\n", steps.join(", "))
    }
}
