//! VP8 (RFC 7741, section 4).

use super::{Assembled, DepacketiserStats, Described, PictureId, join, pieces, take};
use crate::{CodedFrame, Payloads, ReceivedPayload};

/// Bits of the first octet of the descriptor (section 4.2).
const X: u8 = 0x80;
const N: u8 = 0x20;
const S: u8 = 0x10;
const PID: u8 = 0x07;
/// Bits of its second.
const I: u8 = 0x80;
const L: u8 = 0x40;
const T: u8 = 0x20;
const K: u8 = 0x10;
const DESCRIPTOR: usize = 4;

/// All packets have partition index 0, as section 4.2 allows.
pub(super) fn packetise(frame: &CodedFrame, max: usize, out: &mut Payloads) {
    if frame.data.is_empty() {
        return;
    }
    let [high, low] = PictureId::long_field(frame.picture_id);
    for (piece, start, _) in pieces(&frame.data, max - DESCRIPTOR) {
        let first = X | if frame.discardable { N } else { 0 } | if start { S } else { 0 };
        out.push(&[&[first, I, high, low], piece], frame.discardable);
    }
}

pub(super) fn assemble(packets: &[ReceivedPayload], stats: &mut DepacketiserStats, out: &mut Vec<u8>) -> Assembled {
    let mut made = join(packets, stats, out, describe);
    // The inverse key frame flag (section 4.3).
    made.unpacked.key = out.first().is_some_and(|b| b & 1 == 0);
    made
}

pub(super) fn describe(bytes: &[u8]) -> Option<Described<'_>> {
    let mut rest = bytes;
    let first = take(&mut rest)?;
    let extension = if first & X != 0 { take(&mut rest)? } else { 0 };
    let picture_id = if extension & I != 0 { Some(PictureId::read(&mut rest)?) } else { None };
    if extension & L != 0 {
        take(&mut rest)?;
    }
    if extension & (T | K) != 0 {
        take(&mut rest)?;
    }
    let (start, non_reference) = (first & S != 0 && first & PID == 0, first & N != 0);
    (!rest.is_empty()).then_some(Described { start, non_reference, picture_id, payload: rest })
}
