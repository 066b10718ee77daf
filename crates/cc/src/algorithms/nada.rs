//! Network-Assisted Dynamic Adaptation (RFC 8698): one aggregated congestion signal from delay, loss and ECN marks, and
//! a reference rate that ramps up fast on an idle path and changes gradually on a busy one.
//!
//! `nada` computes the signal at the sender from per-packet feedback (section 6.4), `nada-receiver` at the receiver,
//! which sends it in periodic reports (section 4.2). Both share one signal and one rate module.
//!
//! Where the RFC and its authors' code (ns3-rmcat, as of 2019, after draft -05) differ, the RFC is followed; [`Config`]
//! has the parameters for the other. The rate starts at the setup's start rate; the RFC's is RMIN. A packet not covered
//! by feedback is neither received nor lost; in ns3-rmcat it is lost.
//!
//! Additions to the RFC:
//! - the rate is halved when feedback is missing ([`Config::feedback_timeout`]);
//! - delta, the interval between reports, is at most TAU, so that a report after a pause does not cause a large step;
//! - feedback received less than half of DELTA after the last update waits for the next.

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
