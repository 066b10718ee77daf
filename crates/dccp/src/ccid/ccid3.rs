//! CCID 3: TCP-Friendly Rate Control (RFC 4342 over RFC 5348).
//!
//! The sender paces data packets at X, computed from the loss event rate, the round-trip time and the rate lately
//! received; once per round trip the receiver reports the loss intervals that it has seen. Rates count application data
//! without headers (RFC 4342, section 5.3).
//!
//! RFC 4342 builds on RFC 3448, which RFC 5348 replaces. Where they differ, and where they leave a choice:
//! - Initial rate, X_recv_set, data-limited intervals, the nofeedback timer, history discounting to 0.25 and the first
//!   loss interval from the greatest X_recv are those of RFC 5348; so is the damping of oscillations, which it
//!   recommends (section 4.5) and RFC 3448 left open.
//! - Credit for unused send times covers one round trip, the maximum of RFC 5348, section 4.6; RFC 3448 is silent. A
//!   packet consumes its own size of it, not s.
//! - Loss events are distinguished by window counters (RFC 4342, section 10.2), not by nominal arrival times (RFC 5348, section
//!   5.2): the receiver has no round-trip time to compare with.
//! - The sender computes p from Loss Intervals itself, including the length of the first one, since it knows the
//!   round-trip time better (RFC 4342, section 6.1.1, allows both). If a receiver sends only Loss Event Rate, as
//!   Linux's did, its value is used.
//! - Whether an interval was data-limited follows from each packet sent in it (RFC 5348, section 8.2.1, keeps two
//!   instants and calls that a heuristic).
//! - s is a mean over about four loss intervals (RFC 5348, section 4.1), and at least 32 packets.
//! - The receiver also sends feedback two round trips after the last if data was received since (RFC 4342,
//!   section 10.3, suggests a timer): otherwise data received just before a pause would count as lost.
//! - The ECN Nonce Echo is written as zero and ignored: RFC 8311 removes the nonce.
//! - Packets reported corrupt begin loss events at the sender (RFC 4340, section 11.7.2); the receiver's intervals do
//!   not include them.
//! - The open loss interval grows with each packet, including the second: Linux left it unchanged until the next loss,
//!   and connections stayed slow for minutes (S. Jero, 2013, appendix B).
//!
//! The parameter `linux` gives the CCID 3 of Linux 3.x instead, for experiments that ran on it ([`Config::linux`]): X is
//! limited by the last X_recv alone, data-limited or not, and X_recv is measured since the last feedback.

mod config;
mod corrupt;
mod history;
mod intervals;
mod options;
mod packet_size;
mod receiver;
mod reported;
mod rtt;
mod schedule;
mod sender;
mod sent;
mod smoothed;
mod window_counter;

pub use config::Config;
pub use packet_size::{AnySize, PacketSize};
pub use receiver::Receiver;
pub(super) use schedule::Schedule;
pub use sender::Sender;
pub(super) use smoothed::Smoothed;

use super::{Requirements, Spec};
use std::sync::Arc;
use weir_cc::tunable::{ParamInfo, SetupError};

/// Requirements of all CCIDs of this family on the connection.
pub(super) const REQUIREMENTS: Requirements = Requirements { ack_vector: false, ndp_count: true, elapsed_time: true };

/// Its entry in the registry.
pub fn spec() -> Spec {
    Spec {
        number: 3,
        name: "TFRC",
        summary: "the rate of a TCP flow by equation, smoothed over loss intervals",
        source: "RFC 4342, RFC 5348",
        requirements: REQUIREMENTS,
        params: Config::params(),
        sender: Arc::new(|setup| Ok(super::Sender::Ccid3(Box::new(Sender::new(setup)?)))),
        receiver: Arc::new(|setup| Ok(super::Receiver::Ccid3(Box::new(Receiver::new(setup)?)))),
    }
}

type SetAll<'a> = &'a mut dyn FnMut(&[(String, f64)]) -> Result<(), SetupError>;

/// Sets the parameters of a relative of CCID 3: those named in `own` by `set_own`, all others by `set_base`. Errors: a
/// name that neither has, or a value outside its range.
pub(super) fn set_both(
    params: &[(String, f64)],
    own: &[ParamInfo],
    set_own: SetAll<'_>,
    set_base: SetAll<'_>,
) -> Result<(), SetupError> {
    let (mine, base): (Vec<_>, Vec<_>) = params.iter().cloned().partition(|(n, _)| own.iter().any(|p| p.name == n));
    set_own(&mine)?;
    set_base(&base).map_err(|e| match e {
        SetupError::UnknownParam { controller, name, mut known } => {
            known.extend(own.iter().map(|p| p.name));
            SetupError::UnknownParam { controller, name, known }
        }
        other => other,
    })
}

#[cfg(test)]
pub(crate) mod tests;
