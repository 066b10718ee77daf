//! A fit as a page: capacity with its bounds over time, and the recorded controller on the fitted link.

use super::answer::{number, repair, set};
use crate::output::Failure;
use std::path::Path;
use weir_fit::{Changes, Check, Evidence, Fit, Residual, WhatIf};
use weir_report::atomic_write::write_atomically;
use weir_report::page::{Document, DocumentChart, DocumentLine, DocumentSection, DocumentTable, render_document};

const NOTES: [(&str, &str); 4] = [
    ("Served", "Rate at which the link served packets that waited for one another: the capacity."),
    ("Bounds", "Where no packet waited, the capacity is at least what arrived; rates around bound it from above."),
    ("Likely", "The capacity of the fitted scenario."),
    (
        "On the fitted link",
        "The recorded controller, simulated over the likely link: its difference from what arrived is the fit's.",
    ),
];

/// Writes the page, completely or not at all.
pub(super) fn write(path: &Path, fit: &Fit, residual: Option<&Residual>) -> Result<(), Failure> {
    render(path, &document(fit, residual))
}

fn render(path: &Path, document: &Document) -> Result<(), Failure> {
    let html = render_document(document).map_err(Failure::work)?;
    write_atomically(path, |out| out.write_all(html.as_bytes()))
        .map_err(|e| Failure::Work(format!("cannot write {}: {e}", path.display())))
}

/// Writes the page of predictions, completely or not at all.
pub(super) fn write_whatif(
    path: &Path,
    fit: &Fit,
    changes: &Changes,
    answer: &WhatIf,
    check: Option<&Check>,
) -> Result<(), Failure> {
    let mut page = document(fit, None);
    let row = |name: &str, p: &weir_fit::Prediction| {
        let cells = [
            number(&p.goodput_kbps, 0),
            number(&p.delay_p95_ms, 0),
            number(&p.late_percent, 1),
            number(&p.frozen_s, 1),
        ];
        (name.to_owned(), cells.to_vec())
    };
    let predictions = DocumentTable {
        caption: format!(
            "Over the likeliest link, and from the 5th to the 95th percentile of {} drawn links",
            answer.draws
        ),
        first: "Controller",
        columns: vec![
            ("goodput", "kbit/s", "mean rate that arrived, without repair"),
            ("delay p95", "ms", "95th percentile of the one-way delay"),
            ("late or lost", "%", "share of the frames"),
            ("frozen", "s", "time in which the picture stands still"),
        ],
        rows: answer.controllers.iter().map(|p| row(&p.controller, p)).collect(),
    };
    let mut section =
        DocumentSection { title: "Other controllers".into(), tables: vec![predictions], ..DocumentSection::default() };
    let said = match check {
        Some(check) => check.words(),
        None => "Whether the fit explains the call is not checked: the recorded controller is not named.".into(),
    };
    section.doc =
        [set(changes), Some(said), Some(repair(changes))].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    if let Some(check) = check {
        let recorded =
            vec![format!("{:.0}", check.recorded.received_kbps), format!("{:.0}", check.recorded.delay_p95_ms)];
        section.tables.push(DocumentTable {
            caption: format!("{}, recorded and over the links", check.controller),
            first: "",
            columns: vec![
                ("arrived", "kbit/s", "rate that arrived, repair and audio included"),
                ("delay p95", "ms", "95th percentile of the one-way delay"),
            ],
            rows: vec![
                ("recorded".into(), recorded),
                ("over its links".into(), vec![number(&check.received_kbps, 0), number(&check.delay_p95_ms, 0)]),
            ],
        });
    }
    page.title = "Other controllers in a recorded call".into();
    page.sections.insert(0, section);
    render(path, &page)
}

fn document(fit: &Fit, residual: Option<&Residual>) -> Document {
    let c = &fit.capacity;
    let line =
        |label: &str, style: u8, values: Vec<f64>| DocumentLine { label: label.into(), style: Some(style), values };
    let known = |of: &[Option<f64>]| of.iter().map(|v| v.map_or(f64::NAN, |v| v * 1e-3)).collect::<Vec<_>>();
    let plain = |of: &[f64]| of.iter().map(|v| v * 1e-3).collect::<Vec<_>>();
    let chart = |title: &str, unit, interval_s, lines| DocumentChart {
        title: title.into(),
        unit,
        start_s: 0.0,
        interval_s,
        step: 1.0,
        peaks: false,
        lines,
        notes: Vec::new(),
    };
    let capacity = vec![
        line("arrived", 1, plain(&c.arrived_bps)),
        line("served", 0, known(&c.served_bps)),
        line("likely", 3, plain(&c.likely_bps)),
        line("at most", 5, known(&c.most_bps)),
    ];
    let mut plots = vec![chart("Capacity", "kbit/s", c.bin_s, capacity)];
    if let Some(r) = residual.filter(|r| r.received_kbps.len() > 1) {
        let interval = r.received_kbps[1].0 - r.received_kbps[0].0;
        let per = (interval / c.bin_s + 0.5).max(1.0) as usize;
        let means = c.arrived_bps.chunks(per).map(|b| b.iter().sum::<f64>() / b.len() as f64 * 1e-3).collect();
        let simulated = r.received_kbps.iter().map(|v| v.1).collect();
        let label = format!("{} on the fitted link", r.controller);
        plots.push(chart("Arrived", "kbit/s", interval, vec![line("measured", 1, means), line(&label, 0, simulated)]));
    }
    let evidence = match fit.evidence {
        Evidence::Packets => "packets with their fates",
        Evidence::Statistics => "statistics once a second: coarse, with wide bounds",
    };
    let facts = vec![
        ("Length".to_owned(), format!("{:.1} s", fit.length_s)),
        ("Evidence".into(), evidence.into()),
        ("Round trip".into(), fit.rtt_ms.map_or("not known".into(), |r| format!("{r:.1} ms"))),
        ("Capacity known".into(), format!("{:.0} % of the time", c.known_share() * 100.0)),
    ];
    let gaps: Vec<String> = fit.unknown.iter().map(|g| format!("Not known: {g}.")).collect();
    let section = DocumentSection {
        title: "The link".into(),
        doc: gaps.join("\n\n"),
        facts,
        charts: vec![("Over time".into(), plots)],
        ..DocumentSection::default()
    };
    Document {
        title: "The link of a recorded call".into(),
        summary: "Capacity is known where packets waited for one another; elsewhere it has bounds.".into(),
        sections: vec![section],
        notes: NOTES.iter().map(|(term, meaning)| ((*term).to_owned(), (*meaning).to_owned())).collect(),
    }
}
