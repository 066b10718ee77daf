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
    /// Whether every phase of every variant is passed.
    passed: bool,
    /// The phases, variant by variant.
    phases: Vec<Phase>,
}

/// Runs with TCP in place of the media flows, for each case and variant that is compared with TCP.
type Benchmarks = BTreeMap<(String, Option<String>), RunResult>;

pub(super) fn judge_cases(session: &Session, args: &RfcArgs) -> Done {
    if args.suite == rfc9743::NAME {
        return judge_questions(session, args);
    }
    if !args.sections.is_empty() || args.runs.is_some() || args.jobs.is_some() {
        let message =
            format!("the suite {} has no sections, and one run of each case, one after the other", args.suite);
        return Err(InputError::whole("--suite", message).help("--sections, --runs and --jobs are of rfc9743").into());
    }
    let controllers: Vec<String> = match &args.controllers[..] {
        [] => CONTROLLERS.iter().map(|c| (*c).to_owned()).collect(),
        given => given.to_vec(),
    };
    let suite = SUITES.iter().find(|s| s.name == args.suite).unwrap_or(&SUITES[0]);
    let (mut cases, mut missing, mut benchmarks) = (Vec::new(), Vec::new(), Benchmarks::new());
    let all = suite.cases.len() * controllers.len();
    for (k, controller) in controllers.iter().enumerate() {
        for (i, name) in suite.cases.iter().enumerate() {
            let number = k * suite.cases.len() + i + 1;
            let case = if session.stop.load(Ordering::Relaxed) {
                Err(Failure::Interrupted)
            } else {
                let label = format!("{name} {controller}, {number} of {all}");
                one(session, args.form.quiet, name, controller, &label, &mut benchmarks)
            };
            match case {
                Ok(case) => cases.push(case),
                Err(Failure::Interrupted) => missing.push(format!("{name} {controller}")),
                Err(e) => return Err(e),
            }
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

fn one(
    session: &Session,
    quiet: bool,
    name: &str,
    controller: &str,
    label: &str,
    benchmarks: &mut Benchmarks,
) -> Result<Case, Failure> {
    let file = session.open(name)?;
    let mut phases = Vec::new();
    for scenario in file.scenarios(Some(&[controller.to_owned()]), &session.registry)? {
        let result = measure(session, quiet, &scenario, label)?;
        // The benchmark has no controller, so one run serves all of them.
        let tcp = match benchmark(&scenario) {
            None => None,
            Some(with_tcp) => match benchmarks.entry((name.to_owned(), scenario.variant.clone())) {
                Entry::Occupied(known) => Some(&*known.into_mut()),
                Entry::Vacant(place) => Some(&*place.insert(measure(session, quiet, &with_tcp, label)?)),
            },
        };
        phases.extend(judge(&scenario, &result, tcp).unwrap_or_default());
    }
    let passed = !phases.is_empty() && phases.iter().all(|p| p.passed);
    Ok(Case { case: name.to_owned(), controller: controller.to_owned(), passed, phases })
}

/// One run with its time series.
fn measure(session: &Session, quiet: bool, scenario: &Scenario, label: &str) -> Result<RunResult, Failure> {
    session.with_progress(quiet, true, |options, progress| {
        progress.set_message(label.to_owned());
        run(scenario, scenario.seed, options).map_err(failure)
    })
}

const HEADER: [&str; 7] = ["controller", "case", "use, %", "loss, %", "var", "fair", ""];

/// The worst value of each criterion over the phases.
fn cells(case: &Case) -> [String; 7] {
    let least = |of: fn(&Phase) -> Option<f64>| case.phases.iter().filter_map(of).reduce(f64::min);
    let most = |of: fn(&Phase) -> Option<f64>| case.phases.iter().filter_map(of).reduce(f64::max);
    let number =
        |v: Option<f64>, scale: f64, digits: usize| v.map_or_else(String::new, |v| format!("{:.digits$}", v * scale));
    let failed = case.phases.iter().filter(|p| !p.passed).count();
    [
        case.controller.clone(),
        case.case.clone(),
        number(least(|p| Some(p.used)), 100.0, 0),
        number(most(|p| Some(p.loss)), 100.0, 1),
        number(most(|p| Some(p.variation)), 1.0, 2),
        number(least(|p| p.fairness), 1.0, 2),
        if case.passed { "pass".into() } else { format!("{failed}/{} fail", case.phases.len()) },
    ]
}

fn text(suite: &Suite, cases: &[Case], missing: &[String]) -> String {
    let mut rows = table(&HEADER, HEADER.len());
    cases.iter().for_each(|c| rows.add_row(cells(c)));
    let passed = cases.iter().filter(|c| c.passed).count();
    let mut out = format!("{rows}\n{passed} of {} passed\n", cases.len());
    if !missing.is_empty() {
        let _ = writeln!(out, "stopped: not run: {}", missing.join(", "));
    }
    out.push_str(&fold(&format!("Worst phases of each test case of {}, {LEGEND}\n", suite.title)));
    out
}

/// The table of docs/fidelity.md.
fn markdown(cases: &[Case]) -> String {
    let mut out = format!("| {} |\n|---|---|---|---|---|---|---|\n", HEADER.join(" | "));
    for case in cases {
        let _ = writeln!(out, "| {} |", cells(case).join(" | "));
    }
    out
}
