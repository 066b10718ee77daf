//! Named distributions for sizes and times.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::fmt;

/// A distribution of a size or a time, in the caller's unit.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Distribution {
    /// Always the same.
    Constant {
        /// The value.
        value: f64,
    },
    /// Uniform in `low..high`.
    Uniform {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// Pareto: P(X > x) = (minimum / x)^shape, so the mean is `minimum * shape / (shape - 1)` if the shape is above 1.
    Pareto {
        /// The least value.
        minimum: f64,
        /// The tail's exponent; below 2 the variance is infinite.
        shape: f64,
    },
    /// Log-normal: the natural logarithm is normal.
    LogNormal {
        /// The median.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
}

/// An invalid distribution.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DistributionError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: f64,
    /// The valid values.
    pub expected: &'static str,
}

impl fmt::Display for DistributionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "distribution: {} is {}: expected {}", self.field, self.value, self.expected)
    }
}
impl std::error::Error for DistributionError {}

impl Distribution {
    /// A Pareto distribution by its mean.
    ///
    /// Errors: as [`Self::check`]; a shape of 1 or less has no mean.
    pub fn pareto_with_mean(mean: f64, shape: f64) -> Result<Self, DistributionError> {
        require("shape", shape, shape > 1.0, "a finite number above 1")?;
        let d = Self::Pareto { minimum: mean * (shape - 1.0) / shape, shape };
        d.check().map(|()| d)
    }

    /// Checks every field. Errors: the first invalid one.
    pub fn check(&self) -> Result<(), DistributionError> {
        let (finite, positive) = ("a finite number, zero or above", "a finite number above zero");
        match *self {
            Self::Constant { value } => require("value", value, value >= 0.0, finite),
            Self::Uniform { low, high } => {
                require("low", low, low >= 0.0, finite)?;
                require("high", high, high >= low, "a finite number not below `low`")
            }
            Self::Exponential { mean } => require("mean", mean, mean > 0.0, positive),
            Self::Pareto { minimum, shape } => {
                require("minimum", minimum, minimum > 0.0, positive)?;
                require("shape", shape, shape > 0.0, positive)
            }
            Self::LogNormal { median, sigma } => {
                require("median", median, median > 0.0, positive)?;
                require("sigma", sigma, sigma >= 0.0, finite)
            }
        }
    }

    /// The mean; infinite if there is none.
    pub fn mean(&self) -> f64 {
        match *self {
            Self::Constant { value } => value,
            Self::Uniform { low, high } => (low + high) / 2.0,
            Self::Exponential { mean } => mean,
            Self::Pareto { minimum, shape } if shape > 1.0 => minimum * shape / (shape - 1.0),
            Self::Pareto { .. } => f64::INFINITY,
            Self::LogNormal { median, sigma } => median * libm::exp(sigma * sigma / 2.0),
        }
    }

    /// Draws a value.
    pub fn sample(&self, random: &mut Random) -> f64 {
        match *self {
            Self::Constant { value } => value,
            Self::Uniform { low, high } => low + (high - low) * random.unit(),
            Self::Exponential { mean } => -mean * libm::log1p(-random.unit()),
            Self::Pareto { minimum, shape } => minimum * libm::pow(1.0 - random.unit(), -1.0 / shape),
            Self::LogNormal { median, sigma } => {
                // Box-Muller: one of its two values, so that a draw does not depend on the number of earlier ones.
                let radius = libm::sqrt(-2.0 * libm::log1p(-random.unit()));
                let normal = radius * libm::cos(2.0 * std::f64::consts::PI * random.unit());
                median * libm::exp(sigma * normal)
            }
        }
    }
}

fn require(field: &'static str, value: f64, ok: bool, expected: &'static str) -> Result<(), DistributionError> {
    if ok && value.is_finite() { Ok(()) } else { Err(DistributionError { field, value, expected }) }
}

/// A seeded random number generator (PCG XSL 128/64 MCG), the same on every machine.
#[derive(Clone, Debug)]
pub struct Random(Pcg64Mcg);

impl Random {
    /// A generator; equal seeds give equal numbers.
    pub fn new(seed: u64) -> Self {
        Self(Pcg64Mcg::seed_from_u64(seed))
    }
    /// Uniform in 0..1.
    pub fn unit(&mut self) -> f64 {
        self.0.random()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_come_out() {
        let all = [
            Distribution::Constant { value: 3.0 },
            Distribution::Uniform { low: 1.0, high: 5.0 },
            Distribution::Exponential { mean: 2.0 },
            Distribution::pareto_with_mean(2.0, 3.0).expect("valid"),
            Distribution::LogNormal { median: 2.0, sigma: 0.5 },
        ];
        for d in all {
            let mut random = Random::new(7);
            let n = 200_000;
            let mean = (0..n).map(|_| d.sample(&mut random)).sum::<f64>() / f64::from(n);
            assert!((mean / d.mean() - 1.0).abs() < 0.02, "{d:?}: {mean} for {}", d.mean());
        }
    }

    #[test]
    fn a_pareto_tail_falls_with_its_shape() {
        let d = Distribution::Pareto { minimum: 1.0, shape: 1.5 };
        let mut random = Random::new(9);
        let n = 200_000;
        let above = (0..n).filter(|_| d.sample(&mut random) > 4.0).count() as f64 / f64::from(n);
        assert!((above / 0.125 - 1.0).abs() < 0.03, "{above}"); // 4^-1.5
    }

    #[test]
    fn bad_fields_are_named() {
        assert_eq!(Distribution::Exponential { mean: 0.0 }.check().map_err(|e| e.field), Err("mean"));
        assert_eq!(Distribution::Uniform { low: 2.0, high: 1.0 }.check().map_err(|e| e.field), Err("high"));
        assert_eq!(Distribution::pareto_with_mean(1.0, 1.0).map_err(|e| e.field), Err("shape"));
        assert!(Distribution::LogNormal { median: f64::NAN, sigma: 0.0 }.check().is_err());
    }
}
