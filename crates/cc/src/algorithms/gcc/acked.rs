//! Acknowledged bitrate: the arrival rate of packets, from feedback, by one of two estimators.
//!
//! [`RobustThroughput`] has a file of its own. The other is a Bayesian filter over the rates of short windows; the
//! further a sample lies from the estimate, the less its weight (libwebrtc until 2023: `BitrateEstimator`). The draft
//! has a plain window of 0.5 to 1 s (draft-ietf-rmcat-gcc-02, section 5.5); libwebrtc is followed.

use super::config::Config;
use super::robust::RobustThroughput;
use weir_units::{DataRate, DataSize, RemoteTimestamp, TimeDelta, Timestamp};

/// Uncertainty of a sample at a relative distance of 1 from the estimate, in kbit/s.
const UNCERTAINTY: f64 = 10.0;
/// Variance before the first update, in (kbit/s)^2.
const INITIAL_VARIANCE: f64 = 50.0;
/// Variance added with each sample, since the rate changes over time.
const PROCESS_VARIANCE: f64 = 5.0;
/// Variance added when a fast change is expected.
const FAST_CHANGE_VARIANCE: f64 = 200.0;

/// The acknowledged rate by the configured estimator.
#[derive(Clone, Debug)]
pub(super) enum Acknowledged {
    Robust(RobustThroughput),
    Filtered(AckedRate),
}

impl Acknowledged {
    pub(super) fn new(config: &Config) -> Self {
        if config.robust_throughput {
            Self::Robust(RobustThroughput::default())
        } else {
            Self::Filtered(AckedRate::new(config.acked_first_window, config.acked_window))
        }
    }
    /// Takes a packet, in the order of arrival.
    pub(super) fn on_packet(&mut self, departure: Timestamp, arrival: RemoteTimestamp, size: DataSize) {
        match self {
            Self::Robust(e) => e.on_packet(departure, arrival, size),
            Self::Filtered(e) => e.on_packet(arrival, size),
        }
    }
    /// The packets of a feedback message are complete.
    pub(super) fn update(&mut self) {
        if let Self::Robust(e) = self {
            e.update();
        }
    }
    /// The estimate, once there are enough packets.
    pub(super) fn rate(&self) -> Option<DataRate> {
        match self {
            Self::Robust(e) => e.rate(),
            Self::Filtered(e) => e.rate(),
        }
    }
    /// Expects the next samples to lie far from the estimate.
    pub(super) fn expect_change(&mut self) {
        if let Self::Filtered(e) = self {
            e.expect_change();
        }
    }
}

/// Estimates the arrival rate. The kernel computes in kbit/s and ms.
#[derive(Clone, Debug)]
pub(super) struct AckedRate {
    first_window: TimeDelta,
    window: TimeDelta,
    size: DataSize,
    /// Duration of the current window.
    elapsed: TimeDelta,
    last: Option<RemoteTimestamp>,
    estimate: Option<f64>,
    variance: f64,
}

impl AckedRate {
    pub(super) fn new(first_window: TimeDelta, window: TimeDelta) -> Self {
        Self {
            first_window,
            window,
            size: DataSize::ZERO,
            elapsed: TimeDelta::ZERO,
            last: None,
            estimate: None,
            variance: INITIAL_VARIANCE,
        }
    }

    /// The estimate, once the first window has passed.
    pub(super) fn rate(&self) -> Option<DataRate> {
        self.estimate.map(|kbps| DataRate::from_bps_f64(kbps * 1e3))
    }

    /// Expects the next samples to lie far from the estimate.
    pub(super) fn expect_change(&mut self) {
        self.variance += FAST_CHANGE_VARIANCE;
    }

    /// Takes a packet, in the order of arrival.
    pub(super) fn on_packet(&mut self, arrival: RemoteTimestamp, size: DataSize) {
        let window = if self.estimate.is_none() { self.first_window } else { self.window };
        if let Some(sample) = self.advance(arrival, size, window) {
            self.update(sample);
        }
    }

