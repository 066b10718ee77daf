//! Contenders that the report ranks: the controllers of each scenario, and the flows of mixed runs, by run.

use super::{ControllerRuns, ScenarioReport};
use serde::Serialize;
use weir_lab::results::{FlowKind, FlowSummary, LinkSummary, RunResult};

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

/// Indices of the ranked flows that each run of a section has under the controller that it compares. Other flows have
/// the controller that the scenario gives them in all runs, also where that is the one compared. Empty where the
/// scenario names all controllers itself.
fn compared_flows(s: &ScenarioReport) -> Vec<usize> {
    let Some(first) = s.controllers.first() else { return vec![] };
    let is_compared = |&i: &usize| {
        let own = |c: &ControllerRuns| c.shown.flows.get(i).is_some_and(|f| f.controller == c.shown.controller);
        s.controllers.iter().all(own)
    };
    ranked_flows(&first.shown).into_iter().filter(is_compared).collect()
}

/// The names with separate line styles: compared controllers and, where the scenario names them, those of each flow.
pub(super) fn names(s: &ScenarioReport) -> Vec<String> {
    let has_compared = !compared_flows(s).is_empty();
    let of = |c: &ControllerRuns| -> Vec<String> {
        let run = &c.shown;
        if has_compared || !is_mixed(run) {
            return vec![run.controller.clone()];
        }
        ranked_flows(run).into_iter().map(|i| run.flows[i].controller.clone()).collect()
    };
    s.controllers.iter().flat_map(of).collect()
}

/// Names of the [`Contender`]s of one controller's runs in a section, and the flows of each.
pub(super) fn groups(s: &ScenarioReport, run: &RunResult) -> Vec<(String, String, Vec<usize>)> {
    let compared = compared_flows(s);
    let flows = if compared.is_empty() { ranked_flows(run) } else { compared };
    if flows.iter().all(|&i| run.flows[i].controller == run.flows[flows[0]].controller) {
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
        groups(s, &c.shown).into_iter().map(contender).collect()
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
    let queue = queue_of(run, &flows).and_then(|q| q.delay_ms);
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

/// The run's bottleneck, or that of the first flow where none of them is measured against the run's.
fn queue_of<'r>(run: &'r RunResult, flows: &[&FlowSummary]) -> Option<&'r LinkSummary> {
    let of_run = run.queue.as_ref();
    let own = |f: &FlowSummary| run.links.iter().find(|l| l.name == f.bottleneck);
    let is_there = of_run.is_some_and(|q| flows.iter().any(|f| f.bottleneck == q.name));
    if is_there { of_run } else { flows.first().and_then(|f| own(f)).or(of_run) }
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
    use weir_lab::metrics::{Capacity, FlowInfo, LinkInfo, Recorder, RecorderConfig};
    use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

    /// A run of 2 s of a call on 1 Mbit/s and a flow back on a link without a limit, under these controllers.
    fn run(compared: &str, controllers: [&str; 2]) -> RunResult {
        let flow = |(i, controller): (usize, &str)| FlowInfo {
            name: ["call", "back"][i].into(),
            controller: controller.into(),
            kind: FlowKind::Rtp,
            adapts: true,
            start: Timestamp::ZERO,
            stop: None,
            playout_deadline: None,
            reported_headers: 0,
            bottleneck: i,
            further: vec![],
            links: if i == 0 { vec![0] } else { vec![] },
            most: None,
        };
        let link = |name: &str, rate| LinkInfo { name: name.into(), capacity: Capacity::constant(rate) };
        let mut r = Recorder::new(RecorderConfig {
            scenario: "s".into(),
            condition: String::new(),
            controller: compared.into(),
            seed: 1,
            flows: controllers.into_iter().enumerate().map(flow).collect(),
            links: vec![link("there", DataRate::from_mbps(1)), link("there.reverse", DataRate::ZERO)],
            bottleneck: 0,
            sampling: TimeDelta::from_secs(1),
            series: false,
            duration: TimeDelta::from_secs(2),
            burstiness: false,
            windows: vec![],
        });
        let size = DataSize::from_bytes(50_000);
        (0..2).for_each(|f| r.received(f, Timestamp::from_secs(1), Timestamp::ZERO, size));
        r.finish(Timestamp::from_secs(2))
    }

    fn section(runs: Vec<RunResult>) -> ScenarioReport {
        let controllers = runs.into_iter().filter_map(|r| ControllerRuns::new(vec![r])).collect();
        ScenarioReport { controllers, ..ScenarioReport::default() }
    }

    #[test]
    fn a_controller_is_ranked_by_the_flows_that_compare_it() {
        let s = section(vec![run("gcc", ["gcc", "nada"]), run("nada", ["nada", "nada"])]);
        assert_eq!((compared_flows(&s), names(&s)), (vec![0], vec!["gcc".to_owned(), "nada".to_owned()]));
        let all = of_section(0, &s, &names(&s));
        let use_at = QUANTITIES.iter().position(|q| q.key == "use").expect("a quantity");
        let found: Vec<_> = all.iter().map(|c| (&c.who[..], &c.label[..], c.runs[0].values[use_at])).collect();
        assert_eq!(found, [("gcc", "gcc", Some(20.0)), ("nada", "nada", Some(20.0))]);
    }

    #[test]
    fn flows_under_controllers_of_the_scenario_are_ranked_each_by_itself() {
        let s = section(vec![run("gcc+nada", ["gcc", "nada"])]);
        let all = of_section(0, &s, &names(&s));
        let use_at = QUANTITIES.iter().position(|q| q.key == "use").expect("a quantity");
        let found: Vec<_> = all.iter().map(|c| (&c.who[..], c.runs[0].values[use_at])).collect();
        // Nothing is the whole of a link without a limit.
        assert_eq!(found, [("gcc", Some(20.0)), ("nada", None)]);
    }

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
