//! RTP payload formats: from coded frames to payloads, and from received payloads to coded frames.

mod h264;
mod sdp;
mod vp8;
mod vp9;

pub use sdp::{h264_profile_level_id, profile_level_id_of};
pub use vp8::begins_vp8_frame;

use crate::{CodedFrame, LayerInfo, Packetiser, Payloads, ReceivedFrame, ReceivedPayload, Split, VideoCodec};
use weir_units::DataSize;

/// Least payload limit; a smaller one counts as this.
pub const LEAST_MAX_PAYLOAD: DataSize = DataSize::from_bytes(20);

/// How coded frames become RTP payloads: H.264 by RFC 6184 in its non-interleaved mode (single NAL units, STAP-A and
/// FU-A), VP8 by RFC 7741 with a picture ID of 15 bits, VP9 by RFC 9628. Layers of VP8 are signalled by TID, Y and
/// TL0PICIDX, those of VP9 in flexible mode; frames without layers are sent in non-flexible mode.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PayloadFormat {
    codec: VideoCodec,
    slices_apart: bool,
}

impl From<VideoCodec> for PayloadFormat {
    fn from(codec: VideoCodec) -> Self {
        Self::new(codec)
    }
}

impl PayloadFormat {
    /// The format of this codec. Small NAL units share a packet.
    pub const fn new(codec: VideoCodec) -> Self {
        Self { codec, slices_apart: false }
    }
    /// Whether two slices of H.264 never share a packet, so that a loss affects one slice only; for slices of limited
    /// size.
    #[must_use]
    pub const fn with_slices_apart(mut self, apart: bool) -> Self {
        self.slices_apart = apart;
        self
    }
    /// The codec.
    pub const fn codec(self) -> VideoCodec {
        self.codec
    }

    /// Appends the payloads of a frame to `out`, each of at most `max` bytes, or [`LEAST_MAX_PAYLOAD`] if that is
    /// greater; none for a frame without data. A payload is discardable if the frame is, and in H.264 if all its NAL
    /// units are (`nal_ref_idc` 0).
    ///
    /// In H.264, bytes before the first start code and NAL units of types that RFC 6184 reserves (0 and 24 to 31) are
    /// skipped.
    pub fn packetise(self, frame: &CodedFrame, max: DataSize, out: &mut Payloads) {
        let max = max.max(LEAST_MAX_PAYLOAD).as_bytes() as usize;
        match self.codec {
            VideoCodec::H264 => h264::packetise(frame, max, self.slices_apart, out),
            VideoCodec::Vp8 => vp8::packetise(frame, max, out),
            VideoCodec::Vp9 => vp9::packetise(frame, max, out),
        }
    }
}

/// Pieces of as equal a size as possible, at most `max` bytes each, with whether they are the first and the last.
fn pieces(bytes: &[u8], max: usize) -> impl Iterator<Item = (&[u8], bool, bool)> {
    let packetiser = Packetiser { max_payload: DataSize::from_bytes(max as u64), split: Split::Even };
    let mut rest = bytes;
    packetiser.split(DataSize::from_bytes(bytes.len() as u64)).map(move |p| {
        let (piece, behind) = rest.split_at(p.size.as_bytes() as usize);
        rest = behind;
        (piece, p.start, p.marker)
    })
}

/// Properties of a frame assembled from its payloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unpacked {
    /// Whether it is complete, as far as its packets show.
    pub whole: bool,
    /// Whether decoding can start with it: an IDR slice in H.264, a key frame in VP8 and VP9.
    pub key: bool,
    /// Whether no other frame refers to it, according to its payloads.
    pub discardable: bool,
    /// Picture ID of VP8 or VP9, if signalled.
    pub picture_id: Option<PictureId>,
    /// Parts skipped because their packets are missing or malformed: NAL units of H.264, packets of VP8 and VP9.
    pub dropped: u32,
    /// Its layer, if signalled: with several spatial layers that of the highest frame.
    pub layer: Option<LayerInfo>,
}

/// The picture ID of a payload descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PictureId {
    /// Its 7 or 15 bits.
    pub value: u16,
    /// Whether it has 15 bits.
    pub long: bool,
}

