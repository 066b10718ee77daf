//! Bottlenecks at random.

use crate::scenario::Scenario;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_path::{Capacity, Limit, Loss, Schedule, Step};
use weir_units::{DataRate, TimeDelta};

/// Changes of capacity in a call at most: memory is bounded.
const MOST_STEPS: usize = 100_000;

/// Ranges from which each call's bottleneck is drawn. What has no range stays as the scenario has it.
#[derive(Clone, PartialEq, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkRanges {
    /// Capacity in bit/s, uniform on a logarithmic scale; at least 1 kbit/s.
    pub rate_bps: Option<(f64, f64)>,
    /// Time between changes of the capacity in s, uniform, at least 0.1; it stays as drawn if absent.
    pub change_s: Option<(f64, f64)>,
    /// One-way propagation delay in ms, uniform, the same in both directions.
    pub delay_ms: Option<(f64, f64)>,
    /// Limit of the queue in ms at the current capacity, uniform; at least 1.
    pub queue_ms: Option<(f64, f64)>,
    /// Share of packets lost at random, uniform, below 1.
    pub loss: Option<(f64, f64)>,
}

/// A range that cannot be drawn from.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{field}: ({low}, {high}): expected two numbers in order, from {least} to {most}")]
pub struct RangeError {
    field: &'static str,
    low: f64,
    high: f64,
    least: f64,
    most: f64,
}

impl LinkRanges {
    /// Checks all ranges. Errors: one is not in order or out of bounds.
    pub fn check(&self) -> Result<(), RangeError> {
        let all = [
            ("rate_bps", self.rate_bps, 1e3, 1e11),
            ("change_s", self.change_s, 0.1, 1e6),
            ("delay_ms", self.delay_ms, 0.0, 1e5),
            ("queue_ms", self.queue_ms, 1.0, 1e6),
            ("loss", self.loss, 0.0, 0.999),
        ];
        for (field, range, least, most) in all {
            let Some((low, high)) = range else { continue };
            if !(least <= low && low <= high && high <= most) {
                return Err(RangeError { field, low, high, least, most });
            }
        }
        Ok(())
    }

    /// Draws the bottleneck of a scenario, and the delay of the link back.
    pub fn apply(&self, scenario: &mut Scenario, seed: u64) {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut draw = |range: (f64, f64)| range.0 + (range.1 - range.0) * random.random::<f64>();
        let back = scenario.reverse_of(scenario.bottleneck);
        // Each range takes its draws whatever the others are.
        let delay = self.delay_ms.map(&mut draw);
        let queue = self.queue_ms.map(&mut draw);
        let loss = self.loss.map(&mut draw);
        let capacity = self.rate_bps.map(|(low, high)| {
            let rate = |draw: &mut dyn FnMut((f64, f64)) -> f64| {
                DataRate::from_bps_f64(libm::exp(draw((libm::log(low), libm::log(high)))))
            };
            let Some(change) = self.change_s else { return Capacity::Constant(rate(&mut draw)) };
            let (mut at, mut steps) = (TimeDelta::ZERO, Vec::new());
            while at < scenario.duration && steps.len() < MOST_STEPS {
                steps.push(Step { at, rate: rate(&mut draw) });
                at += TimeDelta::from_secs_f64(draw(change));
            }
            Schedule::new(steps, None).map_or(Capacity::Constant(rate(&mut draw)), Capacity::Schedule)
        });
        if let Some(link) = back.and_then(|b| scenario.links.get_mut(b)) {
            link.config.delay = delay.map_or(link.config.delay, TimeDelta::from_millis_f64);
        }
        let bottleneck = scenario.bottleneck;
        let Some(link) = scenario.links.get_mut(bottleneck).map(|l| &mut l.config) else { return };
        link.delay = delay.map_or(link.delay, TimeDelta::from_millis_f64);
        if let Some(queue) = queue {
            link.limit = Limit::Time(TimeDelta::from_millis_f64(queue));
        }
        if let Some(share) = loss {
            link.loss = Loss::Independent { share };
        }
        if let Some(capacity) = capacity {
            link.capacity = capacity;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::ScenarioFile;
    use weir_cc::Registry;
    use weir_units::Timestamp;

    #[test]
    fn draws_stay_in_their_ranges_and_follow_the_seed() {
        let registry = Registry::builtin();
        let file = ScenarioFile::builtin("examples/quick", &registry).expect("shipped");
        let base = file.scenario(None, Some("gcc"), &registry).expect("shipped");
        let ranges = LinkRanges {
            rate_bps: Some((100e3, 4e6)),
            change_s: Some((1.0, 3.0)),
            delay_ms: Some((5.0, 150.0)),
            queue_ms: Some((50.0, 400.0)),
            loss: Some((0.0, 0.05)),
        };
        assert_eq!(ranges.check(), Ok(()));
        let drawn = |seed| {
            let mut s = base.clone();
            ranges.apply(&mut s, seed);
            s
        };
        assert_eq!(drawn(7), drawn(7));
        let mut rates = Vec::new();
        for seed in 0..50 {
            let s = drawn(seed);
            let link = &s.links[s.bottleneck].config;
            assert!((5.0..=150.0).contains(&link.delay.as_millis_f64()));
            assert_eq!(Some(link.delay), s.reverse_of(s.bottleneck).map(|b| s.links[b].config.delay));
            let Loss::Independent { share } = link.loss else { panic!("no loss") };
            assert!((0.0..=0.05).contains(&share));
            rates.extend((0..10).map(|t| link.capacity.rate_at(Timestamp::from_secs(t)).as_bps_f64()));
        }
        assert!(rates.iter().all(|r| (100e3..=4e6).contains(r)));
        // On a logarithmic scale a half is below the geometric mean.
        let below = rates.iter().filter(|r| **r < 632_456.0).count() as f64 / rates.len() as f64;
        assert!((0.4..0.6).contains(&below), "{below}");
    }

    #[test]
    fn ranges_out_of_bounds_are_named() {
        let wrong = [
            LinkRanges { rate_bps: Some((2e6, 1e6)), ..LinkRanges::default() },
            LinkRanges { loss: Some((0.0, 1.0)), ..LinkRanges::default() },
            LinkRanges { change_s: Some((0.0, 1.0)), ..LinkRanges::default() },
            LinkRanges { delay_ms: Some((f64::NAN, 1.0)), ..LinkRanges::default() },
        ];
        for (ranges, field) in wrong.iter().zip(["rate_bps", "loss", "change_s", "delay_ms"]) {
            assert!(ranges.check().expect_err("wrong").to_string().contains(field));
        }
    }
}
