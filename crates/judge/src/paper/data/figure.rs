//! A paper's figures: their contents, and how they are drawn from runs.

use super::super::values;
use serde::Deserialize;
use weir_cc::papers::{DpFecConfig, max_interval_loss};
use weir_lab::results::RunResult;
use weir_report::figures::{self, Overlay, Quantity, SweepLine};
use weir_units::TimeDelta;

/// A figure of a paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The paper's own number.
    pub figure: String,
    /// Its title.
    pub title: String,
    /// Its scenario, by the last part of the name.
    pub scenario: String,
    /// Its controllers; those that the scenario compares if empty.
    #[serde(default)]
    pub controllers: Vec<String>,
    /// Its variants; all if empty.
    #[serde(default)]
    pub variants: Vec<String>,
    /// Kind of plot.
    pub plot: Plot,
    /// Names of the controller's internals, for [`Plot::Internals`].
    #[serde(default)]
    pub internals: Vec<String>,
    /// Factor of their values; 1 if absent.
    #[serde(default)]
    pub scale: Option<f64>,
    /// Label of the vertical axis, if the plot does not determine it.
    #[serde(default)]
    pub label: String,
    /// The quantity of [`Plot::Cdf`].
    #[serde(default)]
    pub of: figures::Of,
    /// Upper end of the vertical axis of [`Plot::Throughput`] in Mbit/s; the highest value if absent.
    #[serde(default)]
    pub most: Option<f64>,
    /// The paper's own curves, for [`Plot::Goodput`], [`Plot::Repair`] and [`Plot::Internals`].
    #[serde(default)]
    pub curves: Vec<Curve>,
    /// The sweep of [`Plot::Sweep`].
    #[serde(default)]
    pub sweep: Option<Sweep>,
}

/// Kind of plot, and its quantity.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Plot {
    /// Sending rates over time.
    Rate,
    /// One-way delay over time.
    Delay,
    /// Goodputs over time, one panel per run.
    Goodput,
    /// Media and repair rates over time.
    Repair,
    /// Rates of all flows over time, stacked.
    Stacked,
    /// A controller's internals over time.
    Internals,
    /// A metric over variants.
    Sweep,
    /// Cumulative distributions, means over all runs with 95 % confidence intervals.
    Cdf,
    /// Media throughput over TCP's, over time, likewise.
    Fairness,
    /// Throughput of the first media flow over time, one line per controller.
    Throughput,
    /// DP-FEC's greatest acceptable change of the loss interval over the loss interval: its equations, without runs.
    Acceptable,
}

/// A curve of the paper, digitised from its figure: a CSV of time in s and a value.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// The variant that it belongs to; empty if the scenario has none.
    #[serde(default)]
    pub variant: String,
    /// The controller that it belongs to; any if empty.
    #[serde(default)]
    pub controller: String,
    /// Name in the legend.
    pub label: String,
    /// File in the folder of the paper's description.
    pub file: String,
}

/// A metric over variants.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// The metric, as in published numbers.
    pub metric: String,
    /// The flow, as in [`crate::paper::Place::flow`].
    #[serde(default)]
    pub flow: Option<String>,
    /// Factor of its values; 1 if absent.
    #[serde(default)]
    pub scale: Option<f64>,
    /// Label of the horizontal axis.
    pub x_label: String,
    /// The places where it is measured.
    pub x: Vec<f64>,
    /// The lines.
    pub lines: Vec<LineSpec>,
}

/// One line of a sweep.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineSpec {
    /// Name in the legend; the controller's if empty.
    #[serde(default)]
    pub label: String,
    /// The scenario, if it is not the figure's.
    #[serde(default)]
    pub scenario: Option<String>,
    /// Controller; any if empty.
    #[serde(default)]
    pub controller: String,
    /// The variants' name with `{x}` for the number on the horizontal axis.
    #[serde(default)]
    pub variant: String,
    /// The paper's own points in place of runs: pairs of a number on the horizontal axis and a value.
    #[serde(default)]
    pub points: Vec<[f64; 2]>,
}

impl Figure {
    /// The scenarios from which it is drawn.
    pub(super) fn scenarios(&self) -> impl Iterator<Item = &String> {
        let lines = self.sweep.iter().flat_map(|s| &s.lines).filter_map(|l| l.scenario.as_ref());
        std::iter::once(&self.scenario).chain(lines)
    }

