//! Numbers of one run do not contradict each other: over all controllers, the rows of the scoreboard and generated links.
//!
//! `WEIR_LINKS=200 cargo test --release -p weir-judge --test contradictions` scans more links.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use weir_cc::{Registry, Transport};
use weir_judge::harm::Link;
use weir_judge::rows::{rows, scenario};
use weir_lab::results::{FlowKind, FlowSummary, RunResult};
use weir_lab::run::{RunOptions, Task, run, run_each};
use weir_lab::scenario::{Scenario, ScenarioFile};
use weir_units::TimeDelta;

/// Links of a run of the tests: each kind eight times.
const LINKS: u64 = 48;
/// Sums over rows and rates over a flow's time are rounded.
const ROUNDING: f64 = 1e-6;
/// Packets of the usual size that may be between sender and receiver beyond a second of the rate.
const FEW: f64 = 20.0;

/// One number that another one, or reason, rules out.
fn contradictions(scenario: &Scenario, result: &RunResult, least_delay_ms: f64) -> Vec<String> {
    let mut found = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            found.push(format!("{} under {}: {what}", scenario.name, result.controller));
        }
    };
    for f in &result.flows {
        let (r, p) = (&f.rates, &f.packets);
        let most = |rate: f64| rate * (1.0 + ROUNDING);
        let name = &f.name;
        check(r.received_bps <= most(r.sent_bps), format!("{name} received {} of {} sent", r.received_bps, r.sent_bps));
        check(r.goodput_bps <= most(r.received_bps), format!("{name} goodput {} of {}", r.goodput_bps, r.received_bps));
        check(r.sent_bps <= most(r.wire_bps), format!("{name} sent {} with headers {}", r.sent_bps, r.wire_bps));
        check(r.repair_bps <= most(r.sent_bps), format!("{name} repair {} of {} sent", r.repair_bps, r.sent_bps));
        let known = p.received + p.dropped_queue + p.dropped_aqm + p.dropped_channel;
        check(known <= p.sent, format!("{name} packets {p:?}"));
        // The rest is in queues or on the path at the end.
        let on_the_way = f64::from(u32::try_from(p.sent - known.min(p.sent)).unwrap_or(u32::MAX));
        let second = p.sent as f64 / (f.stop_s - f.start_s).max(1.0);
        let delay_s = f.one_way_delay_ms.map_or(1.0, |d| d.max / 1e3).max(1.0);
        check(on_the_way <= FEW + 5.0 * second * delay_s, format!("{name}: {on_the_way} on the way at the end, {p:?}"));
        let lost = (p.dropped_queue + p.dropped_aqm + p.dropped_channel) as f64 / (p.sent as f64).max(1.0);
        check(
            f.repair.is_some() || (f.loss - lost).abs() <= 1e-3,
            format!("{name} loss {} and {lost} by counts", f.loss),
        );
        check((0.0..=1.0).contains(&f.loss) && (0.0..=1.0).contains(&f.discard), format!("{name} loss {}", f.loss));
        check(p.discarded <= p.received, format!("{name} packets {p:?}"));
        check(
            (0.0..=1.02).contains(&f.utilisation_goodput),
            format!("{name} use by goodput {}", f.utilisation_goodput),
        );
        if let Some(d) = &f.one_way_delay_ms {
            let ordered = d.min <= d.p50 && d.p50 <= d.p95 && d.p95 <= d.p99 && d.p99 <= d.max * 1.01;
            check(ordered && d.min <= d.mean && d.mean <= d.max, format!("{name} delay {d:?}"));
            check(d.min >= least_delay_ms - 0.01, format!("{name} delay {} below the path's {least_delay_ms}", d.min));
            check(f.rtt_ms.is_none_or(|rtt| rtt >= least_delay_ms), format!("{name} round trip {:?}", f.rtt_ms));
        }
        frames(f, &mut check);
        streams(f, &mut check);
        if f.kind == FlowKind::Rtp {
            let flow = scenario.flows.iter().find(|s| s.name == *name).and_then(|s| s.rtp());
            let ceiling = flow.map_or(f64::MAX, |s| s.ceiling.as_bps_f64());
            check(
                r.target_bps.is_none_or(|t| t <= most(ceiling)),
                format!("{name} target {:?} of {ceiling}", r.target_bps),
            );
        }
    }
    let carried: f64 = result.flows.iter().map(|f| f.utilisation_goodput).sum();
    check(result.links.len() > 1 || carried <= 1.02, format!("flows use {carried} of one link"));
    check((0.0..=1.0).contains(&result.fairness.jain_end.unwrap_or(1.0)), "Jain's index".into());
    if let Some(series) = &result.series {
        for (flow, summary) in series.flows.iter().zip(&result.flows) {
            let finite = |v: &[f64]| v.iter().copied().filter(|v| v.is_finite()).collect::<Vec<_>>();
            let sum = finite(&flow.sent_bps).iter().sum::<f64>() * series.interval_s;
            let all = summary.rates.sent_bps * (summary.stop_s.min(result.duration_s) - summary.start_s);
            let row = finite(&flow.sent_bps).into_iter().fold(0.0, f64::max) * series.interval_s;
            // A last row that is cut short is left out.
            let close = (sum - all).abs() <= row + 0.01 * all + 2e4;
            check(close, format!("{}: rows add up to {sum} bit, the flow to {all}", summary.name));
            check(
                finite(&flow.loss).iter().all(|l| (0.0..=1.0).contains(l)),
                format!("{} loss in a row", summary.name),
            );
        }
    }
    found
}

