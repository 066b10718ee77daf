//! Session descriptions of a call (RFC 8866), offered and answered (RFC 3264): streams of audio and video, RTP and RTCP
//! on one port (RFC 5761), keys by SDES (RFC 4568), over plain datagrams or, unencrypted, DCCP over UDP (RFC 5762 and
//! 6773).
//!
//! Several sections share one transport (BUNDLE, RFC 9143). An offer gives the first a port and the others none
//! (`a=bundle-only`), so that an answerer without BUNDLE takes one stream. Encodings of a simulcast are named by
//! `a=rid` and `a=simulcast` (RFC 8851 and 8853). ICE (RFC 8839) is used if both ends describe it. There is no DTLS-SRTP: the
//! error says so if a peer requires it.

mod agree;
mod choose;
mod ice;
mod lines;
mod multipath;
mod read;
mod section;
mod simulcast;
mod transport;
mod write;

pub use agree::{AgreedEncoding, AgreedStream, Agreement};
pub use ice::IceDescription;
pub(crate) use transport::DCCP_PORT;

use crate::srtp::SrtpKey;
use std::fmt;
use std::net::SocketAddr;
use weir_media::VideoCodec;
use weir_media::audio::AudioCodec;
use weir_session::Label;
use weir_session::allocation::MediaKind;

/// Maximum bytes of a description.
pub const MAX_LENGTH: usize = 1 << 16;
/// Maximum bytes of a line; the longest are parameter sets of H.264.
pub const MAX_LINE: usize = 4_096;
/// Maximum sections (`m=`).
pub const MAX_SECTIONS: usize = 16;
/// Maximum encodings of a section (`a=rid`).
pub const MAX_ENCODINGS: usize = 8;

/// Why a description cannot be used. `line` counts from 1; 0 if no single line is at fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SdpError {
    /// It violates SDP's grammar.
    #[error("SDP{}: {what}", Place(.line))]
    Syntax {
        /// Its line.
        line: usize,
        /// The fault.
        what: String,
    },
    /// A field has a value that it cannot have.
    #[error("SDP{}: {field} is {value:?}: expected {expected}", Place(.line))]
    Value {
        /// The field.
        field: &'static str,
        /// Its line.
        line: usize,
        /// The value.
        value: String,
        /// The permitted values.
        expected: String,
    },
    /// Something is missing.
    #[error("SDP{}: {field} is missing: {way_out}", Place(.line))]
    Missing {
        /// The field.
        field: &'static str,
        /// The line at which the incomplete section begins.
        line: usize,
        /// A remedy.
        way_out: &'static str,
    },
    /// The two ends have nothing in common.
    #[error("no common {what}: the other end has {theirs}, this end has {ours}")]
    NothingShared {
        /// The kind of property.
        what: &'static str,
        /// The other end's.
        theirs: String,
        /// This end's.
        ours: String,
    },
}

/// A line in an error; empty if it is 0.
struct Place<'a>(&'a usize);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self.0 == 0 { Ok(()) } else { write!(f, ", line {}", self.0) }
    }
}

fn wrong(field: &'static str, line: usize, value: impl ToString, expected: impl ToString) -> SdpError {
    SdpError::Value { field, line, value: shortened(&value.to_string()), expected: expected.to_string() }
}

/// Limits text of a hostile peer in messages.
fn shortened(text: &str) -> String {
    if text.len() > 80 { text.chars().take(80).collect::<String>() + "..." } else { text.into() }
}

/// Direction of media, as seen by the describing end.
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

/// The meaning of a payload type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Payload {
    /// Video of this codec, with the value of its `a=fmtp`.
    Video(VideoCodec, Option<String>),
    /// Audio of this codec, with the value of its `a=fmtp`.
    Audio(AudioCodec, Option<String>),
    /// Retransmission (RFC 4588) of this payload type.
    Retransmission(u8),
    /// Repair packets (RFC 8627).
    FlexFec,
    /// Repair packets by a Reed-Solomon code, in Weir's own format.
    ReedSolomon,
    /// Repair packets by windows that slide, in Weir's own format.
    Rlc,
}

impl Payload {
    /// The codec, if it is a media payload.
    pub const fn codec(&self) -> Option<StreamCodec> {
        match self {
            Self::Video(codec, _) => Some(StreamCodec::Video(*codec)),
            Self::Audio(codec, _) => Some(StreamCodec::Audio(*codec)),
            _ => None,
        }
    }
}

/// The codec of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StreamCodec {
    /// Video.
    Video(VideoCodec),
    /// Audio.
    Audio(AudioCodec),
}

impl StreamCodec {
    /// Its media kind.
    pub const fn media(self) -> MediaKind {
        match self {
            Self::Video(_) => MediaKind::Video,
            Self::Audio(_) => MediaKind::Audio,
        }
    }
    /// The encoding name in SDP.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Video(codec) => codec.name(),
            Self::Audio(codec) => codec.name(),
        }
    }
    /// The codec of video.
    pub const fn video(self) -> Option<VideoCodec> {
        if let Self::Video(codec) = self { Some(codec) } else { None }
    }
}

impl fmt::Display for StreamCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
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
    /// Capacity vectors (docs/wire/capacity-vector.md).
    CapacityVector,
}

impl Feedback {
    /// All of them, with their values in `a=rtcp-fb`.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Nack, "nack"),
        (Self::Pli, "nack pli"),
        (Self::Fir, "ccm fir"),
        (Self::Tmmbr, "ccm tmmbr"),
        (Self::TransportWide, "transport-cc"),
        (Self::CongestionControl, "ack ccfb"),
        (Self::Remb, "goog-remb"),
        (Self::CapacityVector, "x-weir-capv"),
    ];
}

