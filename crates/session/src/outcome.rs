//! What a datagram that arrived turned out to be.

use crate::datagram::Kind;
use crate::ids::IncomingId;

/// What [`Endpoint::handle_datagram`](crate::Endpoint::handle_datagram) made of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// RTP of a stream of the call.
    Rtp {
        /// The stream.
        stream: IncomingId,
        /// What the packet is. Padding counts as [`Kind::Media`].
        kind: Kind,
    },
    /// RTCP.
    Rtcp(RtcpOutcome),
    /// It was not taken.
    Refused(Refusal),
}

/// What an RTCP datagram held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RtcpOutcome {
    /// Packets that do not parse.
    pub malformed: u32,
    /// Feedback about sources that are not part of the call.
    pub unknown_source: u32,
    /// Goodbyes of the other end's sources.
    pub goodbyes: u32,
}

/// Why a datagram was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is neither RTP nor RTCP (RFC 7983 has other protocols on the same port).
    NotRtp,
    /// It does not parse as RTP.
    Malformed,
    /// Its source is not part of the call, or on probation (RFC 3550, section 6.2.1).
    UnknownSource,
    /// This end does not receive media, or not what this packet carries.
    NotWanted,
}

impl Outcome {
    /// Whether it was RTP.
    pub const fn is_rtp(&self) -> bool {
        !matches!(self, Self::Rtcp(_))
    }
    /// Whether all of it belongs to the call, so that where it came from is where the other end is.
    pub const fn is_of_call(&self) -> bool {
        match self {
            Self::Rtp { .. } => true,
            Self::Rtcp(r) => r.malformed == 0 && r.unknown_source == 0,
            Self::Refused(_) => false,
        }
    }
    /// Goodbyes of the other end's sources.
    pub const fn goodbyes(&self) -> u32 {
        if let Self::Rtcp(r) = self { r.goodbyes } else { 0 }
    }
}
