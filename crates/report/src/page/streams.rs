//! Streams and paths of calls in a report: stacked under their target, and tables.

use super::ScenarioReport;
use super::charts::{Chart, Raw, Thinned, chart};
use super::tables::{Row, Table, column, grouped};
use crate::smooth::trailing_mean;
use weir_lab::results::RunResult;
use weir_lab::series::FlowSeries;

/// Calls of a run whose streams are drawn.
const MAX_CALLS: usize = 3;

/// Parts of a call over time: a name with its prefix, and rates.
type Parts = Vec<(String, Vec<f64>)>;

/// A chart for each call of the run with several streams: each line is the sum of the shares up to its stream, the target
/// above all.
pub(super) fn charts(run: &RunResult, points: usize) -> Vec<Chart> {
    stacks(run, points, "Shares of the target, stacked", "share_bps:", |f| &f.streams)
}

/// The same of the rates sent on the paths of each call that has several.
pub(super) fn path_charts(run: &RunResult, points: usize) -> Vec<Chart> {
    stacks(run, points, "Sent on each path, stacked", "path_bps:", |f| &f.paths)
}

fn stacks(run: &RunResult, points: usize, what: &str, prefix: &str, parts: fn(&FlowSeries) -> &Parts) -> Vec<Chart> {
    let Some(series) = run.series.as_ref() else { return vec![] };
    let calls = series.flows.iter().filter(|f| !parts(f).is_empty()).take(MAX_CALLS);
    calls
        .map(|call| {
            let title = format!("{what}: {} under {}", call.name, run.controller);
            let thinned = Thinned::mean(series.interval_s, points);
            let lines = stacked(call, parts(call), prefix, series.interval_s);
            let mut chart = chart(&title, "kbit/s", lines, thinned, None);
            chart.stack();
            chart
        })
        .collect()
}

/// The sums in decreasing order, so that each line's area is drawn over those above it.
fn stacked(call: &FlowSeries, parts: &[(String, Vec<f64>)], prefix: &str, interval: f64) -> Vec<Raw> {
    let mut sum = vec![0.0; call.target_bps.len()];
    let mut lines = Vec::new();
    for (style, (name, values)) in parts.iter().enumerate() {
        sum.iter_mut().zip(values).for_each(|(s, v)| *s += if v.is_nan() { 0.0 } else { *v });
        let label = name.strip_prefix(prefix).unwrap_or(name).to_owned();
        let values = trailing_mean(&sum, interval).into_iter().map(|v| v * 1e-3).collect();
        lines.push(Raw { label, style: style as i32, values, all: None });
    }
    let target = trailing_mean(&call.target_bps, interval).into_iter().map(|v| v * 1e-3).collect();
    lines.push(Raw { label: "target".into(), style: -1, values: target, all: None });
    lines.reverse();
    lines
}

/// The streams of the plotted run under each controller; empty if all calls have one stream.
pub(super) fn table(s: &ScenarioReport, style: impl Fn(&str) -> Option<usize>) -> Option<Table> {
    let mut rows = Vec::new();
    for run in s.controllers.iter().map(|c| &c.shown) {
        for (flow, stream) in run.flows.iter().flat_map(|f| f.streams.iter().map(move |s| (f, s))).take(24) {
            rows.push(Row {
                label: format!("{}: {} {}", run.controller, flow.name, stream.name),
                style: style(&run.controller),
                cells: vec![
                    grouped(stream.share_bps * 1e-3, 0),
                    grouped(stream.sent_bps * 1e-3, 0),
                    grouped(stream.on * 100.0, 1),
                    stream.switches.to_string(),
                    grouped(stream.loss * 100.0, 2),
                    stream.concealed.map_or("–".into(), |c| grouped(c * 100.0, 2)),
                ],
            });
        }
    }
    (!rows.is_empty()).then(|| Table {
        first: None,
        caption: "Streams of the plotted run".into(),
        columns: vec![
            column("Share", "kbit/s", "of the controller's target, mean over the flow's time"),
            column("Sent", "kbit/s", "RTP, headers and padding included"),
            column("On", "%", "time in which the stream had a share"),
            column("Switches", "", "times that it was switched on or off"),
            column("Loss", "%", "packets lost on the path over packets expected"),
            column("Concealed", "%", "share of speech concealed by the receiver; of audio"),
        ],
        rows,
    })
}
