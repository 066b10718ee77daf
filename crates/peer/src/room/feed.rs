//! Frames on their way from a member to the others, and as a source of a session's stream.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use weir_media::{
    CodedFrame, Frame, FrameKind, FrameSource, LayerInfo, MediaKind, PayloadFormat, Payloads, VideoCodec,
};
use weir_units::{DataRate, DataSize, Timestamp};

/// Frames that wait for the session, at most: it takes them at its next turn.
const MAX_WAITING: usize = 256;

/// A frame of video as a decoder takes it, or a packet of audio.
#[derive(Clone, Debug)]
pub(super) struct Coded {
    pub(super) data: Vec<u8>,
    /// Of which encoding; `None` for audio.
    pub(super) encoding: Option<usize>,
    pub(super) key: bool,
    pub(super) discardable: bool,
    pub(super) layer: Option<LayerInfo>,
    pub(super) marker: bool,
    /// Its RTP timestamp, unwrapped.
    pub(super) ticks: i64,
    /// Offset to its time by the sender's thread's clock: of all encodings the same then.
    pub(super) lead: i64,
}

/// A frame with the numbers that it gets in a place.
#[derive(Debug)]
pub(super) struct Forwarded {
    pub(super) coded: Arc<Coded>,
    pub(super) rtp_timestamp: u32,
    pub(super) captured: Timestamp,
    pub(super) picture_id: u64,
    pub(super) tl0_pic_idx: u8,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Forwarded>,
    key_wanted: bool,
}

/// The session's side.
#[derive(Debug)]
pub(super) struct Feed {
    queue: Arc<Mutex<Queue>>,
    format: Option<PayloadFormat>,
    coded: Option<Forwarded>,
    number: u64,
}

/// The room's side.
#[derive(Clone, Debug)]
pub(super) struct FeedPusher(Arc<Mutex<Queue>>);

impl Feed {
    /// Of video in this codec, or of audio.
    pub(super) fn new(codec: Option<VideoCodec>) -> (Self, FeedPusher) {
        let queue = Arc::<Mutex<Queue>>::default();
        let pusher = FeedPusher(Arc::clone(&queue));
        (Self { queue, format: codec.map(PayloadFormat::new), coded: None, number: 0 }, pusher)
    }
}

impl FeedPusher {
    /// Gives a frame; `false` if too many wait.
    pub(super) fn push(&self, frame: Forwarded) -> bool {
        let mut queue = super::lock(&self.0);
        let has_room = queue.frames.len() < MAX_WAITING;
        if has_room {
            queue.frames.push_back(frame);
        }
        has_room
    }
    /// Whether the session has asked for a key frame since the last call.
    pub(super) fn take_key_wanted(&self) -> bool {
        std::mem::take(&mut super::lock(&self.0).key_wanted)
    }
}

impl FrameSource for Feed {
    // Forwarded media follow the target by their encoding.
    fn on_target(&mut self, _: DataRate, _: Timestamp) {}

    fn next_frame_at(&self) -> Option<Timestamp> {
        super::lock(&self.queue).frames.front().map(|f| f.captured)
    }

    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let forwarded = {
            let frames = &mut super::lock(&self.queue).frames;
            frames.front().filter(|f| f.captured <= now)?;
            frames.pop_front()?
        };
        let coded = &forwarded.coded;
        let size = DataSize::from_bytes(coded.data.len() as u64);
        let kind = if coded.key { FrameKind::Key } else { FrameKind::Delta };
        let mut frame = Frame::video(self.number, forwarded.captured, size, kind, forwarded.rtp_timestamp);
        (frame.discardable, frame.marker) = (coded.discardable, coded.marker);
        self.number += 1;
        self.coded = Some(forwarded);
        Some(frame)
    }

    fn request_key_frame(&mut self, _: Timestamp) {
        super::lock(&self.queue).key_wanted = true;
    }

    fn generated_rate(&self) -> DataRate {
        DataRate::ZERO
    }

    fn take_payloads(&mut self, max: DataSize, out: &mut Payloads) -> bool {
        let Some(Forwarded { coded, picture_id, tl0_pic_idx, .. }) = self.coded.take() else { return false };
        let Some(format) = self.format else {
            out.push(&[&coded.data], false);
            return true;
        };
        let layer = coded.layer.map(|l| LayerInfo { tl0_pic_idx: l.tl0_pic_idx.map(|_| tl0_pic_idx), ..l });
        // The last who takes it does not copy its bytes.
        let coded = Arc::try_unwrap(coded).unwrap_or_else(|shared| (*shared).clone());
        let frame = CodedFrame {
            data: coded.data,
            key: coded.key,
            discardable: coded.discardable,
            picture_id,
            layer,
            ..CodedFrame::default()
        };
        format.packetise(&frame, max, out);
        true
    }

    fn media(&self) -> MediaKind {
        if self.format.is_some() { MediaKind::Video } else { MediaKind::Audio }
    }
}
