//! CCID 2, TCP-like congestion control (RFC 4341): a window of packets, halved on loss and on marks.
//!
//! It is SACK TCP's control without retransmission. As S. Jero, 2013, section 2.2.3.1, measured, it lacks fast recovery
//! and so may take more than TCP: its window may grow in the round trip after a loss. That follows the RFC; the
//! parameter `virtual_recovery` prevents it.

mod ack_ratio;
mod ack_loss;
mod avoidance;
mod burst;
mod config;
mod history;
mod rate;
mod receiver;
mod sender;
mod timeout;
mod window;

#[cfg(test)]
pub(super) mod tests;

pub use avoidance::{Acked, Avoidance, Congestion, Reno};
pub use config::Config;
pub use receiver::Receiver;
pub use sender::WindowSender;

use super::{Requirements, Setup, Spec};
use std::sync::Arc;
use weir_cc::tunable::SetupError;

/// The half at the data's sender.
pub type Sender = WindowSender<Reno>;

/// Requirements of window-based CCIDs on the connection.
pub(super) const REQUIREMENTS: Requirements = Requirements { ack_vector: true, ndp_count: false, elapsed_time: false };

/// The registry's entry.
pub(super) fn spec() -> Spec {
    fn config(setup: &Setup) -> Result<Config, SetupError> {
        let mut config = Config::default();
        config.set_all("ccid 2", &setup.params)?;
        Ok(config)
    }
    Spec {
        number: 2,
        name: "ccid2",
        summary: "TCP-like: a window of packets, halved on loss and on marks",
        source: "RFC 4341",
        requirements: REQUIREMENTS,
        params: Config::params(),
        sender: Arc::new(|setup| {
            let sender = Sender::new(setup, config(setup)?, Reno::default());
            Ok(super::Sender::Ccid2(Box::new(sender)))
        }),
        receiver: Arc::new(|setup| Ok(super::Receiver::Ccid2(Box::new(Receiver::new(setup, &config(setup)?))))),
    }
}
