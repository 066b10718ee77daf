//! An encoder whose target is corrected by what it made, as libwebrtc does (as of October 2025, 3fc0730: `video/encoder_bitrate_adjuster.cc`,
//! `encoder_overshoot_detector.cc`, `rate_utilization_tracker.cc`).
//!
//! Until 30 frames are coded the target is divided by 1.2, later by the link's utilisation over 3 s: the mean over frames of what a frame
//! leaves in a bucket beyond its own size, as a share of the ideal size. An encoder that makes its target on average, with frames of varying
//! size, is corrected too, unless the rate leaves room above the encoder's most.
//!
//! Differences from libwebrtc: the room is what the rate leaves after repair, where it has the rate before.

use crate::forwarded::forwarded;
use crate::{Frame, FrameSource, Source};
use std::collections::VecDeque;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Span over which utilisation is measured (`kWindowSize`).
const WINDOW: TimeDelta = TimeDelta::from_secs(3);
/// Frames before it counts (`kMinFramesSinceLayoutChange`), and utilisation until then (`kDefaultUtilizationFactor`).
const LEAST_FRAMES: u64 = 30;
const DEFAULT: f64 = 1.2;
/// Greatest utilisation that counts.
const MOST: f64 = 2.0;
/// The target is corrected again after this time (`kParameterUpdateIntervalMs`, `video_stream_encoder.cc`).
const AGAIN: TimeDelta = TimeDelta::from_secs(1);
/// Most changes and frames by which the use of the encoder's own target is measured (`kMaxDataPointsInUtilizationTrackers`).
const MAX_POINTS: usize = 100;

/// Measures by how much frames exceed what a link of the target carries between them.
#[derive(Debug)]
struct Overshoot {
    /// Times and factors of frames.
    factors: VecDeque<(Timestamp, f64)>,
    target: DataRate,
    /// Bits in the bucket, and when.
    level: f64,
    at: Timestamp,
}

impl Overshoot {
    fn leak(&mut self, now: Timestamp) {
        let leaked = self.target.as_bps_f64() * now.saturating_since(self.at).as_secs_f64();
        (self.level, self.at) = ((self.level - leaked).max(0.0), self.at.max(now));
    }
    fn restart(&mut self, now: Timestamp) {
        self.factors.clear();
        (self.level, self.at) = (0.0, now);
    }
    fn set_target(&mut self, target: DataRate, now: Timestamp) {
        self.leak(now);
        self.target = target;
    }
    /// A frame of so many bits, at this frame rate.
    fn on_frame(&mut self, bits: f64, fps: f64, now: Timestamp) {
        self.leak(now);
        let ideal = self.target.as_bps_f64() / fps;
        if ideal < 1.0 {
            return;
        }
        let over = (bits + self.level - ideal).max(0.0).min(self.level);
        let factor = if self.factors.is_empty() { (bits / ideal).max(1.0) } else { 1.0 + over / ideal };
        self.level += bits - over;
        self.factors.push_back((now, factor));
    }
    fn utilisation(&mut self, now: Timestamp) -> Option<f64> {
        while self.factors.front().is_some_and(|(at, _)| now - *at > WINDOW) {
            self.factors.pop_front();
        }
        let sum: f64 = self.factors.iter().map(|(_, f)| f).sum();
        (!self.factors.is_empty()).then(|| sum / self.factors.len() as f64)
    }
}

/// Measures what the encoder made as a share of its uncorrected target.
#[derive(Debug, Default)]
struct Use {
    /// Times, the target from then on in bit/s, and the bits of the frame then, zero if only the target changed.
    points: VecDeque<(Timestamp, f64, f64)>,
    target: f64,
}

impl Use {
    fn set_target(&mut self, target: DataRate, now: Timestamp) {
        self.target = target.as_bps_f64();
        match self.points.back_mut() {
            None => return,
            Some(last) if last.0 == now => last.1 = self.target,
            Some(_) => self.points.push_back((now, self.target, 0.0)),
        }
        self.forget(now);
    }
    fn on_frame(&mut self, bits: f64, now: Timestamp) {
        match self.points.back_mut() {
            Some(last) if last.0 == now => last.2 += bits,
            _ => self.points.push_back((now, self.target, bits)),
        }
        self.forget(now);
    }
    fn forget(&mut self, now: Timestamp) {
        let is_old = |p: &(Timestamp, f64, f64), len| now - p.0 > WINDOW || len > MAX_POINTS || p.2 == 0.0;
        while self.points.front().is_some_and(|p| is_old(p, self.points.len())) {
            self.points.pop_front();
        }
    }
    fn utilisation(&self, now: Timestamp) -> Option<f64> {
        let last = self.points.back()?;
        let (mut allowed, mut made, mut frame, mut since) = (0.0, 0.0, 0.0, 0.0);
        let mut before: Option<&(Timestamp, f64, f64)> = None;
        for p in &self.points {
            let passed = before.map_or(0.0, |b| (p.0 - b.0).as_secs_f64() * b.1);
            allowed += passed;
            made += p.2;
            // The last frame counts as sent once its size has passed.
            (frame, since) = if p.2 > 0.0 { (p.2, 0.0) } else { (frame, f64::min(frame, since + passed)) };
            before = Some(p);
        }
        allowed += f64::max(now.saturating_since(last.0).as_secs_f64() * last.1, frame - since);
        (allowed > 0.0).then(|| made / allowed)
    }
}

