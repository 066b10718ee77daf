//! The plots' data: what each line shows, thinned to the points that a screen can hold.

use super::{ControllerRuns, ScenarioReport};
use crate::measure::results::{FlowKind, RunResult};
use crate::measure::series::{FlowSeries, Series};
use crate::publish::smooth::{mean, trailing_mean, while_active};
use serde::Serialize;

/// Line style of what is not RTP: grey.
const OTHER_STYLE: i32 = 5;
/// Flows that are not RTP and still get lines of their own.
const MAX_OTHERS: usize = 3;
/// Flows of a run that get a line of their own.
const MAX_FLOWS: usize = 12;

/// All plots of one scenario.
#[derive(Serialize)]
pub(super) struct Charts {
    pub(super) groups: Vec<Group>,
}

impl Charts {
    /// Adds plots that share a legend, where there are any.
    pub(super) fn add(&mut self, title: &str, charts: Vec<Chart>) {
        if !charts.is_empty() {
            self.groups.push(Group { title: title.into(), charts });
        }
    }
}

/// Plots that share a legend.
#[derive(Serialize)]
pub(super) struct Group {
    title: String,
    charts: Vec<Chart>,
}

#[derive(Serialize)]
pub(super) struct Chart {
    title: String,
    unit: &'static str,
    /// Time of the first point and distance to the next, in s.
    t0: f64,
    dt: f64,
    /// Fixed bounds of the vertical axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    /// Whether the area below each line is filled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stacked: bool,
    lines: Vec<Line>,
}

impl Chart {
    /// Fills the area below each line; the first line is drawn first.
    pub(super) fn stack(&mut self) {
        self.stacked = true;
    }
}

#[derive(Serialize)]
struct Line {
    label: String,
    /// Number of the line style, or -1 for capacity.
    style: i32,
    /// What a step of `v` is worth.
    scale: f64,
    v: Vec<Option<i64>>,
}

/// How several rows become one point.
#[derive(Clone, Copy)]
enum Thin {
    Mean,
    Max,
}

/// A line before thinning.
pub(super) struct Raw {
    pub(super) label: String,
    pub(super) style: i32,
    pub(super) values: Vec<f64>,
}

fn series(c: &ControllerRuns) -> Option<&Series> {
    c.shown.series.as_ref().filter(|s| !s.time_s.is_empty())
}

fn single_flow(s: &ScenarioReport) -> bool {
    s.controllers.iter().all(|c| c.shown.flows.len() == 1)
}

/// How many lines a scenario's plots have, to share out the points.
pub(super) fn line_count(s: &ScenarioReport) -> usize {
    let shown = s.controllers.iter().filter(|c| series(c).is_some());
    shown.map(|c| if single_flow(s) { 4 } else { c.shown.flows.len().min(MAX_FLOWS) + 6 }).sum()
}

/// A scenario's plots.
pub(super) fn section(s: &ScenarioReport, controllers: &[String], points: usize) -> Charts {
    let shown: Vec<&ControllerRuns> = s.controllers.iter().filter(|c| series(c).is_some()).collect();
    let Some(first) = shown.first().and_then(|c| series(c)) else { return Charts { groups: vec![] } };
    let interval = first.interval_s;
    let style = |c: &ControllerRuns| controllers.iter().position(|n| *n == c.shown.controller).map_or(0, |i| i as i32);
    let per_controller = |f: &dyn Fn(&RunResult, &Series) -> Option<Vec<f64>>| -> Vec<Raw> {
        let line = |c: &&ControllerRuns| {
            let values = f(&c.shown, series(c)?)?;
            Some(Raw { label: c.shown.controller.clone(), style: style(c), values })
        };
        shown.iter().filter_map(line).collect()
    };
    let chart = |title: &str, unit, raw: Vec<Raw>, step: f64, thin, max| {
        chart(title, unit, raw, Thinned { interval, points, step, thin }, max)
    };
    let mut groups = Vec::new();
    let mut charts = Vec::new();
    if single_flow(s) {
        let mut rate = vec![capacity(&shown[0].shown, first)];
        rate.extend(per_controller(&|_, s| Some(trailing_mean(&s.flows.first()?.sent_bps, s.interval_s))));
        charts.push(chart("Sending rate against capacity", "kbit/s", scaled(rate, 1e-3), 1.0, Thin::Mean, None));
    } else {
        let top = shown.iter().filter_map(|c| series(c)).flat_map(peak).fold(0.0, f64::max) * 1e-3 * 1.05;
        let each = shown.iter().filter_map(|c| Some((c, series(c)?))).map(|(c, s)| {
            let mut raw = vec![capacity(&c.shown, s)];
            raw.extend(flow_rates(&c.shown, s));
            let max = (top > 0.0).then_some(top);
            chart(&format!("Sending rates: {}", c.shown.controller), "kbit/s", scaled(raw, 1e-3), 1.0, Thin::Mean, max)
        });
        groups.push(Group { title: "Each flow".into(), charts: each.collect() });
    }
    charts.push(chart("One-way delay", "ms", per_controller(&rtp_delay), 0.1, Thin::Max, None));
    charts.push(chart("Queueing delay at the bottleneck", "ms", per_controller(&queue_delay), 0.1, Thin::Max, None));
    let loss = per_controller(&|run, s| Some(trailing_mean(&rtp_loss(run, s), s.interval_s)));
    charts.push(chart("Packets lost", "%", scaled(loss, 100.0), 0.01, Thin::Mean, None));
    let jain = per_controller(&|_, s| s.jain.iter().any(|j| !j.is_nan()).then(|| s.jain.clone()));
    if !jain.is_empty() {
        charts.push(chart("Jain's fairness index of the RTP flows", "", jain, 0.001, Thin::Mean, Some(1.04)));
    }
    let share = per_controller(&tcp_share);
    if !share.is_empty() {
        charts.push(chart(
            "Share of an RTP flow against a TCP flow",
            "%",
            scaled(share, 100.0),
            0.1,
            Thin::Mean,
            Some(104.0),
        ));
    }
    charts.retain(|c| !c.lines.is_empty());
    groups.push(Group { title: "Controllers compared".into(), charts });
    Charts { groups }
}