    /// Its panels; none without a run for it. `overlays` are its curves.
    pub(super) fn draw(&self, runs: &[&RunResult], overlays: &[Overlay]) -> Vec<figures::Plot> {
        if let Some(sweep) = &self.sweep {
            return self.draw_sweep(sweep, runs);
        }
        if self.plot == Plot::Acceptable {
            return acceptable(&self.label);
        }
        let of_scenario = |r: &&&RunResult| r.scenario.rsplit('/').next() == Some(&self.scenario);
        let among = |list: &[String], name: &String| list.is_empty() || list.contains(name);
        let wanted = |r: &&&RunResult| among(&self.controllers, &r.controller) && among(&self.variants, &r.condition);
        let every: Vec<&RunResult> = runs.iter().filter(of_scenario).filter(wanted).copied().collect();
        match self.plot {
            _ if every.is_empty() => return vec![],
            Plot::Cdf => return figures::cdf(&every, self.of, &self.label),
            Plot::Fairness => return figures::fairness(&every),
            _ => {}
        }
        let shown: Vec<&RunResult> = every.into_iter().filter(|r| r.series.is_some()).collect();
        if shown.is_empty() {
            return vec![];
        }
        match self.plot {
            Plot::Rate => figures::over_time(Quantity::Rate, &shown),
            Plot::Delay => figures::over_time(Quantity::Delay, &shown),
            Plot::Goodput => figures::goodput(&shown, overlays),
            Plot::Repair => figures::repair(&shown, overlays),
            Plot::Stacked => figures::stacked(&shown),
            Plot::Internals => {
                figures::internals(&shown, (&self.internals, self.scale.unwrap_or(1.0)), &self.label, overlays)
            }
            Plot::Throughput => figures::throughput(&shown, self.most),
            Plot::Sweep | Plot::Acceptable | Plot::Cdf | Plot::Fairness => vec![],
        }
    }

    fn draw_sweep(&self, sweep: &Sweep, runs: &[&RunResult]) -> Vec<figures::Plot> {
        let scale = sweep.scale.unwrap_or(1.0);
        let line = |l: &LineSpec| {
            let scenario = l.scenario.as_ref().unwrap_or(&self.scenario);
            let at = |&x: &f64| {
                let values = values(runs, scenario, &l.variant.replace("{x}", &x.to_string()), &l.controller)
                    .of(sweep.flow.as_deref(), &sweep.metric);
                (x, values.into_iter().map(|v| v * scale).collect())
            };
            if !l.points.is_empty() {
                let points = l.points.iter().map(|&[x, y]| (x, vec![y])).collect();
                return SweepLine { label: l.label.clone(), points };
            }
            let label = if l.label.is_empty() { l.controller.clone() } else { l.label.clone() };
            SweepLine { label, points: sweep.x.iter().map(at).collect() }
        };
        let lines: Vec<SweepLine> = sweep.lines.iter().map(line).collect();
        let by_runs = || sweep.lines.iter().zip(&lines).filter(|(spec, _)| spec.points.is_empty());
        if by_runs().all(|(_, l)| l.points.iter().all(|p| p.1.is_empty())) {
            return vec![];
        }
        figures::sweep(&lines, &sweep.x_label, &self.label)
    }
}

/// Equation 5 of Matsuzono and others at a stream of 30 Mbit/s in packets of 1,500 bytes, for two thresholds.
fn acceptable(label: &str) -> Vec<figures::Plot> {
    const PACKETS_A_SECOND: f64 = 2_500.0;
    let line = |threshold: f64| {
        let config = DpFecConfig { threshold, ..DpFecConfig::default() };
        let at = |ms: i32| {
            let interval = TimeDelta::from_millis(i64::from(ms));
            let most = max_interval_loss(&config, interval, PACKETS_A_SECOND);
            (f64::from(ms), vec![most.as_millis_f64()])
        };
        SweepLine {
            label: format!("Threshold FEC Impact {threshold}"),
            points: (10..=1_000).step_by(10).map(at).collect(),
        }
    };
    figures::sweep(&[line(0.1), line(0.3)], "Loss interval LI, ms", label)
}

/// Reads a curve's file: a header, then time and value in each line. Errors name the line.
pub(super) fn curve(text: &str) -> Result<Vec<(f64, f64)>, String> {
    let number = |text: &str| text.trim().parse::<f64>().ok().filter(|n| n.is_finite());
    let row = |(i, line): (usize, &str)| {
        let pair = line.split_once(',').and_then(|(t, v)| Some((number(t)?, number(v)?)));
        pair.ok_or_else(|| format!("line {}: expected a time and a value, found \"{line}\"", i + 1))
    };
    text.lines().enumerate().skip(1).filter(|l| !l.1.is_empty()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_are_read_or_say_where_they_are_wrong() {
        assert_eq!(curve("time_s,rate_kbps\n1,2.5\n2,3\n"), Ok(vec![(1.0, 2.5), (2.0, 3.0)]));
        assert!(curve("time_s,rate_kbps\n1;2\n").expect_err("no comma").contains("line 2"));
    }
}
