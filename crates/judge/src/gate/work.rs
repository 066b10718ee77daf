//! The runs of a gate, in rounds: each budget's test says how many further seeds it needs at least, and so many are run.
//!
//! A round has the next few controllers and scenarios of the order that are undecided, so that they are decided one after the other:
//! where time is short, the first have verdicts and the last have no runs. One that takes long, since it is between passing and failing,
//! waits until the others have had their turn.
//!
//! Rounds depend on results alone, never on threads or the clock, so that the verdicts of a file are the same on every run. Time ends the
//! rounds where they are; budgets that are decided by then have the verdict that they would have had.

use super::baseline::{Baseline, Entry};
use super::budget::Bound;
use super::plan::{Asked, Other, Place, Plan};
use super::report::{Check, Ended, Report, median};
use super::sprt::{Tally, Verdict};
use crate::rows::Better;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use weir_lab::results::RunResult;
use weir_lab::run::{RunError, RunOptions, Task, run, run_each};
use weir_units::Timestamp;

/// Threads, time and an earlier run: all that a gate's answer has beside its file.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Values of an earlier run, for budgets that compare with it, and for the order.
    pub baseline: Option<&'a Baseline>,
    /// Whether the values are for a baseline: what is compared with one has all of its seeds then.
    pub saves: bool,
    /// Runs at a time.
    pub threads: usize,
    /// Time since the beginning, in s.
    pub elapsed: &'a (dyn Fn() -> f64 + Sync),
    /// Takes the faults of controllers in other processes in the run that this thread has made last.
    pub faults: &'a (dyn Fn() -> Vec<String> + Sync),
}

impl std::fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work").field("saves", &self.saves).field("threads", &self.threads).finish_non_exhaustive()
    }
}

/// A gate's answer, and the values of all runs as a baseline for later ones.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer {
    /// The answer.
    pub report: Report,
    /// The values.
    pub baseline: Baseline,
}

/// Runs of a round, so many that all threads have something to do, whatever their number: verdicts may not depend on it.
const ROUND: usize = 16;

/// Numbers of a run, by column.
type Numbers = Vec<Option<f64>>;

/// Runs of a place: numbers by seed, then by column, and why there are no more.
#[derive(Debug)]
struct Made {
    values: Vec<Numbers>,
    broken: Option<String>,
    /// The least seed without a result: later ones need not be run.
    broken_at: AtomicU64,
}

/// A budget's test so far.
#[derive(Clone, Debug, Default)]
struct Test {
    tally: Tally,
    /// Why no further seed would help.
    exhausted: Option<String>,
}

struct Rounds<'a> {
    plan: &'a Plan<'a>,
    work: Work<'a>,
    made: Vec<Made>,
    tests: Vec<Test>,
    /// Places, worst first.
    order: Vec<usize>,
}

impl Plan<'_> {
    /// Makes the runs, until every budget is decided, has all its seeds, or time is over. `begun` is called as a run begins.
    pub fn run(&self, work: Work<'_>, options: &RunOptions<'_>, begun: &(dyn Fn(&str) + Sync)) -> Answer {
        let new = || Made { values: Vec::new(), broken: None, broken_at: AtomicU64::new(u64::MAX) };
        let mut rounds = Rounds {
            plan: self,
            work,
            made: self.places.iter().map(|_| new()).collect(),
            tests: vec![Test::default(); self.asked.len()],
            order: order(self, work.baseline),
        };
        let halt = AtomicBool::new(false);
        loop {
            if halt.load(Ordering::Relaxed) || !rounds.round(&halt, options, begun) {
                break;
            }
        }
        let is_stopped = options.stop.load(Ordering::Relaxed);
        let lacks = |(want, made): (u32, &Made)| made.values.len() < want as usize;
        let ended = match halt.load(Ordering::Relaxed) && rounds.wanted().into_iter().zip(&rounds.made).any(lacks) {
            true if is_stopped => Some(Ended::Stopped),
            true => Some(Ended::Time),
            false => None,
        };
        rounds.answer(ended)
    }
}

