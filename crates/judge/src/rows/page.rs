//! The scoreboard as one HTML file without external resources: rows in the order of the worst case, sortable.

use super::results::{Board, MetricScores, RowKind, RowScores};
use super::score::shown;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;
use std::path::Path;
use weir_report::atomic_write::write_atomically;
use weir_report::page::{ReportError, STYLE};

const TEMPLATE: &str = include_str!("../../assets/scoreboard/page.html.j2");
const SCRIPT: &str = include_str!("../../assets/scoreboard/page.js");
const OWN_STYLE: &str = include_str!("../../assets/scoreboard/page.css");

/// A board, and what its page says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The numbers.
    pub board: &'a Board,
    /// The command that makes them again.
    pub command: &'a str,
}

/// A line of a table.
#[derive(Serialize)]
struct Line {
    row: String,
    /// Place in the order of rows.
    place: usize,
    label: String,
    title: String,
    unit: String,
    goal: String,
    cells: Vec<Option<Cell>>,
}

#[derive(Serialize)]
struct Cell {
    text: String,
    /// Values of the runs, if there are several.
    runs: String,
    met: Option<bool>,
    /// By which it is sorted: less is worse.
    key: f64,
}

#[derive(Serialize)]
struct TallyLine {
    controller: String,
    met: usize,
    goals: usize,
    whole: String,
    worst: String,
}

/// Writes the page, completely or not at all.
pub fn write(page: &Page<'_>, path: &Path) -> Result<(), ReportError> {
    let html = render(page)?;
    write_atomically(path, |out| out.write_all(html.as_bytes()))
        .map_err(|source| ReportError::Write { path: path.display().to_string(), source })
}

fn render(page: &Page<'_>) -> Result<String, ReportError> {
    let board = page.board;
    let mut env = Environment::new();
    env.set_auto_escape_callback(|_| AutoEscape::Html);
    env.add_template("scoreboard", TEMPLATE)?;
    let goals = lines(board, |r, m| r.kind != RowKind::Trace && m.goal.is_some());
    let others = lines(board, |r, m| r.kind != RowKind::Trace && m.goal.is_none());
    let traces = lines(board, |r, _| r.kind == RowKind::Trace);
    let html = env.get_template("scoreboard")?.render(context! {
        command => page.command,
        version => env!("CARGO_PKG_VERSION"),
        controllers => &board.controllers,
        runs => board.runs,
        undone => board.undone,
        not_run => &board.not_run,
        failed => &board.failed,
        tallies => Serde(tallies(board)),
        tables => Serde([
            ("goals", "Goals", goals),
            ("traces", "Each trace", traces),
            ("others", "Numbers without a goal", others),
        ]),
        fluid => Serde(fluid(board)),
        style => STYLE,
        own_style => OWN_STYLE,
        script => SCRIPT,
    })?;
    Ok(html)
}

/// The lines of some metrics, in the order of the first controller's worst case. Metrics without a goal are as near to it as
/// to the best value that a controller has in any row, so that units do not decide.
fn lines(board: &Board, chosen: impl Fn(&RowScores, &MetricScores) -> bool) -> Vec<Line> {
    let mut lines = Vec::new();
    for row in &board.rows {
        for metric in row.metrics.iter().filter(|m| chosen(row, m)) {
            let best = best_of(board, metric);
            let cells = board.controllers.iter().map(|c| cell(metric, best, c)).collect();
            lines.push(Line {
                row: row.key.clone(),
                place: lines.len(),
                label: metric.label.clone(),
                title: row.title.clone(),
                unit: metric.unit.clone(),
                goal: metric.goal.map_or_else(String::new, |g| shown(Some(g))),
                cells,
            });
        }
    }
    let key = |l: &Line| l.cells.first().and_then(Option::as_ref).map_or(f64::INFINITY, |c| c.key);
    if lines.iter().any(|l| !l.goal.is_empty()) {
        lines.sort_by(|a, b| key(a).total_cmp(&key(b)));
    }
    lines
}

/// The best mean of a metric over all rows and controllers.
fn best_of(board: &Board, metric: &MetricScores) -> Option<f64> {
    let same = board.rows.iter().flat_map(|r| &r.metrics).filter(|m| m.label == metric.label && m.unit == metric.unit);
    let means = same.flat_map(|m| &m.values).filter_map(|v| v.mean).filter(|v| v.is_finite());
    means.reduce(|a, b| if metric.better.closeness(a, Some(b)) >= 1.0 { b } else { a })
}

