use super::*;
use proptest::prelude::*;
use std::path::Path;
use weir_cc::Registry;
use weir_path::queue::{Value, codel};
use weir_path::{Capacity, Discipline, Jitter, JitterShape, Limit, Loss, LossPosition, Reordering};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

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
    assert_eq!((rtp.start_rate, rtp.payload), (DataRate::from_kbps(150), DataSize::from_bytes(1_000)));
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
    "#;
    let s = only(&text);
    let tcp = |k: usize| match &s.flows[k].kind {
        FlowKind::Tcp(t) => t.clone(),
        other => panic!("{other:?}"),
    };
    let pareto = Distribution::Pareto { mean: 260_640.0, shape: 1.5 };
    let short = TcpFlow {
        algorithm: TcpAlgorithm::HighSpeed,
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
}

#[test]
fn every_field_of_a_link_reaches_the_path_model() {
    let text = SMALL.replace(
        "rate = \"2 Mbps\"",
        r#"
        rate = { steps = [{ at = "0 s", rate = "2 Mbps" }, { at = "20 ms", rate = "1 Mbps" }], repeat = "40 ms" }
        queue = "75 kB"
        ecn_threshold = "5 ms"
        loss = { good_to_bad = 0.1, bad_to_good = 0.2 }
        loss_place = "ingress"
        jitter = { max = "30 ms", sigma = "5 ms" }
        reorder = { probability = 0.1, delay = "7 ms" }
        duplicate = 0.2
        reverse = { rate = "1 Mbps", loss = 0.01, jitter = { max = "4 ms", reordering = true }, queue = "9 packets" }
        "#,
    );
    let s = only(&text);
    let ms = TimeDelta::from_millis;
    let [there, back] = [0, 1].map(|i| s.links[i].config.clone());
    assert_eq!(there.capacity.rate_at(Timestamp::from_millis(61)), DataRate::from_mbps(1));
    assert_eq!(there.limit, Limit::Size(DataSize::from_bytes(75_000)));
    assert_eq!(there.discipline.get("ecn_threshold"), Some(Value::Amount(Limit::Time(ms(5)))));
    assert!(matches!(there.loss, Loss::GilbertElliott(g) if (g.to_bad, g.to_good, g.loss_bad) == (0.1, 0.2, 1.0)));
    assert_eq!((there.loss_position, there.duplication), (LossPosition::Entry, 0.2));
    let shape = JitterShape::Normal { deviation: ms(5), bound: 3.0 };
    assert_eq!(there.jitter, Some(Jitter { shape, may_reorder: false }));
    assert_eq!(there.reordering, Some(Reordering { share: 0.1, extra: ms(7) }));
    assert_eq!((back.capacity, back.delay), (Capacity::Constant(DataRate::from_mbps(1)), ms(50)));
    assert_eq!((back.limit, back.discipline), (Limit::Packets(9), Discipline::default()));
    assert_eq!((back.loss, back.loss_position), (Loss::Independent { share: 0.01 }, LossPosition::Exit));
    assert_eq!(back.jitter, Some(Jitter { shape: JitterShape::Uniform { max: ms(4) }, may_reorder: true }));
    assert_eq!((back.reordering, back.duplication), (None, 0.0));
}

#[test]
fn a_queue_names_its_discipline_and_sets_its_parameters() {
    let queue = |queue: &str| {
        let s = only(&SMALL.replace("delay = ", &format!("queue = {queue}\ndelay = ")));
        (s.links[0].config.limit, s.links[0].config.discipline)
    };
    let ms = TimeDelta::from_millis;
    let default = (Limit::Time(ms(300)), Discipline::default());
    assert_eq!(queue("{ }"), default);
    assert_eq!(queue("\"300 ms\""), default);
    let codel =
        |target, interval, ecn| Discipline::CoDel(codel::Config { target: ms(target), interval: ms(interval), ecn });
    assert_eq!(queue("{ discipline = \"codel\" }"), (Limit::Time(ms(300)), codel(5, 100, true)));
    assert_eq!(
        queue("{ target = \"20 ms\", discipline = \"codel\", limit = \"60 kB\", ecn = false, interval = \"400 ms\" }"),
        (Limit::Size(DataSize::from_bytes(60_000)), codel(20, 400, false))
    );
    // Every discipline that there is, with each parameter written as its default reads.
    for d in Discipline::all() {
        let fields: Vec<String> = (d.parameters().iter())
            .filter(|p| p.default != Value::Amount(Limit::Unlimited))
            .map(|p| match p.default {
                Value::Time(_) | Value::Amount(_) => format!(", {} = \"{}\"", p.name, p.default),
                Value::Number(_) | Value::Switch(_) => format!(", {} = {}", p.name, p.default),
            })
            .collect();
        assert_eq!(queue(&format!("{{ discipline = \"{}\"{} }}", d.name(), fields.concat())).1, d);
    }
}

