//! How large VP8's frames are at a quantiser, and the smaller pictures that libwebrtc codes once the quantiser is high (as of 2023, 71ff8e75:
//! `modules/video_coding/utility/quality_scaler.cc`, and `video/adaptation/` for the steps).
//!
//! No quantiser is above the highest, so a frame has a least size, by its pixels and by how much has moved since the frame before. A target
//! below that is exceeded, until pictures are smaller. The mean quantiser over some 2 s, checked each 2 s until the first step and each 5 s from
//! then on, decides: above 95 of 127 pictures have three fifths of the pixels, rounded to a ratio of small numbers; likewise if the encoder drops
//! 60 % of the frames. At 29 or less over some 10 s they are one step larger.
//!
//! Differences from libwebrtc: the picture that the camera makes always has 640x480 pixels; steps up need no least rate; the frame rate is
//! never reduced.

use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// Sizes of a frame that follows the one before by a thirtieth of a second, in bytes, by quantiser index (0 to 127), for 640x480, 480x360 and
/// 320x240 pixels. Medians over the seconds of 19 recorded calls of one filmed sequence with noise in which all frames were coded. The last one
/// is the highest quantiser that libwebrtc allows (56 of 63, index 106).
const SIZES: [&[(f64, f64)]; 3] = [
    &[
        (56.0, 10_560.0),
        (60.0, 9_290.0),
        (64.0, 7_110.0),
        (72.0, 4_510.0),
        (80.0, 3_250.0),
        (88.0, 2_420.0),
        (HIGHEST, 1_600.0),
    ],
    &[
        (24.0, 10_600.0),
        (32.0, 7_800.0),
        (44.0, 4_030.0),
        (60.0, 2_410.0),
        (72.0, 1_930.0),
        (88.0, 1_240.0),
        (HIGHEST, 800.0),
    ],
    &[
        (12.0, 10_800.0),
        (26.0, 4_900.0),
        (44.0, 2_400.0),
        (56.0, 1_480.0),
        (68.0, 900.0),
        (80.0, 760.0),
        (HIGHEST, 440.0),
    ],
];
const PIXELS: [u32; 3] = [640 * 480, 480 * 360, 320 * 240];
pub(crate) const HIGHEST: f64 = 106.0;
/// Least quantiser index (`kDefaultMinQp`: 2 of 63).
const LOWEST: f64 = 2.0;
/// Interval of the sizes. After a longer one a frame is larger by the root of the ratio: in the same calls 1.6 kB after 33 ms, 2.6 to 3.3 kB after
/// 66 and 5 to 10 kB after a second.
const INTERVAL: f64 = 1.0 / 30.0;
/// Least key frame over the least one of others: 3.0 kB at 480x360 pixels.
const KEY: f64 = 4.0;

/// Frames until the average quantiser limits (`ni_frames`), by how much better a frame is at most if the bucket is full, and the share of the
/// bucket's optimum up to which the quantiser is free.
const SETTLED: f64 = 150.0;
const BETTER: f64 = 0.25;
const FREE: f64 = 0.25;

/// Quantiser indices above and at which pictures get smaller and larger (`kHighVp8QpThreshold`, `kLowVp8QpThreshold`).
const HIGH: f64 = 95.0;
const LOW: f64 = 29.0;
/// Weight of the means of the quantiser after each millisecond (`QualityScalingExperiment`, its default).
const HIGH_DECAY: f64 = 0.9995;
const LOW_DECAY: f64 = 0.9999;
/// Share of dropped frames, in %, from which pictures get smaller (`kFramedropPercentThreshold`), the frames of which it is, and the least
/// number of them (`kMinFramesNeededToScale`).
const DROPPED: usize = 60;
const WINDOW: usize = 150;
const LEAST_FRAMES: usize = 60;
/// Time between checks before the first step (`kMeasureMs`); after it, half of that where frames were too few, and otherwise 2.5 times as
/// much (`kSamplePeriodScaleFactor`).
const FAST: TimeDelta = TimeDelta::from_secs(2);
const TOO_FEW: TimeDelta = TimeDelta::from_secs(1);
const SLOW: TimeDelta = TimeDelta::from_secs(5);

/// The picture's size and the means by which it changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    /// Steps down from the camera's size.
    steps: usize,
    high: Option<f64>,
    low: Option<f64>,
    sampled: Timestamp,
    /// Whether each of the last frames was dropped.
    dropped: VecDeque<bool>,
    due: Option<Timestamp>,
    is_slow: bool,
    /// Sum and number of the quantisers of frames that are no key frames, since the encoder began; and the last one.
    sum: f64,
    coded: f64,
    last: f64,
}

