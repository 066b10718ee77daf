//! Special figures: repair and media rate, stacked rates, a controller's internals, and sweeps over variants.

use super::plot::{Line, Plot};
use super::{capacity, points, series_of, thin};
use weir_lab::results::{FlowKind, RunResult, Stat};
use weir_lab::series::Series;

const TIME: &str = "Time, s";

/// A line from a paper's own figure, drawn over a run's panel.
pub struct Overlay {
    /// The variant that it belongs to.
    pub variant: String,
    /// The controller that it belongs to; any if empty.
    pub controller: String,
    /// Name in the legend.
    pub label: String,
    /// Time in s and value.
    pub points: Vec<(f64, f64)>,
}

fn panel_title(run: &RunResult, several: bool) -> String {
    match (several, run.condition.is_empty()) {
        (false, _) => String::new(),
        (true, true) => run.controller.clone(),
        (true, false) => format!("{} {}", run.controller, run.condition),
    }
}

fn panels(runs: &[&RunResult], y_label: &str, lines: impl Fn(&RunResult, &Series) -> Vec<Line>) -> Vec<Plot> {
    let shown = series_of(runs);
    let panel = |(run, series): &(&RunResult, &Series)| Plot {
        title: panel_title(run, shown.len() > 1),
        y_label: y_label.into(),
        x_label: TIME.into(),
        x_start: 0.0,
        x_end: run.duration_s,
        lines: lines(run, series),
        ..Plot::default()
    };
    shown.iter().map(panel).collect()
}

fn means(label: impl Into<String>, series: &Series, values: &[f64], scale: f64) -> Line {
    Line { label: label.into(), points: points(series, thin(values, false), scale), ..Line::default() }
}

/// Each run in a panel: capacity, media rate of the RTP flows, their repair rate, and the paper's own line if there is one.
pub fn repair(runs: &[&RunResult], overlays: &[Overlay]) -> Vec<Plot> {
    panels(runs, "Rate, kbit/s", |run, series| {
        let mut lines: Vec<Line> = capacity(super::Quantity::Rate, (run, series)).into_iter().collect();
        for (about, flow) in run.flows.iter().zip(&series.flows).filter(|(f, _)| f.kind == FlowKind::Rtp) {
            let media: Vec<f64> = flow.sent_bps.iter().zip(&flow.repair_bps).map(|(s, r)| s - r).collect();
            lines.push(means(format!("{}: media", about.name), series, &media, 1e-3));
            lines.push(means(format!("{}: repair", about.name), series, &flow.repair_bps, 1e-3));
        }
        lines.extend(published(overlays, run));
        lines
    })
}

/// Each run in a panel: capacity, the RTP flows' goodputs, and the paper's own lines if there are any.
pub fn goodput(runs: &[&RunResult], overlays: &[Overlay]) -> Vec<Plot> {
    panels(runs, "Rate, kbit/s", |run, series| {
        let mut lines: Vec<Line> = capacity(super::Quantity::Rate, (run, series)).into_iter().collect();
        for (about, flow) in run.flows.iter().zip(&series.flows).filter(|(f, _)| f.kind == FlowKind::Rtp) {
            lines.push(means(about.name.clone(), series, &flow.goodput_bps, 1e-3));
        }
        lines.extend(published(overlays, run));
        lines
    })
}

fn published<'a>(overlays: &'a [Overlay], run: &'a RunResult) -> impl Iterator<Item = Line> {
    let bears =
        |o: &&Overlay| o.variant == run.condition && (o.controller.is_empty() || o.controller == run.controller);
    let about: Vec<&Overlay> = overlays.iter().filter(bears).collect();
    about.into_iter().map(|o| Line { label: o.label.clone(), points: o.points.clone(), ..Line::default() })
}

