use super::*;
use std::path::Path;
use weir_cc::Registry;
use weir_path::{Capacity, Limit, Loss};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

mod ends;
mod errors;
mod links;
mod networks;
mod repair;
mod shipped;

const SMALL: &str = r#"
title = "Small"
duration = "10 s"
compare = ["fixed"]
[links.bottleneck]
rate = "2 Mbps"
delay = "50 ms"
[rtp.video]
controller = "$controller"
"#;

fn parse(text: &str) -> Result<ScenarioFile, InputError> {
    ScenarioFile::parse("test.toml", text, Path::new("."), &Registry::builtin())
}

fn only(text: &str) -> Scenario {
    let file = parse(text).unwrap_or_else(|e| panic!("{e}"));
    let all = file.scenarios(None, &Registry::builtin()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(all.len(), 1);
    all.into_iter().next().expect("one")
}

#[test]
fn a_file_of_the_first_format_may_say_so() {
    assert_eq!(only(&format!("format = 1\n{SMALL}")), only(SMALL));
}

#[test]
fn parameters_behind_a_name_are_those_of_the_file_and_name_the_results() {
    let registry = Registry::builtin();
    let given = ["gcc:beta=0.7:loss_v2=1".to_owned(), "gcc".to_owned()];
    let scenarios = parse(SMALL).expect("a file").scenarios(Some(&given), &registry).expect("both");
    let written = only(
        &SMALL
            .replace("\"fixed\"", "\"gcc\"")
            .replace("[links.bottleneck]", "controllers.gcc.params = { beta = 0.7, loss_v2 = 1 }\n[links.bottleneck]"),
    );
    let rtp = |s: &Scenario| s.flows[0].rtp().expect("rtp").clone();
    assert_eq!(rtp(&scenarios[0]), rtp(&written));
    assert_ne!(rtp(&scenarios[0]), rtp(&scenarios[1]));
    let names: Vec<&str> = scenarios.iter().map(|s| s.controller_of(s.flows[0].rtp().expect("rtp"))).collect();
    assert_eq!(names, given);
    assert_eq!(scenarios[0].label(), "test.toml gcc:beta=0.7:loss_v2=1");
}

#[test]
fn fills_in_defaults() {
    let s = only(SMALL);
    assert_eq!((s.duration, s.seed, s.sample_interval), (TimeDelta::from_secs(10), 1, TimeDelta::from_millis(100)));
    assert_eq!(s.controller.as_deref(), Some("fixed"));
    assert_eq!(s.links.len(), 2);
    assert_eq!(s.links[0].config.capacity, Capacity::Constant(DataRate::from_mbps(2)));
    assert_eq!(s.links[0].config.limit, Limit::Time(TimeDelta::from_millis(300)));
    assert_eq!((s.links[1].name.as_str(), &s.links[1].config.capacity), ("bottleneck.reverse", &Capacity::Unlimited));
    assert_eq!(s.links[1].config.delay, TimeDelta::from_millis(50));
    let f = &s.flows[0];
    assert_eq!((f.forward.as_slice(), f.reverse.as_slice()), ([0].as_slice(), [1].as_slice()));
    assert_eq!((f.start, f.stop), (TimeDelta::ZERO, s.duration));
    let rtp = f.rtp().expect("rtp");
    assert_eq!((rtp.floor, rtp.ceiling), (DataRate::from_kbps(150), DataRate::from_kbps(1_500)));
    assert_eq!((rtp.start_rate, rtp.payload()), (DataRate::from_kbps(150), DataSize::from_bytes(1_000)));
    assert_eq!((&rtp.source, rtp.feedback), (&Source::PerfectPackets, None));
}

#[test]
fn flow_settings_go_over_the_controllers() {
    let text = SMALL.replace("$controller", "nada")
        + r#"
        ceiling = "1 Mbps"
        params = { xref = "20 ms" }
        feedback.interval = "50 ms"
        [controllers.nada]
        floor = "200 kbps"
        ceiling = "3 Mbps"
        start_rate = "300 kbps"
        params = { xref = 15, kappa = 1, merge_losses = false }
    "#;
    let s = only(&text);
    let rtp = s.flows[0].rtp().expect("rtp");
    assert_eq!((rtp.floor, rtp.ceiling), (DataRate::from_kbps(200), DataRate::from_mbps(1)));
    assert_eq!(rtp.start_rate, DataRate::from_kbps(300));
    let expected = [("kappa", 1.0), ("merge_losses", 0.0), ("xref", 20.0)].map(|(n, v)| (n.to_owned(), v));
    let mut params = rtp.params.clone();
    params.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(params, expected);
    let plan = rtp.feedback.expect("nada takes feedback");
    assert_eq!((plan.min_interval, plan.max_interval), (TimeDelta::from_millis(50), TimeDelta::from_millis(50)));
}

#[test]
fn flows_keep_the_order_of_the_file_and_spread() {
    let text = SMALL.to_owned()
        + r#"
        [tcp.web]
        algorithm = "cubic"
        count = 3
        start = "1 s"
        stagger = "500 ms"
        size = { uniform = ["100 kB", "1.5 MB"] }
        idle = { exponential = "2 s" }
        [rtp.audio]
        controller = "fixed"
        direction = "reverse"
        [udp.cross]
        rate = { steps = [{ at = "0 s", rate = "1 Mbps" }, { at = "5 s", rate = "0 bps" }] }
        on = "1 s"
        off = { pareto = { mean = "2 s", shape = 1.5 } }
    "#;
    let s = only(&text);
    let names: Vec<_> = s.flows.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["video", "web-1", "web-2", "web-3", "audio", "cross"]);
    assert_eq!(s.flows[3].start, TimeDelta::from_secs(2));
    assert_eq!(s.flows[4].forward, [1]);
    let FlowKind::Tcp(web) = &s.flows[1].kind else { panic!("not TCP") };
    assert_eq!(
        web.traffic,
        TcpTraffic::OnOff {
            size: Distribution::Uniform { min: 100e3, max: 1.5e6 },
            idle: Distribution::Exponential { mean: 2.0 },
            starts_on: true,
            persistent: false,
        }
    );
}