/// A frame's size at a quantiser by a table: the logarithm is linear between its lines.
fn size_at(table: &[(f64, f64)], quantiser: f64) -> f64 {
    let k = table.iter().position(|(q, _)| *q >= quantiser).unwrap_or(table.len() - 1).max(1);
    let ((a, x), (b, y)) = (table[k - 1], table[k]);
    x * libm::pow(y / x, (quantiser - a) / (b - a))
}

/// The quantiser at which a frame has this size, continued beyond the table's first line.
fn quantiser_of(table: &[(f64, f64)], bytes: f64) -> f64 {
    let k = table.iter().position(|(_, size)| *size <= bytes).unwrap_or(table.len() - 1).max(1);
    let ((a, x), (b, y)) = (table[k - 1], table[k]);
    (a + (b - a) * libm::log(bytes / x) / libm::log(y / x)).clamp(LOWEST, HIGHEST)
}

impl Picture {
    /// The smallest picture.
    #[cfg(test)]
    pub(crate) fn smallest() -> Self {
        Self { steps: SIZES.len() - 1, ..Self::default() }
    }

    /// The highest quantiser of the next frame while the bucket has this share of its optimum, `most` if it is full. libvpx lets frames be no
    /// worse than the average while the bucket is at its optimum, and better by up to a quarter if it is full, as after a fall of the
    /// target: they exceed that until the bucket is down to a quarter of its optimum (`calc_pframe_target_size` of `vp8/encoder/ratectrl.c`,
    /// `encode_frame_to_data_rate` of `onyx_if.c`).
    pub(crate) fn limit(&self, fill: f64, most: f64) -> f64 {
        if self.coded <= SETTLED {
            return HIGHEST;
        }
        let usual = f64::max(self.sum / self.coded, self.last - 1.0);
        if fill >= 1.0 {
            return usual * (1.0 - BETTER * ((fill - 1.0) / (most - 1.0)).min(1.0));
        }
        HIGHEST - (HIGHEST - usual) * ((fill - FREE) / (1.0 - FREE)).max(0.0)
    }

    /// Bits of a frame, `interval` seconds after the last coded one, for which the rate control has `bits`, with this highest quantiser and a
    /// miss as a share; its quantiser is counted.
    pub(crate) fn frame(
        &mut self,
        bits: f64,
        (limit, miss): (f64, f64),
        interval: f64,
        is_key: bool,
        now: Timestamp,
    ) -> f64 {
        let table = SIZES[self.steps];
        let scale = if is_key { KEY } else { libm::sqrt((interval / INTERVAL).max(1.0)) };
        let bytes = f64::max(bits / 8.0, size_at(table, limit) * scale) * (1.0 + miss);
        let bytes = bytes.max(size_at(table, HIGHEST) * scale);
        let quantiser = quantiser_of(table, bytes / scale);
        if !is_key {
            (self.sum, self.coded, self.last) = (self.sum + quantiser, self.coded + 1.0, quantiser);
        }
        let passed = now.saturating_since(self.sampled).as_secs_f64() * 1e3;
        let mean = |old: Option<f64>, decay| {
            old.map_or(quantiser, |old| quantiser + libm::pow(decay, passed) * (old - quantiser))
        };
        (self.high, self.low) = (Some(mean(self.high, HIGH_DECAY)), Some(mean(self.low, LOW_DECAY)));
        self.sampled = now;
        self.count(false);
        bytes * 8.0
    }

    pub(crate) fn pixels(&self) -> u32 {
        PIXELS[self.steps]
    }

    /// Counts a frame that the encoder drops.
    pub(crate) fn drop_frame(&mut self) {
        self.count(true);
    }

    fn count(&mut self, is_dropped: bool) {
        if self.dropped.len() == WINDOW {
            self.dropped.pop_front();
        }
        self.dropped.push_back(is_dropped);
    }

