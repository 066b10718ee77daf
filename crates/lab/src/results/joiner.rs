//! Runs of one scenario joined one by one.

use super::{Aggregate, FlowAggregate, FlowSummary, RunResult, Stat, student_t_975};
use std::collections::BTreeMap;

/// Mean and spread of values that are not kept (Welford 1962).
#[derive(Clone, Copy, Debug)]
struct Moments {
    count: usize,
    mean: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Moments {
    const NONE: Self = Self { count: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY };

    fn add(&mut self, value: f64) {
        self.count += 1;
        let before = value - self.mean;
        self.mean += before / self.count as f64;
        self.squares += before * (value - self.mean);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn stat(&self) -> Stat {
        let n = self.count;
        let sigma = (n > 1).then(|| (self.squares / (n - 1) as f64).sqrt());
        let ci95 = sigma.map(|s| student_t_975(n - 1) * s / (n as f64).sqrt());
        Stat { mean: self.mean, sigma, ci95, min: self.min, max: self.max, runs: n }
    }
}

type ByName = BTreeMap<&'static str, Moments>;

fn add(to: &mut ByName, values: Vec<(&'static str, f64)>) {
    for (name, value) in values {
        to.entry(name).or_insert(Moments::NONE).add(value);
    }
}

fn stats(of: &ByName) -> BTreeMap<String, Stat> {
    of.iter().map(|(name, m)| ((*name).to_owned(), m.stat())).collect()
}

/// Joins runs that differ only by seed, as [`aggregate`](super::aggregate) does, but one by one: of each run the seed is
/// kept and nothing else. Means and deviations agree with those of `aggregate` to rounding.
#[derive(Clone, Debug, Default)]
pub struct Joiner {
    /// The first run's names, with no metrics.
    names: Option<Aggregate>,
    seeds: Vec<u64>,
    flows: Vec<ByName>,
    run: ByName,
}

impl Joiner {
    /// Adds a run. Flows are matched by their place in the run.
    pub fn add(&mut self, run: &RunResult) {
        if self.names.is_none() {
            let flow = |f: &FlowSummary| FlowAggregate {
                name: f.name.clone(),
                controller: f.controller.clone(),
                kind: f.kind,
                metrics: BTreeMap::new(),
            };
            self.flows.resize_with(run.flows.len(), ByName::default);
            self.names = Some(Aggregate {
                scenario: run.scenario.clone(),
                condition: run.condition.clone(),
                controller: run.controller.clone(),
                seeds: Vec::new(),
                flows: run.flows.iter().map(flow).collect(),
                metrics: BTreeMap::new(),
            });
        }
        self.seeds.push(run.seed);
        for (to, flow) in self.flows.iter_mut().zip(&run.flows) {
            add(to, flow.values());
        }
        add(&mut self.run, run.values());
    }

    /// Runs added.
    pub fn runs(&self) -> usize {
        self.seeds.len()
    }

    /// The statistics so far; `None` before the first run.
    pub fn aggregate(&self) -> Option<Aggregate> {
        let mut joined = self.names.clone()?;
        joined.seeds.clone_from(&self.seeds);
        for (flow, by_name) in joined.flows.iter_mut().zip(&self.flows) {
            flow.metrics = stats(by_name);
        }
        joined.metrics = stats(&self.run);
        Some(joined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_all_values() {
        // An offset far above the spread, where sums of squares would lose all digits.
        let values = [1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0];
        let mut m = Moments::NONE;
        values.iter().for_each(|v| m.add(*v));
        let (one_by_one, at_once) = (m.stat(), Stat::of(&values).expect("values"));
        assert_eq!((one_by_one.mean, one_by_one.min, one_by_one.max), (1e9 + 10.0, 1e9 + 4.0, 1e9 + 16.0));
        // 36 + 9 + 9 + 36 = 90 over three degrees of freedom.
        assert!((one_by_one.sigma.expect("several") - 30f64.sqrt()).abs() < 1e-9);
        assert!((one_by_one.ci95.expect("several") - at_once.ci95.expect("several")).abs() < 1e-9);
        let mut single = Moments::NONE;
        single.add(2.5);
        assert_eq!(Some(single.stat()), Stat::of(&[2.5]));
    }
}
