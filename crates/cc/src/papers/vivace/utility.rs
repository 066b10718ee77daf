//! The utility of an interval.

use super::config::Config;
use super::interval::Interval;

/// x^t - b x max(0, growth) - c x loss, with the rate that was sent in Mbit/s.
pub(super) fn of(config: &Config, interval: &Interval) -> f64 {
    let x = interval.sent_rate() / 1e6;
    let growth = interval.delay_slope().map_or(0.0, |(slope, rest)| {
        // A line within its own error is flat. The program divides the error by the mean round-trip time, about this span.
        if slope.abs() * interval.span() > rest { slope.max(0.0) } else { 0.0 }
    });
    libm::pow(x, config.exponent) - config.latency_weight * x * growth - config.loss_weight * x * interval.loss()
}
