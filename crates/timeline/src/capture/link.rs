//! Link layers and IP, down to UDP.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// An IP packet.
#[derive(Debug)]
pub(super) struct Datagram<'a> {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    /// Bytes of the IP packet, by its header.
    pub(super) length: u32,
    /// Time to live, or hop limit.
    pub(super) hops: u8,
    /// Whether the captured host sent it, where the link layer tells.
    pub(super) sent: Option<bool>,
    /// Its place among the fragments of a longer one.
    pub(super) fragment: Option<Fragment>,
    /// Ports and payload of UDP.
    pub(super) udp: Option<Udp<'a>>,
}

/// A fragment's place (RFC 791, section 3.2; RFC 8200, section 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fragment {
    /// Number that all fragments of a packet share, beside its addresses.
    pub(super) id: u32,
    /// Whether it has the headers of the transport, and whether others follow.
    pub(super) first: bool,
    pub(super) more: bool,
}

/// Ports and payload of UDP.
#[derive(Debug)]
pub(super) struct Udp<'a> {
    pub(super) from: u16,
    pub(super) to: u16,
    /// Bytes of the payload, by its header.
    pub(super) length: u32,
    /// Those that were captured.
    pub(super) payload: &'a [u8],
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|b| u16::from_be_bytes([b[0], b[1]]))
}

/// The IP packet in a frame of a link type; `None` for others.
pub(super) fn datagram(link: u16, frame: &[u8]) -> Option<Datagram<'_>> {
    match link {
        // Ethernet, with VLAN tags.
        1 => {
            let (mut at, mut kind) = (14, be16(frame, 12)?);
            while matches!(kind, 0x8100 | 0x88a8) && at < 22 {
                kind = be16(frame, at + 2)?;
                at += 4;
            }
            matches!(kind, 0x0800 | 0x86dd).then(|| ip(frame.get(at..)?, None))?
        }
        // BSD loopback: four bytes of the protocol family.
        0 | 108 => ip(frame.get(4..)?, None),
        // Raw IP.
        12 | 14 | 101 | 228 | 229 => ip(frame, None),
        // Linux cooked, version 1: packet type 0 is to this host, 4 from it.
        113 => {
            let sent = sent(be16(frame, 0)?);
            matches!(be16(frame, 14)?, 0x0800 | 0x86dd).then(|| ip(frame.get(16..)?, sent))?
        }
        // Version 2.
        276 => {
            let sent = sent(u16::from(*frame.get(10)?));
            matches!(be16(frame, 0)?, 0x0800 | 0x86dd).then(|| ip(frame.get(20..)?, sent))?
        }
        _ => None,
    }
}

fn sent(packet_type: u16) -> Option<bool> {
    match packet_type {
        0 => Some(false),
        4 => Some(true),
        _ => None,
    }
}

/// The place of a fragment; `None` for a packet in one piece.
fn fragment(id: u32, offset: u16, more: bool) -> Option<Fragment> {
    (offset != 0 || more).then_some(Fragment { id, first: offset == 0, more })
}

fn ip(bytes: &[u8], sent: Option<bool>) -> Option<Datagram<'_>> {
    match bytes.first()? >> 4 {
        4 => {
            let header = usize::from(bytes[0] & 0xf) * 4;
            let fixed = bytes.get(..20)?;
            let address = |at: usize| IpAddr::V4(Ipv4Addr::new(fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]));
            let fragment = fragment(be16(fixed, 4)?.into(), be16(fixed, 6)? & 0x1fff, fixed[6] & 0x20 != 0);
            let behind = fragment.is_some_and(|f| !f.first);
            let udp = if fixed[9] == 17 && !behind && header >= 20 { udp(bytes.get(header..)?) } else { None };
            Some(Datagram {
                from: address(12),
                to: address(16),
                length: be16(fixed, 2)?.into(),
                hops: fixed[8],
                sent,
                fragment,
                udp,
            })
        }
        6 => {
            let fixed = bytes.get(..40)?;
            let address = |at: usize| {
                let octets: [u8; 16] = fixed[at..at + 16].try_into().unwrap_or_default();
                IpAddr::V6(Ipv6Addr::from(octets))
            };
            let (mut next, mut at, mut part) = (fixed[6], 40usize, None);
            // Hop-by-hop, routing, fragment and destination options.
            for _ in 0..8 {
                if !matches!(next, 0 | 43 | 44 | 60) {
                    break;
                }
                let Some([following, units]) = bytes.get(at..at + 2) else { break };
                if next == 44 {
                    let Some([_, _, o0, o1, id @ ..]) = bytes.get(at..at + 8) else { break };
                    let id = id.iter().fold(0, |id, byte| id << 8 | u32::from(*byte));
                    part = fragment(id, u16::from_be_bytes([*o0, *o1]) >> 3, o1 & 1 != 0);
                    at += 8;
                } else {
                    at += (usize::from(*units) + 1) * 8;
                }
                next = *following;
            }
            let behind = part.is_some_and(|f: Fragment| !f.first);
            let udp = if next == 17 && !behind { bytes.get(at..).and_then(udp) } else { None };
            Some(Datagram {
                from: address(8),
                to: address(24),
                length: u32::from(be16(fixed, 4)?) + 40,
                hops: fixed[7],
                sent,
                fragment: part,
                udp,
            })
        }
        _ => None,
    }
}

fn udp(bytes: &[u8]) -> Option<Udp<'_>> {
    let (from, to, length) = (be16(bytes, 0)?, be16(bytes, 2)?, be16(bytes, 4)?);
    let length = u32::from(length).checked_sub(8)?;
    let payload = bytes.get(8..)?;
    // Link layers pad short frames.
    let payload = &payload[..payload.len().min(length as usize)];
    Some(Udp { from, to, length, payload })
}
