//! RRTCC, the receiver-side congestion control that Google first proposed for WebRTC: draft-alvestrand-rtcweb-congestion-02
//! and -03 (2012), ancestors of draft-ietf-rmcat-gcc-02.
//!
//! The receiver models the transit time of frames as d(i) = dL(i) / C + m(i) + v(i), estimates 1 / C and m with a
//! Kalman filter, compares m with a fixed threshold and reports its estimate in TMMBR messages once per second; the
//! sender's own estimate follows loss. Differences from [`GccRemb`](crate::papers::GccRemb): whole frames and their sizes in the
//! filter, the threshold, an increase that depends on the round-trip time, and TFRC in the loss-based rule.
//!
//! The drafts leave most numbers open. "libwebrtc" below is the estimator that they describe, as of 2012 and 2013.

mod config;
mod detector;
mod filter;
mod rate_control;
mod receiver;
mod sender;

pub use config::Config;
pub use receiver::RrtccReceiver;
pub use sender::Rrtcc;
