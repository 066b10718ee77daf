//! Links and network shapes.

use super::*;
use weir_path::queue::{Value, codel};
use weir_path::{
    Discipline, Dscp, EcnFaults, Jitter, JitterShape, LossPosition, Members, Others, Radio, Reordering, TokenBucket,
};

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
fn delay_loss_and_jitter_may_change_in_steps() {
    let text = SMALL.replace(
        "delay = \"50 ms\"",
        r#"
        delay = { steps = [{ at = "0 s", delay = "50 ms" }, { at = "5 s", delay = "10 ms" }], repeat = "8 s" }
        loss.steps = [
            { at = "0 s", loss = 0 },
            { at = "2 s", loss = { good_to_bad = 0.1, bad_to_good = 0.2 } },
            { at = "3 s", loss = 0.1 },
        ]
        jitter = { reordering = true, steps = [{ at = "0 s", max = "0 s" }, { at = "1 s", max = "30 ms", sigma = "5 ms" }] }
        "#,
    );
    let s = only(&text);
    let config = &s.links[0].config;
    let ms = TimeDelta::from_millis;
    let at = Timestamp::from_secs;
    let delay = config.variation.delay.as_ref().expect("steps");
    assert_eq!((config.delay, [0, 5, 7, 8, 13].map(|t| delay.at(at(t)))), (ms(50), [50, 10, 10, 50, 10].map(ms)));
    let loss = config.variation.loss.as_ref().expect("steps");
    let none = Loss::Independent { share: 0.0 };
    assert_eq!((config.loss, loss.at(at(1)), loss.at(at(9))), (none, none, Loss::Independent { share: 0.1 }));
    assert!(matches!(loss.at(at(2)), Loss::GilbertElliott(g) if (g.to_bad, g.to_good) == (0.1, 0.2)));
    let jitter = config.variation.jitter.as_ref().expect("steps");
    assert!(config.jitter.is_some_and(|j| j.may_reorder));
    assert_eq!(
        jitter.values(),
        [JitterShape::Uniform { max: ms(0) }, JitterShape::Normal { deviation: ms(5), bound: 3.0 },]
    );
    // The reverse direction has the same delay, and nothing else.
    let back = &s.links[1].config;
    assert_eq!((&back.variation.delay, back.delay), (&config.variation.delay, ms(50)));
    assert_eq!((&back.variation.loss, &back.variation.jitter, back.loss), (&None, &None, Loss::None));
}

