//! The part of an RTP packet protected by XOR codes, the same for RFC 5109 (section 8), RFC 6015 (section 6.2) and
//! RFC 8627 (section 6.2): the P, X, CC, M and PT fields, the timestamp, the length, and everything after the fixed
//! header.
//!
//! The RFCs have these fields in different orders in their headers. Since the order does not matter to a linear code,
//! there is one string for all three: [`PREFIX`] bytes laid out as in RFC 8627 (flags, length, timestamp), then
//! everything after the fixed header. Headers carry the first part as [`Recovery`] and the second as their payload.
//!
//! ```
//! use weir_wire::fec::{Octets, parity::{self, Recovery}};
//! // A packet with a payload of 1,000 zeros that are not there.
//! let packet = Octets { bytes: &[0x80, 96, 0, 7, 0, 0, 0, 90, 0, 0, 0, 1], zeros: 1_000 };
//! let mut string = Vec::new();
//! let zeros = parity::protect_into(packet, &mut string)?;
//! let (recovery, payload) = Recovery::split(Octets { bytes: &string, zeros }).expect("a whole prefix");
//! assert_eq!((recovery.length, payload.len()), (1_000, 1_000));
//! // Sequence number and SSRC are not protected: the repair packet's header states them.
//! let mut again = Vec::new();
//! let zeros = parity::rebuild_into(Octets { bytes: &string, zeros }, 7, 1, &mut again)?;
//! assert_eq!(Octets { bytes: &again, zeros }, packet);
//! # Ok::<(), weir_wire::Error>(())
//! ```

use super::Octets;
use crate::Error;
use crate::rtp::{FIXED_HEADER, PacketView};

/// Bytes of a protected string before what follows the packet's fixed header.
pub const PREFIX: usize = 8;

/// The protected fields of fixed headers: those of one packet, or their XOR.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recovery {
    /// P, X, CC, M and PT as in the first 16 bits of an RTP header, without the version: 14 bits.
    pub flags: u16,
    /// Timestamp.
    pub timestamp: u32,
    /// Bytes after the fixed header: CSRC list, header extension, payload and padding.
    pub length: u16,
}

/// The bits of [`Recovery::flags`].
pub(super) const FLAGS: u16 = 0x3fff;

impl Recovery {
    /// The fields at the start of a protected string, and what follows them; `None` if the string is shorter than
    /// [`PREFIX`].
    pub fn split(string: Octets<'_>) -> Option<(Self, Octets<'_>)> {
        let ([a, b, c, d, timestamp @ ..], payload) = string.prefix::<PREFIX>()?;
        let flags = u16::from_be_bytes([a, b]) & FLAGS;
        let (length, timestamp) = (u16::from_be_bytes([c, d]), u32::from_be_bytes(timestamp));
        Some((Self { flags, timestamp, length }, payload))
    }
    /// Appends the protected string of these fields and `payload`, and returns the number of zeros that follow.
    pub fn join_into(&self, payload: Octets<'_>, out: &mut Vec<u8>) -> u32 {
        out.extend_from_slice(&(self.flags & FLAGS).to_be_bytes());
        out.extend_from_slice(&self.length.to_be_bytes());
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(payload.bytes);
        payload.zeros
    }
}

/// Appends the protected string of an RTP packet and returns the number of zeros that follow.
///
/// # Errors
/// If the packet has no complete fixed header of version 2, or more than 65,535 bytes after it.
pub fn protect_into(packet: Octets<'_>, out: &mut Vec<u8>) -> Result<u32, Error> {
    let Some((header, after)) = packet.bytes.split_first_chunk::<FIXED_HEADER>() else {
        let available = packet.bytes.len();
        return Err(Error::Truncated { field: "RTP fixed header", offset: 0, needed: FIXED_HEADER, available });
    };
    if header[0] >> 6 != 2 {
        return Err(Error::Value { field: "RTP version", offset: 0, value: (header[0] >> 6).into(), expected: "2" });
    }
    let after = Octets { bytes: after, zeros: packet.zeros };
    let Ok(length) = u16::try_from(after.len()) else {
        let value = after.len() as u64;
        return Err(Error::Value { field: "protected length", offset: 0, value, expected: "up to 65535 bytes" });
    };
    let [a, b, _, _, timestamp @ .., _, _, _, _] = *header;
    let recovery = Recovery { flags: u16::from_be_bytes([a, b]), timestamp: u32::from_be_bytes(timestamp), length };
    Ok(recovery.join_into(after, out))
}

