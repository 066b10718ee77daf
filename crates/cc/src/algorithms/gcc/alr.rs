//! Detector of the application-limited region (ALR), in which the application sends well below the target.
//!
//! A budget fills at a share of the target rate and is spent by sent bytes (libwebrtc, as of 2024: `AlrDetector` over
//! an `IntervalBudget`).

use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Bounds of the budget, as time at its rate, in either direction (libwebrtc: `kWindowMs`).
const WINDOW_SECS: f64 = 0.5;
/// Upper bound of the time by which a pause fills the budget (libwebrtc: `kDeltaTimeMs`).
const MAX_PAUSE: TimeDelta = TimeDelta::from_secs(2);

/// The constants of the detector.
#[derive(Clone, Copy, Debug)]
pub(super) struct AlrConfig {
    pub(super) usage: f64,
    pub(super) start_level: f64,
    pub(super) stop_level: f64,
}

/// Detects since when the application has limited the rate.
#[derive(Clone, Debug)]
pub(super) struct AlrDetector {
    config: AlrConfig,
    /// Fill rate in bytes per second.
    rate: f64,
    /// Remaining budget in bytes, between minus and plus one window of the rate.
    budget: f64,
    last: Option<Timestamp>,
    since: Option<Timestamp>,
}

impl AlrDetector {
    pub(super) fn new(config: AlrConfig, target: DataRate) -> Self {
        let mut d = Self { config, rate: 0.0, budget: 0.0, last: None, since: None };
        d.set_target(target);
        d
    }

    pub(super) fn set_target(&mut self, target: DataRate) {
        self.rate = target.as_bps_f64() / 8.0 * self.config.usage;
        let most = WINDOW_SECS * self.rate;
        self.budget = self.budget.clamp(-most, most);
    }

    /// Start of the region, while in it.
    pub(super) fn since(&self) -> Option<Timestamp> {
        self.since
    }

    pub(super) fn on_sent(&mut self, size: DataSize, now: Timestamp) {
        let Some(last) = self.last.replace(now) else { return };
        let pause = now.saturating_since(last).min(MAX_PAUSE).as_secs_f64();
        let most = WINDOW_SECS * self.rate;
        // Comparisons, since `f64::max` looks for NaN too, with each packet.
        let spent = self.budget - size.as_bytes() as f64;
        let spent = if spent < -most { -most } else { spent };
        let filled = spent + pause * self.rate;
        self.budget = if filled > most { most } else { filled };
        if self.since.is_none() && self.budget > self.config.start_level * most {
            self.since = Some(now);
        } else if self.since.is_some() && self.budget < self.config.stop_level * most {
            self.since = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detector() -> AlrDetector {
        AlrDetector::new(AlrConfig { usage: 0.65, start_level: 0.8, stop_level: 0.5 }, DataRate::from_mbps(1))
    }
    /// Packets every 10 ms; 1,250 bytes make 1 Mbit/s. Returns the start of the region.
    fn send(d: &mut AlrDetector, from_ms: i64, to_ms: i64, bytes: u64) -> Option<i64> {
        for t in (from_ms..to_ms).step_by(10) {
            d.on_sent(DataSize::from_bytes(bytes), Timestamp::from_millis(t));
        }
        d.since().map(Timestamp::as_millis)
    }

    #[test]
    fn starts_when_the_budget_is_four_fifths_full() {
        // Fills at 650 - 250 = 400 kbit/s; 0.8 * 0.5 s * 650 kbit/s = 260 kbit: after 650 ms.
        let mut d = detector();
        let t = send(&mut d, 0, 2_000, 312).expect("limited");
        assert!((640..=660).contains(&t), "{t}");
        // Drains at 350 kbit/s from the full 325 kbit to below half of it: after about 464 ms.
        assert!(send(&mut d, 2_000, 2_450, 1_250).is_some());
        assert_eq!(send(&mut d, 2_450, 2_500, 1_250), None);
    }

    #[test]
    fn seventy_percent_of_the_target_is_not_limited() {
        assert_eq!(send(&mut detector(), 0, 20_000, 875), None);
    }
}
