//! Seeded random numbers.

use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// A random number generator; the same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// A generator with this seed.
    pub fn new(seed: u64) -> Self {
        // Mixed (splitmix64's increment) so that adjacent seeds give unrelated sequences.
        Self(Pcg64Mcg::new((u128::from(seed) << 64) | u128::from(seed ^ 0x9e37_79b9_7f4a_7c15)))
    }

    /// Uniform in [0, 1), 53 bits.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in 0 to `most`, inclusive.
    pub(crate) fn up_to(&mut self, most: u32) -> u32 {
        (self.uniform() * (f64::from(most) + 1.0)) as u32
    }

    /// Exponential of this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Standard normal by Box and Muller, with two draws each time so that the order of draws is fixed.
    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (1.0 - self.uniform(), self.uniform());
        libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(core::f64::consts::TAU * angle)
    }
}
