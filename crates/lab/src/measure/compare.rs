//! Many scenarios, variants, controllers and seeds at once: planning, running, and the outcome.

use crate::measure::results::{Aggregate, RunResult, aggregate};
use crate::measure::run::{Job, RunError, RunOptions, run_many};
use crate::measure::scenario::{InputError, Scenario, ScenarioFile};
use serde::Serialize;
use weir_cc::Registry;

/// Maximum points of a run's time series, over all flows, kept by a comparison: about 200 MB.
const MAX_SERIES: i64 = 2_000_000;

/// One scenario and the seeds that it runs with.
#[derive(Clone, Debug)]
struct Group {
    scenario: Scenario,
    seeds: Vec<u64>,
}

impl Group {
    fn job(&self, seed: u64) -> Job {
        Job { scenario: self.scenario.clone(), seed }
    }
    /// Whether the time series of a run are small enough to be kept.
    fn keeps_series(&self) -> bool {
        let rows = self.scenario.duration.as_nanos() / self.scenario.sample_interval.as_nanos().max(1);
        rows.saturating_mul(self.scenario.flows.len() as i64) <= MAX_SERIES
    }
}

/// Everything to run, in the order of the tables.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    groups: Vec<Group>,
    texts: Vec<ScenarioText>,
}

/// A scenario's file as it was read, and the seeds that it is run with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioText {
    /// Its name.
    pub name: String,
    /// What names it on a command line: the name of a built-in one, or a path.
    pub argument: String,
    /// The file.
    pub text: String,
    /// Seeds, in the order of the runs.
    pub seeds: Vec<u64>,
}

/// How often and with which seeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeat {
    /// Runs of each scenario under each controller; at least one is made.
    pub runs: u32,
    /// Whether a scenario's own number of runs takes precedence.
    pub own: bool,
    /// Seed of the first run; that of the scenario if absent. Each further run has the next one.
    pub seed: Option<u64>,
}

impl Plan {
    /// Every variant of every file under every controller: those given, or those that the file compares. Errors: a
    /// controller that does not exist or cannot be configured as a file states.
    pub fn new(
        files: &[ScenarioFile],
        controllers: Option<&[String]>,
        repeat: Repeat,
        registry: &Registry,
    ) -> Result<Self, InputError> {
        let (mut groups, mut texts): (Vec<Group>, Vec<ScenarioText>) = Default::default();
        // A controller or a scenario named twice is run once.
        let controllers = controllers.map(|given| {
            let mut once: Vec<String> = Vec::new();
            given.iter().for_each(|c| {
                if !once.contains(c) {
                    once.push(c.clone())
                }
            });
            once
        });
        for file in files {
            for scenario in file.scenarios(controllers.as_deref(), registry)? {
                if groups.iter().any(|g| g.scenario == scenario) {
                    continue;
                }
                let first = repeat.seed.unwrap_or(scenario.seed);
                let runs = scenario.runs.filter(|_| repeat.own).unwrap_or(repeat.runs);
                let seeds: Vec<u64> = (0..u64::from(runs.max(1))).map(|i| first.wrapping_add(i)).collect();
                if !texts.iter().any(|t| t.name == scenario.name) {
                    texts.push(ScenarioText {
                        name: scenario.name.clone(),
                        argument: file.argument().into(),
                        text: file.text().into(),
                        seeds: seeds.clone(),
                    });
                }
                groups.push(Group { scenario, seeds });
            }
        }
        Ok(Self { groups, texts })
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.groups.iter().map(|g| g.seeds.len()).sum()
    }

    /// Makes all runs. If `options` requests series, the first seed of each scenario keeps them, unless there are too
    /// many; the other seeds keep none, so that memory does not grow with the number of runs.
    pub fn run(&self, threads: usize, options: &RunOptions<'_>) -> Outcome {
        let (mut first, mut others) = (Vec::new(), Vec::new());
        for g in &self.groups {
            let keep = g.keeps_series();
            for (i, seed) in g.seeds.iter().enumerate() {
                if i == 0 && keep { first.push(g.job(*seed)) } else { others.push(g.job(*seed)) }
            }
        }
        let share = first.len() as f64 / self.runs().max(1) as f64;
        let progress = |p: f64| (options.progress)(p * share);
        let mut first = run_many(&first, threads, &RunOptions { progress: &progress, ..*options }, &|_| {}).into_iter();
        let progress = |p: f64| (options.progress)(share + p * (1.0 - share));
        let quiet = RunOptions { series: false, progress: &progress, ..*options };
        let mut others = run_many(&others, threads, &quiet, &|_| {}).into_iter();

        let mut outcome = Outcome { texts: self.texts.clone(), ..Outcome::default() };
        for group in &self.groups {
            let mut runs = Vec::new();
            let own = usize::from(group.keeps_series());
            let results = first.by_ref().take(own).chain(others.by_ref().take(group.seeds.len() - own));
            for result in results {
                match result {
                    Ok(run) => runs.push(run),
                    Err(RunError::Stopped { .. }) => outcome.stopped = true,
                    Err(e) => outcome.failures.push(format!("{}: {e}", group.scenario.label())),
                }
            }
            outcome.groups.push((group.scenario.clone(), runs));
        }
        outcome
    }
}

