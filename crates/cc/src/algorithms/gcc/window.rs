//! Congestion window: how much may be in flight before the encoder is held back (libwebrtc's branch 7871 of June 2026:
//! `UpdateCongestionWindowSize`, `CongestionWindowPushbackController` and `VideoStreamEncoder::UpdateTargetBitrate`).
//!
//! The window is what the target sends in the least round-trip time and a time allowed for queues. While more is in
//! flight, libwebrtc drops every second frame, or fewer, before the encoder, and asks the encoder for so much less. Both
//! count: the encoder divides its rate by the frames that the camera makes, not by those that are left, so that with half
//! of the frames a quarter of the rate remains. Target, pacing and probing stay as they are. Here the encoder's rate is
//! reduced as much; which frames are left out is for a sender that does so.

use weir_units::{DataSize, TimeDelta};

/// Least window (`kMinCwnd`).
const LEAST: f64 = 3_000.0;
/// Feedback messages of which the least round-trip time counts (`kMaxFeedbackRttWindow`).
const RTTS: usize = 32;
/// Share of the window in flight above which the encoder's ratio falls quickly, falls, and below which it is 1; and the
/// factors of a step (`UpdateTargetBitrate`).
const FULL: (f64, f64) = (1.5, 0.9);
const ABOVE: (f64, f64) = (1.0, 0.95);
const EMPTY: f64 = 0.1;
const RISE: f64 = 1.05;
/// The pushed back rate is not below this in bit/s (`MinBitrate`), and the ratio is kept above what this needs.
const LEAST_RATE: f64 = 30e3;
const LEAST_RATIO: f64 = 1e-6;
/// Reductions up to this share have no effect.
const IGNORED: f64 = 0.01;

/// Relates the bytes in flight to the window.
#[derive(Clone, Debug)]
pub(super) struct CongestionWindow {
    /// Time allowed for queues; zero switches the window off.
    allowance: TimeDelta,
    /// Bytes; zero before the first round-trip time.
    window: f64,
    in_flight: f64,
    /// `encoding_rate_ratio_`.
    ratio: f64,
    rtts: [TimeDelta; RTTS],
    count: usize,
}

impl CongestionWindow {
    pub(super) fn new(allowance: TimeDelta) -> Self {
        Self { allowance, window: 0.0, in_flight: 0.0, ratio: 1.0, rtts: [TimeDelta::ZERO; RTTS], count: 0 }
    }

    /// Feedback on packets of which the oldest was sent `longest` ago, at this target in bit/s.
    pub(super) fn on_feedback(&mut self, longest: TimeDelta, in_flight: DataSize, target: f64) {
        if self.allowance <= TimeDelta::ZERO {
            return;
        }
        self.rtts[self.count % RTTS] = longest.max(TimeDelta::ZERO);
        self.count += 1;
        let least = self.rtts[..self.count.min(RTTS)].iter().copied().min().unwrap_or(TimeDelta::ZERO);
        let size = target / 8.0 * (least + self.allowance).as_secs_f64();
        self.window = if self.window > 0.0 { (size + self.window) / 2.0 } else { size }.max(LEAST);
        self.on_flight(in_flight);
    }

    /// Bytes in flight after a packet or feedback.
    #[inline]
    pub(super) fn on_flight(&mut self, in_flight: DataSize) {
        self.in_flight = in_flight.as_bytes() as f64;
        // The usual case: less than the window, and nothing to recover from.
        if self.window == 0.0 || self.ratio >= 1.0 && self.in_flight <= ABOVE.0 * self.window {
            return;
        }
        self.step();
    }

    #[cold]
    fn step(&mut self) {
        let fill = self.in_flight / self.window;
        let factor = match fill {
            f if f > FULL.0 => FULL.1,
            f if f > ABOVE.0 => ABOVE.1,
            f if f < EMPTY => 1.0 / self.ratio,
            _ => RISE,
        };
        self.ratio = (self.ratio * factor).clamp(LEAST_RATIO, 1.0);
    }