/// Appends the RTP packet of a recovered string and returns the number of zeros that follow (RFC 5109, section 9.1;
/// RFC 6015, section 6.3.2; RFC 8627, sections 6.3.2 and 6.3.3). CSRC list and header extension are always written as
/// bytes. Offsets in errors count from the start of the string; nothing is appended then.
///
/// # Errors
/// If the string is not a packet's, because of a damaged or forged repair packet: it is shorter than its length field
/// (with ULPFEC also if only part of the packet was protected), bytes after that length are not zero, CSRC list or
/// header extension do not fit, or the padding count is invalid.
pub fn rebuild_into(string: Octets<'_>, sequence: u16, ssrc: u32, out: &mut Vec<u8>) -> Result<u32, Error> {
    let Some((Recovery { flags, timestamp, length }, after)) = Recovery::split(string) else {
        let available = string.len();
        return Err(Error::Truncated { field: "recovered fields", offset: 0, needed: PREFIX, available });
    };
    let (body, past) = after.take("recovered packet", PREFIX, length.into())?;
    past.expect_zeros("byte behind the recovered packet", PREFIX + usize::from(length))?;

    let csrcs = usize::from(flags >> 8 & 0xf) * 4;
    let (_, mut behind) = body.take("recovered CSRC list", PREFIX, csrcs)?;
    if flags & 0x1000 != 0 {
        let ([_, _, words @ ..], _) = behind.prefix::<4>().ok_or(Error::Truncated {
            field: "recovered extension header",
            offset: PREFIX + csrcs,
            needed: 4,
            available: behind.len(),
        })?;
        let needed = 4 + usize::from(u16::from_be_bytes(words)) * 4;
        behind = behind.take("recovered extension", PREFIX + csrcs, needed)?.1;
    }
    let in_header = body.len() - behind.len();
    if flags & 0x2000 != 0 && (behind.zeros == 0 || behind.is_empty()) {
        let padding = behind.bytes.last().copied().unwrap_or(0);
        if padding == 0 || usize::from(padding) > behind.len() {
            return Err(Error::Value {
                field: "recovered padding count",
                offset: PREFIX + body.len().saturating_sub(1),
                value: padding.into(),
                expected: "1 to the bytes after the header",
            });
        }
    }

    let start = out.len();
    out.extend_from_slice(&(0x8000 | flags).to_be_bytes());
    out.extend_from_slice(&sequence.to_be_bytes());
    out.extend_from_slice(&timestamp.to_be_bytes());
    out.extend_from_slice(&ssrc.to_be_bytes());
    body.slice(0, in_header).write_out(out);
    out.extend_from_slice(behind.bytes);
    debug_assert!(PacketView::parse_header(&out[start..]).is_ok());
    Ok(behind.zeros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::{Header, extension::Element, write_padding};
    use crate::testing::hex;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn the_string_is_flags_length_timestamp_and_the_rest() {
        // P = 0, X = 0, CC = 1, M = 1, PT = 11; sequence number 0x1234 and SSRC 2 are excluded.
        let packet = hex("818b 1234 00000003 00000002 0000000a ffee");
        let mut string = vec![];
        assert_eq!(protect_into(Octets { bytes: &packet, zeros: 5 }, &mut string), Ok(5));
        assert_eq!(string, hex("018b 000b 00000003 0000000a ffee"));
    }

    #[test]
    fn non_rtp_packets_are_not_protected() {
        let mut out = vec![];
        let short = protect_into(Octets { bytes: &[0x80; 11], zeros: 9 }, &mut out);
        assert_eq!(short, Err(Error::Truncated { field: "RTP fixed header", offset: 0, needed: 12, available: 11 }));
        assert!(matches!(protect_into(Octets::new(&[0x40; 12]), &mut out), Err(Error::Value { value: 1, .. })));
        assert_eq!(protect_into(Octets { bytes: &[0x80; 13], zeros: 65_534 }, &mut out), Ok(65_534));
        out.clear();
        let long = protect_into(Octets { bytes: &[0x80; 13], zeros: 65_535 }, &mut out);
        assert!(matches!(long, Err(Error::Value { value: 65_536, .. })));
        assert!(out.is_empty());
    }

    fn fault(string: &str) -> (&'static str, usize) {
        let mut out = vec![1];
        let e = rebuild_into(Octets::new(&hex(string)), 1, 2, &mut out).unwrap_err();
        assert_eq!(out, [1]);
        match e {
            Error::Truncated { field, offset, .. } | Error::Value { field, offset, .. } => (field, offset),
            Error::Compound { rule, offset } => (rule, offset),
        }
    }

    #[test]
    fn strings_that_cannot_be_are_refused() {
        assert_eq!(fault("0060 0000 000000"), ("recovered fields", 0));
        assert_eq!(fault("0060 0003 00000000 0102"), ("recovered packet", 8));
        assert_eq!(fault("0060 0001 00000000 01 00 02"), ("byte behind the recovered packet", 10));
        assert_eq!(fault("0260 0007 00000000 01010101 020202"), ("recovered CSRC list", 8));
        assert_eq!(fault("1160 0006 00000000 01010101 0202"), ("recovered extension header", 12));
        assert_eq!(fault("1060 0006 00000000 bede0001 0202"), ("recovered extension", 8));
        assert_eq!(fault("2060 0002 00000000 0100"), ("recovered padding count", 9));
        assert_eq!(fault("2060 0002 00000000 0103"), ("recovered padding count", 9));
        assert_eq!(fault("2060 0000 00000000"), ("recovered padding count", 8));
    }

    #[test]
    fn headers_inside_the_zeros_are_written_out() {
        // Two CSRCs of 0 and an empty extension with a profile of 0, within the zeros; 3 bytes of payload after them.
        let mut out = vec![];
        assert_eq!(rebuild_into(Octets { bytes: &hex("1260 000f 00000005"), zeros: 20 }, 7, 9, &mut out), Ok(3));
        assert_eq!(out, hex("9260 0007 00000005 00000009 00000000 00000000 00000000"));
    }

    proptest! {
        #[test]
        fn packets_come_back(
            sequence: u16, ssrc: u32, timestamp: u32, payload_type in 0u8..128, marker: bool, csrcs in vec(any::<u32>(), 0..15),
            data in vec(any::<u8>(), 1..16), extended: bool, payload in vec(any::<u8>(), 0..50), padding: u8, zeros in 0u32..2_000, longer in 0u32..50,
        ) {
            let element = [Element::new(3, &data).unwrap()];
            let elements: &[Element<'_>] = if extended { &element } else { &[] };
            let header = Header { payload_type, marker, sequence, timestamp, ssrc, csrcs: &csrcs, elements, padding, ..Header::default() };
            let (mut packet, mut string, mut again) = (vec![], vec![], vec![]);
            header.write_into(&mut packet);
            packet.extend_from_slice(&payload);
            // Without zeros the padding is present, with them it is part of the length.
            if zeros == 0 {
                write_padding(&mut packet, padding);
            }
            let packet = Octets { bytes: &packet, zeros };
            let behind = protect_into(packet, &mut string).unwrap();
            prop_assert_eq!(string.len() + behind as usize, PREFIX + packet.len() - FIXED_HEADER);
            let behind = rebuild_into(Octets { bytes: &string, zeros: behind + longer }, sequence, ssrc, &mut again).unwrap();
            prop_assert_eq!(Octets { bytes: &again, zeros: behind }, packet);
        }

        /// A packet is lost: the XOR of the other's string and the parity is its string.
        #[test]
        fn parity_recovers(a in vec(any::<u8>(), 0..60), b in vec(any::<u8>(), 0..60), flags in any::<(u8, u8)>()) {
            let packet = |flag: u8, body: &[u8]| {
                let mut p = vec![];
                Header { payload_type: flag, marker: flag > 127, timestamp: u32::from(flag) * 9, ssrc: 5, sequence: 3, ..Header::default() }.write_into(&mut p);
                p.extend_from_slice(body);
                p
            };
            let (a, b) = (packet(flags.0, &a), packet(flags.1, &b));
            let strings = [&a, &b].map(|p| {
                let mut s = vec![];
                assert_eq!(protect_into(Octets::new(p), &mut s), Ok(0));
                s
            });
            let xor = |x: &[u8], y: &[u8]| -> Vec<u8> {
                (0..x.len().max(y.len())).map(|i| x.get(i).unwrap_or(&0) ^ y.get(i).unwrap_or(&0)).collect()
            };
            let parity = xor(&strings[0], &strings[1]);
            let mut lost = vec![];
            rebuild_into(Octets::new(&xor(&parity, &strings[1])), 3, 5, &mut lost).unwrap();
            prop_assert_eq!(lost, a);
        }

        #[test]
        fn any_string_is_a_packet_or_an_error(string in vec(any::<u8>(), 0..40), zeros in 0u32..300, length: u8, short: bool) {
            let mut string = string;
            if let (true, Some(field)) = (short, string.get_mut(2..4)) {
                field.copy_from_slice(&[0, length]);
            }
            let mut out = vec![];
            if let Ok(zeros) = rebuild_into(Octets { bytes: &string, zeros }, 1, 2, &mut out) {
                let view = PacketView::parse_header(&out).unwrap();
                prop_assert_eq!((view.sequence(), view.ssrc()), (1, 2));
                prop_assert_eq!(out.len() + zeros as usize, 12 + usize::from(u16::from_be_bytes([string.get(2).copied().unwrap_or(0), string.get(3).copied().unwrap_or(0)])));
            } else {
                prop_assert!(out.is_empty());
            }
        }
    }
}
