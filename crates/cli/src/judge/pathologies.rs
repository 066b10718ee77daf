//! `weir judge pathologies`.

use crate::Done;
use crate::args::PathologiesArgs;
use crate::output::{Failure, check_folder, print, print_report, remark};
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use std::fmt::Write as _;
use std::path::Path;
use weir_judge::pathologies::{Case, Page, Report, cases, judge, write};
use weir_lab::scenario::InputError;
use weir_report::page::shell_word;

const CASE_HEADS: [&str; 4] = ["case", "runs", "limits", "kept"];
const CONTROLLER_HEADS: [&str; 4] = ["controller", "limits", "kept", "by its own"];
const BROKEN_HEADS: [&str; 4] = ["not kept in", "under", "number", "limit"];

pub(super) fn judge_pathologies(session: &Session, args: &PathologiesArgs) -> Done {
    let chosen = choose(&args.cases)?;
    let mut controllers: Vec<String> = Vec::new();
    args.controllers.iter().for_each(|c| {
        if !controllers.contains(c) {
            controllers.push(c.clone());
        }
    });
    let named = (!controllers.is_empty()).then_some(controllers.as_slice());
    check_folder("--out", &args.out)?;
    let report = session
        .with_progress(args.form.quiet, false, |options, _| judge(&chosen, named, threads(args.jobs), options))?;
    // The page is written even if nobody reads the tables.
    let shown = if args.form.json {
        print_report("pathologies", &report)
    } else if args.form.markdown {
        print(&markdown(&report))
    } else {
        print(&text(&report))
    };
    write_page(&report, &args.out, args.form.quiet)?;
    match (report.undone, report.failed.len(), report.broken().count()) {
        (0, 0, 0) => shown,
        (0, 0, n) => Err(Failure::Work(format!("{n} limits are not kept"))),
        (0, failed, _) => Err(Failure::Work(format!("{failed} runs failed: {}", report.failed.join("; ")))),
        _ => Err(Failure::Interrupted),
    }
}

/// The cases that are asked for.
fn choose(wanted: &[String]) -> Result<Vec<Case>, Failure> {
    let all = cases();
    if let Some(unknown) = wanted.iter().find(|w| all.iter().all(|c| c.name != w.as_str())) {
        let known: Vec<&str> = all.iter().map(|c| c.name).collect();
        let message = format!("no case is named `{unknown}`");
        return Err(InputError::whole("--cases", message).help(format!("cases: {}", known.join(", "))).into());
    }
    Ok(all.into_iter().filter(|c| wanted.is_empty() || wanted.iter().any(|w| w == c.name)).collect())
}

fn write_page(report: &Report, folder: &Path, quiet: bool) -> Done {
    std::fs::create_dir_all(folder).map_err(|e| Failure::Work(format!("{}: {e}", folder.display())))?;
    let path = folder.join("pathologies.html");
    let words: Vec<String> = std::env::args().skip(1).map(|a| shell_word(&a)).collect();
    write(&Page { report, command: &format!("weir {}", words.join(" ")) }, &path).map_err(Failure::work)?;
    if !quiet {
        remark(&format!("written: {}", path.display()));
    }
    Ok(())
}

fn case_rows(report: &Report) -> impl Iterator<Item = [String; 4]> {
    report.cases.iter().map(|case| {
        let [limits, kept, _] = case.tally(None);
        [case.case.clone(), case.runs.to_string(), limits.to_string(), kept.to_string()]
    })
}

fn controller_rows(report: &Report) -> impl Iterator<Item = [String; 4]> {
    report.judged().into_iter().map(|controller| {
        let [limits, kept, own] = report.tally(Some(controller));
        [controller.to_owned(), limits.to_string(), kept.to_string(), own.to_string()]
    })
}

/// Case and variant, controller, number, limit.
fn broken_rows(report: &Report) -> impl Iterator<Item = [String; 4]> {
    report.broken().map(|(case, limit, verdict)| {
        let place = match limit.variant.as_str() {
            "" => case.case.clone(),
            variant => format!("{}, {variant}", case.case),
        };
        let number = format!("{}: {}", limit.quantity, verdict.text(limit.against, &limit.unit));
        let bounds = verdict.own.unwrap_or(limit.bounds).text(limit.against, &limit.unit);
        [place, verdict.controller.clone(), number, bounds]
    })
}

fn summary(report: &Report) -> String {
    let [limits, kept, own] = report.tally(None);
    format!(
        "{kept} of {limits} limits are kept, in {} runs; {own} of the limits are a controller's own, with their reasons on the page.",
        report.runs()
    )
}

fn text(report: &Report) -> String {
    let mut by_case = table(&CASE_HEADS, 1);
    case_rows(report).for_each(|row| by_case.add_row(row));
    let mut by_controller = table(&CONTROLLER_HEADS, 1);
    controller_rows(report).for_each(|row| by_controller.add_row(row));
    let mut out = format!("{by_case}\n{by_controller}\n");
    let mut broken = table(&BROKEN_HEADS, 4);
    broken_rows(report).for_each(|row| broken.add_row(row));
    if !broken.is_empty() {
        let _ = writeln!(out, "{broken}");
    }
    out += &fold(&format!("{}\n", summary(report)));
    if report.undone > 0 {
        let _ = writeln!(out, "stopped: {} runs were not made", report.undone);
    }
    out
}

fn markdown(report: &Report) -> String {
    let mut out = String::new();
    let mut add = |heads: &[&str], rows: Vec<[String; 4]>| {
        if !rows.is_empty() {
            let _ = writeln!(out, "| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()));
            rows.iter().for_each(|row| out += &format!("| {} |\n", row.join(" | ")));
            out.push('\n');
        }
    };
    add(&CASE_HEADS, case_rows(report).collect());
    add(&CONTROLLER_HEADS, controller_rows(report).collect());
    add(&BROKEN_HEADS, broken_rows(report).collect());
    format!("{out}{}\n", summary(report))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_chosen_by_name() {
        let names = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|w| (*w).to_owned()).collect();
            choose(&wanted).map(|c| c.into_iter().map(|c| c.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["mute", "layers"]).expect("known"), ["layers", "mute"]);
        assert_eq!(names(&[]).expect("all").len(), cases().len());
        let error = names(&["mutes"]).expect_err("no such case");
        assert!(format!("{error:?}").contains("mutes"), "{error:?}");
    }
}
