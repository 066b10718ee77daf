//! SCReAM, self-clocked rate adaptation for multimedia: a congestion window set by queue delay, loss and ECN, and a
//! media rate that keeps the RTP queue short.
//!
//! [`v1`] is RFC 8298. The estimate of the queue delay is here, where a version 2 can share it.

mod base_delay;
pub mod v1;
