//! The rate control of libvpx's VP8 in one pass at a constant rate, as libwebrtc sets it (libvpx `vp8/encoder/ratectrl.c`:
//! `calc_iframe_target_size`, `calc_pframe_target_size`; libwebrtc's branch 7871 of June 2026: `libvpx_vp8_encoder.cc`).
//!
//! A bucket of bits fills at the target rate and each frame takes its size from it. While it has less than its optimum, frames are smaller, by a
//! half if it is empty. The optimum is a share of the target, so that after a rise frames begin at some half of the new target and reach
//! it in about two seconds; after a fall they have the lower one at once.
//!
//! Differences from libvpx: frames have exactly the size that is meant for them, none is dropped, and golden frames have no boost.

/// Seconds of the target rate in the bucket: at the start, at its optimum, at most (`rc_buf_initial_sz`, `rc_buf_optimal_sz`, `rc_buf_sz`).
const INITIAL: f64 = 0.5;
const OPTIMAL: f64 = 0.6;
const MOST: f64 = 1.0;
/// Greatest lack and excess of the bucket that counts, as shares of its optimum (`rc_undershoot_pct`, `rc_overshoot_pct`), and how much of it a
/// frame is smaller or larger.
const LACK: f64 = 1.0;
const EXCESS: f64 = 0.15;
const PART: f64 = 0.5;
/// The first key frame as a share of the initial bucket, and later ones in frames: 1 + (2 fps - 16) / 16 at 30 frames a second.
const FIRST_KEY: f64 = 0.5;
const KEY: f64 = 3.75;
/// Greatest key frame in seconds of the target rate (`MaxIntraTarget`: 9 frames at 30 a second).
const LARGEST_KEY: f64 = 0.3;

/// The bucket; empty before the first frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vp8Buffer {
    bits: Option<f64>,
}

impl Vp8Buffer {
    /// Bits of the next frame at a target of `rate` bit/s, which lasts for `interval` seconds.
    pub(crate) fn frame(&mut self, rate: f64, interval: f64, is_key: bool) -> f64 {
        let (share, optimal) = (rate * interval, rate * OPTIMAL);
        let is_first = self.bits.is_none();
        let level = self.bits.unwrap_or(rate * INITIAL).min(rate * MOST);
        let lack = (optimal - level) / optimal.max(1.0);
        let size = match (is_key, is_first) {
            (true, true) => (rate * INITIAL * FIRST_KEY).min(rate * LARGEST_KEY),
            (true, false) => (share * KEY).min(rate * LARGEST_KEY),
            _ => share * (1.0 - PART * lack.clamp(-EXCESS, LACK)),
        };
        self.bits = Some((level + share - size).min(rate * MOST));
        size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: f64 = 1.0 / 30.0;

    #[test]
    fn the_first_picture_takes_a_quarter_of_a_second_and_the_next_ones_make_up_for_it() {
        let mut b = Vp8Buffer::default();
        assert_eq!(b.frame(300e3, FRAME, true), 75e3);
        // 85,000 bits of 180,000: a half of what lacks, 26 %.
        let next = b.frame(300e3, FRAME, false);
        assert!((next - 10e3 * (1.0 - 0.5 * 95.0 / 180.0)).abs() < 1e-6, "{next}");
        let sum: f64 = (0..300).map(|_| b.frame(300e3, FRAME, false)).sum();
        assert!((sum - 3_000e3 + 95e3).abs() < 5e3, "{sum}: the bucket is at its optimum");
    }

    #[test]
    fn a_higher_target_is_reached_in_two_seconds_and_a_lower_one_at_once() {
        let mut b = Vp8Buffer::default();
        (0..300).for_each(|i| _ = b.frame(300e3, FRAME, i == 0));
        // Of an optimum of 1,500,000 bits there are 180,000: 44 % less. Means over seconds.
        let mut second = || (0..30).map(|_| b.frame(2_500e3, FRAME, false)).sum::<f64>() / 2_500e3;
        let seconds = [second(), second(), second()];
        for (found, expected) in seconds.iter().zip([0.70, 0.87, 0.94]) {
            assert!((found - expected).abs() < 0.02, "{seconds:?}");
        }
        (0..300).for_each(|_| _ = b.frame(2_500e3, FRAME, false));
        // More than fits the smaller bucket is lost: 15 % above the optimum count, by a half.
        assert!((b.frame(500e3, FRAME, false) - 500e3 * FRAME * 1.075).abs() < 1e-6);
    }

    #[test]
    fn key_frames_on_request_are_a_few_frames_and_no_rate_is_no_bits() {
        let mut b = Vp8Buffer::default();
        b.frame(300e3, FRAME, true);
        assert_eq!(b.frame(300e3, FRAME, true), 37.5e3);
        assert_eq!(b.frame(0.0, FRAME, true), 0.0);
        assert_eq!(b.frame(0.0, FRAME, false), 0.0);
        assert!(b.frame(300e3, FRAME, false) >= 5e3, "half of it from an empty bucket");
    }
}
