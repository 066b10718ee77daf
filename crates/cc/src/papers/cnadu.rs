//! Conversational NADU: receiver and sender work together (V. Singh's dissertation, section 4.1.3; Singh, Ott and Curcio,
//! "Rate Control for Conversational Video Communication in Heterogeneous Networks", WoWMoM 2012).
//!
//! The receiver observes whether frames arrive when expected, late, or too late for playout, and reports its estimate
//! (TMMBR) and what it plays next (NADU). The sender has TCP's rate, the percentiles of its round-trip times and the
//! share of packets that missed playout, and chooses a rate between the two estimates.
//!
//! The sources give this structure and few numbers. A default without a source was chosen here, the simplest that does
//! what the sources describe: react to delay before anything is lost.

mod config;
mod lateness;
mod receiver;
mod rtt_history;
mod sender;

pub use config::Config;
pub use receiver::CnaduReceiver;
pub use sender::Cnadu;
pub(crate) use sender::REPORTS;
