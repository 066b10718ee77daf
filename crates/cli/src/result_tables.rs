//! Results as tables.

mod pictures;

use crate::tables::{Table, fold, table};
use std::collections::BTreeMap;
use weir_lab::compare::Outcome;
use weir_lab::results::{Aggregate, FlowKind, RunResult, Stat, StreamSummary};
use weir_lab::scenario::{Scenario, differing_limits};

/// Flows of a run that a table shows; the others are counted.
const MAX_FLOWS: usize = 12;
/// Streams of a run that a table shows.
const MAX_STREAMS: usize = 48;

type Metrics = BTreeMap<String, Stat>;

/// Mean and, over several runs, the half-width of its 95 % confidence interval.
fn number(metrics: &Metrics, name: &str, scale: f64, digits: usize) -> String {
    let Some(s) = metrics.get(name) else { return "-".into() };
    let mean = format!("{:.digits$}", s.mean * scale);
    match s.ci95 {
        Some(ci) if ci * scale >= 0.5 * 10f64.powi(-(digits as i32)) => format!("{mean} ±{:.digits$}", ci * scale),
        _ => mean,
    }
}

const HEADER: [&str; 13] = [
    "controller",
    "flow",
    "use %",
    "sent kbit/s",
    "goodput kbit/s",
    "delay ms",
    "p95 ms",
    "frame p95 ms",
    "loss %",
    "late %",
    "queue p95 ms",
    "Jain",
    "TCP share",
];

/// Left out first in a narrow terminal, in this order.
const SPARE: [&str; 5] = ["sent kbit/s", "queue p95 ms", "late %", "goodput kbit/s", "frame p95 ms"];

fn rows(t: &mut Table, a: &Aggregate) {
    for (i, f) in a.flows.iter().take(MAX_FLOWS).enumerate() {
        let flow = |name, scale, digits| number(&f.metrics, name, scale, digits);
        let run = |name, digits| if i == 0 { number(&a.metrics, name, 1.0, digits) } else { String::new() };
        t.add_row([
            f.controller.clone(),
            f.name.clone(),
            flow("utilisation", 100.0, 1),
            flow("sent_bps", 1e-3, 0),
            flow("goodput_bps", 1e-3, 0),
            flow("one_way_delay_mean_ms", 1.0, 0),
            flow("one_way_delay_p95_ms", 1.0, 0),
            flow("frame_delay_p95_ms", 1.0, 0),
            flow("loss", 100.0, 2),
            flow("discard", 100.0, 2),
            run("queue_delay_p95_ms", 0),
            run("jain_end", 3),
            run("tcp_share", 2),
        ]);
    }
    if a.flows.len() > MAX_FLOWS {
        t.add_row([String::new(), format!("... {} more", a.flows.len() - MAX_FLOWS)]);
    }
}

/// Explains the columns of [`HEADER`]; `several` runs have an interval.
fn legend(several: bool, mixed: bool, with_pictures: bool) -> String {
    let mut text = String::from(
        "use %: media that an RTP or DCCP flow made, or what arrived of a TCP or UDP flow, over the capacity while the flow was active",
    );
    text.push_str(if mixed {
        "; each flow is set against the whole capacity, so that the flows of a run do not add up to 100. Above 100, a flow made \
         more than the link carries. "
    } else {
        "; above 100, more was made than the link carries. "
    });
    text.push_str(
        "delay: mean one-way delay of the packets that arrived, from sender to receiver; p95: its 95th percentile. ",
    );
    text.push_str("frame p95: from capture to the complete frame, the wait in the sender's own queue included. ");
    if with_pictures {
        text.push_str(pictures::LEGEND);
    }
    if several {
        text.push_str("Numbers are means over the runs; ±: half-width of the 95 % confidence interval of the mean. ");
    }
    text.push_str("`weir show schema --markdown` explains every number.\n");
    text
}

fn is_mixed(flows: impl Iterator<Item = FlowKind>) -> bool {
    let mut kinds: Vec<FlowKind> = flows.collect();
    kinds.dedup();
    kinds.len() > 1
}

/// A scenario, or a variant of it, under several controllers.
struct Section<'a> {
    heading: String,
    table: Table,
    scenarios: Vec<&'a Scenario>,
    /// The streams of flows that have several.
    streams: Table,
    /// Of flows with pictures.
    pictures: Table,
}

/// One table for each scenario and variant.
pub(crate) fn outcome(outcome: &Outcome) -> String {
    let mut sections: Vec<Section<'_>> = Vec::new();
    let (mut several, mut mixed) = (false, false);
    for (scenario, runs, a) in outcome.groups() {
        several |= a.seeds.len() > 1;
        mixed |= is_mixed(a.flows.iter().map(|f| f.kind));
        let variant = scenario.variant.as_ref().map(|v| format!(" [{v}]")).unwrap_or_default();
        let count = if a.seeds.len() == 1 { String::new() } else { format!(", {} runs", a.seeds.len()) };
        let heading = format!("{}{variant}: {}{count}", scenario.name, scenario.title);
        if sections.last().is_none_or(|s| s.heading != heading) {
            let table = table(&HEADER, 2).keys(2).spares(&SPARE);
            let (streams, pictures) = (stream_table(), pictures::empty());
            sections.push(Section { heading, table, scenarios: Vec::new(), streams, pictures });
        }
        if let Some(section) = sections.last_mut() {
            rows(&mut section.table, &a);
            section.scenarios.push(scenario);
            stream_rows(&mut section.streams, runs);
            pictures::add(&mut section.pictures, runs);
        }
    }
    let part = |s: &Section<'_>| {
        let limits =
            differing_limits(s.scenarios.iter().copied()).map_or_else(String::new, |l| fold(&format!("{l}\n")));
        let [streams, pictures] = [&s.streams, &s.pictures].map(unless_empty);
        format!("{}\n{}\n{streams}{pictures}{limits}\n", fold(&s.heading), s.table)
    };
    let mut out: String = sections.iter().map(part).collect();
    if !sections.is_empty() {
        let with_pictures = sections.iter().any(|s| !s.pictures.is_empty());
        out.push_str(&fold(&legend(several, mixed, with_pictures)));
    }
    out
}

