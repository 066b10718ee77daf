//! `weir compare`, and `weir` alone.

use crate::args::{CompareArgs, WorkArgs};
use crate::output::{Failure, check_folder, print, print_report, remark};
use crate::session::{Session, threads};
use crate::tables::fold;
use crate::{Done, reproduction, result_tables};
use serde::Serialize;
use std::path::Path;
use weir_judge::paper::data::PaperData;
use weir_judge::paper::{Cell, Claim, Reproduction, reproduce};
use weir_lab::compare::{Journal, KEPT_FLOWS, KEPT_RUNS, Outcome, OutcomeJson, Plan, Repeat};
use weir_lab::scenario::{Scenario, ScenarioFile};
use weir_report::figures::Format;
use weir_report::page::{self, Report};

/// Compared when no scenario is named.
const DEFAULT_PAPER: &str = "rmcat-comparison";
/// Compared beside the paper's controllers where none is named.
const BESIDE: &str = "sluice";
/// Line below the comparison of `weir` alone, which names the other commands.
const BEYOND: &str =
    "\nThere is more: one run explained (run --explain), judging, searching, real-time calls, media: weir --help\n";

/// Output of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json<'a> {
    #[serde(flatten)]
    outcome: OutcomeJson<'a>,
    /// Where a paper's scenarios were run: its numbers beside those measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    cells: Option<&'a [Cell]>,
    /// Likewise its claims.
    #[serde(skip_serializing_if = "Option::is_none")]
    claims: Option<&'a [Claim]>,
}

/// `weir` without a command: the comparison, and what else there is.
pub(crate) fn alone(session: &Session, args: &CompareArgs) -> Done {
    let done = compare(session, args);
    let is_plain = std::env::args_os().len() == 1;
    if done.is_ok() && is_plain {
        print(&fold(BEYOND))?;
    }
    done
}

pub(crate) fn compare(session: &Session, args: &CompareArgs) -> Done {
    let paper = if args.scenario.is_empty() { Some(session.open_paper(DEFAULT_PAPER)?) } else { None };
    let names = paper.as_ref().map_or_else(|| args.scenario.clone(), PaperData::scenarios);
    let repeat = Repeat { runs: args.runs.get(), own: false, seed: args.seed };
    let mut files = open_all(session, &names)?;
    if paper.is_some() {
        files = files.into_iter().map(|f| f.and_compares(BESIDE)).collect();
    }
    if args.controllers.is_some() && !args.work.quiet {
        for file in files.iter().filter(|f| f.controllers().is_empty()) {
            remark(&format!("`{}` names its controllers itself: --controllers changes nothing there", file.name()));
        }
    }
    if files.iter().any(|f| !f.controllers().is_empty()) {
        session.check_controllers("--controllers", args.controllers.as_deref().unwrap_or_default())?;
    }
    let plan = Plan::new(&files, args.controllers.as_deref(), repeat, &session.registry)?;
    check_folder("--out", &args.out)?;
    args.resume.as_ref().map_or(Ok(()), |folder| check_folder("--resume", folder))?;
    let outcome = run_all(session, &plan, &args.work, args.resume.as_deref())?;
    if !plan.keeps_runs() && !args.work.quiet {
        remark(&format!(
            "more than {KEPT_RUNS} runs, or {KEPT_FLOWS} flows in them: statistics alone are kept, and the first run of each \
             scenario and controller; paper and figures are left out"
        ));
    }
    let paper = paper.filter(|_| plan.keeps_runs());
    let reproduction = paper.as_ref().map(|p| {
        let runs: Vec<_> = outcome.runs().cloned().collect();
        let mut r = reproduce(&p.paper, &runs);
        // Controllers that were not requested are not reported.
        r.cells.retain(|c| c.measured.is_some());
        r.claims.retain(|c| c.holds.is_some());
        r
    });
    // The report is written even if nobody reads the tables.
    let shown = if args.json {
        let r = reproduction.as_ref();
        let (cells, claims) = (r.map(|r| &r.cells[..]), r.map(|r| &r.claims[..]));
        print_report("compare", &Json { outcome: outcome.json(), cells, claims })
    } else {
        let beside = reproduction.as_ref().map_or_else(String::new, reproduction::text);
        print(&(stopped(&outcome) + &result_tables::outcome(&outcome) + &beside))
    };
    if outcome.count() > 0 {
        let report = report_of("Congestion controllers compared", &outcome, SIMULATED, reproduction);
        write_report(&report, paper.as_ref(), &outcome, (&args.out, &[Format::Svg]), args.work.quiet)?;
    }
    finish(outcome).and(shown)
}

