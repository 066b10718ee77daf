//! A paper's published numbers and claims, compared with measured ones.
//!
//! A published cell names a scenario, a condition and an algorithm. It is measured over every run whose scenario (the
//! last part of its name), controller and condition agree; if no run has that condition, a window of that label
//! inside the run replaces it ("20-40s"). Metrics of a single flow are those of the run's first RTP flow. In
//! `tcp_fair_share_of_tcp` an even share is the capacity over the number of TCP flows alone. In a window two more
//! are available: `jain`, Jain's index of the RTP flows' media rates, and `late_comer_ratio`, the media rate
//! of the RTP flow that started last over the mean of the earlier ones.
//!
//! A published condition may be several variants. `places` in a paper's description states which, and which flow.

mod claims;
pub mod data;
mod ends;
mod explained;
mod place;

pub use claims::{Check, ClaimSpec};
pub use explained::{Condition, End};
pub use place::Place;
use place::{Reduce, split};
pub use weir_report::published::{
    Agreement, Cell, Claim, EndScore, ExplainedCell, LostOrder, Measured, Note, OpenCondition, Reproduction,
    TableTitle, Verdict, is_near,
};

use serde::{Deserialize, Serialize};
use weir_lab::results::{FlowKind, FlowSummary, RunResult, Stat, WindowSummary};

/// One number as published: a row of a paper's table file.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Published {
    /// The paper by name.
    pub paper: String,
    /// The paper's own number of the table, or `figN`.
    pub table: String,
    /// Scenario.
    pub scenario: String,
    /// Condition: a variant of the scenario or a window of time.
    pub condition: String,
    /// Algorithm, by the name of its controller.
    pub algorithm: String,
    /// Metric.
    pub metric: String,
    /// Unit of the value.
    pub unit: String,
    /// The value.
    pub value: f64,
    /// Its standard deviation, if the paper gives one.
    pub sigma: Option<f64>,
}

/// The contents of a paper, from its data files.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Paper {
    /// The paper by name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// Titles of the tables.
    pub tables: Vec<TableTitle>,
    /// Every published number.
    pub published: Vec<Published>,
    /// Where numbers are measured whose condition does not determine it.
    pub places: Vec<Place>,
    /// Conditions that the paper leaves open, and the two ends between which they are shown.
    pub explained: Vec<Condition>,
    /// The paper's claims as checks.
    pub claims: Vec<ClaimSpec>,
    /// Remarks on the reproduction.
    pub notes: Vec<Note>,
}

/// Compares a paper's numbers and claims with the runs. A number or claim without a run is kept, unmeasured.
pub fn reproduce(paper: &Paper, runs: &[RunResult]) -> Reproduction {
    let mut cells: Vec<Cell> = paper.published.iter().map(|p| cell(p, &paper.places, runs)).collect();
    let explanations = paper.explained.iter().map(|e| e.explain(paper, &mut cells, runs)).collect();
    let lost_orders = ends::lost_orders(paper, &cells, runs);
    let claims: Vec<Claim> = paper.claims.iter().map(|c| ends::claim(paper, c, runs)).collect();
    Reproduction {
        paper: paper.name.clone(),
        title: paper.title.clone(),
        agreement: Agreement::of(&cells, &lost_orders),
        ends: ends::scores(paper, &cells, &claims, runs),
        cells,
        explanations,
        lost_orders,
        claims,
        tables: paper.tables.clone(),
        notes: paper.notes.clone(),
    }
}

impl Paper {
    /// The place of a published number, if the paper's data name one.
    pub fn place(&self, p: &Published) -> Option<&Place> {
        self.places.iter().find(|place| place.is_for(p))
    }
}

fn cell(p: &Published, places: &[Place], runs: &[RunResult]) -> Cell {
    let stat = stat(p, places.iter().find(|place| place.is_for(p)), runs);
    let measured = stat.map(|s| s.mean);
    let near = measured.map(|m| is_near(&p.metric, &p.unit, p.value, m));
    Cell {
        paper: p.paper.clone(),
        table: p.table.clone(),
        scenario: p.scenario.clone(),
        condition: p.condition.clone(),
        algorithm: p.algorithm.clone(),
        metric: p.metric.clone(),
        unit: p.unit.clone(),
        published: p.value,
        published_sigma: p.sigma,
        measured,
        measured_sigma: stat.and_then(|s| s.sigma),
        measured_ci95: stat.and_then(|s| s.ci95),
        runs: stat.map_or(0, |s| s.runs),
        verdict: near.map(|near| if near { Verdict::Near } else { Verdict::Far }),
    }
}

