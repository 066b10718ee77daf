use crate::frame::Numbering;
use crate::laplace::Laplace;
use crate::{Frame, FrameKind, FrameSource, MediaError};
use rand_pcg::Pcg64Mcg;
use weir_units::{DataRate, DataSize, Gain, TimeDelta, Timestamp};

/// The smallest frame (RFC 8593, section 6.2.1, `fs_min`: 10 bytes).
const LEAST_FRAME: DataSize = DataSize::from_bytes(10);

/// Parameters of the statistical model of RFC 8593, section 5; the defaults are the examples of its figure 2.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StatisticalConfig {
    /// Reference frame interval t0, 1/30 s.
    pub frame_interval: TimeDelta,
    /// Encoder reaction latency tau_v, 0.2 s: after a change the encoder ignores targets for this time.
    pub reaction: TimeDelta,
    /// Burst duration K_d in frames, 8; 0 for no bursts.
    pub burst_frames: u32,
    /// Size K_B of the first frame of a burst, 13,500 bytes (720p at 30 frames per second, H.264).
    pub burst_size: DataSize,
    /// Relative change of the target that causes a burst: 0.1 (section 7).
    pub burst_change: f64,
    /// Scale SCALE_t of the Laplacian deviation of the frame interval, 0.15 (0 to 1).
    pub interval_scale: f64,
    /// Scale SCALE_B of the Laplacian deviation of the frame size, 0.15 (0 to 1).
    pub size_scale: f64,
    /// The lowest rate R_min, 150 kbit/s.
    pub min_rate: DataRate,
    /// The highest rate R_max, 1.5 Mbit/s.
    pub max_rate: DataRate,
    /// Interval of periodic key frames; none by default.
    pub key_interval: Option<TimeDelta>,
}

impl Default for StatisticalConfig {
    fn default() -> Self {
        Self {
            frame_interval: TimeDelta::from_nanos(1_000_000_000 / 30),
            reaction: TimeDelta::from_millis(200),
            burst_frames: 8,
            burst_size: DataSize::from_bytes(13_500),
            burst_change: 0.1,
            interval_scale: 0.15,
            size_scale: 0.15,
            min_rate: DataRate::from_kbps(150),
            max_rate: DataRate::from_kbps(1_500),
            key_interval: None,
        }
    }
}

impl StatisticalConfig {
    /// Checks every field. Errors: the first invalid one.
    pub fn check(&self) -> Result<(), MediaError> {
        let fail = |field, value: &dyn std::fmt::Display, expected| {
            Err(MediaError::new("statistical source", field, value, expected))
        };
        let ms = TimeDelta::from_millis;
        if self.frame_interval < ms(1) || self.frame_interval > ms(10_000) {
            return fail("frame_interval", &self.frame_interval, "1 ms to 10 s");
        }
        if self.reaction.is_negative() {
            return fail("reaction", &self.reaction, "zero or a positive time");
        }
        if self.burst_frames > 10_000 {
            return fail("burst_frames", &self.burst_frames, "10,000 frames at most");
        }
        if !(self.burst_change >= 0.0 && self.burst_change.is_finite()) {
            return fail("burst_change", &self.burst_change, "a share of the rate, zero or positive (10 % is 0.1)");
        }
        for (field, value) in [("interval_scale", self.interval_scale), ("size_scale", self.size_scale)] {
            if !(0.0..=1.0).contains(&value) {
                return fail(field, &value, "a scale between 0 and 1 (RFC 8593: 0.15)");
            }
        }
        if self.min_rate == DataRate::ZERO || self.max_rate < self.min_rate {
            return fail("min_rate", &self.min_rate, "a rate above zero and not above max_rate");
        }
        match self.key_interval.filter(|&t| t <= TimeDelta::ZERO) {
            Some(t) => fail("key_interval", &t, "a positive time, or none"),
            None => Ok(()),
        }
    }
}

/// A model of a live encoder by random variables: the statistical model of RFC 8593, section 5.
///
/// Where the text is open: a target set while the encoder still reacts to the previous one is not lost; the latest
/// applies at the first frame after that time. A burst keeps the mean of its frames at the target (section 5.2) also if
/// K_B exceeds their total: then its first frame is reduced. A burst that begins before another has ended takes over what
/// the smaller frames of that one would have saved, so that the mean also holds while the target changes all the time; what its
/// own frames cannot save, later ones do. The first frame and requested key frames begin a burst; frames of a burst have
/// no random size.
#[derive(Clone, Debug)]
pub struct StatisticalSource {
    config: StatisticalConfig,
    rng: Pcg64Mcg,
    numbering: Numbering,
    wanted: DataRate,
    rate: DataRate,
    reacted: Option<Timestamp>,
    due: Timestamp,
    key: bool,
    last_key: Timestamp,
    /// Remaining frames of a burst, and their size.
    burst_left: u32,
    burst_rest: DataSize,
    /// Bytes above the target that no frame of the burst will save.
    debt: DataSize,
}

