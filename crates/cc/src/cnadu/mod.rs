//! Conversational NADU: receiver and sender work together (V. Singh's dissertation, section 4.1.3; Singh, Ott and Curcio,
//! "Rate Control for Conversational Video Communication in Heterogeneous Networks", WoWMoM 2012).
//!
//! The receiver watches whether frames come when they are expected, later, or too late for playout, and tells its
//! estimate (TMMBR) with what it plays next (NADU). The sender has the rate that TCP would send at, the percentiles of its
//! round-trip times and the share of packets that missed playout, and takes a rate between the two estimates.
//!
//! The sources give this structure and few numbers. Where a default below names no source it was chosen here, the
//! simplest that does what the sources describe: give way to delay before anything is lost.

mod config;
mod lateness;
mod receiver;
mod rtt_history;
mod sender;

pub use config::Config;
pub use receiver::CnaduReceiver;
pub use sender::Cnadu;
pub(crate) use sender::REPORTS;
