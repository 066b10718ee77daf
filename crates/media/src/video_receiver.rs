//! Decoding of received frames for display.

mod layers;

use crate::{
    Decoded, Depacketiser, DepacketiserStats, Picture, PictureId, ReceivedFrame, Unpacked, VideoCodec, VideoDecoder,
};
use core::fmt;
use layers::LayerChain;
use weir_units::Timestamp;

/// Treatment of pictures while references are missing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnDamage {
    /// The decoder's output, including errors.
    #[default]
    Show,
    /// The last intact picture, until the damage is repaired.
    Freeze,
}

/// Outcome of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameOutcome {
    /// Shown as coded.
    Intact,
    /// Shown, with parts concealed or predicted from damaged or missing pictures.
    Concealed,
    /// Decodable only with such parts and not shown ([`OnDamage::Freeze`]): the previous picture stays.
    Frozen,
    /// Not decodable: the previous picture stays.
    Undecodable,
}

/// The screen at a frame's playout time.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The frame's RTP timestamp as received.
    pub rtp_timestamp: u32,
    /// When it is shown.
    pub at: Timestamp,
    /// Outcome of the frame.
    pub outcome: FrameOutcome,
    /// Properties of its packets.
    pub unpacked: Unpacked,
    /// The picture on the screen, an earlier one if this frame's is not shown; `None` before the first.
    pub picture: Option<&'a Picture>,
}

/// Counters of a [`VideoReceiver`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VideoReceiverStats {
    /// Frames received: the sum of the next four.
    pub frames: u64,
    /// Frames shown as coded.
    pub intact: u64,
    /// Frames shown with concealed parts.
    pub concealed: u64,
    /// Frames not shown because of damage.
    pub frozen: u64,
    /// Frames not decodable.
    pub undecodable: u64,
    /// Intact key frames.
    pub key_frames: u64,
    /// Frames entirely missing, according to the picture IDs of VP8 and VP9.
    pub missing: u64,
    /// Breaks of the chain of references.
    pub breaks: u64,
}

/// Decodes frames in playout order, and tracks whether their references are intact.
///
/// The chain of references is broken by an incomplete frame that is not discardable, by one that cannot be decoded or
/// only with concealment, and by a frame that never arrived. It is repaired by a key frame; by a frame coded from an
/// earlier intact picture, after a call of [`Self::on_reference_restored`]; and, if the decoder detects missing
/// references itself, by any complete frame that it reports intact. Decoders of H.264 do, since frames are numbered
/// (`frame_num`, ITU-T H.264, section 7.4.3). Those of VP8 and VP9 cannot; there, missing frames show in picture IDs,
/// or without these in sequence numbers.
///
/// If payloads signal layers, frames of upper temporal layers neither break the chain nor are missed when a middlebox
/// drops them: the base layer is tracked by TL0PICIDX, or each frame by its signalled references.
pub struct VideoReceiver {
    depacketiser: Depacketiser,
    decoder: Box<dyn VideoDecoder>,
    on_damage: OnDamage,
    decoder_reports_missing: bool,
    chain: Chain,
    before: Before,
    layers: LayerChain,
    /// The last intact frame.
    last_intact: Option<u32>,
    /// The frame that repairs the chain.
    restoring: Option<u32>,
    data: Vec<u8>,
    decoded: Picture,
    shown: Picture,
    has_shown: bool,
    stats: VideoReceiverStats,
}

/// Whether the references of the next frame are intact.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Chain {
    Unstarted,
    Whole,
    BrokenSince(Timestamp),
}

/// State of earlier frames.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    picture_id: Option<PictureId>,
    /// Frames without an ID since then.
    without_id: u16,
    sequence: Option<u64>,
}

impl Before {
    /// Number of frames missing before the next one, as far as known.
    fn missing(&self, frame: &ReceivedFrame, next: Option<PictureId>) -> u16 {
        if let Some((next, last)) = next.zip(self.picture_id) {
            let gap = next.since(last).saturating_sub(1).saturating_sub(self.without_id);
            // Half of the number space or more is rather a restarted sender.
            let half = if next.long && last.long { 0x4000 } else { 0x40 };
            return if gap < half { gap } else { 1 };
        }
        let first = frame.packets.first().map(|p| p.sequence);
        u16::from(self.sequence.zip(first).is_some_and(|(last, first)| first > last.saturating_add(1)))
    }

    fn note(&mut self, frame: &ReceivedFrame, picture_id: Option<PictureId>) {
        match picture_id {
            Some(_) => (self.picture_id, self.without_id) = (picture_id, 0),
            None => self.without_id = self.without_id.saturating_add(1),
        }
        self.sequence = self.sequence.max(frame.packets.iter().map(|p| p.sequence).max());
    }
}

impl fmt::Debug for VideoReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("VideoReceiver");
        f.field("codec", &self.codec()).field("chain", &self.chain).field("stats", &self.stats).finish_non_exhaustive()
    }
}

impl VideoReceiver {
    /// A receiver with this decoder.
    pub fn new(decoder: Box<dyn VideoDecoder>, on_damage: OnDamage) -> Self {
        let codec = decoder.codec();
        let picture = || Picture::new(1, 1).expect("a picture may have one sample");
        Self {
            depacketiser: Depacketiser::new(codec),
            decoder_reports_missing: codec == VideoCodec::H264,
            decoder,
            on_damage,
            chain: Chain::Unstarted,
            before: Before::default(),
            layers: LayerChain::default(),
            last_intact: None,
            restoring: None,
            data: Vec::new(),
            decoded: picture(),
            shown: picture(),
            has_shown: false,
            stats: VideoReceiverStats::default(),
        }
    }

