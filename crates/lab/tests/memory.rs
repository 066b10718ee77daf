//! Memory does not grow with simulated time, and ten thousand calls fit into one process.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::run::{BareRun, RunOptions, run};
use weir_lab::scenario::{FlowKind, Scenario, ScenarioFile};
use weir_units::{DataRate, TimeDelta, Timestamp};

fn scenario(controller: &str, seconds: i64, registry: &Registry) -> Scenario {
    let file = ScenarioFile::builtin("rmcat-comparison/random-loss", registry).expect("shipped");
    let mut scenario = file.scenarios(Some(&[controller.to_owned()]), registry).expect("sound").remove(1);
    scenario.duration = TimeDelta::from_secs(seconds);
    scenario.windows.clear();
    for f in &mut scenario.flows {
        f.stop = scenario.duration;
    }
    scenario
}

#[test]
fn six_times_the_time_takes_no_more_memory() {
    let registry = Registry::builtin();
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    for spec in registry.specs() {
        let most = |seconds| {
            let scenario = scenario(&spec.name, seconds, &registry);
            allocation_counter::measure(|| {
                run(&scenario, 1, &options).expect("runs");
            })
            .bytes_max
        };
        let (short, long) = (most(500), most(3_000));
        // A buffer may double once, for the largest burst.
        assert!(long <= short + 131_072, "{}: {short} bytes in 500 s, {long} in 3,000 s", spec.name);
    }
}

#[test]
fn ten_thousand_calls_share_a_bottleneck() {
    let registry = Registry::builtin();
    let mut s = scenario("nada", 1, &registry);
    s.links[s.bottleneck].config.capacity = weir_path::Capacity::Constant(DataRate::from_mbps(2_500));
    let one = s.flows[0].clone();
    s.flows = (0..10_000)
        .map(|i| {
            let mut flow = one.clone();
            flow.name = format!("call-{i}");
            // Spread over a tenth of a second, as real calls are.
            flow.start = TimeDelta::from_micros(10 * i);
            if let FlowKind::Rtp(rtp) = &mut flow.kind {
                rtp.ceiling = DataRate::from_kbps(300);
            }
            flow
        })
        .collect();
    let mut bare = BareRun::new(&s, 1, &registry).expect("makes its agents");
    bare.run_until(Timestamp::ZERO + s.duration).expect("runs");
    let packets: u64 = bare.calls().map(|c| c.stats().send_counters().packets).sum();
    // 150 kbit/s or more in packets of 1,000 bytes is 18.75 packets per second and call.
    assert!((170_000..=400_000).contains(&packets), "{packets}");
}
