//! The ten packet types on the wire (RFC 4340, section 5).

mod checksum;
mod data_checksum;
mod parse;
mod reset;
mod sequence;
mod service_code;
mod write;

pub use checksum::{Coverage, PROTOCOL, PseudoHeader, covered_checksum};
pub use data_checksum::data_checksum;
pub use parse::parse;
pub use reset::ResetCode;
pub use sequence::WireSequence;
pub use service_code::{ServiceCode, ServiceCodeError};
pub use write::PacketWriter;

use crate::option::Options;
use core::fmt;

/// DCCP-UDP's own port (RFC 6773, section 3.8): for a service of the whole system. Applications take an ephemeral one and
/// tell it by other means.
pub const DCCP_UDP_PORT: u16 = 6_511;
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
    /// On a Request or a Response, no bytes are no data; on the others they are a datagram of no bytes (section 5.4).
    pub const fn may_carry_data(self) -> bool {
        matches!(self, Self::Request | Self::Response | Self::Data | Self::DataAck)
    }
    /// Whether it always carries a datagram of the application's, be it one of no bytes.
    pub const fn is_data(self) -> bool {
        matches!(self, Self::Data | Self::DataAck)
    }
    /// Whether it is a non-data packet, which NDP Count counts (RFC 4340, section 7.7). Requests and Responses are none,
    /// whether there are data in them or not.
    pub const fn is_non_data(self) -> bool {
        !self.may_carry_data()
    }
}

impl fmt::Display for PacketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DCCP-{self:?}")
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
    /// Data Offset is smaller than the type's header or larger than the packet, or reaches into what is carried as a
    /// length only.
    #[error("data offset of {offset} bytes is not between the header's {header} and the packet's {packet}")]
    DataOffset {
        /// What Data Offset says, in bytes.
        offset: usize,
        /// The least.
        header: usize,
        /// The most.
        packet: usize,
    },
    /// CsCov asks for more data than the packet has (RFC 4340, section 9.2: such packets are ignored).
    #[error("checksum coverage {coverage} reaches past the packet's {data} bytes of data")]
    ChecksumCoverage {
        /// What CsCov says.
        coverage: u8,
        /// Bytes of data, those carried as a length only among them.
        data: usize,
    },
}

#[cfg(test)]
mod tests;
