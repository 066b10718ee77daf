//! Summary statistics of one flow (RFC 8382, sections 3.2 and 4).

use super::Config;
use std::collections::VecDeque;
use weir_units::TimeDelta;

/// A flow's summary statistics.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Summary {
    /// skew_est, -1 to 1: negative if most delays exceed their mean.
    pub skewness: f64,
    /// var_est: mean absolute deviation of the delay, seconds.
    pub variability: f64,
    /// freq_est, 0 to 1: significant crossings of the mean an interval.
    pub frequency: f64,
    /// pkt_loss, 0 to 1.
    pub loss: f64,
}

/// One base interval that is over.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    samples: u32,
    /// skew_base_T.
    skew_base: i64,
    /// var_base_T in seconds; `None` if the flow was not at a bottleneck (section 4.2).
    var_base: Option<f64>,
    /// E_T(OWD) in seconds, if there were samples.
    mean: Option<f64>,
    crossed: bool,
    lost: u64,
}

/// The side of the mean on which the last significant crossing ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    Above,
    Below,
}

#[derive(Clone, Debug)]
pub(super) struct Statistics {
    /// The newest first, at most N.
    intervals: VecDeque<Interval>,
    /// The current interval: samples, sum of delays, and the sums against the means before it.
    samples: u32,
    sum: f64,
    skew_base: i64,
    var_base: f64,
    lost: u64,
    /// mean_delay, without the current interval.
    mean_delay: Option<f64>,
    /// E_T(OWD) of the previous interval with samples.
    previous_mean: Option<f64>,
    side: Option<Side>,
    at_bottleneck: bool,
    summary: Summary,
}

