//! SCReAM, self-clocked rate adaptation for multimedia: a congestion window set by queue delay, loss and ECN, and a
//! media rate that keeps the RTP queue short.
//!
//! [`v1`] is RFC 8298, [`v2`] draft-ietf-ccwg-rfc8298bis. They share the estimate of the queue delay and the detection of
//! losses.

mod base_delay;
mod loss;
pub(crate) mod v1;
pub(crate) mod v2;
