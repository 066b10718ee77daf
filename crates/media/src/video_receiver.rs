//! From what has arrived of frames to what is on the screen.

mod layers;

use crate::{
    Decoded, Depacketiser, DepacketiserStats, Picture, PictureId, ReceivedFrame, Unpacked, VideoCodec, VideoDecoder,
};
use core::fmt;
use layers::LayerChain;
use weir_units::Timestamp;

/// What is shown while references are missing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum OnDamage {
    /// What the decoder makes of it, errors and all.
    #[default]
    Show,
    /// The last picture that was as coded, until the damage is mended.
    Freeze,
}

/// What became of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameOutcome {
    /// It is on the screen as it was coded.
    Intact,
    /// It is on the screen, with parts guessed or predicted from pictures that are damaged or missing.
    Concealed,
    /// It could be decoded only with such parts and is withheld ([`OnDamage::Freeze`]): the picture before stays.
    Frozen,
    /// Nothing could be made of it: the picture before stays.
    Undecodable,
}

/// What is on the screen when a frame's time has come.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// The frame's RTP timestamp, as it stood in its packets.
    pub rtp_timestamp: u32,
    /// When it is shown.
    pub at: Timestamp,
    /// What became of the frame.
    pub outcome: FrameOutcome,
    /// What its packets tell.
    pub unpacked: Unpacked,
    /// The picture on the screen, which is an earlier one where this frame's is not shown; `None` while there has been
    /// none.
    pub picture: Option<&'a Picture>,
}

/// What a [`VideoReceiver`] has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VideoReceiverStats {
    /// Frames given to it: the sum of the next four.
    pub frames: u64,
    /// Frames shown as they were coded.
    pub intact: u64,
    /// Frames shown with parts guessed.
    pub concealed: u64,
    /// Frames withheld because of damage.
    pub frozen: u64,
    /// Frames of which nothing could be made.
    pub undecodable: u64,
    /// Key frames that were decoded as coded.
    pub key_frames: u64,
    /// Frames that are known to be missing altogether, by the picture IDs of VP8 and VP9.
    pub missing: u64,
    /// How often the chain of references broke.
    pub breaks: u64,
}

/// Decodes frames in the order in which they are played, and knows whether what they refer to is there.
///
/// The chain of references breaks with a frame that is not discardable and of which something is missing, with one that
/// cannot be decoded or only by guessing, and with a frame that never came. It is mended by a key frame; by a frame that
/// the sender coded from a picture decoded before, once [`Self::on_reference_restored`] tells; and, where the decoder
/// tells missing references itself, by any whole frame that it calls intact. Decoders of H.264 do, as frames are numbered
/// (`frame_num`, ITU-T H.264, section 7.4.3). Those of VP8 and VP9 cannot; there frames that never came show in picture
/// IDs, and where there are none in sequence numbers.
///
/// Where payloads tell layers, frames of upper temporal layers neither break the chain nor are they missed when whoever
/// forwards leaves them out: the base layer is followed by TL0PICIDX, or each frame by what it says that it refers to.
pub struct VideoReceiver {
    depacketiser: Depacketiser,
    decoder: Box<dyn VideoDecoder>,
    on_damage: OnDamage,
    decoder_tells: bool,
    chain: Chain,
    before: Before,
    layers: LayerChain,
    /// The last frame that was as coded.
    last_intact: Option<u32>,
    /// The frame that mends the chain.
    restoring: Option<u32>,
    data: Vec<u8>,
    decoded: Picture,
    shown: Picture,
    has_shown: bool,
    stats: VideoReceiverStats,
}

/// Whether the pictures that the next frame refers to are there as they were coded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Chain {
    Unstarted,
    Whole,
    BrokenSince(Timestamp),
}

/// What is known of the frames before.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    picture_id: Option<PictureId>,
    /// Frames since that one that carried none.
    without_id: u16,
    sequence: Option<u64>,
}

impl Before {
    /// How many frames are missing between these and the next, as far as is known.
    fn missing(&self, frame: &ReceivedFrame, next: Option<PictureId>) -> u16 {
        if let Some((next, last)) = next.zip(self.picture_id) {
            let gap = next.since(last).saturating_sub(1).saturating_sub(self.without_id);
            // Half the numbers or more: rather a sender that has started again.
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
    /// A receiver of what this decoder reads.
    pub fn new(decoder: Box<dyn VideoDecoder>, on_damage: OnDamage) -> Self {
        let codec = decoder.codec();
        let picture = || Picture::new(1, 1).expect("a picture may have one sample");
        Self {
            depacketiser: Depacketiser::new(codec),
            decoder_tells: codec == VideoCodec::H264,
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

    /// Whether the decoder itself tells missing references, so that a whole frame that it calls intact mends the chain;
    /// as the codec has it unless set here.
    #[must_use]
    pub const fn with_decoder_that_tells(mut self, tells: bool) -> Self {
        self.decoder_tells = tells;
        self
    }
    /// The codec.
    pub fn codec(&self) -> VideoCodec {
        self.depacketiser.codec()
    }
    /// What it has seen.
    pub const fn stats(&self) -> &VideoReceiverStats {
        &self.stats
    }
    /// What its depacketiser has read.
    pub const fn depacketiser_stats(&self) -> &DepacketiserStats {
        self.depacketiser.stats()
    }
    /// The picture on the screen; `None` while there has been none.
    pub fn picture(&self) -> Option<&Picture> {
        self.has_shown.then_some(&self.shown)
    }

    /// Since when the chain of references is broken; `None` where it is whole or has not begun.
    pub const fn damaged_since(&self) -> Option<Timestamp> {
        if let Chain::BrokenSince(at) = self.chain { Some(at) } else { None }
    }
    /// Whether only a key frame, or a frame coded from the one that [`Self::last_decoded`] names, gives sound pictures
    /// again. It stays so until that has come: whoever asks paces the questions.
    pub const fn wants_key_frame(&self) -> bool {
        match self.chain {
            Chain::Unstarted => self.stats.frames > 0,
            Chain::Whole => false,
            Chain::BrokenSince(_) => true,
        }
    }
    /// RTP timestamp of the last frame that was decoded as coded, for the selection of a reference.
    pub const fn last_decoded(&self) -> Option<u32> {
        self.last_intact
    }

    /// Tells that the sender has coded the frame of this timestamp from a picture that was decoded as coded: with it the
    /// chain is whole again, if it comes whole.
    pub fn on_reference_restored(&mut self, rtp_timestamp: u32) {
        self.restoring = Some(rtp_timestamp);
    }

    /// Forgets the stream, as when another sender begins; the picture stays, and a key frame is waited for.
    pub fn restart(&mut self) {
        self.chain = Chain::Unstarted;
        (self.before, self.last_intact, self.restoring) = (Before::default(), None, None);
        self.layers = LayerChain::default();
    }

    /// Takes the next frame, in the order of playout, or what has arrived of it, and tells what is on the screen then.
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
        } else if missing > 0 && (certain || !self.decoder_tells) {
            self.stats.missing += u64::from(missing) * u64::from(certain);
            self.break_chain(frame.at);
        }
        let decoded = match self.data.as_slice() {
            [] => Decoded::Nothing,
            data => self.decoder.decode(data, unpacked.whole, &mut self.decoded),
        };
        let sound = unpacked.whole && decoded == Decoded::Intact;
        if sound && (unpacked.key || self.decoder_tells || self.restoring == Some(frame.rtp_timestamp)) {
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
