//! Whole runs: scenario, sessions, simulator and metrics together.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::run::{Job, RunError, RunOptions, run, run_many};
use weir_lab::scenario::{
    Capacity, Flow, FlowKind, Link, LossPlace, QueueLimit, RtpFlow, Scenario, Source, Topology, Window,
};
use weir_units::{DataRate, DataSize, TimeDelta};

fn scenario(controller: &str, seconds: i64) -> Scenario {
    let registry = Registry::builtin();
    let kbps = DataRate::from_kbps;
    let link = |name: &str, delay| Link {
        name: name.into(),
        capacity: Capacity::Constant(kbps(2_000)),
        delay: TimeDelta::from_millis(delay),
        queue: QueueLimit::Bytes(DataSize::from_bytes(75_000)),
        ecn_threshold: None,
        loss: None,
        loss_place: LossPlace::Egress,
        jitter: None,
        reorder: None,
        duplicate: 0.0,
    };
    let duration = TimeDelta::from_secs(seconds);
    Scenario {
        name: "test".into(),
        title: "one call".into(),
        doc: String::new(),
        variant: None,
        controller: Some(controller.into()),
        duration,
        seed: 1,
        sample_interval: TimeDelta::from_millis(100),
        topology: Topology::PointToPoint,
        links: vec![link("bottleneck", 100), link("bottleneck.reverse", 100)],
        bottleneck: 0,
        flows: vec![Flow {
            name: "call".into(),
            forward: vec![0],
            reverse: vec![1],
            access_delay: TimeDelta::ZERO,
            access_rate: None,
            start: TimeDelta::ZERO,
            stop: duration,
            kind: FlowKind::Rtp(RtpFlow {
                controller: controller.into(),
                params: vec![],
                floor: kbps(150),
                ceiling: kbps(3_000),
                start_rate: kbps(500),
                pauses: vec![],
                source: Source::PerfectPackets,
                payload: DataSize::from_bytes(1_000),
                playout_deadline: None,
                feedback: registry.get(controller).and_then(|s| s.feedback),
                reports: None,
                ecn: false,
            }),
        }],
        windows: vec![Window { name: "all".into(), from: TimeDelta::ZERO, to: duration }],
    }
}

fn options<'a>(registry: &'a Registry, stop: &'a AtomicBool) -> RunOptions<'a> {
    RunOptions { registry, series: true, stop, progress: &|_| {} }
}

#[test]
fn every_controller_uses_the_link_and_loses_little() {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    for spec in registry.specs().iter().filter(|s| s.name != "fixed") {
        let r = run(&scenario(&spec.name, 100), 1, &options(&registry, &stop)).expect("runs");
        let f = &r.flows[0];
        eprintln!(
            "{}: {:?} loss {:.4} owd {:?} windows {:?}",
            spec.name, f.rates, f.loss, f.one_way_delay_ms, f.utilisation
        );
        assert!((0.35..=1.0).contains(&f.utilisation), "{}: {}", spec.name, f.utilisation);
        assert!(f.loss < 0.05, "{}: {}", spec.name, f.loss);
        let delay = f.one_way_delay_ms.expect("packets arrived");
        assert!(delay.min > 101.0 && delay.mean < 300.0, "{}: {delay:?}", spec.name);
        assert!(r.series.expect("asked for").time_s.len() > 990);
    }
}

#[test]
fn runs_are_the_same_at_one_thread_and_at_several() {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let jobs: Vec<Job> = (registry.specs().iter())
        .flat_map(|s| (1..=2).map(|seed| Job { scenario: scenario(&s.name, 20), seed }))
        .collect();
    let hashes = |threads| -> Vec<String> {
        let results = run_many(&jobs, threads, &options(&registry, &stop), &|_| {});
        results.into_iter().map(|r| r.expect("runs").digest()).collect()
    };
    let once = hashes(1);
    assert_eq!(once, hashes(2));
    assert_eq!(once, hashes(3));
}

#[test]
fn a_raised_flag_stops_the_run() {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(true));
    let err = run(&scenario("fixed", 100), 1, &options(&registry, &stop)).expect_err("stopped");
    assert!(matches!(err, RunError::Stopped { .. }), "{err}");
}