#[test]
fn a_parking_lot_has_paths_in_both_directions() {
    let text = r#"
        title = "Three hops"
        duration = "10 s"
        topology = "parking-lot"
        bottleneck = "c"
        links.a = { rate = "2 Mbps", delay = "10 ms" }
        links.b = { rate = "8 Mbps", delay = "10 ms" }
        links.c = { rate = "1.5 Mbps", delay = "10 ms", reverse = { rate = "1 Mbps", delay = "40 ms" } }
        rtp.long = { controller = "fixed" }
        rtp.short = { controller = "fixed", path = ["b", "c"], direction = "reverse" }
    "#;
    let s = only(text);
    assert_eq!(s.bottleneck, 4);
    assert_eq!((&s.flows[0].forward[..], &s.flows[0].reverse[..]), ([0, 2, 4].as_slice(), [5, 3, 1].as_slice()));
    assert_eq!((&s.flows[1].forward[..], &s.flows[1].reverse[..]), ([5, 3].as_slice(), [2, 4].as_slice()));
    assert_eq!(s.links[5].config.delay, TimeDelta::from_millis(40));
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

/// Adds lines to the small scenario, or changes a part of it; then the parts that the error must have.
#[test]
fn says_where_what_and_how() {
    let add = |lines: &str| format!("{SMALL}{lines}\n");
    let tcp = |fields: &str| add(&format!("[tcp.x]\nalgorithm = \"vegas\"\n{fields}"));
    let change = |from: &str, to: &str| {
        assert!(SMALL.contains(from), "{from}");
        SMALL.replace(from, to)
    };
    let nada = |lines: &str| SMALL.replace("$controller", "nada") + lines;
    let cases: Vec<(String, &[&str])> = vec![
        ("".into(), &["missing field `title`"]),
        ("title = 3".into(), &["test.toml:1:9", "title", "invalid type: integer"]),
        ("title = \"x".into(), &["test.toml:1:"]),
        ("\u{feff}\0".into(), &["test.toml"]),
        (change("duration = \"10 s\"\n", ""), &["missing field `duration`"]),
        (change("10 s", "10 sec"), &["test.toml:3:12", "duration", "expected a time", "did you mean \"10 s\"?"]),
        (change("\"10 s\"", "10"), &["duration", "invalid type: integer `10`", "a time with its unit"]),
        (change("10 s", "0 s"), &["duration", "above zero"]),
        (
            change("10 s", "6000 min") + "[rtp.v]\ncontroller = \"fixed\"\nrates = 1",
            &["rtp.v.rates", "unknown field `rates`"],
        ),
        (
            change("rate = ", "rat = "),
            &["links.bottleneck.rat", "test.toml:6:1", "unknown field `rat`", "did you mean `rate`?"],
        ),
        (change("rate = \"2 Mbps\"\n", ""), &["links.bottleneck", "missing field `rate`"]),
        (change("2 Mbps", "2 Mbs"), &["links.bottleneck.rate", "expected a rate", "did you mean \"2 Mbps\"?"]),
        (change("2 Mbps", "0 Mbps"), &["links.bottleneck.rate", "above zero"]),
        (change("\"2 Mbps\"", "2"), &["links.bottleneck.rate", "unlimited", "found 2"]),
        (change("\"2 Mbps\"", "{ stpes = [] }"), &["did you mean `steps`?"]),
        (change("\"2 Mbps\"", "{ steps = [] }"), &["at least one step"]),
        (
            change("\"2 Mbps\"", "{ pattern = \"good-grand\" }"),
            &["no pattern is named \"grand\"", "excellent, good, fair"],
        ),
        (
            change("\"2 Mbps\"", "{ pattern = \"poor\", repeat = \"9 s\" }"),
            &["a pattern has neither `format` nor `repeat`"],
        ),
        (
            change("\"2 Mbps\"", "\"unlimited\"\nassist = { tells = \"sender\" }"),
            &["links.bottleneck.assist", "no capacity that could be told"],
        ),
        (
            change("\"2 Mbps\"", "\"2 Mbps\"\nassist = { tells = \"both\", interval = \"0 s\" }"),
            &["assist.interval", "above zero"],
        ),
        (change("\"2 Mbps\"", "{ }"), &["exactly one of `steps`, `trace` and `pattern`"]),
        (change("\"2 Mbps\"", "{ steps = [{ at = \"1 s\", rate = \"1 Mbps\" }] }"), &["first step must be at \"0 s\""]),
        (
            change(
                "\"2 Mbps\"",
                "{ steps = [{ at = \"0 s\", rate = \"1 Mbps\" }, { at = \"0 s\", rate = \"1 Mbps\" }] }",
            ),
            &["links.bottleneck.rate.steps[1]", "later than the one before"],
        ),
        (
            change("\"2 Mbps\"", "{ steps = [{ at = \"0 s\", rate = \"1 Mbps\" }], repeat = \"0 s\" }"),
            &["after the last step"],
        ),
        (
            change("\"2 Mbps\"", "{ steps = [{ at = \"0 s\", rate = \"0 bps\" }] }"),
            &["at least one step must have a rate above zero"],
        ),
        (
            change("\"2 Mbps\"", "{ trace = \"nowhere.csv\" }"),
            &["links.bottleneck.rate.trace", "nowhere.csv: there is no such file"],
        ),
        (
            change("\"2 Mbps\"", "{ trace = \"a.txt\", format = \"cvs\" }"),
            &["unknown value `cvs`", "did you mean `csv`?"],
        ),
        (change("50 ms", "-50 ms"), &["links.bottleneck.delay", "expected a time"]),
        (change("[links.bottleneck]", "[links.\"bottle neck\"]"), &["cannot be a name", "letters, digits"]),
        (change("[links.bottleneck]", "[link.bottleneck]"), &["unknown field `link`", "did you mean `links`?"]),
        (
            add("[links.other]\nrate = \"1 Mbps\"\ndelay = \"1 ms\""),
            &["links.other", "only a parking lot", "topology = \"parking-lot\""],
        ),
        (
            change("delay = ", "loss = 1.5\ndelay = "),
            &["links.bottleneck.loss", "probability between 0 and 1, found 1.5"],
        ),
        (change("delay = ", "loss = \"5%\"\ndelay = "), &["links.bottleneck.loss", "a probability such as 0.01"]),
        (change("delay = ", "loss = nan\ndelay = "), &["links.bottleneck.loss", "between 0 and 1"]),
        (change("delay = ", "loss = { good_to_bad = 0.1 }\ndelay = "), &["missing field `bad_to_good`"]),
        (change("delay = ", "loss_place = \"egres\"\ndelay = "), &["unknown value `egres`", "did you mean `egress`?"]),
        (change("delay = ", "queue = \"0 B\"\ndelay = "), &["links.bottleneck.queue", "above zero"]),
        (change("delay = ", "queue = 75000\ndelay = "), &["links.bottleneck.queue", "\"50 packets\"", "`discipline`"]),
        (
            change("delay = ", "queue = { discipline = \"coddle\" }\ndelay = "),
            &[
                "links.bottleneck.queue.discipline",
                "test.toml:7:24",
                "no queue discipline is named",
                "did you mean `codel`?",
            ],
        ),
        (
            change("delay = ", "queue = { discipline = 5 }\ndelay = "),
            &["links.bottleneck.queue.discipline", "the name of a discipline in quotes", "drop-tail, codel"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", tarket = \"5 ms\" }\ndelay = "),
            &["links.bottleneck.queue.tarket", "`codel` has no parameter `tarket`", "did you mean `target`?"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", target = \"0 ms\" }\ndelay = "),
            &["links.bottleneck.queue.target", "between 0.001 ms and 10000 ms, found 0 ms", "RFC 8289, section 4.3"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", target = 5 }\ndelay = "),
            &["links.bottleneck.queue.target", "expected a time with its unit"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", ecn = 2 }\ndelay = "),
            &["links.bottleneck.queue.ecn", "expected true or false"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", ecn = \"yes\" }\ndelay = "),
            &["links.bottleneck.queue.ecn", "expected true or false"],
        ),
        (
            change("delay = ", "queue = { discipline = \"codel\", limit = \"0 B\" }\ndelay = "),
            &["links.bottleneck.queue.limit", "above zero"],
        ),
        (change("delay = ", "queue = { target = \"5 ms\" }\ndelay = "), &["`drop-tail` has no parameter `target`"]),
        (
            change("delay = ", "queue = { discipline = \"codel\" }\necn_threshold = \"9 ms\"\ndelay = "),
            &["links.bottleneck.ecn_threshold", "`codel` has no threshold", "leave `ecn_threshold` out"],
        ),
        (
            change("\"2 Mbps\"", "\"unlimited\"\nqueue = { discipline = \"codel\" }"),
            &["links.bottleneck.queue.discipline", "no queue for a discipline", "give the link a `rate`"],
        ),
        (
            change("\"2 Mbps\"", "\"unlimited\"\necn_threshold = \"9 ms\""),
            &["links.bottleneck.ecn_threshold", "no queue that could be marked"],
        ),
        (
            change("delay = ", "reverse = { reverse = { } }\ndelay = "),
            &["links.bottleneck.reverse.reverse", "unknown field `reverse`"],
        ),
        (
            change("delay = ", "reverse = { los = 0.1 }\ndelay = "),
            &["links.bottleneck.reverse.los", "did you mean `loss`?"],
        ),
        (
            change("delay = ", "jitter = { max = \"10 ms\", sigma = \"0 ms\" }\ndelay = "),
            &["links.bottleneck.jitter", "sigma"],
        ),
        (
            change("$controller", "naba"),
            &["rtp.video.controller", "test.toml:9:14", "no controller is named `naba`", "did you mean `nada`?"],
        ),
        (change("$controller", "$controler"), &["did you mean `$controller`?"]),
        (change("[\"fixed\"]", "[\"fixd\"]"), &["compare[0]", "did you mean `fixed`?"]),
        (change("[\"fixed\"]", "[]"), &["compare", "nothing to compare"]),
        (
            nada("params = { xreff = 3 }"),
            &["rtp.video.params.xreff", "controller `nada` has no parameter `xreff`", "did you mean `xref`?"],
        ),
        (
            nada("params = { xref = -3 }"),
            &["rtp.video.params.xref", "between 0.1 and 1000 (unit: ms), found -3", "XREF"],
        ),
        (nada("params = { xref = \"3 Mbps\" }"), &["rtp.video.params.xref", "expected a time"]),
        (nada("params = { kappa = \"3 ms\" }"), &["rtp.video.params.kappa", "a plain number"]),
        (nada("params = { kappa = nan }"), &["rtp.video.params.kappa", "between 0.001 and 10"]),
        (nada("params = { kappa = {} }"), &["rtp.video.params.kappa", "between 0.001 and 10"]),
        (add("[controllers.nadda]"), &["controllers.nadda", "did you mean `nada`?"]),
        (add("floor = \"2 Mbps\""), &["rtp.video.floor", "no higher than the ceiling"]),
        (add("floor = \"0 bps\""), &["rtp.video.floor", "above zero"]),
        (add("start = \"20 s\""), &["rtp.video.start", "would start at"]),
        (add("payload = \"4 B\""), &["rtp.video.payload", "between 16 and 65000 bytes"]),
        (add("count = 1000000"), &["rtp.video.count", "no more than 100000"]),
        (add("count = -1"), &["rtp.video.count"]),
        (add("path = [\"botleneck\"]"), &["rtp.video.path[0]", "did you mean `bottleneck`?"]),
        (add("path = []"), &["rtp.video.path", "at least one link"]),
        (add("path = [\"bottleneck\", \"bottleneck\"]"), &["rtp.video.path[1]", "neighbouring links"]),
        (add("access_delay = \"1 ms\""), &["only flows of a dumbbell"]),
        (add("source = \"perfect-frame\""), &["rtp.video.source", "did you mean `perfect-frames`?"]),
        (add("source = { fps = 30 }"), &["rtp.video.source", "needs a `model`"]),
        (add("source = { model = \"perfect-packets\", fps = 30 }"), &["rtp.video.source.fps", "has no option `fps`"]),
        (add("source = { model = \"perfect-frames\", fps = 0 }"), &["rtp.video.source.fps", "between 1 and 1000"]),
        (add("source = { model = \"trace\" }"), &["needs a `file`"]),
        (
            add("source = { model = \"trace\", file = \"nowhere\" }"),
            &["rtp.video.source.file", "there is no such file"],
        ),
        (add("pauses = [{ from = \"3 s\", to = \"2 s\" }]"), &["rtp.video.pauses[0]", "`from` before `to`"]),
        (
            add("feedback = { interval = \"0 ms\" }").replace("$controller", "nada"),
            &["rtp.video.feedback.interval", "above zero"],
        ),
        (
            add("feedback = { interval = \"1 ms\", max_interval = \"1 ms\" }").replace("$controller", "nada"),
            &["rtp.video.feedback.max_interval", "both bounds"],
        ),
        (add("[tcp.bulk]"), &["tcp.bulk", "missing field `algorithm`"]),
        (
            add("[tcp.bulk]\nalgorithm = \"reno\""),
            &["tcp.bulk.algorithm", "unknown value `reno`", "did you mean `newreno`?"],
        ),
        (add("[tcp.web]\nalgorithm = \"cubic\"\nsize = \"1 MB\""), &["tcp.web", "both `size` and `idle`"]),
        (
            add("[tcp.web]\nalgorithm = \"cubic\"\nsize = { uniform = [\"2 MB\", \"1 MB\"] }\nidle = \"1 s\""),
            &["tcp.web.size", "lesser value first"],
        ),
        (
            add("[tcp.web]\nalgorithm = \"cubic\"\nsize = { pareto = { mean = \"2 MB\", shape = 1 } }\nidle = \"1 s\""),
            &["tcp.web.size.pareto.shape", "between 1.01 and 100"],
        ),
        (add("[udp.cross]\nrate = \"unlimited\""), &["udp.cross.rate", "needs a rate"]),
        (tcp("max_window = 0"), &["tcp.x.max_window", "1 to 16000 segments, found 0"]),
        (tcp("initial_window = 2000"), &["tcp.x.initial_window", "1 to 1000 segments"]),
        (tcp("min_rto = \"2 min\""), &["tcp.x.min_rto", "at most 60 s"]),
        (tcp("rate = \"0 bps\""), &["tcp.x.rate", "above zero"]),
        (tcp("rate = \"1 Mbps\"\nsize = \"1 MB\""), &["tcp.x.rate", "`size`", "leave `rate` out"]),
        (tcp("arrivals = 30"), &["tcp.x.arrivals", "need a `size`", "pareto"]),
        (tcp("size = \"1 MB\"\narrivals = -1"), &["tcp.x.arrivals", "above 0", "found -1"]),
        (tcp("size = \"1 MB\"\narrivals = 3\nidle = \"1 s\""), &["tcp.x.arrivals", "leave one of them out"]),
        (tcp("size = \"1 MB\"\narrivals = 3\npersistent = true"), &["tcp.x.persistent", "`size` and `idle`"]),
        (add("[tcp.video]\nalgorithm = \"cubic\""), &["two flows are named `video`"]),
        (change("[rtp.video]\ncontroller = \"$controller\"\n", ""), &["at least one flow"]),
        (
            add("[[windows]]\nname = \"a\"\nfrom = \"0 s\"\nto = \"11 s\""),
            &["windows[0]", "no later than the run's end"],
        ),
        (change("compare = ", "bottleneck = \"botleneck\"\ncompare = "), &["bottleneck", "did you mean `bottleneck`?"]),
        (
            change("compare = ", "sample_interval = \"1 us\"\ncompare = "),
            &["sample_interval", "more than 5000000 points"],
        ),
        (add("[variants]\nname = \"a\""), &["variants", "[[variants]]"]),
        (add("[[variants]]\nlinks.bottleneck.loss = 0.1"), &["variants[0]", "needs a `name`"]),
        (
            add("[[variants]]\nname = \"a\"\nlinks.bottleneck.los = 0.1"),
            &["variants[0].links.bottleneck.los", "did you mean `loss`?"],
        ),
        (add("[[variants]]\nname = \"a\"\nlinks.botleneck.loss = 0.1"), &["missing field `rate`"]),
        (add("[[variants]]\nname = \"a\"\n[[variants]]\nname = \"a\""), &["two variants are named \"a\""]),
        (add("[[variants]]\nname = \"a\"\ntitle = \"b\""), &["variants[0].title", "of the whole file"]),
        (
            add("[[matrix]]\nset = \"links.bottleneck.loss\"\nvalues = [0, 7]"),
            &["matrix[0].values[1]", "between 0 and 1, found 7"],
        ),
        (
            add("[[matrix]]\nset = \"links.botleneck.loss\"\nvalues = [0]"),
            &["matrix[0].set", "did you mean `bottleneck`?"],
        ),
        (add("[[matrix]]\nset = \"title.x\"\nvalues = [0]"), &["matrix[0].set", "one field of the scenario"]),
        (add("[[matrix]]\nset = \"seed\"\nvalues = [0]\nnames = []"), &["matrix[0].names", "expected 1 names"]),
        (add("[[matrix]]\nset = \"seed\"\nvalue = [0]"), &["matrix[0].value", "did you mean `values`?"]),
    ];
    for (text, parts) in cases {
        let e = match parse(&text) {
            Ok(_) => panic!("read without error:\n{text}"),
            Err(e) => e,
        };
        let shown = format!("{e}\n{}", e.help_text().unwrap_or_default());
        for part in parts {
            assert!(shown.contains(part), "`{part}` is not in\n{shown}\nfor\n{text}");
        }
    }
}

#[test]
fn errors_draw_the_line() {
    let e = parse(&SMALL.replace("2 Mbps", "2 Mbs")).expect_err("wrong unit");
    assert_eq!(e.position(), Some((6, 8)));
    assert_eq!(e.field_path(), Some("links.bottleneck.rate"));
    let mut drawn = String::new();
    let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor());
    handler.render_report(&mut drawn, &e).expect("draws");
    assert!(drawn.contains("rate = \"2 Mbs\"") && drawn.contains("test.toml:6:8"), "{drawn}");
}

