//! CCID 5: CCID 2 with CUBIC's window (RFC 9438).
//!
//! No document defines it, and IANA has not assigned the number: it is that of G. Renker's experiment in the Linux DCCP
//! test tree (S. Jero, 2013, section 2.2.3.1). Only the growth of the window in congestion avoidance and its reduction
//! differ from CCID 2; packets on the wire do not.

mod cubic;

#[cfg(test)]
mod tests;

pub use super::ccid2::Receiver;
pub use cubic::Cubic;
pub use weir_cc::tcp::CubicConfig as Config;

use super::ccid2::{Config as Shared, REQUIREMENTS, WindowSender};
use super::{Setup, Spec};
use std::sync::Arc;
use weir_cc::tunable::SetupError;

/// The half at the data's sender.
pub type Sender = WindowSender<Cubic>;

/// CUBIC's parameters and those of CCID 2, from one list of names.
fn config(setup: &Setup) -> Result<(Config, Shared), SetupError> {
    let own = Config::params();
    let (cubic, shared): (Vec<_>, Vec<_>) = setup.params.iter().cloned().partition(|p| own.iter().any(|o| o.name == p.0));
    let mut both = (Config::default(), Shared::default());
    both.0.set_all("ccid 5", &cubic)?;
    both.1.set_all("ccid 5", &shared)?;
    Ok(both)
}

/// The registry's entry.
pub(super) fn spec() -> Spec {
    Spec {
        number: 5,
        name: "ccid5",
        summary: "CUBIC: CCID 2 with a window that grows by the time since congestion; not registered with IANA",
        source: "RFC 9438 in RFC 4341's frame; S. Jero, 2013, section 2.2.3.1",
        requirements: REQUIREMENTS,
        params: Config::params().into_iter().chain(Shared::params()).collect(),
        sender: Arc::new(|setup| {
            let (cubic, shared) = config(setup)?;
            Ok(super::Sender::Ccid5(Box::new(Sender::new(setup, shared, Cubic::new(cubic)))))
        }),
        receiver: Arc::new(|setup| Ok(super::Receiver::Ccid5(Box::new(Receiver::new(setup, &config(setup)?.1))))),
    }
}
