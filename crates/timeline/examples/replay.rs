//! Weir's GCC fed with event logs of Chromium, beside the estimates that Chromium logged, as a table.
//!
//!     cargo run --release -p weir-timeline --example replay -- event.log... [--controller gcc]
//!
//! A decrease is a target, or the lower one of the logged estimates, that is 3 % or more below that 100 ms before. The last column has the
//! controller's decreases that a logged one is within 100 ms of, and all of them.

use std::fs::File;
use weir_timeline::replay::{LABEL, replay};
use weir_timeline::{Call, EstimateKind, Recording, read};

const FALLS: f64 = 0.97;
/// Distance of targets, and of decreases that are the same, in ms.
const STEP: i64 = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut controller, mut files, mut args) = ("gcc".to_owned(), Vec::new(), std::env::args().skip(1));
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--controller" => controller = args.next().ok_or("--controller needs a name")?,
            _ => files.push(arg),
        }
    }
    println!("{controller}: {LABEL}");
    println!("| log | off the estimate by delay | off the lower estimate | decreases |\n|---|---|---|---|");
    let (mut near, mut all, mut close, mut off) = (0, 0, 0, Vec::new());
    for file in &files {
        let call = Call::new(vec![read(file, File::open(file)?)?]);
        let found = replay(&call, &controller)?;
        let share = |s: Option<f64>| s.map_or("-".into(), |s| format!("{:.1} %", s * 100.0));
        let logged = decreases(&call.recordings[0]);
        let own: Vec<i64> = found.targets.windows(2).filter(|w| w[1].1 < FALLS * w[0].1).map(|w| w[1].0).collect();
        // A target is one of the 100 ms before it.
        let matched = own.iter().filter(|at| logged.iter().any(|l| (*at - 2 * STEP..=*at + STEP).contains(l))).count();
        (near, all) = (near + matched, all + own.len());
        close += usize::from(found.off_estimate.is_some_and(|s| s <= 0.05));
        off.extend(found.off_estimate);
        let (delay, lower) = (share(found.off_delay), share(found.off_estimate));
        println!("| {file} | {delay} | {lower} | {matched} of {} |", own.len());
    }
    off.sort_by(f64::total_cmp);
    let median = off.get(off.len() / 2).map_or("-".into(), |s| format!("{:.1} %", s * 100.0));
    println!(
        "\n{close} of {} within 5 % of the lower estimate, median {median}; {near} of {all} decreases",
        files.len()
    );
    Ok(())
}

/// Times at which the lower one of the logged estimates fell, in Unix ms.
fn decreases(recording: &Recording) -> Vec<i64> {
    let (mut now, mut past, mut out) = ([f64::INFINITY; 2], Vec::<(i64, f64)>::new(), Vec::new());
    for estimate in &recording.estimates {
        let kind = match estimate.kind {
            EstimateKind::Delay => 0,
            EstimateKind::Loss => 1,
            _ => continue,
        };
        now[kind] = estimate.rate.as_bps() as f64;
        let (at, lower) = (estimate.at.as_millis(), now[0].min(now[1]));
        // The last one holds until this one.
        let held = past.pop();
        past.retain(|p| p.0 >= at - STEP);
        past.extend(held);
        let before = past.iter().map(|p| p.1).fold(lower, f64::max);
        if lower < FALLS * before {
            out.push(at);
        }
        past.push((at, lower));
    }
    out
}
