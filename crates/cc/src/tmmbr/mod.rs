//! Receiver-driven control by TMMBR alone (V. Singh's dissertation, section 4.1.2; 3GPP TS 26.114): the receiver compares
//! the mean time between frames with the expected one and bounds the sender's rate; the sender follows blindly.
//!
//! The dissertation gives no numbers: the defaults were chosen here.
//!
//! With network assistance (section 7.1) base stations say what their links can carry. TMMBR-A: they report to both ends, and the
//! sender takes the lesser of its own link's capacity and the receiver's request. TMMBR-B: they report to the receiver alone, and
//! the sender takes the lesser of the request and its own estimate.

mod assisted;
mod config;
mod receiver;
mod sender;

pub use assisted::{AssistedConfig, AssistedReceiver, TmmbrA, TmmbrB};
pub use config::Config;
pub use receiver::TmmbrReceiver;
pub use sender::Tmmbr;