    /// Whether pictures have another size from now on.
    pub(crate) fn resize(&mut self, now: Timestamp) -> bool {
        let due = *self.due.get_or_insert(now + FAST);
        if now < due {
            return false;
        }
        let before = self.steps;
        let is_known = self.dropped.len() >= LEAST_FRAMES;
        if is_known {
            let drops = self.dropped.iter().filter(|d| **d).count();
            let is_high = drops * 100 >= DROPPED * self.dropped.len() || self.high.is_some_and(|q| q > HIGH);
            let is_low = !is_high && self.low.is_some_and(|q| q <= LOW);
            self.is_slow |= is_high;
            if is_high || is_low {
                let steps = if is_high { self.steps + 1 } else { self.steps.saturating_sub(1) };
                self.steps = steps.min(SIZES.len() - 1);
                (self.high, self.low) = (None, None);
                if self.steps != before {
                    (self.sum, self.coded, self.last) = (0.0, 0.0, 0.0);
                }
                self.dropped.clear();
            }
        }
        let wait = match (self.is_slow, is_known) {
            (false, _) => FAST,
            (true, false) => TOO_FEW,
            (true, true) => SLOW,
        };
        self.due = Some(now + wait);
        self.steps != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    /// Frames of these bits at 30 a second from a time on, until the picture has another size or the time ends: when.
    fn resized(p: &mut Picture, bits: f64, from: i64, until: i64) -> Option<i64> {
        (0..).map(|k| from + k * 100 / 3).take_while(|t| *t < until).find(|&t| {
            let is_new = p.resize(ms(t));
            if !is_new {
                p.frame(bits, (HIGHEST, 0.0), INTERVAL, false, ms(t));
            }
            is_new
        })
    }

    #[test]
    fn a_frame_has_a_least_size_by_pixels_and_interval() {
        let mut p = Picture::default();
        assert_eq!(p.frame(83e3, (HIGHEST, 0.0), INTERVAL, false, ms(0)), 83e3);
        assert!((p.frame(1e3, (HIGHEST, 0.0), INTERVAL, false, ms(33)) - 12_800.0).abs() < 1e-6);
        assert!(
            (p.frame(1e3, (HIGHEST, 0.0), 4.0 * INTERVAL, false, ms(166)) - 25_600.0).abs() < 1e-6,
            "twice after four intervals"
        );
        assert!((p.frame(1e3, (HIGHEST, 0.0), INTERVAL, true, ms(200)) - 51_200.0).abs() < 1e-6);
        p.steps = 2;
        assert!((p.frame(1e3, (HIGHEST, 0.0), INTERVAL, false, ms(233)) - 3_520.0).abs() < 1e-6);
    }

    #[test]
    fn a_full_bucket_lets_no_frame_be_worse_than_the_average() {
        let mut p = Picture::default();
        let most = 1.0 / 0.6;
        (0..150).for_each(|k| _ = p.frame(74_320.0, (HIGHEST, 0.0), INTERVAL, false, ms(k * 33)));
        assert_eq!(p.limit(1.0, most), HIGHEST, "too few frames");
        p.frame(74_320.0, (HIGHEST, 0.0), INTERVAL, false, ms(5_000));
        let found = [most, 4.0 / 3.0, 1.0, 0.625, 0.25, -1.0].map(|fill| p.limit(fill, most));
        for (found, expected) in found.iter().zip([45.0, 52.5, 60.0, 83.0, 106.0, 106.0]) {
            assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        }
        // A frame for which the rate control has less is as large as at this quantiser.
        let bits = p.frame(10e3, (60.0, 0.0), INTERVAL, false, ms(5_033));
        assert!((bits - 74_320.0).abs() < 1e-6, "{bits}");
    }

    #[test]
    fn sizes_and_quantisers_are_inverse() {
        for table in SIZES {
            for q in [30.0, 50.0, 62.0, 77.0, 106.0] {
                assert!((quantiser_of(table, size_at(table, q)) - q).abs() < 1e-9, "{q}");
            }
            assert_eq!(quantiser_of(table, 1e9), LOWEST);
            assert_eq!(quantiser_of(table, 1.0), HIGHEST);
        }
    }

    #[test]
    fn pictures_get_smaller_with_a_high_quantiser_and_larger_with_a_low_one() {
        let mut p = Picture::default();
        assert_eq!(resized(&mut p, 83e3, 0, 9_000), None, "2.5 Mbit/s");
        // The mean needs 3.1 s from 57 to 96 of 106; checks are at even seconds.
        assert_eq!(resized(&mut p, 8e3, 9_000, 30_000), Some(14_000));
        assert_eq!(p.steps, 1);
        assert_eq!(resized(&mut p, 1e3, 14_000, 30_000), Some(19_000), "5 s after the first");
        assert_eq!(resized(&mut p, 1e3, 19_000, 60_000), None, "no third step");
        assert_eq!(p.steps, 2);
        let larger = resized(&mut p, 83e3, 60_000, 120_000);
        assert!(larger.is_some() && p.steps == 1, "{larger:?}");
    }

    #[test]
    fn dropped_frames_make_pictures_smaller_too() {
        let mut p = Picture::default();
        let mut at = None;
        for k in 0..150 {
            let now = ms(k * 100 / 3);
            if p.resize(now) {
                at = Some(k);
                break;
            }
            if k % 3 == 0 { _ = p.frame(83e3, (HIGHEST, 0.0), 3.0 * INTERVAL, false, now) } else { p.drop_frame() }
        }
        assert_eq!(at, Some(60), "two of three, after 2 s");
    }
}
