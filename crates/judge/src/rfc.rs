//! The report card: how a controller does in the test cases of RFC 8867, and of RFC 8869 for wireless links, by written
//! criteria.
//!
//! The RFCs state their expectations in words. Here each phase of a case (a span between two changes of capacity or of the
//! flows) is judged by its last ten seconds, for each direction of the path, if nothing changed in the five before:
//!
//! - **use**: what the media flows carry, with IP and UDP headers, over what fits: the capacity less UDP traffic and short
//!   TCP flows, a call's even share of it beside bulk TCP flows, and at most the sum of the flows' ceilings. Beside TCP the
//!   minimum rates are enough (RFC 8867, sections 5.6 and 5.7);
//! - **loss** of the adaptive flows' packets;
//! - **variation**: standard deviation over mean of a flow's target, in means over seconds; the greatest of the flows;
//! - **fairness**: Jain's index of the adaptive flows' goodputs in the last phase.
//!
//! Wireless links have RFC 8869's own expectations:
//!
//! - on a medium that both directions share, what fits is what as many TCP flows get there ([`benchmark`]): "the behavior of
//!   multiple concurrent TCP flows will be used as a performance benchmark" (section 3.2.4);
//! - the minimum rates are not enough beside TCP: media get "a fair share of the bottleneck link capacity" (section 3.1.4),
//!   what TCP would get (section 3.2.4), or "maximum possible network utilization" (section 2.1.3: TCP has a bearer of its own
//!   there);
//! - bulk TCP in the same queue counts in the fairness (section 3.1.4). On a shared medium with other traffic the flows of one
//!   direction are compared: "all downlink media flows are expected to obtain similar bandwidth as each other" (section 3.2.4);
//!   between the directions fairness is asked for with media alone (section 3.2.3).

use serde::Serialize;
use weir_lab::results::RunResult;
use weir_lab::scenario::{
    Flow, FlowKind, RtpFlow, Scenario, TcpAlgorithm, TcpFlow, TcpLossDetection, TcpTraffic, Window,
};
use weir_lab::series::{FlowSeries, Series};
use weir_units::{DataSize, TimeDelta};

/// Test cases that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// Its name on the command line, that of the scenarios' folder.
    pub name: &'static str,
    /// Its document.
    pub title: &'static str,
    /// The scenarios.
    pub cases: &'static [&'static str],
}

/// All suites: RFC 8867, sections 5.1 to 5.8, and RFC 8869, sections 2.1, 2.2, 3.1 and 3.2.
pub const SUITES: [Suite; 2] = [
    Suite {
        name: "rfc8867",
        title: "RFC 8867",
        cases: &[
            "5.1-variable-capacity",
            "5.2-variable-capacity-two-flows",
            "5.3-congested-feedback",
            "5.4-competing-flows",
            "5.5-rtt-fairness",
            "5.6-long-tcp",
            "5.7-short-tcp",
            "5.8-pause-resume",
        ],
    },
    Suite {
        name: "rfc8869",
        title: "RFC 8869",
        cases: &["2.1-varying-load", "2.2-bad-coverage", "3.1-wired-bottleneck", "3.2-wifi-bottleneck"],
    },
];

/// Least use, greatest loss and variation of a phase, and least fairness at the end, of a case that is passed.
const LEAST_USE: f64 = 0.85;
const MOST_LOSS: f64 = 0.05;
const MOST_VARIATION: f64 = 0.15;
const LEAST_FAIRNESS: f64 = 0.95;
/// The end of a phase that is judged, and the time before it in which nothing may change.
const JUDGED: TimeDelta = TimeDelta::from_secs(10);
const SETTLING: TimeDelta = TimeDelta::from_secs(5);
/// IPv4 and TCP headers of the benchmark's segments, without options: as long as those of RTP over UDP.
const TCP_HEADERS: u64 = 40;

/// One phase of a run in one direction.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Phase {
    /// The variant of the case, if it has several.
    pub variant: String,
    /// The phase ("40-60s"), with the link if media flows in both directions.
    pub label: String,
    /// Rate carried by the media flows over the rate that fits.
    #[serde(rename = "use")]
    pub used: f64,
    /// The least use that passes: 0.85, and less beside TCP.
    pub least_use: f64,
    /// Loss of the adaptive flows, 0 to 1.
    pub loss: f64,
    /// Greatest variation of a target.
    pub variation: f64,
    /// Jain's index, in the last phase of two or more flows that are compared.
    pub fairness: Option<f64>,
    /// Whether every criterion is met.
    pub passed: bool,
}

