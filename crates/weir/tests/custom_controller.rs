//! The example of a custom controller works as documented.

#[path = "../../../examples/custom_controller.rs"]
#[expect(dead_code, reason = "the example's own main is not called here")]
mod example;

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::ScenarioFile;

const SCENARIO: &str = r#"
title = "The example's controller on a small link"
duration = "20 s"
compare = ["delay-steps"]
links.bottleneck = { rate = "1 Mbps", delay = "20 ms" }
rtp.video = { controller = "$controller", start_rate = "200 kbps", ceiling = "3 Mbps" }
controllers.delay-steps.params = { bound = "40 ms", step = "10 kbps" }
"#;

#[test]
fn a_controller_from_outside_runs_in_a_scenario() {
    let mut registry = Registry::builtin();
    assert!(ScenarioFile::parse("own", SCENARIO, ".".as_ref(), &registry).is_err(), "known before it is registered");
    registry.add::<example::DelaySteps>();
    let file = ScenarioFile::parse("own", SCENARIO, ".".as_ref(), &registry).expect("reads");
    let scenario = file.scenario(None, Some("delay-steps"), &registry).expect("resolves");
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let result = run(&scenario, 1, &options).expect("runs");
    let flow = &result.flows[0];
    assert!((600e3..1e6).contains(&flow.tail_goodput_bps), "{}", flow.tail_goodput_bps);
    assert!(flow.one_way_delay_ms.is_some_and(|d| (20.0..200.0).contains(&d.p95)), "{:?}", flow.one_way_delay_ms);
    let series = result.series.expect("asked for");
    let internals: Vec<&str> = series.flows[0].internals.iter().map(|i| &*i.0).collect();
    assert_eq!(internals, ["base_ms"]);
}
