//! DCCP in a capture: the payload of UDP (RFC 6773) directly follows an IP header of protocol 33, with the checksum
//! that DCCP has there (RFC 4340, section 9), so that dissectors need no options. IP packets are 8 bytes shorter than
//! with UDP.

use super::{IP_HEADER, Ipv4Header, Payload, PcapFileError, UDP, UDP_HEADER};
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_dccp::packet::{DCCP_UDP_PORT, PROTOCOL, PseudoHeader, covered_checksum, parse};
use weir_units::Ecn;

const IPV6_HEADER: usize = 40;
const CHECKSUM: usize = 6;

/// A DCCP packet with the fields of its IP header.
#[derive(Clone, Copy, Debug)]
pub struct DccpPacket<'a> {
    /// Source and destination.
    pub addresses: PseudoHeader,
    /// The ECN field.
    pub ecn: Ecn,
    /// The packet's bytes, as far as they exist, with the complete header.
    pub bytes: &'a [u8],
    /// The packet's length; bytes missing in `bytes` count as zeros.
    pub length: usize,
}

impl<'a> DccpPacket<'a> {
    /// The DCCP packet in an IP packet that carries UDP from or to the port of RFC 6773, as a device receives it;
    /// `None` for any other packet.
    pub fn of_udp(packet: &'a [u8]) -> Option<Self> {
        let (addresses, ecn, datagram) = match packet.first()? >> 4 {
            4 => {
                let header = usize::from(packet[0] & 0xf) * 4;
                // No fragments.
                let whole = packet.get(6)? & 0x3f == 0 && *packet.get(7)? == 0;
                let total = usize::from(u16_at(packet, 2)?);
                let ends = (packet.get(12..16)?, packet.get(16..20)?);
                let v4 = |b: &[u8]| <[u8; 4]>::try_from(b).ok().map(Ipv4Addr::from);
                let udp = (packet[9] == UDP && whole).then(|| packet.get(header..total))??;
                (PseudoHeader::V4(v4(ends.0)?, v4(ends.1)?), packet[1], udp)
            }
            6 => {
                let total = IPV6_HEADER + usize::from(u16_at(packet, 4)?);
                let ends = (packet.get(8..24)?, packet.get(24..40)?);
                let v6 = |b: &[u8]| <[u8; 16]>::try_from(b).ok().map(Ipv6Addr::from);
                let udp = (packet[6] == UDP).then(|| packet.get(IPV6_HEADER..total))??;
                (PseudoHeader::V6(v6(ends.0)?, v6(ends.1)?), packet[1] >> 4, udp)
            }
            _ => return None,
        };
        let ports = [u16_at(datagram, 0)?, u16_at(datagram, 2)?];
        let bytes = datagram.get(UDP_HEADER..usize::from(u16_at(datagram, 4)?))?;
        (ports.contains(&DCCP_UDP_PORT) && parse(bytes, 0).is_ok()).then(|| Self {
            addresses,
            ecn: Ecn::from_bits(ecn),
            bytes,
            length: bytes.len(),
        })
    }
}

fn u16_at(b: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*b.get(at)?, *b.get(at + 1)?]))
}

