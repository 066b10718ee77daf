//! The interval between frames, for algorithms that measure by the packets of a frame; of sources whose frames are single packets, the span of those that
//! count as one.

use core::ops::RangeInclusive;
use weir_units::{TimeDelta, Timestamp};

/// The interval before two frames have been seen, in seconds.
const USUAL: f64 = 1.0 / 30.0;
/// Bounds of an interval, in seconds: 250 frames a second, and a pause from a quarter of a second on.
const BOUNDS: RangeInclusive<f64> = 0.004..=0.25;
/// Weight of a new interval in the mean.
const WEIGHT: f64 = 1.0 / 16.0;
/// Time without a frame of several packets after which single packets count as frames.
const SINGLE_AFTER: TimeDelta = TimeDelta::from_secs(1);
/// Least span of the single packets that then count as one frame, in seconds: an interval of 60 Hz.
pub(crate) const GROUP: f64 = 1.0 / 60.0;

/// The mean interval of frames of several packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameInterval {
    mean: f64,
    /// When the last of these frames entered the queue, and when it was last sent from.
    queued_at: Option<Timestamp>,
    sent_at: Option<Timestamp>,
}

impl FrameInterval {
    pub(crate) const fn new() -> Self {
        Self { mean: USUAL, queued_at: None, sent_at: None }
    }

    /// In seconds.
    pub(crate) const fn seconds(&self) -> f64 {
        self.mean
    }

    /// A frame of several packets, which entered the queue at a time, is sent.
    pub(crate) fn on_frame(&mut self, queued_at: Timestamp, now: Timestamp) {
        let passed = self.queued_at.map(|last| queued_at.saturating_since(last).as_secs_f64());
        if let Some(passed) = passed.filter(|s| BOUNDS.contains(s)) {
            self.mean += WEIGHT * (passed - self.mean);
        }
        (self.queued_at, self.sent_at) = (Some(queued_at), Some(now));
    }

    /// Single packets that count as one frame have spanned so many seconds, which is the interval then.
    pub(crate) fn on_group(&mut self, seconds: f64) {
        self.mean = seconds.clamp(GROUP, *BOUNDS.end());
    }

    /// Whether single packets are beside frames of several, so that they are no frames.
    pub(crate) fn has_frames(&self, now: Timestamp) -> bool {
        self.sent_at.is_some_and(|at| now.saturating_since(at) < SINGLE_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_follows_frames_and_ignores_pauses() {
        let mut i = FrameInterval::new();
        let at = Timestamp::from_millis;
        assert!(!i.has_frames(at(0)));
        for n in 0..200 {
            i.on_frame(at(20 * n), at(20 * n + 3));
        }
        assert!((i.seconds() - 0.02).abs() < 1e-4, "{}", i.seconds());
        let before = i.seconds();
        i.on_frame(at(20 * 199 + 251), at(4_300));
        i.on_frame(at(20 * 199 + 254), at(4_303));
        assert_eq!(i.seconds(), before, "a pause, and two at once");
        assert_eq!((i.has_frames(at(5_302)), i.has_frames(at(5_303))), (true, false));
        for (span, interval) in [(0.001, GROUP), (0.04, 0.04), (3.0, 0.25)] {
            i.on_group(span);
            assert_eq!(i.seconds(), interval);
        }
    }
}
