//! Metrics by the names that results have already: those of `weir compare --json`, of rows, and of phases of RFC 8867.

use crate::rfc::Phase;
use crate::rows::Better;
use weir_lab::results::{FlowKind, FlowSummary, RunResult};

/// Names by the direction in which values are better; `None` where neither is.
type Names = &'static [(Option<Better>, &'static [&'static str])];

/// Metrics of a flow, as [`FlowSummary::values`] has them.
const OF_FLOWS: Names = &[
    (
        Some(Better::High),
        &[
            "utilisation",
            "utilisation_goodput",
            "goodput_bps",
            "tail_goodput_bps",
            "generated_bps",
            "received",
            "psnr",
            "ssim",
            "vmaf",
            "recovery",
        ],
    ),
    (
        Some(Better::Low),
        &[
            "loss",
            "discard",
            "loss_or_discard",
            "network_loss",
            "residual_loss",
            "rejected",
            "one_way_delay_mean_ms",
            "one_way_delay_p50_ms",
            "one_way_delay_p95_ms",
            "one_way_delay_p99_ms",
            "one_way_delay_max_ms",
            "rtt_ms",
            "ramp_up_s",
            "settling_mean_s",
            "rate_variation",
            "dispersion_10ms",
            "dispersion_100ms",
            "dispersion_1s",
            "peak_to_mean_10ms",
            "peak_to_mean_100ms",
            "burst_mean_packets",
            "burst_p95_packets",
            "tripped",
            "stalls",
            "stalled_s",
            "lost_frames",
            "frame_delay_p95_ms",
            "recovery_delay_p95_ms",
            "psnr_below_20db",
            "frozen_pictures",
            "undecodable_frames",
            "undecodable",
            "path_residual_loss",
            "duplicates",
            "reordered",
            "reordering_extent_p95",
            "late_time_p95_ms",
            "skew_ms",
            "longest_gap_ms",
        ],
    ),
    (
        None,
        &[
            "sent_bps",
            "target_bps",
            "repair_bps",
            "active_bps",
            "i_frames",
            "chunk_variation",
            "chunk_peak_to_mean",
            "ffre",
            "frcc",
            "protected_lost_frames",
            "tripped_s",
        ],
    ),
];

/// Metrics of a run as a whole, as [`RunResult::values`] has them.
const OF_RUNS: Names = &[
    (Some(Better::High), &["jain_mean", "jain_end"]),
    (
        Some(Better::Low),
        &[
            "end_ratio",
            "queue_delay_mean_ms",
            "queue_delay_p50_ms",
            "queue_delay_p95_ms",
            "queue_delay_p99_ms",
            "queue_delay_max_ms",
        ],
    ),
    (Some(Better::One), &["tcp_fairness_ratio", "tcp_fair_share"]),
    (None, &["tcp_share", "tcp_throughput_bps", "tcp_goodput_bps"]),
];

/// Metrics of the phases of a test case, as [`Phase`] has them.
const OF_PHASES: Names = &[(Some(Better::High), &["use", "fairness"]), (Some(Better::Low), &["loss", "variation"])];

/// A kind of scenario, by the metrics that it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Any scenario: flows and the run.
    Scenario,
    /// A test case of RFC 8867: phases.
    Case,
}

fn tables(kind: Kind) -> &'static [Names] {
    match kind {
        Kind::Scenario => &[OF_FLOWS, OF_RUNS],
        Kind::Case => &[OF_PHASES],
    }
}

/// The direction of a metric of this name; `None` if there is no such metric.
pub(super) fn direction(kind: Kind, name: &str) -> Option<Option<Better>> {
    tables(kind).iter().copied().flatten().find(|(_, names)| names.contains(&name)).map(|(better, _)| *better)
}

/// Whether a metric is one of single flows.
pub(super) fn is_of_flows(name: &str) -> bool {
    OF_FLOWS.iter().any(|(_, names)| names.contains(&name))
}

/// All names of a kind.
pub(super) fn names(kind: Kind) -> Vec<&'static str> {
    tables(kind).iter().copied().flatten().flat_map(|(_, names)| names.iter().copied()).collect()
}

