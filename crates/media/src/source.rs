use crate::audio::{AudioSource, EncodedAudio};
use crate::{
    Codec, Frame, FrameSource, LayeredSource, MediaKind, Payloads, PerfectCodec, ScenesSource, SourceFeedback,
    StatisticalSource, TraceSource,
};
use core::fmt;
use weir_units::{DataRate, DataSize, Timestamp};

/// A source of frames: a built-in model, or a custom one.
#[non_exhaustive]
pub enum Source {
    /// Follows its target exactly and at once.
    Perfect(PerfectCodec),
    /// Varies at random (RFC 8593, section 5).
    Statistical(StatisticalSource),
    /// Varies as a recorded encoder (RFC 8593, section 6).
    Trace(TraceSource),
    /// Varies with scenes, in an encoder that follows its target within their limits.
    Scenes(Box<ScenesSource>),
    /// Makes video layers, or one of several encodings.
    Layered(Box<LayeredSource>),
    /// Makes packets of audio.
    Audio(Box<AudioSource>),
    /// A custom source.
    Custom(Box<dyn FrameSource + Send>),
    /// A codec with named parameters.
    Codec(Box<dyn Codec + Send>),
}

impl From<PerfectCodec> for Source {
    fn from(codec: PerfectCodec) -> Self {
        Self::Perfect(codec)
    }
}

impl From<StatisticalSource> for Source {
    fn from(source: StatisticalSource) -> Self {
        Self::Statistical(source)
    }
}

impl From<TraceSource> for Source {
    fn from(source: TraceSource) -> Self {
        Self::Trace(source)
    }
}

impl From<ScenesSource> for Source {
    fn from(source: ScenesSource) -> Self {
        Self::Scenes(Box::new(source))
    }
}

impl From<LayeredSource> for Source {
    fn from(source: LayeredSource) -> Self {
        Self::Layered(Box::new(source))
    }
}

impl From<AudioSource> for Source {
    fn from(source: AudioSource) -> Self {
        Self::Audio(Box::new(source))
    }
}

impl EncodedAudio {
    /// Converts it to a sender's source.
    pub fn into_source(self) -> Source {
        Source::Custom(Box::new(self))
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Perfect(s) => s.fmt(f),
            Self::Statistical(s) => s.fmt(f),
            Self::Trace(s) => s.fmt(f),
            Self::Scenes(s) => s.fmt(f),
            Self::Layered(s) => s.fmt(f),
            Self::Audio(s) => s.fmt(f),
            Self::Custom(_) => f.write_str("Custom"),
            Self::Codec(c) => f.debug_tuple("Codec").field(&c.name()).finish(),
        }
    }
}

macro_rules! each {
    ($source:expr, $s:ident => $call:expr) => {
        match $source {
            Source::Perfect($s) => $call,
            Source::Statistical($s) => $call,
            Source::Trace($s) => $call,
            Source::Scenes($s) => $call,
            Source::Layered($s) => $call,
            Source::Audio($s) => $call,
            Source::Custom($s) => $call,
            Source::Codec($s) => $call,
        }
    };
}

