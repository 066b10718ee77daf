//! Real encoders as sources of frames, in real or simulated time.
//!
//! Encoders run in any kind of time. Frame n is encoded when the polling clock reaches it; a tap records the
//! originals, which are compared by RTP timestamp with the displayed pictures. With one thread the same pictures give
//! the same bytes, so quality results are deterministic. Live calls encode and decode on threads of their own and wake
//! the loop by an eventfd.

mod params;
mod pushed;
mod sent_pictures;
mod small_keys;
mod tap;

pub use pushed::{FramePusher, PushedSource};
pub use tap::{Captured, Originals, Tap};

use crate::frame::{Numbering, ticks_at};
use crate::rate_meter::RateMeter;
use crate::{
    CodedFrame, Frame, FrameSource, MediaError, PayloadFormat, Payloads, Picture, PictureSource, RateChange,
    SourceFeedback, VideoEncoder,
};
use core::fmt;
use sent_pictures::{Applied, SentPictures};
use small_keys::SmallKeys;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// A source not polled for longer than this skips the time since instead of catching up.
const LONGEST_LAG: TimeDelta = TimeDelta::from_secs(1);
/// Default bounds of an encoder's target; the lower one as in libwebrtc, as of 2024.
const BOUNDS: (DataRate, DataRate) = (DataRate::from_kbps(30), DataRate::from_mbps(100));

/// Counters of an [`EncodedSource`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EncodedStats {
    /// Pictures passed to the encoder.
    pub pictures: u64,
    /// Pictures with at least one coded frame.
    pub frames: u64,
    /// Key frames among them.
    pub key_frames: u64,
    /// Pictures dropped by the encoder to keep its bit rate.
    pub dropped: u64,
    /// Failures of the encoder; the picture is lost, and a key frame is requested next.
    pub encoder_errors: u64,
    /// Failures to read the clip.
    pub clip_errors: u64,
    /// Times that the clip has been restarted.
    pub loops: u64,
    /// Pictures skipped in a pause or a lag of more than a second.
    pub skipped: u64,
    /// Times that the encoder used an older reference instead of a key frame.
    pub references_selected: u64,
}

/// A clip and a real encoder: picture n is encoded when time reaches `start + n / frame_rate`, by any clock, so that it
/// also runs in simulated time. The clip restarts at its end.
///
/// A picture dropped by the encoder gives no frame, and time advances. Failures are counted and do not stop the source.
/// A target of zero pauses it, like any source, and the clip with it.
///
/// To compare with the originals, use [`Self::set_tap`]; [`Originals`] implements a tap.
///
/// | parameter | unit | to set |
/// |---|---|---|
/// | `min_bit_rate`, `max_bit_rate` | bit/s, between which targets are kept | yes |
/// | `slice_size` | bytes, 0 for one slice a frame | where the encoder has slices |
/// | `frame_rate` | frames per second | no |
/// | `key_interval` | frames between unrequested key frames, 0 for none | no |
/// | `rate_change` | `seamless` or `restart` | no |
/// | `size` | as `640x480` | no |
/// | `library` | the library behind the encoder | no |
pub struct EncodedSource {
    clip: Box<dyn PictureSource + Send>,
    encoder: Box<dyn VideoEncoder>,
    format: PayloadFormat,
    tap: Option<Tap>,
    start: Timestamp,
    frame_rate: f64,
    /// Pictures of the clip per frame.
    stride: u32,
    /// The next picture on the time grid.
    index: u64,
    ended: bool,
    requested: DataRate,
    bounds: (DataRate, DataRate),
    /// The target last set on the encoder.
    asked: DataRate,
    numbering: Numbering,
    sent: SentPictures,
    picture: Picture,
    coded: CodedFrame,
    small_keys: SmallKeys,
    /// Whether the next frame should be a key frame.
    expects_key: bool,
    /// Capture time of the picture whose further layer frames are still to be returned.
    layers_of: Option<Timestamp>,
    key_on_resume: bool,
    given: RateMeter,
    stats: EncodedStats,
}

impl fmt::Debug for EncodedSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("EncodedSource");
        f.field("codec", &self.encoder.codec()).field("config", self.encoder.config()).field("stats", &self.stats);
        f.finish_non_exhaustive()
    }
}

