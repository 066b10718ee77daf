//! Texts and unknown contents of RTCP.

use crate::rtcp::fingerprint;

/// Replaces the texts of a compound: descriptions of sources, reasons to leave, contents that applications define.
pub(super) fn compound(bytes: &mut [u8]) {
    let mut at = 0;
    while let Some([first, kind, high, low]) = bytes.get(at..at + 4).and_then(|b| <[u8; 4]>::try_from(b).ok()) {
        let end = at + (usize::from(u16::from_be_bytes([high, low])) + 1) * 4;
        if first >> 6 != 2 || end > bytes.len() {
            break;
        }
        let packet = &mut bytes[at..end];
        match kind {
            // Reports, without the extensions of profiles.
            200 => clear(packet, 28 + usize::from(first & 31) * 24),
            201 => clear(packet, 8 + usize::from(first & 31) * 24),
            202 => description(packet),
            203 => clear(packet, 4 + usize::from(first & 31) * 4),
            // Feedback, but for what applications define, of which REMB is known.
            205 => {}
            206 if first & 31 != 15 || packet.get(12..16) == Some(b"REMB") => {}
            206 => clear(packet, 12),
            207 => {}
            _ => clear(packet, 8),
        }
        at = end;
    }
    let rest = at.min(bytes.len());
    bytes[rest..].fill(0);
}

fn clear(packet: &mut [u8], from: usize) {
    if let Some(rest) = packet.get_mut(from..) {
        rest.fill(0);
    }
}

/// Texts of a source description (RFC 3550, section 6.5), each replaced by letters of its hash.
fn description(packet: &mut [u8]) {
    let mut at = 8;
    while at + 2 <= packet.len() {
        let (kind, length) = (packet[at], usize::from(packet[at + 1]));
        if kind == 0 {
            // The end of a chunk, filled up to whole words; the next begins with its source.
            at = (at / 4 + 1) * 4 + 4;
            continue;
        }
        let Some(text) = packet.get_mut(at + 2..at + 2 + length) else { return clear(packet, at) };
        let hash = fingerprint(text);
        replace(text, hash);
        at += 2 + length;
    }
}

fn replace(text: &mut [u8], hash: u64) {
    for (i, byte) in text.iter_mut().enumerate() {
        *byte = b'a' + (hash >> (i % 13 * 4) & 15) as u8;
    }
}

/// Replaces what is encrypted behind the first 8 bytes; the same by the same, so that two captures still match.
pub(super) fn encrypted(bytes: &mut [u8]) {
    let mut hash = fingerprint(bytes);
    for byte in bytes.iter_mut().skip(8) {
        hash = hash.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        *byte = (hash >> 56) as u8;
    }
}
