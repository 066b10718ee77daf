use super::{
    Coverage, Header, LONG_HEADER, Packet, PacketError, PacketType, ResetCode, SHORT_HEADER, ServiceCode, WireSequence,
};
use crate::option::Options;
use weir_units::Seq48;

fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([b[at], b[at + 1]])
}
fn u24_at(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, b[at], b[at + 1], b[at + 2]])
}
fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}
fn seq48_at(b: &[u8], at: usize) -> Seq48 {
    Seq48::new(u64::from(u16_at(b, at)) << 32 | u64::from(u32_at(b, at + 2)))
}

/// Parses a datagram as a DCCP packet, with the checks of RFC 4340, section 8.5, step 1. The checksum is ignored: by
/// RFC 6773, section 3.3, UDP's replaces it. Reserved bits are ignored.
///
/// `beyond` is the number of data bytes after `bytes` that are carried as a length only.
///
/// # Errors
/// See [`PacketError`].
pub fn parse(bytes: &[u8], beyond: u32) -> Result<Packet<'_>, PacketError> {
    let have = bytes.len();
    let enough = |need| if have < need { Err(PacketError::Truncated { need, have }) } else { Ok(()) };
    enough(SHORT_HEADER)?;
    let number = (bytes[8] >> 1) & 0xf;
    let packet_type = PacketType::from_number(number).ok_or(PacketError::ReservedType(number))?;
    let long = bytes[8] & 1 == 1;
    if !long && !packet_type.may_be_short() {
        return Err(PacketError::ShortSequence(packet_type));
    }
    let mut at = if long { LONG_HEADER } else { SHORT_HEADER };
    enough(at)?;
    let sequence = if long { WireSequence::Long(seq48_at(bytes, 10)) } else { WireSequence::Short(u24_at(bytes, 9)) };
    let mut acknowledgement = None;
    if packet_type.has_acknowledgement() {
        let size = if long { 8 } else { 4 };
        enough(at + size)?;
        acknowledgement = Some(if long {
            WireSequence::Long(seq48_at(bytes, at + 2))
        } else {
            WireSequence::Short(u24_at(bytes, at + 1))
        });
        at += size;
    }
    let (mut service_code, mut reset) = (None, None);
    if matches!(packet_type, PacketType::Request | PacketType::Response | PacketType::Reset) {
        enough(at + 4)?;
        if packet_type == PacketType::Reset {
            reset = Some((ResetCode(bytes[at]), [bytes[at + 1], bytes[at + 2], bytes[at + 3]]));
        } else {
            service_code = Some(ServiceCode(u32_at(bytes, at)));
        }
        at += 4;
    }
    let offset = usize::from(bytes[4]) * 4;
    if offset < at || offset > have {
        return Err(PacketError::DataOffset { offset, header: at, packet: have });
    }
    let checksum_coverage = bytes[5] & 0xf;
    let data = (have - offset).saturating_add(beyond as usize);
    if Coverage(checksum_coverage).covered(data).is_none() {
        return Err(PacketError::ChecksumCoverage { coverage: checksum_coverage, data });
    }
    let header = Header {
        source_port: u16_at(bytes, 0),
        destination_port: u16_at(bytes, 2),
        ccval: bytes[5] >> 4,
        checksum_coverage,
        packet_type,
        sequence,
        acknowledgement,
    };
    let options = Options::new(&bytes[at..offset], packet_type);
    Ok(Packet { header, service_code, reset, options, data: &bytes[offset..] })
}