#[test]
fn finds_trace_files_beside_the_scenario() {
    let folder = tempfile::tempdir().expect("temporary folder");
    std::fs::write(folder.path().join("a.csv"), "time_s,rate_bps\n0,1000000\n1,500000\n").expect("written");
    std::fs::write(folder.path().join("frames"), "# bytes\n1000\n\n2000\n").expect("written");
    let text =
        SMALL.replace("\"2 Mbps\"", "{ trace = \"a.csv\" }") + "source = { model = \"trace\", file = \"frames\" }";
    let path = folder.path().join("small.toml");
    std::fs::write(&path, &text).expect("written");
    let registry = Registry::builtin();
    let file = ScenarioFile::open(&path.display().to_string(), &registry).unwrap_or_else(|e| panic!("{e}"));
    let s = file.scenario(None, Some("fixed"), &registry).expect("resolves");
    assert_eq!(s.links[0].trace.as_deref(), Some("a.csv"));
    assert_eq!(s.links[0].config.capacity.rate_at(Timestamp::from_millis(1_500)), DataRate::from_bps(500_000));
    let Source::Trace { sizes, .. } = &s.flows[0].rtp().expect("rtp").source else { panic!("no trace") };
    assert_eq!(sizes[..], [DataSize::from_bytes(1_000), DataSize::from_bytes(2_000)]);

    std::fs::write(folder.path().join("a.csv"), "time_s,rate_bps\n0,1000000\n1,fast\n").expect("written");
    let e = ScenarioFile::open(&path.display().to_string(), &registry).expect_err("bad line");
    assert_eq!((e.file(), e.position()), ("a.csv", Some((3, 1))));
    std::fs::write(folder.path().join("a.csv"), "time_s,rate_bps\n0,1000000\n1,500000\n").expect("written");

    std::fs::write(folder.path().join("frames"), "1000\n\n20x0\n").expect("written");
    let e = ScenarioFile::open(&path.display().to_string(), &registry).expect_err("bad line");
    assert_eq!((e.file(), e.position()), ("frames", Some((3, 1))));
}

