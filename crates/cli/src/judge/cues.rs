//! `weir judge cues`.

use crate::Done;
use crate::args::CuesArgs;
use crate::output::{Failure, print, print_report};
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use std::fmt::Write as _;
use weir_judge::cues::{CueWorth, MATTERS, Measure, Ride, SCENARIO, Table, Variant, judge};
use weir_lab::results::Stat;

const VARIANT_HEADS: [&str; 8] =
    ["variant", "in time, %", "PSNR, dB", "speech, %", "MOS", "frozen, s", "delay p95, ms", "shown, kbit/s"];
const CUE_HEADS: [&str; 8] =
    ["left out", "gain in time, %", "PSNR, %", "speech, %", "earns", "costs", "best, %", "worst, %"];

pub(super) fn judge_cues(session: &Session, args: &CuesArgs) -> Done {
    let rides = Ride::all(args.seed, args.generated as usize, args.recorded as usize)?;
    if rides.is_empty() {
        return Err(Failure::Work("no rides: --generated and --recorded are 0; give one of them".into()));
    }
    let table = session
        .with_progress(args.form.quiet, true, |options, _| judge(&rides, args.runs, threads(args.jobs), options))?;
    if args.form.json {
        print_report("cues", &table)?;
    } else if args.form.markdown {
        print(&markdown(&table))?;
    } else {
        print(&text(&table))?;
    }
    match (table.undone, table.failed.len()) {
        (0, 0) => Ok(()),
        (0, failed) => Err(Failure::Work(format!("{failed} runs failed: {}", table.failed.join("; ")))),
        _ => Err(Failure::Interrupted),
    }
}

/// A mean and its interval.
fn shown(stat: Option<&Stat>, scale: f64, digits: usize) -> String {
    let Some(s) = stat else { return "-".into() };
    let mean = format!("{:.digits$}", scale * s.mean);
    s.ci95.map_or(mean.clone(), |ci| format!("{mean} ±{:.digits$}", scale * ci))
}

fn variant_row(variant: &Variant) -> Vec<String> {
    let of = |m: Measure, scale: f64, digits: usize| shown(variant.over_rides(m).as_ref(), scale, digits);
    vec![
        variant.name.clone(),
        of(Measure::OnTime, 100.0, 1),
        of(Measure::Psnr, 1.0, 2),
        of(Measure::Speech, 100.0, 1),
        of(Measure::Mos, 1.0, 2),
        of(Measure::Frozen, 1.0, 1),
        of(Measure::Delay, 1.0, 0),
        of(Measure::Shown, 1e-3, 0),
    ]
}

fn cue_row(cue: &CueWorth, rides: usize) -> Vec<String> {
    let at = |share: f64, at: &Option<(String, Measure)>| {
        let place = at.as_ref().map_or_else(String::new, |(ride, m)| format!(" ({ride}, {})", name(*m)));
        format!("{:+.1}{place}", 100.0 * share)
    };
    let gains = cue.gains.iter().map(|(_, stat)| shown(stat.as_ref(), 100.0, 2));
    let counts = [cue.earns, cue.costs].map(|n| format!("{n} of {rides}"));
    let ends = [at(cue.best, &cue.best_at), at(cue.worst, &cue.worst_at)];
    std::iter::once(cue.without.clone()).chain(gains).chain(counts).chain(ends).collect()
}

fn name(measure: Measure) -> &'static str {
    match measure {
        Measure::OnTime => "in time",
        Measure::Psnr => "PSNR",
        Measure::Speech => "speech",
        Measure::Mos => "MOS",
        Measure::Frozen => "frozen",
        Measure::Delay => "delay",
        Measure::Shown => "rate",
    }
}

/// The claim, and each of its halves.
fn verdict(table: &Table) -> String {
    let list = |of: fn(&CueWorth) -> bool| {
        let names: Vec<&str> = table.cues.iter().filter(|c| of(c)).map(|c| c.without.as_str()).collect();
        if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) }
    };
    let first = if table.all_earn { "holds" } else { "does not hold" };
    let second = if table.none_costs { "holds" } else { "does not hold" };
    format!(
        "Every cue earns its place on some ride: {first}{}. None costs more than {:.0} % on any: {second}{}.",
        list(|c| c.earns == 0),
        100.0 * MATTERS,
        list(|c| c.costs > 0),
    )
}

fn legend(table: &Table) -> String {
    format!(
        "Means over {} rides of {} runs of {SCENARIO}, with the 95 % interval over rides. PSNR is of a model: 30 dB at 100 kbit/s, \
         3 dB for each doubling, 20 dB where nothing is shown. MOS is that of the conversation (E-model), by delay and concealment. Gains are those of the call with all over the call without, relative \
         to that. A ride counts if every seed agrees on more than {:.0} % in one of the three.",
        table.rides.len(),
        table.seeds,
        100.0 * MATTERS,
    )
}

fn text(all: &Table) -> String {
    let mut variants = table(&VARIANT_HEADS, 1).keys(1);
    all.variants.iter().for_each(|v| variants.add_row(variant_row(v)));
    let mut cues = table(&CUE_HEADS, 1).keys(1);
    all.cues.iter().for_each(|c| cues.add_row(cue_row(c, all.rides.len())));
    let mut out = format!("{variants}\n\n{cues}\n");
    out += &fold(&format!("{}\n{}\n", legend(all), verdict(all)));
    if all.undone > 0 {
        let _ = writeln!(out, "stopped: {} runs were not made", all.undone);
    }
    out
}

fn markdown(all: &Table) -> String {
    let mut out = String::new();
    let mut add = |heads: &[&str], rows: Vec<Vec<String>>| {
        let _ = writeln!(out, "| {} |\n|{}", heads.join(" | "), "---|".repeat(heads.len()));
        for row in rows {
            let _ = writeln!(out, "| {} |", row.join(" | "));
        }
        out.push('\n');
    };
    add(&VARIANT_HEADS, all.variants.iter().map(variant_row).collect());
    add(&CUE_HEADS, all.cues.iter().map(|c| cue_row(c, all.rides.len())).collect());
    format!("{out}{}\n\n{}\n", legend(all), verdict(all))
}
