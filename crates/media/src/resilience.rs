//! Error resilience: selection of mechanisms for a path, and their parameters (V. Singh, "Protocols and Algorithms for
//! Adaptive Multimedia Systems", section 5.1).
//!
//! | mechanism | what it does | who decides |
//! |---|---|---|
//! | retransmission (NACK) | lost packets are requested and retransmitted | the receiver |
//! | reference picture selection (RPS) | the encoder goes back to a picture that has arrived | the receiver |
//! | adaptive slice size (SSA) | a lost packet damages less of a picture | the sender |
//! | unequal error protection (UEP) | repair packets for what others refer to | the sender |
//!
//! A [`Policy`] selects among them by figure 5.4. Each end runs its own with the same inputs: the fraction lost in the
//! receiver's reports, the round-trip time, and a shared configuration.
//!
//! ```
//! use weir_media::resilience::{Conditions, Mechanisms, Policy, PolicyConfig};
//! use weir_units::TimeDelta;
//! let mut policy = Policy::new(PolicyConfig { delay_max: TimeDelta::from_millis(300), ..PolicyConfig::default() });
//! // 1 % of loss on a path of 20 ms.
//! let near = Conditions { loss: 0.01, rtt: TimeDelta::from_millis(40), ..Conditions::default() };
//! assert!(policy.update(&near).mechanisms.contains(Mechanisms::NACK));
//! ```
//!
//! Error resilience: `media::resilience` decides, `session` implements. The receiver switches NACK and references, the
//! sender slice sizes and unequal protection, both by one policy from the same reports; overhead is subtracted from
//! the media rate (`session::resilience::Room`). Figure 5.4 of the dissertation has no scale: the policy's is
//! inferred, as documented there.

mod applicability;
pub mod joint;
mod policy;
mod slices;

pub use applicability::{Applicability, Region};
pub use policy::{Choice, Conditions, Decision, Mechanisms, Policy, PolicyConfig, UnequalProtection};
pub use slices::{SliceSizer, SliceSizes};
