//! Answers and events of an allocation's client.

use std::net::{IpAddr, SocketAddr};

/// The meaning of a datagram of the server.
pub(super) enum Received {
    /// A datagram of another end.
    Data(SocketAddr, Vec<u8>),
    /// A message to the client.
    Handled,
    /// Neither.
    Ignored,
}

/// A change of the allocation.
pub(super) enum Event {
    Allocated(SocketAddr),
    NotAllocated,
    Permitted(IpAddr),
    NotPermitted(IpAddr),
    NoChannel(SocketAddr),
}
