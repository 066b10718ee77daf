//! All runs of a scenario in its plots: one thinned line per run, or a band if there are too many.

use super::contenders::{groups, is_adaptive_media};
use super::{ControllerRuns, ScenarioReport};
use crate::smooth::mean;
use serde::Serialize;
use weir_lab::results::{FlowOutline, FlowRow, OUTLINE_QUANTILES, RunResult};

/// Points of a line over all runs.
const MAX_POINTS: usize = 240;
/// Fewest points per line: with less room, runs are combined into a band, which leaves more.
const MIN_POINTS: usize = 60;
/// Approximate bytes of a number with its comma.
const NUMBER: usize = 4;
/// Number of runs from which the band reaches from the 10th to the 90th percentile rather than from minimum to maximum.
const QUANTILE_RUNS: usize = 10;
/// Quantities that are plotted over time for all runs.
const QUANTITIES: usize = 4;

/// The part of each run for which a page has room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Room {
    points: usize,
    /// Whether runs are combined into median and band here, since there is no room for each.
    combines_runs: bool,
}

impl Room {
    /// Allocates this many bytes to the scenarios' runs.
    pub(super) fn new(scenarios: &[ScenarioReport], bytes: usize) -> Self {
        let lines = |c: &ControllerRuns| {
            let flows = c.shown.outline.flows.len().max(1);
            if flows == 1 { QUANTITIES } else { 2 * flows + QUANTITIES }
        };
        let all = || scenarios.iter().flat_map(|s| &s.controllers).filter(|c| !c.others.is_empty());
        let numbers = bytes / NUMBER;
        let of_runs: usize = all().map(|c| lines(c) * (c.others.len() + 1)).sum();
        let distributions = |runs: usize| 2 * OUTLINE_QUANTILES.len() * runs;
        let of_distributions: usize = all().map(|c| distributions(c.others.len() + 1)).sum();
        let points = numbers.saturating_sub(of_distributions) / of_runs.max(1);
        if points >= MIN_POINTS {
            return Self { points: points.min(MAX_POINTS), combines_runs: false };
        }
        let (of_bands, of_distributions): (usize, usize) =
            (all().map(|c| 3 * lines(c)).sum(), all().map(|_| distributions(3)).sum());
        let points = numbers.saturating_sub(of_distributions) / of_bands.max(1);
        Self { points: points.clamp(10, MAX_POINTS), combines_runs: true }
    }
}

/// A line of a plot in all runs.
#[derive(Serialize)]
pub(super) struct AllRuns {
    /// Seeds of `v`; empty if it has median, lower and upper end of the band instead.
    seeds: Vec<u64>,
    /// Number of runs.
    runs: usize,
    v: Vec<Vec<Option<i64>>>,
}

/// How several rows become one point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    Mean,
    Max,
}

/// Converts rows of one quantity, by run, to points in units of `step`, and gives their interval in s; `None` for a single run.
pub(super) fn all_runs(
    c: &ControllerRuns,
    room: Room,
    (step, join): (f64, Join),
    rows: impl Fn(&RunResult) -> Option<Vec<f64>>,
) -> Option<(f64, AllRuns)> {
    if c.others.is_empty() {
        return None;
    }
    let mut seeds = Vec::new();
    let mut all: Vec<Vec<f64>> = Vec::new();
    // Runs of one scenario have rows of one length.
    let interval = c.shown.outline.interval_s;
    let mut group = 1;
    for run in c.runs().filter(|r| r.outline.interval_s == interval) {
        let Some(values) = rows(run) else { continue };
        group = values.len().div_ceil(room.points).max(1);
        let point = |chunk: &[f64]| match join {
            Join::Mean => mean(chunk.iter().copied()),
            Join::Max => chunk.iter().copied().filter(|v| !v.is_nan()).fold(f64::NAN, f64::max),
        };
        all.push(values.chunks(group).map(point).collect());
        seeds.push(run.seed);
    }
    let length = all.first()?.len();
    if length == 0 {
        return None;
    }
    let runs = all.len();
    if room.combines_runs {
        let column = |i: usize| all.iter().filter_map(|r| r.get(i).copied()).collect::<Vec<_>>();
        let bands: Vec<[f64; 3]> = (0..length).map(|i| band(column(i))).collect();
        all = (0..3).map(|k| bands.iter().map(|b| b[k]).collect()).collect();
        seeds.clear();
    }
    let number = |v: &f64| (!v.is_nan()).then(|| (v / step).round() as i64);
    let v = all.iter().map(|r| r.iter().map(number).collect()).collect();
    Some((interval * group as f64, AllRuns { seeds, runs, v }))
}

