//! One-pass rate control of an encoder that is opened again for each new bit rate: libav 0.8's, as mediastreamer2 used it
//! in the experiments of S. Jero, 2013.
//!
//! Described from the two programs, libav 0.8.4 (`libavcodec/ratecontrol.c`) and mediastreamer2 at the thesis's
//! commit 22f54d40 (`videoenc.c`, `videostarter.c`):
//! - The encoder gets 0.92 of the bit rate requested, less 15 kbit/s, quantisers from 2 to 31, and a tolerance of the bit
//!   rate over the frame rate less one: about one frame's bits.
//! - A frame is aimed at the mean bits of a frame, times the square root of its complexity over the mean since the
//!   opening, times one minus the excess sent so far over the tolerance. One frame's excess makes that nothing.
//! - The quantisers of I-frames and of P-frames each begin at 5 and change by at most 3 from frame to frame. P-frames use
//!   the mean of the quantisers so found, with weights that halve from frame to frame. An I-frame after a P-frame uses
//!   0.8 of that frame's quantiser, without a limit on the change.
//! - So the first I-frame has the quantiser 8 at any bit rate, and its excess drives the P-frames after it to 8, 10, 12,
//!   15, 18. Measured with libav at 1920x1080: a first I-frame of 68,691 bytes at 0.5, 2 and 4 Mbit/s alike, and these
//!   quantisers.
//! - An I-frame is forced 2 s and 4 s after an opening, for receivers that missed the first.
//!
//! libav predicts a frame's size from its variance with a predictor that learns; here the prediction is exact.

use weir_units::{TimeDelta, Timestamp};

/// The encoder's bit rate: this share of the rate requested, less this (bit/s).
const RATE_SHARE: f64 = 0.92;
const RATE_LESS: f64 = 15_000.0;
/// Least bit rate of the encoder, in bit/s; chosen here, for requests below 17 kbit/s.
const LEAST_RATE: f64 = 1_000.0;
/// Finest and coarsest quantiser.
const FINEST: f64 = 2.0;
const COARSEST: f64 = 31.0;
/// The quantiser of either kind before the first frame, and the greatest change per frame of that kind.
const FIRST: f64 = 5.0;
const GREATEST_CHANGE: f64 = 3.0;
/// An I-frame's quantiser over a P-frame's.
const I_FACTOR: f64 = 0.8;
/// Weight of the quantisers before against a P-frame's own (`qblur`).
const BLUR: f64 = 0.5;
/// Least factor by which an excess reduces a frame's bits.
const LEAST_COMPENSATION: f64 = 0.001;
/// Times of forced I-frames after an opening.
const FORCED: [TimeDelta; 2] = [TimeDelta::from_secs(2), TimeDelta::from_secs(4)];

/// The rate control since the last opening. Sizes in bits.
#[derive(Clone, Debug)]
pub(super) struct OnePass {
    /// Power of the quantiser by which sizes decrease.
    power: f64,
    frame_rate: f64,
    /// Mean size of a frame that the bit rate allows.
    per_frame: f64,
    opened: Timestamp,
    /// Forced I-frames coded.
    forced: usize,
    frames: u64,
    coded: f64,
    /// Sum of the square roots of all frames' complexity.
    roots: f64,
    /// The last quantiser of I-frames and of P-frames, before the mean.
    last_i: f64,
    last_p: f64,
    after_p: bool,
    /// Weighted sum of P-frames' quantisers, and the weights.
    blurred: (f64, f64),
}

impl OnePass {
    /// Not opened yet. `coarsest` is the share of a frame's size with the finest quantiser that the coarsest one leaves;
    /// sizes between them follow a power of the quantiser.
    pub(super) fn new(coarsest: f64, frame_interval: TimeDelta) -> Self {
        let power = -libm::log(coarsest.max(f64::MIN_POSITIVE)) / libm::log(COARSEST / FINEST);
        Self::opened(power, 1.0 / frame_interval.as_secs_f64(), LEAST_RATE, Timestamp::ZERO)
    }

    /// Opens the encoder at a requested rate in bit/s: nothing of the time before counts.
    pub(super) fn open(&mut self, requested_bps: f64, now: Timestamp) {
        let rate = (RATE_SHARE * requested_bps - RATE_LESS).max(LEAST_RATE);
        *self = Self::opened(self.power, self.frame_rate, rate, now);
    }

