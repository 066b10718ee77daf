//! VP9 (RFC 9628, section 4).

use super::{Assembled, DepacketiserStats, Described, PictureId, join, pieces, take};
use crate::{CodedFrame, LayerId, LayerInfo, Payloads, ReceivedPayload};

/// Bits of the first octet of the descriptor (section 4.2).
const I: u8 = 0x80;
const P: u8 = 0x40;
const L: u8 = 0x20;
const F: u8 = 0x10;
const B: u8 = 0x08;
const E: u8 = 0x04;
const V: u8 = 0x02;
/// Most reference indices of a picture in flexible mode.
const MAX_P_DIFF: usize = 3;
/// Layers and picture groups of the scalability structure.
const Y: u8 = 0x10;
const G: u8 = 0x08;
const DESCRIPTOR: usize = 3;
/// Fields of the octet of layer indices, and the bit after a P_DIFF.
const TID: u32 = 5;
const U: u8 = 0x10;
const SID: u32 = 1;
const D: u8 = 0x01;
const MORE: u8 = 0x01;

/// Frames of layers are sent in flexible mode: each signals the pictures to which it refers. The structure, without
/// sizes and picture groups, is in the first packet of key pictures.
pub(super) fn packetise(frame: &CodedFrame, max: usize, out: &mut Payloads) {
    if frame.data.is_empty() {
        return;
    }
    let [high, low] = PictureId::long_field(frame.picture_id);
    let predicted = if frame.key { 0 } else { P };
    let Some(layer) = &frame.layer else {
        for (piece, start, end) in pieces(&frame.data, max - DESCRIPTOR) {
            let first = I | predicted | if start { B } else { 0 } | if end { E } else { 0 };
            out.push(&[&[first, high, low], piece], frame.discardable);
        }
        return;
    };
    let up = if layer.sync { U } else { 0 };
    let mut fields =
        vec![high, low, layer.id.temporal << TID | up | layer.id.spatial << SID | u8::from(layer.inter_layer)];
    if !frame.key {
        let listed = layer.references.unwrap_or_default();
        let count = listed.iter().position(|d| *d == 0).unwrap_or(MAX_P_DIFF).max(1);
        // A reference must be signalled: if none is known it is the previous picture.
        fields.extend((0..count).map(|n| listed[n].clamp(1, 127) << 1 | if n + 1 < count { MORE } else { 0 }));
    }
    let structure = layer.spatial_layers.filter(|_| frame.key && layer.id.spatial == 0);
    // Every packet has room for the structure, so that all have the same size.
    for (piece, start, end) in pieces(&frame.data, max - 1 - fields.len() - usize::from(structure.is_some())) {
        let listed = structure.filter(|_| start).map(|s| [s.saturating_sub(1) << 5]);
        let first = I | predicted | L | F | if start { B } else { 0 } | if end { E } else { 0 };
        let first = first | if listed.is_some() { V } else { 0 };
        let listed = listed.as_ref().map_or(&[][..], |t| t);
        out.push(&[&[first], &fields, listed, piece], frame.discardable);
    }
}

pub(super) fn assemble(packets: &[ReceivedPayload], stats: &mut DepacketiserStats, out: &mut Vec<u8>) -> Assembled {
    let mut made = join(packets, stats, out, describe);
    made.unpacked.key = out.first().is_some_and(|&b| is_key(b));
    if made.frames.len() > 1 {
        // A layer frame is usable only if complete.
        let whole = made.frames.iter().rposition(|f| f.whole).map_or(0, |last| last + 1);
        made.frames.truncate(whole);
        out.truncate(made.frames.last().map_or(0, |f| f.end));
        made.unpacked.layer = made.frames.last().and_then(|f| f.layer);
    }
    if made.frames.len() > 1 {
        join_references(&mut made);
        write_index(&made, out);
    }
    made
}

