//! SCReAM, self-clocked rate adaptation for multimedia: a congestion window set by queue delay, loss and
//! ECN, and above it a media rate that keeps the RTP queue short.
//!
//! [`v1`] is RFC 8298. What a version 2 shares with it, the estimate of the queue delay, stands here.

mod base_delay;
pub mod v1;