#[test]
fn tcp_takes_ns2s_settings_and_every_kind_of_traffic() {
    let text = SMALL.to_owned()
        + r#"
        [tcp.short]
        algorithm = "highspeed"
        arrivals = 347.2
        size = { pareto = { mean = "260.64 kB", shape = 1.5 } }
        initial_window = 2
        max_window = 20
        sack = false
        timestamps = false
        handshake = false
        delayed_acks = false
        segment = "1460 B"
        min_rto = "200 ms"
        [tcp.live]
        algorithm = "scalable"
        rate = "30 Mbps"
        [tcp.web]
        algorithm = "vegas"
        size = "1 MB"
        idle = "1 s"
        persistent = true
        loss_detection = "rack"
    "#;
    let s = only(&text);
    let tcp = |k: usize| match &s.flows[k].kind {
        FlowKind::Tcp(t) => t.clone(),
        other => panic!("{other:?}"),
    };
    let pareto = Distribution::Pareto { mean: 260_640.0, shape: 1.5 };
    let short = TcpFlow {
        algorithm: TcpAlgorithm::HighSpeed,
        ecn: false,
        hystart: false,
        prr: false,
        loss_detection: TcpLossDetection::DupAck,
        traffic: TcpTraffic::Short { arrivals: 347.2, size: pareto },
        segment: DataSize::from_bytes(1_460),
        delayed_acks: false,
        initial_window: 2,
        max_window: Some(20),
        sack: false,
        timestamps: false,
        handshake: false,
        min_rto: TimeDelta::from_millis(200),
    };
    assert_eq!(tcp(1), short);
    assert_eq!(tcp(2).traffic, TcpTraffic::Stream { rate: DataRate::from_mbps(30) });
    assert_eq!((tcp(2).initial_window, tcp(2).max_window, tcp(2).sack), (10, None, true));
    assert!(matches!(tcp(3).traffic, TcpTraffic::OnOff { starts_on: true, persistent: true, .. }));
    assert_eq!([tcp(2), tcp(3)].map(|t| t.loss_detection), [TcpLossDetection::DupAck, TcpLossDetection::Rack]);
}