/// A picture refers to everything that its layer frames refer to.
fn join_references(made: &mut Assembled) {
    let mut all: Vec<u8> =
        made.frames.iter().filter_map(|f| f.layer?.references).flatten().filter(|d| *d > 0).collect();
    all.sort_unstable();
    all.dedup();
    if let Some(listed) = made.unpacked.layer.as_mut().and_then(|l| l.references.as_mut()) {
        *listed = [0; MAX_P_DIFF];
        all.iter().zip(listed).for_each(|(from, to)| *to = *from);
    }
    if let Some(layer) = &mut made.unpacked.layer {
        layer.spatial_layers = made.frames.iter().find_map(|f| f.layer?.spatial_layers);
    }
}

/// Makes a superframe of layer frames (VP9 bitstream specification, annex B), as expected by decoders.
fn write_index(made: &Assembled, out: &mut Vec<u8>) {
    // Frames of at most eight layers, and sizes of four bytes.
    let marker = 0b1101_1000 | (made.frames.len() - 1).min(7) as u8;
    out.push(marker);
    let mut start = 0;
    for f in made.frames.iter().take(8) {
        out.extend_from_slice(&((f.end - start) as u32).to_le_bytes());
        start = f.end;
    }
    out.push(marker);
}

/// Parses the first byte of the uncompressed header: frame marker 2, then the profile, no existing frame shown, and
/// frame type 0 (VP9 bitstream specification, section 6.2). Profile 3 has a further bit.
const fn is_key(first: u8) -> bool {
    let shift = if first & 0x30 == 0x30 { 1 } else { 2 };
    first >> 6 == 0b10 && (first >> shift) & 0b11 == 0
}

pub(super) fn describe(bytes: &[u8]) -> Option<Described<'_>> {
    let mut rest = bytes;
    let first = take(&mut rest)?;
    let picture_id = if first & I != 0 { Some(PictureId::read(&mut rest)?) } else { None };
    let (flexible, mut layer) = (first & F != 0, None);
    if first & L != 0 {
        let indices = take(&mut rest)?;
        let tl0_pic_idx = if flexible { None } else { Some(take(&mut rest)?) };
        layer = Some(LayerInfo {
            id: LayerId::new(indices >> SID & 0x7, indices >> TID),
            sync: indices & U != 0,
            tl0_pic_idx,
            inter_layer: indices & D != 0,
            references: flexible.then_some([0; MAX_P_DIFF]),
            spatial_layers: None,
        });
    }
    if flexible && first & P != 0 {
        let mut listed = [0; MAX_P_DIFF];
        let mut more = true;
        for to in &mut listed {
            if more {
                let difference = take(&mut rest)?;
                (*to, more) = (difference >> 1, difference & MORE != 0);
            }
        }
        // Zero is invalid (section 4.2).
        if more || listed[0] == 0 {
            return None;
        }
        if let Some(layer) = &mut layer {
            layer.references = Some(listed);
        }
    }
    if first & V != 0 {
        let count = read_structure(&mut rest)?;
        if let Some(layer) = &mut layer {
            layer.spatial_layers = Some(count);
        }
    }
    let begins = first & B != 0;
    let start = begins && layer.is_none_or(|l| l.id.spatial == 0);
    (!rest.is_empty()).then_some(Described {
        start,
        begins,
        ends: first & E != 0,
        non_reference: false,
        picture_id,
        layer,
        payload: rest,
    })
}

/// Parses the scalability structure (section 4.2.1); returns the number of spatial layers.
fn read_structure(rest: &mut &[u8]) -> Option<u8> {
    let first = take(rest)?;
    let layers = (first >> 5) + 1;
    if first & Y != 0 {
        *rest = rest.get(4 * usize::from(layers)..)?;
    }
    if first & G != 0 {
        for _ in 0..take(rest)? {
            let references = usize::from(take(rest)? >> 2 & 0x3);
            *rest = rest.get(references..)?;
        }
    }
    Some(layers)
}
