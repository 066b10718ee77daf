//! Overuse detector with an adaptive threshold (draft-ietf-rmcat-gcc-02, section 5.4).

use weir_units::{RemoteTimestamp, TimeDelta};

/// The slope is multiplied by the number of deltas seen, up to this (libwebrtc, as of 2024: `kMinNumDeltas`).
const FULL_WEIGHT: u32 = 60;
/// A trend further than this beyond the threshold, in ms, is a spike, to which the threshold does not adapt
/// (draft-ietf-rmcat-gcc-02, section 5.4).
const MAX_ADAPT_OFFSET: f64 = 15.0;
/// Range of the threshold in ms (draft-ietf-rmcat-gcc-02, section 5.4).
const THRESHOLD_RANGE: (f64, f64) = (6.0, 600.0);
/// Upper bound of the time between updates, in ms (libwebrtc, as of 2024: `kMaxTimeDeltaMs`).
const MAX_UPDATE_GAP: f64 = 100.0;

/// The state of the path by its delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Usage {
    Normal,
    Over,
    Under,
}

/// The constants of the detector.
#[derive(Clone, Copy, Debug)]
pub(super) struct DetectorConfig {
    pub(super) gain: f64,
    pub(super) k_up: f64,
    pub(super) k_down: f64,
    pub(super) initial_threshold: f64,
    pub(super) overuse_time: TimeDelta,
}

/// Compares the trend with the threshold and adapts the threshold.
#[derive(Clone, Debug)]
pub(super) struct Detector {
    config: DetectorConfig,
    threshold: f64,
    trend: f64,
    last_slope: f64,
    /// How long the trend has exceeded the threshold, by the sender's clock; `None` while it does not.
    over_for: Option<TimeDelta>,
    over_count: u32,
    last_update: Option<RemoteTimestamp>,
    usage: Usage,
}

impl Detector {
    pub(super) fn new(config: DetectorConfig) -> Self {
        Self {
            config,
            threshold: config.initial_threshold,
            trend: 0.0,
            last_slope: 0.0,
            over_for: None,
            over_count: 0,
            last_update: None,
            usage: Usage::Normal,
        }
    }

    pub(super) fn reset(&mut self) {
        *self = Self::new(self.config);
    }
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }
    /// The weighted slope in ms.
    pub(super) fn trend(&self) -> f64 {
        self.trend
    }
    /// The adaptive threshold in ms.
    pub(super) fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Takes the slope after `count` groups; the last group was sent `departure` after the one before.
    pub(super) fn update(&mut self, slope: f64, count: u32, departure: TimeDelta, arrival: RemoteTimestamp) {
        if count < 2 {
            return;
        }
        self.trend = f64::from(count.min(FULL_WEIGHT)) * slope * self.config.gain;
        if self.trend > self.threshold {
            // The first sample counts half: the trend crossed the threshold at some time since the previous one.
            let over_for = self.over_for.map_or(departure / 2, |t| t + departure);
            self.over_for = Some(over_for);
            self.over_count += 1;
            if over_for > self.config.overuse_time && self.over_count > 1 && slope >= self.last_slope {
                self.over_for = Some(TimeDelta::ZERO);
                self.over_count = 0;
                self.usage = Usage::Over;
            }
        } else {
            self.over_for = None;
            self.over_count = 0;
            self.usage = if self.trend < -self.threshold { Usage::Under } else { Usage::Normal };
        }
        self.last_slope = slope;
        self.adapt(arrival);
    }

    fn adapt(&mut self, arrival: RemoteTimestamp) {
        let last = self.last_update.replace(arrival).unwrap_or(arrival);
        let size = self.trend.abs();
        if size > self.threshold + MAX_ADAPT_OFFSET {
            return;
        }
        let k = if size < self.threshold { self.config.k_down } else { self.config.k_up };
        let gap = arrival.saturating_since(last).as_millis_f64().min(MAX_UPDATE_GAP);
        let (low, high) = THRESHOLD_RANGE;
        self.threshold = (self.threshold + k * (size - self.threshold) * gap).clamp(low, high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detector() -> Detector {
        Detector::new(DetectorConfig {
            gain: 4.0,
            k_up: 0.0087,
            k_down: 0.039,
            initial_threshold: 12.5,
            overuse_time: TimeDelta::from_millis(10),
        })
    }
    /// Updates 20 ms apart with full weight.
    fn feed(d: &mut Detector, slopes: &[f64]) -> Vec<Usage> {
        slopes
            .iter()
            .map(|&s| {
                let at = d.last_update.unwrap_or(RemoteTimestamp::ZERO) + TimeDelta::from_millis(20);
                d.update(s, 60, TimeDelta::from_millis(20), at);
                d.usage()
            })
            .collect()
    }

    #[test]
    fn overuse_needs_time_and_two_samples_that_do_not_fall() {
        // 240 * 0.1 = 24 > 12.5; half of 20 ms is not more than 10 ms, so the second sample signals overuse.
        assert_eq!(feed(&mut detector(), &[0.1, 0.1]), [Usage::Normal, Usage::Over]);
        // A falling trend is not yet overuse; once it rises again it is.
        assert_eq!(feed(&mut detector(), &[0.1, 0.09, 0.1]), [Usage::Normal, Usage::Normal, Usage::Over]);
    }

    #[test]
    fn underuse_and_normal_are_immediate() {
        assert_eq!(feed(&mut detector(), &[-0.1, 0.0, 0.04]), [Usage::Under, Usage::Normal, Usage::Normal]);
    }

    #[test]
    fn few_groups_weigh_less() {
        let mut d = detector();
        d.update(0.1, 30, TimeDelta::from_millis(20), RemoteTimestamp::ZERO);
        assert!((d.trend() - 12.0).abs() < 1e-12);
        d.update(0.5, 1, TimeDelta::from_millis(20), RemoteTimestamp::ZERO);
        assert!((d.trend() - 12.0).abs() < 1e-12, "one delta is no trend");
    }

    #[test]
    fn the_threshold_follows_its_equation() {
        let mut d = detector();
        feed(&mut d, &[0.0]);
        assert_eq!(d.threshold(), 12.5, "no time has passed at the first update");
        feed(&mut d, &[0.025]);
        // |m| = 6 < 12.5: 12.5 + 20 * 0.039 * (6 - 12.5) = 7.43.
        assert!((d.threshold() - 7.43).abs() < 1e-9, "{}", d.threshold());
        feed(&mut d, &[0.05]);
        // |m| = 12 > 7.43: 7.43 + 20 * 0.0087 * (12 - 7.43) = 8.22518.
        assert!((d.threshold() - 8.225_18).abs() < 1e-9, "{}", d.threshold());
        feed(&mut d, &[0.1]);
        assert!((d.threshold() - 8.225_18).abs() < 1e-9, "24 is more than 15 above: a spike");
        feed(&mut d, &[0.0; 50]);
        assert_eq!(d.threshold(), 6.0);
    }
}
