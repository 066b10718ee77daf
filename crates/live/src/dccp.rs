//! DCCP over UDP (RFC 6773) on real sockets, in the manner of datagram sockets.
//!
//! A [`DccpSocket`] is one connection: [`DccpSocket::connect`] opens it, a [`DccpListener`] accepts those of others. Both
//! block by default, as sockets of the standard library do, and need not. Data that congestion control holds back
//! wait in the connection's send queue; where that is full, [`DccpSocket::send`] says that it would block, so that an
//! application with something newer to say can do as it thinks best.
//!
//! Connections live on a [`DccpPort`], a UDP port with a thread that receives, and keeps timers. What an application sends
//! leaves from its own thread where congestion control lets it. Each connection has a lock of its own; the port's table of
//! connections, and what leaves by its socket, have one each. They are taken in this order, and no other: connection, then
//! table or outlet.
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

/// A panic elsewhere is told by other means: see [`DccpError::Driver`].
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