/// Sending rates of a run's flows while they are active; many flows that are not RTP are summed into one line.
fn flow_rates(run: &RunResult, s: &Series) -> Vec<Raw> {
    let others = run.flows.iter().filter(|f| f.kind != FlowKind::Rtp).count();
    let sum = others > MAX_OTHERS;
    let flows = run.flows.iter().zip(&s.flows).zip(flow_styles(run));
    let apart = flows.filter(|((about, _), _)| !sum || about.kind == FlowKind::Rtp).take(MAX_FLOWS);
    let mut lines: Vec<Raw> = apart
        .map(|((about, f), style)| Raw {
            label: f.name.clone(),
            style,
            values: while_active(trailing_mean(&f.sent_bps, s.interval_s), &s.time_s, about),
        })
        .collect();
    if sum {
        let other = |row: usize| -> f64 {
            let all = run.flows.iter().zip(&s.flows).filter(|(about, _)| about.kind != FlowKind::Rtp);
            all.map(|(_, f)| f.sent_bps[row]).sum()
        };
        let values: Vec<f64> = (0..s.time_s.len()).map(other).collect();
        let label = format!("{others} other flows together");
        lines.push(Raw { label, style: OTHER_STYLE, values: trailing_mean(&values, s.interval_s) });
    }
    lines
}

/// Line styles of a run's flows: other ones than the first controllers have, and grey for all that is not RTP.
fn flow_styles(run: &RunResult) -> Vec<i32> {
    const RTP: [i32; 7] = [3, 4, 7, 6, 0, 1, 2];
    let mut next = (0..).map(|i| RTP[i % RTP.len()]);
    run.flows
        .iter()
        .map(|f| if f.kind == FlowKind::Rtp { next.next().unwrap_or(OTHER_STYLE) } else { OTHER_STYLE })
        .collect()
}

/// The bottleneck's capacity.
fn capacity(run: &RunResult, s: &Series) -> Raw {
    let link = run.queue.as_ref().and_then(|q| s.links.iter().find(|l| l.name == q.name)).or(s.links.first());
    Raw { label: "capacity".into(), style: -1, values: link.map_or(vec![], |l| l.capacity_bps.clone()) }
}

fn peak(s: &Series) -> impl Iterator<Item = f64> + '_ {
    let flows = s.flows.iter().take(MAX_FLOWS).flat_map(|f| trailing_mean(&f.sent_bps, s.interval_s));
    flows.chain(s.links.first().into_iter().flat_map(|l| l.capacity_bps.iter().copied())).filter(|v| v.is_finite())
}

fn of_kind<'a>(run: &'a RunResult, s: &'a Series, kind: FlowKind) -> impl Iterator<Item = &'a FlowSeries> + Clone {
    run.flows.iter().zip(&s.flows).filter(move |(f, _)| f.kind == kind).map(|(_, s)| s)
}