#[test]
fn patterns_and_measured_traces_are_capacities() {
    let registry = Registry::builtin();
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("small.toml");
    let open = |rate: &str| {
        std::fs::write(&path, SMALL.replace("\"2 Mbps\"", rate)).expect("written");
        ScenarioFile::open(&path.display().to_string(), &registry)
    };
    let at = |rate: &str, ms: i64| {
        let file = open(rate).unwrap_or_else(|e| panic!("{e}"));
        let s = file.scenario(None, Some("fixed"), &registry).expect("resolves");
        s.links[0].config.capacity.rate_at(Timestamp::from_millis(ms)).as_bps()
    };
    std::fs::write(folder.path().join("a.log"), "226 2.5\n227 0.25\n").expect("written");
    std::fs::write(folder.path().join("b.json"), "[{\"duration_ms\": 500, \"bandwidth_kbps\": 70}]").expect("written");
    assert_eq!(at("{ trace = \"a.log\", format = \"seconds-mbps\" }", 1_500), 250_000);
    assert_eq!(at("{ trace = \"b.json\" }", 1_500), 70_000);
    assert_eq!(at("{ pattern = \"poor-good\" }", 500), 105_100);
    let e = open("{ trace = \"b.json\", format = \"norway-raw\" }").expect_err("another format");
    assert_eq!((e.file(), e.position()), ("b.json", Some((1, 1))));
}