fn cell(metric: &MetricScores, best: Option<f64>, controller: &str) -> Option<Cell> {
    let score = metric.values.iter().find(|v| v.controller == controller)?;
    let runs: Vec<String> = score.runs.iter().map(|v| shown(*v)).collect();
    let key = score.closeness.or_else(|| Some(metric.better.closeness(best?, score.mean))).unwrap_or(0.0);
    Some(Cell {
        text: shown(score.mean),
        runs: if runs.len() > 1 { runs.join(", ") } else { String::new() },
        met: score.met,
        // Among goals that are met, the nearest run decides.
        key: key + 1e-3 * score.worst_closeness.unwrap_or(0.0),
    })
}

fn tallies(board: &Board) -> Vec<TallyLine> {
    let line = |t: &super::results::Tally| TallyLine {
        controller: t.controller.clone(),
        met: t.met,
        goals: t.goals,
        whole: if t.whole.is_empty() { "none".into() } else { t.whole.join(", ") },
        worst: t.worst.as_ref().map_or_else(
            || "none: every goal is met".into(),
            |w| format!("{}: {}, {} {} (goal {})", w.row, w.metric, shown(w.mean), w.unit, shown(Some(w.goal))),
        ),
    };
    board.tallies.iter().map(line).collect()
}

/// On-time shares of the fluid senders: group, causal and reactive.
fn fluid(board: &Board) -> Vec<(String, String, String)> {
    let groups = board.rows.iter().filter(|r| r.kind == RowKind::Group);
    groups
        .filter_map(|r| {
            let f = r.fluid?;
            Some((r.key.clone(), shown(Some(f.causal.on_time)), shown(Some(f.reactive.on_time))))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::results::{ControllerScore, Tally};
    use super::super::score::Better;
    use super::*;

    fn board() -> Board {
        let metric = |label: &str, goal, values: [(&str, f64); 2]| MetricScores {
            label: label.into(),
            unit: "ms".into(),
            better: Better::Low,
            goal,
            values: values.map(|(c, v)| ControllerScore::new(c, vec![Some(v), Some(v)], Better::Low, goal)).to_vec(),
        };
        let row = |key: &str, metrics| RowScores {
            key: key.into(),
            title: "a <b>bold</b> title".into(),
            kind: RowKind::Scenario,
            metrics,
            fluid: None,
        };
        let tally = |c: &str| Tally { controller: c.into(), goals: 2, met: 1, whole: vec![], worst: None };
        Board {
            controllers: vec!["sluice".into(), "gcc".into()],
            runs: 2,
            rows: vec![
                row("x", vec![metric("near", Some(50.0), [("sluice", 40.0), ("gcc", 500.0)])]),
                row("y", vec![metric("far", Some(50.0), [("sluice", 200.0), ("gcc", 20.0)])]),
                row("z", vec![metric("plain", None, [("sluice", 7.0), ("gcc", 8.0)])]),
            ],
            tallies: vec![tally("sluice"), tally("gcc")],
            not_run: vec!["traces: no --traces".into()],
            failed: vec![],
            undone: 0,
        }
    }

    #[test]
    fn metrics_without_a_goal_are_ordered_by_how_far_from_the_best_they_are() {
        let mut board = board();
        let of = |label: &str, better, values: [f64; 2]| MetricScores {
            label: label.into(),
            unit: label.into(),
            better,
            goal: None,
            values: ["sluice", "gcc"]
                .iter()
                .zip(values)
                .map(|(c, v)| ControllerScore::new(c, vec![Some(v)], better, None))
                .collect(),
        };
        let near = board.rows[0].metrics.remove(0);
        board.rows[0].metrics =
            vec![near, of("lost", Better::Low, [0.0, 3.0]), of("delay", Better::Low, [100.0, 80.0])];
        board.rows[1].metrics = vec![of("lost", Better::Low, [9.0, 0.5]), of("delay", Better::Low, [300.0, 90.0])];
        let lines = lines(&board, |row, _| row.key != "z");
        let order: Vec<_> = lines.iter().map(|l| (&l.row[..], &l.label[..])).collect();
        assert_eq!(order, [("y", "lost"), ("y", "delay"), ("x", "delay"), ("x", "lost"), ("x", "near")]);
    }

    #[test]
    fn the_worst_case_comes_first_and_nothing_is_loaded() {
        let board = board();
        let html = render(&Page { board: &board, command: "weir judge rows --runs 2" }).expect("rendered");
        let place = |text: &str| html.find(text).unwrap_or_else(|| panic!("no {text}"));
        assert!(place(">far<") < place(">near<"), "sluice is furthest from the goal of y");
        assert!(place(">near<") < place(">plain<"));
        assert!(html.contains("a &lt;b&gt;bold&lt;&#x2f;b&gt; title"), "titles are escaped");
        assert!(html.contains("traces: no --traces"));
        for outside in ["http://", "https://", "src=", "@import"] {
            assert!(!html.contains(outside), "the page names {outside}");
        }
    }
}
