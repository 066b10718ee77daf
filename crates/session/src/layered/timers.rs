//! The two timers of a receiver of layers: when to try a layer, and when an experiment or a drop has had its effect.

use super::LayeredConfig;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_units::{TimeDelta, Timestamp};

/// Least expected time of detection: below it, a timer would be due at once. Own choice.
const LEAST_DETECTION: TimeDelta = TimeDelta::from_millis(100);

#[derive(Clone, Debug)]
pub(super) struct Timers {
    rng: Pcg64Mcg,
    gain: f64,
    /// Mean and deviation of the time from an experiment to its loss.
    mean: TimeDelta,
    deviation: TimeDelta,
    join: Option<Timestamp>,
    detection: Option<Timestamp>,
}

impl Timers {
    pub(super) fn new(config: &LayeredConfig) -> Self {
        Self {
            rng: Pcg64Mcg::seed_from_u64(config.seed),
            gain: config.gain,
            mean: config.detection,
            deviation: config.detection_deviation,
            join: None,
            detection: None,
        }
    }
    pub(super) fn next(&self) -> Option<Timestamp> {
        [self.join, self.detection].into_iter().flatten().min()
    }
    /// The expected time of detection with this many deviations.
    pub(super) fn detection(&self, deviations: f64) -> TimeDelta {
        (self.mean + self.deviation.mul_f64(deviations)).max(LEAST_DETECTION)
    }
    /// An experiment had its loss after this time.
    pub(super) fn on_detected(&mut self, after: TimeDelta) {
        let off = (after - self.mean).abs();
        self.mean = self.mean.mul_f64(1.0 - self.gain) + after.mul_f64(self.gain);
        self.deviation = self.deviation.mul_f64(1.0 - self.gain) + off.mul_f64(self.gain);
    }
    pub(super) fn start_detection(&mut self, deviations: f64, now: Timestamp) {
        self.detection = Some(now + self.detection(deviations));
    }
    pub(super) fn stop_detection(&mut self) {
        self.detection = None;
    }
    /// Half of the interval, and a uniform time with it as the mean, so that receivers do not try together. The authors draw an
    /// exponential one.
    pub(super) fn start_join(&mut self, interval: TimeDelta, now: Timestamp) {
        let unit: f64 = self.rng.random();
        self.join = Some(now + interval.mul_f64(0.5 + 2.0 * unit));
    }
    pub(super) fn stop_join(&mut self) {
        self.join = None;
    }
    pub(super) fn take_join(&mut self, now: Timestamp) -> bool {
        self.join.take_if(|at| *at <= now).is_some()
    }
    pub(super) fn take_detection(&mut self, now: Timestamp) -> bool {
        self.detection.take_if(|at| *at <= now).is_some()
    }
}
