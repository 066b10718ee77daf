//! The plots' data: the points of each line, thinned to the resolution of a screen.

use super::contenders::{is_mixed, ranked_flows};
use super::seeds::{self, AllRuns, Join, Room, all_runs};
use super::{ControllerRuns, ScenarioReport};
use crate::smooth::{mean, trailing_mean, while_active};
use serde::Serialize;
use weir_lab::results::{FlowKind, RunResult};
use weir_lab::series::{FlowSeries, Series};

/// Line style of flows other than RTP: grey.
const OTHER_STYLE: i32 = 5;
/// Maximum flows other than RTP with separate lines.
const MAX_OTHERS: usize = 3;
/// Maximum flows of a run with separate lines.
const MAX_FLOWS: usize = 12;

/// All plots of one scenario.
#[derive(Serialize)]
pub(super) struct Charts {
    pub(super) groups: Vec<Group>,
}

impl Charts {
    /// Adds plots that share a legend, if there are any.
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
    /// The same for the lines over all runs, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    all_dt: Option<f64>,
    /// Fixed bounds of the vertical axis.
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<f64>,
    /// Whether the area below each line is filled.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stacked: bool,
    lines: Vec<Line>,
    /// Times in s, and texts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<(f64, String)>,
}

impl Chart {
    /// Moves it to begin at this time, in s.
    pub(super) fn starting(mut self, at_s: f64) -> Self {
        self.t0 += at_s;
        self
    }
    /// Shows texts under the cursor at their times, in s.
    pub(super) fn with_notes(mut self, notes: &[(f64, String)]) -> Self {
        self.notes = notes.to_vec();
        self
    }
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
    /// Value of a step of `v`.
    scale: f64,
    v: Vec<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    all: Option<AllRuns>,
}

/// A line before thinning.
pub(super) struct Raw {
    pub(super) label: String,
    pub(super) style: i32,
    pub(super) values: Vec<f64>,
    /// All runs, if there are several: the interval of points and the line.
    pub(super) all: Option<(f64, AllRuns)>,
}

fn series(c: &ControllerRuns) -> Option<&Series> {
    c.shown.series.as_ref().filter(|s| !s.time_s.is_empty())
}

fn single_flow(s: &ScenarioReport) -> bool {
    s.controllers.iter().all(|c| c.shown.flows.len() == 1)
}

/// Number of lines of a scenario's plots, by which the points are allocated.
pub(super) fn line_count(s: &ScenarioReport) -> usize {
    let shown = s.controllers.iter().filter(|c| series(c).is_some());
    shown.map(|c| if single_flow(s) { 4 } else { 2 * c.shown.flows.len().min(MAX_FLOWS) + 6 }).sum()
}

/// A quantity with a line for each controller: its title, its unit, the value of a step of the data, and how rows are combined.
struct Compared {
    title: &'static str,
    unit: &'static str,
    step: f64,
    join: Join,
}

const DELAY: Compared = Compared { title: "One-way delay", unit: "ms", step: 0.1, join: Join::Max };
const QUEUE: Compared = Compared { title: "Queueing delay at the bottleneck", unit: "ms", step: 0.1, join: Join::Max };
const LOSS: Compared = Compared { title: "Packets lost", unit: "%", step: 0.01, join: Join::Mean };
const PSNR: Compared = Compared { title: "PSNR of the pictures shown", unit: "dB", step: 0.01, join: Join::Mean };
const JAIN: Compared =
    Compared { title: "Jain's fairness index of the RTP flows", unit: "", step: 0.001, join: Join::Mean };
const SHARE: Compared =
    Compared { title: "Share of an RTP flow against a TCP flow", unit: "%", step: 0.1, join: Join::Mean };

/// Layout that the plots of all scenarios have in common.
#[derive(Clone, Copy)]
pub(super) struct Layout<'a> {
    /// Names by line style.
    pub(super) styles: &'a [String],
    /// Points of a line.
    pub(super) points: usize,
    /// The part of each run for which there is room.
    pub(super) room: Room,
}