/// Places in the order of an earlier run, the worst first, each before those that it is compared with; of the file without one.
fn order(plan: &Plan<'_>, baseline: Option<&Baseline>) -> Vec<usize> {
    let badness = |place: usize| {
        let p = &plan.places[place];
        baseline.map_or(0.0, |b| b.badness(&plan.conditions[p.condition].name, &p.controller))
    };
    let mut asked: Vec<&Asked> = plan.asked.iter().collect();
    asked.sort_by(|a, b| badness(b.place).total_cmp(&badness(a.place)));
    let mut order = Vec::new();
    for a in asked {
        let other = if let Other::Place(other) = a.other { Some(other) } else { None };
        for place in [Some(a.place), other].into_iter().flatten() {
            if !order.contains(&place) {
                order.push(place);
            }
        }
    }
    order
}

impl Rounds<'_> {
    /// Seeds that each place should have after this round.
    fn wanted(&self) -> Vec<u32> {
        let runs = self.plan.file.runs;
        let mut wanted = vec![0; self.made.len()];
        for (asked, test) in self.plan.asked.iter().zip(&self.tests) {
            let more = self.plan.sprt.fewest(test.tally);
            let until = match (&test.exhausted, more) {
                _ if self.work.saves && asked.other == Other::Baseline => runs,
                (None, 1..) => (test.tally.seeds() + more).min(runs),
                _ => continue,
            };
            wanted[asked.place] = until.max(wanted[asked.place]);
            if let Other::Place(other) = asked.other {
                wanted[other] = until.max(wanted[other]);
            }
        }
        for (want, made) in wanted.iter_mut().zip(&self.made) {
            if made.broken.is_some() {
                *want = 0;
            }
        }
        wanted
    }

    /// One round; whether there was anything to do.
    fn round(&mut self, halt: &AtomicBool, options: &RunOptions<'_>, begun: &(dyn Fn(&str) + Sync)) -> bool {
        let (plan, work) = (self.plan, self.work);
        let wanted = self.wanted();
        let has: Vec<u32> = self.made.iter().map(|m| m.values.len() as u32).collect();
        // Twice what a passing budget needs, and the others come first.
        let patience = 2 * plan.sprt.hits_to_pass().max(1);
        let mut order = self.order.clone();
        order.sort_by_key(|place| has[*place] / patience);
        let mut turns: Vec<(usize, u32)> = Vec::new();
        for place in order {
            if turns.len() < ROUND {
                turns.extend((has[place]..wanted[place]).map(|at| (place, at)));
            }
        }
        if turns.is_empty() {
            return false;
        }
        let seed = |at: u32| plan.file.seed + u64::from(at);
        let tasks = turns.iter().map(|&(place, at)| Task {
            scenario: &plan.places[place].scenario,
            seed: seed(at),
            series: true,
            id: place,
        });
        let is_over = || {
            if options.stop.load(Ordering::Relaxed) || (work.elapsed)() >= plan.file.time_s {
                halt.store(true, Ordering::Relaxed);
            }
            halt.load(Ordering::Relaxed)
        };
        let decided = self.tests.iter().filter(|t| plan.sprt.fewest(t.tally) == 0).count() as f64;
        let progress = |share: f64| {
            let _ = is_over();
            let of_time = (work.elapsed)() / plan.file.time_s;
            let of_budgets = (decided + share * 0.5) / plan.asked.len().max(1) as f64;
            (options.progress)(of_time.max(of_budgets).min(1.0));
        };
        let inner = RunOptions { series: true, stop: halt, progress: &progress, ..*options };
        let broken_at: Vec<&AtomicU64> = self.made.iter().map(|m| &m.broken_at).collect();
        let make = |task: &Task<'_>, options: &RunOptions<'_>| -> Result<RunResult, RunError> {
            // Where an earlier seed of the place has no result this one decides nothing.
            if is_over() || broken_at[task.id].load(Ordering::Relaxed) < task.seed {
                return Err(RunError::Stopped { at: Timestamp::ZERO });
            }
            let place = &plan.places[task.id];
            begun(&format!("{}, {}, seed {}", plan.conditions[place.condition].name, place.controller, task.seed));
            let made = one(place, task.seed, options, work.faults);
            if made.as_ref().is_err_and(|e| !matches!(e, RunError::Stopped { .. })) {
                broken_at[task.id].fetch_min(task.seed, Ordering::Relaxed);
            }
            made
        };
        let mut results: Vec<(usize, u64, Result<Numbers, String>)> = Vec::with_capacity(turns.len());
        run_each(tasks, turns.len() as u64, work.threads, &inner, &make, &mut |task, result| {
            let numbers = match result {
                Ok(run) => plan.read(&plan.places[task.id], &run).ok_or_else(|| "the run kept no numbers".into()),
                Err(RunError::Stopped { .. }) => return,
                Err(e) => Err(e.to_string()),
            };
            results.push((task.id, task.seed, numbers));
        });
        for (place, at, result) in results {
            let made = &mut self.made[place];
            // A stop may leave a gap, behind which no test looks.
            if made.broken.is_some() || at != seed(made.values.len() as u32) {
                continue;
            }
            match result {
                Ok(numbers) => made.values.push(numbers),
                Err(why) => made.broken = Some(format!("seed {at}: {why}")),
            }
        }
        self.test();
        true
    }

    /// Takes new seeds into the tests, in their order, until each is decided.
    fn test(&mut self) {
        let plan = self.plan;
        for (asked, test) in plan.asked.iter().zip(&mut self.tests) {
            while test.exhausted.is_none() && plan.sprt.fewest(test.tally) > 0 {
                let at = test.tally.seeds() as usize;
                let Some(value) = self.made[asked.place].values.get(at).map(|v| v[asked.column]) else { break };
                let other = match asked.other {
                    Other::None => None,
                    Other::Place(other) => match self.made[other].values.get(at) {
                        Some(values) => values[asked.column],
                        None => break,
                    },
                    Other::Baseline => match of_baseline(plan, self.work.baseline, asked, at) {
                        Ok(value) => value,
                        Err(why) => {
                            test.exhausted = Some(why);
                            break;
                        }
                    },
                };
                test.tally.add(asked.bound.meets(asked.better, value, other));
            }
        }
    }

    /// The place without which a budget has no result, and why: its own, or that which it is compared with.
    fn broken(&self, asked: &Asked) -> Option<String> {
        let own = self.made[asked.place].broken.clone();
        let of = |other: usize| {
            let why = self.made[other].broken.as_ref()?;
            Some(format!("{}, with which it is compared: {why}", self.plan.places[other].controller))
        };
        own.or_else(|| if let Other::Place(other) = asked.other { of(other) } else { None })
    }

    fn answer(&self, ended: Option<Ended>) -> Answer {
        let file = self.plan.file;
        let checks: Vec<Check> =
            self.plan.asked.iter().zip(&self.tests).map(|(asked, test)| self.check(asked, test, ended)).collect();
        let baseline = Baseline::new(file.seed, self.entries(&checks));
        let report = Report {
            file: file.name().into(),
            verdict: Report::over(&checks),
            controllers: file.controllers().map(str::to_owned).collect(),
            seed: file.seed,
            runs: file.runs,
            error: file.error,
            error_of_each: file.error / self.plan.asked.len().max(1) as f64,
            made: self.made.iter().map(|m| m.values.len() as u64).sum(),
            ended,
            checks,
        };
        Answer { report, baseline }
    }

    fn check(&self, asked: &Asked, test: &Test, ended: Option<Ended>) -> Check {
        let plan = self.plan;
        let place = &plan.places[asked.place];
        let condition = &plan.conditions[place.condition];
        let broken = self.broken(asked);
        let verdict = if broken.is_some() { Verdict::Fails } else { plan.sprt.verdict(test.tally) };
        let seeds = test.tally.seeds() as usize;
        let column = |place: usize| -> Vec<Option<f64>> {
            self.made[place].values.iter().take(seeds).map(|v| v[asked.column]).collect()
        };
        let values = column(asked.place);
        let others: Vec<Option<f64>> = match asked.other {
            Other::None => Vec::new(),
            Other::Place(other) => column(other),
            Other::Baseline => {
                (0..seeds).map(|at| of_baseline(plan, self.work.baseline, asked, at).ok().flatten()).collect()
            }
        };
        let note = (verdict == Verdict::Undecided).then(|| {
            let tally = format!("{} of {seeds} seeds keep it", test.tally.hits);
            match (&test.exhausted, ended) {
                (Some(why), _) => why.clone(),
                (None, Some(Ended::Time)) => format!("time was over: {tally}"),
                (None, Some(Ended::Stopped)) => format!("stopped: {tally}"),
                (None, None) => format!("{tally}, which is between the two: no more than `runs` are made"),
            }
        });
        Check {
            suite: condition.suite.clone(),
            scenario: condition.name.clone(),
            controller: place.controller.clone(),
            budget: asked.text.clone(),
            line: asked.line,
            unit: asked.unit.into(),
            verdict,
            hits: test.tally.hits,
            misses: test.tally.misses,
            median: median(&values),
            median_of_others: median(&others),
            worst_seed: worst(asked, &values, &others).map(|at| plan.file.seed + at as u64),
            values,
            others,
            broken,
            note,
            why: None,
            plot: None,
        }
    }

    /// Values of all runs for a baseline, with the worst verdict of their place.
    fn entries(&self, checks: &[Check]) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (at, (place, made)) in self.plan.places.iter().zip(&self.made).enumerate() {
            let own = || self.plan.asked.iter().zip(checks).filter(|(a, _)| a.place == at).map(|(_, c)| c);
            let verdict = Report::over(&own().cloned().collect::<Vec<_>>());
            let missed = |c: &Check| f64::from(c.misses) / f64::from((c.hits + c.misses).max(1));
            let missed = own().map(missed).fold(0.0, f64::max);
            let condition = &self.plan.conditions[place.condition];
            for (i, column) in condition.columns.iter().enumerate().filter(|_| !made.values.is_empty()) {
                let Some(metric) = column.key.clone() else { continue };
                entries.push(Entry {
                    scenario: condition.name.clone(),
                    controller: place.controller.clone(),
                    metric,
                    values: made.values.iter().map(|v| v[i]).collect(),
                    verdict,
                    missed,
                });
            }
        }
        entries
    }
}

