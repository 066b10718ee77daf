//! Vidaptive: Copa with a sender that is never idle, since padding fills what the encoder leaves, and an encoder that gets a share of its rate.
//!
//! P. Karimi and others, "Vidaptive: Efficient and Responsive Rate Control for Real-Time Video on Variable Networks", arXiv 2309.16869. Of the
//! paper only the abstract was at hand; the rules and numbers are those that the crate `vidaptive` 0.1.0 (ShaJaPas/vidaptive at
//! 07ef2b9) gives for it:
//!
//! | rule | source |
//! |---|---|
//! | packets leave at the congestion controller's rate, within its window; padding where no media is queued | README, *Pacing*, *Backlog filler* |
//! | no padding in the last 8.25 ms before a frame is expected, nor once media reaches its highest bitrate | README, *Dummy filler* |
//! | the encoder gets alpha of the rate; each second alpha moves by a quarter to P / X | README, *Target bitrate*; `encoder_ctrl/alpha.rs` |
//! | X: the 90th percentile of frames' service times, each by rate over target; P: 33 ms | `encoder_ctrl/alpha.rs`, `config.rs` |
//! | a frame's service: from when its first packet is at the queue's head until its last is sent | README, *Frame service time* |
//! | no frame is encoded while the oldest packet has waited for more than 33 ms | README, *Encoder pause* |
//!
//! The congestion controller is [`Copa`] with its default parameters, as in the paper's evaluation. The choices made:
//!
//! - The rate is Copa's window over its standing round trip. A controller cannot stop an encoder here: in a pause it gets the floor. A pause
//!   ends with the next frame; the crate's ends as soon as the queue is empty.
//! - Around any other controller (`NAME+vidaptive`) the rate is the one of its path, or what it gives its encoder; see `filled`.
//! - Padding packets are the session's, with 255 bytes of payload; the crate's have up to 200.
//! - The highest bitrate of media is the application's ceiling.
//! - The frame interval is the time between the last two frames.

mod config;
mod filled;
mod headroom;

#[cfg(test)]
mod tests;

use crate::papers::copa::{Config as CopaConfig, Copa};
use crate::spec::{Algorithm, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
pub use config::Config;
pub use filled::Filled;
use filled::Inner;

/// Vidaptive, sender side: around Copa, as in the paper.
pub type Vidaptive = Filled<Copa>;

/// Copa's own rate: it paces at twice of it.
const COPA: Inner =
    Inner { rate: |copa, _| copa.pacing_rate.as_bps_f64() / 2.0, metrics: ["alpha", "rate_bps", "is_paused"] };

impl Vidaptive {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("vidaptive")?;
        Ok(Self::with(config, Copa::new(CopaConfig::default(), start)?, COPA, start))
    }
}

impl Algorithm for Vidaptive {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        let copa = Copa::specs().remove(0);
        vec![Spec {
            feedback: copa.feedback,
            params: Config::params(),
            ..Spec::new(
                "vidaptive",
                "Copa with padding where the encoder leaves room, and an encoder that gets what lets frames leave in time",
                "Karimi et al., arXiv 2309.16869, by the crate vidaptive 0.1.0",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}