    /// Whether the decoder itself detects missing references, so that a complete frame that it reports intact repairs
    /// the chain; by default as usual for the codec.
    #[must_use]
    pub const fn with_decoder_that_reports(mut self, reports: bool) -> Self {
        self.decoder_reports_missing = reports;
        self
    }
    /// The codec.
    pub fn codec(&self) -> VideoCodec {
        self.depacketiser.codec()
    }
    /// Its counters.
    pub const fn stats(&self) -> &VideoReceiverStats {
        &self.stats
    }
    /// Counters of its depacketiser.
    pub const fn depacketiser_stats(&self) -> &DepacketiserStats {
        self.depacketiser.stats()
    }
    /// The picture on the screen; `None` before the first.
    pub fn picture(&self) -> Option<&Picture> {
        self.has_shown.then_some(&self.shown)
    }

    /// Since when the chain of references has been broken; `None` if it is intact or has not begun.
    pub const fn damaged_since(&self) -> Option<Timestamp> {
        if let Chain::BrokenSince(at) = self.chain { Some(at) } else { None }
    }
    /// Whether only a key frame, or a frame coded from the one in [`Self::last_decoded`], can repair the picture. It
    /// stays `true` until that has arrived: the caller paces its requests.
    pub const fn wants_key_frame(&self) -> bool {
        match self.chain {
            Chain::Unstarted => self.stats.frames > 0,
            Chain::Whole => false,
            Chain::BrokenSince(_) => true,
        }
    }
    /// RTP timestamp of the last intact frame, for the selection of a reference.
    pub const fn last_decoded(&self) -> Option<u32> {
        self.last_intact
    }

    /// The sender has coded the frame with this timestamp from an intact picture: it repairs the chain if it is
    /// complete.
    pub fn on_reference_restored(&mut self, rtp_timestamp: u32) {
        self.restoring = Some(rtp_timestamp);
    }

    /// Resets the stream, for instance for another sender; the picture stays, and a key frame is awaited.
    pub fn restart(&mut self) {
        self.chain = Chain::Unstarted;
        (self.before, self.last_intact, self.restoring) = (Before::default(), None, None);
        self.layers = LayerChain::default();
    }

    /// Takes the next frame in playout order, or its received part, and returns the resulting screen.
    pub fn on_frame(&mut self, frame: &ReceivedFrame) -> Shown<'_> {
        let unpacked = self.depacketiser.read(frame, &mut self.data);
        let missing = self.before.missing(frame, unpacked.picture_id);
        self.before.note(frame, unpacked.picture_id);
        let certain = unpacked.picture_id.is_some();
        let layered = unpacked.layer.filter(|_| certain);
        let complete = layered.is_none_or(|l| self.layers.has_what_it_needs(&unpacked, &l, missing));
        let upper = layered.is_some_and(|l| l.id.temporal > 0);
        if layered.is_some() {
            if !complete && !upper {
                self.break_chain(frame.at);
            }
        } else if missing > 0 && (certain || !self.decoder_reports_missing) {
            self.stats.missing += u64::from(missing) * u64::from(certain);
            self.break_chain(frame.at);
        }
        let decoded = match self.data.as_slice() {
            [] => Decoded::Nothing,
            data => self.decoder.decode(data, unpacked.whole, &mut self.decoded),
        };
        let sound = unpacked.whole && decoded == Decoded::Intact;
        if sound && (unpacked.key || self.decoder_reports_missing || self.restoring == Some(frame.rtp_timestamp)) {
            self.chain = Chain::Whole;
        }
        if self.restoring.is_some_and(|t| frame.rtp_timestamp.wrapping_sub(t) as i32 >= 0) {
            self.restoring = None;
        }
        if !sound && !unpacked.discardable && !upper {
            self.break_chain(frame.at);
        }
        let sound = sound && (complete || unpacked.key);
        if let Some(layer) = layered {
            self.layers.note(&unpacked, &layer, sound && self.chain == Chain::Whole);
        }
        let outcome = match decoded {
            Decoded::Nothing => FrameOutcome::Undecodable,
            _ if sound && self.chain == Chain::Whole => FrameOutcome::Intact,
            _ if self.on_damage == OnDamage::Freeze => FrameOutcome::Frozen,
            _ => FrameOutcome::Concealed,
        };
        self.count(outcome);
        if outcome == FrameOutcome::Intact {
            self.last_intact = Some(frame.rtp_timestamp);
            self.stats.key_frames += u64::from(unpacked.key);
        }
        if matches!(outcome, FrameOutcome::Intact | FrameOutcome::Concealed) {
            core::mem::swap(&mut self.decoded, &mut self.shown);
            self.has_shown = true;
        }
        let (rtp_timestamp, at) = (frame.rtp_timestamp, frame.at);
        Shown { rtp_timestamp, at, outcome, unpacked, picture: self.picture() }
    }

    fn break_chain(&mut self, at: Timestamp) {
        if self.chain == Chain::Whole {
            self.chain = Chain::BrokenSince(at);
            self.stats.breaks += 1;
        }
    }

    fn count(&mut self, outcome: FrameOutcome) {
        self.stats.frames += 1;
        match outcome {
            FrameOutcome::Intact => self.stats.intact += 1,
            FrameOutcome::Concealed => self.stats.concealed += 1,
            FrameOutcome::Frozen => self.stats.frozen += 1,
            FrameOutcome::Undecodable => self.stats.undecodable += 1,
        }
    }
}

#[cfg(test)]
mod tests;