#[test]
fn a_network_has_links_in_any_order() {
    let text = SMALL.replace("duration", "topology = \"network\"\nduration")
        + "path = [\"second\", \"bottleneck\"]\n[links.second]\nrate = \"1 Mbps\"\ndelay = \"1 ms\"\n";
    let registry = Registry::builtin();
    let file = parse(&text).unwrap_or_else(|e| panic!("{e}"));
    let s = file.scenario(None, Some("fixed"), &registry).expect("resolves");
    assert_eq!((&s.flows[0].forward[..], &s.flows[0].reverse[..]), (&[2, 0][..], &[1, 3][..]));
    let e = parse(&text.replace("\"second\", \"bottleneck\"", "\"second\", \"second\"")).expect_err("twice");
    assert!(e.to_string().contains("crosses each link once"), "{e}");
}

#[test]
fn an_end_heeds_one_base_station() {
    let text = |second: &str| {
        SMALL
            .replace("duration", "topology = \"network\"\nduration")
            .replace("rate = \"2 Mbps\"", "rate = \"2 Mbps\"\nassist = { tells = \"sender\" }")
            + &format!(
                "[links.x]\nrate = \"1 Mbps\"\ndelay = \"1 ms\"\nassist = {{ tells = \"{second}\", drain = \"1 s\" }}\n"
            )
    };
    let registry = Registry::builtin();
    let file = parse(&text("receiver")).unwrap_or_else(|e| panic!("{e}"));
    let s = file.scenario(None, Some("fixed"), &registry).expect("resolves");
    let assist = s.links[2].assist.expect("a station");
    assert_eq!((assist.tells_sender, assist.tells_receiver), (false, true));
    assert_eq!((assist.interval, assist.drain), (TimeDelta::from_secs(1), Some(TimeDelta::from_secs(1))));
    assert!(s.links[0].assist.is_some_and(|a| a.tells_sender) && s.links[1].assist.is_none());
    let e = parse(&text("both")).expect_err("two stations");
    assert!(e.to_string().contains("2 links on the way of `video` tell its sender"), "{e}");
}