/// Rows of a quantity of one run, from its series or from its outline.
type OfSeries<'f> = &'f dyn Fn(&RunResult, &Series) -> Option<Vec<f64>>;
type OfRun<'f> = Option<&'f dyn Fn(&RunResult) -> Option<Vec<f64>>>;

/// A scenario's plots.
pub(super) fn section(s: &ScenarioReport, layout: Layout<'_>) -> Charts {
    let shown: Vec<&ControllerRuns> = s.controllers.iter().filter(|c| series(c).is_some()).collect();
    let Some(first) = shown.first().and_then(|c| series(c)) else { return Charts { groups: vec![] } };
    let thinned =
        |q: &Compared| Thinned { interval: first.interval_s, points: layout.points, step: q.step, thin: q.join };
    let per_controller = |q: &Compared, of_series: OfSeries<'_>, of_run: OfRun<'_>| -> Vec<Raw> {
        let line = |c: &&ControllerRuns| {
            let values = of_series(&c.shown, series(c)?)?;
            let all = of_run.and_then(|rows| all_runs(c, layout.room, (q.step, q.join), rows));
            let style = layout.styles.iter().position(|n| *n == c.shown.controller).map_or(0, |i| i as i32);
            Some(Raw { label: c.shown.controller.clone(), style, values, all })
        };
        shown.iter().filter_map(line).collect()
    };
    let compare = |q: &Compared, max, of_series: OfSeries<'_>, of_run: OfRun<'_>| {
        chart(q.title, q.unit, per_controller(q, of_series, of_run), thinned(q), max)
    };
    let mut groups = Vec::new();
    let mut charts = Vec::new();
    if single_flow(s) {
        let rate = Compared { title: "Sending rate against capacity", ..RATE };
        let mut lines = vec![capacity(&shown[0].shown, first)];
        let smooth =
            |_: &RunResult, s: &Series| Some(scaled(trailing_mean(&s.flows.first()?.sent_bps, s.interval_s), 1e-3));
        lines.extend(per_controller(&rate, &smooth, Some(&|run| sent_kbps(run, 0))));
        charts.push(chart(rate.title, rate.unit, lines, thinned(&rate), None));
    } else {
        let top = shown.iter().filter_map(|c| series(c)).flat_map(peak).fold(0.0, f64::max) * 1e-3 * 1.05;
        let max = (top > 0.0).then_some(top);
        let each = shown.iter().filter_map(|c| Some((c, series(c)?)));
        let mut flows: Vec<Chart> = each
            .clone()
            .map(|(c, s)| {
                let mut raw = vec![capacity(&c.shown, s)];
                raw.extend(flow_rates(c, s, layout));
                chart(&format!("{}: {}", RATE.title, c.shown.controller), RATE.unit, raw, thinned(&RATE), max)
            })
            .collect();
        flows.extend(each.map(|(c, s)| {
            let title = format!("{}: {}", DELAY.title, c.shown.controller);
            chart(&title, DELAY.unit, flow_delays(c, s, layout), thinned(&DELAY), None)
        }));
        flows.retain(|c| !c.lines.is_empty());
        groups.push(Group { title: "Each flow".into(), charts: flows });
    }
    charts.push(compare(&DELAY, None, &rtp_delay, Some(&seeds::delay)));
    charts.push(compare(&QUEUE, None, &queue_delay, Some(&seeds::queue)));
    let loss = |run: &RunResult, s: &Series| Some(scaled(trailing_mean(&rtp_loss(run, s), s.interval_s), 100.0));
    charts.push(compare(&LOSS, None, &loss, Some(&seeds::loss)));
    charts.push(compare(&PSNR, None, &picture_psnr, None));
    let jain = |_: &RunResult, s: &Series| s.jain.iter().any(|j| !j.is_nan()).then(|| s.jain.clone());
    charts.push(compare(&JAIN, Some(1.04), &jain, None));
    let share = |run: &RunResult, s: &Series| Some(scaled(tcp_share(run, s)?, 100.0));
    charts.push(compare(&SHARE, Some(104.0), &share, None));
    charts.retain(|c| !c.lines.is_empty());
    groups.push(Group { title: "Controllers compared".into(), charts });
    Charts { groups }
}

