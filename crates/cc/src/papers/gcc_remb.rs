//! Google Congestion Control with its delay-based half at the receiver (draft-ietf-rmcat-gcc-02, section 3, second
//! version). The receiver filters the delay variation between groups of packets with a Kalman filter, compares it with
//! an adaptive threshold and reports its estimate in REMB messages; the sender limits that estimate by a loss-based
//! rule.
//!
//! The draft is followed. "libwebrtc" below is its receive-side estimator as of 2019, named where the draft is silent
//! or unclear.

mod arrival_filter;
mod config;
mod inter_arrival;
mod overuse;
mod rate_control;
mod receiver;
mod sender;

pub use config::Config;
pub use receiver::GccRembReceiver;
pub use sender::GccRemb;