    fn opened(power: f64, frame_rate: f64, rate: f64, now: Timestamp) -> Self {
        Self {
            power,
            frame_rate,
            per_frame: rate / frame_rate,
            opened: now,
            forced: 0,
            frames: 0,
            coded: 0.0,
            roots: 0.0,
            last_i: FIRST,
            last_p: FIRST,
            after_p: false,
            blurred: (0.0, 0.0),
        }
    }

    /// Whether the frame at this time is to be a forced I-frame; asked once per frame.
    pub(super) fn takes_forced(&mut self, now: Timestamp) -> bool {
        let due = FORCED.get(self.forced).is_some_and(|&after| now - self.opened >= after);
        self.forced += usize::from(due);
        due
    }

    /// The size of the next frame that has this size with the finest quantiser, before its random deviation.
    pub(super) fn size(&mut self, finest: f64, is_i: bool) -> f64 {
        let wanted = self.wanted(finest);
        let quantiser = self.quantiser(finest, wanted, is_i);
        finest * self.share(libm::floor(quantiser + 0.5).clamp(FINEST, COARSEST))
    }

    /// A frame of this size was coded.
    pub(super) fn on_coded(&mut self, size: f64) {
        self.coded += size;
        self.frames += 1;
    }

    /// Size over that with the finest quantiser.
    fn share(&self, quantiser: f64) -> f64 {
        libm::pow(FINEST / quantiser, self.power)
    }

    /// The size aimed at.
    fn wanted(&mut self, finest: f64) -> f64 {
        let root = libm::sqrt(finest);
        let mean = if self.frames > 0 { self.roots / self.frames as f64 } else { root };
        self.roots += root;
        let tolerance = self.per_frame * self.frame_rate / (self.frame_rate - 1.0).max(1.0);
        let excess = self.coded - self.per_frame * self.frames as f64;
        self.per_frame * (root / mean) * (1.0 - excess / tolerance).max(LEAST_COMPENSATION)
    }

