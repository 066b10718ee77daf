//! The outcome of a received datagram.
//!
//! `handle_datagram` returns the kind of the datagram, so that the caller never parses it again.

use crate::datagram::Kind;
use crate::ids::IncomingId;

/// Result of [`Endpoint::handle_datagram`](crate::Endpoint::handle_datagram).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// RTP of a stream of the call.
    Rtp {
        /// The stream.
        stream: IncomingId,
        /// The packet's kind. Padding counts as [`Kind::Media`].
        kind: Kind,
    },
    /// RTCP.
    Rtcp(RtcpOutcome),
    /// It was not accepted.
    Refused(Refusal),
}

/// Contents of an RTCP datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RtcpOutcome {
    /// Packets that do not parse.
    pub malformed: u32,
    /// Feedback about sources that do not belong to the call.
    pub unknown_source: u32,
    /// BYEs of the other end's sources.
    pub goodbyes: u32,
    /// Changes of the addresses that the other end offers
    /// ([`RemoteEnd::offered_addresses`](crate::RemoteEnd::offered_addresses)).
    pub offers: u32,
}

/// Why a datagram was not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is neither RTP nor RTCP (RFC 7983 allows other protocols on the same port).
    NotRtp,
    /// It does not parse as RTP.
    Malformed,
    /// Its source does not belong to the call, or is on probation (RFC 3550, section 6.2.1).
    UnknownSource,
    /// This end receives no media, or not this kind of packet.
    NotWanted,
}

impl Outcome {
    /// Whether it was RTP.
    pub const fn is_rtp(&self) -> bool {
        !matches!(self, Self::Rtcp(_))
    }
    /// Whether all of it belongs to the call, so that its source address is the other end's.
    pub const fn is_of_call(&self) -> bool {
        match self {
            Self::Rtp { .. } => true,
            Self::Rtcp(r) => r.malformed == 0 && r.unknown_source == 0,
            Self::Refused(_) => false,
        }
    }
    /// BYEs of the other end's sources.
    pub const fn goodbyes(&self) -> u32 {
        if let Self::Rtcp(r) = self { r.goodbyes } else { 0 }
    }
}
