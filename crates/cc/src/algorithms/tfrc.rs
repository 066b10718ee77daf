//! TCP Friendly Rate Control (RFC 5348) as a profile of RTP, in its sender-based variant (section 7).
//!
//! The sender learns each packet's fate from RFC 8888 feedback and takes over the receiver's part: it detects loss
//! events from arrival times, averages loss intervals and measures the receive rate. The RFC's feedback packet, sent
//! once per round-trip time or at a new loss event, is replaced by an internal update; actual feedback may be more
//! frequent.
//!
//! Differences from the RFC, and choices where it is open:
//! - Before the first round-trip time the rate is the setup's start rate, not a packet a second; then it is the initial
//!   rate of section 4.2.
//! - Both the media rate and the pacing rate are X_inst (X of section 4.3 with the damping of section 4.5): media above
//!   the pacing rate would only wait in the RTP queue. The media rate keeps to the application's limits; if its floor
//!   exceeds X_inst, the pacing rate follows it.
//! - s is a moving average of all packets' sizes, RTP header included.
//! - The nofeedback timer is at least [`Config::min_nofeedback`], since feedback on a slow stream may be less frequent
//!   than every four round-trip times.
//! - A packet that arrives after three later ones stays lost; one that arrives before that was never lost.
//! - A packet not covered by feedback is neither received nor lost.

mod config;
mod loss_events;
mod sender;

pub use config::Config;
pub use sender::Tfrc;

#[cfg(test)]
mod tests;