    fn advance(&mut self, arrival: RemoteTimestamp, size: DataSize, window: TimeDelta) -> Option<f64> {
        match self.last {
            Some(last) if arrival < last => {
                // Time has gone back: a new clock or a reordered packet.
                self.size = DataSize::ZERO;
                self.elapsed = TimeDelta::ZERO;
            }
            Some(last) => {
                let gap = arrival - last;
                self.elapsed += gap;
                if gap > window {
                    self.size = DataSize::ZERO;
                    self.elapsed = TimeDelta::from_nanos(self.elapsed.as_nanos() % window.as_nanos().max(1));
                }
            }
            None => {}
        }
        self.last = Some(arrival);
        let mut sample = None;
        if self.elapsed >= window {
            sample = Some(self.size.as_bits() as f64 / window.as_millis_f64());
            self.elapsed -= window;
            self.size = DataSize::ZERO;
        }
        self.size += size;
        sample
    }

    fn update(&mut self, sample: f64) {
        let Some(estimate) = self.estimate else {
            self.estimate = Some(sample);
            return;
        };
        let distance = if estimate > 0.0 { (estimate - sample).abs() / estimate } else { 1.0 };
        let sample_variance = (UNCERTAINTY * distance) * (UNCERTAINTY * distance);
        let variance = self.variance + PROCESS_VARIANCE;
        let total = sample_variance + variance;
        self.estimate = Some((sample_variance * estimate + variance * sample) / total);
        self.variance = sample_variance * variance / total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimator() -> AckedRate {
        AckedRate::new(TimeDelta::from_millis(500), TimeDelta::from_millis(150))
    }
    /// Packets of 1,250 bytes every 10 ms make 1 Mbit/s.
    fn run(e: &mut AckedRate, from_ms: i64, to_ms: i64, bytes: u64) {
        let mut t = from_ms;
        while t < to_ms {
            e.on_packet(RemoteTimestamp::from_millis(t), DataSize::from_bytes(bytes));
            t += 10;
        }
    }

    #[test]
    fn the_first_window_gives_the_first_estimate() {
        let mut e = estimator();
        run(&mut e, 0, 500, 1_250);
        assert_eq!(e.rate(), None);
        run(&mut e, 500, 510, 1_250);
        // 50 packets of 10,000 bits in 500 ms.
        assert_eq!(e.rate(), Some(DataRate::from_mbps(1)));
    }

    #[test]
    fn one_update_is_the_weighed_mean() {
        let mut e = estimator();
        run(&mut e, 0, 510, 1_250);
        run(&mut e, 510, 660, 625);
        // The window from 500 to 650 ms holds one packet of 1,250 and fourteen of 625 bytes: 533.3 kbit/s,
        // 0.4667 away; variance of the sample 21.78, of the prediction 55.
        let (sample, vs, vp) = (533.333_333, 4.666_667f64 * 4.666_667, 55.0);
        let want = (vs * 1_000.0 + vp * sample) / (vs + vp);
        let got = e.rate().expect("estimated").as_kbps_f64();
        assert!((got - want).abs() < 0.01, "{got} {want}");
    }

    #[test]
    fn follows_a_change_faster_where_it_is_expected() {
        let (mut a, mut b) = (estimator(), estimator());
        run(&mut a, 0, 4_950, 1_250);
        run(&mut b, 0, 4_950, 1_250);
        b.expect_change();
        run(&mut a, 4_950, 5_160, 2_500);
        run(&mut b, 4_950, 5_160, 2_500);
        let (a, b) = (a.rate().expect("set").as_kbps_f64(), b.rate().expect("set").as_kbps_f64());
        assert!(a > 1_000.0 && a < 1_300.0, "{a}");
        assert!(b > 1_500.0 && b < 2_000.0, "{b}");
    }

    #[test]
    fn silence_and_time_that_goes_back_hardly_move_the_estimate() {
        let mut e = estimator();
        run(&mut e, 0, 1_000, 1_250);
        // The contents of a window before the pause are dropped, so the next sample may cover part of a window only.
        run(&mut e, 9_000, 9_100, 1_250);
        run(&mut e, 100, 200, 1_250);
        let got = e.rate().expect("set").as_kbps_f64();
        assert!((900.0..=1_000.0).contains(&got), "{got}");
        run(&mut e, 200, 20_000, 125);
        let got = e.rate().expect("set").as_kbps_f64();
        assert!((95.0..105.0).contains(&got), "{got}");
    }
}
