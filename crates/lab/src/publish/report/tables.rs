//! The report's tables, as text ready for the template.

use super::contenders::{self, QUANTITIES, is_mixed};
use super::{ControllerRuns, Report, ScenarioReport};
use crate::measure::results::{FlowAggregate, FlowKind, Stat};
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
pub(super) type Column = (&'static str, &'static str, &'static str, f64, usize, &'static str);

pub(super) const FLOW_COLUMNS: [Column; 15] = [
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

pub(super) const RUN_COLUMNS: [Column; 8] = [
    ("queue_delay_mean_ms", "Queue mean", "ms", 1.0, 1, "delay in the bottleneck's queue, weighted by time"),
    ("queue_delay_p50_ms", "p50", "ms", 1.0, 1, "queueing delay, median"),
    ("queue_delay_p95_ms", "p95", "ms", 1.0, 1, "queueing delay, 95th percentile"),
    ("queue_delay_p99_ms", "p99", "ms", 1.0, 1, "queueing delay, 99th percentile"),
    ("jain_mean", "Jain mean", "", 1.0, 3, "Jain's fairness index of the RTP flows, mean over time"),
    ("jain_end", "Jain end", "", 1.0, 3, "Jain's index over the tail of the run"),
    ("end_ratio", "Max / min", "", 1.0, 2, "largest goodput of an RTP flow over the smallest, in the tail"),
    ("tcp_share", "Against TCP", "%", 100.0, 1, "share of an RTP flow against a TCP flow; 50 % is even"),
];

/// Of flows with pictures.
const PICTURE_COLUMNS: [Column; 7] = [
    ("psnr", "PSNR", "dB", 1.0, 1, "luma, mean over the pictures shown"),
    ("ssim", "SSIM", "", 1.0, 3, "structural similarity of luma, mean over the pictures shown"),
    ("psnr_below_20db", "Below 20 dB", "%", 100.0, 1, "pictures with a PSNR below 20 dB"),
    ("frozen_pictures", "Frozen", "pictures", 1.0, 1, "pictures in whose place the last one stayed"),
    ("undecodable_frames", "Undecodable", "frames", 1.0, 1, "frames that arrived and gave no picture"),
    ("stalls", "Stalls", "", 1.0, 1, "gaps in playout"),
    ("stalled_s", "Stalled", "s", 1.0, 2, "time in stalls"),
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
    let mixed = |c: &ControllerRuns| is_mixed(&c.shown);
    let mut flows: Vec<(String, Option<usize>, &BTreeMap<String, Stat>)> = Vec::new();
    for c in &s.controllers {
        // Thousands of flows in a table help nobody.
        for f in c.aggregate.flows.iter().take(24) {
            let own = if mixed(c) { &f.controller } else { &c.aggregate.controller };
            flows.push((row_label(c, f, single), style(own), &f.metrics));
        }
    }
    let runs: Vec<_> = (s.controllers.iter())
        .map(|c| (c.aggregate.controller.clone(), style(&c.aggregate.controller), &c.aggregate.metrics))
        .collect();
    let caption = if single { "Controllers" } else { "Flows" };
    let pictures = flows.iter().filter(|(_, _, m)| m.contains_key("psnr")).cloned().collect();
    let mut tables = vec![
        table(caption, &FLOW_COLUMNS, flows),
        table("Queue and fairness", &RUN_COLUMNS, runs),
        table("Pictures", &PICTURE_COLUMNS, pictures),
    ];
    tables.retain(|t| !t.columns.is_empty());
    tables
}

fn row_label(c: &ControllerRuns, f: &FlowAggregate, single: bool) -> String {
    let controller = &c.aggregate.controller;
    match f.kind {
        FlowKind::Rtp if single => controller.clone(),
        FlowKind::Rtp if !is_mixed(&c.shown) => format!("{controller}: {}", f.name),
        _ if is_mixed(&c.shown) => format!("{} ({})", f.name, f.controller),
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
        [first, .., last] => format!("{} (seeds {first} to {last})", seeds.len()),
        [] => "0".into(),
    };
    facts.push(("Runs a controller".into(), runs));
    facts
}

/// Link use and p95 of the delay of every scenario and controller, each flow of a mixed run by itself.
pub(super) fn overview(report: &Report, styles: &[String]) -> Option<Table> {
    if report.scenarios.len() < 2 {
        return None;
    }
    let place = |key: &str| QUANTITIES.iter().position(|q| q.key == key);
    let (used, delay) = (place("use")?, place("delay_p95")?);
    let row = |(i, s): (usize, &ScenarioReport)| {
        let contenders = contenders::of_section(i, s, styles);
        let cell = |name: &String| {
            let mean = |c: &contenders::Contender, at: usize| {
                let values: Vec<f64> = c.runs.iter().filter_map(|r| r.values[at]).collect();
                Stat::of(&values).map(|s| s.mean)
            };
            let own = contenders.iter().filter(|c| c.who == *name);
            let texts: Vec<String> = own
                .filter_map(|c| Some(format!("{} % · {} ms", grouped(mean(c, used)?, 0), grouped(mean(c, delay)?, 0))))
                .collect();
            if texts.is_empty() { "–".into() } else { texts.join("; ") }
        };
        Row { label: s.title.clone(), style: None, cells: styles.iter().map(cell).collect() }
    };
    Some(Table {
        caption: "Link use by goodput (media flows together) · 95th percentile of one-way delay (worst flow)".into(),
        columns: styles.iter().map(|c| (c.clone(), String::new(), String::new())).collect(),
        rows: report.scenarios.iter().enumerate().map(row).collect(),
    })
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
