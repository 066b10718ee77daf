//! The report of recorded calls as a page: numbers over time with the episodes behind them, causes and files as tables.

mod rows;

use super::Found;
use crate::output::Failure;
use std::path::Path;
use weir_report::atomic_write::write_atomically;
use weir_report::page::{Document, DocumentChart, DocumentLine, DocumentSection, DocumentTable, render_document};
use weir_timeline::why::{Curves, EpisodeKind, Level};
use weir_timeline::{Report, Source};

/// Label of the grey spans behind all lines.
const EPISODES: &str = "episode";

/// Columns of a plot: name, label and style.
type Drawn = (&'static str, &'static str, u8);

/// Title, unit, step of values, whether joined points keep the largest, and columns.
type Plot = (&'static str, &'static str, f64, bool, &'static [Drawn]);

const PLOTS: [Plot; 5] = [
    (
        "Rates",
        "kbit/s",
        1.0,
        false,
        &[
            ("sent_kbps", "sent", 0),
            ("arrived_kbps", "arrived", 1),
            ("received_kbps", "received", 2),
            ("passing_kbps", "passing", 2),
            ("goodput_kbps", "arrived and of use", 1),
            ("estimate_delay_kbps", "estimate by delay", 3),
            ("estimate_loss_kbps", "estimate by loss", 4),
            ("available_kbps", "available (getStats)", 3),
            ("target_kbps", "target", 6),
            ("other_kbps", "others' traffic", 5),
        ],
    ),
    (
        "Delay",
        "ms",
        0.1,
        true,
        &[
            ("delay_ms", "one way, median above the least", 0),
            ("delay_max_ms", "one way, largest above the least", 1),
            ("rtt_ms", "round trip (RTCP)", 2),
            ("stun_rtt_ms", "round trip (STUN)", 3),
            ("jitter_ms", "jitter", 4),
        ],
    ),
    ("Packets lost", "%", 0.01, true, &[("loss_percent", "lost", 0)]),
    (
        "Feedback",
        "1/s",
        0.1,
        false,
        &[("feedback_per_s", "feedback messages", 0), ("answers_per_s", "packets from the other end", 1)],
    ),
    (
        "Pictures",
        "1/s",
        0.1,
        false,
        &[
            ("frames_per_s", "at the receiver", 0),
            ("encoded_per_s", "encoded", 1),
            ("source_per_s", "of the source", 2),
        ],
    ),
];

const NOTES: [(&str, &str); 7] = [
    ("Time", "Since the first time in any of the files."),
    (
        "Episode",
        "Grey: the rate fell by a fifth or more for a second and more, a picture stood still, or the start was slow.",
    ),
    (
        "Confidence",
        "Of a cause, as the rules put it: how well its signs match, and no probability. Several causes can hold.",
    ),
    (
        "Lost, delay",
        "Of packets by the time at which they were sent. Delay is above the least of the recording: clocks of two ends need not agree.",
    ),
    ("Estimate, target", "As logged; each holds until the next, for 10 s at most."),
    (
        "Level of evidence",
        "Packets: captures at both ends. Log: one end's packets and the feedback on them. Statistics: getStats about once a second, which hides what happens within it. One end's packets: what was sent or what arrived, without the other.",
    ),
    (
        "Open loop",
        "Of a controller on recorded feedback: what it would have asked for on this feedback, not what would have happened.",
    ),
];

/// Writes the page, completely or not at all.
pub(super) fn write(path: &Path, found: &Found) -> Result<(), Failure> {
    let html = render_document(&document(found)).map_err(Failure::work)?;
    write_atomically(path, |out| out.write_all(html.as_bytes()))
        .map_err(|e| Failure::Work(format!("cannot write {}: {e}", path.display())))
}

fn document(found: &Found) -> Document {
    let (report, curves) = (&found.report, found.curves.as_ref());
    let level = match report.level {
        Level::None => "none: no rate over time, so that episodes are not known",
        Level::OneEnd => "one end's packets",
        Level::Statistics => "statistics",
        Level::Log => "log",
        Level::Packets => "packets",
    };
    let mut facts = vec![
        ("Files".to_owned(), report.sources.len().to_string()),
        ("Evidence".into(), level.into()),
        ("Episodes".into(), report.episodes.len().to_string()),
    ];
    if let Some(missing) = &report.missing {
        facts.push(("Missing".into(), missing.clone()));
    }
    if let Some(begin) = curves.and_then(|_| rows::utc(found.start_ms)) {
        facts.push(("Begin".into(), begin));
    }
    if let Some(c) = curves.filter(|c| c.start_ms > found.start_ms) {
        facts.push(("Shown from".into(), format!("{:.1} s", (c.start_ms - found.start_ms) as f64 / 1e3)));
    }
    let over_time = curves.map_or_else(Vec::new, |c| plots(found, c));
    let streams = curves.and_then(|c| rows::streams(found, c)).into_iter().collect();
    let charts = [("Over time", over_time), ("Streams and layers", streams)];
    let tables = [causes(found), rows::events(found), files(report), findings(report), rows::packets(found)];
    let section = DocumentSection {
        title: "The call".into(),
        facts,
        charts: (charts.into_iter().filter(|(_, plots)| !plots.is_empty()))
            .map(|(title, plots)| (title.to_owned(), plots))
            .collect(),
        tables: tables.into_iter().filter(|t| !t.rows.is_empty()).collect(),
        ..DocumentSection::default()
    };
    Document {
        title: "A recorded call".into(),
        summary: summary(report),
        sections: vec![section],
        notes: NOTES.iter().map(|(term, meaning)| ((*term).to_owned(), (*meaning).to_owned())).collect(),
    }
}

fn summary(report: &Report) -> String {
    let of = |kind| report.episodes.iter().filter(|e| e.kind == kind).count();
    if report.level == Level::None {
        return "Nothing was looked for: no rate over time is in it.".into();
    }
    if report.episodes.is_empty() {
        return "No fall of the rate, no freeze and no slow start.".into();
    }
    let parts = [
        (EpisodeKind::Fall, "falls of the rate"),
        (EpisodeKind::Freeze, "freezes"),
        (EpisodeKind::SlowStart, "slow starts"),
    ];
    let parts: Vec<String> = (parts.iter().map(|(kind, name)| (of(*kind), name)))
        .filter(|(n, _)| *n > 0)
        .map(|(n, name)| format!("{name}: {n}"))
        .collect();
    format!("Episodes: {}. The causes are those that the rules find likeliest.", parts.join(", "))
}

fn plots(found: &Found, curves: &Curves) -> Vec<DocumentChart> {
    let report = &found.report;
    let start_s = (curves.start_ms - found.start_ms) as f64 / 1e3;
    let rows = curves.columns.first().map_or(0, |c| c.values.len());
    let row_ms = curves.interval_s * 1e3;
    let marked: Vec<bool> = {
        let mut marked = vec![false; rows];
        for e in &report.episodes {
            let row = |ms: i64| ((ms - curves.start_ms) as f64 / row_ms).clamp(0.0, rows as f64);
            let (from, to) = (row(e.from_ms) as usize, row(e.to_ms).ceil() as usize);
            marked[from..to.max(from)].fill(true);
        }
        marked
    };
    let chart = |(title, unit, step, peaks, columns): &Plot| {
        let line = |(name, label, style): &Drawn| {
            let values = curves.column(name)?.to_vec();
            Some(DocumentLine { label: (*label).into(), style: Some(*style), values })
        };
        let mut lines: Vec<DocumentLine> = columns.iter().filter_map(line).collect();
        if *unit == "kbit/s" {
            lines.extend(report.replays.iter().zip([7, 2, 5].into_iter().cycle()).map(|(r, style)| DocumentLine {
                label: format!("{}, open loop", r.controller),
                style: Some(style),
                values: held(&r.targets, curves, rows),
            }));
        }
        let highest = lines.iter().flat_map(|l| &l.values).copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        if lines.is_empty() {
            return None;
        }
        if highest > 0.0 && marked.contains(&true) {
            let values = marked.iter().map(|m| if *m { highest } else { f64::NAN }).collect();
            lines.insert(0, DocumentLine { label: EPISODES.into(), style: None, values });
        }
        Some(DocumentChart {
            title: (*title).into(),
            unit,
            start_s,
            interval_s: curves.interval_s,
            step: *step,
            peaks: *peaks,
            lines,
            notes: Vec::new(),
        })
    };
    PLOTS.iter().filter_map(chart).collect()
}

/// Targets of a replay at the rows of the curves.
fn held(targets: &[(i64, f64)], curves: &Curves, rows: usize) -> Vec<f64> {
    let end = |row: usize| curves.start_ms as f64 + (row + 1) as f64 * curves.interval_s * 1e3;
    let last = targets.last().map_or(f64::NEG_INFINITY, |t| t.0 as f64 + curves.interval_s * 1e3);
    let value = |row| {
        let n = targets.partition_point(|t| t.0 as f64 <= end(row));
        n.checked_sub(1).filter(|_| end(row) <= last).map_or(f64::NAN, |i| targets[i].1)
    };
    (0..rows).map(value).collect()
}

fn causes(found: &Found) -> DocumentTable {
    let (report, start) = (&found.report, found.start_ms);
    let second = |ms: i64| format!("{:.1}", ((ms - start) as f64 / 100.0).round() / 10.0 + 0.0);
    let mut rows = Vec::new();
    for e in &report.episodes {
        let kind = match e.kind {
            EpisodeKind::Fall => "fall".to_owned(),
            EpisodeKind::SlowStart => "slow start".to_owned(),
            EpisodeKind::Freeze => match (e.freezes, e.frozen_ms) {
                (Some(n), Some(ms)) if n > 1 => format!("{n} freezes, {:.1} s in all", ms as f64 / 1e3),
                _ => "freeze".to_owned(),
            },
        };
        for (i, cause) in e.causes.iter().enumerate() {
            let label =
                if i == 0 { format!("{} to {} s: {kind}", second(e.from_ms), second(e.to_ms)) } else { String::new() };
            let confidence = format!("{:.0}", cause.confidence * 100.0);
            rows.push((label, vec![cause.name.to_string(), confidence, cause.evidence.join("; ")]));
        }
    }
    DocumentTable {
        caption: "Episodes and their causes, the likeliest first".into(),
        first: "Episode",
        columns: vec![
            ("Cause", "", "docs/open.md has all names"),
            ("Confidence", "%", "how well the signs match"),
            ("Evidence", "", "numbers that speak for it"),
        ],
        rows,
    }
}

fn files(report: &Report) -> DocumentTable {
    let seconds = |s: &Source| match (s.from_ms, s.to_ms) {
        (Some(from), Some(to)) => format!("{:.1}", (to - from) as f64 / 1e3),
        _ => "–".into(),
    };
    let row = |s: &Source| {
        let p = &s.packets;
        let mut notes: Vec<String> = s.faults.iter().map(|(what, n)| format!("passed over: {n} {what}")).collect();
        notes.extend(s.guessed.iter().map(|fact| format!("by behaviour: {fact}")));
        notes.extend(s.damaged.as_ref().map(|at| format!("damaged at byte {}: {}", at.offset, at.why)));
        notes.extend(s.stopped.as_ref().map(|at| format!("stopped at byte {}: {}", at.offset, at.why)));
        let counts = [p.sent, p.reported_lost, p.received, p.lost, p.passing, s.rtcp, s.reported, s.probes];
        let counts = counts.map(|n: u64| n.to_string());
        let cells = [s.format.name().to_owned(), seconds(s)].into_iter().chain(counts).chain([notes.join("; ")]);
        (s.path.clone(), cells.collect())
    };
    DocumentTable {
        caption: "Files".into(),
        first: "File",
        columns: vec![
            ("Format", "", "recognised by content"),
            ("Time", "s", "from first to last"),
            ("Sent", "", "RTP packets sent by the recording end"),
            ("Reported lost", "", "of these, by the other end's feedback"),
            ("Received", "", "RTP packets that it received"),
            ("Lost", "", "missing among the received ones"),
            ("Passing", "", "RTP packets in a capture that does not tell"),
            ("RTCP", "", "packets"),
            ("Reported", "", "packets in feedback"),
            ("Probes", "", "steps of probe clusters"),
            ("Notes", "", "faults passed over, and facts recognised by behaviour"),
        ],
        rows: report.sources.iter().map(row).collect(),
    }
}

fn findings(report: &Report) -> DocumentTable {
    let row = |f: &weir_timeline::lint::Finding| {
        let first = f.packets.first().map_or_else(String::new, |p| format!("packet {}: {}", p.number, p.text));
        let cells = vec![f.count.to_string(), first, f.section.to_string(), f.effect.to_string()];
        (format!("{} ({})", f.rule, f.path), cells)
    };
    DocumentTable {
        caption: "Rules that are broken".into(),
        first: "Rule",
        columns: vec![
            ("Times", "", "packets that break it"),
            ("First", "", "first packet that breaks it"),
            ("Document", "", "section that states it"),
            ("Effect", "", "effect at the other end"),
        ],
        rows: report.findings.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_timeline::Call;
    use weir_timeline::why::{Cause, Column, Episode};

    #[test]
    fn the_page_has_lines_grey_episodes_and_causes_as_text() {
        let cause =
            Cause { name: "capacity-fell".into(), confidence: 0.85, evidence: vec!["served at 474 <kbit/s>".into()] };
        let episode = Episode {
            from_ms: 2_000,
            to_ms: 3_000,
            kind: EpisodeKind::Fall,
            freezes: None,
            frozen_ms: None,
            causes: vec![cause],
        };
        let report = Report {
            sources: vec![],
            level: Level::Log,
            missing: None,
            episodes: vec![episode],
            findings: vec![],
            replays: vec![],
        };
        let column = |name, values: &[f64]| Column { name, values: values.to_vec() };
        let curves = Curves {
            start_ms: 1_000,
            interval_s: 0.5,
            columns: vec![column("sent_kbps", &[100.0, 100.0, 40.0, 40.0, 90.0]), column("loss_percent", &[0.0; 5])],
        };
        let found = Found { call: Call::new(vec![]), report, curves: Some(curves), start_ms: 1_000 };
        let html = render_document(&document(&found)).expect("renders");
        for there in ["1.0 to 2.0 s: fall", ">capacity-fell</td>", "<td>85</td>", "474 &lt;kbit"] {
            assert!(html.contains(there), "{there}");
        }
        let charts = plots(&found, found.curves.as_ref().expect("curves"));
        assert_eq!(charts.iter().map(|c| c.title.as_str()).collect::<Vec<_>>(), ["Rates", "Packets lost"]);
        let grey: Vec<bool> = charts[0].lines[0].values.iter().map(|v| v.is_finite()).collect();
        assert_eq!((charts[0].lines[0].label.as_str(), grey), (EPISODES, vec![false, false, true, true, false]));
        assert_eq!(charts[1].lines.len(), 1, "nothing is grey where all values are zero");
    }

    #[test]
    fn targets_of_a_replay_end_where_it_ends() {
        let curves = Curves { start_ms: 0, interval_s: 0.5, columns: vec![] };
        let values = held(&[(100, 1.0), (400, 2.0), (600, 3.0)], &curves, 4);
        assert_eq!(&values[..2], [2.0, 3.0]);
        assert!(values[2..].iter().all(|v| v.is_nan()), "{values:?}");
    }
}