/// The outcome of a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    groups: Vec<(Scenario, Vec<RunResult>)>,
    texts: Vec<ScenarioText>,
    /// Runs that failed, in words.
    pub failures: Vec<String>,
    /// Whether the stop flag interrupted runs; the finished ones are here.
    pub stopped: bool,
}

/// All runs as one JSON object.
#[derive(Serialize)]
pub struct OutcomeJson<'a> {
    /// Statistics over the seeds, one for each scenario, variant and controller.
    pub aggregates: Vec<Aggregate>,
    /// Every run.
    pub runs: Vec<&'a RunResult>,
}

impl Outcome {
    /// Of runs made elsewhere, by scenario.
    pub fn of(groups: Vec<(Scenario, Vec<RunResult>)>) -> Self {
        Self { groups, ..Self::default() }
    }

    /// Every run that finished, in order.
    pub fn runs(&self) -> impl Iterator<Item = &RunResult> {
        self.groups.iter().flat_map(|g| &g.1)
    }

    /// Scenarios with the statistics over their seeds; those without a finished run are omitted.
    pub fn aggregates(&self) -> impl Iterator<Item = (&Scenario, Aggregate)> {
        self.groups.iter().filter_map(|(scenario, runs)| Some((scenario, aggregate(runs)?)))
    }

    /// The file of a scenario by name, if the runs were planned from files.
    pub fn text_of(&self, scenario: &str) -> Option<&ScenarioText> {
        self.texts.iter().find(|t| t.name == scenario)
    }

    /// The object printed by `--json`.
    pub fn json(&self) -> OutcomeJson<'_> {
        OutcomeJson { aggregates: self.aggregates().map(|a| a.1).collect(), runs: self.runs().collect() }
    }

    /// Each scenario and its finished runs, in order.
    pub fn groups(&self) -> impl Iterator<Item = (&Scenario, &[RunResult])> {
        self.groups.iter().map(|(scenario, runs)| (scenario, runs.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    const TEXT: &str = r#"
        title = "Small"
        duration = "2 s"
        compare = ["fixed", "nada"]
        links.bottleneck = { rate = "1 Mbps", delay = "20 ms", loss = 0.02 }
        rtp.video.controller = "$controller"
        [[variants]]
        name = "slow"
        links.bottleneck.rate = "500 kbps"
        [[variants]]
        name = "fast"
    "#;

    fn outcome(threads: usize, stop: bool) -> Outcome {
        let registry = Registry::builtin();
        let file = ScenarioFile::parse("small", TEXT, ".".as_ref(), &registry).expect("reads");
        let plan = Plan::new(&[file], None, Repeat { runs: 3, own: false, seed: Some(7) }, &registry).expect("plans");
        assert_eq!(plan.runs(), 12);
        let stop = AtomicBool::new(stop);
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        plan.run(threads, &options)
    }

    #[test]
    fn groups_by_variant_and_controller_for_any_number_of_threads() {
        let (one, two) = (outcome(1, false), outcome(2, false));
        let json = |o: &Outcome| serde_json::to_string(&o.json()).expect("JSON");
        assert_eq!(json(&one), json(&two));
        let seeds: Vec<u64> = one.runs().map(|r| r.seed).collect();
        assert_eq!(seeds, [7, 8, 9].repeat(4));
        let series: Vec<bool> = one.runs().map(|r| r.series.is_some()).collect();
        assert_eq!(series, [true, false, false].repeat(4));
        let labels: Vec<String> = one.aggregates().map(|(s, _)| s.label()).collect();
        assert_eq!(labels, ["small [slow] fixed", "small [slow] nada", "small [fast] fixed", "small [fast] nada"]);
    }

    #[test]
    fn names_given_twice_run_once_and_huge_series_are_not_kept() {
        let registry = Registry::builtin();
        let read = |text: &str| ScenarioFile::parse("small", text, ".".as_ref(), &registry).expect("reads");
        let twice = ["fixed".to_owned(), "fixed".to_owned()];
        let repeat = Repeat { runs: 2, own: true, seed: None };
        let plan = Plan::new(&[read(TEXT), read(TEXT)], Some(&twice), repeat, &registry).expect("plans");
        assert_eq!(plan.runs(), 4);
        let many = TEXT.replace(
            "rtp.video.controller",
            "sample_interval = \"1 ms\"\nrtp.video.count = 1001\nrtp.video.controller",
        );
        let plan = Plan::new(&[read(&many)], Some(&twice), Repeat { runs: 1, own: true, seed: None }, &registry)
            .expect("plans");
        assert!(plan.groups.iter().all(|g| !g.keeps_series()));
    }

    #[test]
    fn a_stop_keeps_finished_runs() {
        let o = outcome(1, true);
        assert!(
            o.stopped && o.failures.is_empty() && o.runs().count() == 0 && o.groups().all(|(_, runs)| runs.is_empty())
        );
    }
}
