//! The ten packet types on the wire (RFC 4340, section 5).

mod checksum;
mod parse;
mod write;

pub use checksum::{Coverage, PseudoHeader, covered_checksum};
pub use parse::parse;
pub use write::PacketWriter;

use crate::option::Options;
use core::fmt;
use weir_units::Seq48;

/// Bytes of a generic header with 24-bit and with 48-bit sequence numbers (RFC 4340, section 5.1).
pub const SHORT_HEADER: usize = 12;
/// See [`SHORT_HEADER`].
pub const LONG_HEADER: usize = 16;
/// Most bytes of header and options: what Data Offset can tell, in words of four.
pub const MAX_HEADER: usize = 255 * 4;

/// The type of a packet (RFC 4340, table 1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum PacketType {
    /// A client wants a connection.
    Request = 0,
    /// The server's answer to it.
    Response = 1,
    /// Application data without acknowledgement.
    Data = 2,
    /// An acknowledgement without data.
    Ack = 3,
    /// Both.
    DataAck = 4,
    /// The server wants the client to close.
    CloseReq = 5,
    /// One end closes.
    Close = 6,
    /// The connection is at its end.
    Reset = 7,
    /// Which numbers are current? (RFC 4340, section 7.5.4).
    Sync = 8,
    /// The answer to it.
    SyncAck = 9,
}

impl PacketType {
    /// All of them, by number.
    pub const ALL: [Self; 10] = [
        Self::Request,
        Self::Response,
        Self::Data,
        Self::Ack,
        Self::DataAck,
        Self::CloseReq,
        Self::Close,
        Self::Reset,
        Self::Sync,
        Self::SyncAck,
    ];
    /// The type of this number; `None` where it is reserved.
    pub fn from_number(n: u8) -> Option<Self> {
        Self::ALL.get(usize::from(n)).copied()
    }
    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }
    /// Whether it has an acknowledgement number.
    pub const fn has_acknowledgement(self) -> bool {
        !matches!(self, Self::Request | Self::Data)
    }
    /// Whether it may have 24-bit sequence numbers.
    pub const fn may_be_short(self) -> bool {
        matches!(self, Self::Data | Self::Ack | Self::DataAck)
    }
    /// Whether what follows its options is the application's (RFC 4340, sections 5.2 to 5.7): error text of a Reset is not.
    pub const fn may_carry_data(self) -> bool {
        matches!(self, Self::Request | Self::Response | Self::Data | Self::DataAck)
    }
    /// Whether it counts as a data packet for NDP Count, acknowledgement ratio and loss (RFC 4340, section 7.7 and 11).
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::DataAck)
    }
}

impl fmt::Display for PacketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DCCP-{self:?}")
    }
}

/// A sequence or acknowledgement number as it stands in a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireSequence {
    /// All 48 bits.
    Long(Seq48),
    /// The low 24 bits.
    Short(u32),
}

impl WireSequence {
    /// The whole number; a short one is taken as the nearest to `reference` (RFC 4340, section 7.6).
    pub const fn extend(self, reference: Seq48) -> Seq48 {
        match self {
            Self::Long(s) => s,
            Self::Short(low) => {
                const HALF: i64 = 1 << 23;
                let d = (low as i64 - (reference.get() & 0xff_ffff) as i64).rem_euclid(2 * HALF);
                let d = if d >= HALF { d - 2 * HALF } else { d };
                if d < 0 { reference.sub(d.unsigned_abs()) } else { reference.add(d.unsigned_abs()) }
            }
        }
    }
}

/// What the application on a port does, told when a connection is opened (RFC 4340, section 8.1.2; RFC 5595).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ServiceCode(pub u32);

impl ServiceCode {
    /// No meaning.
    pub const UNSPECIFIED: Self = Self(0);
    /// An RTP video session: `RTPV` (RFC 5762, section 5.2).
    pub const RTP_VIDEO: Self = Self(u32::from_be_bytes(*b"RTPV"));
    /// An RTP audio session: `RTPA`.
    pub const RTP_AUDIO: Self = Self(u32::from_be_bytes(*b"RTPA"));
    /// The one value that no service may have.
    pub const INVALID: Self = Self(u32::MAX);
}

