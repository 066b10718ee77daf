use super::sent_pictures::{Applied, SentPictures};
use crate::frame::Numbering;
use crate::{
    CodedFrame, Frame, FrameSource, LayerSelection, PayloadFormat, Payloads, SourceFeedback, VideoCodec, VideoEncoder,
    VideoError,
};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_units::{DataRate, DataSize, Timestamp};

/// Most frames and requests waiting.
const MAX_WAITING: usize = 64;

#[derive(Debug, Default)]
struct Shared {
    frames: VecDeque<(Frame, CodedFrame)>,
    numbering: Numbering,
    target: DataRate,
    /// The target last set on the encoder.
    announced: DataRate,
    key_wanted: bool,
    feedback: VecDeque<SourceFeedback>,
    sent: SentPictures,
    slices_apart: bool,
    refused: u64,
    /// The layers to send, if the encoder makes several.
    layers: Option<LayerSelection>,
    /// Layer frames not sent.
    left_out: u64,
    /// Capture time of the picture whose layer frame was last returned.
    layers_of: Option<Timestamp>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    // A panic of a lock holder leaves no partial change.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frames from an encoder on another thread: see [`FramePusher`].
///
/// Each is due at its capture time, that is at once.
#[derive(Debug)]
pub struct PushedSource {
    shared: Arc<Mutex<Shared>>,
    format: PayloadFormat,
    coded: CodedFrame,
}

/// The encoder's side of a [`PushedSource`]: before each picture [`Self::apply`] passes requests to the encoder, and
/// afterwards [`Self::push`] passes its output to the source.
#[derive(Clone, Debug)]
pub struct FramePusher(Arc<Mutex<Shared>>);

impl PushedSource {
    /// A source of frames of this codec, and its pusher.
    pub fn new(codec: VideoCodec) -> (Self, FramePusher) {
        let shared = Arc::new(Mutex::new(Shared::default()));
        let pusher = FramePusher(shared.clone());
        (Self { shared, format: codec.into(), coded: CodedFrame::default() }, pusher)
    }
}

impl FramePusher {
    /// Passes the target, key frame requests and feedback since the last call to the encoder. An encoder of several
    /// layers also gets the split of the target over them ([`LayerSelection`]).
    ///
    /// # Errors
    /// The encoder refuses the target; the rest is passed on nevertheless.
    pub fn apply(&self, encoder: &mut dyn VideoEncoder, now: Timestamp) -> Result<(), VideoError> {
        let mut shared = lock(&self.0);
        let s = &mut *shared;
        if std::mem::take(&mut s.key_wanted) {
            encoder.request_key_frame();
        }
        while let Some(feedback) = s.feedback.pop_front() {
            let _: Applied = s.sent.on_feedback(feedback, encoder);
        }
        s.slices_apart = encoder.config().slice_size.is_some();
        let config = encoder.config();
        if !config.layering.is_single() {
            let size = (config.width, config.height);
            let layers = s.layers.get_or_insert_with(|| LayerSelection::new(config.layering, size));
            let before = layers.top();
            if layers.follow(s.target, now) {
                s.announced = DataRate::ZERO;
                // A spatial layer that has not been sent has no reference.
                if layers.top().spatial > before.spatial {
                    encoder.request_key_frame();
                }
            }
        }
        if s.target != s.announced && s.target > DataRate::ZERO {
            s.announced = s.target;
            return match &s.layers {
                Some(layers) => encoder.set_layer_rates(&layers.share_out(s.target)),
                None => encoder.set_bit_rate(s.target),
            };
        }
        Ok(())
    }

    /// Passes a frame captured at this time; returns the frame as sent. `None` if it has no data, its layer is not
    /// sent, or too many are waiting for the sender: then it is lost, and a key frame is requested. Layer frames of a
    /// picture must be passed lowest first, with the same time.
    pub fn push(&self, captured: Timestamp, mut coded: CodedFrame) -> Option<Frame> {
        let mut s = lock(&self.0);
        if coded.data.is_empty() {
            return None;
        }
        let layer = coded.layer.map(|l| l.id).unwrap_or_default();
        let top = s.layers.as_ref().map(LayerSelection::top);
        if top.is_some_and(|top| !layer.is_within(top)) {
            s.left_out += 1;
            return None;
        }
        coded.more_layers &= top.is_none_or(|top| layer.spatial < top.spatial);
        if s.frames.len() == MAX_WAITING {
            s.refused += 1;
            s.key_wanted = true;
            return None;
        }
        let size = DataSize::from_bytes(coded.data.len() as u64);
        let is_upper = s.layers_of.take() == Some(captured);
        let frame = match is_upper {
            true => s.numbering.layer_frame(captured, size, coded.kind()),
            false => s.numbering.frame(captured, size, coded.kind()),
        };
        let frame = Frame { layer, discardable: coded.discardable, marker: !coded.more_layers, ..frame };
        s.layers_of = coded.more_layers.then_some(captured);
        s.sent.note(frame.rtp_timestamp, coded.picture_id);
        s.frames.push_back((frame, coded));
        Some(frame)
    }

    /// The current target; zero for a pause.
    pub fn target(&self) -> DataRate {
        lock(&self.0).target
    }
    /// Layer frames not sent because the target was too low for their layers.
    pub fn left_out(&self) -> u64 {
        lock(&self.0).left_out
    }
    /// Frames lost because too many were waiting.
    pub fn refused(&self) -> u64 {
        lock(&self.0).refused
    }
}

impl FrameSource for PushedSource {
    fn on_target(&mut self, rate: DataRate, _: Timestamp) {
        lock(&self.shared).target = rate;
    }

    fn next_frame_at(&self) -> Option<Timestamp> {
        lock(&self.shared).frames.front().map(|(frame, _)| frame.captured)
    }

    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let frames = &mut lock(&self.shared).frames;
        frames.front().filter(|(frame, _)| frame.captured <= now)?;
        let (frame, coded) = frames.pop_front()?;
        self.coded = coded;
        Some(frame)
    }

    fn request_key_frame(&mut self, _: Timestamp) {
        lock(&self.shared).key_wanted = true;
    }

    fn generated_rate(&self) -> DataRate {
        lock(&self.shared).target
    }

    fn take_payloads(&mut self, max: DataSize, out: &mut Payloads) -> bool {
        let apart = lock(&self.shared).slices_apart;
        self.format.with_slices_apart(apart).packetise(&self.coded, max, out);
        true
    }

    fn on_feedback(&mut self, feedback: SourceFeedback, _: Timestamp) -> bool {
        let mut s = lock(&self.shared);
        if s.feedback.len() == MAX_WAITING {
            s.feedback.pop_front();
        }
        s.feedback.push_back(feedback);
        true
    }
}