fn frames(f: &FlowSummary, check: &mut impl FnMut(bool, String)) {
    let Some(frames) = &f.frames else { return };
    let name = &f.name;
    check(frames.frames == frames.played + frames.late + frames.lost, format!("{name} {frames:?}"));
    let length = f.stop_s - f.start_s;
    let holds = frames.longest_stall_s <= frames.stalled_s + ROUNDING && frames.stalled_s <= length + 1.0;
    check(holds, format!("{name} stalled {} of {length} s, {}", frames.stalled_s, frames.longest_stall_s));
    if let (Some(frame), Some(packet)) = (frames.delay_ms, f.one_way_delay_ms) {
        // Histograms have classes of a relative width.
        check(frame.min >= packet.min * 0.99 - 0.01, format!("{name} frame {} packet {}", frame.min, packet.min));
    }
}

fn streams(f: &FlowSummary, check: &mut impl FnMut(bool, String)) {
    if f.streams.is_empty() {
        return;
    }
    let (sent, share): (f64, f64) = f.streams.iter().fold((0.0, 0.0), |(a, b), s| (a + s.sent_bps, b + s.share_bps));
    // Streams' packets are counted by the sender, the flow's by the path: repair is in the flow's alone.
    check(sent <= f.rates.sent_bps * 1.01, format!("{} streams sent {sent} of {}", f.name, f.rates.sent_bps));
    check(
        sent >= (f.rates.sent_bps - f.rates.repair_bps) * 0.99,
        format!("{} streams sent {sent}, {:?}", f.name, f.rates),
    );
    let target = f.rates.target_bps.unwrap_or(f64::MAX);
    check(share <= target * 1.01, format!("{} streams share {share} of {target}", f.name));
    let holds = f.streams.iter().all(|s| (0.0..=1.0 + ROUNDING).contains(&s.on) && (0.0..=1.0).contains(&s.loss));
    check(holds, format!("{} {:?}", f.name, f.streams));
}

