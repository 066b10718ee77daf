//! Session descriptions of a call (RFC 8866), offered and answered (RFC 3264): one video stream, RTP and RTCP on one port
//! (RFC 5761), keys by SDES (RFC 4568), over plain datagrams or DCCP over UDP (RFC 5762 and 6773), there in the clear. There is no DTLS-SRTP and no ICE: a peer that insists on them is told so.

mod agree;
mod read;
mod write;

pub use agree::Agreement;
pub(crate) use agree::DCCP_PORT;

use crate::srtp::SrtpKey;
use std::net::SocketAddr;
use weir_media::VideoCodec;

/// Most bytes of a description.
pub const MAX_LENGTH: usize = 1 << 16;

/// Why a description cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SdpError {
    /// It does not follow SDP's grammar.
    #[error("SDP: {0}")]
    Syntax(String),
    /// A field says what cannot be.
    #[error("SDP: {field} is {value:?}: expected {expected}")]
    Value {
        /// The field.
        field: &'static str,
        /// What stands there.
        value: String,
        /// What may stand there.
        expected: String,
    },
    /// Something is missing.
    #[error("SDP: {field} is missing: {way_out}")]
    Missing {
        /// The field.
        field: &'static str,
        /// What would help.
        way_out: &'static str,
    },
    /// The two ends have nothing in common.
    #[error("the other end and this one share no {what}: it has {theirs}, this end has {ours}")]
    NothingShared {
        /// Of what.
        what: &'static str,
        /// The other end's.
        theirs: String,
        /// This end's.
        ours: String,
    },
}

pub(crate) fn wrong(field: &'static str, value: impl ToString, expected: impl ToString) -> SdpError {
    let mut value = value.to_string();
    // What a hostile peer sends is not to fill the screen.
    if value.len() > 80 {
        value = value.chars().take(80).collect::<String>() + "...";
    }
    SdpError::Value { field, value, expected: expected.to_string() }
}

/// Which way media go, as the describing end sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// Both.
    #[default]
    SendReceive,
    /// It sends alone.
    Send,
    /// It receives alone.
    Receive,
    /// Neither.
    Inactive,
}

impl Direction {
    const ALL: [Self; 4] = [Self::SendReceive, Self::Send, Self::Receive, Self::Inactive];

    const fn name(self) -> &'static str {
        match self {
            Self::SendReceive => "sendrecv",
            Self::Send => "sendonly",
            Self::Receive => "recvonly",
            Self::Inactive => "inactive",
        }
    }
    /// Whether it sends.
    pub const fn sends(self) -> bool {
        matches!(self, Self::SendReceive | Self::Send)
    }
    /// Whether it receives.
    pub const fn receives(self) -> bool {
        matches!(self, Self::SendReceive | Self::Receive)
    }
    /// Of these two wishes.
    pub const fn of(sends: bool, receives: bool) -> Self {
        match (sends, receives) {
            (true, true) => Self::SendReceive,
            (true, false) => Self::Send,
            (false, true) => Self::Receive,
            (false, false) => Self::Inactive,
        }
    }
}

/// What a payload type stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// Video of this codec, with the value of its `a=fmtp`.
    Video(VideoCodec, Option<String>),
    /// Retransmission (RFC 4588) of this payload type.
    Retransmission(u8),
    /// Repair packets (RFC 8627).
    FlexFec,
    /// Repair packets by a Reed-Solomon code, of Weir's own.
    ReedSolomon,
}

/// Feedback messages that may be used.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Feedback {
    /// Generic NACK (RFC 4585).
    Nack,
    /// Picture loss indication (RFC 4585).
    Pli,
    /// Full intra request (RFC 5104).
    Fir,
    /// Temporary maximum bit rate (RFC 5104).
    Tmmbr,
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01.
    TransportWide,
    /// RFC 8888.
    CongestionControl,
    /// draft-alvestrand-rmcat-remb-03.
    Remb,
}

impl Feedback {
    /// All of them, with their values in `a=rtcp-fb`.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Nack, "nack"),
        (Self::Pli, "nack pli"),
        (Self::Fir, "ccm fir"),
        (Self::Tmmbr, "ccm tmmbr"),
        (Self::TransportWide, "transport-cc"),
        (Self::CongestionControl, "ack ccfb"),
        (Self::Remb, "goog-remb"),
    ];
}

/// Header extensions that Weir writes and reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extension {
    /// Transport-wide sequence number.
    TransportSequence,
    /// Absolute send time.
    AbsSendTime,
}

impl Extension {
    /// All of them, with their URIs.
    pub const ALL: [(Self, &'static str); 2] = [
        (Self::TransportSequence, "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"),
        (Self::AbsSendTime, "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"),
    ];
}

/// Which end of a DCCP connection connects (RFC 5762, section 5.3; RFC 4145).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Setup {
    /// The describing end.
    Active,
    /// The other one.
    Passive,
    /// Either.
    Either,
}

impl Setup {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Active, "active"), (Self::Passive, "passive"), (Self::Either, "actpass")];

    /// What an answer to this offer says.
    const fn answer(self) -> Self {
        match self {
            Self::Active => Self::Passive,
            Self::Passive | Self::Either => Self::Active,
        }
    }
}

/// A DCCP connection that carries a call, as one end describes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DccpMedia {
    /// The end's DCCP port; UDP's is that of its address.
    pub port: u16,
    /// Which end connects.
    pub setup: Setup,
}

/// One end's description of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// Number of the session at its end.
    pub session: u64,
    /// Where RTP and RTCP are to be sent.
    pub address: SocketAddr,
    /// Which way media go.
    pub direction: Direction,
    /// Payload types, the preferred one first.
    pub payloads: Vec<(u8, Payload)>,
    /// Feedback messages.
    pub feedback: Vec<Feedback>,
    /// Header extensions by their identifiers.
    pub extensions: Vec<(u8, Extension)>,
    /// Keys by their tags, the preferred one first; none sends in the clear.
    pub keys: Vec<(u32, SrtpKey)>,
    /// The source of its media.
    pub ssrc: Option<u32>,
    /// The source of its repair packets.
    pub repair_ssrc: Option<u32>,
    /// The source of its retransmissions.
    pub retransmission_ssrc: Option<u32>,
    /// Its canonical name.
    pub cname: Option<String>,
    /// The DCCP connection that carries it; `None` for plain datagrams.
    pub dccp: Option<DccpMedia>,
    /// Whether RTP and RTCP share a port.
    pub rtcp_mux: bool,
    /// The controller of what it sends, where it is Weir.
    pub controller: Option<String>,
}

#[cfg(test)]
mod tests;