/// Scenarios by name or file; files of one name in different folders get names that tell them apart.
pub(crate) fn open_all(session: &Session, names: &[String]) -> Result<Vec<ScenarioFile>, Failure> {
    let mut files = names.iter().map(|name| session.open(name)).collect::<Result<Vec<_>, _>>()?;
    ScenarioFile::tell_apart(&mut files);
    Ok(files)
}

/// Makes all runs of a plan; those that finish are kept in `resume`, and those that it has are not made again.
pub(crate) fn run_all(
    session: &Session,
    plan: &Plan,
    work: &WorkArgs,
    resume: Option<&Path>,
) -> Result<Outcome, Failure> {
    let journal = resume.map(open_journal).transpose()?;
    let outcome = session.with_progress(work.quiet, true, |options, progress| {
        let begun = |s: &Scenario, seed: u64| progress.set_message(format!("{}, seed {seed}", s.label()));
        plan.run(threads(work.jobs), options, journal.as_ref(), &begun)
    });
    if let Some(journal) = &journal {
        if journal.found() > 0 && !work.quiet {
            let (found, all) = (journal.found(), plan.runs());
            remark(&format!("{found} of {all} runs were in {}", journal.path().display()));
        }
        match journal.error() {
            Some(error) => remark(&error),
            None if outcome.stopped.is_some() => {
                remark(&format!("finished runs are in {}: the same command makes the rest", journal.path().display()));
            }
            None => {}
        }
    }
    if outcome.count() == 0 && outcome.stopped.is_none() {
        finish(outcome)?;
        return Err(Failure::Work("no run has finished".into()));
    }
    Ok(outcome)
}

fn open_journal(folder: &Path) -> Result<Journal, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::Work(format!("--resume: this program's file: {e}")))?;
    Ok(Journal::open(folder, &program)?)
}

/// Line above the tables, if a stop cut the runs short.
pub(crate) fn stopped(outcome: &Outcome) -> String {
    outcome.stopped.as_ref().map_or_else(String::new, |s| format!("{s}\n\n"))
}

/// Words before and after "runs" in a report's first sentence.
pub(crate) const SIMULATED: [&str; 2] = ["simulated ", ""];

/// A number of runs, in words.
fn runs(count: u64, [before, after]: [&str; 2]) -> String {
    format!("{count} {before}run{}{after}", if count == 1 { "" } else { "s" })
}

/// The report of these runs; `made` is put before and after the word "runs".
pub(crate) fn report_of(title: &str, outcome: &Outcome, made: [&str; 2], reproduction: Option<Reproduction>) -> Report {
    let args: Vec<String> = std::env::args().skip(1).map(|a| page::shell_word(&a)).collect();
    let mut summary = runs(outcome.count(), made) + ".";
    if let Some(stopped) = &outcome.stopped {
        summary.push_str(&format!("\n\nIncomplete: {stopped}"));
    }
    if outcome.failed > 0 {
        let failed = runs(outcome.failed, ["", " failed"]);
        summary.push_str(&format!("\n\n{failed}: {}", outcome.failures.join("; ")));
    }
    Report {
        title: title.into(),
        summary,
        command: format!("weir {}", args.join(" ")).trim_end().into(),
        stopped: outcome
            .stopped
            .as_ref()
            .map(|s| page::Stopped { done: s.finished as usize, asked: s.planned as usize }),
        reproduction,
        scenarios: page::sections(outcome),
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
    page::write(report, &path).map_err(Failure::work)?;
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

/// Says what failed, once everything that did not has been shown.
pub(crate) fn finish(outcome: Outcome) -> Done {
    if let Some(stopped) = &outcome.stopped {
        remark(&stopped.to_string());
        return Err(Failure::Interrupted);
    }
    let unnamed = outcome.failed - outcome.failures.len() as u64;
    let mut failures = outcome.failures;
    if unnamed > 0 {
        failures.push(format!("and {unnamed} more"));
    }
    if failures.is_empty() { Ok(()) } else { Err(Failure::Work(failures.join("\n"))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_is_a_run_and_two_are_runs() {
        assert_eq!(runs(1, SIMULATED), "1 simulated run");
        assert_eq!(runs(2, SIMULATED), "2 simulated runs");
        assert_eq!(runs(0, ["", " failed"]), "0 runs failed");
    }
}
