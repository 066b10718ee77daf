use crate::LayerId;
use weir_units::{DataSize, Timestamp};

/// Ticks a second of the RTP timestamps of video (RFC 3551, section 5).
pub const RTP_CLOCK_HZ: u32 = 90_000;
/// Ticks a second of the RTP timestamps of Opus, whatever its sampling rate (RFC 7587, section 4.1).
pub const AUDIO_CLOCK_HZ: u32 = 48_000;
const NANO: i64 = 1_000_000_000;

/// What a stream carries.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MediaKind {
    /// Pictures.
    #[default]
    Video,
    /// Sound.
    Audio,
}

impl MediaKind {
    /// Ticks a second of its RTP timestamps.
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

/// How a frame of video is coded. Frames of audio are [`Self::Delta`]: none is worth more than another.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FrameKind {
    /// Without reference to others: a receiver can begin with it.
    Key,
    /// As a difference to earlier frames.
    Delta,
}

/// A coded frame without its content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// Counts from 0.
    pub id: u64,
    /// When it was captured: of video when it was due, of audio the time of its first sample.
    pub captured: Timestamp,
    /// Its size before packetisation; never zero.
    pub size: DataSize,
    /// How it is coded.
    pub kind: FrameKind,
    /// Capture time in ticks of the source's clock ([`MediaKind::clock_hz`]), counted from the clock's zero; the session
    /// adds its random offset. The layer frames of a picture share it.
    pub rtp_timestamp: u32,
    /// Its layer; zeros where the stream has one layer.
    pub layer: LayerId,
    /// Whether no other frame refers to it.
    pub discardable: bool,
    /// Whether its last packet has the marker bit: in video the last layer frame of each picture (RFC 9628, section 4.1),
    /// in audio the first frame of a talk spurt (RFC 3551, section 4.1).
    pub marker: bool,
}

impl Frame {
    /// A frame of video that is a whole picture, and which others may refer to.
    pub const fn video(id: u64, captured: Timestamp, size: DataSize, kind: FrameKind, rtp_timestamp: u32) -> Self {
        Self { id, captured, size, kind, rtp_timestamp, layer: LayerId::BASE, discardable: false, marker: true }
    }
}

/// Whole ticks of [`RTP_CLOCK_HZ`] in so many nanoseconds.
pub(crate) const fn ticks_at(ns: i64) -> i64 {
    ticks_of(ns, RTP_CLOCK_HZ)
}

/// Whole ticks of a clock of `hz` in so many nanoseconds.
pub(crate) const fn ticks_of(ns: i64, hz: u32) -> i64 {
    ns.div_euclid(NANO) * hz as i64 + ns.rem_euclid(NANO) * hz as i64 / NANO
}

/// Numbers frames and gives them RTP timestamps, each later than the one before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbering {
    id: u64,
    last: Option<i64>,
}

impl Numbering {
    pub(crate) fn frame(&mut self, captured: Timestamp, size: DataSize, kind: FrameKind) -> Frame {
        let ticks = ticks_at(captured.as_nanos());
        // Frames closer than a tick would read as one frame.
        let ticks = self.last.map_or(ticks, |last| ticks.max(last + 1));
        self.last = Some(ticks);
        let id = self.id;
        self.id += 1;
        Frame::video(id, captured, size, kind, ticks as u32)
    }

    /// A further layer frame of the picture of the frame before.
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
