//! Frame sizes of an encoder that codes scenes.

mod material;
mod one_pass;

use crate::frame::Numbering;
use crate::{Frame, FrameKind, FrameSource, MediaError, RateChange};
use material::Process;
pub use material::{Material, MaterialConfig};
use one_pass::OnePass;
use rand_pcg::Pcg64Mcg;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// The smallest frame: little more than its header.
const LEAST_FRAME: f64 = 20.0 * 8.0;
/// Time constant of the mean complexity, in seconds; chosen here.
const USUAL_TIME_S: f64 = 10.0;
/// Limit of complexity's effect on a frame's size at a given bit rate: the size scales with its square root
/// (libavcodec's `qcompress`, 0.5 by default), by a factor of at most 2 in either direction.
const MOST_BY_COMPLEXITY: f64 = 2.0;

/// How an encoder's frame sizes follow its target.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum RateControl {
    /// Frames have the size aimed at, within the limits of the material; an I-frame is larger by a fixed ratio.
    #[default]
    Exact,
    /// One-pass rate control of an encoder that is opened again at each new target, as libav 0.8 and mediastreamer2
    /// were: its first I-frame does not depend on the target, and I-frames are forced 2 s and 4 s after each opening.
    OnePass,
}

/// Parameters of [`ScenesSource`]; the defaults are the thesis's encoder (S. Jero, 2013), an MPEG-4 encoder at
/// 1920x1080.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ScenesConfig {
    /// The material's rate.
    pub material: MaterialConfig,
    /// Time between frames, 40 ms (section 3.1: 25 frames per second).
    pub frame_interval: TimeDelta,
    /// Size of an I-frame relative to a P-frame, 4 (section 3.2.1: "a factor of four difference between I-frames and
    /// P-frames is not uncommon"); ffmpeg's MPEG-4 encoder has 4.3 on the clip `movie` at 1 Mbit/s.
    pub key_ratio: f64,
    /// Interval of periodic I-frames, 10 s (section 4.4.2: "the default I-frame refresh rate").
    pub key_interval: Option<TimeDelta>,
    /// Effect of a new target; the thesis's encoder restarts with an I-frame (section 3.2.3).
    pub rate_change: RateChange,
    /// Share of the material's rate that the coarsest quantiser still needs, 0.05. The thesis gives no number, only
    /// that the encoder may not follow ("if the video stream's complexity is unsuitable", section 4.3). ffmpeg's MPEG-4
    /// encoder, of the same family, makes 1.16 MB of 1,000 pictures of the clip `movie` with its coarsest quantiser,
    /// 31, and 20.2 MB with 2: 0.057.
    pub coarsest: f64,
    /// Time over which smaller frames compensate for a large one, 2 s ("balanced by a very large number of small
    /// P-frames", section 3.2.3, which gives no number).
    pub balance: TimeDelta,
    /// How sizes follow the target: exactly. With [`RateControl::OnePass`], which needs [`RateChange::Restart`],
    /// `key_ratio` is that of frames with the same quantiser, and `balance` has no effect.
    pub rate_control: RateControl,
    /// Seed of the material, the same clip in every run; the source's seed if absent.
    pub draw: Option<u64>,
}

impl ScenesConfig {
    /// The thesis's encoder with this material.
    pub const fn new(material: MaterialConfig) -> Self {
        Self {
            material,
            frame_interval: TimeDelta::from_millis(40),
            key_ratio: 4.0,
            key_interval: Some(TimeDelta::from_secs(10)),
            rate_change: RateChange::Restart,
            coarsest: 0.05,
            balance: TimeDelta::from_secs(2),
            rate_control: RateControl::Exact,
            draw: None,
        }
    }

