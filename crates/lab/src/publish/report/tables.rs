//! The report's tables, as text ready for the template.

use super::{Report, ScenarioReport, paragraphs};
use crate::measure::results::{FlowAggregate, FlowKind, Stat};
use crate::publish::reproduce::{Cell, Measured, Reproduction};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub(super) struct Table {
    pub(super) caption: String,
    /// Heading, unit and what it means.
    pub(super) columns: Vec<(String, String, String)>,
    pub(super) rows: Vec<Row>,
}

#[derive(Serialize)]
pub(super) struct Row {
    pub(super) label: String,
    /// Number of the line style, or nothing.
    pub(super) style: Option<usize>,
    pub(super) cells: Vec<String>,
}

/// A metric in tables: its name, heading, unit, factor to that unit, decimals, meaning.
type Column = (&'static str, &'static str, &'static str, f64, usize, &'static str);

const FLOW_COLUMNS: [Column; 15] = [
    ("generated_bps", "Media rate", "kbit/s", 1e-3, 0, "what the source made, mean over the flow's time"),
    ("goodput_bps", "Goodput", "kbit/s", 1e-3, 0, "bytes received, headers included, less bytes discarded"),
    ("utilisation", "Utilisation", "%", 100.0, 1, "media generated over capacity"),
    ("one_way_delay_mean_ms", "Delay mean", "ms", 1.0, 0, "one-way delay of packets"),
    ("one_way_delay_p50_ms", "p50", "ms", 1.0, 0, "one-way delay, median"),
    ("one_way_delay_p95_ms", "p95", "ms", 1.0, 0, "one-way delay, 95th percentile"),
    ("one_way_delay_p99_ms", "p99", "ms", 1.0, 0, "one-way delay, 99th percentile"),
    ("one_way_delay_max_ms", "max", "ms", 1.0, 0, "one-way delay, largest"),
    ("loss", "Loss", "%", 100.0, 2, "packets lost on the path over packets sent"),
    ("discard", "Discard", "%", 100.0, 2, "packets too late for playout over packets received"),
    ("ramp_up_s", "Ramp-up", "s", 1.0, 1, "until goodput over a second reaches 90 % of the fair share"),
    ("settling_mean_s", "Settling", "s", 1.0, 1, "after a change of capacity, mean of those it settled after"),
    ("rate_variation", "Variation", "", 1.0, 2, "coefficient of variation of the media rate over seconds"),
    ("stalls", "Stalls", "", 1.0, 1, "gaps in playout"),
    ("frame_delay_p95_ms", "Frame p95", "ms", 1.0, 0, "capture to complete frame, 95th percentile"),
];

const RUN_COLUMNS: [Column; 8] = [
    ("queue_delay_mean_ms", "Queue mean", "ms", 1.0, 1, "delay in the bottleneck's queue, weighted by time"),
    ("queue_delay_p50_ms", "p50", "ms", 1.0, 1, "queueing delay, median"),
    ("queue_delay_p95_ms", "p95", "ms", 1.0, 1, "queueing delay, 95th percentile"),
    ("queue_delay_p99_ms", "p99", "ms", 1.0, 1, "queueing delay, 99th percentile"),
    ("jain_mean", "Jain mean", "", 1.0, 3, "Jain's fairness index of the RTP flows, mean over time"),
    ("jain_end", "Jain end", "", 1.0, 3, "Jain's index over the tail of the run"),
    ("end_ratio", "Max / min", "", 1.0, 2, "largest goodput of an RTP flow over the smallest, in the tail"),
    ("tcp_share", "Against TCP", "%", 100.0, 1, "share of an RTP flow against a TCP flow; 50 % is even"),
];

fn cell(stat: Option<&Stat>, &(_, _, _, factor, decimals, _): &Column) -> String {
    let Some(s) = stat else { return "–".into() };
    let value = grouped(s.mean * factor, decimals);
    match s.ci95 {
        Some(ci) if ci > 0.0 => format!("{value} ± {}", grouped(ci * factor, decimals)),
        _ => value,
    }
}