impl Source {
    /// The codec, if this is one.
    pub fn codec(&self) -> Option<&(dyn Codec + Send)> {
        if let Self::Codec(c) = self { Some(&**c) } else { None }
    }
    /// The codec, mutably, if this is one.
    pub fn codec_mut(&mut self) -> Option<&mut (dyn Codec + Send)> {
        if let Self::Codec(c) = self { Some(&mut **c) } else { None }
    }
    /// See [`FrameSource::on_target`].
    pub fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        each!(self, s => s.on_target(rate, now));
    }
    /// See [`FrameSource::leave_out`].
    pub fn leave_out(&mut self, one_of: u32, now: Timestamp) {
        each!(self, s => s.leave_out(one_of, now));
    }
    /// See [`FrameSource::pixels`].
    pub fn pixels(&self) -> Option<u32> {
        each!(self, s => s.pixels())
    }
    /// See [`FrameSource::next_frame_at`].
    #[inline]
    pub fn next_frame_at(&self) -> Option<Timestamp> {
        // Asked after each event: one branch for the simulator's usual source, a call for others.
        if let Self::Perfect(s) = self { s.next_frame_at() } else { self.next_frame_of_others() }
    }
    #[inline(never)]
    fn next_frame_of_others(&self) -> Option<Timestamp> {
        each!(self, s => s.next_frame_at())
    }
    /// See [`FrameSource::poll_frame`].
    #[inline]
    pub fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        if let Self::Perfect(s) = self { s.poll_frame(now) } else { self.poll_frame_of_others(now) }
    }
    #[inline(never)]
    fn poll_frame_of_others(&mut self, now: Timestamp) -> Option<Frame> {
        each!(self, s => s.poll_frame(now))
    }
    /// See [`FrameSource::request_key_frame`].
    pub fn request_key_frame(&mut self, now: Timestamp) {
        each!(self, s => s.request_key_frame(now));
    }
    /// See [`FrameSource::generated_rate`].
    pub fn generated_rate(&self) -> DataRate {
        each!(self, s => s.generated_rate())
    }
    /// See [`FrameSource::take_payloads`].
    #[inline]
    pub fn take_payloads(&mut self, max: DataSize, out: &mut Payloads) -> bool {
        if let Self::Perfect(s) = self { s.take_payloads(max, out) } else { self.take_payloads_of_others(max, out) }
    }
    #[inline(never)]
    fn take_payloads_of_others(&mut self, max: DataSize, out: &mut Payloads) -> bool {
        each!(self, s => s.take_payloads(max, out))
    }
    /// See [`FrameSource::on_feedback`].
    pub fn on_feedback(&mut self, feedback: SourceFeedback, now: Timestamp) -> bool {
        each!(self, s => s.on_feedback(feedback, now))
    }
    /// See [`FrameSource::limit_key_frames`].
    pub fn limit_key_frames(&mut self, most: DataSize) -> bool {
        each!(self, s => s.limit_key_frames(most))
    }
    /// See [`FrameSource::skip_picture`].
    pub fn skip_picture(&mut self, now: Timestamp) -> bool {
        each!(self, s => s.skip_picture(now))
    }
    /// See [`FrameSource::media`].
    pub fn media(&self) -> MediaKind {
        each!(self, s => s.media())
    }
    /// See [`FrameSource::set_packet_overhead`].
    pub fn set_packet_overhead(&mut self, overhead: DataSize, now: Timestamp) {
        each!(self, s => s.set_packet_overhead(overhead, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameKind;
    use weir_units::TimeDelta;

    /// One frame per second with one second's bytes of its target.
    #[derive(Default)]
    struct Slow {
        rate: DataRate,
        next: u64,
        key: bool,
    }

    impl FrameSource for Slow {
        fn on_target(&mut self, rate: DataRate, _: Timestamp) {
            self.rate = rate;
        }
        fn next_frame_at(&self) -> Option<Timestamp> {
            Some(Timestamp::from_secs(self.next as i64))
        }
        fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
            let captured = self.next_frame_at().filter(|&at| at <= now)?;
            let kind = if std::mem::take(&mut self.key) { FrameKind::Key } else { FrameKind::Delta };
            let size = self.rate.size_in(TimeDelta::from_secs(1));
            let frame = Frame::video(self.next, captured, size, kind, self.next as u32 * 90_000);
            self.next += 1;
            Some(frame)
        }
        fn request_key_frame(&mut self, _: Timestamp) {
            self.key = true;
        }
        fn generated_rate(&self) -> DataRate {
            self.rate
        }
    }

    #[test]
    fn a_users_own_source_stands_beside_the_built_in_ones() {
        let mut s = Source::Custom(Box::new(Slow::default()));
        s.on_target(DataRate::from_kbps(80), Timestamp::ZERO);
        s.request_key_frame(Timestamp::ZERO);
        let frames: Vec<_> = std::iter::from_fn(|| s.poll_frame(Timestamp::from_secs(1))).collect();
        assert_eq!(frames.iter().map(|f| f.size).collect::<Vec<_>>(), [DataSize::from_bytes(10_000); 2]);
        assert_eq!([frames[0].kind, frames[1].kind], [FrameKind::Key, FrameKind::Delta]);
        assert_eq!((s.next_frame_at(), s.generated_rate()), (Some(Timestamp::from_secs(2)), DataRate::from_kbps(80)));
    }
}
