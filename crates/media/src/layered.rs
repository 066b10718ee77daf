//! A model of a layered encoder: frames with a layer and a size, and without content.

use crate::frame::Numbering;
use crate::laplace::Laplace;
use crate::{Frame, FrameKind, FrameSource, LayerId, LayerRates, Layering, MediaError};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// The smallest frame (RFC 8593, section 6.2.1, `fs_min`: 10 bytes).
const LEAST_FRAME: f64 = 10.0;
/// Greatest share of a frame taken off to compensate for a previous key frame.
const REPAID: f64 = 0.5;
/// A source not polled for longer than this skips the time since instead of catching up.
const LONGEST_LAG: TimeDelta = TimeDelta::from_secs(1);

/// Configuration of a [`LayeredSource`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LayeredConfig {
    /// Its layers; [`Layering::SINGLE`] for an encoding of a simulcast without layers.
    pub layering: Layering,
    /// Time between two pictures, 1/30 s (1 ms to 10 s).
    pub frame_interval: TimeDelta,
    /// Scale of the Laplacian deviation of frame sizes (0 to 1), 0.15 (RFC 8593, section 5: SCALE_B).
    pub size_scale: f64,
    /// Size of key frames relative to other frames of the base temporal layer (1 to 100), 3; later frames are smaller
    /// to compensate.
    pub key_scale: f64,
}

impl Default for LayeredConfig {
    fn default() -> Self {
        Self {
            layering: Layering::SINGLE,
            frame_interval: TimeDelta::from_nanos(1_000_000_000 / 30),
            size_scale: 0.15,
            key_scale: 3.0,
        }
    }
}

impl LayeredConfig {
    /// Checks every field.
    ///
    /// # Errors
    /// The first invalid field.
    pub fn check(&self) -> Result<(), MediaError> {
        let ms = TimeDelta::from_millis;
        if !(ms(1)..=ms(10_000)).contains(&self.frame_interval) {
            return Err(MediaError::new("layered source", "frame_interval", self.frame_interval, "1 ms to 10 s"));
        }
        if !(0.0..=1.0).contains(&self.size_scale) {
            return Err(MediaError::new("layered source", "size_scale", self.size_scale, "a scale between 0 and 1"));
        }
        if !(1.0..=100.0).contains(&self.key_scale) {
            return Err(MediaError::new("layered source", "key_scale", self.key_scale, "1 to 100"));
        }
        Ok(())
    }
}

/// A model of an encoder of spatial and temporal layers. Its target is split over its layers ([`Layering::share_out`])
/// unless [`Self::set_rates`] is used; each layer keeps to its rate.
///
/// A picture is polled as one frame per spatial layer, lowest first, with the same capture time and timestamp. A layer
/// with rate zero makes no frames. A target of zero pauses the source; the first picture afterwards is a key frame, on
/// the original time grid. Several sources with the same `start` and interval are therefore encodings of the same
/// pictures: a simulcast.
#[derive(Clone, Debug)]
pub struct LayeredSource {
    config: LayeredConfig,
    rng: Pcg64Mcg,
    numbering: Numbering,
    start: Timestamp,
    /// The next picture on the time grid, and the number of pictures since the last key frame.
    picture: u64,
    since_key: u64,
    key: bool,
    target: DataRate,
    rates: LayerRates,
    given_rates: bool,
    /// Bytes of key frames not yet compensated, by spatial layer.
    debt: [f64; crate::MAX_SPATIAL_LAYERS as usize],
    /// Frames of the current picture.
    frames: VecDeque<Frame>,
}

impl LayeredSource {
    /// A source whose first picture is due at `start`, once it has a target.
    ///
    /// # Errors
    /// See [`LayeredConfig::check`].
    pub fn new(config: LayeredConfig, start: Timestamp, seed: u64) -> Result<Self, MediaError> {
        config.check()?;
        Ok(Self {
            config,
            rng: Pcg64Mcg::new((u128::from(seed) << 64) | u128::from(seed ^ 0x9e37_79b9_7f4a_7c15)),
            numbering: Numbering::default(),
            start,
            picture: 0,
            since_key: 0,
            key: true,
            target: DataRate::ZERO,
            rates: LayerRates::default(),
            given_rates: false,
            debt: Default::default(),
            frames: VecDeque::new(),
        })
    }

    /// Its layers.
    pub const fn layering(&self) -> Layering {
        self.config.layering
    }
    /// The rate of each layer.
    pub const fn rates(&self) -> &LayerRates {
        &self.rates
    }
    /// Sets the layers' rates from the next picture on, replacing the split of a target. A spatial layer whose rate was
    /// zero begins with a key frame.
    pub fn set_rates(&mut self, rates: &LayerRates, now: Timestamp) {
        self.follow(rates.total(), now);
        self.change(*rates);
        self.given_rates = true;
    }

