//! The Internet checksum of DCCP without UDP (RFC 4340, section 9.1), for captures and packets of IP protocol 33.

use super::SHORT_HEADER;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How much a checksum covers, by CsCov, 0 to 15 (RFC 4340, section 9.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coverage(pub u8);

impl Coverage {
    /// All.
    pub const ALL: Self = Self(0);

    /// Bytes of the application data covered, of `data` bytes; `None` if CsCov covers more than that, which makes the
    /// packet invalid.
    pub const fn covered(self, data: usize) -> Option<usize> {
        match (self.0 & 0xf) as usize {
            0 => Some(data),
            n if (n - 1) * 4 <= data => Some((n - 1) * 4),
            _ => None,
        }
    }
    /// The same for a packet with this much data, or [`Self::ALL`] if there is too little: the value to send a packet
    /// with.
    #[must_use]
    pub const fn fitting(self, data: usize) -> Self {
        if self.covered(data).is_some() { Self(self.0 & 0xf) } else { Self::ALL }
    }
    /// Whether an end with Minimum Checksum Coverage `minimum` accepts it (RFC 4340, section 9.2.1).
    pub const fn is_accepted(self, minimum: u64) -> bool {
        let n = (self.0 & 0xf) as u64;
        n == 0 || minimum > 0 && n >= minimum
    }
}

/// The part of the network layer's header covered by the checksum: source and destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PseudoHeader {
    /// Of IPv4 (RFC 793, section 3.1).
    V4(Ipv4Addr, Ipv4Addr),
    /// Of IPv6 (RFC 2460, section 8.1).
    V6(Ipv6Addr, Ipv6Addr),
}

impl PseudoHeader {
    /// That of these addresses; `None` if they are of different families.
    pub const fn new(source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(s), IpAddr::V4(d)) => Some(Self::V4(s, d)),
            (IpAddr::V6(s), IpAddr::V6(d)) => Some(Self::V6(s, d)),
            _ => None,
        }
    }

    fn sum(&self) -> u64 {
        u64::from(PROTOCOL)
            + match self {
                Self::V4(s, d) => sum(&s.octets()) + sum(&d.octets()),
                Self::V6(s, d) => sum(&s.octets()) + sum(&d.octets()),
            }
    }
}

/// DCCP's number as an IP protocol.
pub const PROTOCOL: u8 = 33;

/// Position of the field.
const FIELD: core::ops::Range<usize> = 6..8;

fn sum(bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(2);
    let total: u64 = chunks.by_ref().map(|c| u64::from(u16::from_be_bytes([c[0], c[1]]))).sum();
    total + chunks.remainder().first().map_or(0, |&b| u64::from(b) << 8)
}

/// The checksum of a whole DCCP packet, whose Checksum field counts as zero. `packet` is followed by `beyond` bytes of
/// data that are carried as a length only and count as zeros. `None` if the packet has no complete header, or CsCov
/// covers more data than there is.
pub fn covered_checksum(packet: &[u8], beyond: usize, pseudo: &PseudoHeader) -> Option<u16> {
    let offset = usize::from(*packet.get(4)?) * 4;
    if offset < SHORT_HEADER {
        return None;
    }
    let data = packet.len().checked_sub(offset)?;
    let covered = Coverage(packet[5]).covered(data + beyond)?.min(data);
    let mut total = pseudo.sum() + (packet.len() + beyond) as u64;
    // Both parts begin at even offsets, and so does the data.
    total += sum(&packet[..FIELD.start]) + sum(&packet[FIELD.end..offset + covered]);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    Some(!(total as u16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coverage_by_the_table() {
        // RFC 4340, section 9.2: (CsCov - 1) * 4 bytes, not more than there are.
        let all: Vec<_> = (0..16).map(|n| Coverage(n).covered(12)).collect();
        assert_eq!(all[..5], [Some(12), Some(0), Some(4), Some(8), Some(12)]);
        assert!(all[5..].iter().all(Option::is_none));
        assert_eq!((Coverage(4).fitting(12), Coverage(5).fitting(12)), (Coverage(4), Coverage::ALL));
        // Section 9.2.1: full coverage is always accepted, partial coverage only if the minimum is above zero.
        let accepted = |minimum| (0..16).filter(|&n| Coverage(n).is_accepted(minimum)).collect::<Vec<u8>>();
        assert_eq!((accepted(0), accepted(14)), (vec![0], vec![0, 14, 15]));
        assert_eq!(accepted(1).len(), 16);
    }

    #[test]
    fn by_hand() {
        // DCCP-Data from port 1 to 2, X = 1, number 3, CsCov as given, data ff 01 02.
        let packet = |cscov: u8| [0, 1, 0, 2, 4, cscov, 0xde, 0xad, 5, 0, 0, 0, 0, 0, 0, 3, 0xff, 1, 2];
        let pseudo = PseudoHeader::V4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        // 0a00 + 0001 + 0a00 + 0002 + 33 + 19; 0001 + 0002 + 0400 + 0500 + 0003; ff01 + 0200, one carry.
        let head = 0x0a00 + 1 + 0x0a00 + 2 + 33 + 19 + 1 + 2 + 0x0400 + 0x0500 + 3;
        let all = head + 0xff01 + 0x0200;
        assert_eq!(covered_checksum(&packet(0), 0, &pseudo), Some(!((all & 0xffff) as u16 + 1)));
        // None of the data.
        assert_eq!(covered_checksum(&packet(1), 0, &pseudo), Some(!(head as u16 + 1)));
        // Four bytes of three; with one carried as a length there are enough, and it counts as zero.
        assert_eq!(covered_checksum(&packet(2), 0, &pseudo), None);
        assert_eq!(covered_checksum(&packet(2), 1, &pseudo), Some(!(((all + 2 + 1) & 0xffff) as u16 + 1)));
        // No header, or less than one.
        for offset in [0, 1, 2, 5, 255] {
            let mut p = packet(0);
            p[4] = offset;
            assert_eq!(covered_checksum(&p, 0, &pseudo), None, "offset {offset}");
        }
    }

    #[test]
    fn zeros_are_zeros_whether_they_are_there_or_not() {
        let mut packet = vec![0, 1, 0, 2, 3, 0, 0, 0, 4, 0, 0, 3, 9, 8, 7];
        let pseudo = PseudoHeader::V6(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED);
        for cscov in [0, 1, 2, 6] {
            packet[5] = cscov;
            let mut whole = packet.clone();
            whole.resize(packet.len() + 70_001, 0);
            assert_eq!(covered_checksum(&packet, 70_001, &pseudo), covered_checksum(&whole, 0, &pseudo));
        }
    }
}
