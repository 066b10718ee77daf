//! Receiver-driven control by TMMBR alone (V. Singh's dissertation, section 4.1.2; 3GPP TS 26.114): the receiver compares
//! the mean time between frames with the expected one and bounds the sender's rate; the sender follows blindly.
//!
//! The dissertation gives no numbers: the defaults were chosen here.

mod config;
mod receiver;
mod sender;

pub use config::Config;
pub use receiver::TmmbrReceiver;
pub use sender::Tmmbr;
