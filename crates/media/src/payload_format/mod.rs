//! RTP payload formats: coded frames made payloads, and payloads that have arrived made coded frames again.

mod h264;
mod sdp;
mod vp8;
mod vp9;

pub use sdp::{h264_profile_level_id, profile_level_id_of};

use crate::{CodedFrame, LayerInfo, Packetiser, Payloads, ReceivedFrame, ReceivedPayload, Split, VideoCodec};
use weir_units::DataSize;

/// The least size of payloads that is kept to; a smaller limit counts as this one.
pub const LEAST_MAX_PAYLOAD: DataSize = DataSize::from_bytes(20);

/// How coded frames become RTP payloads: H.264 by RFC 6184 in its non-interleaved mode (single NAL units, STAP-A and
/// FU-A), VP8 by RFC 7741 with a picture ID of 15 bits, VP9 by RFC 9628. Layers of VP8 are signalled by TID, Y and TL0PICIDX,
/// those of VP9 in flexible mode; frames without are sent in non-flexible mode.
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
    /// Whether two slices of H.264 never share a packet, so that one loss takes one slice: for slices of a wanted size.
    #[must_use]
    pub const fn with_slices_apart(mut self, apart: bool) -> Self {
        self.slices_apart = apart;
        self
    }
    /// The codec.
    pub const fn codec(self) -> VideoCodec {
        self.codec
    }

    /// Appends the payloads of a frame to `out`, each of at most `max` bytes, but no fewer than [`LEAST_MAX_PAYLOAD`];
    /// none for a frame without data. A payload is discardable where the frame is, and in H.264 where all its NAL units
    /// say so (`nal_ref_idc` 0).
    ///
    /// What H.264 frames hold in front of the first start code and NAL units of types that RFC 6184 reserves (0 and 24
    /// to 31) are left out.
    pub fn packetise(self, frame: &CodedFrame, max: DataSize, out: &mut Payloads) {
        let max = max.max(LEAST_MAX_PAYLOAD).as_bytes() as usize;
        match self.codec {
            VideoCodec::H264 => h264::packetise(frame, max, self.slices_apart, out),
            VideoCodec::Vp8 => vp8::packetise(frame, max, out),
            VideoCodec::Vp9 => vp9::packetise(frame, max, out),
        }
    }
}

/// Pieces of as even a size as can be, each of at most `max` bytes, with whether they are the first and the last.
fn pieces(bytes: &[u8], max: usize) -> impl Iterator<Item = (&[u8], bool, bool)> {
    let packetiser = Packetiser { max_payload: DataSize::from_bytes(max as u64), split: Split::Even };
    let mut rest = bytes;
    packetiser.split(DataSize::from_bytes(bytes.len() as u64)).map(move |p| {
        let (piece, behind) = rest.split_at(p.size.as_bytes() as usize);
        rest = behind;
        (piece, p.start, p.marker)
    })
}

/// What is known of a frame put together from its payloads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Unpacked {
    /// Whether nothing of it is missing, as far as its packets tell.
    pub whole: bool,
    /// Whether a decoder can begin with it: an IDR slice in H.264, a key frame in VP8 and VP9.
    pub key: bool,
    /// Whether no other frame refers to it, as its payloads say.
    pub discardable: bool,
    /// Picture ID of VP8 or VP9, where it is signalled.
    pub picture_id: Option<PictureId>,
    /// Parts left out because packets of them are missing or cannot be read: NAL units of H.264, packets of VP8 and VP9.
    pub dropped: u32,
    /// Its layer, where the payloads tell: of several spatial layers that of the highest frame.
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
    /// What a payload's descriptor says of its layer, where it does: for whoever forwards some layers only.
    pub fn of_payload(codec: VideoCodec, payload: &[u8]) -> Option<Self> {
        match codec {
            VideoCodec::H264 => None,
            VideoCodec::Vp8 => vp8::describe(payload)?.layer,
            VideoCodec::Vp9 => vp9::describe(payload)?.layer,
        }
    }
}

impl PictureId {
    /// How many pictures after `earlier` this one is, if they are near each other.
    pub const fn since(self, earlier: Self) -> u16 {
        let mask = if self.long && earlier.long { 0x7fff } else { 0x7f };
        self.value.wrapping_sub(earlier.value) & mask
    }

    /// The picture ID that a payload's descriptor tells, where the codec has one.
    pub fn of_payload(codec: VideoCodec, payload: &[u8]) -> Option<Self> {
        match codec {
            VideoCodec::H264 => None,
            VideoCodec::Vp8 => vp8::describe(payload)?.picture_id,
            VideoCodec::Vp9 => vp9::describe(payload)?.picture_id,
        }
    }

    /// Reads the field of RFC 7741, section 4.2, and RFC 9628, section 4.2: 7 bits, or 15 where the first bit is set.
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

/// What a [`Depacketiser`] could not use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DepacketiserStats {
    /// Frames read.
    pub frames: u64,
    /// Those of which nothing is missing.
    pub whole: u64,
    /// Payloads or parts of them that cannot be read.
    pub malformed: u64,
    /// Payloads of the interleaved mode of RFC 6184 (STAP-B, MTAP, FU-B), which is not offered.
    pub interleaved: u64,
    /// Payloads and NAL units of reserved types, which RFC 6184 has ignored.
    pub reserved: u64,
    /// NAL units of which a fragment is missing.
    pub fragmented: u64,
    /// Packets behind a gap that VP8 and VP9 cannot be decoded past.
    pub behind_gap: u64,
}

/// Puts frames together from the payloads that have arrived.
///
/// Whatever a payload holds, it is read or counted; the result is longer than what came by four bytes a NAL unit
/// at most.
#[derive(Clone, Debug)]
pub struct Depacketiser {
    codec: VideoCodec,
    /// The last sequence number of the frame before.
    last: Option<u64>,
    stats: DepacketiserStats,
}

/// What a format made of a frame's packets.
#[derive(Default)]
struct Assembled {
    /// Whether the frame's first packet is known to be there.
    front: bool,
    /// Whether something cannot be read, or was refused.
    broken: bool,
    /// The layer frames that were joined.
    frames: Vec<LayerFrame>,
    unpacked: Unpacked,
}

/// A frame of a spatial layer among what was joined.
#[derive(Clone, Copy)]
struct LayerFrame {
    /// Where it ends.
    end: usize,
    /// Whether its last packet has come.
    whole: bool,
    layer: Option<LayerInfo>,
}

impl Depacketiser {
    /// One for payloads of this codec, in any mode that needs no interleaving.
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
    /// What has been read so far.
    pub const fn stats(&self) -> &DepacketiserStats {
        &self.stats
    }

    /// Writes into `out`, which is overwritten, what a decoder can make use of: of H.264 every NAL unit that is there
    /// whole, behind start codes; of VP8 and VP9 what lies in front of the first gap.
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

/// The packets in order of sequence numbers, copies left out, with whether packets are missing in front of each. The
/// first one counts as behind a gap.
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

/// What the descriptor of a payload of VP8 or VP9 tells.
struct Described<'a> {
    /// Whether a picture begins here.
    start: bool,
    /// Whether a frame of a layer begins and ends here, where it is signalled.
    begins: bool,
    ends: bool,
    /// Whether no frame refers to it.
    non_reference: bool,
    picture_id: Option<PictureId>,
    layer: Option<LayerInfo>,
    payload: &'a [u8],
}

/// Joins the payloads in front of the first gap, where they begin with the first of a frame.
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
        // A packet of another picture cannot be told from a forged one: what is behind it is not used either.
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
