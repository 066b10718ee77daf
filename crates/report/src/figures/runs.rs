//! Figures from all runs of a condition: distributions, and fairness over time, with 95 % confidence intervals.

use super::plot::{Bar, Line, Plot, Scale};
use super::series_of;
use crate::smooth::{mean, trailing_mean};
use weir_lab::results::{RunResult, Stat, quantiles, student_t_975};

/// The quantity of a distribution.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// PSNR of pictures in dB, of all flows with pictures.
    #[default]
    Psnr,
    /// Their structural similarity.
    Ssim,
    /// The encoder's target rate in Mbit/s, per second, of the first media flow that adapts.
    Requested,
}

/// Interval of bars, in hundredths of probability and in seconds.
const BAR_PERCENT: usize = 10;
const BAR_S: f64 = 50.0;
/// Time over which throughputs are averaged before they are compared, in s.
const SMOOTH_S: f64 = 5.0;

/// Runs by name: those of one name share a line.
type Groups<'a> = Vec<(String, Vec<&'a RunResult>)>;

/// By controller, and by variant if there are several.
fn groups<'a>(runs: &[&'a RunResult]) -> Groups<'a> {
    let several = runs.iter().any(|r| r.condition != runs[0].condition);
    let one = runs.iter().all(|r| r.controller == runs[0].controller);
    let mut all: Groups<'a> = vec![];
    for r in runs {
        let name = match (several, one) {
            (false, _) => r.controller.clone(),
            (true, true) => r.condition.clone(),
            (true, false) => format!("{} {}", r.controller, r.condition),
        };
        match all.iter_mut().find(|g| g.0 == name) {
            Some(g) => g.1.push(r),
            None => all.push((name, vec![r])),
        }
    }
    all
}

/// Half-width of the 95 % confidence interval of a mean; `None` for a single value.
fn half_width(s: &Stat) -> Option<f64> {
    let sigma = s.sigma?;
    Some(student_t_975(s.runs - 1) * sigma / (s.runs as f64).sqrt())
}

/// The quantiles of a run, one list per flow.
fn spread(run: &RunResult, of: Of) -> Vec<Vec<f64>> {
    let pictures = || run.flows.iter().filter_map(|f| f.picture_quantiles.as_ref());
    match of {
        Of::Psnr => pictures().map(|p| p.psnr_db.clone()).collect(),
        Of::Ssim => pictures().map(|p| p.ssim.clone()).collect(),
        Of::Requested => vec![quantiles(run.rates_over_time.target_bps.iter().flatten().map(|&v| f64::from(v) * 1e-6))],
    }
}

/// Cumulative distributions, one line per controller and variant: the mean over runs at each probability, and at every
/// tenth its confidence interval.
pub fn cdf(runs: &[&RunResult], of: Of, label: &str) -> Vec<Plot> {
    let mut lines = vec![];
    for (name, runs) in groups(runs) {
        let all: Vec<Vec<f64>> = runs.iter().flat_map(|r| spread(r, of)).filter(|q| !q.is_empty()).collect();
        let count = all.iter().map(Vec::len).min().unwrap_or(0);
        let (mut points, mut bars) = (vec![], vec![]);
        for i in 0..count {
            let p = i as f64 / (count - 1).max(1) as f64;
            let values: Vec<f64> = all.iter().map(|q| q[i]).collect();
            let Some(s) = Stat::of(&values) else { continue };
            points.push((s.mean, p));
            if let Some(half) = half_width(&s).filter(|_| i % BAR_PERCENT == 0 && i > 0 && i + 1 < count) {
                bars.push(Bar { at: (s.mean, p), from: (s.mean - half, p), to: (s.mean + half, p) });
            }
        }
        if !points.is_empty() {
            lines.push(Line { label: name, points, bars, ..Line::default() });
        }
    }
    if lines.is_empty() {
        return vec![];
    }
    // From the 1st percentile, so that one black picture does not determine the axis.
    let low = lines.iter().filter_map(|l| l.points.get(1)).map(|p| p.0).fold(f64::INFINITY, f64::min);
    let high = lines.iter().filter_map(|l| l.points.last()).map(|p| p.0).fold(0.0, f64::max);
    let x_start = if low > high / 3.0 { (low * 20.0).floor() / 20.0 } else { 0.0 };
    for l in &mut lines {
        l.points.retain(|p| p.0 >= x_start);
    }
    vec![Plot {
        y_label: "Probability".into(),
        x_label: label.into(),
        x_start,
        x_end: high,
        lines,
        scale: Scale::UpTo(1.0),
        ..Plot::default()
    }]
}

