//! VP8 (RFC 7741, section 4).

use super::{Assembled, DepacketiserStats, Described, PictureId, join, pieces, take};
use crate::{CodedFrame, LayerId, LayerInfo, Payloads, ReceivedPayload};

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
/// The layer synchronisation bit, and the position of the temporal layer beside KEYIDX.
const Y: u8 = 0x20;
const TID: u32 = 6;
const DESCRIPTOR: usize = 4;
const DESCRIPTOR_OF_LAYERS: usize = 6;

/// All packets have partition index 0, as section 4.2 allows.
pub(super) fn packetise(frame: &CodedFrame, max: usize, out: &mut Payloads) {
    if frame.data.is_empty() {
        return;
    }
    let [high, low] = PictureId::long_field(frame.picture_id);
    let layer = frame.layer.map(|l| {
        let sync = if l.sync { Y } else { 0 };
        [l.tl0_pic_idx.unwrap_or(0), l.id.temporal << TID | sync]
    });
    let (extension, length) = match layer {
        Some(_) => (I | L | T, DESCRIPTOR_OF_LAYERS),
        None => (I, DESCRIPTOR),
    };
    for (piece, start, _) in pieces(&frame.data, max - length) {
        let first = X | if frame.discardable { N } else { 0 } | if start { S } else { 0 };
        let layer = layer.as_ref().map_or(&[][..], |l| l);
        out.push(&[&[first, extension, high, low], layer, piece], frame.discardable);
    }
}

pub(super) fn assemble(packets: &[ReceivedPayload], stats: &mut DepacketiserStats, out: &mut Vec<u8>) -> Assembled {
    let mut made = join(packets, stats, out, describe);
    // The inverse key frame flag (section 4.3).
    made.unpacked.key = out.first().is_some_and(|b| b & 1 == 0);
    made
}

/// Whether a payload begins a frame of VP8 (RFC 7741, section 4.2); `None` if it is none.
pub fn begins_vp8_frame(payload: &[u8]) -> Option<bool> {
    describe(payload).map(|d| d.begins)
}

pub(super) fn describe(bytes: &[u8]) -> Option<Described<'_>> {
    let mut rest = bytes;
    let first = take(&mut rest)?;
    let extension = if first & X != 0 { take(&mut rest)? } else { 0 };
    let picture_id = if extension & I != 0 { Some(PictureId::read(&mut rest)?) } else { None };
    let tl0_pic_idx = if extension & L != 0 { Some(take(&mut rest)?) } else { None };
    let layers = if extension & (T | K) != 0 { take(&mut rest)? } else { 0 };
    let layer = (extension & T != 0).then(|| LayerInfo {
        id: LayerId::new(0, layers >> TID),
        sync: layers & Y != 0,
        tl0_pic_idx,
        ..LayerInfo::default()
    });
    let (start, non_reference) = (first & S != 0 && first & PID == 0, first & N != 0);
    (!rest.is_empty()).then_some(Described {
        start,
        begins: start,
        ends: false,
        non_reference,
        picture_id,
        layer,
        payload: rest,
    })
}
