//! `weir judge contradictions`.

use crate::Done;
use crate::args::ContradictionsArgs;
use crate::output::{Failure, print, print_report};
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use std::fmt::Write as _;
use weir_judge::contradictions::{Places, Scan, controllers, scan};

pub(super) fn find(session: &Session, args: &ContradictionsArgs) -> Done {
    let found = session.with_progress(args.form.quiet, true, |options, _| {
        let named = &args.controllers;
        let all = if named.is_empty() { controllers(options.registry) } else { named.clone() };
        let mut places = Places::default();
        places.add_rows(&all, options.registry)?;
        places.add_shipped(options.registry)?;
        places.add_links(&all, (args.seed, args.links), options.registry)?;
        Ok::<Scan, weir_lab::scenario::InputError>(scan(&places, threads(args.jobs), options))
    })?;
    if args.form.json {
        print_report("contradictions", &found)?;
    } else if args.form.markdown {
        print(&markdown(&found))?;
    } else {
        print(&text(&found))?;
    }
    match (found.undone, found.failed.len(), found.contradicting.len()) {
        (0, 0, 0) => Ok(()),
        (0, 0, n) => Err(Failure::Work(format!("{n} runs have numbers that contradict each other"))),
        (0, failed, _) => Err(Failure::Work(format!("{failed} runs failed: {}", found.failed.join("; ")))),
        _ => Err(Failure::Interrupted),
    }
}

/// Run with its seed, place and contradiction.
fn lines(found: &Scan) -> impl Iterator<Item = [String; 3]> {
    found.contradicting.iter().flat_map(|run| {
        let name = format!("{}, seed {}", run.run, run.seed);
        run.findings.iter().map(move |f| [name.clone(), f.place.clone(), f.says.clone()])
    })
}

fn text(found: &Scan) -> String {
    let mut out = String::new();
    if !found.contradicting.is_empty() {
        let mut rows = table(&["run", "place", "contradiction"], 3).keys(3);
        lines(found).for_each(|line| {
            rows.add_row(line);
        });
        let _ = writeln!(out, "{rows}");
    }
    out += &fold(&format!(
        "{} comparisons in {} runs: {} of them with contradictions.\n",
        found.comparisons,
        found.runs,
        found.contradicting.len()
    ));
    if found.undone > 0 {
        let _ = writeln!(out, "stopped: {} runs were not made", found.undone);
    }
    out
}

fn markdown(found: &Scan) -> String {
    let mut out = "| run | place | contradiction |\n|---|---|---|\n".to_owned();
    for [run, place, says] in lines(found) {
        let _ = writeln!(out, "| {run} | {place} | {says} |");
    }
    out
}
