//! Finished and failed runs of a plan.

use crate::results::{Aggregate, Joiner, RunResult, aggregate};
use crate::scenario::Scenario;
use serde::Serialize;
use std::fmt;

/// Scenarios that a line names as missing; further ones are counted.
const NAMED_MISSING: usize = 6;

/// The finished runs of one scenario, variant and controller.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) scenario: Scenario,
    /// Every run, or the first where there are too many to keep.
    pub(super) runs: Vec<RunResult>,
    /// The statistics over all, where there are too many to keep.
    pub(super) joined: Option<Joiner>,
}

impl Finished {
    pub(super) fn add(&mut self, run: RunResult) {
        match &mut self.joined {
            None => self.runs.push(run),
            Some(joined) => {
                joined.add(&run);
                if self.runs.is_empty() {
                    self.runs.push(run);
                }
            }
        }
    }
    fn aggregate(&self) -> Option<Aggregate> {
        self.joined.as_ref().map_or_else(|| aggregate(&self.runs), Joiner::aggregate)
    }
    /// Runs that the statistics are over.
    pub(super) fn count(&self) -> u64 {
        self.joined.as_ref().map_or(self.runs.len(), Joiner::runs) as u64
    }
}

/// Finished and failed runs of a plan.
#[derive(Debug, Default)]
pub struct Outcome {
    pub(super) groups: Vec<Finished>,
    pub(super) texts: Vec<ScenarioText>,
    /// Runs that failed, in words; of very many the first.
    pub failures: Vec<String>,
    /// How many failed.
    pub failed: u64,
    /// Runs not made because of the stop flag; those here are of whole sets.
    pub stopped: Option<Stopped>,
}

/// A scenario's file as it was read, and the seeds that it is run with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioText {
    /// Its name.
    pub name: String,
    /// Name as a command-line argument: the name of a built-in scenario, or a path.
    pub argument: String,
    /// The file.
    pub text: String,
    /// Seeds, in the order of the runs.
    pub seeds: Vec<u64>,
}

/// Counts of finished and of planned runs, if a stop left some undone.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stopped {
    /// Runs that finished, those included that are left out because their set did not.
    pub finished: u64,
    /// Runs planned.
    pub planned: u64,
    /// Sets that finished: one run of each scenario, variant and controller. All statistics are over these.
    pub sets: u64,
    /// Sets planned.
    pub planned_sets: u64,
    /// Runs of these sets.
    pub used: u64,
    /// Scenarios, variants and controllers that have fewer runs than planned.
    pub missing: Vec<Missing>,
}

/// A scenario, variant and controller with fewer runs than planned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Missing {
    /// Scenario by name.
    pub scenario: String,
    /// Variant of the scenario, or nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// The controller compared, or nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub controller: String,
    /// Runs that finished.
    pub finished: u64,
    /// Runs planned.
    pub planned: u64,
}

impl Missing {
    pub(super) fn new(scenario: &Scenario, finished: u64, planned: u64) -> Self {
        Self {
            scenario: scenario.name.clone(),
            condition: scenario.variant.clone().unwrap_or_default(),
            controller: scenario.controller.clone().unwrap_or_default(),
            finished,
            planned,
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scenario)?;
        if !self.condition.is_empty() {
            write!(f, " [{}]", self.condition)?;
        }
        if !self.controller.is_empty() {
            write!(f, " {}", self.controller)?;
        }
        write!(f, " {} of {}", self.finished, self.planned)
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stopped after {} of {} runs. ", self.finished, self.planned)?;
        if self.sets == 0 {
            write!(f, "Not every controller has finished one run of every scenario: there is nothing to compare.")?;
        } else {
            let (sets, planned) = (self.sets, self.planned_sets);
            write!(f, "All numbers are over run 1 to {sets} of {planned} of every scenario and controller")?;
            match self.finished - self.used {
                0 => write!(f, ".")?,
                n => write!(f, "; {n} that finished beside them are left out.")?,
            }
        }
        let named = self.missing.iter().take(NAMED_MISSING).map(Missing::to_string).collect::<Vec<_>>().join(", ");
        write!(f, " Missing: {named}")?;
        match self.missing.len().saturating_sub(NAMED_MISSING) {
            0 => write!(f, "."),
            n => write!(f, " and {n} more."),
        }
    }
}