/// Each run in a panel: the RTP flows' goodputs and the mean of the TCP flows, each on top of the previous ones, and the
/// repair rate separately.
pub fn stacked(runs: &[&RunResult]) -> Vec<Plot> {
    panels(runs, "Rate, kbit/s", |run, series| {
        let mut lines: Vec<Line> = capacity(super::Quantity::Rate, (run, series)).into_iter().collect();
        let mut sum = vec![0.0; series.time_s.len()];
        let (mut tcp, mut count) = (vec![0.0; series.time_s.len()], 0.0f64);
        let mut repair = vec![0.0; series.time_s.len()];
        let add = |to: &mut [f64], values: &[f64]| to.iter_mut().zip(values).for_each(|(t, v)| *t += v.max(0.0));
        for (about, flow) in run.flows.iter().zip(&series.flows) {
            match about.kind {
                FlowKind::Rtp | FlowKind::Dccp => {
                    add(&mut sum, &flow.goodput_bps);
                    add(&mut repair, &flow.repair_bps);
                    lines.push(means(format!("{} on top", about.name), series, &sum, 1e-3));
                }
                FlowKind::Tcp => {
                    add(&mut tcp, &flow.goodput_bps);
                    count += 1.0;
                }
                FlowKind::Udp => {}
            }
        }
        if count > 0.0 {
            tcp.iter_mut().zip(&sum).for_each(|(t, s)| *t = *t / count + s);
            lines.push(means("mean of TCP on top", series, &tcp, 1e-3));
        }
        lines.push(means("repair", series, &repair, 1e-3));
        lines
    })
}

/// Each run in a panel: internals of its RTP flows' controllers by name, times a factor, and the paper's own lines if there
/// are any.
pub fn internals(
    runs: &[&RunResult],
    (names, scale): (&[String], f64),
    y_label: &str,
    overlays: &[Overlay],
) -> Vec<Plot> {
    panels(runs, y_label, |run, series| {
        let several = run.rtp_flows().count() > 1;
        let mut lines = Vec::new();
        for (about, flow) in run.flows.iter().zip(&series.flows).filter(|(f, _)| f.kind == FlowKind::Rtp) {
            let columns = flow.columns();
            for (name, values) in names.iter().filter_map(|n| columns.iter().find(|c| c.0 == n)) {
                let label = if several { format!("{}: {name}", about.name) } else { (*name).to_owned() };
                lines.push(means(label, series, values, scale));
            }
        }
        lines.extend(published(overlays, run));
        lines
    })
}

/// One line of a sweep.
pub struct SweepLine {
    /// Name in the legend.
    pub label: String,
    /// Value on the horizontal axis and the numbers measured there, one per run.
    pub points: Vec<(f64, Vec<f64>)>,
}

/// A metric over variants: one panel, means over the runs.
pub fn sweep(lines: &[SweepLine], x_label: &str, y_label: &str) -> Vec<Plot> {
    let mean = |(x, values): &(f64, Vec<f64>)| Some((*x, Stat::of(values)?.mean));
    let lines: Vec<Line> = (lines.iter())
        .map(|l| {
            let points = l.points.iter().filter_map(mean).collect();
            Line { label: l.label.clone(), points, ..Line::default() }
        })
        .collect();
    let xs = || lines.iter().flat_map(|l| &l.points).map(|p| p.0);
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(0.0, f64::max));
    let x_start = if low.is_finite() && low > high / 3.0 { low } else { 0.0 };
    vec![Plot { y_label: y_label.into(), x_label: x_label.into(), x_start, x_end: high, lines, ..Plot::default() }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_shows_means_and_leaves_out_what_was_not_measured() {
        let line =
            SweepLine { label: "dpfec".into(), points: vec![(1.0, vec![2.0, 4.0]), (2.0, vec![]), (3.0, vec![6.0])] };
        let plots = sweep(&[line], "Flows", "Window");
        assert_eq!(plots[0].lines[0].points, [(1.0, 3.0), (3.0, 6.0)]);
        assert_eq!((plots[0].x_start, plots[0].x_end), (0.0, 3.0));
    }
}