impl StatisticalSource {
    /// A source whose first frame is due at `start`, once it has a target. Errors: see [`StatisticalConfig::check`].
    pub fn new(config: StatisticalConfig, start: Timestamp, seed: u64) -> Result<Self, MediaError> {
        config.check()?;
        Ok(Self {
            config,
            rng: Pcg64Mcg::new((u128::from(seed) << 64) | u128::from(seed ^ 0x9e37_79b9_7f4a_7c15)),
            numbering: Numbering::default(),
            wanted: DataRate::ZERO,
            rate: DataRate::ZERO,
            reacted: None,
            due: start,
            key: true,
            last_key: start,
            burst_left: 0,
            burst_rest: DataSize::ZERO,
            debt: DataSize::ZERO,
        })
    }

    /// The parameters in force.
    pub fn config(&self) -> &StatisticalConfig {
        &self.config
    }

    /// Sets the parameters from the next frame on. Errors: see [`StatisticalConfig::check`]; nothing changes then.
    pub fn set_config(&mut self, config: StatisticalConfig) -> Result<(), MediaError> {
        config.check()?;
        self.config = config;
        Ok(())
    }

    /// Applies the target if the reaction time has passed; returns whether it changed by much.
    fn react(&mut self, now: Timestamp) -> bool {
        let clipped = self.wanted.clamp(self.config.min_rate, self.config.max_rate);
        if clipped == self.rate || self.reacted.is_some_and(|t| now - t < self.config.reaction) {
            return false;
        }
        let before = self.rate.as_bps_f64();
        let large = (clipped.as_bps_f64() - before).abs() > self.config.burst_change * before;
        self.rate = clipped;
        self.reacted = Some(now);
        large
    }

    /// B0: the bytes that pass in the reference interval at the current rate.
    fn reference_size(&self) -> DataSize {
        self.rate.size_in(self.config.frame_interval)
    }

    /// Begins a burst; returns the size of its first frame. `before` is the size of a frame at the previous rate.
    fn begin_burst(&mut self, before: DataSize) -> DataSize {
        // Bits that the rest of a burst under way would have saved.
        self.debt += before.saturating_sub(self.burst_rest) * u64::from(self.burst_left);
        let (frames, b0) = (u64::from(self.config.burst_frames), self.reference_size());
        let others = frames - 1;
        let total = b0 * frames;
        let saved = self.debt.min(total.saturating_sub(LEAST_FRAME * others + b0));
        let total = total.saturating_sub(saved);
        self.debt = self.debt.saturating_sub(saved);
        let first = self.config.burst_size.min(total.saturating_sub(LEAST_FRAME * others));
        let first = first.max(b0);
        let left = total.saturating_sub(first).as_bytes();
        self.burst_left = self.config.burst_frames - 1;
        self.burst_rest = DataSize::from_bytes(left.checked_div(others).unwrap_or(0));
        first
    }

    /// A frame outside bursts: smaller while there is a debt.
    fn save(&mut self, size: DataSize) -> DataSize {
        let saved = self.debt.min(size.saturating_sub(LEAST_FRAME));
        self.debt = self.debt.saturating_sub(saved);
        size.saturating_sub(saved)
    }
}

