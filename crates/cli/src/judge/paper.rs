//! `weir judge paper`.

mod all;

#[cfg(all(test, feature = "schema"))]
pub(crate) use all::Json as AllJson;

use crate::args::{AtEnd, FigureFormat, PaperArgs};
use crate::compare::{SIMULATED, finish, report_of, run_all, stopped, write_report};
use crate::output::{Failure, check_folder, print, print_report};
use crate::session::Session;
use crate::{Done, reproduction as tables};
use serde::Serialize;
use std::num::NonZeroU32;
use std::time::Instant;
use weir_judge::paper::Reproduction;
use weir_judge::paper::data::PaperData;
use weir_lab::compare::{KEPT_FLOWS, KEPT_RUNS, Outcome, Plan, Repeat, Stopped};
use weir_lab::scenario::InputError;
use weir_report::figures::Format;

/// Runs of each scenario if neither the user nor the paper states a number.
const DEFAULT_RUNS: u32 = 5;

/// Output of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json<'a> {
    /// Counts of finished and of planned runs, if a stop left some undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<&'a Stopped>,
    #[serde(flatten)]
    reproduction: &'a Reproduction,
}

pub(super) fn judge_paper(session: &Session, args: &PaperArgs) -> Done {
    if args.all {
        return all::judge_all(session, args);
    }
    let [name] = &args.papers[..] else {
        let message = format!("{} papers: one at a time", args.papers.len());
        return Err(InputError::whole("PAPER", message).help("--all shows the scores of several").into());
    };
    let mut data = opened(session, args, name)?;
    if let Some(table) = &args.table {
        data = data.with_table(table)?;
    }
    if args.out.is_none() {
        data = data.without_figures();
    }
    let plan = plan(session, args, &data)?;
    args.out.as_ref().map_or(Ok(()), |folder| check_folder("--out", folder))?;
    let (outcome, seconds) = timed(|| run_all(session, &plan, &args.work, args.resume.as_deref()));
    let outcome = outcome?;
    let reproduction = reproduction_of(&data, &outcome);
    // The report is written even if nobody reads the tables.
    let shown = if args.ends {
        print(&(stopped(&outcome) + &tables::ends(&reproduction, args.markdown)))
    } else if args.json {
        print_report("reproduce", &Json { stopped: outcome.stopped.as_ref(), reproduction: &reproduction })
    } else if args.markdown {
        // Runs that were kept took their time elsewhere.
        let seconds = args.resume.is_none().then_some(seconds);
        print(&(stopped(&outcome) + &tables::markdown(&reproduction, &command(args), seconds)))
    } else {
        print(&(stopped(&outcome) + &tables::text(&reproduction)))
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

/// A paper, at the ends that the arguments name.
fn opened(session: &Session, args: &PaperArgs, name: &str) -> Result<PaperData, Failure> {
    let mut data = session.open_paper(name)?;
    for AtEnd { id, end } in &args.at {
        data = data.at(id, *end)?;
    }
    Ok(if args.at.is_empty() { data } else { data.without_ends() })
}

/// The runs of a paper, or those of its score alone.
fn plan(session: &Session, args: &PaperArgs, data: &PaperData) -> Result<Plan, Failure> {
    let score = data.score.as_ref().filter(|_| args.all);
    let own = score.map(|s| s.runs).or(data.runs).unwrap_or(DEFAULT_RUNS);
    let runs = args.runs.map_or(own, NonZeroU32::get);
    let repeat = Repeat { runs, own: args.runs.is_none() && score.is_none(), seed: args.seed };
    let files = session.open_files_of(data)?;
    let mut plan = Plan::new(&files, None, repeat, &session.registry)?;
    if let Some(score) = score.filter(|_| args.runs.is_none()) {
        plan = plan.with_runs(|scenario| score.of(scenario));
    }
    if !plan.keeps_runs() {
        let message = format!(
            "{} runs: a paper's numbers need each run's result, and those of {KEPT_RUNS} runs and {KEPT_FLOWS} flows in them \
             are kept",
            plan.runs()
        );
        return Err(InputError::whole("--runs", message).help("fewer --runs, or one --table").into());
    }
    Ok(plan)
}

/// A paper's numbers beside those of its runs.
fn reproduction_of(data: &PaperData, outcome: &Outcome) -> Reproduction {
    let runs: Vec<_> = outcome.runs().cloned().collect();
    weir_judge::paper::reproduce(&data.paper, &runs)
}

/// The command that makes the same numbers.
fn command(args: &PaperArgs) -> String {
    let mut words = "weir judge paper".to_owned();
    if args.all {
        words += " --all";
    }
    for paper in &args.papers {
        words += &format!(" {paper}");
    }
    if let Some(table) = &args.table {
        words += &format!(" --table {table}");
    }
    if !args.at.is_empty() {
        let ends: Vec<String> = args.at.iter().map(|a| format!("{}={}", a.id, a.end + 1)).collect();
        words += &format!(" --at {}", ends.join(","));
    }
    if args.ends {
        words += " --ends";
    }
    if let Some(runs) = args.runs {
        words += &format!(" --runs {runs}");
    }
    if let Some(seed) = args.seed {
        words += &format!(" --seed {seed}");
    }
    words + " --markdown"
}

/// The result of work, and the seconds that it took.
#[expect(
    clippy::disallowed_methods,
    reason = "a table for readers says how long its runs took; no result depends on it"
)]
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begun = Instant::now();
    let done = work();
    (done, begun.elapsed().as_secs_f64())
}
