//! `weir judge rows`.

use crate::Done;
use crate::args::RowsArgs;
use crate::output::{Failure, check_folder, print, print_report, remark};
use crate::session::{Session, threads};
use crate::tables::{fold, table};
use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::Path;
use weir_judge::rows::{
    Agreement, Board, LIVE, Maker, MetricScores, Order, Page, Row, RowKind, Trace, Traces, agreements, read_traces,
    rows, shown, write, write_rows,
};
use weir_lab::scenario::InputError;
use weir_report::page::shell_word;

/// The rows of recorded capacity, as `--rows` names them.
const TRACES: &str = "traces";
/// Runs of each row, simulated.
const RUNS: u32 = 3;
/// The same beside runs on the testbed: how much one run differs from another is what these are compared with.
const RUNS_BESIDE_LIVE: u32 = 16;
/// Formats that nothing in a file identifies.
const FORMATS: [(&str, weir_path::TraceFormat); 2] = [
    ("seconds-mbps", weir_path::TraceFormat::SecondsMbps),
    ("ireland-5g-uplink", weir_path::TraceFormat::Ireland5gUplink),
];

pub(super) fn judge_rows(session: &Session, args: &RowsArgs) -> Done {
    let (chosen, with_traces) = choose(&args.rows)?;
    let traces = if with_traces { open_traces(&args.traces, args.quiet)? } else { vec![] };
    if let Some(folder) = &args.write {
        let all: Vec<Row> = chosen.into_iter().chain(traces.iter().map(Trace::row)).collect();
        write_rows(&all, folder).map_err(|e| Failure::Work(format!("{}: {e}", folder.display())))?;
        if !args.quiet {
            remark(&format!("written: {} rows in {}", all.len(), folder.display()));
        }
        return Ok(());
    }
    let mut controllers: Vec<String> = Vec::new();
    args.controllers.iter().filter(|c| !c.is_empty()).for_each(|c| {
        if !controllers.contains(c) {
            controllers.push(c.clone());
        }
    });
    if controllers.is_empty() {
        return Err(InputError::whole("--controllers", "no controller is named").help("weir show controllers").into());
    }
    let live = live(args, &mut controllers)?;
    let runs = args.runs.map(NonZeroU32::get);
    let live = live.as_deref().map(|maker| (maker, runs.unwrap_or(1)));
    let runs = if args.live { runs.unwrap_or(1).max(RUNS_BESIDE_LIVE) } else { runs.unwrap_or(RUNS) };
    check_folder("--out", &args.out)?;
    let order = Order { rows: &chosen, traces: &traces, controllers: &controllers, runs, live };
    let mut board = session.with_progress(args.quiet, true, |options, progress| {
        order.measure(threads(args.jobs), options, &|what| progress.set_message(what.to_owned()))
    })?;
    if with_traces && traces.is_empty() {
        board.not_run.push("traces: no traces; --traces DIR names a folder of recordings".into());
    }
    // The page is written even if nobody reads the tables.
    let shown = if args.json { print_report("scoreboard", &board) } else { print(&text(&board)) };
    write_page(&board, &args.out, args.quiet)?;
    board.failed.iter().for_each(|line| remark(&format!("failed: {line}")));
    match (board.undone, board.failed.len()) {
        (0, 0) => shown,
        (0, failed) => Err(Failure::Work(format!("{failed} runs failed"))),
        _ => Err(Failure::Interrupted),
    }
}

/// With `--live`: what makes runs on the testbed, and each controller beside its simulated self.
#[cfg(target_os = "linux")]
fn live(args: &RowsArgs, controllers: &mut Vec<String>) -> Result<Option<Box<Maker<'static>>>, Failure> {
    use weir_lab::run::RunError;
    use weir_live::netns::SetupError;
    use weir_testbed::{LiveError, LiveOptions, run_live};
    if !args.live {
        return Ok(None);
    }
    crate::live::with_privilege(args.quiet)?;
    *controllers = controllers.drain(..).flat_map(|c| [c.clone(), format!("{c}{LIVE}")]).collect();
    Ok(Some(Box::new(|scenario, seed, options| {
        let options = LiveOptions { run: *options, congestion: None, captures: &[] };
        run_live(scenario, seed, &options).map(|live| live.result).map_err(|e| match e {
            LiveError::Run(e) => *e,
            LiveError::Cannot { what } | LiveError::Setup(SetupError::Congestion(what)) => RunError::NotLive { what },
            e => RunError::Live { what: e.to_string() },
        })
    })))
}

