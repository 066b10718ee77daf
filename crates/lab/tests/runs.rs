//! Whole runs: scenario, sessions, simulator and metrics together.

use std::sync::atomic::AtomicBool;
use weir_cc::{Registry, Spec};
use weir_lab::run::{Job, RunError, RunOptions, run, run_many};
use weir_lab::scenario::{
    CircuitBreaker, Clocks, Flow, FlowKind, Link, RtpFlow, Scenario, ScenarioFile, Source, Topology, Window,
};
use weir_media::Packetiser;
use weir_path::{Capacity, Limit, LinkConfig, Schedule, Step};
use weir_session::{OutgoingOptions, ReceiverModel};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta};

fn scenario(controller: &str, seconds: i64) -> Scenario {
    let registry = Registry::builtin();
    let kbps = DataRate::from_kbps;
    let link = |name: &str, delay| {
        let mut config = LinkConfig::constant(kbps(2_000), TimeDelta::from_millis(delay));
        config.limit = Limit::Size(DataSize::from_bytes(75_000));
        Link { name: name.into(), config, trace: None, assist: None }
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
        runs: None,
        sample_interval: TimeDelta::from_millis(100),
        topology: Topology::PointToPoint,
        links: vec![link("bottleneck", 100), link("bottleneck.reverse", 100)],
        bottleneck: 0,
        has_named_bottleneck: false,
        flows: vec![Flow {
            name: "call".into(),
            forward: vec![0],
            reverse: vec![1],
            reversed: false,
            dscp: weir_path::Dscp::DF,
            access_delay: TimeDelta::ZERO,
            access_rate: None,
            start: TimeDelta::ZERO,
            stop: duration,
            kind: FlowKind::Rtp(RtpFlow {
                demand: None,
                clocks: Clocks::default(),
                read_ahead: None,
                controller: controller.into(),
                params: vec![],
                floor: kbps(150),
                ceiling: kbps(3_000),
                has_default_ceiling: false,
                start_rate: kbps(500),
                pauses: vec![],
                streams: vec![],
                multipath: None,
                source: Source::PerfectPackets,
                sending: OutgoingOptions {
                    packetiser: Packetiser { max_payload: DataSize::from_bytes(1_000), ..Packetiser::default() },
                    ..OutgoingOptions::default()
                },
                playout_deadline: None,
                adaptive_playout: false,
                feedback: registry.get(controller).and_then(|s| s.feedback),
                receiver: ReceiverModel::default(),
                reports: registry.get(controller).and_then(|s| s.reports),
                rtcp_interval: TimeDelta::from_secs(1),
                circuit_breaker: None,
                resilience: None,
                count_retransmissions: false,
                reported_headers: DataSize::ZERO,
                header_overhead: DataSize::from_bytes(28),
                session_bandwidth: DataRate::from_mbps(3),
                ecn: Ecn::NotEct,
                adapts: registry.get(controller).is_some_and(|s| s.adapts),
                dccp: None,
                forecast: None,
                needs_marker: false,
            }),
        }],
        burstiness: false,
        windows: vec![Window { name: "all".into(), from: TimeDelta::ZERO, to: duration }],
    }
}

fn options<'a>(registry: &'a Registry, stop: &'a AtomicBool) -> RunOptions<'a> {
    RunOptions { registry, series: true, stop, progress: &|_| {} }
}

#[test]
fn every_controller_uses_the_link_and_loses_little() {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    // DP-FEC keeps its initial media rate, and two do so until a base station reports another rate. NDTC measures frames of several
    // packets, which this source does not make.
    let holds = |name: &str| ["dpfec", "tmmbr-a", "tmmbr-b", "ndtc"].contains(&name);
    for spec in registry.specs().filter(|s| s.is_interactive() && s.adapts && !holds(&s.name)) {
        let r = run(&scenario(&spec.name, 100), 1, &options(&registry, &stop)).expect("runs");
        let f = &r.flows[0];
        eprintln!(
            "{}: {:?} loss {:.4} owd {:?} windows {:?}",
            spec.name, f.rates, f.loss, f.one_way_delay_ms, f.utilisation
        );
        assert!(f.utilisation.is_some_and(|u| (0.35..=1.0).contains(&u)), "{}: {:?}", spec.name, f.utilisation);
        assert!(f.loss < 0.05, "{}: {}", spec.name, f.loss);
        let delay = f.one_way_delay_ms.expect("packets arrived");
        // 100 ms of path and 300 ms of queue, which loss-based controllers keep well filled.
        assert!(delay.min > 101.0 && delay.mean < 350.0, "{}: {delay:?}", spec.name);
        assert!(r.series.expect("asked for").time_s.len() > 990);
    }
}

