//! Configuration and counters of a UDP port with connections.

use crate::udp::{UdpConfig, UdpCounters};
use serde::Serialize;

/// How a port works.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortConfig {
    /// The UDP socket. ICMP errors are always enabled.
    pub udp: UdpConfig,
    /// Connections in any state. Those opened by others have places ([`weir_admission::Doors`]): a quarter are of strangers,
    /// which have sent no data, and the rest of those that have. Beyond it, the one longest without data of the source that
    /// holds most is reset, so that a newcomer always gets in; this end opens no more.
    pub max_connections: usize,
    /// Of those that have sent data, the most of one source: an IPv4 address, or an IPv6 network of 64 bits. Further ones
    /// stay among the strangers.
    pub max_per_source: usize,
    /// Maximum connections open and not yet accepted; beyond it, Requests are answered by Too Busy.
    pub backlog: usize,
    /// Real-time priority (SCHED_FIFO, from 1 on) requested for the port's thread, for busy machines.
    pub realtime: Option<u8>,
}

impl Default for PortConfig {
    fn default() -> Self {
        let udp = UdpConfig { errors: true, buffer: Some(4 << 20), ..UdpConfig::default() };
        Self { udp, max_connections: 10_000, max_per_source: 10_000, backlog: 128, realtime: None }
    }
}

/// Counters of a port, in addition to those of its connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct PortCounters {
    /// Datagrams of no connection.
    pub strays: u64,
    /// Datagrams too short for a DCCP header.
    pub malformed: u64,
    /// Connections accepted from outside, up to the end of the handshake.
    pub accepted: u64,
    /// Connections reset because too many waited to be accepted when they opened.
    pub turned_away: u64,
    /// Connections reset because another one got their place.
    pub gave_way: u64,
    /// ICMP errors about a connection's packets.
    pub path_errors: u64,
    /// ICMP errors about packets that no connection sent recently.
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