/// Media throughput over TCP throughput over time, on a logarithmic axis: throughputs over five seconds, and the mean of
/// the ratio's logarithm over the runs, with its confidence interval every 50 s. While TCP receives nothing there is no ratio.
pub fn fairness(runs: &[&RunResult]) -> Vec<Plot> {
    let mut lines = vec![];
    let mut end = 0.0f64;
    for (name, runs) in groups(runs) {
        let ratios: Vec<(f64, Vec<f64>)> = runs.iter().map(|r| (r.rates_over_time.interval_s, log_ratios(r))).collect();
        let Some(interval) = ratios.first().map(|r| r.0).filter(|i| *i > 0.0) else { continue };
        let rows = ratios.iter().map(|r| r.1.len()).max().unwrap_or(0);
        let every = (BAR_S / interval).round().max(1.0) as usize;
        let (mut points, mut bars) = (vec![], vec![]);
        for i in 0..rows {
            let t = (i + 1) as f64 * interval;
            let values: Vec<f64> =
                ratios.iter().filter_map(|r| r.1.get(i).copied()).filter(|v| v.is_finite()).collect();
            let Some(s) = Stat::of(&values) else {
                points.push((t, f64::NAN));
                continue;
            };
            points.push((t, s.mean.exp()));
            if let Some(half) = half_width(&s).filter(|_| (i + 1) % every == 0) {
                let at = |v: f64| (t, v.exp());
                bars.push(Bar { at: at(s.mean), from: at(s.mean - half), to: at(s.mean + half) });
            }
        }
        end = end.max(rows as f64 * interval);
        lines.push(Line { label: name, points, bars, ..Line::default() });
    }
    if lines.iter().all(|l| l.points.iter().all(|p| p.1.is_nan())) {
        return vec![];
    }
    vec![Plot {
        y_label: "Media throughput over TCP's".into(),
        x_label: "Time, s".into(),
        x_end: end,
        lines,
        scale: Scale::Log,
        ..Plot::default()
    }]
}

/// Logarithms of media over TCP throughput, row by row.
fn log_ratios(run: &RunResult) -> Vec<f64> {
    let c = &run.rates_over_time;
    let smooth = |v: &[Option<f32>]| {
        let rows = (SMOOTH_S / c.interval_s.max(1e-3)).round().max(1.0) as usize;
        let v: Vec<f64> = v.iter().map(|v| v.map_or(f64::NAN, f64::from)).collect();
        (0..v.len()).map(|i| mean(v[(i + 1).saturating_sub(rows)..=i].iter().copied())).collect::<Vec<_>>()
    };
    smooth(&c.media_bps).iter().zip(smooth(&c.tcp_bps)).map(|(m, t)| (m / t).ln()).collect()
}