impl fmt::Display for ServiceCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let b = self.0.to_be_bytes();
        if b.iter().all(u8::is_ascii_graphic) {
            write!(f, "SC:{}", b.map(char::from).iter().collect::<std::string::String>())
        } else {
            write!(f, "SC={}", self.0)
        }
    }
}

/// Why a connection was reset (RFC 4340, section 5.6; 12 is RFC 6773's).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ResetCode(pub u8);

macro_rules! reset_codes {
    ($($(#[$doc:meta])* $name:ident = $n:literal, $text:literal;)*) => {
        impl ResetCode {
            $($(#[$doc])* pub const $name: Self = Self($n);)*
            /// Its name in the registry; `None` where it has none.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 { $($n => Some($text),)* _ => None }
            }
        }
    };
}

reset_codes! {
    /// No meaningful code.
    UNSPECIFIED = 0, "Unspecified";
    /// Normal end.
    CLOSED = 1, "Closed";
    /// No progress.
    ABORTED = 2, "Aborted";
    /// There is no such connection.
    NO_CONNECTION = 3, "No Connection";
    /// A valid packet of a type that was not expected; Data 1 is the type.
    PACKET_ERROR = 4, "Packet Error";
    /// A wrong option; Data 1 to 3 are its type and first bytes.
    OPTION_ERROR = 5, "Option Error";
    /// A mandatory option was not understood; Data as before.
    MANDATORY_ERROR = 6, "Mandatory Error";
    /// Nobody listens on the port.
    CONNECTION_REFUSED = 7, "Connection Refused";
    /// The port's service is another.
    BAD_SERVICE_CODE = 8, "Bad Service Code";
    /// The server takes no more connections.
    TOO_BUSY = 9, "Too Busy";
    /// The Init Cookie was wrong or missing.
    BAD_INIT_COOKIE = 10, "Bad Init Cookie";
    /// The other end's congestion control misbehaves.
    AGGRESSION_PENALTY = 11, "Aggression Penalty";
    /// Another connection has this UDP pair of addresses and ports (RFC 6773, section 3.8).
    ENCAPSULATED_PORT_REUSE = 12, "Encapsulated Port Reuse";
}

impl fmt::Display for ResetCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "reset code {}", self.0),
        }
    }
}

/// The generic header's fields that every packet has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// DCCP port that it comes from.
    pub source_port: u16,
    /// DCCP port that it goes to.
    pub destination_port: u16,
    /// Four bits for the sender's CCID.
    pub ccval: u8,
    /// CsCov: how much of the data the checksum covers, 0 to 15 (RFC 4340, section 9.2).
    pub checksum_coverage: u8,
    /// Its type.
    pub packet_type: PacketType,
    /// Its number.
    pub sequence: WireSequence,
    /// The acknowledgement number, where its type has one.
    pub acknowledgement: Option<WireSequence>,
}

/// A packet as it came, borrowed from the datagram.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The header's fields.
    pub header: Header,
    /// The service code of a Request or a Response.
    pub service_code: Option<ServiceCode>,
    /// The reset code and Data 1 to 3 of a Reset.
    pub reset: Option<(ResetCode, [u8; 3])>,
    /// Its options, not yet looked at.
    pub options: Options<'a>,
    /// What follows the options, as far as the datagram's bytes reach.
    pub data: &'a [u8],
}

/// Why a datagram is no DCCP packet. RFC 4340 has them all ignored; counters tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PacketError {
    /// Shorter than a generic header, or than its type's header.
    #[error("{have} bytes are too few for a DCCP header of {need}")]
    Truncated {
        /// Bytes needed.
        need: usize,
        /// Bytes there.
        have: usize,
    },
    /// Types 10 to 15.
    #[error("packet type {0} is reserved")]
    ReservedType(u8),
    /// 24-bit numbers on a type that must have 48.
    #[error("{0} must have 48-bit sequence numbers")]
    ShortSequence(PacketType),
    /// Data Offset is smaller than the type's header or larger than the packet.
    #[error("data offset of {offset} bytes is not between the header's {header} and the packet's {packet}")]
    DataOffset {
        /// What Data Offset says, in bytes.
        offset: usize,
        /// The least.
        header: usize,
        /// The most.
        packet: usize,
    },
}
