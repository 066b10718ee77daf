//! `weir judge stability`.

use crate::Done;
use crate::args::{StabilityArgs, StabilityGrid};
use crate::output::{Failure, check_folder, print, print_report, remark};
use crate::run::stem;
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use std::fmt::Write as _;
use weir_judge::stability::{self, Cell, Grid, Map, Region};

pub(super) fn map(session: &Session, args: &StabilityArgs) -> Done {
    let controller = args.controller.as_str();
    let grid = match args.grid {
        StabilityGrid::Whole => Grid::whole(),
        StabilityGrid::Coarse => Grid::coarse(),
    };
    check_folder("--out", &args.out)?;
    let map = session.with_progress(args.quiet, true, |options, progress| {
        Map::measure(controller, grid, threads(args.jobs), options, &|what| progress.set_message(what.to_owned()))
    })?;
    let region = (controller == "sluice").then_some(Region::SLUICE);
    let fail = |e: std::io::Error| Failure::Work(format!("{}: {e}", args.out.display()));
    std::fs::create_dir_all(&args.out).map_err(fail)?;
    let path = args.out.join(format!("stability-{}.svg", stem(controller)));
    stability::write(&map, region, &path).map_err(fail)?;
    if args.json {
        print_report("stability", &map)?;
    } else {
        print(&map_text(&map, region))?;
    }
    if !args.quiet {
        remark(&format!("written: {}", path.display()));
    }
    match (map.undone, map.failed.len()) {
        (0, 0) => Ok(()),
        (0, failed) => Err(Failure::Work(format!("{failed} runs failed: {}", map.failed.join("; ")))),
        _ => Err(Failure::Interrupted),
    }
}

/// The worst cells, and how many there are.
fn map_text(map: &Map, region: Option<Region>) -> String {
    const SHOWN: usize = 20;
    let inside = |c: &Cell| region.is_some_and(|r| r.contains(c));
    let is_bad = |c: &&Cell| c.oscillates || c.starved;
    let mut bad: Vec<&Cell> = map.cells.iter().filter(is_bad).collect();
    bad.sort_by(|a, b| inside(b).cmp(&inside(a)).then(b.swing.total_cmp(&a.swing)));
    let mut rows = table(&["link", "swing", "queue p95, ms", "use"], 1).last_is_text();
    rows = rows.keys(1);
    for c in bad.iter().take(SHOWN) {
        let link = format!("{:.0} kbit/s, {} ms, feedback {} ms", c.rate_bps / 1e3, c.rtt_ms, c.feedback_ms);
        rows.add_row([link, format!("{:.2}", c.swing), format!("{:.0}", c.queue_p95_ms), format!("{:.2}", c.used)]);
    }
    let mut out = if bad.is_empty() { String::new() } else { format!("{rows}\n") };
    let count = |of: fn(&Cell) -> bool| map.cells.iter().filter(|c| of(c)).count();
    let (all, swinging, starved) = (map.cells.len(), count(|c| c.oscillates), count(|c| c.starved));
    out += &fold(&format!("{all} cells: {swinging} oscillate, {starved} use less than 0.8 of the link.\n"));
    if region.is_some() {
        let within = map.cells.iter().filter(|c| inside(c)).count();
        let unstable = map.cells.iter().filter(|c| inside(c)).filter(is_bad).count();
        out += &fold(&format!("Inside the stated region: {unstable} of {within}.\n"));
    }
    if map.undone > 0 {
        let _ = writeln!(out, "stopped: {} cells were not run", map.undone);
    }
    out
}