    fn follow(&mut self, rate: DataRate, now: Timestamp) {
        if self.target == DataRate::ZERO && rate > DataRate::ZERO {
            self.skip_to(now);
            self.key = true;
        }
        self.target = rate;
    }

    fn change(&mut self, rates: LayerRates) {
        let is_on = |r: &LayerRates, s| r.get(LayerId::new(s, 0)) > DataRate::ZERO;
        self.key |= (0..self.config.layering.spatial()).any(|s| is_on(&rates, s) && !is_on(&self.rates, s));
        self.rates = rates;
    }

    fn due(&self, picture: u64) -> Timestamp {
        self.start + self.config.frame_interval * i64::try_from(picture).unwrap_or(i64::MAX)
    }

    /// Skips to the first picture due at `at` or later.
    fn skip_to(&mut self, at: Timestamp) {
        let passed = (at - self.start).as_nanos();
        let interval = self.config.frame_interval.as_nanos();
        let next = passed.div_euclid(interval) + i64::from(passed.rem_euclid(interval) > 0);
        self.picture = self.picture.max(u64::try_from(next).unwrap_or(0));
    }

    /// Makes the layer frames of a picture.
    fn shoot(&mut self, at: Timestamp) {
        let layering = self.config.layering;
        let key = core::mem::take(&mut self.key);
        self.since_key = if key { 0 } else { self.since_key + 1 };
        let step = layering.step(self.since_key);
        let kind = if key { FrameKind::Key } else { FrameKind::Delta };
        for spatial in 0..layering.spatial() {
            let layer = LayerId::new(spatial, step.temporal);
            if self.rates.get(LayerId::new(spatial, 0)) == DataRate::ZERO || self.rates.get(layer) == DataRate::ZERO {
                continue;
            }
            let size = self.draw(layer, key);
            let made = match self.frames.is_empty() {
                true => self.numbering.frame(at, size, kind),
                false => self.numbering.layer_frame(at, size, kind),
            };
            // An upper spatial layer of a picture without later references has no references; the lower ones are
            // referred to by those above.
            let discardable = step.discardable && spatial + 1 == layering.spatial();
            self.frames.push_back(Frame { layer, discardable, marker: false, ..made });
        }
        if let Some(last) = self.frames.back_mut() {
            last.marker = true;
        }
    }

    fn draw(&mut self, layer: LayerId, key: bool) -> DataSize {
        // Number of pictures per picture of this temporal layer.
        let of = match (self.config.layering.temporal(), layer.temporal) {
            (1, _) => 1.0,
            (2, _) | (3, 2) => 2.0,
            _ => 4.0,
        };
        let mean = self.rates.get(layer).as_bps_f64() / 8.0 * self.config.frame_interval.as_secs_f64() * of;
        let factor = 1.0 + Laplace { scale: self.config.size_scale }.draw(&mut self.rng);
        let debt = &mut self.debt[usize::from(layer.spatial)];
        let mut size = mean * factor;
        if key {
            size *= self.config.key_scale;
            *debt += size - mean * factor;
        } else {
            let paid = debt.min(size * REPAID);
            *debt -= paid;
            size -= paid;
        }
        DataSize::from_bytes((size + 0.5).max(LEAST_FRAME) as u64)
    }
}

impl FrameSource for LayeredSource {
    fn on_target(&mut self, rate: DataRate, now: Timestamp) {
        self.follow(rate, now);
        self.change(self.config.layering.share_out(rate));
        self.given_rates = false;
    }

    fn next_frame_at(&self) -> Option<Timestamp> {
        let waiting = self.frames.front().map(|f| f.captured);
        waiting.or_else(|| (self.target > DataRate::ZERO).then(|| self.due(self.picture)))
    }

    fn poll_frame(&mut self, now: Timestamp) -> Option<Frame> {
        if self.frames.is_empty() {
            let mut at = self.next_frame_at().filter(|&at| at <= now)?;
            if now - at > LONGEST_LAG {
                self.skip_to(now - self.config.frame_interval);
                at = self.due(self.picture);
            }
            self.picture += 1;
            self.shoot(at);
        }
        self.frames.pop_front()
    }

    fn request_key_frame(&mut self, _: Timestamp) {
        self.key = true;
    }

