//! Contenders that the report ranks: the controllers of each scenario, and the flows of mixed runs, by run.

use super::{ControllerRuns, ScenarioReport};
use serde::Serialize;
use weir_lab::results::{FlowKind, FlowSummary, RunResult};

/// A quantity by which contenders are ranked or plotted.
#[derive(Serialize)]
pub(super) struct Quantity {
    pub(super) key: &'static str,
    title: &'static str,
    unit: &'static str,
    /// Whether higher is better.
    more: bool,
    decimals: usize,
    /// Added to numerator and denominator of a ratio in a score, so that a zero does not dominate; in the quantity's unit.
    step: f64,
}

const fn quantity(
    key: &'static str,
    title: &'static str,
    unit: &'static str,
    decimals: usize,
    (more, step): (bool, f64),
) -> Quantity {
    Quantity { key, title, unit, more, decimals, step }
}

/// All of them, in the order of [`Run::values`].
pub(super) const QUANTITIES: [Quantity; 10] = [
    quantity("queue_p95", "Queueing delay, 95th percentile", "ms", 1, (false, 10.0)),
    quantity("queue_mean", "Queueing delay, mean", "ms", 1, (false, 10.0)),
    quantity("delay_p95", "One-way delay, 95th percentile", "ms", 1, (false, 10.0)),
    quantity("delay_mean", "One-way delay, mean", "ms", 1, (false, 10.0)),
    quantity("use", "Link use by goodput", "%", 1, (true, 0.0)),
    quantity("goodput", "Goodput", "kbit/s", 0, (true, 0.0)),
    quantity("loss", "Packets lost", "%", 2, (false, 0.5)),
    quantity("frame_p95", "Frame delay, 95th percentile", "ms", 0, (false, 10.0)),
    quantity("frozen", "Time frozen", "s/min", 2, (false, 1.0)),
    quantity("fairness", "Fairness", "", 3, (true, 0.0)),
];

/// A controller of a scenario, or one flow of a mixed run.
#[derive(Serialize)]
pub(super) struct Contender {
    /// Number of the report's section.
    pub(super) section: usize,
    /// The name ranked over all scenarios: the controller.
    pub(super) who: String,
    /// Its name in the scenario.
    pub(super) label: String,
    /// Number of the line style.
    pub(super) style: usize,
    pub(super) runs: Vec<Run>,
}

/// One run of a contender.
#[derive(Serialize)]
pub(super) struct Run {
    pub(super) seed: u64,
    /// In the order of [`QUANTITIES`].
    pub(super) values: Vec<Option<f64>>,
}

/// Media flows that adapt.
pub(super) fn is_adaptive_media(f: &FlowSummary) -> bool {
    matches!(f.kind, FlowKind::Rtp | FlowKind::Dccp) && f.adapts
}

/// Indices of the ranked flows: media that adapts or, if none does, all media; in a run without media all flows.
pub(super) fn ranked_flows(run: &RunResult) -> Vec<usize> {
    let of = |wanted: &dyn Fn(&FlowSummary) -> bool| -> Vec<usize> {
        run.flows.iter().enumerate().filter(|(_, f)| wanted(f)).map(|(i, _)| i).collect()
    };
    let adaptive = of(&is_adaptive_media);
    let media = of(&|f| matches!(f.kind, FlowKind::Rtp | FlowKind::Dccp));
    [adaptive, media].into_iter().find(|list| !list.is_empty()).unwrap_or_else(|| (0..run.flows.len()).collect())
}

/// Whether flows under different controllers share the run.
pub(super) fn is_mixed(run: &RunResult) -> bool {
    let flows = ranked_flows(run);
    flows.iter().any(|&i| run.flows[i].controller != run.flows[flows[0]].controller)
}

/// The names with separate line styles: compared controllers and, in mixed runs, those of each flow.
pub(super) fn names(run: &RunResult) -> Vec<String> {
    if is_mixed(run) {
        ranked_flows(run).into_iter().map(|i| run.flows[i].controller.clone()).collect()
    } else {
        vec![run.controller.clone()]
    }
}

/// Names of the [`Contender`]s of one controller's runs, and the flows of each.
pub(super) fn groups(run: &RunResult) -> Vec<(String, String, Vec<usize>)> {
    let flows = ranked_flows(run);
    if !is_mixed(run) {
        return vec![(run.controller.clone(), run.controller.clone(), flows)];
    }
    let shares = |i: usize| flows.iter().filter(|&&j| run.flows[j].controller == run.flows[i].controller).count() > 1;
    let group = |&i: &usize| {
        let f = &run.flows[i];
        let label = if shares(i) { format!("{} ({})", f.controller, f.name) } else { f.controller.clone() };
        (f.controller.clone(), label, vec![i])
    };
    flows.iter().map(group).collect()
}