#[test]
fn variants_and_matrix_make_every_combination() {
    let text = SMALL.to_owned()
        + r#"
        [[variants]]
        name = "short"
        links.bottleneck.delay = "10 ms"
        [[variants]]
        name = "tcp"
        links.bottleneck.rate = { steps = [{ at = "0 s", rate = "1 Mbps" }] }
        tcp.bulk.algorithm = "newreno"
        [[matrix]]
        set = "links.bottleneck.loss"
        values = [0, 0.05]
        names = ["0%", "5%"]
        [[matrix]]
        set = "duration"
        values = ["5 s", "6 s"]
    "#;
    let file = parse(&text).unwrap_or_else(|e| panic!("{e}"));
    let registry = Registry::builtin();
    let names: Vec<_> = file.variants().into_iter().flatten().collect();
    assert_eq!(names.len(), 8);
    assert_eq!(&names[..3], ["short, 0%, 5 s", "short, 0%, 6 s", "short, 5%, 5 s"]);
    let s = file.scenario(Some("tcp, 5%, 6 s"), Some("nada"), &registry).expect("exists");
    assert_eq!(s.links[0].config.loss, Loss::Independent { share: 0.05 });
    assert!(matches!(s.links[0].config.capacity, Capacity::Schedule(_)));
    assert_eq!((s.duration, s.flows.len()), (TimeDelta::from_secs(6), 2));
    assert_eq!(s.label(), "test.toml [tcp, 5%, 6 s] nada");
    assert!(file.scenario(Some("tcp"), Some("nada"), &registry).is_err());
    assert!(file.scenario(Some("tcp, 5%, 6 s"), Some("naba"), &registry).is_err());
}

/// Adds lines to the small scenario, or changes a part of it; then the parts that the error must contain.

#[test]
fn files_that_the_caller_gives_are_taken_by_name_and_nothing_else_is() {
    let text =
        SMALL.replace("\"2 Mbps\"", "{ trace = \"a.csv\" }") + "source = { model = \"trace\", file = \"frames\" }";
    let registry = Registry::builtin();
    let given = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect();
        ScenarioFile::parse_with_files("small", &text, files, &registry)
    };
    let trace = ("a.csv", "time_s,rate_bps\n0,1000000\n1,500000\n");
    let file = given(&[trace, ("frames", "1000\n2000\n")]).unwrap_or_else(|e| panic!("{e}"));
    let s = file.scenario(None, Some("fixed"), &registry).expect("resolves");
    assert_eq!(s.links[0].trace.as_deref(), Some("a.csv"));
    assert_eq!(s.links[0].config.capacity.rate_at(Timestamp::from_millis(1_500)), DataRate::from_bps(500_000));
    let e = given(&[trace, ("frame", "1000\n")]).expect_err("another name");
    assert!(e.to_string().contains("no file `frames` was given") && e.help_text().is_some(), "{e}");
    let e = given(&[trace, ("frames", "none\n")]).expect_err("no size");
    assert_eq!((e.file(), e.position()), ("frames", Some((1, 1))));
}

#[test]
fn a_controllers_dccp_settings_hold_where_a_flow_has_none() {
    let text = |flow: &str, controller: &str, name: &str| {
        SMALL.replace("compare = [\"fixed\"]", &format!("compare = [\"{name}\"]"))
            + flow
            + &format!("\n[controllers.{controller}.dccp]\nqueue = 7\nparams = {{ linux = true }}\n")
    };
    let dccp = |text: &str| only(text).flows[0].rtp().and_then(|r| r.dccp.clone()).expect("dccp");
    let shared = dccp(&text("", "ccid3", "ccid3"));
    assert_eq!((shared.queue.capacity, shared.params), (7, vec![("linux".into(), 1.0)]));
    let own = dccp(&text("dccp = { queue = 9 }", "ccid3", "ccid3"));
    assert_eq!((own.queue.capacity, own.params), (9, vec![]));
    // Another controller's settings are not used, and CCID 2 has no such parameter.
    assert_eq!(dccp(&text("", "ccid3", "ccid2")).params, vec![]);
    let fails = |text: &str| {
        let scenarios = parse(text).and_then(|file| file.scenarios(None, &Registry::builtin()));
        scenarios.expect_err("invalid").to_string()
    };
    let error = fails(&text("", "ccid2", "ccid2"));
    assert!(error.contains("CCID 2 has no parameter `linux`"), "{error}");
    let error = fails(&text("", "fixed", "fixed"));
    assert!(error.contains("the controller `fixed` runs over UDP"), "{error}");
}

#[test]
fn a_frame_needs_its_first_packet_or_also_its_last() {
    let needs = |flow: &str| only(&(SMALL.to_owned() + flow)).flows[0].rtp().expect("rtp").needs_marker;
    assert!(!needs("") && !needs("decodes_with = \"first\""));
    assert!(needs("decodes_with = \"first-and-last\""));
}
