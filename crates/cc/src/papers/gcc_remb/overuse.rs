//! The over-use detector and its adaptive threshold (section 5.4).

use super::config::Config;
use crate::parts::receiver_estimate::OveruseSignal;
use weir_units::{TimeDelta, Timestamp};

/// Upper bound of the interval in one adaptation of the threshold (libwebrtc: 100 ms).
const LONGEST_ADAPTATION: TimeDelta = TimeDelta::from_millis(100);

/// Compares the filtered delay variation with an adaptive threshold.
#[derive(Clone, Debug)]
pub(super) struct OveruseDetector {
    /// del_var_th in ms.
    threshold: f64,
    previous: f64,
    updated: Option<Timestamp>,
    above_since: Option<Timestamp>,
    signal: OveruseSignal,
}

impl OveruseDetector {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            threshold: config.initial_threshold.as_millis_f64(),
            previous: 0.0,
            updated: None,
            above_since: None,
            signal: OveruseSignal::Normal,
        }
    }

    pub(super) fn signal(&self) -> OveruseSignal {
        self.signal
    }
    /// del_var_th(i) in ms.
    pub(super) fn threshold(&self) -> f64 {
        self.threshold
    }

    /// Takes the offset in ms after the group that arrived by `now`.
    pub(super) fn update(&mut self, offset: f64, now: Timestamp, config: &Config) {
        if offset > self.threshold {
            let since = *self.above_since.get_or_insert(now);
            if now - since >= config.overuse_time && offset >= self.previous {
                self.signal = OveruseSignal::Overuse;
            }
        } else {
            self.above_since = None;
            self.signal = if offset < -self.threshold { OveruseSignal::Underuse } else { OveruseSignal::Normal };
        }
        self.previous = offset;
        self.adapt(offset.abs(), now, config);
    }

    fn adapt(&mut self, size: f64, now: Timestamp, config: &Config) {
        let passed = self.updated.replace(now).map_or(TimeDelta::ZERO, |t| now.saturating_since(t));
        if size - self.threshold > config.adapt_limit.as_millis_f64() {
            return;
        }
        let k = if size < self.threshold { config.k_down } else { config.k_up };
        let passed = passed.min(LONGEST_ADAPTATION).as_millis_f64();
        let (least, most) = (config.min_threshold.as_millis_f64(), config.max_threshold.as_millis_f64());
        self.threshold = (self.threshold + passed * k * (size - self.threshold)).min(most).max(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }
    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn adapts_the_threshold_by_k_up_and_k_down() {
        let c = Config::default();
        let mut d = OveruseDetector::new(&c);
        d.update(0.0, at(0), &c);
        assert!(near(d.threshold(), 12.5));
        // 20 ms * 0.01 * (22.5 - 12.5) = 2.
        d.update(22.5, at(20), &c);
        assert!(near(d.threshold(), 14.5));
        // 50 ms * 0.00018 * (4.5 - 14.5) = -0.09; the sign does not matter.
        d.update(-4.5, at(70), &c);
        assert!(near(d.threshold(), 14.41));
        // More than 15 ms above the threshold: no adaptation.
        d.update(29.42, at(80), &c);
        assert!(near(d.threshold(), 14.41));
        // A pause counts as 100 ms.
        d.update(4.41, at(100_000), &c);
        assert!(near(d.threshold(), 14.23));
        (0..100_000).for_each(|k| d.update(0.0, at(200_000 + 100 * k), &c));
        assert!(near(d.threshold(), 6.0));
    }

    #[test]
    fn signals_over_use_that_lasts_and_does_not_fall() {
        let c = Config { k_up: 0.0, k_down: 0.0, ..Config::default() };
        let run = |offsets: &[f64]| {
            let mut d = OveruseDetector::new(&c);
            let one = |(k, &o): (usize, &f64)| {
                d.update(o, at(5 * k as i64), &c);
                d.signal()
            };
            offsets.iter().enumerate().map(one).collect::<Vec<_>>()
        };
        use OveruseSignal::{Normal, Overuse, Underuse};
        assert_eq!(run(&[13.0, 13.0, 13.0, 12.0]), [Normal, Normal, Overuse, Normal]);
        assert_eq!(run(&[13.0, 15.0, 14.0, 14.0]), [Normal, Normal, Normal, Overuse]);
        assert_eq!(run(&[13.0, 12.0, 13.0, 13.0]), [Normal; 4]);
        assert_eq!(run(&[-12.0, -13.0, -12.0]), [Normal, Underuse, Normal]);
    }
}
