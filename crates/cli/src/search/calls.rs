//! `weir search calls`.

use super::counted;
use crate::Done;
use crate::args::CallsArgs;
use crate::fit::{changes, controllers};
use crate::output::{Failure, print, print_report, remark};
use crate::reading::heeding;
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use weir_judge::calls::{CallsDataset, CallsPlan, CallsSummary, Question, Verdicts, chunks, find, make_all, plan};
use weir_lab::scenario::suggest;

/// Causes that are shown; JSON has all.
const CAUSES: usize = 12;

/// Output of `weir search calls --json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CallsJson {
    /// Calls that the folder had whole before.
    kept: usize,
    /// Calls that were made, those that failed among them.
    made: usize,
    /// Calls that failed now, with a reason each in the table of failures.
    failed: usize,
    /// Calls that were not reached.
    missing: usize,
    /// All these calls.
    summary: CallsSummary,
}

pub(super) fn calls(session: &Session, args: &CallsArgs) -> Done {
    let names = controllers(&session.registry, &args.controllers)?;
    if let Some(name) = &args.controller {
        suggest::find(&session.registry, "--controller", name)?;
    }
    let changes = changes(&args.set)?;
    let question = Question {
        controllers: names.clone(),
        controller: args.controller.clone(),
        ceiling_bps: args.ceiling.map(|c| c.as_bps_f64()),
        draws: args.draws,
        set: changes.given().iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
        take_damaged: args.take_damaged,
    };
    let (paths, each_file) = (args.paths.clone(), args.each_file);
    let found = heeding(&session.stop, "the recordings", move || find(&paths, each_file))??;
    // Nothing is written where nothing is made.
    let dataset = match args.dry_run && !args.out.exists() {
        true => None,
        false => Some(CallsDataset::open(&args.out).map_err(Failure::Work)?),
    };
    let mut failed = BTreeSet::new();
    if let Some(dataset) = dataset.as_ref().filter(|_| !args.retry_failures) {
        failed.extend(dataset.failures().map_err(Failure::Work)?.into_keys());
    }
    let kept = dataset.as_ref().map_or(Ok(BTreeSet::new()), CallsDataset::keys).map_err(Failure::Work)?;
    let planned = session.with_progress(args.quiet, false, |options, progress| {
        let all = found.calls.len();
        let each = |n: usize| {
            progress.set_share(n as f64 / all as f64);
            progress.set_message(format!("reading {n} of {all} calls"));
        };
        plan(&found, &question, &kept, &failed, options.registry, options.stop, each)
    })?;
    let Some(mut planned) = planned else { return Err(Failure::Interrupted) };
    let missing = planned.tasks.len();
    let before = planned.calls - missing;
    if !args.quiet && found.passed_over > 0 {
        let first = found.passed_first.as_deref().map_or_else(String::new, |path| path.display().to_string());
        let such = if found.passed_over == 1 { first } else { format!("{first} and others") };
        remark(&format!("passed over: {}, which no reader recognises: {such}", counted(found.passed_over, "file")));
    }
    let Some(dataset) = dataset.filter(|_| !args.dry_run) else {
        let out = args.out.display();
        return print(&format!("{}: {before} kept in {out}, {missing} to make\n", counted(planned.calls, "call")));
    };
    let failed_before =
        failed.iter().filter(|key| planned.fits.contains(*key) || planned.controllers.contains(*key)).count();
    if args.retry_failures {
        dataset.forget_failures().map_err(Failure::Work)?;
    }
    let (mut done, mut failures, mut reasons) = (0_usize, 0_usize, Vec::new());
    let tasks = std::mem::take(&mut planned.tasks);
    session
        .with_progress(args.quiet, false, |options, progress| {
            let one = |result: &weir_judge::calls::CallResult| {
                done += 1;
                progress.set_share(done as f64 / missing as f64);
                progress.set_message(format!("{done} of {missing} calls"));
                failures += usize::from(!result.failures.is_empty());
                let room = 3_usize.saturating_sub(reasons.len());
                reasons.extend(result.failures.iter().take(room).map(|f| format!("{}: {}", f.call, f.error)));
            };
            let keep = |part: &[_]| dataset.keep(part);
            make_all(&chunks(tasks), threads(args.jobs), options.registry, options.stop, keep, one)
        })
        .map_err(Failure::Work)?;
    let summary = CallsSummary::of(&dataset, &planned, &names, args.controller.as_deref()).map_err(Failure::Work)?;
    let lost = missing - done;
    if args.json {
        let json = CallsJson { kept: before, made: done, failed: failures, missing: lost, summary };
        print_report("calls", &json)?;
    } else {
        let head = format!(
            "{}: {before} kept before, {done} made, {failures} failed; {}\n",
            counted(planned.calls, "call"),
            args.out.display()
        );
        print(&(head + &text(&summary, &planned)))?;
    }
    if !args.quiet {
        reasons.iter().for_each(|reason| remark(&format!("failed: {reason}")));
        super::failed_before(failed_before, "row", &args.out);
    }
    if lost > 0 {
        remark(&format!("{} missing: the same command makes the rest", counted(lost, "call")));
        return Err(Failure::Interrupted);
    }
    match failures {
        0 => Ok(()),
        n => Err(Failure::Work(format!(
            "{} failed: {} says why",
            counted(n, "call"),
            args.out.join("failures").display()
        ))),
    }
}

