//! Frame dithering available capacity estimation: receive durations of frames over their send durations, both per byte.

use super::config::Config;

/// More than any capacity, in bytes a second, where durations are too short to be seen.
const MOST: f64 = 1e12;

/// The regression (*Dual-variable EWMA Process Implementation*) and what follows of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fdace {
    count: f64,
    mean_send: f64,
    mean_receive: f64,
    variance_send: f64,
    variance_receive: f64,
    covariance: f64,
    slope: f64,
    /// Bytes a second; NaN before the first sample.
    available: f64,
}

impl Default for Fdace {
    fn default() -> Self {
        Self {
            count: 0.0,
            mean_send: 0.0,
            mean_receive: 0.0,
            variance_send: 0.0,
            variance_receive: 0.0,
            covariance: 0.0,
            slope: 1.0,
            available: f64::NAN,
        }
    }
}

impl Fdace {
    /// SLOPE: 0 where the flow is alone on its bottleneck, 1 where nothing limits it or others take the most.
    pub(super) fn slope(&self) -> f64 {
        self.slope
    }
    /// AVAILABLE, in bytes a second; NaN before the first sample.
    pub(super) fn available(&self) -> f64 {
        self.available
    }

    /// Takes a frame's send and receive durations, in seconds a byte.
    pub(super) fn on_sample(&mut self, config: &Config, send: f64, receive: f64) {
        self.count += 1.0;
        let weight = config.regression_weight.max(1.0 / self.count);
        let (by_send, by_receive) = (send - self.mean_send, receive - self.mean_receive);
        self.mean_send += weight * by_send;
        self.mean_receive += weight * by_receive;
        let keep = 1.0 - weight;
        self.variance_send = keep * (self.variance_send + weight * by_send * by_send);
        self.variance_receive = keep * (self.variance_receive + weight * by_receive * by_receive);
        self.covariance = keep * (self.covariance + weight * by_send * by_receive);
        let rises = self.variance_send > 0.0 && self.covariance > 0.0;
        self.slope = if rises { (self.covariance / self.variance_send).min(1.0) } else { 0.0 };
        self.available = self.estimate(config);
    }

    fn estimate(&self, config: &Config) -> f64 {
        let intercept = (self.mean_receive - self.slope * self.mean_send).max(0.0);
        let mut estimate = self.mean_receive;
        for _ in 0..config.iterations {
            estimate = self.slope * estimate + intercept;
        }
        let both = self.variance_send * self.variance_receive;
        let margin = if both > 0.0 {
            let explained = self.covariance * self.covariance / both;
            config.margin * self.variance_receive.sqrt() * (1.0 - explained)
        } else {
            0.0
        };
        let per_byte = estimate + margin;
        if per_byte > 1.0 / MOST { 1.0 / per_byte } else { MOST }
    }
}
