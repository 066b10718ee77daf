//! The Internet checksum of DCCP without UDP (RFC 4340, section 9.1), for captures and packets of IP protocol 33.

use core::net::IpAddr;

/// How much a checksum covers, by CsCov (RFC 4340, section 9.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coverage(pub u8);

impl Coverage {
    /// Bytes of the application data that are covered, of `data` there are; `None` where CsCov asks for more than that,
    /// which makes the packet invalid.
    pub fn covered(self, data: usize) -> Option<usize> {
        match self.0 & 0xf {
            0 => Some(data),
            n => {
                let words = usize::from(n - 1);
                (words * 4 <= data).then_some(words * 4)
            }
        }
    }
}

/// What of the network layer's header the checksum covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PseudoHeader {
    /// Where the packet comes from and goes to; both of one family.
    pub addresses: (IpAddr, IpAddr),
}

/// DCCP's number as an IP protocol.
const PROTOCOL: u8 = 33;

fn sum(bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(2);
    let total: u64 = chunks.by_ref().map(|c| u64::from(u16::from_be_bytes([c[0], c[1]]))).sum();
    total + chunks.remainder().first().map_or(0, |&b| u64::from(b) << 8)
}

/// The checksum of a whole DCCP packet, whose Checksum field counts as zero; `None` where CsCov asks for more data than
/// there is, or the packet has no header.
pub fn covered_checksum(packet: &[u8], pseudo: &PseudoHeader) -> Option<u16> {
    let offset = usize::from(*packet.get(4)?) * 4;
    let data = packet.len().checked_sub(offset)?;
    let covered = Coverage(packet.get(5)? & 0xf).covered(data)?;
    let addresses = match pseudo.addresses {
        (IpAddr::V4(a), IpAddr::V4(b)) => sum(&a.octets()) + sum(&b.octets()),
        (IpAddr::V6(a), IpAddr::V6(b)) => sum(&a.octets()) + sum(&b.octets()),
        _ => return None,
    };
    // The field itself counts as zero.
    let packet_sum =
        sum(&packet[..offset + covered]) - u64::from(u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]));
    let mut total = addresses + u64::from(PROTOCOL) + packet.len() as u64 + packet_sum;
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    Some(!(total as u16))
}