/// Throughput of the first media flow over time, one line per controller from its first run with a time series, in one
/// panel per variant; up to `most` Mbit/s if given.
pub fn throughput(runs: &[&RunResult], most: Option<f64>) -> Vec<Plot> {
    let mut plots: Vec<(String, Plot)> = vec![];
    for (run, series) in series_of(runs) {
        let Some(at) = run.flows.iter().position(|f| f.kind == weir_lab::results::FlowKind::Rtp) else {
            continue;
        };
        let values = trailing_mean(&series.flows[at].goodput_bps, series.interval_s);
        let points = series.time_s.iter().zip(values).map(|(&t, v)| (t, v * 1e-6)).collect();
        let line = Line { label: run.controller.clone(), points, ..Line::default() };
        match plots.iter_mut().find(|p| p.0 == run.condition) {
            Some((_, plot)) => plot.lines.push(line),
            None => {
                let plot = Plot {
                    title: run.condition.clone(),
                    y_label: "Throughput, Mbit/s".into(),
                    x_label: "Time, s".into(),
                    x_end: run.duration_s,
                    lines: vec![line],
                    scale: most.map_or(Scale::Zero, Scale::UpTo),
                    ..Plot::default()
                };
                plots.push((run.condition.clone(), plot));
            }
        }
    }
    if let [(_, only)] = &mut plots[..] {
        only.title.clear();
    }
    plots.into_iter().map(|p| p.1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_lab::metrics::{Capacity, FlowEnd, FlowInfo, LinkInfo, Recorder, RecorderConfig};
    use weir_lab::results::{FlowKind, PictureQuantiles, RatesOverTime};
    use weir_units::{DataRate, TimeDelta, Timestamp};

    fn run(controller: &str, condition: &str, psnr: f64, ratio: f32) -> RunResult {
        let flow = FlowInfo {
            name: "call".into(),
            controller: controller.into(),
            kind: FlowKind::Rtp,
            adapts: true,
            start: Timestamp::ZERO,
            stop: None,
            playout_deadline: None,
            reported_headers: 0,
            bottleneck: 0,
            further: vec![],
            links: vec![0],
            most: None,
        };
        let mut r = Recorder::new(RecorderConfig {
            scenario: "s".into(),
            condition: condition.into(),
            controller: controller.into(),
            seed: 1,
            flows: vec![flow],
            links: vec![LinkInfo { name: "l".into(), capacity: Capacity::constant(DataRate::from_mbps(1)) }],
            bottleneck: 0,
            sampling: TimeDelta::from_secs(1),
            series: false,
            duration: TimeDelta::from_secs(2),
            burstiness: false,
            windows: vec![],
        });
        // Quality rises by a tenth of a dB a hundredth.
        let psnr_db = (0..101).map(|i| psnr + f64::from(i) / 10.0).collect();
        let quantiles = PictureQuantiles { psnr_db, ssim: vec![] };
        r.flow_end(0, FlowEnd { picture_quantiles: Some(quantiles), ..FlowEnd::default() });
        let mut r = r.finish(Timestamp::from_secs(2));
        let (media_bps, tcp_bps) = (vec![Some(ratio * 1e6); 120], vec![Some(1e6); 120]);
        r.rates_over_time = RatesOverTime { interval_s: 1.0, media_bps, tcp_bps, target_bps: vec![Some(2e6); 120] };
        r
    }

    #[test]
    fn distributions_are_means_at_each_probability_with_an_interval_at_every_tenth() {
        let all = [run("a", "", 30.0, 1.0), run("a", "", 32.0, 1.0), run("b", "", 20.0, 1.0)];
        let plots = cdf(&all.iter().collect::<Vec<_>>(), Of::Psnr, "PSNR, dB");
        let line = &plots[0].lines[0];
        assert_eq!((line.label.as_str(), line.points.len(), plots[0].lines.len()), ("a", 101, 2));
        // At one half 30 + 5 and 32 + 5, of mean 36.
        let (x, y) = line.points[50];
        assert!((x - 36.0).abs() < 1e-9 && (y - 0.5).abs() < 1e-9);
        // Nine bars; sigma is sqrt(2), t of one degree of freedom 12.706: 12.706 sqrt(2) / sqrt(2).
        assert_eq!(line.bars.len(), 9);
        assert!((line.bars[4].to.0 - 36.0 - 12.706).abs() < 1e-6 && line.bars[4].from.1 == 0.5, "{:?}", line.bars[4]);
        assert!(plots[0].lines[1].bars.is_empty(), "one run has no interval");
        assert!(cdf(&all.iter().collect::<Vec<_>>(), Of::Ssim, "").is_empty());
        let rate = &cdf(&all.iter().collect::<Vec<_>>(), Of::Requested, "")[0].lines[0];
        assert!(rate.points.iter().all(|p| (p.0 - 2.0).abs() < 1e-9));
    }

    #[test]
    fn fairness_is_the_mean_of_logarithms() {
        let all = [run("a", "", 30.0, 1.0), run("a", "", 30.0, 4.0)];
        let plots = fairness(&all.iter().collect::<Vec<_>>());
        let line = &plots[0].lines[0];
        assert_eq!((plots[0].scale, line.points.len(), line.bars.len()), (Scale::Log, 120, 2));
        assert!(line.points.iter().all(|p| (p.1 - 2.0).abs() < 1e-6), "{:?}", line.points[3]);
        assert_eq!(line.bars[0].at.0, 50.0);
    }

    #[test]
    fn lines_are_named_by_what_differs() {
        let names =
            |all: &[RunResult]| groups(&all.iter().collect::<Vec<_>>()).into_iter().map(|g| g.0).collect::<Vec<_>>();
        assert_eq!(names(&[run("a", "x", 1.0, 1.0), run("b", "x", 1.0, 1.0)]), ["a", "b"]);
        assert_eq!(names(&[run("a", "x", 1.0, 1.0), run("a", "y", 1.0, 1.0)]), ["x", "y"]);
        assert_eq!(names(&[run("a", "x", 1.0, 1.0), run("b", "y", 1.0, 1.0)]), ["a x", "b y"]);
    }
}