/// Runs all of them on two threads; returns how many ran and the contradictions.
fn scan(all: &[(Scenario, u64, f64)]) -> (usize, BTreeSet<String>) {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let found = Mutex::new(BTreeSet::new());
    let tasks =
        all.iter().enumerate().map(|(id, (scenario, seed, _))| Task { scenario, seed: *seed, series: true, id });
    let make = |task: &Task<'_>, options: &RunOptions<'_>| {
        let result = run(task.scenario, task.seed, options)?;
        found.lock().expect("no panic").extend(contradictions(task.scenario, &result, all[task.id].2));
        Ok(result)
    };
    let mut ran = 0;
    run_each(tasks, all.len() as u64, 2, &options, &make, &mut |task, result| {
        result.unwrap_or_else(|e| panic!("{}: {e}", task.scenario.label()));
        ran += 1;
    });
    (ran, found.into_inner().expect("no panic"))
}

fn controllers(registry: &Registry) -> Vec<String> {
    let usable = registry.specs().filter(|s| s.adapts && !s.foresees && s.transport == Transport::Udp);
    usable.map(|s| s.name.clone()).collect()
}

#[test]
fn numbers_of_generated_links_agree() {
    let registry = Registry::builtin();
    let count = std::env::var("WEIR_LINKS").map_or(LINKS, |n| n.parse().expect("WEIR_LINKS is a number of links"));
    let links = Link::generate(7, count);
    let mut all = Vec::new();
    for controller in controllers(&registry) {
        for link in &links {
            // A playout, so that frames are counted.
            let text = link
                .scenario(&controller, None)
                .replace("[rtp.judged]\n", "[rtp.judged]\nplayout_deadline = \"250 ms\"\n");
            let file = ScenarioFile::parse(&format!("link-{}", link.number), &text, Path::new("."), &registry);
            let mut scenario = file
                .unwrap_or_else(|e| panic!("{e}"))
                .scenario(None, None, &registry)
                .unwrap_or_else(|e| panic!("{e}"));
            shorten(&mut scenario, 20);
            // As the scenario states it, to a tenth.
            all.push((scenario, link.number, (link.delay_ms * 10.0).round() / 10.0 - 0.05));
        }
    }
    let (ran, found) = scan(&all);
    assert_eq!(ran, all.len());
    assert!(all.len() >= 20 * links.len(), "{} runs", all.len());
    assert!(found.is_empty(), "{} contradictions: {:#?}", found.len(), found.iter().take(30).collect::<Vec<_>>());
}

#[test]
fn numbers_of_the_scoreboards_rows_agree() {
    let registry = Registry::builtin();
    let mut all = Vec::new();
    for controller in controllers(&registry) {
        for row in rows() {
            let Ok(mut scenario) = scenario(&row, &controller, &registry) else { continue };
            shorten(&mut scenario, 20);
            all.push((scenario, 1, 0.0));
        }
    }
    let (ran, found) = scan(&all);
    assert_eq!(ran, all.len());
    assert!(all.len() >= 400, "{} runs", all.len());
    assert!(found.is_empty(), "{} contradictions: {:#?}", found.len(), found.iter().take(30).collect::<Vec<_>>());
}

#[test]
fn numbers_of_calls_with_streams_agree() {
    let registry = Registry::builtin();
    let mut all = Vec::new();
    for name in ["calls/three-calls", "examples/applications", "pathologies/first-picture"] {
        let file = ScenarioFile::open(name, &registry).unwrap_or_else(|e| panic!("{e}"));
        for controller in ["gcc", "nada", "scream2", "sluice", "tfrc"] {
            for mut scenario in
                file.scenarios(Some(&[controller.to_owned()]), &registry).unwrap_or_else(|e| panic!("{e}"))
            {
                shorten(&mut scenario, 30);
                all.push((scenario, 3, 0.0));
            }
        }
    }
    let (ran, found) = scan(&all);
    assert_eq!(ran, all.len());
    assert!(found.is_empty(), "{} contradictions: {:#?}", found.len(), found.iter().take(30).collect::<Vec<_>>());
}

fn shorten(scenario: &mut Scenario, seconds: i64) {
    scenario.duration = scenario.duration.min(TimeDelta::from_secs(seconds));
    for flow in &mut scenario.flows {
        flow.stop = flow.stop.min(scenario.duration);
    }
}
