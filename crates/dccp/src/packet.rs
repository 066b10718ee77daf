//! The ten packet types on the wire (RFC 4340, section 5).

mod checksum;
mod data_checksum;
mod parse;
mod sequence;
mod service_code;
mod write;

pub use checksum::{Coverage, PROTOCOL, PseudoHeader, covered_checksum};
pub use data_checksum::data_checksum;
pub use parse::parse;
pub use sequence::WireSequence;
pub use service_code::{ServiceCode, ServiceCodeError};
pub use write::PacketWriter;

pub use crate::packet_type::PacketType;
pub use crate::reset_code::ResetCode;

use crate::option::Options;

/// DCCP-UDP's own port (RFC 6773, section 3.8): for a service of the whole system. Applications take an ephemeral one and
/// tell it by other means.
pub const DCCP_UDP_PORT: u16 = 6_511;
/// Bytes of a generic header with 24-bit and with 48-bit sequence numbers (RFC 4340, section 5.1).
pub const SHORT_HEADER: usize = 12;
/// See [`SHORT_HEADER`].
pub const LONG_HEADER: usize = 16;
/// Most bytes of header and options: what Data Offset can express, in words of four.
pub const MAX_HEADER: usize = 255 * 4;

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

/// Why a datagram is no DCCP packet. RFC 4340 has them all ignored; they are counted.
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