/// Median and the ends of the band, by the same rule as in the page's script.
fn band(mut values: Vec<f64>) -> [f64; 3] {
    values.retain(|v| !v.is_nan());
    values.sort_by(f64::total_cmp);
    if values.is_empty() {
        return [f64::NAN; 3];
    }
    let at = |q: f64| {
        let place = q * (values.len() - 1) as f64;
        let (low, share) = (place.floor() as usize, place.fract());
        let next = values[(low + 1).min(values.len() - 1)];
        values[low] + (next - values[low]) * share
    };
    let edge = if values.len() >= QUANTILE_RUNS { 0.1 } else { 0.0 };
    [at(0.5), at(edge), at(1.0 - edge)]
}

fn number(v: Option<f32>) -> f64 {
    v.map_or(f64::NAN, f64::from)
}

/// A quantity of one flow over time.
pub(super) fn of_flow(run: &RunResult, flow: usize, value: impl Fn(&FlowRow) -> Option<f32>) -> Option<Vec<f64>> {
    Some(run.outline.flows.get(flow)?.rows.iter().map(|r| number(value(r))).collect())
}

/// Delay in the bottleneck's queue.
pub(super) fn queue(run: &RunResult) -> Option<Vec<f64>> {
    let rows: Vec<f64> = run.outline.queue_delay_ms.iter().map(|v| number(*v)).collect();
    rows.iter().any(|v| !v.is_nan()).then_some(rows)
}

fn media(run: &RunResult) -> Vec<&FlowOutline> {
    run.flows.iter().zip(&run.outline.flows).filter(|(f, _)| is_adaptive_media(f)).map(|(_, o)| o).collect()
}

/// Mean one-way delay over the media flows.
pub(super) fn delay(run: &RunResult) -> Option<Vec<f64>> {
    let flows = media(run);
    let length = flows.first()?.rows.len();
    Some((0..length).map(|i| mean(flows.iter().map(|f| number(f.rows[i].delay_ms)))).collect())
}

/// Loss of all media flows, weighted by the packets sent, in percent.
pub(super) fn loss(run: &RunResult) -> Option<Vec<f64>> {
    let flows = media(run);
    let length = flows.first()?.rows.len();
    let at = |i: usize| {
        let parts = flows.iter().filter_map(|f| Some((f.rows[i].loss?, f.rows[i].sent_bps.unwrap_or(0.0))));
        let (lost, sent) =
            parts.fold((0.0, 0.0), |(l, w), (loss, sent)| (l + f64::from(loss * sent), w + f64::from(sent)));
        if sent > 0.0 { lost / sent * 100.0 } else { f64::NAN }
    };
    Some((0..length).map(at).collect())
}

/// A cumulative distribution: a line for each contender.
#[derive(Serialize)]
pub(super) struct Cdf {
    title: &'static str,
    unit: &'static str,
    lines: Vec<CdfLine>,
}

#[derive(Serialize)]
struct CdfLine {
    label: String,
    style: usize,
    scale: f64,
    #[serde(flatten)]
    all: AllRuns,
}

/// The quantity of a distribution: quantiles of a flow at [`OUTLINE_QUANTILES`], if it has them.
type Quantiles = fn(&RunResult, usize) -> Vec<f64>;

const DISTRIBUTIONS: [(&str, &str, f64, Quantiles); 4] = [
    ("One-way delay of packets", "ms", 0.1, |run, i| {
        run.outline.flows.get(i).map_or(vec![], |f| f.packet_delay_ms.iter().map(|&v| v.into()).collect())
    }),
    ("Frame delay, capture to complete frame", "ms", 0.1, |run, i| {
        run.outline.flows.get(i).map_or(vec![], |f| f.frame_delay_ms.iter().map(|&v| v.into()).collect())
    }),
    ("PSNR of the pictures shown", "dB", 0.01, |run, i| of_pictures(run, i, |p| &p.psnr_db)),
    ("SSIM of the pictures shown", "", 0.001, |run, i| of_pictures(run, i, |p| &p.ssim)),
];

fn of_pictures(run: &RunResult, flow: usize, of: fn(&weir_lab::results::PictureQuantiles) -> &Vec<f64>) -> Vec<f64> {
    let Some(percent) = run.flows.get(flow).and_then(|f| f.picture_quantiles.as_ref()).map(of) else { return vec![] };
    OUTLINE_QUANTILES.iter().filter_map(|q| percent.get((q * 100.0).round() as usize).copied()).collect()
}