impl EncodedSource {
    /// A source whose first frame is due at `start`, once it has a target. If the clip's rate is a multiple of the
    /// encoder's, only every second picture is used, or every third, and so on.
    ///
    /// # Errors
    /// The clip's pictures have another size than the encoder's, or its rate is not a multiple of the encoder's, within
    /// 1 %.
    pub fn new(
        clip: Box<dyn PictureSource + Send>,
        encoder: Box<dyn VideoEncoder>,
        start: Timestamp,
    ) -> Result<Self, MediaError> {
        let config = *encoder.config();
        let error = |field, value: String, expected| Err(MediaError::new("encoder", field, value, expected));
        let (width, height) = clip.size();
        if (config.width, config.height) != (width, height) {
            let expected = format!("{width}x{height}, the size of the clip");
            return error("size", format!("{}x{}", config.width, config.height), expected);
        }
        let clip_rate = 1.0 / clip.interval().as_secs_f64();
        let stride = libm::round(clip_rate / config.frame_rate);
        let off = clip_rate / (stride * config.frame_rate) - 1.0;
        if !(0.0..=0.01).contains(&off.abs()) || !(1.0..=1e6).contains(&stride) {
            let expected = format!("{clip_rate} frames a second, the rate of the clip, or a whole part of it");
            return error("frame_rate", config.frame_rate.to_string(), expected);
        }
        Ok(Self {
            format: PayloadFormat::new(encoder.codec()),
            tap: None,
            start,
            frame_rate: config.frame_rate,
            stride: stride as u32,
            index: 0,
            ended: false,
            requested: DataRate::ZERO,
            bounds: BOUNDS,
            asked: config.bit_rate,
            numbering: Numbering::default(),
            sent: SentPictures::default(),
            picture: Picture::new(width, height)?,
            coded: CodedFrame::default(),
            small_keys: SmallKeys::default(),
            expects_key: true,
            layers_of: None,
            key_on_resume: false,
            given: RateMeter::default(),
            stats: EncodedStats::default(),
            clip,
            encoder,
        })
    }

    /// Makes the first frame after a pause a key frame, as required for encodings of a simulcast: receivers see another
    /// encoding meanwhile.
    #[must_use]
    pub const fn with_key_frame_on_resume(mut self) -> Self {
        self.key_on_resume = true;
        self
    }
    /// Sets a callback for each picture when it is encoded, including those that the encoder drops or fails on.
    pub fn set_tap(&mut self, tap: Tap) {
        self.tap = Some(tap);
    }
    /// The counters.
    pub const fn stats(&self) -> &EncodedStats {
        &self.stats
    }
    /// The encoder.
    pub fn encoder(&self) -> &dyn VideoEncoder {
        &*self.encoder
    }
    /// The payload format.
    pub const fn format(&self) -> PayloadFormat {
        self.format
    }
    /// Converts it to a sender's source.
    pub fn into_source(self) -> crate::Source {
        crate::Source::Codec(Box::new(self))
    }

    fn due(&self, index: u64) -> Timestamp {
        self.start + TimeDelta::from_secs_f64(index as f64 / self.frame_rate)
    }

    /// Skips to the first picture due at `at` or later.
    fn skip_to(&mut self, at: Timestamp) {
        let passed = (at - self.start).as_secs_f64() * self.frame_rate;
        let mut index = (libm::floor(passed).max(0.0) as u64).max(self.index);
        while self.due(index) < at {
            index += 1;
        }
        self.stats.skipped += index - self.index;
        self.index = index;
    }

    /// Reads the clip's next picture, restarting it at its end; returns whether there is one.
    fn read_clip(&mut self) -> Result<bool, MediaError> {
        let first = self.index.saturating_sub(1) * u64::from(self.stride);
        for number in first..first + u64::from(self.stride) {
            if !self.clip.next_picture_at(number, &mut self.picture)? {
                if !self.clip.rewind()? || !self.clip.next_picture(&mut self.picture)? {
                    return Ok(false);
                }
                self.stats.loops += 1;
            }
        }
        Ok(true)
    }

    fn ask_for_key_frame(&mut self) {
        self.encoder.request_key_frame();
        self.expects_key = true;
    }

    /// Reads the clip's next picture, and counts a failure; returns whether there is one.
    fn read_picture(&mut self) -> bool {
        match self.read_clip() {
            Ok(there_is) => self.ended = !there_is,
            Err(_) => {
                self.stats.clip_errors += 1;
                return false;
            }
        }
        !self.ended
    }

    fn encode(&mut self, captured: Timestamp) -> Option<Frame> {
        if !self.read_picture() {
            return None;
        }
        let rate = self.generated_rate();
        if rate != self.asked {
            // Requested again with the next picture if it was refused.
            match self.encoder.set_bit_rate(rate) {
                Ok(()) => self.asked = rate,
                Err(_) => self.stats.encoder_errors += 1,
            }
        }
        self.stats.pictures += 1;
        let ticks = ticks_at((captured - self.start).as_nanos()).unsigned_abs();
        let (encoder, keys) = (&mut *self.encoder, &mut self.small_keys);
        let share = rate.size_in(TimeDelta::from_secs_f64(1.0 / self.frame_rate));
        if keys.encode(encoder, self.expects_key, share, &self.picture, ticks, &mut self.coded).is_err() {
            self.stats.encoder_errors += 1;
            self.coded.data.clear();
            self.ask_for_key_frame();
        } else if self.coded.data.is_empty() {
            self.stats.dropped += 1;
        }
        let size = DataSize::from_bytes(self.coded.data.len() as u64);
        let frame = (size > DataSize::ZERO).then(|| self.numbering.frame(captured, size, self.coded.kind()));
        let frame = frame.map(|f| self.with_layer(f));
        let rtp_timestamp = frame.map_or(ticks_at(captured.as_nanos()) as u32, |f| f.rtp_timestamp);
        if let Some(tap) = &mut self.tap {
            tap(Captured { rtp_timestamp, captured, picture: &self.picture, coded: &self.coded });
        }
        let frame = frame?;
        self.stats.frames += 1;
        self.expects_key &= !self.coded.key;
        self.stats.key_frames += u64::from(self.coded.key);
        self.sent.note(rtp_timestamp, self.coded.picture_id);
        self.given.add(&frame);
        self.layers_of = self.coded.more_layers.then_some(captured);
        Some(frame)
    }