#[cfg(not(target_os = "linux"))]
fn live(args: &RowsArgs, _: &mut Vec<String>) -> Result<Option<Box<Maker<'static>>>, Failure> {
    match args.live {
        true => Err(InputError::whole("--live", "runs in real time need Linux's network namespaces").into()),
        false => Ok(None),
    }
}

/// The rows that are asked for, and whether the traces are.
pub(crate) fn choose(wanted: &[String]) -> Result<(Vec<Row>, bool), Failure> {
    let all = rows();
    if let Some(unknown) = wanted.iter().find(|w| *w != TRACES && !all.iter().any(|r| r.is_asked(w))) {
        let known: Vec<&str> = all.iter().map(|r| r.key.as_str()).chain([TRACES]).collect();
        let message = format!("no row is named `{unknown}`");
        return Err(InputError::whole("--rows", message).help(format!("rows: {}", known.join(", "))).into());
    }
    let with_traces = wanted.is_empty() || wanted.iter().any(|w| w == TRACES);
    let asked = |r: &Row| wanted.is_empty() || wanted.iter().any(|w| r.is_asked(w));
    Ok((all.into_iter().filter(asked).collect(), with_traces))
}

pub(crate) fn open_traces(folders: &[String], quiet: bool) -> Result<Vec<Trace>, Failure> {
    let mut all = Vec::new();
    for given in folders {
        let (folder, format) = match given.rsplit_once('=') {
            Some((folder, name)) if !Path::new(given).exists() => {
                let format = FORMATS.iter().find(|f| f.0 == name).map(|f| f.1).ok_or_else(|| {
                    let help = format!("{}; other formats are recognised", FORMATS.map(|f| f.0).join(", "));
                    InputError::whole("--traces", format!("no format is named `{name}`")).help(help)
                })?;
                (folder, Some(format))
            }
            _ => (given.as_str(), None),
        };
        let Traces { traces, skipped } = read_traces(Path::new(folder), format)?;
        if !quiet {
            skipped.iter().for_each(|line| remark(&format!("no trace: {line}")));
        }
        all.extend(traces);
    }
    Ok(all)
}

fn write_page(board: &Board, folder: &Path, quiet: bool) -> Done {
    std::fs::create_dir_all(folder).map_err(|e| Failure::Work(format!("{}: {e}", folder.display())))?;
    let path = folder.join("scoreboard.html");
    let words: Vec<String> = std::env::args().skip(1).map(|a| shell_word(&a)).collect();
    write(&Page { board, command: &format!("weir {}", words.join(" ")) }, &path).map_err(Failure::work)?;
    if !quiet {
        remark(&format!("written: {}", path.display()));
    }
    Ok(())
}