/// Under a circuit breaker, on a link of 2 Mbit/s that falls to a half for the middle third, or at `kbps` throughout.
fn broken(controller: &str, rules: CircuitBreaker, kbps: Option<u64>) -> Option<(f64, String)> {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let mut s = scenario(controller, 150);
    let at = |secs, kbps| Step { at: TimeDelta::from_secs(secs), rate: DataRate::from_kbps(kbps) };
    let steps = vec![at(0, 2_000), at(50, 1_000), at(100, 2_000)];
    s.links[0].config.capacity = match kbps {
        Some(kbps) => Capacity::Constant(DataRate::from_kbps(kbps)),
        None => Capacity::Schedule(Schedule::new(steps, None).expect("in order")),
    };
    if let FlowKind::Rtp(rtp) = &mut s.flows[0].kind {
        rtp.circuit_breaker = Some(rules);
    }
    run(&s, 1, &options(&registry, &stop)).expect("runs").flows[0].tripped.clone()
}

#[test]
fn the_circuit_breaker_stays_quiet_while_a_controller_adapts() {
    // At a quarter, with 1.2 s of queue, NADA oscillates between its bounds and is stopped; at a tenth, with 3 s, TFRC;
    // and by the rules of 2013 C-NADU, whose reports are sent twice per second, so that two of them are soon past.
    let adapts = |s: &&Spec| s.is_interactive() && s.adapts && s.name != "dpfec";
    for spec in Registry::builtin().specs().filter(adapts) {
        let tripped = broken(&spec.name, CircuitBreaker::Rfc8083, None);
        // Vivace's steps down begin with a twentieth, each after four intervals of a round trip that the queue has made long.
        assert_eq!(tripped.is_some(), spec.name == "vivace", "{}: {tripped:?}", spec.name);
    }
}

#[test]
fn circuit_breakers_stop_a_flow_that_does_not_heed_its_link() {
    // 500 kbit/s into 20: nearly all is lost, permanently.
    for rules in [CircuitBreaker::Rfc8083, CircuitBreaker::Thesis2013, CircuitBreaker::Thesis2013Full] {
        let (at, rule) = broken("fixed", rules, Some(20)).unwrap_or_else(|| panic!("{rules:?} must trip"));
        assert!((1.0..60.0).contains(&at), "{rules:?}: {rule} at {at} s");
    }
}

