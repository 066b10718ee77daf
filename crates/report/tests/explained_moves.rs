//! Explanations agree with the moves that they explain, over all controllers.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_cc::{Registry, Transport};
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::{Scenario, ScenarioFile};
use weir_report::explain::explain;
use weir_units::TimeDelta;

const REORDERED: &str = r#"
title = "A fifth of the packets held back by 10 ms"
duration = "60 s"

[links.b]
rate = "4 Mbps"
delay = "20 ms"
queue = "300 ms"
reorder = { probability = 0.2, delay = "10 ms" }

[rtp.v]
controller = "$controller"
ceiling = "6 Mbps"
"#;

/// Shipped scenarios with steps, policers, random loss, marks, company and a path that changes.
const SHIPPED: [&str; 6] = [
    "rmcat-comparison/responsiveness",
    "rmcat-comparison/random-loss",
    "queues/token-buckets",
    "queues/call-beside-tcp",
    "l4s/l4s-call",
    "pathologies/longer-path",
];

/// A rate that changes by less is steady.
const STEADY: f64 = 0.03;

fn check(scenario: &Scenario, registry: &Registry) -> usize {
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry, series: true, stop: &stop, progress: &|_| {} };
    let result = run(scenario, scenario.seed, &options).expect("runs");
    let series = result.series.as_ref().expect("a series");
    let bounds = |name: &str| {
        let flow = scenario.flows.iter().find(|f| f.name == name)?.rtp()?;
        Some((flow.floor.as_bps_f64(), flow.ceiling.as_bps_f64()))
    };
    let mut moves = 0;
    for flow in explain(series, 1.0, &bounds) {
        for span in &flow.spans {
            let (from, to) = (span.from_bps, span.to_bps);
            if (to - from).abs() <= STEADY * from {
                continue;
            }
            moves += 1;
            assert!(!span.contradicts_move(), "{}, {}: {span:?}", scenario.name, flow.controller);
        }
    }
    moves
}

#[test]
fn reasons_agree_with_the_direction_of_the_move() {
    let registry = Registry::builtin();
    let shipped = SHIPPED.map(|name| ScenarioFile::open(name, &registry).unwrap_or_else(|e| panic!("{e}")));
    let reordered = ScenarioFile::parse("reordered", REORDERED, Path::new("."), &registry).expect("a scenario");
    let specs = registry.specs().filter(|s| s.adapts && !s.foresees && s.transport == Transport::Udp);
    let (mut moves, mut controllers) = (0, 0);
    for spec in specs {
        controllers += 1;
        for file in shipped.iter().chain([&reordered]) {
            let scenarios = file.scenarios(Some(std::slice::from_ref(&spec.name)), &registry);
            for mut scenario in scenarios.unwrap_or_else(|e| panic!("{e}")).into_iter().take(2) {
                scenario.duration = scenario.duration.min(TimeDelta::from_secs(60));
                for flow in &mut scenario.flows {
                    flow.stop = flow.stop.min(scenario.duration);
                }
                moves += check(&scenario, &registry);
            }
        }
    }
    assert!(controllers >= 20 && (5_000..=200_000).contains(&moves), "{moves} moves of {controllers} controllers");
}