/// A number over the runs that measured it, in the unit of the published one.
fn stat(p: &Published, place: Option<&Place>, runs: &[RunResult]) -> Option<Stat> {
    let stat = match place {
        Some(place) => measure_at(place, p, runs),
        None => measure(runs, &p.scenario, Some(&p.condition), &p.algorithm, &p.metric),
    }?;
    // Ratios are kept as such; tables of percentages have a hundred times that.
    let scale = match p.unit.as_str() {
        "percent" => 100.0,
        "kbps" => 1e-3,
        "Mbps" => 1e-6,
        _ => 1.0,
    };
    let scaled = |v: f64| v * scale;
    Some(Stat {
        mean: scaled(stat.mean),
        sigma: stat.sigma.map(scaled),
        ci95: stat.ci95.map(scaled),
        min: scaled(stat.min),
        max: scaled(stat.max),
        runs: stat.runs,
    })
}

/// A metric over the variants of a place.
fn measure_at(place: &Place, p: &Published, runs: &[RunResult]) -> Option<Stat> {
    let scenario = place.measured_in.as_ref().unwrap_or(&p.scenario);
    let controller = place.controller.as_ref().unwrap_or(&p.algorithm);
    let (metric, reduce) = split(&p.metric);
    let all: Vec<&RunResult> = runs.iter().collect();
    let per_variant: Vec<Vec<f64>> = (place.variants.iter())
        .map(|v| values(&all, scenario, v, controller).of(place.flow.as_deref(), metric))
        .collect();
    let stats = || per_variant.iter().filter_map(|values| Stat::of(values));
    match reduce {
        Reduce::Least => stats().min_by(|a, b| a.mean.total_cmp(&b.mean)),
        Reduce::Greatest => stats().max_by(|a, b| a.mean.total_cmp(&b.mean)),
        Reduce::Mean => Stat::of(&per_variant.concat()),
    }
}

/// The runs of one variant of a scenario under a controller.
pub(crate) struct Values<'a> {
    runs: Vec<&'a RunResult>,
    /// The same under TFRC.
    tfrc: Vec<&'a RunResult>,
}

/// Finds runs. A scenario that compares no controllers has the same runs for every algorithm; the name is empty then.
pub(crate) fn values<'a>(runs: &[&'a RunResult], scenario: &str, variant: &str, controller: &str) -> Values<'a> {
    let of = |controller: &str| -> Vec<&'a RunResult> {
        let wanted = |r: &&&RunResult| {
            r.scenario.rsplit('/').next() == Some(scenario)
                && r.condition == variant
                && (r.controller == controller || controller.is_empty())
        };
        runs.iter().filter(wanted).copied().collect()
    };
    Values { runs: of(controller), tfrc: of("tfrc") }
}

impl Values<'_> {
    /// A metric, one number a run.
    pub(crate) fn of(&self, flow: Option<&str>, metric: &str) -> Vec<f64> {
        let numbers = |runs: &[&RunResult], flow: Option<&str>, metric: &str| -> Vec<f64> {
            runs.iter().filter_map(|r| flow_value(r, flow, metric)).collect()
        };
        // Against TFRC under the same condition (Matsuzono and others 2012, equation 7).
        if metric == "tcp_friendliness_index" {
            let of = |runs: &[&RunResult]| match flow {
                None | Some("*") => numbers(runs, None, "tcp_throughput_bps"),
                flow => numbers(runs, flow, "active_bps"),
            };
            let tfrc = Stat::of(&of(&self.tfrc)).map(|s| s.mean).filter(|m| *m > 0.0);
            return tfrc.map_or(vec![], |m| of(&self.runs).iter().map(|x| x / m).collect());
        }
        numbers(&self.runs, flow, metric)
    }
}

/// A metric of a run, or the mean over the named flows: one flow, all copies of one, or with `*` the RTP flows. Metrics
/// that only the run has, such as its share against TCP, are the run's.
fn flow_value(run: &RunResult, flow: Option<&str>, metric: &str) -> Option<f64> {
    let Some(name) = flow else { return run_value(run, metric) };
    let is_copy =
        |f: &str| f.strip_prefix(name).and_then(|f| f.strip_prefix('-')).is_some_and(|n| n.parse::<u32>().is_ok());
    let wanted = |f: &&FlowSummary| match name {
        "*" => f.kind == FlowKind::Rtp,
        _ => f.name == name || is_copy(&f.name),
    };
    let values: Vec<f64> = run.flows.iter().filter(wanted).filter_map(|f| value_in(run, f, metric)).collect();
    let of_run = || run.values().into_iter().find(|(n, _)| *n == alias(metric)).map(|(_, v)| v);
    Stat::of(&values).map(|s| s.mean).or_else(of_run)
}

/// A metric of a flow, including those relative to other flows of its run.
fn value_in(run: &RunResult, flow: &FlowSummary, metric: &str) -> Option<f64> {
    if metric != "abu" {
        return value_of(flow, metric);
    }
    // Average bandwidth utilisation: goodput over the flow's even share of the bottleneck.
    let share = run.queue.as_ref().and_then(|q| q.capacity_bps).filter(|c| *c > 0.0)? / run.rtp_flows().count() as f64;
    Some(flow.rates.goodput_bps / share)
}

