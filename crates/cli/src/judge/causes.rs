//! `weir judge causes`.

use crate::Done;
use crate::args::CausesArgs;
use crate::output::{Failure, print, print_report};
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use serde::Serialize;
use std::fmt::Write as _;
use weir_judge::causes::{CauseScore, Confusion, Kind, LEVELS, MadeCall, Summary, confusion, judge};
use weir_lab::scenario::InputError;
use weir_timeline::why::Level;

/// Output of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct CausesJson {
    /// Each level of evidence.
    levels: Vec<LevelJson>,
    /// Each call on each level.
    calls: Vec<CauseScore>,
}

/// A level of evidence.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CausesOfLevel"))]
struct LevelJson {
    /// The level.
    level: Level,
    /// Calls on which bounds of rules are chosen.
    chosen_on: Summary,
    /// The other calls, which validate them.
    validated_on: Summary,
    /// Answers by cause, over all calls.
    confusion: Vec<Confusion>,
}

fn name(kind: Kind) -> String {
    kind.name().to_lowercase().replace(' ', "-")
}

/// The causes of these names. Errors: there is no such cause.
fn wanted(names: &[String]) -> Result<Vec<Kind>, InputError> {
    let one = |wanted: &String| {
        Kind::ALL.into_iter().find(|k| name(*k) == *wanted).ok_or_else(|| {
            let known: Vec<String> = Kind::ALL.into_iter().map(name).collect();
            InputError::whole("--cause", format!("no cause is named `{wanted}`"))
                .help(format!("causes: {}", known.join(", ")))
        })
    };
    names.iter().map(one).collect()
}

pub(super) fn judge_causes(session: &Session, args: &CausesArgs) -> Done {
    let wanted = wanted(&args.cause)?;
    let mut calls = MadeCall::generate(args.seed, args.calls, &args.controllers);
    calls.retain(|c| wanted.is_empty() || wanted.contains(&c.kind));
    let scores =
        session.with_progress(args.form.quiet, true, |options, _| judge(&calls, threads(args.jobs), options))?;
    let undone = calls.len() - scores.len() / LEVELS.len();
    let level = |level: Level| LevelJson {
        level,
        chosen_on: Summary::of(scores.iter().filter(|s| s.chosen_on), level),
        validated_on: Summary::of(scores.iter().filter(|s| !s.chosen_on), level),
        confusion: confusion(&scores, level),
    };
    let levels: Vec<LevelJson> = LEVELS.map(level).into();
    if args.form.json {
        print_report("causes", &CausesJson { levels, calls: scores })?;
    } else if args.form.markdown {
        print(&markdown(&levels))?;
    } else {
        print(&text(&levels))?;
    }
    if undone > 0 { Err(Failure::Interrupted) } else { Ok(()) }
}

fn evidence(level: Level) -> &'static str {
    match level {
        Level::Log => "the sender's log",
        Level::Statistics => "statistics of both ends",
        _ => "packets at both ends",
    }
}

/// A line of both halves.
fn shares(level: &LevelJson) -> String {
    let half = |s: &Summary| {
        format!(
            "{:.0} % of {} right, {:.1} % of {} wrong, {} of {} healthy ones alarmed",
            s.right * 100.0,
            s.judged,
            s.wrong * 100.0,
            s.calls,
            s.alarmed,
            s.healthy
        )
    };
    format!(
        "{}: where bounds are chosen {}; elsewhere {}.",
        evidence(level.level),
        half(&level.chosen_on),
        half(&level.validated_on)
    )
}

/// Answers, the most frequent first.
fn answers(row: &Confusion) -> String {
    let mut said: Vec<(&String, &usize)> = row.said.iter().collect();
    said.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    said.into_iter().map(|(answer, n)| format!("{answer} {n}")).collect::<Vec<_>>().join(", ")
}

const MEANING: &str = "A dash: nothing is said. No effect: the rate did not fall by a fifth over 3 s within 12 s, and nothing is said. Wrong: \
                       another answer, or one where there is no cause, with a confidence of one half or more.";

fn text(levels: &[LevelJson]) -> String {
    let mut out = String::new();
    for level in levels {
        let mut t = table(&["cause", "answers", "no effect"], 2).keys(1);
        level.confusion.iter().for_each(|r| t.add_row([r.cause.name().into(), answers(r), r.no_effect.to_string()]));
        let _ = writeln!(out, "{}\n{t}", fold(&shares(level)));
    }
    out + &fold(MEANING) + "\n"
}

fn markdown(levels: &[LevelJson]) -> String {
    let mut out = String::from("| cause | packets | log | statistics |\n|---|---|---|---|\n");
    for kind in Kind::ALL {
        let of = |l: &LevelJson| l.confusion.iter().find(|r| r.cause == kind).map_or("-".into(), answers);
        let cells: Vec<String> = levels.iter().map(of).collect();
        let _ = writeln!(out, "| {} | {} |", kind.name(), cells.join(" | "));
    }
    out.push('\n');
    levels.iter().for_each(|l| out += &format!("- {}\n", shares(l)));
    out
}
