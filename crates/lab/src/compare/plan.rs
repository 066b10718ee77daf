//! A plan of runs, and their order.

use super::group::Group;
use super::journal::{Journal, ScenarioDigest};
use super::outcome::{Outcome, ScenarioText};
use super::sets::Sets;
use crate::run::{RunOptions, Task, run, run_each};
use crate::scenario::{InputError, Scenario, ScenarioFile};
use weir_cc::Registry;

/// Most runs of one plan.
pub const MAX_RUNS: u64 = 1_000_000;
/// Runs of a plan up to which each one's result is kept. Of more, statistics are taken as they finish, and the first of each
/// scenario and controller is kept: some hundred MB at most.
pub const KEPT_RUNS: u64 = 10_000;
/// The same for the flows of all these runs together.
pub const KEPT_FLOWS: u64 = 200_000;

/// Everything to run, in the order of the tables.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub(super) groups: Vec<Group>,
    texts: Vec<ScenarioText>,
}

/// How often and with which seeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeat {
    /// Runs of each scenario under each controller; at least one is made.
    pub runs: u32,
    /// Whether a scenario that says how often it is run by itself keeps to that.
    pub own: bool,
    /// Seed of the first; that of the scenario if absent. Each further run has the next one.
    pub seed: Option<u64>,
}

impl Plan {
    /// Every variant of every file under every controller: those given, or those that the file compares.
    /// Errors: a controller that does not exist or cannot be set up as a file says; more than [`MAX_RUNS`] runs.
    pub fn new(
        files: &[ScenarioFile],
        controllers: Option<&[String]>,
        repeat: Repeat,
        registry: &Registry,
    ) -> Result<Self, InputError> {
        let (mut groups, mut texts): (Vec<Group>, Vec<ScenarioText>) = Default::default();
        // Naming a controller or a scenario twice is no wish to see it twice.
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
                let runs = scenario.runs.filter(|_| repeat.own).unwrap_or(repeat.runs).max(1);
                if !texts.iter().any(|t| t.name == scenario.name) {
                    // More than may be planned is refused below.
                    let seeds = (0..u64::from(runs).min(MAX_RUNS)).map(|i| first.wrapping_add(i)).collect();
                    let (name, text) = (scenario.name.clone(), file.text().into());
                    texts.push(ScenarioText { name, argument: file.argument().into(), text, seeds });
                }
                groups.push(Group { scenario, first, runs });
            }
        }
        let plan = Self { groups, texts };
        if plan.runs() > MAX_RUNS {
            let (runs, groups) = (plan.runs(), plan.groups.len());
            let message = format!(
                "{runs} runs ({groups} of scenario, variant and controller, up to {} each) are more than {MAX_RUNS}",
                plan.sets()
            );
            let each = (MAX_RUNS / groups as u64).max(1);
            let help = format!("--runs {each} at most here; further calls with another --seed make more");
            return Err(InputError::whole("--runs", message).help(help));
        }
        Ok(plan)
    }

    /// The same plan with another number of runs, at least one, of each scenario for which `runs_of` gives one by its name.
    pub fn with_runs(mut self, runs_of: impl Fn(&str) -> Option<u32>) -> Self {
        for group in &mut self.groups {
            let Some(runs) = runs_of(&group.scenario.name) else { continue };
            group.runs = runs.max(1);
            let name = &group.scenario.name;
            for text in self.texts.iter_mut().filter(|t| t.name == *name) {
                text.seeds = (0..u64::from(group.runs)).map(|i| group.first.wrapping_add(i)).collect();
            }
        }
        self
    }

    /// Runs to be made.
    pub fn runs(&self) -> u64 {
        self.groups.iter().map(|g| u64::from(g.runs)).sum()
    }

    /// Sets of runs to be made: a set is one run of each scenario, variant and controller that still has some to make.
    pub fn sets(&self) -> u32 {
        self.groups.iter().map(|g| g.runs).max().unwrap_or(0)
    }

    /// Whether the outcome has every run's result, and not the statistics alone: see [`KEPT_RUNS`] and [`KEPT_FLOWS`].
    pub fn keeps_runs(&self) -> bool {
        let flows = |g: &Group| u64::from(g.runs).saturating_mul(g.scenario.flows.len() as u64);
        self.runs() <= KEPT_RUNS && self.groups.iter().map(flows).fold(0, u64::saturating_add) <= KEPT_FLOWS
    }

    /// The runs set by set, so that a stop leaves controllers with as many runs as each other.
    fn tasks(&self) -> impl Iterator<Item = Task<'_>> + Send {
        (0..self.sets()).flat_map(move |set| {
            let left = self.groups.iter().enumerate().filter(move |(_, g)| g.runs > set);
            left.map(move |(id, g)| Task {
                scenario: &g.scenario,
                seed: g.first.wrapping_add(u64::from(set)),
                series: set == 0 && g.keeps_series(),
                id,
            })
        })
    }

    /// Makes all runs; `begun` is called as one begins. Where `options` asks for series, the first seed of each scenario keeps
    /// them, unless they are very many; the other seeds keep none, so that memory does not grow with the number of runs. With a
    /// journal, runs that it has are not made again, and each that finishes is kept there, but for those of programs of the user's
    /// ([`Spec::is_fixed`](weir_cc::Spec::is_fixed)).
    pub fn run(
        &self,
        threads: usize,
        options: &RunOptions<'_>,
        journal: Option<&Journal>,
        begun: &(dyn Fn(&Scenario, u64) + Sync),
    ) -> Outcome {
        let mut sets = Sets::new(&self.groups, self.keeps_runs());
        let digests: Vec<Option<ScenarioDigest>> = match journal {
            Some(_) => self.groups.iter().map(|g| ScenarioDigest::of(&g.scenario, options.registry)).collect(),
            None => Vec::new(),
        };
        let make = |task: &Task<'_>, options: &RunOptions<'_>| {
            let kept = journal.zip(digests.get(task.id).and_then(Option::as_ref));
            if let Some(found) = kept.and_then(|(j, digest)| j.find(digest, task.seed, options.series)) {
                return Ok(found);
            }
            begun(task.scenario, task.seed);
            let result = run(task.scenario, task.seed, options)?;
            if let Some((journal, digest)) = kept {
                journal.add(digest, task.seed, options.series, &result);
            }
            Ok(result)
        };
        run_each(self.tasks(), self.runs(), threads, options, &make, &mut |task, result| sets.take(task.id, result));
        sets.outcome(self.texts.clone())
    }
}