impl Phase {
    fn judge(&mut self) {
        self.passed = self.used >= self.least_use
            && self.loss <= MOST_LOSS
            && self.variation <= MOST_VARIATION
            && self.fairness.is_none_or(|f| f >= LEAST_FAIRNESS);
    }
}

/// The judged end of a phase: rows of the series, and the flows that are active in all of it.
struct Span<'a> {
    series: &'a Series,
    from_s: f64,
    to_s: f64,
}

impl Span<'_> {
    fn rows(&self) -> impl Iterator<Item = usize> {
        let inside = |t: f64| t > self.from_s + 1e-9 && t <= self.to_s + 1e-9;
        self.series.time_s.iter().enumerate().filter(move |(_, t)| inside(**t)).map(|(i, _)| i)
    }
    /// Mean of a column; what has no value is left out.
    fn mean(&self, column: &[f64]) -> f64 {
        let values: Vec<f64> = self.rows().filter_map(|i| column.get(i).copied()).filter(|v| v.is_finite()).collect();
        if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
    }
    /// Standard deviation over mean, of means over seconds.
    fn variation(&self, column: &[f64]) -> f64 {
        let seconds = (self.to_s - self.from_s).round() as usize;
        let mut sums = vec![(0.0, 0.0); seconds];
        for i in self.rows() {
            let second = (self.series.time_s[i] - self.from_s - 1e-6).max(0.0) as usize;
            if let Some(sum) = sums.get_mut(second)
                && column[i].is_finite()
            {
                *sum = (sum.0 + column[i], sum.1 + 1.0);
            }
        }
        let means: Vec<f64> = sums.iter().filter(|s| s.1 > 0.0).map(|s| s.0 / s.1).collect();
        let mean = means.iter().sum::<f64>() / means.len().max(1) as f64;
        if mean <= 0.0 {
            return f64::INFINITY;
        }
        let square = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / means.len() as f64;
        square.sqrt() / mean
    }
}

/// The same scenario with a TCP flow in the place of each adaptive flow, if they cross a medium that both directions share:
/// what these flows get there is what fits (RFC 8869, section 3.2.4).
///
/// TCP is RFC 5681's, without a limit to its data. Its packets are as large as the media's, since the medium carries fewer
/// bytes in smaller packets, whatever controls their rate.
pub fn benchmark(scenario: &Scenario) -> Option<Scenario> {
    if !scenario.flows.iter().any(|f| is_adaptive(f) && crosses_shared_medium(scenario, f)) {
        return None;
    }
    Some(with_tcp(scenario, TcpAlgorithm::NewReno))
}

/// The same scenario with a TCP flow of this kind in the place of each adaptive flow.
pub(crate) fn with_tcp(scenario: &Scenario, algorithm: TcpAlgorithm) -> Scenario {
    let mut with_tcp = scenario.clone();
    for flow in &mut with_tcp.flows {
        let FlowKind::Rtp(media) = &flow.kind else { continue };
        if media.adapts {
            flow.kind = FlowKind::Tcp(TcpFlow {
                algorithm,
                ecn: false,
                hystart: false,
                prr: false,
                loss_detection: TcpLossDetection::DupAck,
                traffic: TcpTraffic::Bulk,
                segment: media.payload(),
                delayed_acks: true,
                initial_window: 10,
                max_window: None,
                sack: true,
                timestamps: false,
                handshake: true,
                min_rto: TimeDelta::from_secs(1),
            });
        }
    }
    with_tcp
}