fn value_of(flow: &FlowSummary, metric: &str) -> Option<f64> {
    let metric = alias(metric);
    let value = flow.values().into_iter().find(|(n, _)| *n == metric).map(|(_, v)| v);
    // Losses of a flow without repair are residual losses.
    let value = value.or_else(|| (metric == "residual_loss").then_some(flow.loss));
    value.or_else(|| flow.internals.get(metric).copied())
}

/// A metric over the runs of a scenario under a controller; of any condition if none is named.
fn measure(
    runs: &[RunResult],
    scenario: &str,
    condition: Option<&str>,
    controller: &str,
    metric: &str,
) -> Option<Stat> {
    let of_scenario = runs.iter().filter(|r| {
        (r.scenario == scenario || r.scenario.rsplit('/').next() == Some(scenario)) && r.controller == controller
    });
    let values: Vec<f64> = of_scenario
        .filter_map(|r| match condition {
            Some(c) if !c.is_empty() && r.condition != c => window_value(r, c, metric),
            _ => run_value(r, metric),
        })
        .collect();
    Stat::of(&values)
}

fn first_rtp(run: &RunResult) -> Option<(usize, &FlowSummary)> {
    run.flows.iter().enumerate().find(|(_, f)| f.kind == FlowKind::Rtp)
}

fn run_value(run: &RunResult, metric: &str) -> Option<f64> {
    if metric == "tcp_fair_share_of_tcp" {
        let all = run.flows.iter().filter(|f| f.kind != FlowKind::Udp).count() as f64;
        let tcp = run.flows.iter().filter(|f| f.kind == FlowKind::Tcp).count() as f64;
        return run.fairness.tcp_fair_share.filter(|_| all > 0.0).map(|share| share * tcp / all);
    }
    let find = |list: Vec<(&'static str, f64)>| list.into_iter().find(|(n, _)| *n == alias(metric)).map(|(_, v)| v);
    find(run.values()).or_else(|| value_in(run, first_rtp(run)?.1, metric))
}

fn window_value(run: &RunResult, label: &str, metric: &str) -> Option<f64> {
    let (flow, window) = (first_rtp(run)?.0, run.window(label)?);
    let w = window.flows.get(flow)?;
    match alias(metric) {
        "utilisation" => w.utilisation,
        "utilisation_goodput" => w.utilisation_goodput,
        "generated_bps" => Some(w.generated_bps),
        "goodput_bps" => Some(w.goodput_bps),
        "loss" => Some(w.loss),
        "one_way_delay_mean_ms" => w.one_way_delay_ms,
        "queue_delay_mean_ms" => window.queue_delay_ms.first().copied().flatten(),
        "jain" => shares(run, window).jain(),
        "late_comer_ratio" => shares(run, window).late_comer_ratio(),
        _ => None,
    }
}

/// Media rates of a run's RTP flows in one window, in order of start.
struct Shares(Vec<f64>);

fn shares(run: &RunResult, window: &WindowSummary) -> Shares {
    let mut flows: Vec<(f64, f64)> = (run.flows.iter().zip(&window.flows))
        .filter(|(f, _)| f.kind == FlowKind::Rtp)
        .map(|(f, w)| (f.start_s, w.generated_bps))
        .collect();
    flows.sort_by(|a, b| a.0.total_cmp(&b.0));
    Shares(flows.into_iter().map(|f| f.1).collect())
}

impl Shares {
    /// Jain's index.
    fn jain(&self) -> Option<f64> {
        let (sum, squares) = self.0.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        (self.0.len() >= 2 && squares > 0.0).then(|| sum * sum / (self.0.len() as f64 * squares))
    }
    /// Rate of the flow that started last over the mean of those before it.
    fn late_comer_ratio(&self) -> Option<f64> {
        let (last, earlier) = self.0.split_last()?;
        let mean = earlier.iter().sum::<f64>() / earlier.len() as f64;
        (mean > 0.0).then(|| last / mean)
    }
}

/// Weir's names of the papers' metrics.
fn alias(metric: &str) -> &str {
    match metric {
        "goodput" => "goodput_bps",
        "throughput" => "goodput_bps",
        "loss_rate" => "loss_or_discard",
        "rtt" => "rtt_ms",
        "sending_rate" => "sent_bps",
        "loss_recovery" => "recovery",
        "psnr_below_20dB" => "psnr_below_20db",
        "tcp_throughput" => "tcp_throughput_bps",
        "fec_rate" => "repair_bps",
        "triggered" => "tripped",
        "fec_window" => "window_mean",
        other => other,
    }
}

#[cfg(test)]
mod tests;