/// A source whose target is corrected by what it made.
#[derive(Debug)]
pub struct AdjustedSource {
    source: Source,
    fps: f64,
    most: DataRate,
    wanted: DataRate,
    /// Share of the camera's frames that is left by the congestion window.
    kept: f64,
    frames: u64,
    corrected: Timestamp,
    link: Overshoot,
    encoder: Use,
}

impl AdjustedSource {
    /// Corrects the target of a source of `fps` frames a second that has at most a target of `most`, from `start` on.
    pub fn new(source: Source, fps: f64, most: DataRate, start: Timestamp) -> Self {
        let link = Overshoot { factors: VecDeque::new(), target: DataRate::ZERO, level: 0.0, at: start };
        let (wanted, encoder) = (DataRate::ZERO, Use::default());
        Self { source, fps: fps.max(1.0), most, wanted, kept: 1.0, frames: 0, corrected: start, link, encoder }
    }

    /// The encoder's target for its share, `target` of the rate `self.wanted`.
    fn corrected(&mut self, target: DataRate, now: Timestamp) -> DataRate {
        let (link, encoder) = if self.frames < LEAST_FRAMES {
            (DEFAULT, DEFAULT)
        } else {
            let link = self.link.utilisation(now).unwrap_or(DEFAULT);
            (link, self.encoder.utilisation(now).unwrap_or(DEFAULT))
        };
        let link = link.clamp(1.0, MOST);
        // Where there is room above the target, frames may exceed it for a time, but not the encoder its target in the mean.
        let excess = (link - encoder.max(1.0)).max(0.0) * target.as_bps_f64();
        let granted = excess.min(self.wanted.saturating_sub(target).as_bps_f64());
        let utilisation = link * target.as_bps_f64() / (target.as_bps_f64() + granted).max(1.0);
        DataRate::from_bps_f64(target.as_bps_f64() / utilisation.max(1.0))
    }

    fn apply(&mut self, now: Timestamp) {
        self.corrected = now;
        let most = if self.kept < 1.0 { DataRate::from_bps_f64(self.kept * self.most.as_bps_f64()) } else { self.most };
        let target = self.wanted.min(most);
        self.encoder.set_target(target, now);
        let corrected = self.corrected(target, now);
        self.link.set_target(corrected, now);
        self.source.on_target(corrected, now);
    }
}

impl FrameSource for AdjustedSource {
    forwarded!(source);

    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        // Reduced for the frames that are left out and for those that are kept, while the encoder is asked for the first alone.
        self.wanted = if self.kept < 1.0 { DataRate::from_bps_f64(rate.as_bps_f64() / self.kept) } else { rate };
        self.apply(now);
    }
    fn next_frame_at(&self) -> Option<Timestamp> {
        self.source.next_frame_at()
    }
    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        if now - self.corrected >= AGAIN && self.wanted > DataRate::ZERO {
            self.apply(now);
        }
        let pixels = self.source.pixels();
        let frame = self.source.poll_frame(now)?;
        if self.source.pixels() != pixels {
            // An encoder that begins again is measured from its first frame on.
            self.link.restart(now);
            self.encoder = Use { target: self.encoder.target, ..Use::default() };
            self.frames = 0;
        }
        self.frames += 1;
        let bits = frame.size.as_bits() as f64;
        self.link.on_frame(bits, self.fps, now);
        self.encoder.on_frame(bits, now);
        Some(frame)
    }
    fn generated_rate(&self) -> DataRate {
        self.source.generated_rate()
    }
    fn leave_out(&mut self, one_of: u32, now: Timestamp) {
        self.kept = if one_of < 2 { 1.0 } else { 1.0 - 1.0 / f64::from(one_of) };
        self.source.leave_out(one_of, now);
    }
    fn skip_picture(&mut self, now: Timestamp) -> bool {
        self.source.skip_picture(now)
    }
}

