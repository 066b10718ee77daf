//! Many scenarios, variants, controllers and seeds at once: what to run, running it, and what came of it.

use crate::report::{ControllerRuns, ScenarioReport};
use crate::results::{Aggregate, RunResult, aggregate};
use crate::run::{Job, RunError, RunOptions, run_many};
use crate::scenario::{InputError, Scenario, ScenarioFile};
use serde::Serialize;
use weir_cc::Registry;

/// One scenario and the seeds that it runs with.
#[derive(Clone, Debug)]
struct Group {
    scenario: Scenario,
    seeds: Vec<u64>,
}

/// Everything to run, in the order of the tables.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    groups: Vec<Group>,
}

/// How often and with which seeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeat {
    /// Runs of each scenario under each controller; at least one is made.
    pub runs: u32,
    /// Seed of the first; that of the scenario if absent. Each further run has the next one.
    pub seed: Option<u64>,
}

impl Plan {
    /// Every variant of every file under every controller: those given, or those that the file compares.
    /// Errors: a controller that does not exist or cannot be set up as a file says.
    pub fn new(
        files: &[ScenarioFile],
        controllers: Option<&[String]>,
        repeat: Repeat,
        registry: &Registry,
    ) -> Result<Self, InputError> {
        let mut groups = Vec::new();
        for file in files {
            for scenario in file.scenarios(controllers, registry)? {
                let first = repeat.seed.unwrap_or(scenario.seed);
                let seeds = (0..u64::from(repeat.runs.max(1))).map(|i| first.wrapping_add(i)).collect();
                groups.push(Group { scenario, seeds });
            }
        }
        Ok(Self { groups })
    }

    /// Runs to be made.
    pub fn runs(&self) -> usize {
        self.groups.iter().map(|g| g.seeds.len()).sum()
    }

    /// Makes all runs. The first seed of each scenario keeps its time series where `options` asks for series; the
    /// others keep none, so that memory does not grow with the number of runs.
    pub fn run(&self, threads: usize, options: &RunOptions<'_>) -> Outcome {
        let job = |g: &Group, seed| Job { scenario: g.scenario.clone(), seed };
        let first: Vec<Job> = self.groups.iter().filter_map(|g| Some(job(g, *g.seeds.first()?))).collect();
        let others: Vec<Job> =
            self.groups.iter().flat_map(|g| g.seeds.iter().skip(1).map(|seed| job(g, *seed))).collect();
        let all = self.runs().max(1) as f64;
        let share = first.len() as f64 / all;
        let progress = |p: f64| (options.progress)(p * share);
        let first = run_many(&first, threads, &RunOptions { progress: &progress, ..*options }, &|_| {});
        let progress = |p: f64| (options.progress)(share + p * (1.0 - share));
        let quiet = RunOptions { series: false, progress: &progress, ..*options };
        let mut others = run_many(&others, threads, &quiet, &|_| {}).into_iter();

        let mut outcome = Outcome::default();
        for (group, first) in self.groups.iter().zip(first) {
            let mut runs = Vec::new();
            for result in std::iter::once(first).chain(others.by_ref().take(group.seeds.len() - 1)) {
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

/// What came of a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    groups: Vec<(Scenario, Vec<RunResult>)>,
    /// Runs that failed, in words.
    pub failures: Vec<String>,
    /// Whether the stop flag cut runs short; what had finished is here.
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
    /// Every run that finished, in order.
    pub fn runs(&self) -> impl Iterator<Item = &RunResult> {
        self.groups.iter().flat_map(|g| &g.1)
    }

    /// Scenarios with the statistics over their seeds; those without a finished run are left out.
    pub fn aggregates(&self) -> impl Iterator<Item = (&Scenario, Aggregate)> {
        self.groups.iter().filter_map(|(scenario, runs)| Some((scenario, aggregate(runs)?)))
    }

    /// What `--json` prints.
    pub fn json(&self) -> OutcomeJson<'_> {
        OutcomeJson { aggregates: self.aggregates().map(|a| a.1).collect(), runs: self.runs().collect() }
    }

    /// One section for each scenario and variant.
    pub fn sections(&self) -> Vec<ScenarioReport> {
        let mut sections: Vec<((&str, Option<&str>), ScenarioReport)> = Vec::new();
        for (scenario, runs) in &self.groups {
            let Some(controller) = ControllerRuns::new(runs.clone()) else { continue };
            let key = (scenario.name.as_str(), scenario.variant.as_deref());
            match sections.iter_mut().find(|s| s.0 == key) {
                Some((_, section)) => section.controllers.push(controller),
                None => {
                    let variant = key.1.map(|v| format!(" [{v}]")).unwrap_or_default();
                    let section = ScenarioReport {
                        title: format!("{}{variant}", scenario.title),
                        doc: scenario.doc.clone(),
                        controllers: vec![controller],
                    };
                    sections.push((key, section));
                }
            }
        }
        sections.into_iter().map(|s| s.1).collect()
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
        let plan = Plan::new(&[file], None, Repeat { runs: 3, seed: Some(7) }, &registry).expect("plans");
        assert_eq!(plan.runs(), 12);
        let stop = AtomicBool::new(stop);
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        plan.run(threads, &options)
    }

    #[test]
    fn groups_by_variant_and_controller_whatever_the_threads() {
        let (one, two) = (outcome(1, false), outcome(2, false));
        let json = |o: &Outcome| serde_json::to_string(&o.json()).expect("JSON");
        assert_eq!(json(&one), json(&two));
        let seeds: Vec<u64> = one.runs().map(|r| r.seed).collect();
        assert_eq!(seeds, [7, 8, 9].repeat(4));
        let series: Vec<bool> = one.runs().map(|r| r.series.is_some()).collect();
        assert_eq!(series, [true, false, false].repeat(4));
        let sections = one.sections();
        assert_eq!(sections.len(), 2);
        assert_eq!((sections[1].title.as_str(), sections[1].controllers.len()), ("Small [fast]", 2));
        let labels: Vec<String> = one.aggregates().map(|(s, _)| s.label()).collect();
        assert_eq!(labels, ["small [slow] fixed", "small [slow] nada", "small [fast] fixed", "small [fast] nada"]);
    }

    #[test]
    fn a_stop_leaves_what_has_finished() {
        let o = outcome(1, true);
        assert!(o.stopped && o.failures.is_empty() && o.runs().count() == 0 && o.sections().is_empty());
    }
}