/// One run; a fault of a controller's process is an error of it.
fn one(
    place: &Place,
    seed: u64,
    options: &RunOptions<'_>,
    faults: &(dyn Fn() -> Vec<String> + Sync),
) -> Result<RunResult, RunError> {
    let made = run(&place.scenario, seed, options);
    let faults = faults();
    match (made, faults.is_empty()) {
        (Ok(_), false) => Err(RunError::Live { what: faults.join("; ") }),
        (made, _) => made,
    }
}

/// The baseline's value beside the seed at a place in the order. Errors: there is none, in words.
fn of_baseline(plan: &Plan<'_>, baseline: Option<&Baseline>, asked: &Asked, at: usize) -> Result<Option<f64>, String> {
    let Some(baseline) = baseline else {
        return Err("there is no baseline: --save-baseline FILE writes one, --baseline FILE compares with it".into());
    };
    let place = &plan.places[asked.place];
    let condition = &plan.conditions[place.condition];
    let seed = plan.file.seed + at as u64;
    let key = condition.columns[asked.column].key.as_deref().unwrap_or_default();
    baseline
        .value(&condition.name, &place.controller, key, seed)
        .ok_or_else(|| format!("the baseline has no value of it with seed {seed}: --save-baseline FILE writes another"))
}

/// The seed, by its place in the order, that missed a budget by most.
fn worst(asked: &Asked, values: &[Option<f64>], others: &[Option<f64>]) -> Option<usize> {
    let off = |v: f64| libm::log(v.max(1e-9)).abs();
    let badness = |at: usize| {
        let other = others.get(at).copied().flatten();
        match (values[at], &asked.bound) {
            (None, _) => f64::INFINITY,
            (Some(v), Bound::Near(_)) => off(v),
            (Some(v), _) => match asked.better {
                Better::High => other.unwrap_or(0.0) - v,
                Better::Low => v - other.unwrap_or(0.0),
                Better::One => off(v),
            },
        }
    };
    let missed = (0..values.len()).filter(|&at| {
        let other = others.get(at).copied().flatten();
        !asked.bound.meets(asked.better, values[at], other)
    });
    missed.reduce(|a, b| if badness(b) > badness(a) { b } else { a })
}