/// Judges a run of a case; `None` without its time series. `benchmark` is the run of [`benchmark`]'s scenario with the same
/// seed; without it what fits is derived from the capacity.
pub fn judge(scenario: &Scenario, run: &RunResult, benchmark: Option<&RunResult>) -> Option<Vec<Phase>> {
    let series = run.series.as_ref()?;
    let benchmark = benchmark.and_then(|b| b.series.as_ref());
    let mut directions: Vec<&[usize]> = Vec::new();
    for flow in scenario.flows.iter().filter(|f| is_adaptive(f)) {
        if !directions.contains(&direction(scenario, flow)) {
            directions.push(direction(scenario, flow));
        }
    }
    let whole = Window { name: "all".into(), from: TimeDelta::ZERO, to: scenario.duration };
    let windows = if scenario.windows.is_empty() { std::slice::from_ref(&whole) } else { &scenario.windows };
    let mut phases = Vec::new();
    for window in windows.iter().filter(|w| w.to - w.from >= JUDGED + SETTLING) {
        for links in &directions {
            let there: Vec<usize> =
                (0..scenario.flows.len()).filter(|&i| direction(scenario, &scenario.flows[i]) == *links).collect();
            // Flows that end just before the phase does shorten it.
            let ends = there.iter().map(|&i| scenario.flows[i].stop).filter(|s| *s > window.to - JUDGED / 2);
            let to = ends.min().map_or(window.to, |s| s.min(window.to));
            let from = to - JUDGED;
            let starts = |i: &usize| scenario.flows[*i].start > from - SETTLING && scenario.flows[*i].start < to;
            if there.iter().any(|i| starts(i) && scenario.flows[*i].start > TimeDelta::ZERO) {
                continue;
            }
            let active: Vec<usize> = there.into_iter().filter(|&i| is_active(&scenario.flows[i], from, to)).collect();
            let span = Span { series, from_s: from.as_secs_f64(), to_s: to.as_secs_f64() };
            let is_last = windows.last() == Some(window);
            let with_tcp = benchmark.map(|series| Span { series, ..span });
            let Some(mut phase) = phase(scenario, run, &span, with_tcp.as_ref(), &active, is_last) else { continue };
            phase.variant = scenario.variant.clone().unwrap_or_default();
            phase.label = match (directions.len(), links.first()) {
                (2.., Some(&link)) => format!("{} {}", window.name, scenario.links[link].name),
                _ => window.name.clone(),
            };
            phase.judge();
            phases.push(phase);
        }
    }
    Some(phases)
}

/// The links whose capacity a flow shares: those of its direction, or the bottleneck alone if both directions cross it.
fn direction<'a>(scenario: &'a Scenario, flow: &'a Flow) -> &'a [usize] {
    let bottleneck = std::slice::from_ref(&scenario.bottleneck);
    if crosses_shared_medium(scenario, flow) { bottleneck } else { &flow.forward }
}

/// Whether both directions of a flow cross the bottleneck.
fn crosses_shared_medium(scenario: &Scenario, flow: &Flow) -> bool {
    flow.forward.contains(&scenario.bottleneck) && flow.reverse.contains(&scenario.bottleneck)
}

fn is_adaptive(flow: &Flow) -> bool {
    flow.rtp().is_some_and(|r| r.adapts)
}

fn is_active(flow: &Flow, from: TimeDelta, to: TimeDelta) -> bool {
    let is_paused = |r: &RtpFlow| r.pauses.iter().any(|p| p.from < to && p.to > from);
    flow.start <= from && flow.stop >= to && !flow.rtp().is_some_and(is_paused)
}

/// A flow's rate with IP and UDP headers over its rate without, over the whole run.
fn with_headers(flow: &Flow, series: &FlowSeries, packets: u64, interval_s: f64) -> f64 {
    let bits: f64 = series.sent_bps.iter().filter(|v| v.is_finite()).sum::<f64>() * interval_s;
    let header = flow.rtp().map_or(0, |r| r.header_overhead.as_bytes());
    if bits > 0.0 { 1.0 + packets as f64 * header as f64 * 8.0 / bits } else { 1.0 }
}

fn phase(
    scenario: &Scenario,
    run: &RunResult,
    span: &Span<'_>,
    with_tcp: Option<&Span<'_>>,
    active: &[usize],
    is_last: bool,
) -> Option<Phase> {
    let series = span.series;
    let adaptive: Vec<usize> = active.iter().copied().filter(|&i| is_adaptive(&scenario.flows[i])).collect();
    let first = *adaptive.first()?;
    let capacity = scenario.flows[first].forward.iter().map(|&l| span.mean(&series.links[l].capacity_bps));
    let mut fits = capacity.filter(|c| *c > 0.0).reduce(f64::min)?;
    let (mut carried, mut ceilings, mut floors) = (0.0, 0.0, 0.0);
    let mut bulk: Vec<usize> = Vec::new();
    let is_tcp = |i: &usize| matches!(scenario.flows[*i].kind, FlowKind::Tcp(_));
    let beside_tcp = active.iter().any(is_tcp);
    for &i in active {
        let (flow, of) = (&scenario.flows[i], &series.flows[i]);
        match &flow.kind {
            FlowKind::Rtp(r) => {
                let scale = with_headers(flow, of, run.flows[i].packets.sent, series.interval_s);
                carried += span.mean(&of.goodput_bps) * scale;
                ceilings += r.ceiling.as_bps_f64() * scale;
                floors += r.floor.as_bps_f64() * scale;
            }
            FlowKind::Tcp(t) if t.traffic == TcpTraffic::Bulk => bulk.push(i),
            FlowKind::Tcp(_) | FlowKind::Udp(_) | FlowKind::Dccp(_) => fits -= span.mean(&of.goodput_bps),
        }
    }
    let calls = adaptive.len() as f64;
    fits = match with_tcp {
        Some(tcp) => adaptive.iter().map(|&i| tcp_rate(scenario, tcp, i)).sum(),
        None => fits * calls / (calls + bulk.len() as f64),
    };
    fits = fits.min(ceilings);
    let is_wireless = scenario.links.iter().any(|l| l.config.radio.is_some());
    let may_fall_to_floors = beside_tcp && !is_wireless;
    let variations = adaptive.iter().map(|&i| span.variation(&series.flows[i].target_bps));
    Some(Phase {
        variant: String::new(),
        label: String::new(),
        used: carried / fits.max(1.0),
        least_use: LEAST_USE * if may_fall_to_floors { (floors / fits.max(1.0)).min(1.0) } else { 1.0 },
        loss: adaptive.iter().map(|&i| span.mean(&series.flows[i].loss)).sum::<f64>() / calls,
        variation: variations.fold(0.0, f64::max),
        fairness: if is_last { fairness(scenario, span, &adaptive, &bulk, is_wireless) } else { None },
        passed: false,
    })
}

