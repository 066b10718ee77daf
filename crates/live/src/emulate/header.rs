//! Fields of IP headers read and changed by the emulator: addresses and ECN.

use crate::tun::Side;
use weir_units::Ecn;

/// First 12 bytes of the hosts' IPv6 addresses: fd77:6569:72::, then the side and the number, 16 bits each.
const PREFIX: [u8; 12] = [0xfd, 0x77, 0x65, 0x69, 0, 0x72, 0, 0, 0, 0, 0, 0];

/// An end of a packet's path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Host {
    pub(crate) side: Side,
    /// Numbered from 0.
    pub(crate) number: u16,
}

/// Sender and receiver of a packet, its ECN field, and what its headers take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) from: Host,
    pub(crate) to: Host,
    pub(crate) ecn: Ecn,
    /// Bytes of the IP and UDP headers; `None` for what is no UDP datagram, and for IPv6 with extension headers.
    pub(crate) udp: Option<usize>,
}

/// The header of a packet; `None` for packets not of the testbed's hosts.
pub(crate) fn read(packet: &[u8]) -> Option<Header> {
    const UDP: u8 = 17;
    const UDP_HEADER: usize = 8;
    match packet.first()? >> 4 {
        4 => {
            let header: &[u8; 20] = packet.first_chunk()?;
            let end = |a: [u8; 4]| host((a[0] == 10).then_some(u16::from(a[1]))?, [a[2], a[3]]);
            let (from, to) = ([12, 13, 14, 15].map(|i| header[i]), [16, 17, 18, 19].map(|i| header[i]));
            let udp = (header[9] == UDP).then(|| usize::from(header[0] & 15) * 4 + UDP_HEADER);
            Some(Header { from: end(from)?, to: end(to)?, ecn: Ecn::from_bits(header[1] & 3), udp })
        }
        6 => {
            let header: &[u8; 40] = packet.first_chunk()?;
            let end = |a: &[u8]| {
                let rest = a.strip_prefix(&PREFIX)?;
                host(u16::from_be_bytes([rest[0], rest[1]]), [rest[2], rest[3]])
            };
            let (from, to) = (end(&header[8..24])?, end(&header[24..40])?);
            let udp = (header[6] == UDP).then_some(header.len() + UDP_HEADER);
            Some(Header { from, to, ecn: Ecn::from_bits(header[1] >> 4 & 3), udp })
        }
        _ => None,
    }
}

fn host(side: u16, number: [u8; 2]) -> Option<Host> {
    let side = match side {
        0 => Side::Left,
        1 => Side::Right,
        _ => return None,
    };
    Some(Host { side, number: u16::from_be_bytes(number).checked_sub(1)? })
}

