//! `weir compare`, and `weir` alone.

use crate::args::{CompareArgs, WorkArgs};
use crate::output::{Failure, print, print_json, remark};
use crate::session::{Session, threads};
use crate::{Done, tables};
use serde::Serialize;
use std::path::Path;
use weir_lab::measure::compare::{Outcome, OutcomeJson, Plan, Repeat};
use weir_lab::measure::scenario::ScenarioFile;
use weir_lab::publish::figures::Format;
use weir_lab::publish::papers::PaperData;
use weir_lab::publish::report::{self, Report};
use weir_lab::publish::reproduce::{Cell, Claim, Reproduction, reproduce};

/// Compared when no scenario is named.
const DEFAULT_PAPER: &str = "rmcat-comparison";

#[derive(Serialize)]
struct Json<'a> {
    #[serde(flatten)]
    outcome: OutcomeJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cells: Option<&'a [Cell]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    claims: Option<&'a [Claim]>,
}

pub(crate) fn compare(session: &Session, args: &CompareArgs) -> Done {
    let paper = if args.scenario.is_empty() { Some(PaperData::open(DEFAULT_PAPER)?) } else { None };
    let names = paper.as_ref().map_or_else(|| args.scenario.clone(), PaperData::scenarios);
    let repeat = Repeat { runs: args.runs.get(), own: false, seed: args.seed };
    let outcome = run_all(session, &names, args.controllers.as_deref(), repeat, &args.work)?;

    let reproduction = paper.as_ref().map(|p| {
        let runs: Vec<_> = outcome.runs().cloned().collect();
        let mut r = reproduce(&p.paper, &runs);
        // Controllers that were not requested are not reported.
        r.cells.retain(|c| c.measured.is_some());
        r.claims.retain(|c| c.holds.is_some());
        r
    });
    if args.json {
        let r = reproduction.as_ref();
        let (cells, claims) = (r.map(|r| &r.cells[..]), r.map(|r| &r.claims[..]));
        print_json(&Json { outcome: outcome.json(), cells, claims })?;
    } else {
        print(&tables::outcome(&outcome))?;
        if let Some(r) = &reproduction {
            print(&tables::reproduction(r))?;
        }
    }
    let report = report_of("Congestion controllers compared", &outcome, reproduction);
    write_report(&report, paper.as_ref(), &outcome, (&args.out, &[Format::Svg]), args.work.quiet)?;
    finish(outcome)
}

/// Runs scenarios by name or file under the controllers given, or those that each compares.
pub(crate) fn run_all(
    session: &Session,
    names: &[String],
    controllers: Option<&[String]>,
    repeat: Repeat,
    work: &WorkArgs,
) -> Result<Outcome, Failure> {
    let open = |name: &String| ScenarioFile::open(name, &session.registry);
    let files = names.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let plan = Plan::new(&files, controllers, repeat, &session.registry)?;
    let outcome = session.with_progress(work.quiet, true, |options| plan.run(threads(work.threads), options));
    if outcome.runs().next().is_none() {
        finish(outcome)?;
        return Err(Failure::Work("no run has finished".into()));
    }
    Ok(outcome)
}

pub(crate) fn report_of(title: &str, outcome: &Outcome, reproduction: Option<Reproduction>) -> Report {
    let args: Vec<String> = std::env::args().skip(1).map(|a| report::shell_word(&a)).collect();
    Report {
        title: title.into(),
        summary: format!("{} simulated runs.", outcome.runs().count()),
        command: format!("weir {}", args.join(" ")).trim_end().into(),
        stopped: None,
        reproduction,
        scenarios: report::sections(outcome),
    }
}

/// Writes the report, with a paper's figures if there are any.
pub(crate) fn write_report(
    report: &Report,
    paper: Option<&PaperData>,
    outcome: &Outcome,
    (folder, formats): (&Path, &[Format]),
    quiet: bool,
) -> Done {
    let fail = |e: std::io::Error| Failure::Work(format!("{}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(fail)?;
    let path = folder.join("report.html");
    report::write(report, &path).map_err(Failure::work)?;
    let mut written = vec![path];
    if let Some(paper) = paper {
        let runs: Vec<_> = outcome.runs().collect();
        written.extend(paper.write_figures(&runs, folder, formats).map_err(fail)?);
    }
    if !quiet {
        written.iter().for_each(|p| remark(&format!("written: {}", p.display())));
    }
    Ok(())
}

/// Reports failures, after all results have been shown.
pub(crate) fn finish(outcome: Outcome) -> Done {
    if outcome.stopped {
        return Err(Failure::Interrupted);
    }
    if outcome.failures.is_empty() { Ok(()) } else { Err(Failure::Work(outcome.failures.join("\n"))) }
}