/// Rate of an adaptive flow's TCP flow in the benchmark, with headers, in bit/s.
fn tcp_rate(scenario: &Scenario, with_tcp: &Span<'_>, flow: usize) -> f64 {
    let payload = scenario.flows[flow].rtp().map_or(DataSize::ZERO, |r| r.payload()).as_bytes().max(1);
    with_tcp.mean(&with_tcp.series.flows[flow].goodput_bps) * (1.0 + TCP_HEADERS as f64 / payload as f64)
}

/// Jain's index of the flows that are compared, or the least if those of each direction are; `None` for fewer than two.
fn fairness(
    scenario: &Scenario,
    span: &Span<'_>,
    adaptive: &[usize],
    bulk: &[usize],
    is_wireless: bool,
) -> Option<f64> {
    let rate = |&i: &usize| span.mean(&span.series.flows[i].goodput_bps);
    let of = |flows: Vec<usize>| (flows.len() > 1).then(|| jain(&flows.iter().map(rate).collect::<Vec<_>>()));
    if !is_wireless {
        return of(adaptive.to_vec());
    }
    let is_shared = adaptive.iter().any(|&i| crosses_shared_medium(scenario, &scenario.flows[i]));
    if !is_shared {
        return of([adaptive, bulk].concat());
    }
    if scenario.flows.iter().all(is_adaptive) {
        return of(adaptive.to_vec());
    }
    let (down, up): (Vec<usize>, Vec<usize>) = adaptive.iter().partition(|&&i| scenario.flows[i].reversed);
    of(down).into_iter().chain(of(up)).reduce(f64::min)
}

