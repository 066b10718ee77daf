//! Receiver-driven control by TMMBR alone (V. Singh's dissertation, section 4.1.2; 3GPP TS 26.114): the receiver
//! compares the mean time between frames with the expected one and limits the sender's rate; the sender only follows.
//!
//! The dissertation gives no numbers: the defaults were chosen here.
//!
//! With network assistance (section 7.1) base stations announce the capacity of their links. TMMBR-A: to both ends, and
//! the sender uses the lesser of its own link's capacity and the receiver's request. TMMBR-B: to the receiver only, and
//! the sender uses the lesser of the request and its own estimate.

mod assisted;
mod config;
mod receiver;
mod sender;

pub use assisted::{AssistedConfig, AssistedReceiver, TmmbrA, TmmbrB};
pub use config::Config;
pub use receiver::TmmbrReceiver;
pub use sender::Tmmbr;