/// The worse of two values; `None` is the worst.
fn worse_of(better: Better, a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let (a, b) = (a?, b?);
    Some(match better {
        Better::High => a.min(b),
        Better::Low => a.max(b),
        Better::One => {
            let off = |v: f64| libm::log(v.max(1e-9)).abs();
            if off(a) >= off(b) { a } else { b }
        }
    })
}

/// A metric of a run: that of the run as a whole, of the flow named, or the worst of the flows under the controller. `None` is
/// "never", or a metric that nothing in the run has.
pub(super) fn of_run(run: &RunResult, name: &str, flow: Option<&str>, controller: &str, better: Better) -> Option<f64> {
    let find = |values: Vec<(&'static str, f64)>| values.into_iter().find(|v| v.0 == name).map(|v| v.1);
    if !is_of_flows(name) {
        return find(run.values());
    }
    if let Some(flow) = flow {
        return find(run.flow(flow)?.values());
    }
    let judged = |f: &&FlowSummary| f.kind == FlowKind::Rtp && f.controller == controller;
    let values = run.flows.iter().filter(judged).map(|f| find(f.values()));
    values.reduce(|a, b| worse_of(better, a, b)).flatten()
}

/// The worst of a metric over the phases of a case; that of fairness, where no flows are compared, is 1.
pub(super) fn of_phases(phases: &[Phase], name: &str, better: Better) -> Option<f64> {
    let value = |p: &Phase| match name {
        "use" => Some(p.used),
        "loss" => Some(p.loss),
        "variation" => Some(p.variation),
        _ => Some(p.fairness.unwrap_or(1.0)),
    };
    phases.iter().map(value).reduce(|a, b| worse_of(better, a, b)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use weir_cc::Registry;
    use weir_lab::run::{RunOptions, run};
    use weir_lab::scenario::ScenarioFile;

    fn made(scenario: &str, controller: &str) -> RunResult {
        let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        let file = ScenarioFile::open(scenario, &registry).expect("ships");
        run(&file.one(None, Some(controller), &registry).expect("resolves"), 1, &options).expect("runs")
    }

    #[test]
    fn names_are_those_of_results_and_stand_once() {
        let all = names(Kind::Scenario);
        for (i, name) in all.iter().enumerate() {
            assert!(!all[..i].contains(name), "{name}");
            assert!(direction(Kind::Scenario, name).is_some());
        }
        // All that results have is there, but the shares of paths, which are neither better nor worse.
        for scenario in ["quick", "5.6-long-tcp", "5.2-variable-capacity-two-flows", "bonding"] {
            let Ok(file) = ScenarioFile::open(scenario, &Registry::builtin()) else { continue };
            let run = made(scenario, file.controllers().first().map_or("gcc", String::as_str));
            let has = run.flows.iter().flat_map(FlowSummary::values).chain(run.values());
            for (name, _) in has.filter(|v| !v.0.starts_with("path_share_")) {
                assert!(all.contains(&name), "{scenario}: {name}");
            }
        }
        assert_eq!((direction(Kind::Scenario, "lost"), direction(Kind::Case, "jain_end")), (None, None));
        assert_eq!(direction(Kind::Scenario, "target_bps"), Some(None));
    }

    #[test]
    fn a_metric_without_a_flow_is_that_of_the_worst() {
        let run = made("5.2-variable-capacity-two-flows", "gcc");
        let under = run.rtp_flows().filter(|f| f.controller == "gcc");
        let flows: Vec<f64> = under.filter_map(|f| f.utilisation).collect();
        assert!(flows.len() > 1 && flows[0] != flows[1], "{flows:?}");
        let of = |flow, better| of_run(&run, "utilisation", flow, "gcc", better);
        assert_eq!(of(None, Better::High), flows.iter().copied().reduce(f64::min));
        assert_eq!(of(None, Better::Low), flows.iter().copied().reduce(f64::max));
        let name = run.flows[1].name.clone();
        assert_eq!(of(Some(&name), Better::High), run.flows[1].utilisation);
        assert_eq!((of(Some("nobody"), Better::High), of_run(&run, "loss", None, "nada", Better::Low)), (None, None));
        assert_eq!(of_run(&run, "jain_end", None, "gcc", Better::High), run.fairness.jain_end);
        assert_eq!(worse_of(Better::One, Some(0.5), Some(1.5)), Some(0.5));
        assert_eq!(worse_of(Better::Low, Some(0.5), None), None, "never is worst");
    }
}
