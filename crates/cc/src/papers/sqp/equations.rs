//! The two equations.

use super::config::Config;

/// S in bit/s, the bandwidth that a frame finds. `expected` is F_max and `frame` F, in bits; `span` is R_end - S_start - Δ_min, `receive`
/// R_end - R_start, in seconds. It is at most `greatest`, and that for a frame whose last packet has not waited.
pub(super) fn sample(expected: f64, frame: f64, span: f64, receive: f64, greatest: f64) -> f64 {
    let gamma = expected / frame;
    let time = span + receive * (gamma - 1.0);
    if time * greatest <= expected { greatest } else { expected / time }
}

/// The change of B = `bandwidth` by a sample, both in bit/s.
pub(super) fn step(config: &Config, bandwidth: f64, sample: f64) -> f64 {
    let filled = config.target * sample / bandwidth;
    config.step.as_bps_f64() * (config.reward * (filled - 1.0) - (1.0 / filled - 1.0))
}