/// All runs as one JSON object.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutcomeJson<'a> {
    /// Counts of finished and of planned runs, if a stop left some undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<&'a Stopped>,
    /// Runs that failed, in words.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub failures: &'a [String],
    /// Statistics over the seeds, one for each scenario, variant and controller.
    pub aggregates: Vec<Aggregate>,
    /// Every run; of more runs than are kept, the first of each scenario, variant and controller.
    pub runs: Vec<&'a RunResult>,
}

impl Outcome {
    /// Of runs that were made elsewhere, by scenario.
    pub fn of(groups: Vec<(Scenario, Vec<RunResult>)>) -> Self {
        let finished = |(scenario, runs)| Finished { scenario, runs, joined: None };
        Self { groups: groups.into_iter().map(finished).collect(), ..Self::default() }
    }

    /// The same where a stop left runs undone: those of whole sets, the first runs of each scenario as many as all have. `planned`
    /// is the number of runs of each scenario.
    pub fn stopped(mut groups: Vec<(Scenario, Vec<RunResult>)>, planned: u64) -> Self {
        let finished = |g: &(Scenario, Vec<RunResult>)| g.1.len() as u64;
        let sets = groups.iter().map(finished).min().unwrap_or(0);
        let missing = groups.iter().filter(|g| finished(g) < planned).map(|g| Missing::new(&g.0, finished(g), planned));
        let count = groups.len() as u64;
        let stopped = Stopped {
            finished: groups.iter().map(finished).sum(),
            planned: planned * count,
            sets,
            planned_sets: planned,
            used: sets * count,
            missing: missing.collect(),
        };
        groups.iter_mut().for_each(|g| g.1.truncate(sets as usize));
        Self { stopped: Some(stopped), ..Self::of(groups) }
    }

    /// Every run that is kept, in order.
    pub fn runs(&self) -> impl Iterator<Item = &RunResult> {
        self.groups.iter().flat_map(|g| &g.runs)
    }

    /// Each scenario of the plan, in order.
    pub fn scenarios(&self) -> impl Iterator<Item = &Scenario> {
        self.groups.iter().map(|g| &g.scenario)
    }

    /// Runs that the statistics are over.
    pub fn count(&self) -> u64 {
        self.groups.iter().map(Finished::count).sum()
    }

    /// Scenarios with the statistics over their seeds; those without a finished run are left out.
    pub fn aggregates(&self) -> impl Iterator<Item = (&Scenario, Aggregate)> {
        self.groups.iter().filter_map(|g| Some((&g.scenario, g.aggregate()?)))
    }

    /// Returns the object that `--json` prints.
    pub fn json(&self) -> OutcomeJson<'_> {
        OutcomeJson {
            stopped: self.stopped.as_ref(),
            failures: &self.failures,
            aggregates: self.aggregates().map(|a| a.1).collect(),
            runs: self.runs().collect(),
        }
    }

    /// Each scenario with the runs that are kept and the statistics over all, in order; those without a finished run are left
    /// out.
    pub fn groups(&self) -> impl Iterator<Item = (&Scenario, &[RunResult], Aggregate)> {
        self.groups.iter().filter_map(|g| Some((&g.scenario, g.runs.as_slice(), g.aggregate()?)))
    }

    /// The file of a scenario by name, where the runs were planned from files.
    pub fn text_of(&self, scenario: &str) -> Option<&ScenarioText> {
        self.texts.iter().find(|t| t.name == scenario)
    }
}
