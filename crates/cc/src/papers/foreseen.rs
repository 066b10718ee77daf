//! The methods of V. Singh, "Protocols and Algorithms for Adaptive Multimedia Systems" (Aalto University, 2015), section 7.2, that
//! follow a map of network coverage alone: a stream of a set rate, the start rate, and what a forecast makes of it. They react to
//! nothing on the path. "No adaptation" is [`Fixed`](crate::algorithms::Fixed).
//!
//! The dissertation has a paragraph on each and no parameters; those are choices made here.

mod late;
mod omniscient;
mod outlook;
mod switching;

pub use late::LateScheduling;
pub use omniscient::Omniscient;
pub use switching::{RateSwitching, SwitchingReceiver};

use crate::spec::Start;
use crate::tunable::SetupError;
use weir_units::{DataRate, Gain, TimeDelta};

const SOURCE: &str = "Singh's dissertation (Aalto, 2015), section 7.2";

crate::tunables! {
    /// Configuration of all three methods.
    pub struct Config {
        /// Share of a capacity that media may use; the rest is for headers and variation of the encoder's rate (guess: 0.95).
        share: f64 = 0.95, 0.1 => 1.0;
        /// How long before a poor region the rate is switched (guess: 1 s; "a few moments before").
        lead: TimeDelta = 1_000.0, 0.0 => 60_000.0;
        /// Rates that the stream is stored at: the start rate divided into as many equal steps (guess: 8).
        levels: f64 = 8.0, 1.0 => 1_000.0;
        /// Interval at which a request is repeated, so that a lost one has no lasting effect, as with TMMBR-A.
        repeat: TimeDelta = 1_000.0, 50.0 => 10_000.0;
        /// Longest time that is sent ahead of a hole (guess: 30 s).
        most_ahead: TimeDelta = 30_000.0, 0.0 => 600_000.0;
        /// Pacing rate as a multiple of the media rate, so that a frame has been sent before the next one.
        pacing_factor: f64 = 2.5, 1.0 => 100.0;
    }
}

impl Config {
    fn pacing(&self) -> Gain {
        Gain::new(self.pacing_factor).unwrap_or(Gain::ONE)
    }

    /// The highest of the stream's rates at most this, but the lowest at least.
    fn level(&self, stream: DataRate, rate: DataRate) -> DataRate {
        let step = stream.as_bps_f64() / libm::floor(self.levels).max(1.0);
        DataRate::from_bps_f64(libm::floor(rate.as_bps_f64() / step.max(1.0)).max(1.0) * step).min(stream)
    }
}

/// Returns the stream's rate, for all three; checks the configuration. Errors: see [`Config::check`].
fn stream(config: &Config, start: &Start) -> Result<DataRate, SetupError> {
    config.check("foreseen")?;
    Ok(start.limits.clamp(start.rate))
}

#[cfg(test)]
mod tests;
