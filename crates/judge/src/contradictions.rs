//! Numbers of one result that contradict each other: more received than sent, a delay below the path's, an explanation against the
//! move that it explains. A scan runs controllers over scenarios and looks for such in each result.

mod checks;
mod page;

pub use checks::{Finding, check};

use crate::harm;
use crate::rows;
use serde::Serialize;
use std::path::Path;
use std::sync::Mutex;
use weir_cc::{Registry, Transport};
use weir_lab::results::RunResult;
use weir_lab::run::{RunError, RunOptions, Task, run, run_each};
use weir_lab::scenario::{InputError, Scenario, ScenarioFile, builtin_scenarios};
use weir_units::TimeDelta;

/// Longest run; its last flow runs for [`LAST`] at least.
const LONGEST: TimeDelta = TimeDelta::from_secs(20);
const LAST: TimeDelta = TimeDelta::from_secs(10);

/// Scenarios to look at, each ready to run with its seed.
#[derive(Default)]
pub struct Places(Vec<(Scenario, u64)>);

/// The controllers of calls: those that adapt to what they measure alone, over UDP.
pub fn controllers(registry: &Registry) -> Vec<String> {
    let specs = registry.specs().filter(|s| s.adapts && !s.foresees && s.transport == Transport::Udp);
    specs.map(|s| s.name.clone()).collect()
}

/// A scenario whose last flow has begun, and no longer.
fn short(mut scenario: Scenario) -> Scenario {
    let last = scenario.flows.iter().map(|f| f.start).max().unwrap_or(TimeDelta::ZERO);
    scenario.duration = scenario.duration.min(LONGEST.max(last + LAST));
    for flow in &mut scenario.flows {
        flow.stop = flow.stop.min(scenario.duration);
    }
    let duration = scenario.duration;
    scenario.windows.retain(|w| w.to <= duration);
    scenario
}

impl Places {
    /// Number of runs.
    pub fn len(&self) -> usize {
        self.0.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Every `n`th of them, beginning with the first.
    #[must_use]
    pub fn every(self, n: usize) -> Self {
        Self(self.0.into_iter().step_by(n.max(1)).collect())
    }

    /// The rows of `weir judge rows` under each controller, cut short. Errors: a controller does not exist.
    pub fn add_rows(&mut self, controllers: &[String], registry: &Registry) -> Result<(), InputError> {
        for row in rows::rows() {
            for controller in controllers {
                let scenario = short(rows::scenario(&row, controller, registry)?);
                let seed = scenario.seed;
                self.0.push((scenario, seed));
            }
        }
        Ok(())
    }

    /// The scenarios that ship with Weir, each variant under the first of its controllers, cut short. Errors: none, for those
    /// that ship.
    pub fn add_shipped(&mut self, registry: &Registry) -> Result<(), InputError> {
        for (name, _) in builtin_scenarios() {
            let file = ScenarioFile::builtin(name, registry)?;
            let first = file.controllers().first().cloned();
            for variant in file.variants() {
                let scenario = short(file.scenario(variant, first.as_deref(), registry)?);
                let seed = scenario.seed;
                self.0.push((scenario, seed));
            }
        }
        Ok(())
    }

    /// `count` generated links ([`harm::Link`]) under each controller, cut short; frames are played. Errors: a controller does
    /// not exist.
    pub fn add_links(
        &mut self,
        controllers: &[String],
        (seed, count): (u64, u64),
        registry: &Registry,
    ) -> Result<(), InputError> {
        for link in harm::Link::generate(seed, count) {
            for controller in controllers {
                let text = link.scenario(controller, None);
                let text = text.replace("[rtp.judged]\n", "[rtp.judged]\nplayout_deadline = \"250 ms\"\n");
                let file = ScenarioFile::parse(&format!("link-{}", link.number), &text, Path::new("."), registry)?;
                self.0.push((short(file.scenario(None, None, registry)?), link.number));
            }
        }
        Ok(())
    }

    /// A shipped scenario, each variant under each controller, cut short. Errors: one of them does not exist.
    pub fn add_scenario(&mut self, name: &str, controllers: &[String], registry: &Registry) -> Result<(), InputError> {
        for scenario in ScenarioFile::builtin(name, registry)?.scenarios(Some(controllers), registry)? {
            let seed = scenario.seed;
            self.0.push((short(scenario), seed));
        }
        Ok(())
    }
}

/// A run whose numbers contradict each other.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ContradictingRun"))]
pub struct Contradicting {
    /// Scenario, variant and controller.
    pub run: String,
    /// The seed.
    pub seed: u64,
    /// The contradictions.
    pub findings: Vec<Finding>,
}

/// A scan's outcome.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "ContradictionScan"))]
pub struct Scan {
    /// Runs looked at.
    pub runs: usize,
    /// Comparisons of two numbers, or of words and a number, in them.
    pub comparisons: u64,
    /// Those with contradictions, in the order of the places.
    pub contradicting: Vec<Contradicting>,
    /// Runs that failed: label and reason.
    pub failed: Vec<String>,
    /// Runs not made, since the scan was stopped.
    pub undone: usize,
}

/// Comparisons made in a result and their findings, once it has been checked.
type Checked = Option<(u64, Vec<Finding>)>;

/// Runs each place, `threads` at a time, and checks its result.
pub fn scan(places: &Places, threads: usize, options: &RunOptions<'_>) -> Scan {
    let seen: Vec<Mutex<Checked>> = places.0.iter().map(|_| Mutex::new(None)).collect();
    let tasks = places.0.iter().enumerate();
    let tasks = tasks.map(|(id, (scenario, seed))| Task { scenario, seed: *seed, series: true, id });
    let make = |task: &Task<'_>, options: &RunOptions<'_>| -> Result<RunResult, RunError> {
        let mut result = run(task.scenario, task.seed, options)?;
        let checked = check(task.scenario, &result);
        if let Ok(mut slot) = seen[task.id].lock() {
            *slot = Some(checked);
        }
        // Nobody looks at it again.
        result.series = None;
        Ok(result)
    };
    let mut scan = Scan::default();
    run_each(tasks, places.0.len() as u64, threads, options, &make, &mut |task, result| match result {
        Ok(_) | Err(RunError::Stopped { .. }) => {}
        Err(e) => scan.failed.push(format!("{}: {e}", task.scenario.label())),
    });
    scan.failed.sort();
    for ((scenario, seed), seen) in places.0.iter().zip(seen) {
        let Ok(Some((comparisons, findings))) = seen.into_inner() else { continue };
        scan.runs += 1;
        scan.comparisons += comparisons;
        if !findings.is_empty() {
            scan.contradicting.push(Contradicting { run: scenario.label(), seed: *seed, findings });
        }
    }
    scan.undone = places.0.len() - scan.runs - scan.failed.len();
    scan
}

#[cfg(test)]
mod tests;