#[test]
fn names_near_ones_where_nothing_is_found() {
    let registry = Registry::builtin();
    let e = ScenarioFile::open("responsivness", &registry).expect_err("mistyped");
    assert!(e.help_text().is_some_and(|h| h.contains("responsiveness")), "{e}");
    let e = ScenarioFile::open("nowhere/x.toml", &registry).expect_err("no file");
    assert!(e.to_string().contains("there is no such file"), "{e}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    /// Any byte of a good file changed, or a piece of it lost or doubled: an answer, never a panic.
    #[test]
    fn mangled_files_do_not_panic(cuts in prop::collection::vec((any::<prop::sample::Index>(), 0usize..12, "\\PC{0,6}|[\\[\\]{}=\"0-9.,\\n-]{0,4}"), 1..4)) {
        let mut text = SMALL.to_owned() + "[tcp.x]\nalgorithm = \"cubic\"\n[[matrix]]\nset = \"seed\"\nvalues = [1, 2]\n[[variants]]\nname = \"v\"\nlinks.bottleneck.loss = { good_to_bad = 0.1, bad_to_good = 0.2 }\n";
        for (at, len, with) in cuts {
            let floor = |mut i: usize| { while !text.is_char_boundary(i) { i -= 1 } i };
            let start = floor(at.index(text.len() + 1));
            let end = floor((start + len).min(text.len())).max(start);
            text.replace_range(start..end, &with);
        }
        if let Err(e) = parse(&text) {
            let mut drawn = String::new();
            let handler = miette::GraphicalReportHandler::new_themed(miette::GraphicalTheme::unicode_nocolor());
            prop_assert!(handler.render_report(&mut drawn, &e).is_ok());
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }
}

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