impl Statistics {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            intervals: VecDeque::with_capacity(config.long as usize),
            samples: 0,
            sum: 0.0,
            skew_base: 0,
            var_base: 0.0,
            lost: 0,
            mean_delay: None,
            previous_mean: None,
            side: None,
            at_bottleneck: false,
            summary: Summary::default(),
        }
    }

    pub(super) const fn is_at_bottleneck(&self) -> bool {
        self.at_bottleneck
    }
    pub(super) const fn summary(&self) -> Summary {
        self.summary
    }

    pub(super) fn on_packet(&mut self, delay: TimeDelta) {
        let delay = delay.as_secs_f64();
        self.samples = self.samples.saturating_add(1);
        self.sum += delay;
        // Without a mean from before there is nothing to compare with.
        if let (Some(mean), Some(previous)) = (self.mean_delay, self.previous_mean) {
            self.skew_base += i64::from(delay < mean) - i64::from(delay > mean);
            self.var_base += (delay - previous).abs();
        }
    }
    pub(super) fn on_lost(&mut self, packets: u64) {
        self.lost = self.lost.saturating_add(packets);
    }

    pub(super) fn end_interval(&mut self, config: &Config) {
        let is_compared = self.mean_delay.is_some();
        let mean = (self.samples > 0).then(|| self.sum / f64::from(self.samples));
        self.intervals.truncate((config.long as usize).saturating_sub(1));
        self.intervals.push_front(Interval {
            samples: self.samples,
            skew_base: self.skew_base,
            var_base: None,
            mean,
            crossed: false,
            lost: self.lost,
        });
        let (samples, var_base) = (self.samples, self.var_base);
        (self.samples, self.sum, self.skew_base, self.var_base, self.lost) = (0, 0.0, 0, 0.0, 0);

        self.summary.loss = self.loss();
        self.summary.skewness = self.weighted(config, |i| Some((i.skew_base as f64, i.samples))).unwrap_or(0.0);
        if samples > 0 {
            let s = self.summary;
            // Section 3.3.1, step 1.
            self.at_bottleneck = is_compared
                && (s.skewness < config.c_s || (s.skewness < config.c_h && self.at_bottleneck) || s.loss > config.p_l);
        }
        if self.at_bottleneck && is_compared {
            self.intervals[0].var_base = (samples > 0).then_some(var_base);
        }
        self.summary.variability = self.weighted(config, |i| Some((i.var_base?, i.samples))).unwrap_or(0.0);
        if let (true, Some(mean), Some(mean_delay)) = (self.at_bottleneck, mean, self.mean_delay) {
            self.intervals[0].crossed = self.crosses(mean - mean_delay, config);
        }
        let crossings = self.intervals.iter().filter(|i| i.crossed).count();
        self.summary.frequency = crossings as f64 / f64::from(config.long);
        self.previous_mean = mean.or(self.previous_mean);
        self.mean_delay = self.mean_of_means(config);
    }

    /// Whether this deviation of an interval's mean crosses the long-term mean significantly (section 3.2.4).
    fn crosses(&mut self, deviation: f64, config: &Config) -> bool {
        let significant = config.p_v * self.summary.variability;
        let side = match deviation {
            d if d > significant => Side::Above,
            d if d < -significant => Side::Below,
            _ => return false,
        };
        self.side.replace(side).is_some_and(|before| before != side)
    }

    /// mean_delay (section 3.2.1).
    fn mean_of_means(&self, config: &Config) -> Option<f64> {
        let means = self.intervals.iter().take(config.short as usize).filter_map(|i| i.mean);
        let (sum, count) = means.fold((0.0, 0u32), |(sum, count), mean| (sum + mean, count + 1));
        (count > 0).then(|| sum / f64::from(count))
    }

    /// A sum over samples of the last M intervals, F of them with full weight and then less and less (section 4.1).
    /// Intervals without a value are left out of both sums.
    fn weighted(&self, config: &Config, value: impl Fn(&Interval) -> Option<(f64, u32)>) -> Option<f64> {
        let (m, f) = (config.short as usize, config.flat as usize);
        let (mut sum, mut samples) = (0.0, 0.0);
        for (age, interval) in self.intervals.iter().take(m).enumerate() {
            let weight = if age < f { m - f + 1 } else { m - age } as f64;
            if let Some((v, n)) = value(interval) {
                sum += weight * v;
                samples += weight * f64::from(n);
            }
        }
        (samples > 0.0).then(|| sum / samples)
    }

    /// Section 3.2.5.
    fn loss(&self) -> f64 {
        let (lost, all) = self.intervals.iter().fold((0u64, 0u64), |(lost, all), i| {
            (lost.saturating_add(i.lost), all.saturating_add(i.lost).saturating_add(i.samples.into()))
        });
        if all == 0 { 0.0 } else { lost as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config { long: 5, short: 4, flat: 2, ..Config::default() }
    }
    fn interval(s: &mut Statistics, delays: &[i64]) {
        delays.iter().for_each(|d| s.on_packet(TimeDelta::from_millis(*d)));
        s.end_interval(&config());
    }

    #[test]
    fn skewness_by_hand() {
        let mut s = Statistics::new(&config());
        // The first interval gives the mean, 10 ms, and nothing to compare with.
        interval(&mut s, &[10, 10]);
        assert_eq!(s.summary().skewness, 0.0);
        // Three below and one above the mean: 2 of 4; with weights 3 and 3 over 4 and 2 samples: 6 / 18.
        interval(&mut s, &[5, 5, 5, 25]);
        assert!((s.summary().skewness - 2.0 / 6.0).abs() < 1e-12);
        // The mean is (10 + 10) / 2. Four above: -4; the weights are 3, 3, 2 (M - F = 2 for the third).
        interval(&mut s, &[20, 20, 20, 20]);
        let expected = (3.0 * -4.0 + 3.0 * 2.0 + 0.0) / (3.0 * 4.0 + 3.0 * 4.0 + 2.0 * 2.0);
        assert!((s.summary().skewness - expected).abs() < 1e-12, "{}", s.summary().skewness);
    }

    #[test]
    fn variability_counts_against_the_interval_before_and_only_at_a_bottleneck() {
        let mut s = Statistics::new(&config());
        interval(&mut s, &[10, 10]);
        assert_eq!((s.summary().variability, s.is_at_bottleneck()), (0.0, false));
        // Above the mean of 10: skewness -1, so at a bottleneck. Deviations from 10: 10 and 20.
        interval(&mut s, &[20, 30]);
        assert!(s.is_at_bottleneck());
        assert!((s.summary().variability - 0.015).abs() < 1e-12);
        // Deviations from 25: 5, 5. Weights 3 and 3: (30 + 10) / 4.
        interval(&mut s, &[20, 30]);
        assert!((s.summary().variability - 0.010).abs() < 1e-12, "{}", s.summary().variability);
    }

    #[test]
    fn the_bottleneck_test_has_hysteresis_and_losses_suffice() {
        let mut s = Statistics::new(&config());
        interval(&mut s, &[10, 10]);
        interval(&mut s, &[1, 1, 1, 1]);
        assert!(!s.is_at_bottleneck(), "{:?}", s.summary());
        s.on_lost(2);
        interval(&mut s, &[1, 1]);
        assert!(s.is_at_bottleneck() && s.summary().loss == 0.2, "{:?}", s.summary());
    }

    #[test]
    fn crossings_alternate() {
        let mut s = Statistics::new(&config());
        interval(&mut s, &[100, 100]);
        for delay in [200, 200, 50, 300] {
            interval(&mut s, &[delay, delay, delay]);
        }
        // The significance threshold keeps the frequency between none and one in each of the intervals at a bottleneck.
        let crossed: Vec<bool> = s.intervals.iter().rev().map(|i| i.crossed).collect();
        assert!(!crossed[0] && !crossed[1] && !crossed[2], "{crossed:?}");
        assert_eq!(s.summary().frequency, crossed.iter().filter(|c| **c).count() as f64 / 5.0);
    }

    #[test]
    fn memory_is_n_intervals_and_empty_ones_change_no_estimate() {
        let mut s = Statistics::new(&config());
        for i in 0..40 {
            interval(&mut s, &[i % 7, 3, 9]);
        }
        assert_eq!(s.intervals.len(), 5);
        let before = s.is_at_bottleneck();
        for _ in 0..40 {
            interval(&mut s, &[]);
        }
        assert_eq!((s.is_at_bottleneck(), s.summary().loss, s.summary().skewness), (before, 0.0, 0.0));
    }
}