/// Header extensions that Weir writes and reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Extension {
    /// Transport-wide sequence number.
    TransportSequence,
    /// Absolute send time.
    AbsSendTime,
    /// The media section that a stream belongs to (RFC 9143, section 14).
    Mid,
    /// The encoding of a simulcast (RFC 8852, section 3.1).
    Rid,
    /// The subflow number of multipath RTP (draft-ietf-avtcore-mprtp-03, section 11.1).
    Mprtp,
}

impl Extension {
    /// All of them, with their URIs.
    pub const ALL: [(Self, &'static str); 5] = [
        (Self::TransportSequence, "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"),
        (Self::AbsSendTime, "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"),
        (Self::Mid, "urn:ietf:params:rtp-hdrext:sdes:mid"),
        (Self::Rid, "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"),
        (Self::Mprtp, weir_wire::rtp::mprtp::MPRTP_URI),
    ];
}

/// The end of a DCCP connection that connects (RFC 5762, section 5.3; RFC 4145).
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

    /// The answer to this offer.
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
    /// The end that connects.
    pub setup: Setup,
}

/// Destination of a section's packets, and their protection. Bundled sections share that of one of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaTransport {
    /// Address of RTP and RTCP.
    pub address: SocketAddr,
    /// Keys by their tags, in order of preference; none sends unencrypted.
    pub keys: Vec<(u32, SrtpKey)>,
    /// The DCCP connection that carries it; `None` for plain datagrams.
    pub dccp: Option<DccpMedia>,
    /// Whether RTP and RTCP share a port.
    pub rtcp_mux: bool,
    /// The end's addresses for multipath RTP, the default one first; `None` if it does not support it.
    pub interfaces: Option<Vec<SocketAddr>>,
    /// Its part in ICE; `None` without.
    pub ice: Option<IceDescription>,
}

/// Synchronisation sources of a stream, as far as they are named (`a=ssrc`, RFC 5576).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sources {
    /// Of its media.
    pub media: Option<u32>,
    /// Of its repair packets.
    pub repair: Option<u32>,
    /// Of its retransmissions.
    pub retransmission: Option<u32>,
}

/// One encoding of a simulcast (`a=rid`, RFC 8851).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Encoding {
    /// Its name.
    pub rid: Label,
    /// Payload types that it may have; empty for all of the section.
    pub formats: Vec<u8>,
    /// Its limits.
    pub limits: EncodingLimits,
}

/// Restrictions on an encoding (RFC 8851, section 5); `None` for none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EncodingLimits {
    /// Maximum width in pixels.
    pub max_width: Option<u32>,
    /// Maximum height in pixels.
    pub max_height: Option<u32>,
    /// Maximum frames per second.
    pub max_fps: Option<u32>,
    /// Maximum bits per second, without RTP's headers.
    pub max_br: Option<u32>,
}

/// A stream, or the encodings of one, as one end describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MediaSection {
    /// Its media kind.
    pub kind: MediaKind,
    /// Its name in the bundle, and in packets.
    pub mid: Option<Label>,
    /// Its transport; `None` if it shares the transport of another section.
    pub transport: Option<MediaTransport>,
    /// Direction of its media.
    pub direction: Direction,
    /// Payload types, in order of preference.
    pub payloads: Vec<(u8, Payload)>,
    /// Feedback messages.
    pub feedback: Vec<Feedback>,
    /// Header extensions by their identifiers.
    pub extensions: Vec<(u8, Extension)>,
    /// Its sources. Those of a simulcast are not named: packets have their encoding's name.
    pub sources: Sources,
    /// Encodings sent by the describing end, in order of preference; empty without simulcast.
    pub send: Vec<Encoding>,
    /// Encodings that it receives, in order of preference.
    pub receive: Vec<Encoding>,
}

/// A section that is refused, or that Weir does not support. Its `m=` line is kept: an answer has as many as the offer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefusedSection {
    /// Media type.
    pub media: String,
    /// Protocol.
    pub protocol: String,
    /// Formats.
    pub formats: String,
    /// Its name.
    pub mid: Option<Label>,
}

/// One media description (`m=`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Section {
    /// Of a stream.
    Media(Box<MediaSection>),
    /// Of none.
    Refused(RefusedSection),
}

impl Section {
    /// The section of a stream.
    pub fn media(&self) -> Option<&MediaSection> {
        if let Self::Media(m) = self { Some(m) } else { None }
    }
    /// Its name.
    pub fn mid(&self) -> Option<Label> {
        match self {
            Self::Media(m) => m.mid,
            Self::Refused(r) => r.mid,
        }
    }
}

/// One end's description of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Description {
    /// The session's number at its end.
    pub session: u64,
    /// Canonical name of its sources.
    pub cname: Option<String>,
    /// The controller of what it sends, if it is Weir.
    pub controller: Option<String>,
    /// Names of the sections that share a transport, the one that describes it first; empty without BUNDLE.
    pub bundle: Vec<Label>,
    /// Whether sections that share the transport have no port of their own, as in offers; in answers they have the
    /// shared one.
    pub is_bundle_only: bool,
    /// Media descriptions.
    pub sections: Vec<Section>,
}

impl Description {
    /// The sections of streams.
    pub fn media(&self) -> impl Iterator<Item = &MediaSection> {
        self.sections.iter().filter_map(Section::media)
    }
}

#[cfg(test)]
mod tests;