#[test]
fn runs_are_the_same_at_one_thread_and_at_several() {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let jobs: Vec<Job> =
        (registry.specs()).flat_map(|s| (1..=2).map(|seed| Job { scenario: scenario(&s.name, 20), seed })).collect();
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

#[test]
fn transfers_are_reported_for_flows_with_several() {
    let text = r#"
        title = "Web traffic"
        duration = "60 s"
        links.bottleneck = { rate = "50 Mbps", delay = "10 ms", queue = "100 packets" }
        [tcp.short]
        algorithm = "newreno"
        arrivals = 20
        size = { exponential = "100 kB" }
        [tcp.web]
        algorithm = "vegas"
        size = "200 kB"
        idle = "2 s"
        [tcp.live]
        algorithm = "highspeed"
        rate = "5 Mbps"
    "#;
    let registry = Registry::builtin();
    let file = ScenarioFile::parse("test.toml", text, std::path::Path::new("."), &registry).expect("valid");
    let scenario = file.scenarios(None, &registry).expect("valid").remove(0);
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let result = run(&scenario, 1, &options).expect("runs");
    let flow = |name: &str| result.flows.iter().find(|f| f.name == name).expect("there");
    let short = flow("short").transfers.expect("short flows make many");
    // 20 flows a second of 800 kbit on average.
    assert!((1_050..1_350).contains(&short.completed), "{short:?}");
    assert!((14e6..18e6).contains(&short.goodput_bps), "{short:?}");
    assert!((short.goodput_bps / flow("short").rates.goodput_bps - 1.0).abs() < 0.05, "{short:?}");
    let times = short.completion_s.expect("some have completed");
    assert!(times.min >= 0.04 && times.p50 < times.p95 && times.p95 < 2.0, "{short:?}");
    let mean = short.mean_throughput_bps.expect("some have completed");
    assert!((1e6..50e6).contains(&mean) && short.refused == 0, "{short:?}");
    let web = flow("web").transfers.expect("an on-off flow makes many");
    // 1.6 Mbit in well under a second, then 2 s of silence: most of the time there is nothing to send.
    assert!((18..30).contains(&web.completed), "{web:?}");
    let active = web.active_bps.expect("it has sent");
    assert!(active > 4.0 * web.goodput_bps && web.goodput_bps > 0.4e6, "{web:?}");
    assert_eq!(flow("live").transfers, None);
    assert!((4.8e6..5.1e6).contains(&flow("live").rates.goodput_bps), "{:?}", flow("live").rates);
}

#[test]
fn base_stations_keep_a_call_below_its_links_capacity() {
    let registry = Registry::builtin();
    let file = ScenarioFile::open("network-assisted-3g", &registry).unwrap_or_else(|e| panic!("{e}"));
    let stop = AtomicBool::new(false);
    let result = |controller: &str| {
        let scenario = file.scenario(None, Some(controller), &registry).expect("resolves");
        run(&scenario, 1, &options(&registry, &stop)).expect("runs").flows.remove(0)
    };
    let (a, b) = (result("tmmbr-a"), result("tmmbr-b"));
    // 0.9 of the stations' reports, less headers and the steps down.
    let used = a.utilisation_goodput;
    assert!(used.is_some_and(|u| (0.85..=0.95).contains(&u)), "{used:?}");
    assert!(a.loss_or_discard() < 0.002, "{}", a.loss_or_discard());
    // Nothing is reported to the sender: it loses at the steps of its own link.
    assert!((0.01..0.12).contains(&b.loss_or_discard()), "{}", b.loss_or_discard());
}

#[test]
fn frames_and_losses_of_a_call_of_several_streams_are_those_of_its_streams() {
    let text = "\
title = \"streams\"\nduration = \"40 s\"\n[links.link]\nrate = \"4 Mbps\"\ndelay = \"40 ms\"\n[links.link.reverse]\ndelay = \"40 ms\"\n\
        [rtp.call]\ncontroller = \"fixed\"\nstart_rate = \"1 Mbps\"\nplayout_deadline = \"400 ms\"\nstreams = [\n\
        { name = \"audio\", media = \"audio\", least = \"14 kbps\", most = \"48 kbps\" },\n\
        { name = \"camera\", least = \"60 kbps\", most = \"400 kbps\", fps = 30 },\n\
        { name = \"screen\", least = \"60 kbps\", most = \"400 kbps\", fps = 10 },\n]\n";
    let registry = Registry::builtin();
    let stop = AtomicBool::new(false);
    let result = |link: &str| {
        let text = text.replace("[links.link]\n", &format!("[links.link]\n{link}"));
        let file = ScenarioFile::parse("streams.toml", &text, std::path::Path::new("."), &registry)
            .unwrap_or_else(|e| panic!("{e}"));
        let scenario = file.scenario(None, None, &registry).expect("resolves");
        run(&scenario, 1, &options(&registry, &stop)).expect("runs").flows.remove(0)
    };
    let whole = result("");
    let of = |flow: &weir_lab::results::FlowSummary, i: usize| flow.streams[i].frames;
    assert_eq!(of(&whole, 0), None, "speech has slots");
    // 30 and 10 a second, in 39.6 s.
    let (camera, screen) = (of(&whole, 1).expect("video"), of(&whole, 2).expect("video"));
    assert!((1_185..=1_190).contains(&camera.played) && (394..=398).contains(&screen.played), "{camera:?} {screen:?}");
    for frames in [camera, screen, whole.frames.expect("the flow's")] {
        assert_eq!((frames.late, frames.lost, frames.frames, frames.stalls), (0, 0, frames.played, 0), "{frames:?}");
        let delay = frames.delay_ms.expect("complete frames");
        assert!((40.0..=70.0).contains(&delay.mean) && delay.max <= 120.0, "{delay:?}");
    }
    let all = whole.frames.expect("the flow's");
    assert_eq!(all.played, camera.played + screen.played);
    // A copy of each packet hides no loss: a twentieth is lost, and with it more frames, since they have several packets.
    let copied = result("loss = 0.05\nduplicate = 1.0\n");
    for i in 0..3 {
        assert!((0.035..=0.065).contains(&copied.streams[i].loss), "{:?}", copied.streams[i]);
    }
    let frames = copied.frames.expect("the flow's");
    let lost = frames.lost as f64 / frames.frames as f64;
    assert!((0.05..=0.25).contains(&lost) && frames.played + frames.lost + frames.late == frames.frames, "{frames:?}");
    assert!(copied.rates.goodput_bps < 0.97 * copied.rates.sent_bps, "{:?}", copied.rates);
}
