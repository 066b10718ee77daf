//! `weir judge twins`, and `weir show twins`.

use crate::Done;
use crate::args::TwinsArgs;
use crate::output::{Failure, print, print_report};
use crate::run::failure;
use crate::session::Session;
use crate::tables::{fold, table};
use serde::Serialize;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use weir_judge::twins::{self, Change, Delays, FlowScore, Score, Twin};
use weir_lab::run::run;

const LEGEND: &str = "Recorded values of the authors' program stand before the slash, Weir's behind it. Area: between the two rate \
                      curves, as a share of the area under the recorded one, for each flow. With several flows also, as \
                      `sorted`, with each second's rates sorted, and Weir's the mean of ten starts: the order of the flows is chance. \
                      As `starts`, the same with the mean of the program's own ten starts in place of its one recording, where \
                      they are stored. \
                      Delays: percentiles of the first flow's one-way delay. Times: until the target follows each change of capacity, \
                      in rows of half a second. A twin is near with areas (the last kind that is shown) of at most 10 % and times \
                      within 20 %, or 0.3 s.";

/// Output of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Json {
    /// The scores, in the order of the twins.
    scores: Vec<Score>,
    /// Twins that are near.
    near: usize,
    /// Twins that were not run because of a stop.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

pub(crate) fn list(session: &Session) -> Done {
    let mut list = table(&["twin", "link", "program"], 3);
    for name in twins::names() {
        let twin = Twin::by_name(name, &session.registry)?;
        list.add_row([twin.name, twin.title, format!("{}, {}", twin.program.title, twin.program.version)]);
    }
    print(&format!("{list}\n"))
}

pub(super) fn judge_twins(session: &Session, args: &TwinsArgs) -> Done {
    let wanted: Vec<String> =
        if args.names.is_empty() { twins::names().map(str::to_owned).collect() } else { args.names.clone() };
    let twins = wanted.iter().map(|n| Twin::by_name(n, &session.registry)).collect::<Result<Vec<_>, _>>()?;
    let mut scores = Vec::new();
    let mut missing = Vec::new();
    for (i, twin) in twins.iter().enumerate() {
        if session.stop.load(Ordering::Relaxed) {
            missing.push(twin.name.clone());
            continue;
        }
        let result: Result<Vec<_>, _> = session.with_progress(args.form.quiet, true, |options, progress| {
            progress.set_message(format!("{}, {} of {}", twin.name, i + 1, twins.len()));
            twin.starts().iter().map(|s| run(s, s.seed, options).map_err(failure)).collect()
        });
        match result {
            Ok(result) => scores.extend(twin.score(&result)),
            Err(Failure::Interrupted) => missing.push(twin.name.clone()),
            Err(e) => return Err(e),
        }
    }
    let near = scores.iter().filter(|s| s.near).count();
    if args.form.markdown {
        print(&markdown(&scores))?;
    } else if args.form.json {
        print_report("twin", &Json { scores, near, missing: missing.clone() })?;
    } else {
        print(&text(&scores, near, &missing))?;
    }
    if missing.is_empty() { Ok(()) } else { Err(Failure::Interrupted) }
}

fn text(scores: &[Score], near: usize, missing: &[String]) -> String {
    let mut rows = table(&HEADER, HEADER.len());
    scores.iter().for_each(|s| rows.add_row(cells(s)));
    let mut out = format!("{rows}\n{near} of {} near\n", scores.len());
    if !missing.is_empty() {
        let _ = writeln!(out, "stopped: not run: {}", missing.join(", "));
    }
    out.push_str(&fold(&format!("{LEGEND}\n")));
    out
}

const HEADER: [&str; 6] = ["twin", "area, %", "p50, ms", "p95, ms", "times, s", ""];

/// The table of docs/fidelity.md.
fn markdown(scores: &[Score]) -> String {
    let mut out = format!("| {} |\n|---|---|---|---|---|---|\n", HEADER.join(" | "));
    for s in scores {
        let _ = writeln!(out, "| {} |", cells(s).join(" | "));
    }
    out
}

fn cells(s: &Score) -> [String; 6] {
    let joined = |parts: Vec<String>| parts.join(" ");
    let first = s.flows.first();
    let delay = |of: fn(&Delays) -> Option<f64>| {
        first.map_or_else(String::new, |f| format!("{}/{}", whole(of(&f.recorded_delay_ms)), whole(of(&f.delay_ms))))
    };
    [
        s.twin.clone(),
        areas(s),
        delay(|d| d.p50),
        delay(|d| d.p95),
        joined(s.changes.iter().map(times).collect()),
        if s.near { "near" } else { "far" }.into(),
    ]
}

fn areas(s: &Score) -> String {
    let percent = |areas: &mut dyn Iterator<Item = f64>| -> String {
        areas.map(|a| format!("{:.1}", a * 100.0)).collect::<Vec<_>>().join(" ")
    };
    let mut all = percent(&mut s.flows.iter().map(|f| f.area));
    for (name, area) in
        [("sorted", (|f| f.sorted_area) as fn(&FlowScore) -> Option<f64>), ("starts", |f| f.starts_area)]
    {
        let percents = percent(&mut s.flows.iter().filter_map(area));
        if !percents.is_empty() {
            let _ = write!(all, "; {name} {percents}");
        }
    }
    all
}

fn whole(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |v| format!("{v:.0}"))
}

fn times(change: &Change) -> String {
    let time = |t: Option<f64>| t.map_or_else(|| "-".into(), |t| format!("{t:.1}"));
    format!("{}/{}", time(change.recorded_s), time(change.followed_s))
}
