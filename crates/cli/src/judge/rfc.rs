//! `weir judge rfc`.

use crate::Done;
use crate::args::RfcArgs;
use crate::judge::rfc9743::judge_questions;
use crate::output::{Failure, print, print_report};
use crate::run::failure;
use crate::session::Session;
use crate::tables::{fold, table};
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use weir_judge::rfc::{Phase, SUITES, Suite, benchmark, judge};
use weir_judge::rfc9743;
use weir_lab::results::RunResult;
use weir_lab::run::run;
use weir_lab::scenario::{InputError, Scenario};

const LEGEND: &str = "each judged by its last 10 s. use: what the media flows carry over \
                      what fits, at least 85 % (in RFC 8867 beside TCP, the minimum rates). loss: at most 5 %. var: standard deviation over mean of a target, at most 0.15. \
                      fair: Jain's index at the end, at least 0.95. The criteria stand in docs/fidelity.md.";
/// The controllers on the card by default: those with recordings of their authors' programs.
const CONTROLLERS: [&str; 4] = ["gcc", "nada", "scream", "scream2"];

/// Output of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json {
    /// The cases, by controller.
    cases: Vec<Case>,
    /// Cases that were not run because of a stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

/// A case under a controller.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Case {
    /// The scenario.
    case: String,
    /// The controller.
    controller: String,
    /// The seed, with `--runs`; else it is the scenario's.
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    /// Whether every phase of every variant is passed.
    passed: bool,
    /// The phases, variant by variant.
    phases: Vec<Phase>,
}

/// Runs with TCP in place of the media flows, for each case, variant and seed that is compared with TCP.
type Benchmarks = BTreeMap<(String, Option<String>, u64), RunResult>;

/// One case of one controller, with a seed of its own or the scenario's.
#[derive(Clone, Copy)]
struct Asked<'a> {
    name: &'a str,
    controller: &'a str,
    seed: Option<u64>,
}

pub(super) fn judge_cases(session: &Session, args: &RfcArgs) -> Done {
    if args.suite == rfc9743::NAME {
        return judge_questions(session, args);
    }
    if !args.sections.is_empty() || args.jobs.is_some() {
        let message = format!("the suite {} has no sections, and makes one run after the other", args.suite);
        return Err(InputError::whole("--suite", message).help("--sections and --jobs are of rfc9743").into());
    }
    let controllers: Vec<String> = match &args.controllers[..] {
        [] => CONTROLLERS.iter().map(|c| (*c).to_owned()).collect(),
        given => given.to_vec(),
    };
    let suite = SUITES.iter().find(|s| s.name == args.suite).unwrap_or(&SUITES[0]);
    let seeds: Vec<Option<u64>> = match args.runs {
        None => vec![None],
        Some(runs) => (1..=u64::from(runs.get())).map(Some).collect(),
    };
    let (mut cases, mut missing, mut benchmarks) = (Vec::new(), Vec::new(), Benchmarks::new());
    let mut asked = Vec::new();
    for controller in &controllers {
        for name in suite.cases {
            asked.extend(seeds.iter().map(|&seed| Asked { name, controller, seed }));
        }
    }
    for (i, one_case) in asked.iter().enumerate() {
        let label = format!("{}, {} of {}", one_case.title(), i + 1, asked.len());
        let case = if session.stop.load(Ordering::Relaxed) {
            Err(Failure::Interrupted)
        } else {
            one(session, args.form.quiet, one_case, &label, &mut benchmarks)
        };
        match case {
            Ok(case) => cases.push(case),
            Err(Failure::Interrupted) => missing.push(one_case.title()),
            Err(e) => return Err(e),
        }
    }
    if args.form.markdown {
        print(&markdown(&cases))?;
    } else if args.form.json {
        print_report("scorecard", &Json { cases, missing: missing.clone() })?;
    } else {
        print(&text(suite, &cases, &missing))?;
    }
    if missing.is_empty() { Ok(()) } else { Err(Failure::Interrupted) }
}

impl Asked<'_> {
    fn title(&self) -> String {
        let seed = self.seed.map_or_else(String::new, |seed| format!(", seed {seed}"));
        format!("{} {}{seed}", self.name, self.controller)
    }
}

fn one(
    session: &Session,
    quiet: bool,
    asked: &Asked<'_>,
    label: &str,
    benchmarks: &mut Benchmarks,
) -> Result<Case, Failure> {
    let Asked { name, controller, seed } = *asked;
    let file = session.open(name)?;
    let mut phases = Vec::new();
    for scenario in file.scenarios(Some(&[controller.to_owned()]), &session.registry)? {
        let seed = seed.unwrap_or(scenario.seed);
        let result = measure(session, quiet, &scenario, seed, label)?;
        // The benchmark has no controller, so one run serves all of them.
        let tcp = match benchmark(&scenario) {
            None => None,
            Some(with_tcp) => match benchmarks.entry((name.to_owned(), scenario.variant.clone(), seed)) {
                Entry::Occupied(known) => Some(&*known.into_mut()),
                Entry::Vacant(place) => Some(&*place.insert(measure(session, quiet, &with_tcp, seed, label)?)),
            },
        };
        phases.extend(judge(&scenario, &result, tcp).unwrap_or_default());
    }
    let passed = !phases.is_empty() && phases.iter().all(|p| p.passed);
    Ok(Case { case: name.to_owned(), controller: controller.to_owned(), seed, passed, phases })
}