const RATE: Compared = Compared { title: "Sending rates", unit: "kbit/s", step: 1.0, join: Join::Mean };

fn sent_kbps(run: &RunResult, flow: usize) -> Option<Vec<f64>> {
    Some(scaled(seeds::of_flow(run, flow, |r| r.sent_bps)?, 1e-3))
}

/// PSNR of the displayed picture of the first flow that has pictures, in dB.
fn picture_psnr(_: &RunResult, s: &Series) -> Option<Vec<f64>> {
    let internals = s.flows.iter().flat_map(|f| &f.internals);
    internals.filter(|(name, _)| *name == "psnr_db").map(|(_, values)| values.clone()).next()
}

/// One-way delays of a run's media flows.
fn flow_delays(c: &ControllerRuns, s: &Series, layout: Layout<'_>) -> Vec<Raw> {
    let styles = flow_styles(&c.shown, layout.styles);
    let media = ranked_flows(&c.shown).into_iter().take(MAX_FLOWS).filter(|&i| c.shown.flows[i].kind != FlowKind::Tcp);
    let line = |i: usize| {
        let flow = s.flows.get(i)?;
        let rows = |run: &RunResult| seeds::of_flow(run, i, |r| r.delay_ms);
        let all = all_runs(c, layout.room, (DELAY.step, DELAY.join), rows);
        Some(Raw { label: flow.name.clone(), style: styles[i], values: flow.delay_ms.clone(), all })
    };
    media.filter_map(line).collect()
}

/// Sending rates of a run's flows while they are active, in kbit/s; many flows other than RTP are summed into one line.
fn flow_rates(c: &ControllerRuns, s: &Series, layout: Layout<'_>) -> Vec<Raw> {
    let run = &c.shown;
    let others = run.flows.iter().filter(|f| f.kind != FlowKind::Rtp).count();
    let sum = others > MAX_OTHERS;
    let flows = run.flows.iter().zip(&s.flows).zip(flow_styles(run, layout.styles)).enumerate();
    let apart = flows.filter(|(_, ((about, _), _))| !sum || about.kind == FlowKind::Rtp).take(MAX_FLOWS);
    let mut lines: Vec<Raw> = apart
        .map(|(i, ((about, f), style))| Raw {
            label: f.name.clone(),
            style,
            values: scaled(while_active(trailing_mean(&f.sent_bps, s.interval_s), &s.time_s, about), 1e-3),
            all: all_runs(c, layout.room, (RATE.step, RATE.join), |run| sent_kbps(run, i)),
        })
        .collect();
    if sum {
        let other = |row: usize| -> f64 {
            let all = run.flows.iter().zip(&s.flows).filter(|(about, _)| about.kind != FlowKind::Rtp);
            all.map(|(_, f)| f.sent_bps[row]).sum()
        };
        let values: Vec<f64> = (0..s.time_s.len()).map(other).collect();
        let label = format!("{others} other flows together");
        let values = scaled(trailing_mean(&values, s.interval_s), 1e-3);
        lines.push(Raw { label, style: OTHER_STYLE, values, all: None });
    }
    lines
}