/// Better, worse and undecided.
fn verdicts(v: &Verdicts) -> String {
    format!("{}/{}/{}", v.better, v.worse, v.undecided)
}

fn text(summary: &CallsSummary, planned: &CallsPlan) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(&fold(text));
        out.push('\n');
    };
    if summary.copies > 0 {
        line(&format!("{} with the recordings of another: made once.", counted(summary.copies, "call")));
    }
    if summary.calls == 0 {
        line("No call has a fit.");
        return out;
    }
    let number = |v: Option<f64>, digits: usize| v.map_or("-".into(), |v| format!("{v:.digits$}"));
    line(&format!(
        "{} fitted: median capacity {} kbit/s, known in {} % of the time.",
        counted(summary.calls, "call"),
        number(summary.capacity_kbps, 0),
        number(summary.capacity_known_share.map(|s| s * 100.0), 0)
    ));
    if !planned.set.is_empty() {
        let all: Vec<String> = planned.set.iter().map(|(key, value)| format!("{key} {value}")).collect();
        line(&format!("Set: {}.", all.join("; ")));
    }
    match &summary.explained {
        Some(e) if e.not_explained == 0 => {
            line(&format!(
                "{} over the links has the recorded numbers: {} of {} calls.",
                e.controller, e.explained, e.explained
            ));
        }
        Some(e) => line(&format!(
            "The fit does not explain {} of {}: {} over the links is far from the recorded numbers. They are not compared below. Such are: {}.",
            e.not_explained,
            counted(e.explained + e.not_explained, "call"),
            e.controller,
            e.examples.join(", ")
        )),
        None if summary.controllers.is_empty() => {}
        None => line(
            "Whether the fits explain the calls is not checked: --controller NAME says which controller was recorded.",
        ),
    }
    let mut t =
        table(&["controller", "calls", "kbit/s", "rate", "delay p95 ms", "delay", "late or lost %", "frozen s"], 1)
            .spares(&["frozen s", "late or lost %"]);
    let m = &summary.recorded;
    let cells =
        |name: &str, calls: usize, m: &weir_judge::calls::Medians, rate: String, delay: String, lost: String| {
            [
                name.to_owned(),
                calls.to_string(),
                number(m.received_kbps, 0),
                rate,
                number(m.delay_p95_ms, 0),
                delay,
                lost,
                number(m.frozen_s, 1),
            ]
        };
    t.add_row(cells("recorded", summary.calls, m, "-".into(), "-".into(), "-".into()));
    for c in &summary.controllers {
        let lost = number(c.medians.lost_percent, 1);
        t.add_row(cells(&c.controller, c.calls, &c.medians, verdicts(&c.rate), verdicts(&c.delay), lost));
    }
    let _ = writeln!(out, "{t}");
    let mut line = |text: &str| {
        out.push_str(&fold(text));
        out.push('\n');
    };
    if !summary.controllers.is_empty() {
        line(
            "Medians over calls. Rate and delay: in how many calls better/worse/undecided than what was recorded; decided where the whole \
             interval is more than 15 % (of a delay also 5 ms) from it.",
        );
    }
    let mut head = vec!["first cause".to_owned(), "calls".into(), "episodes".into()];
    head.extend(summary.controllers.iter().map(|c| format!("{} rate", c.controller)));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut t = table(&head, 1);
    for c in summary.causes.iter().take(CAUSES) {
        let mut row = vec![c.cause.clone(), c.calls.to_string(), c.episodes.to_string()];
        row.extend(c.rate.iter().map(verdicts));
        t.add_row(row);
    }
    let _ = writeln!(out, "{t}");
    let more = summary.causes.len().saturating_sub(CAUSES);
    if more > 0 {
        let _ = writeln!(out, "and {} more: --json has all", counted(more, "cause"));
    }
    out
}