/// The table of one run.
pub(crate) fn run(label: &str, run: &RunResult) -> String {
    let mut t = table(&HEADER, 2).keys(2).spares(&SPARE);
    if let Some(a) = weir_lab::results::aggregate(std::slice::from_ref(run)) {
        rows(&mut t, &a);
    }
    let (mut streams, mut pictures) = (stream_table(), pictures::empty());
    stream_rows(&mut streams, std::slice::from_ref(run));
    pictures::add(&mut pictures, std::slice::from_ref(run));
    let legend = legend(false, is_mixed(run.flows.iter().map(|f| f.kind)), !pictures.is_empty());
    let parts = unless_empty(&streams) + &unless_empty(&pictures) + &paths(run);
    format!("{}\n{t}\n{parts}{}", fold(&format!("{label}, seed {}", run.seed)), fold(&legend))
}

/// A table and an end of line, where it has rows.
fn unless_empty(t: &Table) -> String {
    if t.is_empty() { String::new() } else { format!("{t}\n") }
}

/// A table for the streams of flows that have several.
fn stream_table() -> Table {
    let header = [
        "controller",
        "flow",
        "stream",
        "share kbit/s",
        "sent kbit/s",
        "on %",
        "switches",
        "loss %",
        "played %",
        "concealed %",
    ];
    table(&header, 3).keys(3)
}

/// Adds the streams of these runs, which differ by seed alone: means over them.
fn stream_rows(t: &mut Table, runs: &[RunResult]) {
    let Some(first) = runs.first() else { return };
    let all = first.flows.iter().enumerate().flat_map(|(f, flow)| (0..flow.streams.len()).map(move |s| (f, s)));
    for (f, s) in all.take(MAX_STREAMS) {
        let each: Vec<_> = runs.iter().filter_map(|r| r.flows.get(f)?.streams.get(s)).collect();
        let mean = |of: &dyn Fn(&StreamSummary) -> f64| each.iter().map(|s| of(s)).sum::<f64>() / each.len() as f64;
        let concealed: Option<Vec<f64>> = each.iter().map(|s| s.concealed).collect();
        let played = |s: &&StreamSummary| s.frames.map(|f| f.played as f64 / f.frames.max(1) as f64);
        let played: Option<Vec<f64>> = each.iter().map(played).collect();
        let percent = |shares: Option<Vec<f64>>| {
            shares.map_or("-".into(), |s| format!("{:.2}", s.iter().sum::<f64>() / s.len() as f64 * 100.0))
        };
        let (flow, stream) = (&first.flows[f], &first.flows[f].streams[s]);
        t.add_row([
            flow.controller.clone(),
            flow.name.clone(),
            stream.name.clone(),
            format!("{:.0}", mean(&|s| s.share_bps) * 1e-3),
            format!("{:.0}", mean(&|s| s.sent_bps) * 1e-3),
            format!("{:.1}", mean(&|s| s.on) * 100.0),
            format!("{:.0}", mean(&|s| s.switches as f64)),
            format!("{:.2}", mean(&|s| s.loss) * 100.0),
            percent(played),
            percent(concealed),
        ]);
    }
}

/// The paths of the flows that have several; nothing where none has.
fn paths(run: &RunResult) -> String {
    let mut out = String::new();
    let optional = |v: Option<f64>| v.map_or("-".into(), |v| format!("{v:.0}"));
    for (flow, m) in run.flows.iter().filter_map(|f| Some((f, f.multipath.as_deref()?))).take(MAX_FLOWS) {
        let header = ["flow", "path", "share %", "sent kbit/s", "target kbit/s", "RTT ms", "p95 ms", "loss %"];
        let mut t = table(&header, 2).keys(2);
        for p in &m.paths {
            t.add_row([
                flow.name.clone(),
                p.name.clone(),
                format!("{:.1}", p.share * 100.0),
                format!("{:.0}", p.sent_bps * 1e-3),
                optional(p.target_bps.map(|t| t * 1e-3)),
                optional(p.rtt_ms),
                optional(p.one_way_delay_ms.map(|d| d.p95)),
                format!("{:.2}", p.loss * 100.0),
            ]);
        }
        let late = m.late_time_ms.map_or(0.0, |d| d.p95);
        let text = format!(
            "{}, scheduler {}: residual loss {:.2} %, duplicates {:.1} %, reordered {:.1} %, late by {late:.0} ms (p95), \
             skew {} ms, longest gap {:.0} ms at {:.1} s",
            flow.name,
            m.scheduler,
            m.residual_loss * 100.0,
            m.duplicates * 100.0,
            m.reordered * 100.0,
            optional(m.skew_ms),
            m.longest_gap_ms,
            m.longest_gap_at_s
        );
        out.push_str(&format!("{t}\n{}", fold(&text)));
    }
    out
}
