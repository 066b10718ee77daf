//! Frames: their delay and stalls of playout.

use super::{FlowEnd, FlowInfo, FrameRecord, seconds};
use crate::histogram::Histogram;
use crate::results::{Distribution, FrameSummary};
use weir_units::{TimeDelta, Timestamp};

/// Gaps that the mean gap is taken over (W3C webrtc-stats).
const GAPS: usize = 30;
/// A stall is at least this much longer than the mean gap (W3C webrtc-stats).
const STALL_EXTRA: TimeDelta = TimeDelta::from_millis(150);

/// Frames of a flow, by stream.
#[derive(Debug, Default)]
pub(super) struct FlowFrames(Vec<FrameMeter>);

impl FlowFrames {
    /// The fate of a frame of stream number `stream`.
    pub(super) fn on_frame(&mut self, stream: usize, frame: FrameRecord) {
        if self.0.len() <= stream {
            self.0.resize_with(stream + 1, FrameMeter::new);
        }
        self.0[stream].on_frame(frame);
    }

    /// Capture to completion of the frames of all streams, in ns; `None` for a flow without frames.
    pub(super) fn delay(&self) -> Option<Histogram> {
        let (first, further) = self.0.split_first()?;
        let mut delay = first.delay().clone();
        further.iter().for_each(|f| delay.add(f.delay()));
        Some(delay)
    }

    /// The frames of the flow; those of each stream go into its summary in `end`.
    pub(super) fn finish(&mut self, info: &FlowInfo, end: &mut FlowEnd, stop: Timestamp) -> Option<FrameSummary> {
        let made = end.frames;
        if end.stream_frames.is_empty() {
            if self.0.is_empty() && info.playout_deadline.is_some() && made.is_some_and(|made| made > 0) {
                // Also if none has arrived.
                self.0.push(FrameMeter::new());
            }
            return self.0.first_mut().map(|f| f.finish(info.start, stop, made));
        }
        let (mut all, mut delay) = (None::<FrameSummary>, Histogram::new());
        self.0.resize_with(end.stream_frames.len(), FrameMeter::new);
        for (i, (meter, made)) in self.0.iter_mut().zip(&end.stream_frames).enumerate() {
            let Some(made) = made else { continue };
            let own = meter.finish(info.start, stop, Some(*made));
            delay.add(meter.delay());
            all = Some(all.map_or(own, |all| all.with(&own)));
            if let Some(stream) = end.streams.get_mut(i) {
                stream.frames = Some(own);
            }
        }
        Some(FrameSummary { delay_ms: Distribution::of(&delay, 1e-6), ..all? })
    }
}

/// Frames of one stream.
#[derive(Clone, Debug)]
pub(super) struct FrameMeter {
    delay: Histogram,
    played: u64,
    late: u64,
    lost: u64,
    last_played: Option<Timestamp>,
    gaps: [TimeDelta; GAPS],
    /// Sum of `gaps`.
    gap_sum: TimeDelta,
    gap_count: usize,
    stalls: u64,
    stalled: TimeDelta,
    longest: TimeDelta,
}