/// Mean one-way delay over the RTP flows.
fn rtp_delay(run: &RunResult, s: &Series) -> Option<Vec<f64>> {
    let flows = of_kind(run, s, FlowKind::Rtp);
    flows.clone().next()?;
    Some((0..s.time_s.len()).map(|row| mean(flows.clone().map(|f| f.delay_ms[row]))).collect())
}

fn queue_delay(run: &RunResult, s: &Series) -> Option<Vec<f64>> {
    let name = &run.queue.as_ref()?.name;
    let link = s.links.iter().find(|l| l.name == *name)?;
    link.queue_delay_ms.iter().any(|v| !v.is_nan()).then(|| link.queue_delay_ms.clone())
}

/// Loss of the RTP flows together, each weighted by what it sent.
fn rtp_loss(run: &RunResult, s: &Series) -> Vec<f64> {
    let row = |row: usize| {
        let parts = of_kind(run, s, FlowKind::Rtp).map(|f| (f.loss[row], f.sent_bps[row])).filter(|p| !p.0.is_nan());
        let (lost, sent) = parts.fold((0.0, 0.0), |(l, w), (loss, sent)| (l + loss * sent, w + sent));
        if sent > 0.0 { lost / sent } else { f64::NAN }
    };
    (0..s.time_s.len()).map(row).collect()
}

/// a / (a + b), a and b the mean goodput of an RTP and a TCP flow, while both kinds are active.
fn tcp_share(run: &RunResult, s: &Series) -> Option<Vec<f64>> {
    let active = |kind, t: f64| {
        let both = run.flows.iter().zip(&s.flows);
        both.filter(move |(f, _)| f.kind == kind && f.adapts && t > f.start_s && t <= f.stop_s).map(|(_, s)| s)
    };
    let smoothed = |kind| -> Vec<f64> {
        let raw: Vec<f64> =
            (s.time_s.iter().enumerate()).map(|(row, &t)| mean(active(kind, t).map(|f| f.goodput_bps[row]))).collect();
        trailing_mean(&raw, s.interval_s)
    };
    let (rtp, tcp) = (smoothed(FlowKind::Rtp), smoothed(FlowKind::Tcp));
    let share: Vec<f64> = rtp.iter().zip(&tcp).map(|(a, b)| if a + b > 0.0 { a / (a + b) } else { f64::NAN }).collect();
    share.iter().any(|v| !v.is_nan()).then_some(share)
}

fn scaled(mut raw: Vec<Raw>, k: f64) -> Vec<Raw> {
    raw.iter_mut().for_each(|r| r.values.iter_mut().for_each(|v| *v *= k));
    raw
}

pub(super) struct Thinned {
    interval: f64,
    points: usize,
    step: f64,
    thin: Thin,
}

impl Thinned {
    /// To so many points, each the mean of its rows.
    pub(super) fn mean(interval: f64, points: usize) -> Self {
        Self { interval, points, step: 1.0, thin: Thin::Mean }
    }
}

pub(super) fn chart(title: &str, unit: &'static str, raw: Vec<Raw>, t: Thinned, max: Option<f64>) -> Chart {
    let rows = raw.iter().map(|r| r.values.len()).max().unwrap_or(0);
    let group = rows.div_ceil(t.points.max(1)).max(1);
    let point = |values: &[f64]| -> Option<i64> {
        let v = match t.thin {
            Thin::Mean => mean(values.iter().copied()),
            Thin::Max => values.iter().copied().filter(|v| !v.is_nan()).fold(f64::NAN, f64::max),
        };
        (!v.is_nan()).then(|| (v / t.step).round() as i64)
    };
    let line =
        |r: Raw| Line { label: r.label, style: r.style, scale: t.step, v: r.values.chunks(group).map(point).collect() };
    Chart {
        title: title.into(),
        unit,
        t0: t.interval * group as f64,
        dt: t.interval * group as f64,
        max,
        stacked: false,
        lines: raw.into_iter().filter(|r| !r.values.is_empty()).map(line).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_peaks_where_asked() {
        let raw = || vec![Raw { label: "x".into(), style: 0, values: vec![1.0, 3.0, f64::NAN, f64::NAN, 5.0] }];
        let thinned = |thin| chart("", "", raw(), Thinned { interval: 0.1, points: 3, step: 0.5, thin }, None);
        assert_eq!(thinned(Thin::Max).lines[0].v, [Some(6), None, Some(10)]);
        assert_eq!(thinned(Thin::Mean).lines[0].v, [Some(4), None, Some(10)]);
        assert!((thinned(Thin::Mean).dt - 0.2).abs() < 1e-12);
    }
}
