//! TCP senders and receivers.

mod segment;

pub use segment::{SackBlock, TcpSegment};
