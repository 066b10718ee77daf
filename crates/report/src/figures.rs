//! Figures as SVG and PDF files: a paper's plots over time, drawn from runs.
//!
//! SVG files have no external resources and follow the reader's light or dark setting; lines differ by dashes as well as by
//! colour, and a title and a description serve readers who do not see them.
//!
//! Figures as SVG are written by this module, since they follow the reader's light or dark theme by CSS, which the
//! plotting library does not support.

mod drawing;
mod kinds;
mod pdf;
mod plot;
mod runs;
mod svg;
mod value_axis;

use crate::atomic_write::write_atomically;
use crate::smooth::{trailing_mean, while_active};
pub use kinds::{Overlay, SweepLine, goodput, internals, repair, stacked, sweep};
pub use plot::{Bar, Line, Plot, Scale};
pub use runs::{Of, cdf, fairness, throughput};
use std::io;
use std::path::Path;
use weir_lab::results::{FlowKind, FlowSummary, RunResult};
use weir_lab::series::{FlowSeries, Series};

/// The quantity that a figure plots over time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Quantity {
    /// Rates in kbit/s with the bottleneck's capacity behind them: the controller's target if there is one
    /// (which the paper's generator logs), otherwise goodput over a second (TCP).
    Rate,
    /// One-way delay of RTP packets in ms: the largest mean of a sampling interval.
    Delay,
}

/// Maximum points of a line: a figure is about 700 points wide.
const POINTS: usize = 700;

/// A figure from runs with time series; runs without one are omitted. If every run has only one RTP flow, all
/// runs share one plot; otherwise each run has a separate panel with a line for each flow.
pub fn svg(title: &str, quantity: Quantity, runs: &[&RunResult]) -> String {
    svg::draw(title, &over_time(quantity, runs))
}

fn series_of<'a>(runs: &[&'a RunResult]) -> Vec<(&'a RunResult, &'a Series)> {
    runs.iter().filter_map(|r| Some((*r, r.series.as_ref()?))).collect()
}

/// The panels of [`svg`].
pub fn over_time(quantity: Quantity, runs: &[&RunResult]) -> Vec<Plot> {
    let shown = series_of(runs);
    let end = shown.iter().map(|(r, _)| r.duration_s).fold(0.0, f64::max);
    let single = shown.iter().all(|(r, _)| r.flows.len() == 1);
    let unit = match quantity {
        Quantity::Rate => "Rate, kbit/s",
        Quantity::Delay => "One-way delay, ms",
    };
    let mut plots = Vec::new();
    if single && !shown.is_empty() {
        let mut lines: Vec<Line> = capacity(quantity, shown[0]).into_iter().collect();
        for (run, series) in &shown {
            let flow = run.flows.first().zip(series.flows.first());
            lines.extend(flow.map(|f| line(run.controller.clone(), quantity, f, series)));
        }
        plots.push(Plot {
            title: String::new(),
            y_label: unit.into(),
            x_label: "Time, s".into(),
            x_start: 0.0,
            x_end: end,
            lines,
            ..Plot::default()
        });
    } else {
        for (run, series) in &shown {
            let mut lines: Vec<Line> = capacity(quantity, (run, series)).into_iter().collect();
            for (summary, flow) in run.flows.iter().zip(&series.flows) {
                if summary.kind == FlowKind::Rtp || quantity == Quantity::Rate {
                    let label = label(run, &summary.name, &summary.controller);
                    lines.push(line(label, quantity, (summary, flow), series));
                }
            }
            let title = if shown.len() > 1 { run.controller.clone() } else { String::new() };
            plots.push(Plot {
                title,
                y_label: unit.into(),
                x_label: "Time, s".into(),
                x_start: 0.0,
                x_end: end,
                lines,
                ..Plot::default()
            });
        }
    }
    plots
}

/// The format of a figure's file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// SVG, for pages: it follows the reader's light or dark setting.
    Svg,
    /// PDF, for papers: dark on white, with Helvetica, which is not embedded.
    Pdf,
}

impl Format {
    /// The file name's extension.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Svg => "svg",
            Self::Pdf => "pdf",
        }
    }
}

/// Draws panels below one another into a file, which is written completely or not at all.
pub fn write(path: &Path, title: &str, plots: &[Plot], format: Format) -> io::Result<()> {
    let bytes = match format {
        Format::Svg => svg::draw(title, plots).into_bytes(),
        Format::Pdf => pdf::draw(title, plots),
    };
    write_atomically(path, |out| out.write_all(&bytes))
}

fn label(run: &RunResult, flow: &str, controller: &str) -> String {
    if run.rtp_flows().count() > 1 && run.flows.iter().all(|f| f.controller == controller) {
        flow.into()
    } else {
        format!("{flow} ({controller})")
    }
}

fn capacity(quantity: Quantity, (run, series): (&RunResult, &Series)) -> Option<Line> {
    let link =
        run.queue.as_ref().and_then(|q| series.links.iter().find(|l| l.name == q.name)).or(series.links.first())?;
    let values = thin(&link.capacity_bps, false);
    (quantity == Quantity::Rate).then(|| Line {
        label: "capacity".into(),
        capacity: true,
        points: points(series, values, 1e-3),
        bars: vec![],
    })
}

fn line(label: String, quantity: Quantity, (about, flow): (&FlowSummary, &FlowSeries), series: &Series) -> Line {
    let (values, scale) = match quantity {
        Quantity::Delay => (thin(&flow.delay_ms, true), 1.0),
        Quantity::Rate if flow.target_bps.iter().any(|v| !v.is_nan()) => (thin(&flow.target_bps, false), 1e-3),
        Quantity::Rate => (
            thin(&while_active(trailing_mean(&flow.goodput_bps, series.interval_s), &series.time_s, about), false),
            1e-3,
        ),
    };
    Line { label, points: points(series, values, scale), ..Line::default() }
}

fn points(series: &Series, values: Vec<f64>, scale: f64) -> Vec<(f64, f64)> {
    let group = series.time_s.len().div_ceil(POINTS).max(1) as f64;
    let at = |i: usize| (i as f64 + 1.0) * group * series.interval_s;
    values.into_iter().enumerate().map(|(i, v)| (at(i), v * scale)).collect()
}

fn thin(values: &[f64], largest: bool) -> Vec<f64> {
    let of = |chunk: &[f64]| {
        let there = chunk.iter().copied().filter(|v| !v.is_nan());
        if largest {
            return there.fold(f64::NAN, f64::max);
        }
        let (sum, n) = there.fold((0.0, 0.0), |(s, n), v| (s + v, n + 1.0));
        if n > 0.0 { sum / n } else { f64::NAN }
    };
    values.chunks(values.len().div_ceil(POINTS).max(1)).map(of).collect()
}
