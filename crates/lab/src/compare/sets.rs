//! Runs collected set by set.

use super::group::Group;
use super::outcome::{Finished, Missing, Outcome, ScenarioText, Stopped};
use crate::results::{Joiner, RunResult};
use crate::run::RunError;

/// Failed runs that are named; further ones are counted.
const NAMED_FAILURES: usize = 20;

/// Takes results in the plan's order. Those of a set are held back until the whole set has come, so that statistics are over as
/// many runs of one controller as of another, wherever a stop falls.
pub(super) struct Sets<'p> {
    planned: &'p [Group],
    set: u32,
    /// Results of the set that have not come yet.
    awaited: usize,
    held: Vec<(usize, RunResult)>,
    /// Whether a stop cut the set short.
    cut: bool,
    /// Runs finished, by group.
    finished: Vec<u64>,
    groups: Vec<Finished>,
    failures: Vec<String>,
    failed: u64,
}

impl<'p> Sets<'p> {
    /// `keeps_runs` says whether each run's result is kept, or the statistics alone.
    pub(super) fn new(planned: &'p [Group], keeps_runs: bool) -> Self {
        let joiner = || (!keeps_runs).then(Joiner::default);
        let finished = |g: &Group| Finished { scenario: g.scenario.clone(), runs: Vec::new(), joined: joiner() };
        let mut sets = Self {
            planned,
            set: 0,
            awaited: 0,
            held: Vec::new(),
            cut: false,
            finished: vec![0; planned.len()],
            groups: planned.iter().map(finished).collect(),
            failures: Vec::new(),
            failed: 0,
        };
        sets.awaited = sets.size();
        sets
    }

    /// Runs of the set under way.
    fn size(&self) -> usize {
        self.planned.iter().filter(|g| g.runs > self.set).count()
    }

    pub(super) fn take(&mut self, group: usize, result: Result<RunResult, RunError>) {
        match result {
            Ok(run) => {
                self.finished[group] += 1;
                self.held.push((group, run));
            }
            Err(RunError::Stopped { .. }) => self.cut = true,
            Err(e) => {
                self.failed += 1;
                if self.failures.len() < NAMED_FAILURES {
                    self.failures.push(format!("{}: {e}", self.groups[group].scenario.label()));
                }
            }
        }
        // Of later sets there may be finished runs beside one that was stopped: no set follows that one.
        if self.cut {
            return;
        }
        self.awaited -= 1;
        if self.awaited == 0 {
            for (group, run) in self.held.drain(..) {
                self.groups[group].add(run);
            }
            self.set += 1;
            self.awaited = self.size();
        }
    }

    pub(super) fn outcome(self, texts: Vec<ScenarioText>) -> Outcome {
        let sets = self.planned.iter().map(|g| g.runs).max().unwrap_or(0);
        let missing = |(g, finished): (&Group, &u64)| {
            let planned = u64::from(g.runs);
            (*finished < planned).then(|| Missing::new(&g.scenario, *finished, planned))
        };
        // A run that failed is none that a stop left undone.
        let stopped = self.set < sets;
        let stopped = stopped.then(|| Stopped {
            finished: self.finished.iter().sum(),
            planned: self.planned.iter().map(|g| u64::from(g.runs)).sum(),
            sets: u64::from(self.set),
            planned_sets: u64::from(sets),
            used: self.groups.iter().map(Finished::count).sum(),
            missing: self.planned.iter().zip(&self.finished).filter_map(missing).collect(),
        });
        Outcome { groups: self.groups, texts, failures: self.failures, failed: self.failed, stopped }
    }
}
