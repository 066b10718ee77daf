//! Datagrams into and out of an endpoint, and the kinds of packets that they carry.

use crate::ids::OutgoingId;
use weir_units::{DataSize, Ecn, PathId};

/// A received datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The path on which it arrived.
    pub path: PathId,
    /// Its bytes, or only its first ones.
    pub bytes: &'a [u8],
    /// Payload bytes that follow them, carried as a length only.
    pub payload: u32,
    /// The ECN field on arrival.
    pub ecn: Ecn,
}

impl<'a> Datagram<'a> {
    /// A datagram on the first path with all its bytes present.
    pub const fn new(bytes: &'a [u8], ecn: Ecn) -> Self {
        Self { path: PathId::FIRST, bytes, payload: 0, ecn }
    }
    /// UDP payload: the bytes, and those carried as a length only.
    pub const fn size(&self) -> DataSize {
        DataSize::from_bytes(self.bytes.len() as u64 + self.payload as u64)
    }
}

/// A datagram to be sent; its bytes are in the caller's buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The path on which to send it.
    pub path: PathId,
    /// Media payload bytes that follow those in the buffer, carried as a length only.
    pub payload: u32,
    /// UDP payload in bytes: the buffer and the media payload.
    pub size: DataSize,
    /// The ECN field to send it with.
    pub ecn: Ecn,
    /// Its stream and kind; `None` for RTCP.
    pub rtp: Option<(OutgoingId, Kind)>,
}

impl Transmit {
    /// Whether it is RTP rather than RTCP.
    pub const fn is_rtp(&self) -> bool {
        self.rtp.is_some()
    }
    /// Whether it is a repair packet: forward error correction or a retransmission.
    pub const fn is_repair(&self) -> bool {
        matches!(self.rtp, Some((_, Kind::Repair | Kind::Retransmission)))
    }
}

/// The kind of a stream's packet, in either direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// A packet of the source.
    #[default]
    Media,
    /// Padding alone, on the media stream.
    Padding,
    /// Forward error correction, on the repair stream.
    Repair,
    /// A retransmitted media packet, on the retransmission stream.
    Retransmission,
}
