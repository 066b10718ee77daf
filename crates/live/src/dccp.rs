//! DCCP over UDP (RFC 6773) on real sockets, in the manner of datagram sockets.
//!
//! A [`DccpSocket`] is one connection: [`DccpSocket::connect`] opens it, a [`DccpListener`] accepts those of others.
//! Both block by default, like the standard library's sockets. Data held back by congestion control waits in the
//! connection's send queue; if that is full, a non-blocking [`DccpSocket::send`] returns that it would block, so that
//! an application can send newer data instead.
//!
//! Connections belong to a [`DccpPort`], a UDP port with a thread that receives and runs timers. An application's data
//! is sent from its own thread if congestion control permits it. Each connection has its own lock; the port's table of
//! connections and its outlet to the socket have one each. The lock order is: connection, then table or outlet.
//!
//! ```no_run
//! use weir_dccp::connection::Config;
//! use weir_live::dccp::{DccpListener, DccpSocket};
//!
//! let listener = DccpListener::bind("127.0.0.1:0".parse()?, Config::default())?;
//! let client = DccpSocket::connect(listener.local_addr(), Config::default())?;
//! let server = listener.accept()?;
//! client.send(b"hello")?;
//! let mut buffer = [0; 1_500];
//! let length = server.recv(&mut buffer)?;
//! assert_eq!(&buffer[..length], b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! DCCP's sockets: one thread per UDP port, one lock per connection. An application's data is sent from its own
//! thread; the port's thread receives and runs timers. A panic ends only its connection. ICMP errors are accepted only
//! for recently sent packets. A server uses one more thread for any number of connections (`transfer::serve`); the
//! port limits them in total and per source.

mod config;
mod connect;
mod driver;
mod error;
mod handshakes;
mod link;
mod listener;
mod outlet;
mod port;
mod random;
mod resets;
mod shared;
mod socket;
#[cfg(test)]
mod tests;
pub mod transfer;

pub use config::{PortConfig, PortCounters};
pub use error::DccpError;
pub use listener::DccpListener;
pub use port::DccpPort;
pub use socket::{DccpSocket, Interest, SocketId};
pub use weir_dccp::listener::ListenerConfig;
pub use weir_dccp::packet::DCCP_UDP_PORT;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A panic elsewhere is reported separately: see [`DccpError::Driver`].
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
