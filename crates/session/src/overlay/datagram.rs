//! Datagrams of an overlay, with their addresses.

use core::net::SocketAddr;
use weir_units::{DataSize, Ecn};

/// A datagram to be sent; its bytes are in the caller's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outgoing {
    /// Where to.
    pub to: SocketAddr,
    /// Media payload bytes that follow those in the buffer, carried as a length only.
    pub payload: u32,
    /// UDP payload in bytes: the buffer and the media payload.
    pub size: DataSize,
    /// The ECN field to send it with.
    pub ecn: Ecn,
    /// Whether it is RTP rather than RTCP.
    pub is_rtp: bool,
}

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// Its source address.
    pub from: SocketAddr,
    /// Its bytes, or only its first ones.
    pub bytes: &'a [u8],
    /// Payload bytes that follow them, carried as a length only.
    pub payload: u32,
    /// The ECN field on arrival.
    pub ecn: Ecn,
}

impl Outgoing {
    /// RTCP that is in the buffer.
    pub(super) fn rtcp(to: SocketAddr, out: &[u8]) -> Self {
        let size = DataSize::from_bytes(out.len() as u64);
        Self { to, payload: 0, size, ecn: Ecn::NotEct, is_rtp: false }
    }
}