impl LayerInfo {
    /// The layer signalled by a payload's descriptor, if any, for middleboxes that forward some layers only.
    pub fn of_payload(codec: VideoCodec, payload: &[u8]) -> Option<Self> {
        match codec {
            VideoCodec::H264 => None,
            VideoCodec::Vp8 => vp8::describe(payload)?.layer,
            VideoCodec::Vp9 => vp9::describe(payload)?.layer,
        }
    }
}

impl PictureId {
    /// Number of pictures from `earlier` to this one, if they are close.
    pub const fn since(self, earlier: Self) -> u16 {
        let mask = if self.long && earlier.long { 0x7fff } else { 0x7f };
        self.value.wrapping_sub(earlier.value) & mask
    }

    /// The picture ID in a payload's descriptor, if the codec has one.
    pub fn of_payload(codec: VideoCodec, payload: &[u8]) -> Option<Self> {
        match codec {
            VideoCodec::H264 => None,
            VideoCodec::Vp8 => vp8::describe(payload)?.picture_id,
            VideoCodec::Vp9 => vp9::describe(payload)?.picture_id,
        }
    }

    /// Parses the field of RFC 7741, section 4.2, and RFC 9628, section 4.2: 7 bits, or 15 if the first bit is set.
    fn read(rest: &mut &[u8]) -> Option<Self> {
        let first = take(rest)?;
        if first & 0x80 == 0 {
            return Some(Self { value: first.into(), long: false });
        }
        Some(Self { value: u16::from_be_bytes([first & 0x7f, take(rest)?]), long: true })
    }

    /// The same field with 15 bits of a count.
    const fn long_field(count: u64) -> [u8; 2] {
        (0x8000 | (count & 0x7fff) as u16).to_be_bytes()
    }
}

/// Counters of a [`Depacketiser`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DepacketiserStats {
    /// Frames assembled.
    pub frames: u64,
    /// Complete ones.
    pub whole: u64,
    /// Malformed payloads or parts of payloads.
    pub malformed: u64,
    /// Payloads of the interleaved mode of RFC 6184 (STAP-B, MTAP, FU-B), which is not offered.
    pub interleaved: u64,
    /// Payloads and NAL units of reserved types, which RFC 6184 requires to be ignored.
    pub reserved: u64,
    /// NAL units with a missing fragment.
    pub fragmented: u64,
    /// Packets after a gap beyond which VP8 and VP9 cannot be decoded.
    pub behind_gap: u64,
}

/// Assembles frames from received payloads.
///
/// Any payload is either used or counted; the result exceeds the input by at most four bytes per NAL unit.
#[derive(Clone, Debug)]
pub struct Depacketiser {
    codec: VideoCodec,
    /// The last sequence number of the previous frame.
    last: Option<u64>,
    stats: DepacketiserStats,
}

/// Result of assembling a frame's packets.
#[derive(Default)]
struct Assembled {
    /// Whether the frame's first packet is known to be present.
    front: bool,
    /// Whether something was malformed or rejected.
    broken: bool,
    /// The layer frames joined.
    frames: Vec<LayerFrame>,
    unpacked: Unpacked,
}

/// A frame of a spatial layer among those joined.
#[derive(Clone, Copy)]
struct LayerFrame {
    /// Where it ends.
    end: usize,
    /// Whether its last packet has arrived.
    whole: bool,
    layer: Option<LayerInfo>,
}

impl Depacketiser {
    /// For payloads of this codec, in any mode without interleaving.
    pub const fn new(codec: VideoCodec) -> Self {
        let stats = DepacketiserStats {
            frames: 0,
            whole: 0,
            malformed: 0,
            interleaved: 0,
            reserved: 0,
            fragmented: 0,
            behind_gap: 0,
        };
        Self { codec, last: None, stats }
    }
    /// The codec.
    pub const fn codec(&self) -> VideoCodec {
        self.codec
    }
    /// The counters.
    pub const fn stats(&self) -> &DepacketiserStats {
        &self.stats
    }

