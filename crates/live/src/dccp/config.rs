//! How a UDP port with connections works, and what it counts.

use crate::udp::{UdpConfig, UdpCounters};
use serde::Serialize;

/// How a port works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortConfig {
    /// The UDP socket. Errors by ICMP are always asked for.
    pub udp: UdpConfig,
    /// Connections in any state; more are refused.
    pub max_connections: usize,
    /// Of these, connections that one source has opened, in any state: an IPv4 address, or an IPv6 network of 64 bits. Requests
    /// past them are answered by Too Busy.
    pub max_per_source: usize,
    /// Connections that are open and that nobody has accepted yet; with more, Requests are answered by Too Busy.
    pub backlog: usize,
    /// Real-time priority (SCHED_FIFO, from 1 on) that the port's thread asks for, where a machine is busy.
    pub realtime: Option<u8>,
}

impl Default for PortConfig {
    fn default() -> Self {
        let udp = UdpConfig { errors: true, buffer: Some(4 << 20), ..UdpConfig::default() };
        Self { udp, max_connections: 10_000, max_per_source: 10_000, backlog: 128, realtime: None }
    }
}

/// What a port has seen beside what its connections count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PortCounters {
    /// Datagrams of no connection.
    pub strays: u64,
    /// Datagrams too short for a DCCP header.
    pub malformed: u64,
    /// Connections accepted from outside, up to the end of the handshake.
    pub accepted: u64,
    /// Connections reset because too many waited to be accepted, or the port had all that it may have, when they opened.
    pub turned_away: u64,
    /// ICMP errors about a connection's packets.
    pub path_errors: u64,
    /// ICMP errors about packets that no connection has sent lately.
    pub foreign_errors: u64,
    /// Failures of the socket on receipt.
    pub receive_errors: u64,
    /// Turns of the port's thread.
    pub turns: u64,
    /// Times that others have woken it.
    pub wakes: u64,
    /// The UDP socket's, receiving.
    pub received: UdpCounters,
    /// The UDP socket's, sending.
    pub sent: UdpCounters,
}