impl FrameMeter {
    pub(super) fn new() -> Self {
        Self {
            delay: Histogram::new(),
            played: 0,
            late: 0,
            lost: 0,
            last_played: None,
            gaps: [TimeDelta::ZERO; GAPS],
            gap_sum: TimeDelta::ZERO,
            gap_count: 0,
            stalls: 0,
            stalled: TimeDelta::ZERO,
            longest: TimeDelta::ZERO,
        }
    }
    /// Capture to completion in ns, of complete frames whose capture time is known.
    pub(super) fn delay(&self) -> &Histogram {
        &self.delay
    }
    pub(super) fn on_frame(&mut self, frame: FrameRecord) {
        if let Some(at) = frame.completed.filter(|_| frame.is_from_capture) {
            self.delay.record(at.saturating_since(frame.captured).as_nanos().unsigned_abs());
        }
        match (frame.played, frame.completed) {
            (Some(at), _) => {
                self.played += 1;
                if let Some(last) = self.last_played {
                    self.on_gap(at.saturating_since(last));
                }
                self.last_played = Some(self.last_played.map_or(at, |last| last.max(at)));
            }
            (None, Some(_)) => self.late += 1,
            (None, None) => self.lost += 1,
        }
    }
    fn on_gap(&mut self, gap: TimeDelta) {
        if self.is_stall(gap) {
            self.stalls += 1;
            self.stalled += gap;
            self.longest = self.longest.max(gap);
        }
        let oldest = std::mem::replace(&mut self.gaps[self.gap_count % GAPS], gap);
        self.gap_sum += gap - oldest;
        self.gap_count += 1;
    }
    fn is_stall(&self, gap: TimeDelta) -> bool {
        let known = self.gap_count.min(GAPS);
        if known == 0 {
            return false;
        }
        let mean = self.gap_sum / known as i64;
        gap > (mean * 3).max(mean + STALL_EXTRA)
    }
    /// The summary; playout that stopped and did not resume before `end`, or did not begin from `start` on, is a stall too. If the
    /// number `made` is known, frames that the receiver never saw in time are lost.
    pub(super) fn finish(&mut self, start: Timestamp, end: Timestamp, made: Option<u64>) -> FrameSummary {
        if self.last_played.is_none() && made.is_none_or(|m| m > 0) {
            (self.stalls, self.stalled) = (1, end.saturating_since(start));
            self.longest = self.stalled;
        } else if let Some(last) = self.last_played {
            let gap = end.saturating_since(last);
            if self.is_stall(gap) {
                self.on_gap(gap);
            }
        }
        let lost = made.map_or(self.lost, |m| self.lost.max(m.saturating_sub(self.played + self.late)));
        FrameSummary {
            frames: self.played + self.late + lost,
            played: self.played,
            late: self.late,
            lost,
            delay_ms: Distribution::of(&self.delay, 1e-6),
            stalls: self.stalls,
            stalled_s: seconds(self.stalled),
            longest_stall_s: seconds(self.longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_in_playout_is_one_stall() {
        let mut m = FrameMeter::new();
        let ms = Timestamp::from_millis;
        // 25 frames per second, played 200 ms after capture; frames 50 to 54 are lost, frame 60 is late.
        for i in 0..100 {
            let captured = ms(40 * i);
            let lost = (50..55).contains(&i);
            let completed = (!lost).then(|| captured + TimeDelta::from_millis(if i == 60 { 300 } else { 100 }));
            let played = (!lost && i != 60).then(|| captured + TimeDelta::from_millis(200));
            m.on_frame(FrameRecord { captured, is_from_capture: true, completed, played });
        }
        let s = m.finish(ms(0), ms(40 * 99 + 240), None);
        assert_eq!((s.frames, s.played, s.late, s.lost), (100, 94, 1, 5));
        // From frame 49 to frame 55 is 240 ms, more than 40 + 150; the gap of 80 ms around frame 60 is none.
        assert_eq!((s.stalls, s.stalled_s, s.longest_stall_s), (1, 0.24, 0.24));
        let d = s.delay_ms.expect("frames came");
        assert!((d.p50 - 100.0).abs() < 0.4 && d.max == 300.0 && d.min == 100.0);
    }

    #[test]
    fn playout_that_never_begins_is_a_stall_from_the_start() {
        let mut m = FrameMeter::new();
        for i in 0..10 {
            let captured = Timestamp::from_millis(5_000 + 40 * i);
            m.on_frame(FrameRecord { captured, is_from_capture: true, completed: None, played: None });
        }
        let s = m.clone().finish(Timestamp::from_secs(5), Timestamp::from_secs(65), Some(1_500));
        assert_eq!((s.stalls, s.stalled_s, s.longest_stall_s, s.lost), (1, 60.0, 60.0, 1_500));
        // Nothing was to be played.
        assert_eq!(FrameMeter::new().finish(Timestamp::ZERO, Timestamp::from_secs(60), Some(0)).stalls, 0);
    }

    #[test]
    fn playout_that_never_resumes_is_a_stall() {
        let mut m = FrameMeter::new();
        for i in 0..10 {
            let t = Timestamp::from_millis(40 * i);
            m.on_frame(FrameRecord { captured: t, is_from_capture: true, completed: Some(t), played: Some(t) });
        }
        let s = m.finish(Timestamp::ZERO, Timestamp::from_millis(1_360), None);
        assert_eq!((s.stalls, s.stalled_s), (1, 1.0));
    }
}