    /// Checks every field. Errors: the first invalid one.
    pub fn check(&self) -> Result<(), MediaError> {
        self.material.check()?;
        let fail = |field, value: &dyn std::fmt::Display, expected| {
            Err(MediaError::new("scenes source", field, value, expected))
        };
        let between = |t: TimeDelta, least, most| t >= TimeDelta::from_millis(least) && t <= TimeDelta::from_secs(most);
        if !between(self.frame_interval, 1, 10) {
            return fail("frame_interval", &self.frame_interval, "1 ms to 10 s");
        }
        if !(1.0..=100.0).contains(&self.key_ratio) {
            return fail("key_ratio", &self.key_ratio, "1 to 100");
        }
        if !(0.0..=1.0).contains(&self.coarsest) {
            return fail("coarsest", &self.coarsest, "a share from 0 to 1");
        }
        if !between(self.balance, 1, 600) {
            return fail("balance", &self.balance, "1 ms to 10 min");
        }
        if self.rate_control == RateControl::OnePass && self.rate_change == RateChange::Seamless {
            return fail("rate_control", &"one-pass", "the rate change \"restart\" with it");
        }
        match self.key_interval.filter(|&t| t <= TimeDelta::ZERO) {
            Some(t) => fail("key_interval", &t, "a positive time, or none"),
            None => Ok(()),
        }
    }
}

/// Frame sizes of an encoder that follows a target within the limits of its material: no frame exceeds the material's
/// rate or falls below that of the coarsest quantiser, and the mean follows the lesser of target and material. I-frames
/// begin scenes, recur at an interval, on request, and at each new target if the encoder restarts; the P-frames after
/// one are smaller, so that the mean holds.
///
/// With one seed the material is the same for any targets.
#[derive(Clone, Debug)]
pub struct ScenesSource {
    config: ScenesConfig,
    process: Process,
    numbering: Numbering,
    target: DataRate,
    due: Timestamp,
    key: bool,
    last_key: Timestamp,
    /// Excess bits sent, to be compensated.
    debt: f64,
    /// Mean rate of the material, in bit/s.
    usual_bps: f64,
    goal: DataRate,
    one_pass: Option<OnePass>,
}

impl ScenesSource {
    /// A source whose first frame is due at `start`, once it has a target. Errors: see [`ScenesConfig::check`].
    pub fn new(config: ScenesConfig, start: Timestamp, seed: u64) -> Result<Self, MediaError> {
        config.check()?;
        let seed = config.draw.unwrap_or(seed);
        let rng = Pcg64Mcg::new((u128::from(seed) << 64) | u128::from(seed ^ 0x5ce7_e5d0_9a11_4e37));
        Ok(Self {
            config,
            process: Process::new(config.material, config.frame_interval, rng),
            numbering: Numbering::default(),
            target: DataRate::ZERO,
            due: start,
            key: true,
            last_key: start,
            debt: 0.0,
            usual_bps: 0.0,
            goal: DataRate::ZERO,
            one_pass: (config.rate_control == RateControl::OnePass)
                .then(|| OnePass::new(config.coarsest, config.frame_interval)),
        })
    }

    /// The parameters in force.
    pub fn config(&self) -> &ScenesConfig {
        &self.config
    }

    /// The size of the next frame in bits.
    fn next_size(&mut self, at: Timestamp) -> (f64, FrameKind) {
        let c = &self.config;
        let w = self.process.next();
        let interval = c.frame_interval.as_secs_f64();
        if self.usual_bps == 0.0 {
            self.usual_bps = w.bps;
        }
        let relative = libm::sqrt(w.bps / self.usual_bps).clamp(1.0 / MOST_BY_COMPLEXITY, MOST_BY_COMPLEXITY);
        self.usual_bps += (w.bps - self.usual_bps) * (interval / USUAL_TIME_S).min(1.0);
        // Bits per frame at best quality, with the coarsest quantiser, and aimed at.
        let wanted = w.bps * interval;
        let floor = wanted * c.coarsest;
        let target = self.target.as_bps_f64() * interval;
        let goal = target.clamp(floor, wanted);
        self.goal = DataRate::from_bps_f64(goal / interval);
        let forced = self.one_pass.as_mut().is_some_and(|o| o.takes_forced(at));
        let is_key = self.key || forced || w.cut || c.key_interval.is_some_and(|t| at - self.last_key >= t);
        if is_key {
            (self.key, self.last_key) = (false, at);
        }
        let size = if let Some(one_pass) = &mut self.one_pass {
            let size = one_pass.size(wanted * if is_key { c.key_ratio } else { 1.0 }, is_key) * w.factor;
            one_pass.on_coded(size.max(LEAST_FRAME));
            size
        } else if is_key {
            (target * relative).clamp(floor, wanted) * c.key_ratio * w.factor
        } else {
            let frames = (c.balance.as_secs_f64() / interval).max(1.0);
            ((target * relative).min(wanted) * w.factor - self.debt / frames).clamp(floor, wanted * w.factor.max(1.0))
        };
        let size = size.max(LEAST_FRAME);
        self.debt += size - goal;
        (size, if is_key { FrameKind::Key } else { FrameKind::Delta })
    }
}

