use weir_units::{DataSize, Timestamp};

/// Ticks a second of the RTP timestamps of video (RFC 3551, section 5).
pub const RTP_CLOCK_HZ: u32 = 90_000;
const NANO: i64 = 1_000_000_000;

/// How a frame is coded.
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
    /// When it was captured, which is when it was due.
    pub captured: Timestamp,
    /// Its size before packetisation; never zero.
    pub size: DataSize,
    /// How it is coded.
    pub kind: FrameKind,
    /// Capture time in ticks of [`RTP_CLOCK_HZ`], counted from the clock's zero; the session adds its random offset.
    pub rtp_timestamp: u32,
}

/// Whole ticks of [`RTP_CLOCK_HZ`] in so many nanoseconds.
pub(crate) const fn ticks_at(ns: i64) -> i64 {
    ns.div_euclid(NANO) * RTP_CLOCK_HZ as i64 + ns.rem_euclid(NANO) * RTP_CLOCK_HZ as i64 / NANO
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
        Frame { id, captured, size, kind, rtp_timestamp: ticks as u32 }
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
