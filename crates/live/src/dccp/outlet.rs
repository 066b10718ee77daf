//! The outlet for packets, and its clock.

use super::lock;
use crate::clock::Clock;
use crate::udp::UdpPort;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, OnceLock};
use weir_units::{DataSize, Ecn};

/// Bytes of IP and UDP headers.
const V4_HEADERS: DataSize = DataSize::from_bytes(28);
const V6_HEADERS: DataSize = DataSize::from_bytes(48);

/// The addresses of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Addresses {
    /// The other end's address and UDP port.
    pub(super) peer: SocketAddr,
    /// This host's address, if the port has several.
    pub(super) local_ip: Option<IpAddr>,
}

/// Services of a port to its connections.
#[derive(Debug)]
pub(super) struct Outlet {
    pub(super) clock: Clock,
    pub(super) socket: Mutex<UdpPort>,
    /// Why the port's thread has failed, if it has.
    pub(super) failure: OnceLock<String>,
}

impl Outlet {
    pub(super) fn new(socket: UdpPort) -> Self {
        Self { clock: Clock::starting_now(), socket: Mutex::new(socket), failure: OnceLock::new() }
    }

    /// Sends a packet of no connection with the next [`Self::flush`].
    pub(super) fn send(&self, to: Addresses, bytes: &[u8]) {
        lock(&self.socket).send_from(to.local_ip, to.peer, Ecn::NotEct, bytes);
    }

    /// Passes the packets waiting in the batch to the system.
    pub(super) fn flush(&self) {
        lock(&self.socket).flush();
    }
}

/// Bytes of the headers below DCCP to this address.
pub(super) fn overhead(peer: IpAddr) -> DataSize {
    if peer.to_canonical().is_ipv4() { V4_HEADERS } else { V6_HEADERS }
}