impl From<AdjustedSource> for Source {
    fn from(source: AdjustedSource) -> Self {
        Self::Custom(Box::new(source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PerfectCodec;

    const KBPS: fn(u64) -> DataRate = DataRate::from_kbps;

    fn overshoot(target: DataRate) -> Overshoot {
        Overshoot { factors: VecDeque::new(), target, level: 0.0, at: Timestamp::ZERO }
    }
    fn ms(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }
    /// The source's target after frames until `end`, without the first one.
    fn adjusted(most: u64, rate: u64, end: i64) -> (AdjustedSource, u64) {
        let source = PerfectCodec::frames(TimeDelta::from_millis(25), Timestamp::ZERO).into();
        let mut s = AdjustedSource::new(source, 40.0, KBPS(most), Timestamp::ZERO);
        s.on_target(KBPS(rate), Timestamp::ZERO);
        while let Some(at) = s.next_frame_at().filter(|&at| at < ms(end)) {
            assert!(s.poll_frame(at).is_some());
        }
        let target = s.generated_rate().as_kbps_f64().round() as u64;
        (s, target)
    }

    #[test]
    fn the_target_is_divided_by_1_2_until_30_frames() {
        assert_eq!(adjusted(2_500, 1_200, 700).1, 1_000);
        // Frames of equal size fit a link of the target.
        assert_eq!(adjusted(2_500, 1_200, 1_100).1, 1_200);
        // No room helps before utilisation is known, and no more than the most is asked for.
        assert_eq!((adjusted(600, 6_000, 700).1, adjusted(600, 6_000, 1_100).1), (500, 600));
    }

    #[test]
    fn what_a_frame_leaves_before_the_next_one_is_the_excess() {
        // 1 Mbit/s at 40 frames a second: 25,000 bits a frame, 25 ms apart.
        let factors = |sizes: &[f64]| -> Vec<f64> {
            let mut o = overshoot(KBPS(1_000));
            sizes.iter().enumerate().for_each(|(i, bits)| o.on_frame(*bits, 40.0, ms(25 * i as i64)));
            o.factors.iter().map(|(_, f)| *f).collect()
        };
        assert_eq!(factors(&[25e3, 25e3, 25e3]), [1.0, 1.0, 1.0]);
        // Of 50,000 bits half are left when the next frame comes, all of which is in its way; of 10,000 bits the bucket has room for.
        assert_eq!(factors(&[25e3, 50e3, 25e3, 25e3]), [1.0, 1.0, 2.0, 1.0]);
        assert_eq!(factors(&[25e3, 50e3, 0.0, 25e3]), [1.0, 1.0, 1.0, 1.0]);
        // The first one by its own size.
        assert_eq!(factors(&[100e3, 0.0])[0], 4.0);
    }

    #[test]
    fn utilisation_is_the_mean_of_three_seconds() {
        let mut o = overshoot(KBPS(1_000));
        assert_eq!(o.utilisation(ms(0)), None);
        o.on_frame(75e3, 40.0, ms(0));
        o.on_frame(0.0, 40.0, ms(200));
        assert_eq!(o.utilisation(ms(3_000)), Some(2.0));
        assert_eq!(o.utilisation(ms(3_001)), Some(1.0));
    }

    #[test]
    fn the_use_of_the_target_counts_the_last_frame_whole() {
        let mut u = Use::default();
        u.set_target(KBPS(1_000), ms(0));
        assert_eq!(u.utilisation(ms(0)), None);
        // 30,000 bits each 25 ms at 1 Mbit/s.
        (0..4).for_each(|i| u.on_frame(30e3, ms(25 * i)));
        let used = u.utilisation(ms(75)).expect("frames");
        assert!((used - 120.0 / 105.0).abs() < 1e-9, "{used}");
        let used = u.utilisation(ms(175)).expect("frames");
        assert!((used - 120.0 / 175.0).abs() < 1e-9, "{used}");
        // Of a target that changes, what has passed since the frame counts once.
        u.set_target(KBPS(2_000), ms(85));
        let used = u.utilisation(ms(85)).expect("frames");
        assert!((used - 120.0 / 105.0).abs() < 1e-9, "{used}");
    }

    #[test]
    fn frames_that_vary_cost_rate_unless_there_is_room() {
        let (mut s, _) = adjusted(2_000, 2_000, 1_100);
        let mut feed = |wanted: u64, sizes: [f64; 3]| {
            s.wanted = KBPS(wanted);
            s.link = Overshoot { at: ms(2_000), ..overshoot(KBPS(2_000)) };
            s.encoder = Use { target: 2e6, ..Use::default() };
            for i in 0..90 {
                s.link.on_frame(sizes[i % 3], 40.0, ms(2_000 + 25 * i as i64));
                s.encoder.on_frame(sizes[i % 3], ms(2_000 + 25 * i as i64));
            }
            s.corrected(KBPS(2_000), ms(4_225)).as_kbps_f64()
        };
        // The mean is the ideal size, 50,000 bits. Of the first of two large frames 20,000 are in the second one's way: 1.4 in one of three.
        let tight = feed(2_000, [70e3, 70e3, 10e3]);
        assert!((1_700.0..1_900.0).contains(&tight), "{tight}");
        let room = feed(4_000, [70e3, 70e3, 10e3]);
        assert!((1_970.0..=2_000.0).contains(&room), "{room}");
        // Half of the excess is granted by half of the room.
        let half = feed(2_000 + (2_000.0 - tight) as u64 / 2, [70e3, 70e3, 10e3]);
        assert!(half > tight + 40.0 && half < room - 40.0, "{half}");
    }
}