/// The contenders of a section.
pub(super) fn of_section(section: usize, s: &ScenarioReport, styles: &[String]) -> Vec<Contender> {
    let style = |name: &str| styles.iter().position(|n| n == name).unwrap_or(0);
    let of = |c: &ControllerRuns| -> Vec<Contender> {
        let contender = |(who, label, flows): (String, String, Vec<usize>)| Contender {
            section,
            style: style(&who),
            who,
            label,
            runs: c.runs().map(|r| Run { seed: r.seed, values: values(r, &flows) }).collect(),
        };
        groups(&c.shown).into_iter().map(contender).collect()
    };
    s.controllers.iter().flat_map(of).collect()
}

/// Rounds to four significant digits, the most that a page shows.
fn rounded(v: f64) -> f64 {
    format!("{v:.3e}").parse().unwrap_or(v)
}

fn values(run: &RunResult, flows: &[usize]) -> Vec<Option<f64>> {
    let flows: Vec<&FlowSummary> = flows.iter().filter_map(|&i| run.flows.get(i)).collect();
    let delays = || flows.iter().filter_map(|f| f.one_way_delay_ms);
    let queue = run.queue.as_ref().and_then(|q| q.delay_ms);
    let frames = || flows.iter().filter_map(|f| f.frames.map(|s| (f, s)));
    let all = [
        queue.map(|d| d.p95),
        queue.map(|d| d.mean),
        largest(delays().map(|d| d.p95)),
        mean(delays().map(|d| d.mean)),
        link_use(run, &flows).map(|u| u * 100.0),
        goodput(run, &flows).map(|g| g * 1e-3),
        loss(&flows).map(|l| l * 100.0),
        largest(frames().filter_map(|(_, s)| Some(s.delay_ms?.p95))),
        ratio(frames().map(|(f, s)| (s.stalled_s, f.stop_s - f.start_s))).map(|r| r * 60.0),
        fairness(run),
    ];
    all.into_iter().map(|v| v.filter(|v| v.is_finite()).map(rounded)).collect()
}

fn largest(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    ratio(values.map(|v| (v, 1.0)))
}

/// The sum of the first over the sum of the second.
fn ratio(parts: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (a, b) = parts.fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    (b > 0.0).then(|| a / b)
}

/// Goodput over the capacity of the bottleneck: of one flow while it is active, of several over the run.
fn link_use(run: &RunResult, flows: &[&FlowSummary]) -> Option<f64> {
    if let [one] = flows {
        return one.utilisation_goodput;
    }
    let queue = run.queue.as_ref()?;
    let there = flows.iter().filter(|f| f.bottleneck == queue.name);
    let bits: f64 = there.map(|f| f.rates.goodput_bps * (f.stop_s - f.start_s)).sum();
    let capacity = queue.capacity_bps.map(|c| c * run.duration_s).filter(|c| bits > 0.0 && *c > 0.0);
    capacity.map(|c| bits / c).or_else(|| mean(flows.iter().filter_map(|f| f.utilisation_goodput)))
}

/// Total goodput of the flows in bit/s, likewise.
fn goodput(run: &RunResult, flows: &[&FlowSummary]) -> Option<f64> {
    if let [one] = flows {
        return Some(one.rates.goodput_bps);
    }
    ratio(std::iter::once((
        flows.iter().map(|f| f.rates.goodput_bps * (f.stop_s - f.start_s)).sum::<f64>(),
        run.duration_s,
    )))
}

fn loss(flows: &[&FlowSummary]) -> Option<f64> {
    let lost = |f: &FlowSummary| f.packets.dropped_queue + f.packets.dropped_aqm + f.packets.dropped_channel;
    ratio(flows.iter().map(|f| (lost(f) as f64, f.packets.sent as f64)))
}

/// Jain's index of the media flows over time; with TCP, the evenness of the shares from 0 (one is starved) to 1; the
/// lower of the two.
fn fairness(run: &RunResult) -> Option<f64> {
    let against_tcp = run.fairness.tcp_share.map(|a| 1.0 - (2.0 * a - 1.0).abs());
    [run.fairness.jain_mean, against_tcp].into_iter().flatten().reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_are_kept() {
        assert_eq!([0.0, 12_345.6, 0.012_345_6].map(rounded), [0.0, 12_350.0, 0.012_35]);
    }

    #[test]
    fn a_ratio_of_nothing_is_no_value() {
        assert_eq!(ratio([(1.0, 2.0), (2.0, 4.0)].into_iter()), Some(0.5));
        assert_eq!((ratio(std::iter::empty()), largest(std::iter::empty())), (None, None));
    }
}
