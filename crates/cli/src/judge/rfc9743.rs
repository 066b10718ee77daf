//! `weir judge rfc --suite rfc9743`.

use crate::Done;
use crate::args::RfcArgs;
use crate::output::{Failure, print, print_report};
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use std::fmt::Write as _;
use std::num::NonZeroU32;
use weir_judge::rfc9743::{Answers, Bound, CheckAnswer, Question, judge, questions};
use weir_judge::rows::shown;
use weir_lab::scenario::InputError;

/// The controllers by default: the first one is judged, the others stand beside it.
const CONTROLLERS: [&str; 3] = ["sluice", "gcc", "scream2"];
/// Runs of each case.
const RUNS: u32 = 3;

pub(super) fn judge_questions(session: &Session, args: &RfcArgs) -> Done {
    let controllers: Vec<String> = match &args.controllers[..] {
        [] => CONTROLLERS.iter().map(|c| (*c).to_owned()).collect(),
        given => given.to_vec(),
    };
    let chosen = choose(&args.sections)?;
    let runs = args.runs.map_or(RUNS, NonZeroU32::get);
    let answers = session.with_progress(args.form.quiet, true, |options, progress| {
        judge(&chosen, &controllers, runs, threads(args.jobs), options, &|what| progress.set_message(what.to_owned()))
    })?;
    if args.form.json {
        print_report("questions", &answers)?;
    } else if args.form.markdown {
        print(&markdown(&answers))?;
    } else {
        print(&text(&answers))?;
    }
    match (answers.undone, answers.failed.len()) {
        (0, 0) => Ok(()),
        (0, failed) => Err(Failure::Work(format!("{failed} runs failed: {}", answers.failed.join("; ")))),
        _ => Err(Failure::Interrupted),
    }
}

/// The questions of the sections asked for: whole numbers, or the beginning of one up to a dot.
fn choose(wanted: &[String]) -> Result<Vec<Question>, Failure> {
    let is_of = |q: &Question, w: &str| {
        let mut sections = q.section.split(", ");
        sections.any(|s| s.strip_prefix(w).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    let all = questions();
    if let Some(unknown) = wanted.iter().find(|w| !all.iter().any(|q| is_of(q, w))) {
        let known: Vec<&str> = all.iter().map(|q| q.section).collect();
        let message = format!("no question is of section `{unknown}`");
        return Err(InputError::whole("--sections", message).help(format!("sections: {}", known.join(", "))).into());
    }
    Ok(all.into_iter().filter(|q| wanted.is_empty() || wanted.iter().any(|w| is_of(q, w))).collect())
}

fn bound(bound: Bound) -> String {
    match bound {
        Bound::Least(v) => format!("≥ {}", shown(Some(v))),
        Bound::Most(v) => format!("≤ {}", shown(Some(v))),
        Bound::Shown => "-".into(),
    }
}

fn name(check: &CheckAnswer) -> String {
    if check.unit.is_empty() { check.quantity.clone() } else { format!("{}, {}", check.quantity, check.unit) }
}

fn text(answers: &Answers) -> String {
    let heads: Vec<&str> =
        ["section", "number", "bound"].into_iter().chain(answers.controllers.iter().map(String::as_str)).collect();
    let mut rows = table(&heads, 2).keys(2);
    for question in &answers.questions {
        for check in question.cases.iter().flat_map(|c| &c.checks) {
            let values = check
                .values
                .iter()
                .map(|v| format!("{}{}", shown(v.value), if v.kept == Some(false) { "x" } else { " " }));
            let head = [question.section.clone(), name(check), bound(check.bound)];
            rows.add_row(head.into_iter().chain(values).collect::<Vec<_>>());
        }
    }
    let mut out = format!("{rows}\n");
    for tally in &answers.tallies {
        let _ = writeln!(out, "{}: {} of {} bounds kept", tally.controller, tally.kept, tally.bounds);
    }
    if answers.undone > 0 {
        let _ = writeln!(out, "stopped: {} runs were not made", answers.undone);
    }
    let seeds = match answers.runs {
        1 => "one seed".to_owned(),
        runs => format!("means over {runs} seeds"),
    };
    out += &fold(&format!(
        "Questions of RFC 9743 by section; {seeds}, of the worst variant; x: the bound is not kept; -: nothing is asked, or never. \
         --json has the reason of each bound, the worst variant and the command of each run.\n"
    ));
    out
}

/// The tables of docs/sluice-rfc9743.md.
fn markdown(answers: &Answers) -> String {
    let mut out = String::new();
    for question in &answers.questions {
        let _ = write!(out, "### {}: {}\n\nAsked: {}.\n\n", question.section, question.title, question.asks);
        let _ = writeln!(out, "| number | bound | {} | run |", answers.controllers.join(" | "));
        let _ = writeln!(out, "|---|---|{}---|", "---|".repeat(answers.controllers.len()));
        let mut reasons: Vec<&str> = Vec::new();
        for case in &question.cases {
            let first = case.command.strip_prefix("weir ").unwrap_or(&case.command);
            let first = first.split(" --controller").next().unwrap_or(first);
            let run =
                if case.variants.is_empty() { format!("`{first}`") } else { format!("`{first}`: {}", case.variants) };
            for check in &case.checks {
                let values = check.values.iter().map(|v| {
                    let missed = if v.kept == Some(false) { " **missed**" } else { "" };
                    let at = if v.variant.is_empty() { String::new() } else { format!(" ({})", v.variant) };
                    format!("{}{missed}{at}", shown(v.value))
                });
                let values: Vec<String> = values.collect();
                let _ = writeln!(out, "| {} | {} | {} | {run} |", name(check), bound(check.bound), values.join(" | "));
                if check.bound != Bound::Shown && !reasons.contains(&check.why.as_str()) {
                    reasons.push(&check.why);
                }
            }
        }
        if !reasons.is_empty() {
            let _ = write!(out, "\nBounds: {}.\n", reasons.join("; "));
        }
        out.push('\n');
    }
    for tally in &answers.tallies {
        let _ = writeln!(out, "- `{}`: {} of {} bounds kept", tally.controller, tally.kept, tally.bounds);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_chosen_by_their_beginning() {
        let of = |wanted: &str| choose(&[wanted.to_owned()]).map(|q| q.iter().map(|q| q.section).collect::<Vec<_>>());
        assert_eq!(of("5.2").expect("known"), ["5.2.1", "5.2.2", "5.2.3"]);
        assert_eq!(of("6.3").expect("known"), ["6.1, 6.3"]);
        assert_eq!(of("7.1").expect("known"), ["7.1"]);
        assert!(of("9").is_err());
        assert_eq!(choose(&[]).expect("all").len(), questions().len());
    }
}
