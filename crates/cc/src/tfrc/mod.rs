//! TCP Friendly Rate Control (RFC 5348) as a profile of RTP, in its sender-based variant (section 7).
//!
//! The sender learns of each packet from RFC 8888 feedback and does the receiver's part itself: it finds loss events
//! in arrival times, averages loss intervals and measures the receive rate. The RFC's feedback packet, once a
//! round-trip time or at a new loss event, is then a moment here and not a message: feedback may come more often.
//!
//! Where this differs from the RFC, or fills in what it leaves open:
//! - Before the first round-trip time the rate is the setup's start rate, not a packet a second; then it is the initial
//!   rate of section 4.2.
//! - Both the media rate and the pacing rate are X_inst (X of section 4.3 with the damping of section 4.5): a media rate
//!   above the pacing rate would only wait in the RTP queue. The media rate keeps to the application's limits, and
//!   where its floor is above X_inst the pacing rate follows it.
//! - s is a moving average of all packets' sizes, RTP header included.
//! - The nofeedback timer is never shorter than [`Config::min_nofeedback`], for feedback on a slow stream may come less
//!   often than four round-trip times.
//! - A packet that comes after three later ones stays lost; one that comes before that never was.
//! - A packet that no feedback covers is neither received nor lost.

mod config;
mod loss_events;
mod loss_intervals;
mod rate;
mod receive_rate;
mod sender;

pub use config::Config;
pub use loss_intervals::{LossIntervals, N as LOSS_INTERVALS};
pub use rate::{AllowedRate, Feedback, MAX_RATE, Terms};
pub use receive_rate::ReceiveRateSet;
pub use sender::Tfrc;

#[cfg(test)]
mod tests;