/// The distributions of a scenario at [`OUTLINE_QUANTILES`]; several flows are combined with equal weights.
pub(super) fn distributions(s: &ScenarioReport, room: Room, styles: &[String]) -> Vec<Cdf> {
    let of = |&(title, unit, scale, quantiles): &(&'static str, &'static str, f64, Quantiles)| {
        let lines = s.controllers.iter().flat_map(|c| {
            groups(s, &c.shown).into_iter().filter_map(move |(who, label, flows)| {
                let style = styles.iter().position(|n| *n == who).unwrap_or(0);
                Some(CdfLine { label, style, scale, all: distribution(c, room, scale, &flows, quantiles)? })
            })
        });
        Cdf { title, unit, lines: lines.collect() }
    };
    DISTRIBUTIONS.iter().map(of).filter(|c| !c.lines.is_empty()).collect()
}

/// The quantiles of several distributions combined with equal weights.
fn combined_quantiles(all: &[Vec<f64>]) -> Vec<f64> {
    const SAMPLES: usize = 400;
    let value = |quantiles: &[f64], share: f64| -> Option<f64> {
        let upper = OUTLINE_QUANTILES.partition_point(|s| *s < share).max(1);
        let (from, to) = (OUTLINE_QUANTILES[upper - 1], *OUTLINE_QUANTILES.get(upper)?);
        let (low, high) = (*quantiles.get(upper - 1)?, *quantiles.get(upper)?);
        Some(low + (high - low) * (share - from) / (to - from))
    };
    let shares = || (0..SAMPLES).map(|i| i as f64 / (SAMPLES - 1) as f64);
    let mut values: Vec<f64> = all.iter().flat_map(|q| shares().filter_map(|s| value(q, s))).collect();
    values.sort_by(f64::total_cmp);
    let at = |s: &f64| values.get((s * values.len().saturating_sub(1) as f64).round() as usize).copied();
    OUTLINE_QUANTILES.iter().map(|s| at(s).unwrap_or(f64::NAN)).collect()
}

fn distribution(c: &ControllerRuns, room: Room, scale: f64, flows: &[usize], quantiles: Quantiles) -> Option<AllRuns> {
    let of_run = |run: &RunResult| -> Option<Vec<f64>> {
        let all: Vec<Vec<f64>> = flows.iter().map(|&i| quantiles(run, i)).filter(|q| !q.is_empty()).collect();
        match &all[..] {
            [] => None,
            [one] => Some(one.clone()),
            several => Some(combined_quantiles(several)),
        }
    };
    let (mut seeds, mut all): (Vec<u64>, Vec<Vec<f64>>) =
        c.runs().filter_map(|run| Some((run.seed, of_run(run)?))).unzip();
    let runs = all.len();
    let length = all.first()?.len();
    if room.combines_runs && runs > 1 {
        let bands: Vec<[f64; 3]> =
            (0..length).map(|k| band(all.iter().filter_map(|r| r.get(k).copied()).collect())).collect();
        all = (0..3).map(|k| bands.iter().map(|b| b[k]).collect()).collect();
        seeds.clear();
    }
    let number = |v: &f64| (!v.is_nan()).then(|| (v / scale).round() as i64);
    Some(AllRuns { seeds, runs, v: all.iter().map(|r| r.iter().map(number).collect()).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_is_the_range_of_few_runs_and_quantiles_of_many() {
        assert_eq!(band(vec![3.0, 1.0, f64::NAN, 2.0]), [2.0, 1.0, 3.0]);
        let many: Vec<f64> = (0..=10).map(f64::from).collect();
        assert_eq!(band(many), [5.0, 1.0, 9.0]);
        assert!(band(vec![f64::NAN]).iter().all(|v| v.is_nan()));
    }

    #[test]
    fn flows_apart_stay_apart_in_one_distribution() {
        let flow = |low: f64| OUTLINE_QUANTILES.iter().map(|q| low + 10.0 * q).collect::<Vec<_>>();
        let both = combined_quantiles(&[flow(20.0), flow(200.0)]);
        let at = |q: f64| both[OUTLINE_QUANTILES.iter().position(|s| *s == q).expect("a share")];
        assert_eq!((at(0.0), at(1.0)), (20.0, 210.0));
        // Half of all is the slower flow's.
        assert!((at(0.25) - 25.0).abs() < 0.1 && (at(0.75) - 205.0).abs() < 0.1, "{both:?}");
        assert!(at(0.45) < 30.0 && at(0.55) > 200.0);
    }
}