/// Jain's fairness index.
fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|r| r * r).sum();
    if squares > 0.0 { sum * sum / (rates.len() as f64 * squares) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use weir_cc::Registry;
    use weir_lab::run::{RunOptions, run};
    use weir_lab::scenario::ScenarioFile;

    const TEXT: &str = "title = 't'\nduration = '40 s'\n\
        [[windows]]\nname = 'a'\nfrom = '0 s'\nto = '20 s'\n[[windows]]\nname = 'b'\nfrom = '20 s'\nto = '40 s'\n\
        [[windows]]\nname = 'short'\nfrom = '30 s'\nto = '35 s'\n\
        [links.l]\nrate = '1 Mbps'\ndelay = '20 ms'\nqueue = '300 ms'\n\
        [rtp.v]\ncontroller = 'nada'\nceiling = 'CEILING'\nfloor = '100 kbps'\n";

    fn phases(ceiling: &str, more: &str) -> Vec<Phase> {
        let registry = Registry::builtin();
        let text = TEXT.replace("CEILING", ceiling) + more;
        let file = ScenarioFile::parse_with_files("t", &text, Default::default(), &registry).expect("valid");
        let scenario = file.scenarios(None, &registry).expect("valid").remove(0);
        let stop = AtomicBool::new(false);
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        judge(&scenario, &run(&scenario, 1, &options).expect("runs"), None).expect("a series")
    }

    #[test]
    fn a_flow_at_its_ceiling_uses_what_fits() {
        let all = phases("500 kbps", "");
        assert_eq!(all.iter().map(|p| &p.label[..]).collect::<Vec<_>>(), ["a", "b"]);
        for p in &all {
            assert!((p.used - 1.0).abs() < 0.03 && p.loss == 0.0 && p.variation < 0.02 && p.passed, "{p:?}");
        }
        assert_eq!(all[1].fairness, None);
    }

    #[test]
    fn udp_takes_from_what_fits_and_bulk_tcp_shares_it() {
        let udp = "[udp.u]\nrate = '500 kbps'\n";
        let with_udp = phases("800 kbps", udp);
        assert!((0.8..1.05).contains(&with_udp[1].used), "{with_udp:?}");
        // Half of 1 Mbit/s beside one TCP flow.
        let with_tcp = phases("300 kbps", "[tcp.t]\nalgorithm = 'vegas'\n");
        assert!(with_tcp[1].passed && (0.3..1.1).contains(&with_tcp[1].used), "{with_tcp:?}");
        // Its floor is a third of its ceiling.
        assert!((with_tcp[1].least_use - 0.85 / 3.0).abs() < 1e-9, "{with_tcp:?}");
    }

    #[test]
    fn two_flows_have_a_fairness_at_the_end() {
        let all = phases("300 kbps", "[rtp.w]\ncontroller = 'nada'\nceiling = '300 kbps'\nfloor = '100 kbps'\n");
        assert_eq!(all[0].fairness, None);
        // The last window is the short one, so the fairness stands nowhere.
        assert_eq!(all[1].fairness, None);
        assert!((jain(&[1.0, 1.0]) - 1.0).abs() < 1e-12 && (jain(&[1.0, 0.0]) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn flows_of_both_directions_share_a_medium() {
        let both = "[rtp.w]\ncontroller = 'nada'\nceiling = '300 kbps'\nfloor = '100 kbps'\ndirection = 'reverse'\n";
        let text = TEXT.replace("queue = '300 ms'", "queue = '300 ms'\nwifi = { stations = 'each-flow' }");
        let text = text.replace("1 Mbps", "6.5 Mbps").replace("CEILING", "300 kbps") + both;
        let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
        let file = ScenarioFile::parse("t", &text, ".".as_ref(), &registry).expect("valid");
        let scenario = file.scenario(None, None, &registry).expect("resolves");
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        let with_tcp = benchmark(&scenario).expect("a shared medium");
        assert!(with_tcp.flows.iter().all(|f| matches!(&f.kind, FlowKind::Tcp(t) if t.traffic == TcpTraffic::Bulk)));
        let tcp = run(&with_tcp, 1, &options).expect("runs");
        let all = judge(&scenario, &run(&scenario, 1, &options).expect("runs"), Some(&tcp)).expect("phases");
        // One phase a window, not one a direction; both flows have all they can use.
        assert_eq!(all.iter().map(|p| p.label.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(all.iter().all(|p| (0.85..1.05).contains(&p.used) && p.loss < 0.01), "{all:?}");
    }

    #[test]
    fn tcp_in_the_queue_behind_a_radio_counts_in_the_fairness() {
        let text = TEXT.replace("rate = '1 Mbps'", "rate = '6.5 Mbps'\nwifi = {}").replace("CEILING", "300 kbps");
        let (windows, flows) = text.split_once("[[windows]]\nname = 'short'").expect("three windows");
        let (_, flows) = flows.split_once("to = '35 s'\n").expect("its end");
        let text = format!("{windows}{flows}[tcp.t]\nalgorithm = 'newreno'\n");
        let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
        let file = ScenarioFile::parse("t", &text, ".".as_ref(), &registry).expect("valid");
        let scenario = file.scenario(None, None, &registry).expect("resolves");
        assert!(benchmark(&scenario).is_none(), "each direction has a medium of its own");
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        let all = judge(&scenario, &run(&scenario, 1, &options).expect("runs"), None).expect("phases");
        // TCP takes most of the medium, and the minimum rate is not enough.
        assert!(all[1].fairness.is_some_and(|f| f < 0.7), "{all:?}");
        assert!((all[1].least_use - LEAST_USE).abs() < 1e-9, "{all:?}");
    }

    #[test]
    fn each_criterion_fails_alone() {
        let good = Phase {
            variant: String::new(),
            label: String::new(),
            used: 0.85,
            least_use: LEAST_USE,
            loss: 0.05,
            variation: 0.15,
            fairness: Some(0.95),
            passed: false,
        };
        let passes = |change: fn(&mut Phase)| {
            let mut p = good.clone();
            change(&mut p);
            p.judge();
            p.passed
        };
        assert!(passes(|_| {}));
        assert!(!passes(|p| p.used = 0.84));
        assert!(!passes(|p| p.loss = 0.06));
        assert!(!passes(|p| p.variation = 0.16));
        assert!(!passes(|p| p.fairness = Some(0.94)));
    }
}