fn text(board: &Board) -> String {
    let header: Vec<&str> = ["row", "goal"].into_iter().chain(board.controllers.iter().map(String::as_str)).collect();
    let mut goals = table(&header, 1);
    let mut lines: Vec<(f64, [String; 2], &MetricScores)> = Vec::new();
    for row in board.rows.iter().filter(|r| r.kind != RowKind::Trace) {
        for metric in row.metrics.iter().filter(|m| m.goal.is_some()) {
            let unit = if metric.unit.is_empty() { String::new() } else { format!(", {}", metric.unit) };
            let name = format!("{}: {}{unit}", row.key, metric.label);
            let closeness = metric.values.first().and_then(|v| v.closeness).unwrap_or(f64::INFINITY);
            lines.push((closeness, [name, shown(metric.goal)], metric));
        }
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (_, head, metric) in lines {
        let cell = |c: &String| {
            let score = metric.values.iter().find(|v| v.controller == *c);
            score.map_or_else(
                || "-".into(),
                |s| format!("{}{}", shown(s.mean), if s.met == Some(true) { " " } else { "x" }),
            )
        };
        goals.add_row(head.into_iter().chain(board.controllers.iter().map(cell)));
    }
    let mut tallies = table(&["controller", "goals met", "furthest from its goal"], 1).last_is_text();
    for t in &board.tallies {
        let worst = t.worst.as_ref().map_or_else(
            || "every goal is met".into(),
            |w| format!("{}: {}, {} {} (goal {})", w.row, w.metric, shown(w.mean), w.unit, shown(Some(w.goal))),
        );
        tallies.add_row([t.controller.clone(), format!("{} of {}", t.met, t.goals), worst]);
    }
    let mut out = format!("{goals}\n{tallies}\n{}", beside_testbed(board));
    for line in &board.not_run {
        out.push_str(&fold(&format!("not run: {line}\n")));
    }
    if board.undone > 0 {
        let _ = writeln!(out, "stopped: {} runs were not made", board.undone);
    }
    let live_runs = board.rows.iter().flat_map(|r| &r.metrics).flat_map(|m| &m.values);
    let live_runs = live_runs.filter(|v| v.controller.ends_with(LIVE)).map(|v| v.runs.len()).max();
    let beside = live_runs.map_or_else(String::new, |n| format!(" (live {n})"));
    out.push_str(&fold(&format!(
        "Means over {} runs{beside}, the first controller's worst case first; x: the goal is not met. The page has every number.\n",
        board.runs
    )));
    out
}

/// With `--live`: each number on the testbed beside the simulated one, and how many agree; nothing without.
fn beside_testbed(board: &Board) -> String {
    let all = agreements(board);
    if all.is_empty() {
        return String::new();
    }
    let mut numbers = table(&["number", "simulated", "least", "most", "live", "difference"], 1);
    let several = board.controllers.len() > 2;
    for a in &all {
        let unit = if a.unit.is_empty() { String::new() } else { format!(", {}", a.unit) };
        let controller = if several { format!(" ({})", a.controller) } else { String::new() };
        let name = format!("{}: {}{unit}{controller}", a.row, a.metric);
        let mark = match (a.within, a.in_range) {
            (_, Some(false)) => "x",
            (Some(false), _) => "o",
            _ => " ",
        };
        let difference = a.difference().map_or_else(|| "-".into(), |d| format!("{}{mark}", shown(Some(d))));
        let [least, most] = [a.range.map(|r| r.0), a.range.map(|r| r.1)].map(shown);
        numbers.add_row([name, shown(a.simulated), least, most, shown(a.live), difference]);
    }
    let of = |unit: &str| -> (usize, usize) {
        let judged = || all.iter().filter(move |a: &&Agreement| a.unit == unit && a.within.is_some());
        (judged().filter(|a| a.within == Some(true)).count(), judged().count())
    };
    let (shares, delays) = (of(""), of("ms"));
    let judged = || all.iter().filter_map(|a| a.in_range);
    let summary = format!(
        "Live and the mean of {} simulated runs differ by at most 0.05 in {} of {} ratios, and by at most 20 ms in {} of {} delays; of all \
         {} numbers {} are in the range of these runs, or no further from it than that. o: differs by more, but is in the range; x: is not.\n",
        board.runs,
        shares.0,
        shares.1,
        delays.0,
        delays.1,
        judged().count(),
        judged().filter(|within| *within).count(),
    );
    format!("{numbers}\n{}", fold(&summary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_name_and_by_letter() {
        let keys = |wanted: &[&str]| {
            let wanted: Vec<String> = wanted.iter().map(|w| (*w).to_owned()).collect();
            let (rows, traces) = choose(&wanted).expect("known");
            (rows.into_iter().map(|r| r.key).collect::<Vec<_>>(), traces)
        };
        assert_eq!(keys(&["h", "d2"]), (vec!["d2".into(), "h10".into(), "h50".into()], false));
        assert_eq!(keys(&["a"]), (vec!["a".into(), "a0".into()], false));
        assert_eq!(keys(&["traces"]), (vec![], true));
        assert_eq!(keys(&[]).0.len(), rows().len());
        assert!(choose(&["z".into()]).is_err());
    }

    #[test]
    fn a_format_that_is_not_known_is_named() {
        let error = open_traces(&["folder=nonsense".into()], true).expect_err("no such format");
        assert!(format!("{error:?}").contains("nonsense"), "{error:?}");
    }
}