#[test]
fn a_link_may_have_token_buckets_and_ecn_faults() {
    let text = SMALL.replace(
        "delay = ",
        r#"
        policer = { rate = "1 Mbps", burst = "30 kB" }
        ecn = { mark = 0.1, erase = 0.2, bleach = 0.3, place = "ingress" }
        reverse = { shaper = { rate = "500 kbps", burst = "9 kB" }, ecn = { bleach = 1 }, queue = "50 kB" }
        delay = "#,
    );
    let s = only(&text);
    let bucket = |kbps, bytes| TokenBucket { rate: DataRate::from_kbps(kbps), burst: DataSize::from_bytes(bytes) };
    let [there, back] = [&s.links[0].config, &s.links[1].config];
    assert_eq!((there.policer, there.shaper), (Some(bucket(1_000, 30_000)), None));
    let faults = EcnFaults { mark: 0.1, erase: 0.2, bleach: 0.3, position: LossPosition::Entry };
    assert_eq!(there.ecn, Some(faults));
    // A shaper makes a queue also where the link itself has no rate.
    assert_eq!((back.policer, back.shaper, &back.capacity), (None, Some(bucket(500, 9_000)), &Capacity::Unlimited));
    assert_eq!(back.limit, Limit::Size(DataSize::from_bytes(50_000)));
    assert_eq!(back.ecn, Some(EcnFaults { mark: 0.0, erase: 0.0, bleach: 1.0, position: LossPosition::Exit }));
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
    // Every discipline, with each parameter written as its default is printed.
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

const TWO_PATHS: &str = r#"
    title = "t"
    duration = "5 s"
    topology = "network"
    [links.wifi]
    rate = "1 Mbps"
    delay = "10 ms"
    [links.cellular]
    rate = "2 Mbps"
    delay = "30 ms"
    [links.shared]
    rate = "4 Mbps"
    delay = "5 ms"
    [rtp.call]
    controller = "gcc"
    multipath = { paths = [["wifi", "shared"], ["cellular", "shared"]] }
"#;

#[test]
fn a_flow_has_several_paths() {
    let s = only(TWO_PATHS);
    let call = s.flows[0].rtp().and_then(|r| r.multipath.as_ref()).expect("several");
    assert_eq!(call.scheduler, "earliest");
    let names: Vec<&str> = call.paths.iter().map(|p| &p.name[..]).collect();
    assert_eq!(names, ["wifi", "cellular"]);
    assert_eq!((&call.paths[1].forward[..], &call.paths[1].reverse[..]), (&[2, 4][..], &[5, 3][..]));
    assert_eq!((&s.flows[0].forward[..], &s.flows[0].reverse[..]), (&[0, 4][..], &[5, 1][..]));
    let one = TWO_PATHS.replace(", [\"cellular\", \"shared\"]", "");
    let s = only(&one);
    assert_eq!(s.flows[0].rtp().and_then(|r| r.multipath.as_ref()), None);
    assert_eq!(s.flows[0].forward, [0, 4]);
    let back = TWO_PATHS.replace("controller = \"gcc\"", "controller = \"gcc\"\ndirection = \"reverse\"");
    let s = only(&back);
    let call = s.flows[0].rtp().and_then(|r| r.multipath.as_ref()).expect("several");
    assert_eq!(call.paths[1].forward, [5, 3]);
}

#[test]
fn faults_of_paths_are_named() {
    let change = |from: &str, to: &str| {
        assert!(TWO_PATHS.contains(from), "{from}");
        TWO_PATHS.replace(from, to)
    };
    let second = "[[\"wifi\", \"shared\"], [\"cellular\", \"shared\"]]";
    let cases = [
        (change(second, "[]"), ["rtp.call.multipath", "one to 8 paths, found 0"]),
        (change(second, "[[\"wifi\"], [\"celular\"]]"), ["multipath.paths[1][0]", "did you mean `cellular`?"]),
        (change(second, "[[\"wifi\"], []]"), ["multipath.paths[1]", "at least one link"]),
        (change("multipath = {", "multipath = { scheduler = \"earlyest\","), ["scheduler", "did you mean `earliest`?"]),
        (change("multipath = {", "multipath = { coupling = \"detect\","), ["coupling", "did you mean `detected`?"]),
        (
            change("multipath = {", "multipath = { policies = [{ class = \"meterd\" }],"),
            ["class", "did you mean `metered`?"],
        ),
        (change("multipath = {", "multipath = { policies = [{ share = 0 }],"), ["share", "from 0.01 to 1, found 0"]),
        (change("multipath = {", "multipath = { policies = [{}, {}, {}],"), ["policies[2]", "but there are 2 paths"]),
        (change("\"gcc\"", "\"ccid2\""), ["rtp.call.multipath", "runs over DCCP"]),
        (change("\"gcc\"", "\"gcc\"\npath = [\"wifi\"]"), ["rtp.call.path", "the first of `multipath.paths`"]),
        (change("\"network\"", "\"parking-lot\""), ["rtp.call.multipath", "topology = \"network\""]),
    ];
    for (text, parts) in cases {
        let e = parse(&text).expect_err("a fault");
        let e = format!("{e}\n{}", e.help_text().unwrap_or_default());
        for part in parts {
            assert!(e.contains(part), "{part} in\n{e}");
        }
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
fn files_of_one_name_are_told_apart_by_their_folders() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let registry = Registry::builtin();
    let open = |at: &str| {
        let path = folder.path().join(at);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(&path, SMALL).expect("written");
        ScenarioFile::open(&path.display().to_string(), &registry).unwrap_or_else(|e| panic!("{e}"))
    };
    let mut files = ["a/e/s.toml", "b/e/s.toml", "d1/s.toml", "other.toml"].map(open);
    let paths = files.each_ref().map(|f| f.argument().to_owned());
    ScenarioFile::tell_apart(&mut files);
    assert_eq!(files.each_ref().map(|f| f.name().to_owned()), ["a/e/s", "b/e/s", "d1/s", "other"]);
    assert_eq!(files.each_ref().map(|f| f.argument().to_owned()), paths);
    assert_eq!(files[0].scenario(None, Some("fixed"), &registry).expect("resolves").name, "a/e/s");
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
            .replace("rate = \"2 Mbps\"", "rate = \"2 Mbps\"\nassist = { notifies = \"sender\" }")
            + &format!(
                "[links.x]\nrate = \"1 Mbps\"\ndelay = \"1 ms\"\nassist = {{ notifies = \"{second}\", drain = \"1 s\" }}\n"
            )
    };
    let registry = Registry::builtin();
    let file = parse(&text("receiver")).unwrap_or_else(|e| panic!("{e}"));
    let s = file.scenario(None, Some("fixed"), &registry).expect("resolves");
    let assist = s.links[2].assist.expect("a station");
    assert_eq!((assist.to_sender, assist.to_receiver), (false, true));
    assert_eq!((assist.interval, assist.drain), (TimeDelta::from_secs(1), Some(TimeDelta::from_secs(1))));
    assert!(s.links[0].assist.is_some_and(|a| a.to_sender) && s.links[1].assist.is_none());
    let e = parse(&text("both")).expect_err("two stations");
    assert!(e.to_string().contains("2 links on the path of `video` report to its sender"), "{e}");
}

#[test]
fn a_link_may_be_a_radio() {
    let wifi = SMALL.replace(
        "delay = ",
        r#"wifi = { contenders = 2, error_rate = 0.1, max_packets = 16, max_air_time = "2 ms", slot = "20 us", others_air_time = "1 ms" }
        delay = "#,
    );
    let Some(Radio::Wifi(w)) = only(&wifi).links[0].config.radio.clone() else { panic!("no Wi-Fi") };
    assert_eq!((w.others, w.error_rate, w.max_packets), (Others::Saturated(2), 0.1, 16));
    assert_eq!((w.max_air_time, w.slot), (TimeDelta::from_millis(2), TimeDelta::from_micros(20)));
    assert_eq!((w.others_air_time, w.cw_min, w.separate), (Some(TimeDelta::from_millis(1)), 15, false));
    let cell = SMALL.replace(
        "delay = ",
        r#"cellular = { error_rate = 0.2, request_interval = "10 ms", slot = "500 us", acknowledged = false }
        delay = "#,
    );
    let steps = "users = { steps = [{ at = \"0 s\", users = 3 }] }, slot";
    let cell = cell.replace("slot", steps);
    let Some(Radio::Cellular(c)) = only(&cell).links[0].config.radio.clone() else { panic!("no cell") };
    assert_eq!((c.error_rate, c.acknowledged, c.slot), (0.2, false, TimeDelta::from_micros(500)));
    assert_eq!((c.users.values(), c.request_interval), (&[3][..], Some(TimeDelta::from_millis(10))));
    // The queue's room is of the rate that the cell sustains: 2 Mbit/s, less what is sent again, shared by four.
    let rate = only(&cell).links[0].config.sustained().rate_at(Timestamp::ZERO).as_kbps_f64();
    assert!((400.0..420.0).contains(&rate), "{rate}");
}

#[test]
fn stations_of_flows_share_one_medium_in_both_directions() {
    let text = SMALL.replace("delay = ", "wifi = { stations = \"each-flow\" }\ndelay = ").replace("2 Mbps", "20 Mbps");
    let s = only(&(text + "[udp.down]\nrate = \"1 Mbps\"\ndirection = \"reverse\"\ndscp = \"EF\"\n"));
    assert_eq!((&s.flows[0].forward, &s.flows[0].reverse), (&vec![0], &vec![0]));
    assert_eq!((&s.flows[1].forward, s.flows[1].reversed), (&vec![0], true));
    let of = |agent| s.links[0].config.members.get(agent);
    let ef = Dscp::by_name("EF").expect("a name");
    let [up, feedback, down, none] = [0, 1, 2, 3].map(of);
    assert_eq!((up.station, up.to_station, up.dscp), (1, false, Dscp::DF));
    assert_eq!((feedback.station, feedback.to_station), (1, true));
    assert_eq!((down.station, down.to_station, down.dscp), (2, true, ef));
    assert_eq!((none.station, none.to_station), (2, false));
    assert_eq!(s.links[1].config.members, Members::default());
}

#[test]
fn a_preset_gives_what_a_link_does_not_state() {
    let text = SMALL.replace("rate = \"2 Mbps\"\ndelay = \"50 ms\"", "preset = \"policed\"\nduplicate = 0.1");
    let s = only(&text);
    let expected = weir_path::presets::by_name("policed").expect("a preset").config();
    let config = &s.links[0].config;
    assert_eq!(
        (config.policer, config.limit, &config.capacity),
        (expected.policer, expected.limit, &expected.capacity)
    );
    assert_eq!((config.delay, config.duplication), (TimeDelta::from_millis(20), 0.1));
    assert_eq!((s.links[1].config.delay, &s.links[1].config.capacity), (expected.delay, &Capacity::Unlimited));
    let other = text
        .replace("duplicate = 0.1", "rate = \"3 Mbps\"\nqueue = \"9 packets\"\nreverse = { preset = \"bufferbloat\" }");
    let s = only(&other);
    assert_eq!(
        (&s.links[0].config.capacity, s.links[0].config.limit),
        (&Capacity::Constant(DataRate::from_mbps(3)), Limit::Packets(9))
    );
    assert_eq!(s.links[1].config.limit, Limit::Time(TimeDelta::from_secs(2)));
}

#[test]
fn each_preset_is_a_link_of_a_scenario() {
    for preset in weir_path::presets::ALL {
        let given = format!("preset = \"{}\"", preset.name);
        let s = only(&SMALL.replace("rate = \"2 Mbps\"\ndelay = \"50 ms\"", &given));
        assert_eq!(s.links[0].config, preset.config(), "{}", preset.name);
    }
}
