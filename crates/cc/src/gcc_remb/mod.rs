//! Google Congestion Control with its delay-based half at the receiver (draft-ietf-rmcat-gcc-02, section 3, second
//! version): the receiver filters the delay variation between groups of packets with a Kalman filter, compares
//! it with an adaptive threshold and tells its estimate in REMB messages; the sender bounds that estimate by a rule of loss.
//!
//! The draft is followed; "libwebrtc" below is its receive-side estimator as of 2019, named where the draft is
//! silent or cannot be taken by the letter.

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