    fn quantiser(&mut self, finest: f64, wanted: f64, is_i: bool) -> f64 {
        // The quantiser that gives the size aimed at. At the first frame the bit rate has no effect yet, and only the limit
        // of the change decides.
        let exact = if self.frames == 0 { COARSEST } else { FINEST * libm::pow(finest / wanted, 1.0 / self.power) };
        let near = |last: f64, q: f64| q.clamp(last - GREATEST_CHANGE, last + GREATEST_CHANGE).max(1.0);
        if is_i {
            let by_p = std::mem::take(&mut self.after_p).then_some(I_FACTOR * self.last_p);
            self.last_i = by_p.unwrap_or_else(|| near(self.last_i, I_FACTOR * exact));
            return self.last_i;
        }
        self.after_p = true;
        self.last_p = near(self.last_p, exact);
        self.blurred = (self.blurred.0 * BLUR + self.last_p, self.blurred.1 * BLUR + 1.0);
        self.blurred.0 / self.blurred.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: TimeDelta = TimeDelta::from_millis(40);
    /// P-frames of 85 kB and I-frames of four times that with the finest quantiser: 17 Mbit/s.
    const P: f64 = 85_000.0 * 8.0;
    const I: f64 = 4.0 * P;

    fn open(mbps: f64) -> OnePass {
        let mut o = OnePass::new(0.05, FRAME);
        o.open(mbps * 1e6, Timestamp::ZERO);
        o
    }
    fn code(o: &mut OnePass, is_i: bool) -> f64 {
        let size = o.size(if is_i { I } else { P }, is_i);
        o.on_coded(size);
        size
    }
    /// The quantiser of a frame by its size.
    fn quantiser(o: &OnePass, size: f64, is_i: bool) -> f64 {
        FINEST * libm::pow(if is_i { I } else { P } / size, 1.0 / o.power)
    }

    #[test]
    fn quantisers_after_an_opening_are_those_measured_at_any_bit_rate() {
        for mbps in [0.5, 2.0, 4.0] {
            let mut o = open(mbps);
            let first = code(&mut o, true);
            // 340 kB x (2 / 8)^1.093, where 0.05 = (2 / 31)^1.093.
            assert!((first / 8.0 - 74_700.0).abs() < 300.0, "{first}");
            let after: Vec<f64> = (0..5).map(|_| code(&mut o, false)).collect();
            let after: Vec<f64> = after.into_iter().map(|s| quantiser(&o, s, false)).collect();
            for (q, measured) in after.iter().zip([8.0, 10.0, 12.0, 15.0, 17.5]) {
                assert!((q - measured).abs() < 0.51, "{after:?} at {mbps} Mbit/s");
            }
        }
    }

    #[test]
    fn the_excess_of_the_first_frame_is_compensated_and_then_the_rate_holds() {
        let mut o = open(4.0);
        // 0.92 x 4 Mbit/s - 15 kbit/s over 25 frames.
        assert!((o.per_frame - 146_600.0).abs() < 1.0, "{}", o.per_frame);
        code(&mut o, true);
        let sizes: Vec<f64> = (1..250).map(|_| code(&mut o, false)).collect();
        // The coarsest quantiser leaves 34 kbit of a P-frame.
        let least = sizes.iter().copied().fold(f64::INFINITY, f64::min);
        assert!((34_000.0..60_000.0).contains(&least), "{least}");
        assert!((o.coded / (250.0 * 146_600.0) - 1.0).abs() < 0.03, "{}", o.coded);
        let end: f64 = sizes[199..].iter().sum::<f64>() / 50.0;
        assert!((end / 146_600.0 - 1.0).abs() < 0.05, "{end}");
    }

    #[test]
    fn above_the_materials_need_frames_are_as_fine_as_they_can_be() {
        let mut o = open(100.0);
        code(&mut o, true);
        let sizes: Vec<f64> = (1..20).map(|_| code(&mut o, false)).collect();
        assert_eq!(sizes[10..], [P; 9]);
    }

    #[test]
    fn a_later_i_frame_follows_the_p_frame_before_it() {
        let mut o = open(2.0);
        code(&mut o, true);
        for _ in 0..30 {
            code(&mut o, false);
        }
        let before = o.last_p;
        let size = code(&mut o, true);
        // The limit of 31 holds for a frame's quantiser, not the last one: it rises on while there is an excess.
        assert!((quantiser(&o, size, true) - (0.8 * before).min(31.0)).abs() < 0.51, "{size} {before}");
        // Two in a row differ by at most three quantisers.
        let second = code(&mut o, true);
        assert!((quantiser(&o, second, true) - quantiser(&o, size, true)).abs() < 3.6, "{size} {second}");
    }

    #[test]
    fn i_frames_are_forced_two_and_four_seconds_after_each_opening() {
        let mut o = open(2.0);
        let mut forced = |from: i64, to: i64| -> Vec<i64> {
            (from..to).step_by(40).filter(|&ms| o.takes_forced(Timestamp::from_millis(ms))).collect()
        };
        assert_eq!(forced(0, 20_000), [2_000, 4_000]);
        o.open(3e6, Timestamp::from_millis(20_000));
        let mut forced = |from: i64, to: i64| -> Vec<i64> {
            (from..to).step_by(40).filter(|&ms| o.takes_forced(Timestamp::from_millis(ms))).collect()
        };
        assert_eq!(forced(20_000, 23_000), [22_000]);
        // Opened again before the second.
        o.open(2e6, Timestamp::from_millis(23_000));
        let at = |ms| Timestamp::from_millis(ms);
        assert!(!o.takes_forced(at(24_000)) && o.takes_forced(at(25_000)) && !o.takes_forced(at(25_040)));
    }

    #[test]
    fn extreme_inputs_stay_finite() {
        for (coarsest, mbps, finest) in [(0.0, 1e-6, 1.0), (1.0, 1e6, 1e9), (0.05, 0.0, 1e9), (0.05, 1e6, 1e-3)] {
            let mut o = OnePass::new(coarsest, TimeDelta::from_secs(10));
            o.open(mbps * 1e6, Timestamp::ZERO);
            for n in 0..100 {
                let size = o.size(finest, n % 7 == 0);
                assert!(size.is_finite() && (0.0..=finest).contains(&size), "{coarsest} {mbps} {finest}: {size}");
                o.on_coded(size);
            }
        }
    }
}
