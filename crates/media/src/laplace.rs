use rand::Rng;
use rand_pcg::Pcg64Mcg;

/// A zero-mean Laplacian deviation, limited on both sides to [`Laplace::CUT`], so that its mean stays zero and a frame
/// keeps at least a tenth of its size or interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Laplace {
    pub(crate) scale: f64,
}

impl Laplace {
    /// The greatest deviation (RFC 8593 leaves this open; at its scale of 0.15 it limits 0.25 % of the values).
    pub(crate) const CUT: f64 = 0.9;

    pub(crate) fn draw(self, rng: &mut Pcg64Mcg) -> f64 {
        // Inverse of the distribution function at u in (-1/2, 1/2).
        let u = ((rng.next_u64() >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64) - 0.5;
        let size = -self.scale * libm::log(1.0 - 2.0 * u.abs());
        size.copysign(u).clamp(-Self::CUT, Self::CUT)
    }

    /// The variance with the limit: 2 b^2 less the part beyond it.
    #[cfg(test)]
    pub(crate) fn variance(self) -> f64 {
        let (b, c) = (self.scale, Self::CUT);
        2.0 * b * b - (-c / b).exp() * 2.0 * b * (b + c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_the_distributions() {
        for scale in [0.05, 0.15, 0.5] {
            let (l, n) = (Laplace { scale }, 400_000);
            let mut rng = Pcg64Mcg::new(3);
            let draws: Vec<_> = (0..n).map(|_| l.draw(&mut rng)).collect();
            let mean = draws.iter().sum::<f64>() / f64::from(n);
            let variance = draws.iter().map(|x| x * x).sum::<f64>() / f64::from(n) - mean * mean;
            let error = 4.0 * (l.variance() / f64::from(n)).sqrt();
            assert!(mean.abs() < error, "{mean} at {scale}");
            assert!((variance / l.variance() - 1.0).abs() < 0.02, "{variance} against {}", l.variance());
            // The median of the absolute deviation is b ln 2.
            let below = draws.iter().filter(|x| x.abs() < scale * 2f64.ln()).count() as f64 / f64::from(n);
            assert!((below - 0.5).abs() < 0.005, "{below}");
        }
    }
}
