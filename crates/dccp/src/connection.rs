//! One end of a connection (RFC 4340, section 8): what it is made from, and what it tells.

mod config;
mod state;

pub use config::{Ccids, Config};
pub use state::{Counters, Datagram, End, EndReason, Received, SendError, State, Transmit};
