//! `weir judge paper`.

use crate::args::{FigureFormat, PaperArgs};
use crate::compare::{SIMULATED, finish, open_all, report_of, run_all, stopped, write_report};
use crate::output::{check_folder, print, print_report};
use crate::session::Session;
use crate::{Done, result_tables};
use schemars::JsonSchema;
use serde::Serialize;
use std::num::NonZeroU32;
use weir_judge::paper::Reproduction;
use weir_lab::compare::{KEPT_FLOWS, KEPT_RUNS, Plan, Repeat, Stopped};
use weir_lab::scenario::InputError;
use weir_report::figures::Format;

/// Runs of each scenario if neither the user nor the paper states a number.
const DEFAULT_RUNS: u32 = 5;

/// Output of `--json`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Json<'a> {
    /// Counts of finished and of planned runs, if a stop left some undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<&'a Stopped>,
    #[serde(flatten)]
    reproduction: &'a Reproduction,
}

pub(super) fn judge_paper(session: &Session, args: &PaperArgs) -> Done {
    let mut data = session.open_paper(&args.paper)?;
    if let Some(table) = &args.table {
        data = data.with_table(table)?;
    }
    let runs = args.runs.map_or(data.runs.unwrap_or(DEFAULT_RUNS), NonZeroU32::get);
    let repeat = Repeat { runs, own: args.runs.is_none(), seed: args.seed };
    let files = open_all(session, &data.scenarios())?;
    let plan = Plan::new(&files, None, repeat, &session.registry)?;
    if !plan.keeps_runs() {
        let message = format!(
            "{} runs: a paper's numbers need each run's result, and those of {KEPT_RUNS} runs and {KEPT_FLOWS} flows in them \
             are kept",
            plan.runs()
        );
        return Err(InputError::whole("--runs", message).help("fewer --runs, or one --table").into());
    }
    args.out.as_ref().map_or(Ok(()), |folder| check_folder("--out", folder))?;
    let outcome = run_all(session, &plan, &args.work, args.resume.as_deref())?;
    let runs: Vec<_> = outcome.runs().cloned().collect();
    let reproduction = weir_judge::paper::reproduce(&data.paper, &runs);
    // The report is written even if nobody reads the tables.
    let shown = if args.json {
        print_report("reproduce", &Json { stopped: outcome.stopped.as_ref(), reproduction: &reproduction })
    } else {
        print(&(stopped(&outcome) + &result_tables::reproduction(&reproduction)))
    };
    if let Some(folder) = args.out.as_ref().filter(|_| outcome.count() > 0) {
        let report = report_of(&data.paper.title, &outcome, SIMULATED, Some(reproduction));
        let format = |f: &FigureFormat| match f {
            FigureFormat::Svg => Format::Svg,
            FigureFormat::Pdf => Format::Pdf,
        };
        let formats: Vec<Format> = args.figures.iter().map(format).collect();
        write_report(&report, Some(&data), &outcome, (folder, &formats), args.work.quiet)?;
    }
    finish(outcome).and(shown)
}
