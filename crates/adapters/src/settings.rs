//! Settings of the application.

use weir_cc::{Limits, Setup};
use weir_units::{DataRate, Timestamp};

/// Limits, start rate and parameters of a controller.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Bounds on the media rate.
    pub limits: Limits,
    /// Media rate before the first feedback.
    pub start_rate: DataRate,
    /// Seed of controllers that use random numbers.
    pub seed: u64,
    /// Parameters by name, as in [`Setup::params`].
    pub params: Vec<(String, f64)>,
}

impl Default for Settings {
    /// From 50 kbit/s to 10 Mbit/s, beginning with 300 kbit/s.
    fn default() -> Self {
        Self {
            limits: Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_mbps(10) },
            start_rate: DataRate::from_kbps(300),
            seed: 1,
            params: Vec::new(),
        }
    }
}

impl Settings {
    pub(crate) fn setup(&self) -> Setup {
        Setup {
            limits: self.limits,
            start_rate: self.start_rate,
            now: Timestamp::ZERO,
            seed: self.seed,
            params: self.params.clone(),
        }
    }
}
