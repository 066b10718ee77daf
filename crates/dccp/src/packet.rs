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

/// DCCP-UDP's own port (RFC 6773, section 3.8): for a system-wide service. Applications use an ephemeral one and signal
/// it by other means.
pub const DCCP_UDP_PORT: u16 = 6_511;
/// Bytes of a generic header with 24-bit and with 48-bit sequence numbers (RFC 4340, section 5.1).
pub const SHORT_HEADER: usize = 12;
/// See [`SHORT_HEADER`].
pub const LONG_HEADER: usize = 16;
/// Maximum bytes of header and options: what Data Offset can express, in words of four.
pub const MAX_HEADER: usize = 255 * 4;

/// The generic header's fields that every packet has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Four bits for the sender's CCID.
    pub ccval: u8,
    /// CsCov: how much of the data the checksum covers, 0 to 15 (RFC 4340, section 9.2).
    pub checksum_coverage: u8,
    /// Its type.
    pub packet_type: PacketType,
    /// Its number.
    pub sequence: WireSequence,
    /// The acknowledgement number, if its type has one.
    pub acknowledgement: Option<WireSequence>,
}

/// A received packet, borrowed from the datagram.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// The header's fields.
    pub header: Header,
    /// The service code of a Request or a Response.
    pub service_code: Option<ServiceCode>,
    /// The reset code and Data 1 to 3 of a Reset.
    pub reset: Option<(ResetCode, [u8; 3])>,
    /// Its options, not yet parsed.
    pub options: Options<'a>,
    /// The data after the options, as far as it is in the datagram's bytes.
    pub data: &'a [u8],
}

/// Why a datagram is no DCCP packet. RFC 4340 requires all to be ignored; they are counted.
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
    /// Data Offset is less than the type's header or greater than the packet, or extends into data carried as a length
    /// only.
    #[error("data offset of {offset} bytes is not between the header's {header} and the packet's {packet}")]
    DataOffset {
        /// Data Offset, in bytes.
        offset: usize,
        /// The minimum.
        header: usize,
        /// The maximum.
        packet: usize,
    },
    /// CsCov covers more data than the packet has (RFC 4340, section 9.2: such packets are ignored).
    #[error("checksum coverage {coverage} reaches past the packet's {data} bytes of data")]
    ChecksumCoverage {
        /// CsCov.
        coverage: u8,
        /// Bytes of data, including those carried as a length only.
        data: usize,
    },
}

#[cfg(test)]
mod tests;