/// Line styles of a run's flows: those of their controllers in a mixed run, otherwise styles that the first controllers do not
/// have; grey for all flows other than media.
fn flow_styles(run: &RunResult, styles: &[String]) -> Vec<i32> {
    const RTP: [i32; 7] = [3, 4, 7, 6, 0, 1, 2];
    let mut next = (0..).map(|i| RTP[i % RTP.len()]);
    let ranked = ranked_flows(run);
    let mut own: Vec<&str> = ranked.iter().map(|&i| run.flows[i].controller.as_str()).collect();
    own.sort_unstable();
    own.dedup();
    let by_controller = is_mixed(run) && own.len() == ranked.len();
    (run.flows.iter().enumerate())
        .map(|(i, f)| match f.kind {
            _ if by_controller && ranked.contains(&i) => {
                styles.iter().position(|n| *n == f.controller).map_or(OTHER_STYLE, |i| i as i32)
            }
            FlowKind::Rtp => next.next().unwrap_or(OTHER_STYLE),
            _ => OTHER_STYLE,
        })
        .collect()
}

/// The bottleneck's capacity in kbit/s.
fn capacity(run: &RunResult, s: &Series) -> Raw {
    let link = run.queue.as_ref().and_then(|q| s.links.iter().find(|l| l.name == q.name)).or(s.links.first());
    let values = link.map_or(vec![], |l| scaled(l.capacity_bps.clone(), 1e-3));
    Raw { label: "capacity".into(), style: -1, values, all: None }
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

/// Loss of all RTP flows, weighted by the packets sent.
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
    // No value: no RTP flow shares a link with a TCP flow.
    run.fairness.tcp_share?;
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

fn scaled(mut values: Vec<f64>, k: f64) -> Vec<f64> {
    values.iter_mut().for_each(|v| *v *= k);
    values
}

pub(super) struct Thinned {
    interval: f64,
    points: usize,
    step: f64,
    thin: Join,
}

impl Thinned {
    pub(super) fn new(interval: f64, points: usize, step: f64, thin: Join) -> Self {
        Self { interval, points, step, thin }
    }
    /// Converts to this many points, each the mean of its rows.
    pub(super) fn mean(interval: f64, points: usize) -> Self {
        Self { interval, points, step: 1.0, thin: Join::Mean }
    }
}

pub(super) fn chart(title: &str, unit: &'static str, raw: Vec<Raw>, t: Thinned, max: Option<f64>) -> Chart {
    let rows = raw.iter().map(|r| r.values.len()).max().unwrap_or(0);
    let group = rows.div_ceil(t.points.max(1)).max(1);
    let point = |values: &[f64]| -> Option<i64> {
        let v = match t.thin {
            Join::Mean => mean(values.iter().copied()),
            Join::Max => values.iter().copied().filter(|v| !v.is_nan()).fold(f64::NAN, f64::max),
        };
        (!v.is_nan()).then(|| (v / t.step).round() as i64)
    };
    let all_dt = raw.iter().find_map(|r| Some(r.all.as_ref()?.0));
    let line = |r: Raw| Line {
        label: r.label,
        style: r.style,
        scale: t.step,
        v: r.values.chunks(group).map(point).collect(),
        all: r.all.map(|a| a.1),
    };
    Chart {
        title: title.into(),
        unit,
        t0: t.interval * group as f64,
        dt: t.interval * group as f64,
        all_dt,
        max,
        stacked: false,
        lines: raw.into_iter().filter(|r| !r.values.is_empty()).map(line).collect(),
        notes: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_peaks_where_asked() {
        let raw =
            || vec![Raw { label: "x".into(), style: 0, values: vec![1.0, 3.0, f64::NAN, f64::NAN, 5.0], all: None }];
        let thinned = |thin| chart("", "", raw(), Thinned { interval: 0.1, points: 3, step: 0.5, thin }, None);
        assert_eq!(thinned(Join::Max).lines[0].v, [Some(6), None, Some(10)]);
        assert_eq!(thinned(Join::Mean).lines[0].v, [Some(4), None, Some(10)]);
        assert!((thinned(Join::Mean).dt - 0.2).abs() < 1e-12);
    }
}