    fn generated_rate(&self) -> DataRate {
        self.target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(mode: &str) -> LayeredSource {
        let config = LayeredConfig { layering: mode.parse().unwrap(), ..LayeredConfig::default() };
        LayeredSource::new(config, Timestamp::ZERO, 3).unwrap()
    }
    fn until(s: &mut LayeredSource, end: Timestamp) -> Vec<Frame> {
        std::iter::from_fn(|| {
            let at = s.next_frame_at().filter(|&at| at < end)?;
            s.poll_frame(at)
        })
        .collect()
    }

    #[test]
    fn every_layer_keeps_to_its_rate() {
        for mode in ["L1T1", "L1T2", "L1T3", "L2T1", "L3T3"] {
            let mut s = source(mode);
            s.on_target(DataRate::from_kbps(1_500), Timestamp::ZERO);
            let frames = until(&mut s, Timestamp::from_secs(200));
            for layer in s.layering().layers() {
                let bytes: u64 = frames.iter().filter(|f| f.layer == layer).map(|f| f.size.as_bytes()).sum();
                let (given, wanted) = (bytes as f64 * 8.0 / 200.0, s.rates().get(layer).as_bps_f64());
                assert!((given / wanted - 1.0).abs() < 0.02, "{mode} {layer}: {given} of {wanted}");
            }
        }
    }

    #[test]
    fn the_layer_frames_of_a_picture_come_together() {
        let mut s = source("L2T2");
        s.on_target(DataRate::from_kbps(1_000), Timestamp::ZERO);
        let frames = until(&mut s, Timestamp::from_millis(120));
        let seen: Vec<_> = frames.iter().map(|f| (f.layer.to_string(), f.marker, f.discardable)).collect();
        let s0 = |t: &str| (format!("S0{t}"), false, false);
        assert_eq!(
            seen,
            [
                s0("T0"),
                ("S1T0".into(), true, false),
                s0("T1"),
                ("S1T1".into(), true, true),
                s0("T0"),
                ("S1T0".into(), true, false),
                s0("T1"),
                ("S1T1".into(), true, true),
            ]
        );
        for (n, pair) in frames.chunks(2).enumerate() {
            assert_eq!((pair[0].rtp_timestamp, pair[0].captured), (pair[1].rtp_timestamp, pair[1].captured));
            assert_eq!(pair[0].rtp_timestamp as usize, n * 3_000 - usize::from(n > 0));
            assert_eq!(pair.iter().all(|f| f.kind == FrameKind::Key), n == 0);
        }
        assert_eq!(frames.iter().map(|f| f.id).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    }

    #[test]
    fn a_layer_without_rate_is_left_out_and_begins_with_a_key_frame() {
        let mut s = source("L2T1");
        let mut rates = LayerRates::default();
        rates.set(LayerId::BASE, DataRate::from_kbps(200));
        s.set_rates(&rates, Timestamp::ZERO);
        let frames = until(&mut s, Timestamp::from_secs(1));
        assert!(frames.len() == 31 && frames.iter().all(|f| f.layer == LayerId::BASE && f.marker), "{}", frames.len());
        rates.set(LayerId::new(1, 0), DataRate::from_kbps(400));
        s.set_rates(&rates, Timestamp::from_secs(1));
        let frames = until(&mut s, Timestamp::from_secs(2));
        assert_eq!(
            [frames[0].kind, frames[1].kind, frames[2].kind],
            [FrameKind::Key, FrameKind::Key, FrameKind::Delta]
        );
        assert!(frames.iter().any(|f| f.layer.spatial == 1));
    }

    #[test]
    fn encodings_of_simulcast_share_their_clock_and_resume_with_a_key_frame() {
        let (mut small, mut large) = (source("L1T1"), source("L1T1"));
        for s in [&mut small, &mut large] {
            s.on_target(DataRate::from_kbps(300), Timestamp::ZERO);
        }
        let one = until(&mut small, Timestamp::from_secs(1));
        until(&mut large, Timestamp::from_millis(500));
        large.on_target(DataRate::ZERO, Timestamp::from_millis(500));
        assert_eq!(large.next_frame_at(), None);
        large.on_target(DataRate::from_kbps(900), Timestamp::from_millis(810));
        let two = until(&mut large, Timestamp::from_secs(1));
        assert_eq!((two[0].kind, two[1].kind), (FrameKind::Key, FrameKind::Delta));
        assert!(two.iter().all(|f| one.iter().any(|o| o.rtp_timestamp == f.rtp_timestamp)));
        assert!(two[0].captured >= Timestamp::from_millis(810) && two[0].captured < Timestamp::from_millis(844));
    }

    #[test]
    fn wrong_parameters_are_named() {
        let err = |change: fn(&mut LayeredConfig)| {
            let mut c = LayeredConfig::default();
            change(&mut c);
            LayeredSource::new(c, Timestamp::ZERO, 1).unwrap_err().to_string()
        };
        assert!(err(|c| c.size_scale = 2.0).contains("size_scale is 2"));
        assert!(err(|c| c.key_scale = 0.5).contains("key_scale"));
        assert!(err(|c| c.frame_interval = TimeDelta::ZERO).contains("frame_interval"));
    }
}