    /// Writes the usable part into `out`, which is overwritten: for H.264 every complete NAL unit, with start codes;
    /// for VP8 and VP9 everything before the first gap.
    pub fn read(&mut self, frame: &ReceivedFrame, out: &mut Vec<u8>) -> Unpacked {
        out.clear();
        let mut made = match self.codec {
            VideoCodec::H264 => h264::assemble(&frame.packets, &mut self.stats, out),
            VideoCodec::Vp8 => vp8::assemble(&frame.packets, &mut self.stats, out),
            VideoCodec::Vp9 => vp9::assemble(&frame.packets, &mut self.stats, out),
        };
        let first = frame.packets.first().map(|p| p.sequence);
        let follows = self.last.and_then(|l| l.checked_add(1)).is_some_and(|next| Some(next) == first);
        let gapless = rising(&frame.packets).skip(1).all(|(gap, _)| !gap);
        let ends = frame.packets.last().is_some_and(|p| p.marker);
        made.unpacked.whole = (made.front || frame.whole || follows)
            && gapless
            && (ends || frame.whole)
            && !made.broken
            && !out.is_empty();
        self.last = frame.packets.iter().map(|p| p.sequence).max().max(self.last);
        self.stats.frames += 1;
        self.stats.whole += u64::from(made.unpacked.whole);
        made.unpacked
    }
}

/// The packets in order of sequence numbers without duplicates, with whether packets are missing before each. The first
/// one counts as preceded by a gap.
fn rising(packets: &[ReceivedPayload]) -> impl Iterator<Item = (bool, &ReceivedPayload)> {
    let mut last: Option<u64> = None;
    packets.iter().filter_map(move |p| {
        let gap = match last {
            Some(l) if p.sequence <= l => return None,
            Some(l) => p.sequence - l > 1,
            None => true,
        };
        last = Some(p.sequence);
        Some((gap, p))
    })
}

fn take(rest: &mut &[u8]) -> Option<u8> {
    let (&first, behind) = rest.split_first()?;
    *rest = behind;
    Some(first)
}

/// Contents of the descriptor of a VP8 or VP9 payload.
struct Described<'a> {
    /// Whether a picture begins here.
    start: bool,
    /// Whether a layer's frame begins and ends here, if signalled.
    begins: bool,
    ends: bool,
    /// Whether no frame refers to it.
    non_reference: bool,
    picture_id: Option<PictureId>,
    layer: Option<LayerInfo>,
    payload: &'a [u8],
}

/// Joins the payloads before the first gap, if they begin with the first of a frame.
fn join<'a>(
    packets: &'a [ReceivedPayload],
    stats: &mut DepacketiserStats,
    out: &mut Vec<u8>,
    describe: impl Fn(&'a [u8]) -> Option<Described<'a>>,
) -> Assembled {
    let mut made = Assembled::default();
    let mut open = true;
    for (i, (gap, packet)) in rising(packets).enumerate() {
        let described = describe(&packet.bytes);
        stats.malformed += u64::from(described.is_none());
        let Some(d) = described else {
            (made.broken, open) = (true, false);
            made.unpacked.dropped += 1;
            continue;
        };
        if i == 0 {
            made.front = d.start;
            made.unpacked.discardable = d.non_reference;
        }
        // A packet of another picture may be forged: packets after it are not used either.
        if made.unpacked.picture_id.is_some() && d.picture_id.is_some() && made.unpacked.picture_id != d.picture_id {
            stats.malformed += 1;
            (made.broken, open) = (true, false);
        }
        made.unpacked.picture_id = made.unpacked.picture_id.or(d.picture_id);
        open &= made.front && (i == 0 || !gap);
        if open {
            out.extend_from_slice(d.payload);
            if d.layer.is_some() && (i == 0 || d.begins) {
                made.frames.push(LayerFrame { end: 0, whole: false, layer: d.layer });
                made.unpacked.layer = d.layer;
            }
            if let Some(frame) = made.frames.last_mut() {
                (frame.end, frame.whole) = (out.len(), d.ends);
            }
        } else {
            stats.behind_gap += 1;
            made.unpacked.dropped += 1;
        }
    }
    made
}

#[cfg(test)]
mod tests;