/// Writes the ECN field; in IPv4 the header's checksum follows (RFC 1624, equation 3).
pub(crate) fn set_ecn(packet: &mut [u8], ecn: Ecn) {
    match packet.first().map(|b| b >> 4) {
        Some(4) if packet.len() >= 20 => {
            let word = |p: &[u8], at: usize| u32::from(u16::from_be_bytes([p[at], p[at + 1]]));
            let before = word(packet, 0);
            packet[1] = packet[1] & !3 | ecn.bits();
            let mut sum = (!word(packet, 10) & 0xffff) + (!before & 0xffff) + word(packet, 0);
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
        Some(6) if packet.len() >= 40 => packet[1] = packet[1] & !0x30 | ecn.bits() << 4,
        _ => {}
    }
}

/// Writes a datagram between hosts, from a port to the same, as an IPv4 packet (RFC 791, RFC 768). The UDP checksum is left out, as
/// IPv4 allows. A payload that no packet holds is cut.
pub(crate) fn udp(from: Host, to: Host, port: u16, payload: &[u8], out: &mut Vec<u8>) {
    const HEADERS: u16 = 28;
    let payload = &payload[..payload.len().min(usize::from(u16::MAX - HEADERS))];
    let length = HEADERS + payload.len() as u16;
    out.clear();
    // Version and header length, no ECN; length; no identification; do not fragment; 64 hops, UDP; checksum.
    out.extend([0x45, 0]);
    out.extend(length.to_be_bytes());
    out.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    for host in [from, to] {
        out.extend(host.side.ipv4(host.number).octets());
    }
    let checksum = sum(out);
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
    for field in [port, port, length - 20, 0] {
        out.extend(field.to_be_bytes());
    }
    out.extend(payload);
}

/// The Internet checksum of a header, which is zero if the checksum field is right (RFC 1071).
fn sum(header: &[u8]) -> u16 {
    let mut sum: u32 = header.chunks_exact(2).map(|p| u32::from(u16::from_be_bytes([p[0], p[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stations_datagram_is_between_the_hosts() {
        let host = |side| Host { side, number: 4 };
        let mut packet = vec![1, 2, 3];
        udp(host(Side::Right), host(Side::Left), 5_004, b"notice", &mut packet);
        assert_eq!((packet.len(), sum(&packet[..20])), (34, 0));
        let Header { from, to, ecn, udp } = read(&packet).expect("ours");
        assert_eq!((from, to, ecn, udp), (host(Side::Right), host(Side::Left), Ecn::NotEct, Some(28)));
        assert_eq!((&packet[20..28], &packet[28..]), (&[0x13, 0x8c, 0x13, 0x8c, 0, 14, 0, 0][..], &b"notice"[..]));
        super::udp(host(Side::Right), host(Side::Left), 9, &[0; 70_000], &mut packet);
        assert_eq!(packet.len(), 65_535, "the greatest packet");
    }

    fn ipv4(tos: u8) -> [u8; 20] {
        let mut h = [0x45, tos, 0, 20, 0, 7, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 1, 1, 44];
        let c = sum(&h);
        h[10..12].copy_from_slice(&c.to_be_bytes());
        h
    }

    #[test]
    fn hosts_and_marks_of_ipv4() {
        let mut h = ipv4(0b1011_1010);
        let Header { from, to, ecn, .. } = read(&h).expect("ours");
        assert_eq!((from.side, from.number, to.side, to.number), (Side::Left, 0, Side::Right, 299));
        assert_eq!(ecn, Ecn::Ect0);
        set_ecn(&mut h, Ecn::Ce);
        assert_eq!((h[1], sum(&h)), (0b1011_1011, 0));
        assert_eq!(h, ipv4(0b1011_1011));
    }

    #[test]
    fn checksums_stay_right_for_every_field() {
        for tos in 0..=255u8 {
            for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
                let mut h = ipv4(tos);
                set_ecn(&mut h, ecn);
                assert_eq!(sum(&h), 0, "{tos:#x} {ecn:?}");
                assert_eq!(h[1], tos & !3 | ecn.bits());
            }
        }
    }

    #[test]
    fn hosts_and_marks_of_ipv6() {
        let mut p = [0; 40];
        p[..2].copy_from_slice(&[0x6a, 0xa5]);
        p[8..24].copy_from_slice(&Side::Right.ipv6(4).octets());
        p[24..40].copy_from_slice(&Side::Left.ipv6(258).octets());
        let Header { from, to, ecn, udp } = read(&p).expect("ours");
        assert_eq!((from, to), (Host { side: Side::Right, number: 4 }, Host { side: Side::Left, number: 258 }));
        assert_eq!((ecn, udp), (Ecn::Ect0, None));
        p[6] = 17;
        assert_eq!(read(&p).and_then(|h| h.udp), Some(48));
        set_ecn(&mut p, Ecn::Ce);
        assert_eq!(p[..2], [0x6a, 0xb5]);
    }

    #[test]
    fn other_packets_are_not_ours() {
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[0x45; 19]), None);
        assert_eq!(read(&[0x60; 39]), None);
        let mut h = ipv4(0);
        h[13] = 2;
        assert_eq!(read(&h), None);
        h[13..16].copy_from_slice(&[0, 0, 0]);
        assert_eq!(read(&h), None, "there is no host 0.0");
        let mut short = [0x45, 0];
        set_ecn(&mut short, Ecn::Ce);
        assert_eq!(short, [0x45, 0]);
    }
}