    fn with_layer(&self, frame: Frame) -> Frame {
        let layer = self.coded.layer.map_or(frame.layer, |l| l.id);
        Frame { layer, discardable: self.coded.discardable, marker: !self.coded.more_layers, ..frame }
    }

    /// The next layer frame of a picture.
    fn next_layer(&mut self, captured: Timestamp) -> Option<Frame> {
        if !self.encoder.next_layer(&mut self.coded) || self.coded.data.is_empty() {
            return None;
        }
        let size = DataSize::from_bytes(self.coded.data.len() as u64);
        let frame = self.numbering.layer_frame(captured, size, self.coded.kind());
        let frame = self.with_layer(frame);
        self.given.add(&frame);
        self.layers_of = self.coded.more_layers.then_some(captured);
        Some(frame)
    }
}

impl FrameSource for EncodedSource {
    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        if self.requested == DataRate::ZERO {
            self.skip_to(now);
            if self.key_on_resume && rate > DataRate::ZERO && self.stats.pictures > 0 {
                self.ask_for_key_frame();
            }
        }
        self.requested = rate;
    }

    fn next_frame_at(&self) -> Option<Timestamp> {
        self.layers_of.or_else(|| (self.requested > DataRate::ZERO && !self.ended).then(|| self.due(self.index)))
    }

    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        if let Some(captured) = self.layers_of.take() {
            let frame = self.next_layer(captured);
            if frame.is_some() {
                return frame;
            }
        }
        loop {
            let mut at = self.next_frame_at().filter(|&at| at <= now)?;
            if now - at > LONGEST_LAG {
                self.skip_to(now - TimeDelta::from_secs_f64(1.0 / self.frame_rate));
                at = self.due(self.index);
                if at > now {
                    return None;
                }
            }
            self.index += 1;
            let frame = self.encode(at);
            if frame.is_some() {
                return frame;
            }
        }
    }

    fn request_key_frame(&mut self, _: Timestamp) {
        self.ask_for_key_frame();
    }

    fn generated_rate(&self) -> DataRate {
        if self.requested == DataRate::ZERO {
            DataRate::ZERO
        } else {
            self.requested.max(self.bounds.0).min(self.bounds.1)
        }
    }

    fn take_payloads(&mut self, max: DataSize, out: &mut Payloads) -> bool {
        let apart = self.encoder.config().slice_size.is_some();
        self.format.with_slices_apart(apart).packetise(&self.coded, max, out);
        true
    }

    fn limit_key_frames(&mut self, most: DataSize) -> bool {
        let config = self.encoder.config();
        // Each change of the target reopens the encoder otherwise, and layers share a picture. References may be selected: a key frame
        // that replaces another attempt leaves nothing to refer to from before it.
        let follows =
            config.key_interval.is_none() && config.rate_change == RateChange::Seamless && config.layering.is_single();
        if follows {
            self.small_keys.limit(most);
        }
        follows
    }

    fn skip_picture(&mut self, now: Timestamp) -> bool {
        let Some(captured) = self.next_frame_at().filter(|&at| at <= now && now - at <= LONGEST_LAG) else {
            return false;
        };
        if self.layers_of.is_some() {
            return false;
        }
        self.index += 1;
        if self.read_picture() {
            (self.stats.pictures, self.stats.dropped) = (self.stats.pictures + 1, self.stats.dropped + 1);
            self.coded.data.clear();
            let rtp_timestamp = ticks_at(captured.as_nanos()) as u32;
            if let Some(tap) = &mut self.tap {
                tap(Captured { rtp_timestamp, captured, picture: &self.picture, coded: &self.coded });
            }
        }
        true
    }

    fn on_feedback(&mut self, feedback: SourceFeedback, _: Timestamp) -> bool {
        let size = |encoder: &dyn VideoEncoder| encoder.shape().map(|s| (s.width, s.height));
        let before = size(&*self.encoder);
        let applied = self.sent.on_feedback(feedback, &mut *self.encoder);
        self.expects_key |= size(&*self.encoder) != before;
        self.stats.references_selected += u64::from(applied == Applied::Selected);
        applied != Applied::Nothing
    }
}

#[cfg(test)]
pub(crate) mod tests;