/// A number with a thin space between groups of three digits.
pub(super) fn grouped(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').map_or((text.as_str(), None), |(w, f)| (w, Some(f)));
    let mut out = String::new();
    if value < 0.0 && text.bytes().any(|b| (b'1'..=b'9').contains(&b)) {
        out.push('\u{2212}');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && whole.len() > 4 && (whole.len() - i) % 3 == 0 {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    if let Some(f) = fraction {
        out.push('.');
        out.push_str(f);
    }
    out
}

/// Rows of metrics as a table, without the columns that no row has.
fn table(caption: &str, columns: &[Column], rows: Vec<(String, Option<usize>, &BTreeMap<String, Stat>)>) -> Table {
    let kept: Vec<&Column> = columns.iter().filter(|c| rows.iter().any(|(_, _, m)| m.contains_key(c.0))).collect();
    Table {
        caption: caption.into(),
        columns: kept.iter().map(|c| (c.1.into(), c.2.into(), c.5.into())).collect(),
        rows: rows
            .into_iter()
            .map(|(label, style, m)| Row { label, style, cells: kept.iter().map(|c| cell(m.get(c.0), c)).collect() })
            .collect(),
    }
}

pub(super) fn scenario(s: &ScenarioReport, controllers: &[String]) -> Vec<Table> {
    let style = |name: &str| controllers.iter().position(|n| n == name);
    let single = s.controllers.iter().all(|c| c.aggregate.flows.len() == 1);
    let mut flows: Vec<(String, Option<usize>, &BTreeMap<String, Stat>)> = Vec::new();
    for c in &s.controllers {
        // Thousands of flows in a table help nobody.
        for f in c.aggregate.flows.iter().take(24) {
            flows.push((row_label(&c.aggregate.controller, f, single), style(&c.aggregate.controller), &f.metrics));
        }
    }
    let runs: Vec<_> = (s.controllers.iter())
        .map(|c| (c.aggregate.controller.clone(), style(&c.aggregate.controller), &c.aggregate.metrics))
        .collect();
    let caption = if single { "Controllers" } else { "Flows" };
    let mut tables = vec![table(caption, &FLOW_COLUMNS, flows), table("Queue and fairness", &RUN_COLUMNS, runs)];
    tables.retain(|t| !t.columns.is_empty());
    tables
}

fn row_label(controller: &str, f: &FlowAggregate, single: bool) -> String {
    match f.kind {
        FlowKind::Rtp if single => controller.into(),
        FlowKind::Rtp => format!("{controller}: {}", f.name),
        _ => format!("{controller}: {} ({})", f.name, f.controller),
    }
}

/// Facts about a scenario's runs.
pub(super) fn facts(s: &ScenarioReport) -> Vec<(String, String)> {
    let Some(first) = s.controllers.first() else { return vec![] };
    let run = &first.shown;
    let mut facts = vec![("Simulated time".into(), format!("{} s", grouped(run.duration_s, 0)))];
    if let Some(link) = &run.queue {
        facts.push(("Bottleneck, mean".into(), format!("{} kbit/s", grouped(link.capacity_bps * 1e-3, 0))));
    }
    let seeds = &first.aggregate.seeds;
    let runs = match seeds[..] {
        [seed] => format!("1 (seed {seed})"),
        [first, .., last] => format!("{} (seeds {first} to {last}; the first is plotted)", seeds.len()),
        [] => "0".into(),
    };
    facts.push(("Runs a controller".into(), runs));
    facts
}

/// Utilisation and p95 of the delay of every scenario and controller.
pub(super) fn overview(report: &Report, controllers: &[String]) -> Option<Table> {
    if report.scenarios.len() < 2 {
        return None;
    }
    let value = |s: &ScenarioReport, name: &str| -> String {
        let Some(c) = s.controllers.iter().find(|c| c.shown.controller == name) else { return "–".into() };
        let rtp: Vec<&FlowAggregate> = c.aggregate.flows.iter().filter(|f| f.kind == FlowKind::Rtp).collect();
        // Flows may be active at different times, so that their own utilisations do not add up.
        let main = c.shown.queue.as_ref().map(|q| &q.name);
        let bits: f64 = (c.aggregate.flows.iter().zip(&c.shown.flows))
            .filter(|(_, f)| f.kind == FlowKind::Rtp && Some(&f.bottleneck) == main)
            .filter_map(|(a, f)| Some(a.metrics.get("generated_bps")?.mean * (f.stop_s - f.start_s)))
            .sum();
        let capacity = c.shown.queue.as_ref().map_or(0.0, |q| q.capacity_bps * c.shown.duration_s);
        let utilisation = if capacity > 0.0 { bits / capacity } else { 0.0 };
        let p95 =
            rtp.iter().filter_map(|f| f.metrics.get("one_way_delay_p95_ms")).map(|s| s.mean).fold(f64::NAN, f64::max);
        if p95.is_nan() {
            "–".into()
        } else {
            format!("{} % · {} ms", grouped(utilisation * 100.0, 0), grouped(p95, 0))
        }
    };
    Some(Table {
        caption: "Utilisation (RTP flows together) · 95th percentile of one-way delay (worst RTP flow)".into(),
        columns: controllers.iter().map(|c| (c.clone(), String::new(), String::new())).collect(),
        rows: (report.scenarios.iter())
            .map(|s| Row {
                label: s.title.clone(),
                style: None,
                cells: controllers.iter().map(|c| value(s, c)).collect(),
            })
            .collect(),
    })
}

/// A reproduction, for the template.
#[derive(Serialize)]
pub(super) struct PublishedView {
    paper: String,
    title: String,
    measured: usize,
    total: usize,
    near: usize,
    orders: usize,
    orders_kept: usize,
    claims_held: usize,
    claims_failed: usize,
    claims_open: usize,
    tables: Vec<PublishedTable>,
    claims: Vec<ClaimView>,
    notes: Vec<NoteView>,
}

#[derive(Serialize)]
struct PublishedTable {
    caption: String,
    algorithms: Vec<String>,
    rows: Vec<PublishedRow>,
}

#[derive(Serialize)]
struct PublishedRow {
    condition: String,
    cells: Vec<Option<CellView>>,
}

#[derive(Serialize)]
struct CellView {
    published: String,
    measured: String,
    spread: String,
    difference: String,
    /// Places on a scale of 0 to 100.
    published_at: f64,
    measured_at: Option<f64>,
    gap_from: f64,
    gap: f64,
    runs: usize,
}

#[derive(Serialize)]
struct ClaimView {
    statement: String,
    source: String,
    criterion: String,
    /// "yes", "no" or "open".
    outcome: &'static str,
    measured: Vec<(String, String)>,
}

#[derive(Serialize)]
struct NoteView {
    title: String,
    paragraphs: Vec<String>,
}

pub(super) fn published(r: &Reproduction) -> PublishedView {
    let mut tables: Vec<PublishedTable> = Vec::new();
    let mut numbers: Vec<&str> = r.cells.iter().map(|c| c.table.as_str()).collect();
    numbers.dedup();
    for number in numbers {
        let of_table = || r.cells.iter().filter(|c| c.table == number);
        let mut metrics: Vec<(&str, &str)> = Vec::new();
        of_table().map(|c| (c.metric.as_str(), c.unit.as_str())).for_each(|m| {
            if !metrics.contains(&m) {
                metrics.push(m);
            }
        });
        let title = r.tables.iter().find(|t| t.table == number).map_or("", |t| t.title.as_str());
        for (metric, unit) in metrics {
            let cells: Vec<&Cell> = of_table().filter(|c| c.metric == metric && c.unit == unit).collect();
            let caption = format!("Table {number}. {title} ({}, {unit})", metric.replace('_', " "));
            tables.push(published_table(caption, &cells));
        }
    }
    let count = |outcome| r.claims.iter().filter(|c| c.holds == outcome).count();
    PublishedView {
        paper: r.paper.clone(),
        title: r.title.clone(),
        measured: r.cells.iter().filter(|c| c.measured.is_some()).count(),
        total: r.cells.len(),
        near: r.agreement.near,
        orders: r.agreement.orders,
        orders_kept: r.agreement.orders_kept,
        claims_held: count(Some(true)),
        claims_failed: count(Some(false)),
        claims_open: count(None),
        tables,
        claims: r
            .claims
            .iter()
            .map(|c| ClaimView {
                statement: c.statement.clone(),
                source: c.source.clone(),
                criterion: c.criterion.clone(),
                outcome: match c.holds {
                    Some(true) => "yes",
                    Some(false) => "no",
                    None => "open",
                },
                measured: c.measured.iter().map(number_behind).collect(),
            })
            .collect(),
        notes: r.notes.iter().map(|n| NoteView { title: n.title.clone(), paragraphs: paragraphs(&n.text) }).collect(),
    }
}

fn published_table(caption: String, cells: &[&Cell]) -> PublishedTable {
    let (mut algorithms, mut conditions): (Vec<String>, Vec<(String, String)>) = (Vec::new(), Vec::new());
    for c in cells {
        if !algorithms.contains(&c.algorithm) {
            algorithms.push(c.algorithm.clone());
        }
        let condition = (c.scenario.clone(), c.condition.clone());
        if !conditions.contains(&condition) {
            conditions.push(condition);
        }
    }
    let top = (cells.iter()).flat_map(|c| [Some(c.published), c.measured]).flatten().fold(0.0, f64::max);
    // Percentages keep their own scale unless something goes beyond it.
    let top = if cells.iter().all(|c| c.unit == "percent") { top.max(100.0) } else { top * 1.05 };
    let place = |v: f64| if top > 0.0 { (v / top * 100.0).clamp(0.0, 100.0) } else { 0.0 };
    let view = |c: &Cell| CellView {
        published: grouped(c.published, 2),
        measured: c.measured.map_or("not measured".into(), |m| grouped(m, 2)),
        spread: c.measured_sigma.map_or(String::new(), |s| format!("σ {}", grouped(s, 2))),
        difference: c.measured.map_or(String::new(), |m| {
            let d = m - c.published;
            format!("{}{}", if d >= 0.0 { "+" } else { "" }, grouped(d, 2))
        }),
        published_at: place(c.published),
        measured_at: c.measured.map(place),
        gap_from: c.measured.map_or(0.0, |m| place(m).min(place(c.published))),
        gap: c.measured.map_or(0.0, |m| (place(m) - place(c.published)).abs()),
        runs: c.runs,
    };
    let several = conditions.iter().any(|(s, _)| *s != conditions[0].0);
    let rows = (conditions.iter())
        .map(|(scenario, condition)| PublishedRow {
            condition: if several || condition.is_empty() {
                format!("{scenario} {condition}")
            } else {
                condition.clone()
            },
            cells: (algorithms.iter())
                .map(|a| {
                    let found = cells
                        .iter()
                        .find(|c| c.algorithm == *a && c.scenario == *scenario && c.condition == *condition);
                    found.map(|c| view(c))
                })
                .collect(),
        })
        .collect();
    PublishedTable { caption, algorithms, rows }
}

fn number_behind(m: &Measured) -> (String, String) {
    let all = FLOW_COLUMNS.iter().chain(&RUN_COLUMNS);
    let known = all.into_iter().find(|c| c.0 == m.metric);
    let (factor, unit, decimals) = known.map_or((1.0, "", 3), |c| (c.3, c.2, c.4.max(1)));
    let value = m.value.map_or("not measured".into(), |v| {
        let spread = m.sigma.map_or(String::new(), |s| format!(" (σ {})", grouped(s * factor, decimals)));
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        format!("{}{unit}{spread}", grouped(v * factor, decimals))
    });
    let metric = m.metric.trim_end_matches("_ms").trim_end_matches("_bps").replace('_', " ");
    (format!("{}, {}, {metric}", m.controller, m.scenario), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(grouped(1234.0, 0), "1234");
        assert_eq!(grouped(12_345.678, 1), "12\u{202f}345.7");
        assert_eq!(grouped(-0.04, 1), "0.0");
        assert_eq!(grouped(-2.5, 1), "\u{2212}2.5");
    }

    #[test]
    fn empty_columns_are_left_out() {
        let stat = Stat::of(&[0.5, 0.7]).expect("values");
        let metrics = BTreeMap::from([("loss".to_owned(), stat)]);
        let t = table("x", &FLOW_COLUMNS, vec![("a".into(), None, &metrics)]);
        assert_eq!(t.columns.len(), 1);
        // t(1) = 12.706, sigma 0.1414, half-width 1.2706.
        assert_eq!(t.rows[0].cells, ["60.00 ± 127.06"]);
    }
}
