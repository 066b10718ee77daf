//! Network-Assisted Dynamic Adaptation (RFC 8698): one aggregated congestion signal out of delay, loss and
//! ECN marks, and a reference rate that is ramped up fast on an idle path and steered gradually on a busy one.
//!
//! `nada` computes the signal at the sender out of per-packet feedback (section 6.4), `nada-receiver` at the
//! receiver, which tells it in periodic reports (section 4.2). Both share one signal and one rate module.
//!
//! Where the RFC and the code of its authors (ns3-rmcat, as of 2019, after draft -05) differ, the RFC is
//! followed; [`Config`] says at each parameter how to get the other. The rate starts at the setup's start rate; the
//! RFC's is RMIN. A packet that no feedback covers is neither received nor lost; ns3-rmcat has it lost.
//!
//! Not in the RFC, and added here:
//! - the rate is halved when feedback stays away ([`Config::feedback_timeout`]);
//! - delta, the interval between reports, counts as at most TAU, so that a report after a pause does not
//!   make a leap;
//! - feedback that comes less than half of DELTA after the last update waits for the next one.

mod base_delay;
mod config;
pub(crate) mod loss_intervals;
mod rate;
mod receiver;
mod sender;
mod signal;
mod window;

pub use config::Config;
pub use receiver::NadaReceiver;
pub use sender::Nada;
