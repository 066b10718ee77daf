//! A paper's numbers and claims with the measured ones, for the template.

use super::paragraphs;
use super::tables::{FLOW_COLUMNS, RUN_COLUMNS, grouped};
use crate::published::{Cell, Measured, Reproduction, Verdict};
use serde::Serialize;

/// A reproduction, for the template.
#[derive(Serialize)]
pub(super) struct PublishedView {
    paper: String,
    title: String,
    measured: usize,
    total: usize,
    near: usize,
    explained: usize,
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
    verdict: &'static str,
    difference: String,
    /// Positions on a scale of 0 to 100.
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

pub(super) fn view(r: &Reproduction) -> PublishedView {
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
        explained: r.agreement.explained,
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
    // Percentages keep their own scale unless a value exceeds it.
    let top = if cells.iter().all(|c| c.unit == "percent") { top.max(100.0) } else { top * 1.05 };
    let place = |v: f64| if top > 0.0 { (v / top * 100.0).clamp(0.0, 100.0) } else { 0.0 };
    let view = |c: &Cell| CellView {
        published: grouped(c.published, 2),
        measured: c.measured.map_or("not measured".into(), |m| grouped(m, 2)),
        spread: c.measured_ci95.map_or(String::new(), |s| format!("±{}", grouped(s, 2))),
        verdict: c.verdict.map_or("", Verdict::word),
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