impl FrameSource for ScenesSource {
    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        if rate == self.target {
            return;
        }
        let was = std::mem::replace(&mut self.target, rate);
        if let Some(one_pass) = self.one_pass.as_mut().filter(|_| rate > DataRate::ZERO) {
            self.key = true;
            one_pass.open(rate.as_bps_f64(), now);
        }
        if was == DataRate::ZERO {
            self.due = self.due.max(now);
        } else if self.config.rate_change == RateChange::Restart && rate > DataRate::ZERO {
            // Rate control restarts as well.
            (self.key, self.debt) = (true, 0.0);
        }
    }

    /// `None` while the target is zero: a rate of zero pauses the source.
    fn next_frame_at(&self) -> Option<Timestamp> {
        (self.target > DataRate::ZERO).then_some(self.due)
    }

    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        let at = self.next_frame_at().filter(|&at| at <= now)?;
        // A source not polled for long continues from now.
        let at = if now - at > TimeDelta::from_secs(1) { now } else { at };
        let (bits, kind) = self.next_size(at);
        self.due = at + self.config.frame_interval;
        Some(self.numbering.frame(at, DataSize::from_bytes((bits / 8.0 + 0.5) as u64), kind))
    }

    fn request_key_frame(&mut self, _: Timestamp) {
        self.key = true;
    }

    fn generated_rate(&self) -> DataRate {
        if self.goal == DataRate::ZERO { self.target } else { self.goal }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(x: f64) -> DataRate {
        DataRate::from_bps_f64(x * 1e6)
    }
    fn source(material: MaterialConfig, change: impl FnOnce(&mut ScenesConfig)) -> ScenesSource {
        let mut c = ScenesConfig::new(material);
        change(&mut c);
        ScenesSource::new(c, Timestamp::ZERO, 11).expect("sound")
    }
    fn run(s: &mut ScenesSource, seconds: i64) -> Vec<Frame> {
        let end = s.due + TimeDelta::from_secs(seconds);
        std::iter::from_fn(|| {
            let at = s.next_frame_at().filter(|&at| at < end)?;
            s.poll_frame(at)
        })
        .collect()
    }
    fn mean_mbps(frames: &[Frame]) -> f64 {
        frames.iter().map(|f| f.size.as_bits() as f64).sum::<f64>() / (frames.len() as f64 * 0.04) / 1e6
    }
    fn keys(frames: &[Frame]) -> usize {
        frames.iter().filter(|f| f.kind == FrameKind::Key).count()
    }
    fn near(x: f64, expected: f64, share: f64) {
        assert!((x / expected - 1.0).abs() < share, "{x} is not {expected}");
    }

    #[test]
    fn the_mean_follows_the_target_between_the_materials_need_and_the_coarsest_quantiser() {
        // The conference's rate is 17.4 to 27.4 Mbit/s: 100 is more than it uses, 0.1 less than its minimum.
        for (target, expected) in [(100.0, 22.4), (6.0, 6.0), (2.5, 2.5), (0.1, 22.4 * 0.05)] {
            let mut s = source(MaterialConfig::conference(), |_| {});
            s.on_target(mbps(target), Timestamp::ZERO);
            let frames = run(&mut s, 600);
            assert_eq!(frames.len(), 15_000);
            // At the minimum nothing can compensate for the I-frames, 3 frames' worth in each 250: 1.2 %.
            near(mean_mbps(&frames), expected, 0.03);
        }
        let mut movie = source(MaterialConfig::movie(), |_| {});
        movie.on_target(mbps(3.0), Timestamp::ZERO);
        // Titles and simple scenes need less than 3 Mbit/s: 3 % titles, and few others.
        let mean = mean_mbps(&run(&mut movie, 3_000));
        assert!((2.7..3.05).contains(&mean), "{mean}");
    }

    #[test]
    fn an_i_frame_is_four_p_frames_and_those_behind_it_make_up_for_it() {
        let mut s = source(MaterialConfig::conference(), |c| c.material.frame_noise = 0.0);
        s.on_target(mbps(5.0), Timestamp::ZERO);
        let frames = run(&mut s, 60);
        assert_eq!(keys(&frames), 6);
        let bits: Vec<f64> = frames.iter().map(|f| f.size.as_bits() as f64).collect();
        for i in (0..6).map(|i| i * 250) {
            assert_eq!(frames[i].kind, FrameKind::Key);
            // 200,000 bits per frame at 5 Mbit/s; complexity changes a size by its square root, about a tenth.
            near(bits[i], 800_000.0, 0.15);
            // 600,000 too many, compensated over 50 frames: 12,000 in the next frame.
            assert!(bits[i + 1] < 0.6 * bits[i] && bits[i + 1] < 1.1 * 188_000.0, "{}", bits[i + 1]);
            near(bits[i..i + 250].iter().sum::<f64>(), 250.0 * 200_000.0, 0.02);
        }
    }

    #[test]
    fn frames_keep_between_the_least_and_the_most_that_material_allows() {
        for target in [0.2, 2.0, 10.0, 60.0] {
            let mut s = source(MaterialConfig::movie(), |_| {});
            let mut material = s.process.clone();
            s.on_target(mbps(target), Timestamp::ZERO);
            for f in run(&mut s, 400) {
                let w = material.next();
                let ratio = if f.kind == FrameKind::Key { 4.0 } else { 1.0 };
                let (bits, wanted) = (f.size.as_bits() as f64, w.bps * 0.04 * ratio * w.factor);
                assert!(bits <= (wanted.max(w.bps * 0.04 * ratio)).max(LEAST_FRAME) + 8.0, "{bits} {wanted}");
                let least = 0.05 * w.bps * 0.04 * ratio * if ratio > 1.0 { w.factor } else { 1.0 };
                assert!(bits >= least - 8.0, "{bits} {least}");
                assert!(!w.cut || f.kind == FrameKind::Key, "a scene begins with an I-frame");
            }
        }
    }

    #[test]
    fn a_new_target_restarts_with_an_i_frame_or_is_followed_without_one() {
        let i_frames = |change: RateChange| {
            let mut s = source(MaterialConfig::conference(), |c| c.rate_change = change);
            s.on_target(mbps(4.0), Timestamp::ZERO);
            let mut frames = run(&mut s, 1);
            for i in 0..5 {
                s.on_target(mbps(3.6 - 0.3 * f64::from(i)), s.due);
                // Repeating it changes nothing.
                s.on_target(mbps(3.6 - 0.3 * f64::from(i)), s.due);
                frames.extend(run(&mut s, 1));
            }
            (keys(&frames), mean_mbps(&frames[25 * 5..]))
        };
        let (restarts, rate) = i_frames(RateChange::Restart);
        assert_eq!(restarts, 6);
        // In a second 25 frames and 3 more for the I-frame, part of which is compensated.
        assert!((2.4..2.4 * 28.0 / 25.0 * 1.1).contains(&rate), "{rate}");
        let (seamless, rate) = i_frames(RateChange::Seamless);
        assert_eq!(seamless, 1);
        near(rate, 2.4, 0.12);
    }

    #[test]
    fn with_one_pass_rate_control_each_opening_costs_the_same_i_frame_and_forces_two_more() {
        let mut s = source(MaterialConfig::conference(), |c| {
            (c.rate_control, c.material.frame_noise) = (RateControl::OnePass, 0.0);
        });
        let mut i_frames = vec![];
        for target in [2.0, 0.5, 4.0] {
            s.on_target(mbps(target), s.due);
            let frames = run(&mut s, 8);
            let at: Vec<usize> = (0..200).filter(|&n| frames[n].kind == FrameKind::Key).collect();
            assert_eq!(at, [0, 50, 100]);
            i_frames.push(frames[0].size.as_bits() as f64);
            // 0.92 of the target less 15 kbit/s.
            if target > 1.0 {
                near(mean_mbps(&frames), 0.92 * target - 0.015, 0.1);
            }
        }
        // 17.4 to 27.4 Mbit/s: 400 kB of an I-frame, of which the quantiser 8 leaves 0.22.
        for bits in i_frames {
            near(bits / 8.0, 4.0 * 112_000.0 * 0.22, 0.25);
        }
        // The last was 4 s before; the next are 10 s apart.
        assert_eq!(keys(&run(&mut s, 20)), 2);
    }

    #[test]
    fn a_drawn_clip_is_the_same_for_any_seed() {
        let frames = |draw, seed| {
            let mut s = ScenesSource::new(
                ScenesConfig { draw, ..ScenesConfig::new(MaterialConfig::movie()) },
                Timestamp::ZERO,
                seed,
            )
            .expect("sound");
            s.on_target(mbps(5.0), Timestamp::ZERO);
            run(&mut s, 20)
        };
        assert_eq!(frames(Some(4), 1), frames(Some(4), 2));
        assert_eq!(frames(Some(4), 1), frames(None, 4));
        assert_ne!(frames(Some(4), 1), frames(Some(5), 1));
    }

    #[test]
    fn a_restart_at_every_frame_sends_i_frames_alone_at_four_times_the_rate() {
        let mut s = source(MaterialConfig::conference(), |_| {});
        s.on_target(mbps(2.0), Timestamp::ZERO);
        let mut frames = vec![];
        for i in 0..500u32 {
            s.on_target(mbps(2.0 + 0.001 * f64::from(i % 2)), s.due);
            let at = s.due;
            frames.extend(s.poll_frame(at));
        }
        assert_eq!(keys(&frames), 500);
        near(mean_mbps(&frames), 8.0, 0.03);
    }

    #[test]
    fn material_is_the_same_under_any_target_and_another_with_another_seed() {
        let sizes = |seed, target| {
            let mut s = ScenesSource::new(ScenesConfig::new(MaterialConfig::movie()), Timestamp::ZERO, seed).unwrap();
            s.on_target(mbps(target), Timestamp::ZERO);
            run(&mut s, 60)
        };
        let kinds = |frames: Vec<Frame>| frames.iter().map(|f| f.kind).collect::<Vec<_>>();
        assert_eq!(sizes(1, 5.0), sizes(1, 5.0));
        assert_eq!(kinds(sizes(1, 5.0)), kinds(sizes(1, 50.0)));
        assert_ne!(kinds(sizes(1, 5.0)), kinds(sizes(2, 5.0)));
    }

    #[test]
    fn a_requested_key_frame_is_coded_and_zero_pauses() {
        let mut s = source(MaterialConfig::conference(), |c| c.key_interval = None);
        assert_eq!(s.next_frame_at(), None);
        s.on_target(mbps(5.0), Timestamp::from_millis(100));
        assert_eq!(s.next_frame_at(), Some(Timestamp::from_millis(100)));
        assert_eq!(keys(&run(&mut s, 30)), 1);
        s.request_key_frame(s.due);
        let frames = run(&mut s, 1);
        assert_eq!((frames[0].kind, keys(&frames)), (FrameKind::Key, 1));
        s.on_target(DataRate::ZERO, s.due);
        assert_eq!((s.next_frame_at(), s.poll_frame(Timestamp::MAX)), (None, None));
    }

    #[test]
    fn wrong_parameters_are_named() {
        let wrong = |change: fn(&mut ScenesConfig)| {
            let mut c = ScenesConfig::new(MaterialConfig::movie());
            change(&mut c);
            ScenesSource::new(c, Timestamp::ZERO, 1).expect_err("unsound").to_string()
        };
        assert!(wrong(|c| c.key_ratio = 0.5).contains("key_ratio is 0.5: expected 1 to 100"));
        assert!(wrong(|c| c.coarsest = 2.0).contains("coarsest is 2"));
        assert!(wrong(|c| c.balance = TimeDelta::ZERO).contains("balance"));
        assert!(wrong(|c| c.frame_interval = TimeDelta::ZERO).contains("frame_interval"));
        assert!(wrong(|c| c.key_interval = Some(TimeDelta::ZERO)).contains("key_interval"));
        let both = wrong(|c| (c.rate_control, c.rate_change) = (RateControl::OnePass, RateChange::Seamless));
        assert!(both.contains("rate_control"), "{both}");
        assert!(wrong(|c| c.material.titles = -1.0).contains("titles"));
    }
}
