//! VP9 (RFC 9628, section 4).

use super::{Assembled, DepacketiserStats, Described, PictureId, join, pieces, take};
use crate::{CodedFrame, Payloads, ReceivedPayload};

/// Bits of the first octet of the descriptor (section 4.2).
const I: u8 = 0x80;
const P: u8 = 0x40;
const L: u8 = 0x20;
const F: u8 = 0x10;
const B: u8 = 0x08;
const E: u8 = 0x04;
const V: u8 = 0x02;
/// Reference indices of a picture in flexible mode, at most.
const MAX_P_DIFF: usize = 3;
/// Layers and picture groups of the scalability structure.
const Y: u8 = 0x10;
const G: u8 = 0x08;
const DESCRIPTOR: usize = 3;

pub(super) fn packetise(frame: &CodedFrame, max: usize, out: &mut Payloads) {
    if frame.data.is_empty() {
        return;
    }
    let [high, low] = PictureId::long_field(frame.picture_id);
    for (piece, start, end) in pieces(&frame.data, max - DESCRIPTOR) {
        let first = I | if frame.key { 0 } else { P } | if start { B } else { 0 } | if end { E } else { 0 };
        out.push(&[&[first, high, low], piece], frame.discardable);
    }
}

pub(super) fn assemble(packets: &[ReceivedPayload], stats: &mut DepacketiserStats, out: &mut Vec<u8>) -> Assembled {
    let mut made = join(packets, stats, out, describe);
    made.unpacked.key = out.first().is_some_and(|&b| is_key(b));
    made
}

/// Reads the first byte of the uncompressed header: frame marker 2, then the profile, no existing frame shown, and frame
/// type 0 (VP9 bitstream specification, section 6.2). Profile 3 has a bit more.
const fn is_key(first: u8) -> bool {
    let shift = if first & 0x30 == 0x30 { 1 } else { 2 };
    first >> 6 == 0b10 && (first >> shift) & 0b11 == 0
}

pub(super) fn describe(bytes: &[u8]) -> Option<Described<'_>> {
    let mut rest = bytes;
    let first = take(&mut rest)?;
    let picture_id = if first & I != 0 { Some(PictureId::read(&mut rest)?) } else { None };
    let mut spatial = 0;
    if first & L != 0 {
        spatial = take(&mut rest)? >> 1 & 0x7;
        if first & F == 0 {
            take(&mut rest)?; // TL0PICIDX
        }
    }
    if first & F != 0 && first & P != 0 {
        let mut more = true;
        for _ in 0..MAX_P_DIFF {
            if more {
                more = take(&mut rest)? & 1 != 0;
            }
        }
        if more {
            return None;
        }
    }
    if first & V != 0 {
        skip_structure(&mut rest)?;
    }
    let start = first & B != 0 && spatial == 0;
    (!rest.is_empty()).then_some(Described { start, non_reference: false, picture_id, payload: rest })
}

/// The scalability structure (section 4.2.1).
fn skip_structure(rest: &mut &[u8]) -> Option<()> {
    let first = take(rest)?;
    if first & Y != 0 {
        let layers = usize::from(first >> 5) + 1;
        *rest = rest.get(4 * layers..)?;
    }
    if first & G != 0 {
        for _ in 0..take(rest)? {
            let references = usize::from(take(rest)? >> 2 & 0x3);
            *rest = rest.get(references..)?;
        }
    }
    Some(())
}
