//! What goes in and out of an endpoint: datagrams, and the streams that their packets belong to.

use crate::ids::OutgoingId;
use weir_units::{DataSize, Ecn, PathId};

/// A datagram that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// The path that it came by.
    pub path: PathId,
    /// Its bytes, or those of its beginning.
    pub bytes: &'a [u8],
    /// Payload bytes that belong behind them and are carried as a length only.
    pub payload: u32,
    /// The ECN field on arrival.
    pub ecn: Ecn,
}

impl<'a> Datagram<'a> {
    /// A datagram on the first path, all of whose bytes are there.
    pub const fn new(bytes: &'a [u8], ecn: Ecn) -> Self {
        Self { path: PathId::FIRST, bytes, payload: 0, ecn }
    }
}

/// A datagram that is to leave; its bytes are in the buffer that the caller gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The path that it leaves by.
    pub path: PathId,
    /// Media payload bytes that belong behind the buffer's bytes and are carried as a length only.
    pub payload: u32,
    /// UDP payload in bytes: the buffer and the media payload.
    pub size: DataSize,
    /// The ECN field to send it with.
    pub ecn: Ecn,
    /// The stream that it belongs to and what it is there; `None` for RTCP.
    pub rtp: Option<(OutgoingId, Kind)>,
}

impl Transmit {
    /// Whether it is RTP rather than RTCP.
    pub const fn is_rtp(&self) -> bool {
        self.rtp.is_some()
    }
    /// Whether it is a repair packet: forward error correction, or a packet that is sent again.
    pub const fn is_repair(&self) -> bool {
        matches!(self.rtp, Some((_, Kind::Repair | Kind::Retransmission)))
    }
}

/// What a packet of a stream is, in either direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// A packet of the source.
    #[default]
    Media,
    /// Padding alone, on the media stream.
    Padding,
    /// Forward error correction, on the repair stream.
    Repair,
    /// A media packet that is sent again, on the retransmission stream.
    Retransmission,
}