/// One run with its time series.
fn measure(session: &Session, quiet: bool, scenario: &Scenario, seed: u64, label: &str) -> Result<RunResult, Failure> {
    session.with_progress(quiet, true, |options, progress| {
        progress.set_message(label.to_owned());
        run(scenario, seed, options).map_err(failure)
    })
}

const HEADER: [&str; 7] = ["controller", "case", "use, %", "loss, %", "var", "fair", ""];

/// Runs of one case under one controller, with one seed or several.
type Group<'a> = Vec<&'a Case>;

/// The cases by controller and name, in the order in which they were run.
fn groups(cases: &[Case]) -> Vec<Group<'_>> {
    let is_same = |a: &Case, b: &Case| (&a.controller, &a.case) == (&b.controller, &b.case);
    cases.chunk_by(is_same).map(|runs| runs.iter().collect()).collect()
}

/// The worst value of each criterion over the phases.
fn cells(runs: &Group<'_>) -> [String; 7] {
    let phases = || runs.iter().flat_map(|c| &c.phases);
    let failed = phases().filter(|p| !p.passed).count();
    let [used, loss, variation, fairness] = worst(&phases().collect::<Vec<_>>());
    let (controller, case) = runs.first().map_or_else(Default::default, |c| (c.controller.clone(), c.case.clone()));
    let result =
        if runs.iter().all(|c| c.passed) { "pass".into() } else { format!("{failed}/{} fail", phases().count()) };
    [controller, case, used, loss, variation, fairness, result]
}

/// Use, loss, variation and fairness at their worst.
fn worst(phases: &[&Phase]) -> [String; 4] {
    let least = |of: fn(&Phase) -> Option<f64>| phases.iter().filter_map(|p| of(p)).reduce(f64::min);
    let most = |of: fn(&Phase) -> Option<f64>| phases.iter().filter_map(|p| of(p)).reduce(f64::max);
    let number =
        |v: Option<f64>, scale: f64, digits: usize| v.map_or_else(String::new, |v| format!("{:.digits$}", v * scale));
    [
        number(least(|p| Some(p.used)), 100.0, 0),
        number(most(|p| Some(p.loss)), 100.0, 1),
        number(most(|p| Some(p.variation)), 1.0, 2),
        number(least(|p| p.fairness), 1.0, 2),
    ]
}

fn text(suite: &Suite, cases: &[Case], missing: &[String]) -> String {
    let groups = groups(cases);
    let mut rows = table(&HEADER, HEADER.len());
    groups.iter().for_each(|runs| {
        rows.add_row(cells(runs));
    });
    let mut out = format!("{rows}\n");
    let seeds = groups.iter().map(Vec::len).max().unwrap_or(1);
    if seeds > 1 {
        out.push_str(&failures(&groups));
        for of in cases.chunk_by(|a, b| a.controller == b.controller) {
            out.push_str(&means(of, seeds));
        }
    } else {
        let passed = cases.iter().filter(|c| c.passed).count();
        let _ = writeln!(out, "{passed} of {} passed", cases.len());
    }
    if !missing.is_empty() {
        let _ = writeln!(out, "stopped: not run: {}", missing.join(", "));
    }
    out.push_str(&fold(&format!("Worst phases of each test case of {}, {LEGEND}\n", suite.title)));
    out
}

/// The phases that fail with some seed, a table for each controller: with how many of them, and the worst values of these seeds.
fn failures(groups: &[Group<'_>]) -> String {
    let header = ["case", "phase", "seeds", "use, %", "loss, %", "var", "fair"];
    let texts = 3;
    let mut out = String::new();
    for of in groups.chunk_by(|a, b| a.first().map(|c| &c.controller) == b.first().map(|c| &c.controller)) {
        let mut rows = table(&header, texts).keys(texts);
        for runs in of {
            let Some(first) = runs.first() else { continue };
            // Its section alone: the table above has the whole name.
            let section = first.case.split_once('-').map_or(&*first.case, |(section, _)| section);
            for (i, phase) in first.phases.iter().enumerate() {
                let failed: Vec<&Phase> = runs.iter().filter_map(|c| c.phases.get(i)).filter(|p| !p.passed).collect();
                if !failed.is_empty() {
                    let name = [&*phase.variant, &*phase.label].join(" ").trim().to_owned();
                    let seeds = format!("{} of {}", failed.len(), runs.len());
                    rows.add_row([section.to_owned(), name, seeds].into_iter().chain(worst(&failed)));
                }
            }
        }
        let controller = of.first().and_then(|runs| runs.first()).map_or("", |c| &c.controller);
        if !rows.is_empty() {
            let _ = writeln!(out, "Phases that fail of {controller}:\n{rows}");
        }
    }
    out
}

/// Phases and cases that a controller passes, in the mean of its seeds.
fn means(cases: &[Case], seeds: usize) -> String {
    let phases = || cases.iter().flat_map(|c| &c.phases);
    let mean = |count: usize| count as f64 / seeds as f64;
    let passed = cases.iter().filter(|c| c.passed).count();
    format!(
        "{}: {:.1} of {:.0} phases and {:.1} of {:.0} cases passed in the mean of {seeds} seeds\n",
        cases.first().map_or("", |c| &c.controller),
        mean(phases().filter(|p| p.passed).count()),
        mean(phases().count()),
        mean(passed),
        mean(cases.len()),
    )
}

/// The table of docs/fidelity.md.
fn markdown(cases: &[Case]) -> String {
    let mut out = format!("| {} |\n|---|---|---|---|---|---|---|\n", HEADER.join(" | "));
    for runs in groups(cases) {
        let _ = writeln!(out, "| {} |", cells(&runs).join(" | "));
    }
    out
}