/// Writes an IP packet to `out`, replacing its contents: header and DCCP packet, and with the `payload` option zeros
/// for data that exists as a length only. Anything other than a DCCP packet is copied unchanged. Returns the length of
/// the whole IP packet, including data that exists as a length only.
///
/// # Errors
/// A packet too long for IP.
pub fn dccp_to_ip(
    packet: &DccpPacket<'_>,
    identification: u16,
    payload: Payload,
    out: &mut Vec<u8>,
) -> Result<usize, PcapFileError> {
    let DccpPacket { addresses, ecn, bytes, .. } = *packet;
    let length = packet.length.max(bytes.len());
    out.clear();
    let (header, max) = match addresses {
        PseudoHeader::V4(..) => (IP_HEADER, usize::from(u16::MAX) - IP_HEADER),
        PseudoHeader::V6(..) => (IPV6_HEADER, usize::from(u16::MAX)),
    };
    if length > max {
        return Err(PcapFileError::TooLong { length, max });
    }
    match addresses {
        PseudoHeader::V4(source, destination) => {
            let total = (header + length) as u16;
            Ipv4Header { source, destination, protocol: PROTOCOL, total, identification, ecn }.write_into(out);
        }
        PseudoHeader::V6(source, destination) => {
            // Version 6, traffic class, no flow label, payload length, next header, hop limit 64 (RFC 8200, section 3).
            out.extend([0x60, ecn.bits() << 4, 0, 0]);
            out.extend((length as u16).to_be_bytes());
            out.extend([PROTOCOL, 64]);
            out.extend(source.octets());
            out.extend(destination.octets());
        }
    }
    out.extend(bytes);
    let beyond = length - bytes.len();
    if parse(bytes, beyond as u32).is_ok()
        && let Some(sum) = covered_checksum(bytes, beyond, &addresses)
    {
        out[header + CHECKSUM..header + CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    }
    if payload == Payload::Zeros {
        out.resize(header + length, 0);
    }
    Ok(header + length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_dccp::packet::{Header, PacketType, PacketWriter, WireSequence};
    use weir_units::Seq48;

    const V4: PseudoHeader = PseudoHeader::V4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 1, 0, 1));
    const V6: PseudoHeader = PseudoHeader::V6(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);

    fn data_packet(checksum_coverage: u8, data: &[u8]) -> Vec<u8> {
        let header = Header {
            source_port: 5_004,
            destination_port: 6_000,
            ccval: 0,
            checksum_coverage,
            packet_type: PacketType::Data,
            sequence: WireSequence::Long(Seq48::new(7)),
            acknowledgement: None,
        };
        let mut out = vec![];
        PacketWriter::new(&mut out, &header).finish();
        out.extend_from_slice(data);
        out
    }

    /// The sum of 16-bit words in one's complement, which is all ones over data with a valid checksum (RFC 1071).
    fn sum(bytes: &[u8]) -> u32 {
        let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&b| u32::from(b));
        let total: u32 = bytes.chunks(2).map(word).sum();
        (total & 0xffff) + (total >> 16)
    }

    #[test]
    fn headers_and_checksums() {
        let mut out = vec![];
        for (addresses, header) in [(V4, 20), (V6, 40)] {
            for (coverage, beyond, covered) in [(0, 0, 21), (0, 1_400, 21), (1, 0, 16), (2, 3, 20), (4, 30, 21)] {
                let bytes = data_packet(coverage, b"12345");
                let packet = DccpPacket { addresses, ecn: Ecn::Ect0, bytes: &bytes, length: bytes.len() + beyond };
                let length = dccp_to_ip(&packet, 9, Payload::Snapped, &mut out).expect("it fits");
                assert_eq!((length, out.len()), (header + 21 + beyond, header + 21));
                let snapped = out.clone();
                dccp_to_ip(&packet, 9, Payload::Zeros, &mut out).expect("it fits");
                assert_eq!((&out[..snapped.len()], out.len()), (&snapped[..], length));
                assert!(out[snapped.len()..].iter().all(|&b| b == 0));
                let ends = if header == 20 { &out[12..20] } else { &out[8..40] };
                let pseudo = [ends, &[0, 33], &((21 + beyond) as u16).to_be_bytes()].concat();
                assert_eq!(sum(&[&pseudo[..], &out[header..header + covered]].concat()), 0xffff, "{coverage} {beyond}");
                if header == 20 {
                    assert_eq!((sum(&out[..20]), out[1], out[9]), (0xffff, 0b10, 33));
                } else {
                    assert_eq!((out[0], out[1], out[6]), (0x60, 0b10_0000, 33));
                }
            }
        }
    }

    #[test]
    fn what_is_no_dccp_goes_in_as_it_is() {
        let mut out = vec![];
        for bytes in [&b"no DCCP at all"[..], &[], &[0; 12]] {
            let packet = DccpPacket { addresses: V4, ecn: Ecn::NotEct, bytes, length: bytes.len() };
            assert_eq!(dccp_to_ip(&packet, 0, Payload::Zeros, &mut out).ok(), Some(20 + bytes.len()));
            assert_eq!(&out[20..], bytes);
        }
        let max = DccpPacket { addresses: V6, ecn: Ecn::NotEct, bytes: &[], length: 65_535 };
        assert_eq!(dccp_to_ip(&max, 0, Payload::Snapped, &mut out).ok(), Some(65_575));
        let more = DccpPacket { length: 65_536, ..max };
        assert!(matches!(
            dccp_to_ip(&more, 0, Payload::Snapped, &mut out),
            Err(PcapFileError::TooLong { length: 65_536, max: 65_535 })
        ));
    }

    #[test]
    fn udp_is_taken_off() {
        let dccp = data_packet(0, b"abc");
        let udp = |port: u16, dccp: &[u8]| {
            let [a, b] = port.to_be_bytes();
            let len = (8 + dccp.len()) as u8;
            [&[0xc0, 1, a, b, 0, len, 0, 0], dccp].concat()
        };
        let v4 = |fragment: u8, protocol: u8, udp: &[u8]| {
            let head = [
                0x45,
                0b01,
                0,
                20 + udp.len() as u8,
                0,
                0,
                0x40 | fragment,
                0,
                64,
                protocol,
                0,
                0,
                10,
                0,
                0,
                1,
                10,
                1,
                0,
                1,
            ];
            [&head[..], udp].concat()
        };
        // The link's padding after it is ignored.
        let packet = [&v4(0, 17, &udp(6_511, &dccp))[..], &[0; 6]].concat();
        let found = DccpPacket::of_udp(&packet).expect("DCCP in UDP");
        assert_eq!((found.addresses, found.ecn, found.bytes, found.length), (V4, Ecn::Ect1, &dccp[..], dccp.len()));
        let v6 = [
            &[0x60, 0b11 << 4, 0, 0, 0, 8 + dccp.len() as u8, 17, 64][..],
            &[0; 15],
            &[1],
            &[0; 16],
            &udp(6_511, &dccp),
        ];
        let packet = v6.concat();
        let found = DccpPacket::of_udp(&packet).expect("DCCP in UDP");
        assert_eq!((found.addresses, found.ecn, found.bytes), (V6, Ecn::Ce, &dccp[..]));
        // Another port, another protocol, a fragment, other data than DCCP, and every truncation.
        for other in [
            v4(0, 17, &udp(6_512, &dccp)),
            v4(0, 6, &udp(6_511, &dccp)),
            v4(0x20, 17, &udp(6_511, &dccp)),
            v4(1, 17, &udp(6_511, &dccp)),
            v4(0, 17, &udp(6_511, b"no DCCP, this")),
        ] {
            assert!(DccpPacket::of_udp(&other).is_none());
        }
        let v4 = v4(0, 17, &udp(6_511, &dccp));
        assert!((0..v4.len()).all(|n| DccpPacket::of_udp(&v4[..n]).is_none()));
        assert!((0..packet.len()).all(|n| DccpPacket::of_udp(&packet[..n]).is_none()));
    }
}