impl FrameSource for StatisticalSource {
    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        if self.wanted == DataRate::ZERO {
            self.due = self.due.max(now);
        }
        self.wanted = rate;
    }

    /// `None` while the target is zero: a rate of zero pauses the source.
    fn next_frame_at(&self) -> Option<Timestamp> {
        (self.wanted > DataRate::ZERO).then_some(self.due)
    }

    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let at = self.next_frame_at().filter(|&at| at <= now)?;
        // A source not polled for long continues from now.
        let at = if now - at > TimeDelta::from_secs(1) { now } else { at };
        let before = self.reference_size();
        let changed = self.react(at);
        let key = self.key || self.config.key_interval.is_some_and(|t| at - self.last_key >= t);
        let size = if (changed || key) && self.config.burst_frames > 0 {
            self.begin_burst(before)
        } else if self.burst_left > 0 {
            self.burst_left -= 1;
            self.burst_rest
        } else {
            let factor = 1.0 + Laplace { scale: self.config.size_scale }.draw(&mut self.rng);
            let bits = (self.rate * Gain::new(factor).unwrap_or(Gain::ONE)).as_bps_f64();
            self.save(DataSize::from_bytes((bits * self.config.frame_interval.as_secs_f64() / 8.0 + 0.5) as u64))
        };
        if key {
            (self.key, self.last_key) = (false, at);
        }
        let deviation = Laplace { scale: self.config.interval_scale }.draw(&mut self.rng);
        self.due = at + self.config.frame_interval.mul_f64(1.0 + deviation);
        let kind = if key { FrameKind::Key } else { FrameKind::Delta };
        Some(self.numbering.frame(at, size.max(LEAST_FRAME), kind))
    }

    fn request_key_frame(&mut self, _: Timestamp) {
        self.key = true;
    }

    fn generated_rate(&self) -> DataRate {
        self.rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(n: u64) -> DataRate {
        DataRate::from_kbps(n)
    }
    fn source(change: impl FnOnce(&mut StatisticalConfig)) -> StatisticalSource {
        let mut c = StatisticalConfig::default();
        change(&mut c);
        StatisticalSource::new(c, Timestamp::ZERO, 11).expect("sound")
    }
    fn until(s: &mut StatisticalSource, end: Timestamp) -> Vec<Frame> {
        std::iter::from_fn(|| {
            let at = s.next_frame_at().filter(|&at| at < end)?;
            s.poll_frame(at)
        })
        .collect()
    }
    fn sizes(frames: &[Frame]) -> Vec<f64> {
        frames.iter().map(|f| f.size.as_bytes() as f64).collect()
    }
    fn mean_and_variance(x: &[f64]) -> (f64, f64) {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        (mean, x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / x.len() as f64)
    }
    fn near(x: f64, expected: f64, share: f64) {
        assert!((x / expected - 1.0).abs() < share, "{x} is not {expected}");
    }

    #[test]
    fn steady_state_fluctuation_is_laplacian() {
        let mut s = source(|c| c.burst_frames = 0);
        s.on_target(kbps(1_000), Timestamp::ZERO);
        let frames = until(&mut s, Timestamp::from_secs(3_000));
        let (t0, b0, scale) = (1_000.0 / 30.0, 1e6 / 8.0 / 30.0, Laplace { scale: 0.15 });
        let (mean, variance) = mean_and_variance(&sizes(&frames));
        near(mean, b0, 0.005);
        near(variance, b0 * b0 * scale.variance(), 0.04);
        let gaps: Vec<_> = frames.windows(2).map(|w| (w[1].captured - w[0].captured).as_millis_f64()).collect();
        let (mean, variance) = mean_and_variance(&gaps);
        near(mean, t0, 0.005);
        near(variance, t0 * t0 * scale.variance(), 0.04);
        near(sizes(&frames).iter().sum::<f64>() * 8.0 / 3_000.0, 1e6, 0.005);
    }

    #[test]
    fn a_target_is_followed_once_in_the_reaction_time() {
        let mut s = source(|c| (c.interval_scale, c.size_scale, c.burst_frames) = (0.0, 0.0, 0));
        s.on_target(kbps(600), Timestamp::ZERO);
        let mut rates = vec![];
        for (ms, next) in [(510, 900), (590, 1_200), (610, 300), (1_000, 300)] {
            // Frames before the target changes.
            let rate = |f: &Frame| (f.captured.as_millis(), (f.size.as_bits() as f64 * 0.03).round() as u64);
            rates.extend(until(&mut s, Timestamp::from_millis(ms)).iter().map(rate));
            s.on_target(kbps(next), Timestamp::from_millis(ms));
        }
        // The first change applies to the next frame; the two after it are too early, and the first frame 200 ms later
        // uses the latest.
        assert!(rates.iter().all(|r| [600, 900, 300].contains(&r.1)), "{rates:?}");
        let first = rates.iter().find(|r| r.1 == 900).expect("followed").0;
        let second = rates.iter().find(|r| r.1 == 300).expect("followed").0;
        assert!((510..544).contains(&first) && (200..234).contains(&(second - first)), "{rates:?}");
    }

    #[test]
    fn a_burst_begins_large_and_keeps_the_mean() {
        let mut s = source(|c| c.interval_scale = 0.0);
        s.on_target(kbps(1_000), Timestamp::ZERO);
        let frames = until(&mut s, Timestamp::from_secs(1));
        assert_eq!((frames[0].kind, frames[0].size.as_bytes()), (FrameKind::Key, 13_500));
        // (8 x 4,166 - 13,500) / 7 bytes in each of the next seven frames.
        assert!(frames[1..8].iter().all(|f| f.size.as_bytes() == 2_832 && f.kind == FrameKind::Delta));
        near(sizes(&frames[..8]).iter().sum::<f64>(), 8.0 * 1e6 / 240.0, 0.001);
        // A small change causes none, a large one does, though not a key frame.
        s.on_target(kbps(1_080), Timestamp::from_secs(1));
        assert!(sizes(&until(&mut s, Timestamp::from_secs(2))).iter().all(|&b| b < 10_000.0));
        s.on_target(kbps(500), Timestamp::from_secs(2));
        let frames = until(&mut s, Timestamp::from_secs(3));
        assert_eq!((frames[0].kind, frames[0].size.as_bytes()), (FrameKind::Delta, 13_500));
        // At a low rate the first frame is reduced, so that the mean still holds: 8 x 625 bytes.
        s.on_target(kbps(150), Timestamp::from_secs(3));
        let frames = until(&mut s, Timestamp::from_secs(4));
        assert_eq!(frames[0].size.as_bytes(), 8 * 624 - 70);
        assert_eq!(sizes(&frames[..8]).iter().sum::<f64>(), 8.0 * 624.0);
    }

    #[test]
    fn the_mean_holds_while_bursts_follow_each_other() {
        // A target that jumps between two rates, or whose key frames are requested, more often than a burst lasts.
        for (interval, low, keys) in [(200, 600, false), (100, 600, false), (200, 1_200, true), (60, 1_200, true)] {
            let mut s = source(|c| (c.interval_scale, c.size_scale) = (0.0, 0.0));
            let (mut frames, mut wanted) = (vec![], 0.0);
            for k in 0..1_000 {
                let at = Timestamp::from_millis(k * interval);
                s.on_target(kbps(if k % 2 == 0 { 1_200 } else { low }), at);
                if keys {
                    s.request_key_frame(at);
                }
                while let Some(due) = s.next_frame_at().filter(|&t| t < at + TimeDelta::from_millis(interval)) {
                    frames.extend(s.poll_frame(due));
                    wanted += s.generated_rate().as_bps_f64() / 240.0;
                }
            }
            near(sizes(&frames).iter().sum::<f64>(), wanted, 0.02);
            assert!(sizes(&frames).iter().any(|&b| b >= 2.0 * 5_000.0), "bursts begin large");
        }
    }

    #[test]
    fn key_frames_come_when_asked_for_and_at_their_interval() {
        let mut s = source(|c| c.key_interval = Some(TimeDelta::from_secs(2)));
        s.on_target(kbps(1_000), Timestamp::ZERO);
        until(&mut s, Timestamp::from_millis(500));
        s.request_key_frame(Timestamp::from_millis(500));
        let keys: Vec<_> =
            until(&mut s, Timestamp::from_secs(5)).into_iter().filter(|f| f.kind == FrameKind::Key).collect();
        assert_eq!(keys.len(), 3);
        for (k, at) in keys.iter().zip([500, 2_500, 4_500]) {
            assert!((at..at + 120).contains(&k.captured.as_millis()) && k.size.as_bytes() == 13_500, "{k:?}");
        }
    }

    #[test]
    fn the_rate_stays_in_its_range_and_zero_pauses() {
        let mut s = source(|_| {});
        assert_eq!(s.next_frame_at(), None);
        for (target, expected) in [(50, 150), (9_000, 1_500)] {
            s.on_target(kbps(target), s.due);
            let from = s.due;
            let frames = until(&mut s, from + TimeDelta::from_secs(200));
            assert_eq!(s.generated_rate(), kbps(expected));
            near(sizes(&frames).iter().sum::<f64>() * 8.0 / 200.0, expected as f64 * 1e3, 0.02);
        }
        s.on_target(DataRate::ZERO, s.due);
        assert_eq!((s.next_frame_at(), s.poll_frame(Timestamp::MAX)), (None, None));
    }

    #[test]
    fn wrong_parameters_are_named() {
        let err = |change: fn(&mut StatisticalConfig)| {
            let mut c = StatisticalConfig::default();
            change(&mut c);
            c.check().expect_err("unsound").to_string()
        };
        assert!(err(|c| c.size_scale = 15.0).contains("size_scale is 15: expected a scale between 0 and 1"));
        assert!(err(|c| c.min_rate = kbps(2_000)).contains("min_rate is 2000 kbit/s"));
        assert!(err(|c| c.burst_change = f64::NAN).contains("burst_change"));
        assert!(err(|c| c.frame_interval = TimeDelta::ZERO).contains("frame_interval"));
    }
}
