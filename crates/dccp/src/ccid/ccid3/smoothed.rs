//! A rate for applications to follow.

use super::Config;
use weir_units::{TimeDelta, Timestamp};

/// A first-order low-pass in time, with separate constants for rising and falling. In bits per second.
#[derive(Clone, Copy, Debug)]
pub(in crate::ccid) struct Smoothed {
    rise: TimeDelta,
    fall: TimeDelta,
    value: f64,
    at: Timestamp,
}

impl Smoothed {
    pub(in crate::ccid) fn new(config: &Config, now: Timestamp) -> Self {
        Self { rise: config.smooth_rise, fall: config.smooth_fall, value: 0.0, at: now }
    }

    /// Restarts from a rate.
    pub(in crate::ccid) fn start(&mut self, now: Timestamp, rate: f64) {
        (self.value, self.at) = (rate, now);
    }

    /// A rate was in effect until now.
    pub(in crate::ccid) fn update(&mut self, now: Timestamp, rate: f64) {
        let constant = if rate > self.value { self.rise } else { self.fall };
        let passed = now.saturating_since(self.at).ratio(constant).unwrap_or(f64::INFINITY);
        self.value += (rate - self.value) * (1.0 - libm::exp(-passed));
        self.at = now;
    }

    pub(in crate::ccid) fn get(&self) -> f64 {
        self.value
    }
}
