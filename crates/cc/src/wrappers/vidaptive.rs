//! Vidaptive's pacer around any controller: `NAME+vidaptive`.
//!
//! P. Karimi and others, arXiv 2309.16869: an encoder's rate and that of the packets are two, so that any congestion controller's loop is kept busy
//! by padding. The mechanism is [`Filled`], which `vidaptive` has around Copa.

use crate::Controller;
use crate::papers::vidaptive::{Config as Paper, Filled};
use crate::spec::{Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::TimeDelta;

/// Suffix of a controller's name that adds the pacer.
pub const SUFFIX: &str = "+vidaptive";

crate::tunables! {
    /// Configuration of the pacer; the inner controller has its own. Defaults and sources are those of
    /// [`VidaptiveConfig`](crate::papers::VidaptiveConfig).
    pub struct Config {
        /// Age of the oldest queued packet from which on the encoder gets the floor (tau).
        fill_pause: TimeDelta = 33.0, 1.0 => 10_000.0;
        /// Time in which a frame is to be sent (P).
        fill_service_time: TimeDelta = 33.0, 1.0 => 1_000.0;
        /// Share of the frames that are to be sent in that time (lambda).
        fill_percentile: f64 = 0.9, 0.0 => 1.0;
        /// Interval of updates of alpha, and age up to which a frame counts (D).
        fill_window: TimeDelta = 1_000.0, 100.0 => 60_000.0;
        /// Weight of a new alpha.
        fill_weight: f64 = 0.25, 0.0 => 1.0;
        /// Time without padding before the next frame is expected.
        fill_withhold: TimeDelta = 8.25, 0.0 => 1_000.0;
    }
}

/// The registry entry of a controller with the pacer around it.
pub(crate) fn spec(inner: &Spec) -> Spec {
    let what = "padding where the encoder leaves room";
    inner.wrapped(SUFFIX, what, "Karimi et al., arXiv 2309.16869, by the crate vidaptive 0.1.0", Config::params())
}

/// Separates the parameters of [`Config`] from a setup; the rest are the inner controller's.
pub(crate) fn split(setup: &Setup) -> Result<(Config, Setup), SetupError> {
    let (own, inner) = setup.split(&Config::params());
    Ok((Config::from_params(SUFFIX, &own)?, inner))
}

/// Wraps a controller made from the same start. Errors: see [`Config::check`].
pub fn fill<C: Controller>(config: Config, inner: C, start: &Start) -> Result<Filled<C>, SetupError> {
    config.check(SUFFIX)?;
    let paper = Paper {
        pause: config.fill_pause,
        service_time: config.fill_service_time,
        percentile: config.fill_percentile,
        window: config.fill_window,
        weight: config.fill_weight,
        withhold: config.fill_withhold,
    };
    Filled::around(paper, inner, start)
}

#[cfg(test)]
mod tests;
