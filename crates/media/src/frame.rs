use crate::LayerId;
use weir_units::{DataSize, Timestamp};

/// Ticks a second of the RTP timestamps of video (RFC 3551, section 5).
pub const RTP_CLOCK_HZ: u32 = 90_000;
/// Ticks a second of the RTP timestamps of Opus, for any sampling rate (RFC 7587, section 4.1).
pub const AUDIO_CLOCK_HZ: u32 = 48_000;
const NANO: i64 = 1_000_000_000;

/// The kind of media in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MediaKind {
    /// Video.
    #[default]
    Video,
    /// Audio.
    Audio,
}

impl MediaKind {
    /// RTP timestamp ticks a second.
    pub const fn clock_hz(self) -> u32 {
        match self {
            Self::Video => RTP_CLOCK_HZ,
            Self::Audio => AUDIO_CLOCK_HZ,
        }
    }
    /// Its name in SDP (RFC 8866, section 5.14).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Video => "video",
            Self::Audio => "audio",
        }
    }
}

/// How a video frame is coded. Audio frames are [`Self::Delta`], since none is more important than another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameKind {
    /// Without references to other frames: decoding can start here.
    Key,
    /// As a difference to earlier frames.
    Delta,
}

/// A coded frame without its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Frame number from 0.
    pub id: u64,
    /// Capture time: for video its due time, for audio the time of its first sample.
    pub captured: Timestamp,
    /// Size before packetisation; never zero.
    pub size: DataSize,
    /// How it is coded.
    pub kind: FrameKind,
    /// Capture time in ticks of the source's clock ([`MediaKind::clock_hz`]), from zero of the clock; the session adds
    /// its random offset. The layer frames of a picture share it.
    pub rtp_timestamp: u32,
    /// Its layer; zeros if the stream has one layer.
    pub layer: LayerId,
    /// Whether no other frame refers to it.
    pub discardable: bool,
    /// Whether its last packet has the marker bit: for video the last layer frame of each picture (RFC 9628,
    /// section 4.1), for audio the first frame of a talk spurt (RFC 3551, section 4.1).
    pub marker: bool,
}

impl Frame {
    /// A video frame that is a whole picture and may be referred to.
    pub const fn video(id: u64, captured: Timestamp, size: DataSize, kind: FrameKind, rtp_timestamp: u32) -> Self {
        Self { id, captured, size, kind, rtp_timestamp, layer: LayerId::BASE, discardable: false, marker: true }
    }
}

/// Whole ticks of [`RTP_CLOCK_HZ`] in `ns` nanoseconds.
pub(crate) const fn ticks_at(ns: i64) -> i64 {
    ticks_of(ns, RTP_CLOCK_HZ)
}

/// Whole ticks of a clock of `hz` in `ns` nanoseconds.
pub(crate) const fn ticks_of(ns: i64, hz: u32) -> i64 {
    ns.div_euclid(NANO) * hz as i64 + ns.rem_euclid(NANO) * hz as i64 / NANO
}

/// Assigns frame numbers and strictly increasing RTP timestamps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbering {
    id: u64,
    last: Option<i64>,
}

impl Numbering {
    pub(crate) fn frame(&mut self, captured: Timestamp, size: DataSize, kind: FrameKind) -> Frame {
        let ticks = ticks_at(captured.as_nanos());
        // Frames less than a tick apart would have the same timestamp.
        let ticks = self.last.map_or(ticks, |last| ticks.max(last + 1));
        self.last = Some(ticks);
        let id = self.id;
        self.id += 1;
        Frame::video(id, captured, size, kind, ticks as u32)
    }

    /// A further layer frame of the previous frame's picture.
    pub(crate) fn layer_frame(&mut self, captured: Timestamp, size: DataSize, kind: FrameKind) -> Frame {
        let before = self.last;
        let frame = self.frame(captured, size, kind);
        self.last = before.or(self.last);
        Frame { rtp_timestamp: self.last.map_or(frame.rtp_timestamp, |t| t as u32), ..frame }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_tick_at_90_khz_and_never_repeat() {
        let mut n = Numbering::default();
        let mut at = |ns| n.frame(Timestamp::from_nanos(ns), DataSize::from_bytes(1), FrameKind::Delta).rtp_timestamp;
        assert_eq!([at(0), at(1_000_000_000), at(1_000_000_001), at(2_000_000_000)], [0, 90_000, 90_001, 180_000]);
        // 2^32 ticks are 47,721.86 s.
        assert_eq!(at(47_722_000_000_000), (47_722u64 * 90_000 - (1 << 32)) as u32);
    }
}
