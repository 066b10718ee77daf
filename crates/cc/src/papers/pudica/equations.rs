//! The paper's equations.

use super::config::Config;

/// A frame's bandwidth utilisation ratio (equation 1); durations in seconds.
pub(super) fn utilisation(delay: f64, least_delay: f64, interval: f64) -> f64 {
    (delay - least_delay).max(0.0) / interval
}

/// The pace multiplier rho (equation 2): a frame is sent in the share 1 / rho of the interval.
pub(super) fn pace(config: &Config, utilisation: f64, greatest: f64) -> f64 {
    (config.pacing / utilisation.min(1.0)).min(greatest)
}

/// Time that a probe packet adds to the utilisation, in seconds (equation 4): its queueing delay, less what the frame or the probe before it
/// has been counted for. `since_frame` is H, from the arrival of the frame's last packet.
pub(super) fn probe_delay(queueing: f64, since_frame: f64, spacing: f64) -> f64 {
    queueing.min(since_frame).min(spacing).max(0.0)
}

/// A frame of the window of the smoothed utilisation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// R_k, corrected.
    pub(super) utilisation: f64,
    /// B_k in bit/s: of what arrived.
    pub(super) bps: f64,
}

/// The weight of the `k`-th sample of a window, the oldest of which is the first (equations 12 to 14).
pub(super) fn weight(sample: &Sample, k: usize) -> f64 {
    (sample.utilisation + 1.0).min(2.0) * (sample.bps / 1e6 + 10.0).min(50.0) * (k as f64 + 20.0)
}

/// The smoothed utilisation (equations 6 and 15) at the bitrate `bps`, oldest sample first; `None` without samples.
pub(super) fn smoothed(samples: impl Iterator<Item = Sample>, bps: f64) -> Option<f64> {
    let (mut sum, mut weights) = (0.0, 0.0);
    for (k, s) in samples.enumerate().map(|(k, s)| (k + 1, s)) {
        let w = weight(&s, k);
        sum += w * s.utilisation * bps / s.bps;
        weights += w;
    }
    (weights > 0.0).then(|| sum / weights)
}

/// The multiplicative increase xi (equation 8).
pub(super) fn increase(config: &Config, smoothed: f64) -> f64 {
    let room = (config.threshold + 1.0) / 2.0 - smoothed;
    (config.increase * room / smoothed).clamp(0.0, config.greatest_increase)
}

/// The step A in bit/s (equation 10), with I of section 4.2. `frames` is tau, `greatest` is B_max.
pub(super) fn step(config: &Config, bps: f64, greatest: f64, frames: u32) -> f64 {
    let (rate, greatest) = (bps / 1e6, greatest / 1e6);
    // The logarithm is that of a rate in Mbit/s, which is not positive up to 1.
    let rise = 2.0 * f64::from(frames) / libm::log(rate.max(core::f64::consts::E));
    let linear = (greatest + rise) * config.decrease / 2.0;
    (linear - config.decrease * rate).min(config.greatest_step * rate) * 1e6
}

/// The bitrate that drains a queue of `queued` bytes (equation 11), in bit/s; not positive where the queue is too long for the time.
pub(super) fn draining(config: &Config, receiving: f64, queued: f64) -> f64 {
    config.threshold * receiving - queued * 8.0 / config.drain.as_secs_f64()
}