    /// Share of the target that is left to the encoder, whose least rate is `floor`. In bit/s.
    #[inline]
    pub(super) fn share(&self, target: f64, floor: f64) -> f64 {
        if self.ratio >= 1.0 { 1.0 } else { self.reduced_share(target, floor) }
    }

    #[cold]
    fn reduced_share(&self, target: f64, floor: f64) -> f64 {
        let interval = self.left_out(target, floor);
        // Of so many frames one is left out, and each of the others is smaller by the same share.
        let kept = 1.0 - if interval == 0 { 0.0 } else { 1.0 / f64::from(interval) };
        kept * kept
    }

    /// Of so many frames one is left out before the encoder, at most every second; zero for none. In bit/s.
    pub(super) fn left_out(&self, target: f64, floor: f64) -> u32 {
        if self.ratio >= 1.0 {
            return 0;
        }
        let pushed_back = if target * self.ratio < LEAST_RATE { target.min(LEAST_RATE) } else { target * self.ratio };
        let reduction = target - pushed_back.max(floor);
        if reduction <= IGNORED * target || target <= floor {
            return 0;
        }
        libm::floor(target / reduction.min(target - floor)).max(2.0) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: fn(u64) -> DataSize = DataSize::from_bytes;
    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    fn window() -> CongestionWindow {
        let mut w = CongestionWindow::new(MS(350));
        w.on_feedback(MS(150), BYTES(0), 800e3);
        w
    }

    #[test]
    fn the_window_is_the_rate_over_the_least_round_trip_and_the_allowance() {
        let mut w = window();
        assert_eq!(w.window, 50_000.0, "800 kbit/s for 500 ms");
        // A longer round trip changes nothing; half of the rate is averaged with the window before.
        w.on_feedback(MS(900), BYTES(0), 800e3);
        assert_eq!(w.window, 50_000.0);
        w.on_feedback(MS(900), BYTES(0), 400e3);
        assert_eq!(w.window, 37_500.0);
        // The shortest is forgotten after 32 messages.
        (0..60).for_each(|_| w.on_feedback(MS(650), BYTES(0), 800e3));
        assert!((w.window - 100_000.0).abs() < 1.0, "{}", w.window);
    }

    #[test]
    fn more_in_flight_leaves_the_encoder_a_quarter_at_least_and_it_recovers() {
        let mut w = window();
        w.on_flight(BYTES(50_000));
        assert_eq!(w.share(800e3, 50e3), 1.0, "full");
        w.on_flight(BYTES(50_001));
        // 5 % less drops each twentieth frame, and makes the others smaller by a twentieth.
        assert!((w.share(800e3, 50e3) - 0.95 * 0.95).abs() < 1e-12);
        (0..100).for_each(|_| w.on_flight(BYTES(80_000)));
        assert_eq!((w.share(800e3, 50e3), w.left_out(800e3, 50e3)), (0.25, 2));
        let one_of_80 = 1.0 - 1.0 / 80.0;
        assert_eq!(w.share(800e3, 790e3), one_of_80 * one_of_80, "one frame of 80 down to the floor");
        assert_eq!(w.share(800e3, 800e3), 1.0);
        w.on_flight(BYTES(20_000));
        assert_eq!(w.share(800e3, 50e3), 0.25, "a twentieth more of almost nothing");
        w.on_flight(BYTES(4_000));
        assert_eq!((w.share(800e3, 50e3), w.left_out(800e3, 50e3)), (1.0, 0), "below a tenth at once");
    }

    #[test]
    fn without_allowance_or_feedback_nothing_is_held_back() {
        for mut w in [CongestionWindow::new(TimeDelta::ZERO), CongestionWindow::new(MS(350))] {
            (0..10).for_each(|_| w.on_flight(BYTES(1_000_000)));
            assert_eq!(w.share(800e3, 50e3), 1.0);
        }
        let mut off = CongestionWindow::new(TimeDelta::ZERO);
        off.on_feedback(MS(150), BYTES(1_000_000), 800e3);
        assert_eq!(off.share(800e3, 50e3), 1.0);
    }
}
