//! `weir judge fits`.

use crate::Done;
use crate::args::FitsArgs;
use crate::output::{Failure, print, print_report, remark};
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;
use weir_judge::fits::{FitScore, Kind, KnownLink, Summary, Trial, judge};

/// Output of `--json`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct FitsJson {
    /// The recorded controller.
    recorded: String,
    /// All links.
    summary: Summary,
    /// Each link.
    links: Vec<FitScore>,
    /// Links without a score, and why.
    failed: Vec<String>,
}

pub(super) fn judge_fits(session: &Session, args: &FitsArgs) -> Done {
    let links = KnownLink::generate(args.seed, args.links);
    let trial = Trial {
        recorded: args.recorded.clone(),
        predicted: args.controllers.clone(),
        draws: args.draws,
        by_seconds: args.statistics,
    };
    if let Some(folder) = &args.save {
        return save(folder, &links, &trial);
    }
    let (scores, failed) = session
        .with_progress(args.form.quiet, true, |options, _| judge(&links, &trial, threads(args.jobs), options))?;
    let undone = links.len() - scores.len() - failed.len();
    let summary = Summary::of(&scores);
    if args.form.json {
        print_report("fits", &FitsJson { recorded: args.recorded.clone(), summary, links: scores, failed })?;
    } else if args.form.markdown {
        print(&markdown(&scores, &summary))?;
    } else {
        print(&text(&scores, &summary, &failed))?;
    }
    if undone > 0 { Err(Failure::Interrupted) } else { Ok(()) }
}

/// Writes the links as scenarios of all controllers of the trial.
fn save(folder: &Path, links: &[KnownLink], trial: &Trial) -> Done {
    let all: Vec<String> = [&trial.recorded].into_iter().chain(&trial.predicted).cloned().collect();
    let failed = |e: std::io::Error| Failure::Work(format!("--save {}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    for link in links {
        let path = folder.join(format!("link-{:02}.toml", link.number));
        std::fs::write(path, link.comparison(&all)).map_err(failed)?;
    }
    remark(&format!("{} scenarios: {}", links.len(), folder.display()));
    Ok(())
}

/// A row a kind: links, share of the time in which the capacity is known, near fits and near predictions.
fn rows(scores: &[FitScore]) -> Vec<Vec<String>> {
    let row = |kind: Option<Kind>| {
        let of: Vec<FitScore> = scores.iter().filter(|s| kind.is_none_or(|k| s.kind == k)).cloned().collect();
        let known = of.iter().map(|s| s.known).sum::<f64>() / of.len().max(1) as f64;
        let s = Summary::of(&of);
        let near = |share: f64, count: usize| if count == 0 { "-".to_owned() } else { format!("{:.0}", share * 100.0) };
        let count = |f: fn(&FitScore) -> bool| of.iter().filter(|s| f(s)).count();
        vec![
            kind.map_or("all", Kind::name).to_owned(),
            of.len().to_string(),
            format!("{:.0}", known * 100.0),
            near(s.capacity_near, count(|s| s.capacity_error.is_some())),
            near(s.delay_near, count(|s| s.delay_error_ms.is_some())),
            near(s.queue_near, count(|s| s.queue_ratio.is_some())),
            near(s.goodput_near, of.len()),
            near(s.delay_p95_near, of.len()),
            near(s.both_near, of.len()),
            near(s.naive[0], of.len()),
            near(s.ibox[0], of.len()),
            near(s.ibox_reactive[0], of.len()),
            near(s.ceiling[0], of.len()),
        ]
    };
    Kind::ALL.into_iter().map(Some).chain([None]).map(row).filter(|r| r[1] != "0").collect()
}

const HEADS: [&str; 13] = [
    "link", "n", "known", "capacity", "delay", "queue", "goodput", "p95", "both", "naive", "iBox", "reactive",
    "ceiling",
];

const MEANING: &str = "In percent. Known: time in which the capacity is known. Near, of links: capacity within a tenth where it is known, delay \
                       within 3 ms, the queue\'s room within a fifth. Near, of predictions: goodput, 95th percentile of the delay, and both, \
                       within 15 %; naive: both, where the rate that arrived is taken for the capacity; iBox and reactive: both, over the links of iBox\'s two models; \
                       ceiling: both, of a run over the true link with another seed.";

fn covered(s: &Summary) -> String {
    format!(
        "In the intervals of 90 %: {:.0} % of the goodputs and {:.0} % of the delays. Order of controllers whose goodput differs by a tenth: \
         {:.0} % right.",
        s.covered[0] * 100.0,
        s.covered[1] * 100.0,
        s.ordered * 100.0
    )
}

fn text(scores: &[FitScore], summary: &Summary, failed: &[String]) -> String {
    let mut t = table(&HEADS, 1).keys(1);
    rows(scores).into_iter().for_each(|r| t.add_row(r));
    let mut out = format!("{t}\n{}\n{}\n", fold(MEANING), fold(&covered(summary)));
    for e in failed {
        let _ = writeln!(out, "{}", fold(e));
    }
    out
}

fn markdown(scores: &[FitScore], summary: &Summary) -> String {
    let mut out = format!("| {} |\n|{}\n", HEADS.join(" | "), "---|".repeat(HEADS.len()));
    for row in rows(scores) {
        let _ = writeln!(out, "| {} |", row.join(" | "));
    }
    out + "\n" + &covered(summary) + "\n"
}
