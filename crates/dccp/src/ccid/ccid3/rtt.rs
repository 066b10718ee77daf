//! The round-trip time at the sender (RFC 5348, sections 4.3 and 4.5).

use super::Config;
use weir_units::TimeDelta;

/// Bounds on samples; Elapsed Time is in units of 10 us.
const MIN: TimeDelta = TimeDelta::from_micros(10);
const MAX: TimeDelta = TimeDelta::from_secs(60);

/// R, and the quantities that damp oscillations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rtt {
    mean: TimeDelta,
    /// The square root of the last sample, and R_sqmean; samples in seconds.
    sample_root: f64,
    root_mean: f64,
}

impl Rtt {
    pub(super) fn first(sample: TimeDelta) -> Self {
        let mean = sample.max(MIN).min(MAX);
        let sample_root = libm::sqrt(mean.as_secs_f64());
        Self { mean, sample_root, root_mean: sample_root }
    }

    pub(super) fn then(self, sample: TimeDelta, config: &Config) -> Self {
        let new = Self::first(sample);
        let (q, q2) = (config.q, config.q2);
        Self {
            mean: self.mean.mul_f64(q) + new.mean.mul_f64(1.0 - q),
            sample_root: new.sample_root,
            root_mean: q2 * self.root_mean + (1.0 - q2) * new.sample_root,
        }
    }

    /// R.
    pub(super) fn get(&self) -> TimeDelta {
        self.mean
    }

    /// X_inst / X.
    pub(super) fn damping(&self) -> f64 {
        self.root_mean / self.sample_root
    }
}
