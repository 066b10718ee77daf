//! The rates that a call's controller keeps beside its target, in a report: what it takes the path to carry, and what bounds the target.

use super::ScenarioReport;
use super::charts::{Chart, Raw, Thinned, chart};
use crate::smooth::trailing_mean;
use weir_lab::results::RunResult;
use weir_lab::series::FlowSeries;

/// Rates of a call that are drawn, in the order in which its controller has them.
const MAX_RATES: usize = 7;

/// A name without prefix and unit, and the values in bit/s, of each rate that has a value.
fn rates(call: &FlowSeries) -> impl Iterator<Item = (String, &[f64])> {
    let named = call.internals.iter().filter_map(|(name, values)| {
        let name = name.strip_prefix("cc_").unwrap_or(name).strip_suffix("_bps")?;
        values.iter().any(|v| v.is_finite()).then(|| (name.replace('_', " "), &values[..]))
    });
    named.take(MAX_RATES)
}

/// The first flow of a run whose controller has such rates.
fn call(run: &RunResult) -> Option<(&FlowSeries, f64)> {
    let series = run.series.as_ref()?;
    let call = series.flows.iter().find(|f| rates(f).next().is_some())?;
    Some((call, series.interval_s))
}

/// Number of lines of a scenario's charts, by which the points are allocated.
pub(super) fn line_count(s: &ScenarioReport) -> usize {
    s.controllers.iter().filter_map(|c| call(&c.shown)).map(|(call, _)| 1 + rates(call).count()).sum()
}

/// A chart of the first call of each controller's plotted run, if the controller has such rates. A rate has one style in all.
pub(super) fn charts(s: &ScenarioReport, points: usize) -> Vec<Chart> {
    let mut styles: Vec<String> = Vec::new();
    let runs = s.controllers.iter().map(|c| &c.shown);
    runs.filter_map(|run| {
        let (call, interval) = call(run)?;
        let line = |label: String, style, values: &[f64]| {
            let values = values.iter().map(|v| if v.is_finite() { v * 1e-3 } else { f64::NAN }).collect();
            Raw { label, style, values, all: None }
        };
        // Internals are those of the first path, the target is that of all.
        let first = call.paths.first().map(|(name, _)| name.strip_prefix("path_bps:").unwrap_or(name));
        let target = line("target".into(), -1, &trailing_mean(&call.target_bps, interval));
        let mut lines: Vec<Raw> = first.is_none().then_some(target).into_iter().collect();
        for (name, values) in rates(call) {
            let style = styles.iter().position(|n| *n == name).unwrap_or_else(|| {
                styles.push(name.clone());
                styles.len() - 1
            });
            lines.push(line(name, style as i32, values));
        }
        let path = first.map_or(String::new(), |name| format!(", path {name}"));
        let title = format!("Rates within {}: {}{path}", run.controller, call.name);
        Some(chart(&title, "kbit/s", lines, Thinned::mean(interval, points), None))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_with_values_are_drawn_by_their_names() {
        let column = |name: &'static str, values: [f64; 2]| (name.into(), values.to_vec());
        let call = FlowSeries {
            internals: vec![
                column("cc_map_bound_bps", [f64::NAN, 2e5]),
                column("cc_notice_bps", [f64::NAN, f64::NAN]),
                column("queue_ms", [1.0, 2.0]),
                column("capacity_bps", [1e6, f64::INFINITY]),
            ],
            ..FlowSeries::default()
        };
        let names: Vec<String> = rates(&call).map(|r| r.0).collect();
        assert_eq!(names, ["map bound", "capacity"]);
        assert_eq!(rates(&FlowSeries::default()).count(), 0);
    }
}
