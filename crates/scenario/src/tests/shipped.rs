//! The scenarios that ship with Weir.

use super::*;
#[cfg(feature = "schema")]
use crate::schema::derived;
#[cfg(feature = "schema")]
use std::path::PathBuf;
use weir_path::LossPosition;

#[cfg(feature = "schema")]
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn open(name: &str) -> ScenarioFile {
    ScenarioFile::open(name, &Registry::builtin()).unwrap_or_else(|e| panic!("{e}\n{:?}", e.help_text()))
}

#[test]
fn every_scenario_resolves_and_meets_the_schema() {
    let schema: serde_json::Value = serde_json::from_str(&schema()).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    for (name, text) in builtin_scenarios() {
        let file = open(name);
        let all = file.scenarios(None, &Registry::builtin()).unwrap_or_else(|e| panic!("{e}"));
        assert!(!all.is_empty() && !file.doc().is_empty(), "{name}");
        let value: serde_json::Value = toml::from_str(text).expect("TOML");
        let faults: Vec<_> = validator.iter_errors(&value).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(faults.is_empty(), "{name}: {faults:#?}");
    }
    for bad in [r#"{"title": "x"}"#, r#"{"title": "x", "duration": "10", "links": {}}"#] {
        let value = serde_json::from_str(bad).expect("JSON");
        assert!(!validator.is_valid(&value), "{bad}");
    }
}

#[cfg(feature = "schema")]
#[test]
fn the_committed_schema_is_current() {
    let path = folder().join("schema.json");
    if std::env::var_os("WEIR_BLESS").is_some() {
        std::fs::write(&path, derived()).expect("written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == derived(),
        "run the tests of weir-scenario with --features schema once with WEIR_BLESS=1 and commit scenarios/schema.json"
    );
}

#[test]
fn short_names_are_found() {
    for name in ["responsiveness", "rmcat-comparison/responsiveness", "5.1-variable-capacity", "quick"] {
        assert!(open(name).name().ends_with(name));
    }
}

#[test]
fn the_papers_conditions_are_in_the_files() {
    let registry = Registry::builtin();
    let kbps = DataRate::from_kbps;
    let file = open("responsiveness");
    let s = file.scenario(None, Some("nada"), &registry).expect("resolves");
    let capacity = s.links[s.bottleneck].config.capacity.clone();
    let rates: Vec<_> = (0..8).map(|i| capacity.rate_at(Timestamp::from_secs(20 * i + 10)).as_kbps_f64()).collect();
    assert_eq!(rates, [2000.0, 1500.0, 1000.0, 500.0, 1000.0, 1500.0, 2000.0, 1500.0]);
    assert_eq!(s.links[0].config.delay, TimeDelta::from_millis(100));
    assert_eq!(s.links[0].config.limit, Limit::Size(DataSize::from_bytes(75_000)));
    let rtp = s.flows[0].rtp().expect("rtp");
    assert_eq!((rtp.floor, rtp.start_rate, rtp.ceiling), (kbps(150), kbps(150), kbps(3_000)));
    assert_eq!(rtp.feedback.map(|f| f.max_interval), Some(TimeDelta::from_millis(100)));
    assert_eq!((rtp.payload(), &rtp.source), (DataSize::from_bytes(1_000), &Source::PerfectPackets));
    let scream = file.scenario(None, Some("scream"), &registry).expect("resolves");
    let rtp = scream.flows[0].rtp().expect("rtp");
    assert_eq!((rtp.floor, rtp.start_rate, rtp.ceiling), (kbps(256), kbps(2_000), kbps(32_800)));

    let losses = open("random-loss").scenarios(None, &registry).expect("resolves");
    assert_eq!(losses.len(), 9);
    assert_eq!(losses[8].variant.as_deref(), Some("5%"));
    assert_eq!(losses[8].links[0].config.loss, Loss::Independent { share: 0.05 });
    assert_eq!(losses[8].links[0].config.loss_position, LossPosition::Exit);

    let fairness = open("fairness").scenario(None, Some("gcc"), &registry).expect("resolves");
    assert_eq!(fairness.flows.iter().map(|f| f.start.as_secs_f64()).collect::<Vec<_>>(), [0.0, 40.0, 80.0]);
    let competition = open("competition").scenario(None, Some("gcc"), &registry).expect("resolves");
    let tcp = &competition.flows[1];
    assert_eq!((tcp.start, tcp.stop), (TimeDelta::from_secs(20), TimeDelta::from_secs(100)));
}

#[test]
fn rfc8867_has_its_eight_cases() {
    let registry = Registry::builtin();
    let get =
        |name: &str, variant| open(name).scenario(variant, Some("nada"), &registry).unwrap_or_else(|e| panic!("{e}"));
    let mbps = |s: &Scenario, link: usize, at: i64| {
        s.links[link].config.capacity.rate_at(Timestamp::from_secs(at)).as_kbps_f64() / 1e3
    };
    let s = get("5.1-variable-capacity", Some("50 ms"));
    assert_eq!([0, 40, 60, 80].map(|t| mbps(&s, 0, t)), [1.0, 2.5, 0.6, 1.0]);
    let s = get("5.1-variable-capacity", Some("UDP"));
    let FlowKind::Udp(udp) = &s.flows[s.flow("background").expect("there")].kind else { panic!("not UDP") };
    let rate = udp.rate.clone();
    let at = |t| rate.rate_at(Timestamp::from_secs(t)).as_kbps_f64() / 1e3;
    assert_eq!([0, 40, 60, 80].map(|t| mbps(&s, 0, t) - at(t)), [1.0, 2.5, 4.0 - 3.4, 1.0]);
    let s = get("5.2-variable-capacity-two-flows", Some("capacity"));
    assert_eq!([0, 25, 50, 75, 100].map(|t| mbps(&s, 0, t)), [4.0, 2.0, 3.5, 1.0, 2.0]);
    let s = get("5.3-congested-feedback", Some("congested"));
    assert_eq!([0, 35, 70].map(|t| mbps(&s, 1, t)), [2.0, 0.8, 2.0]);
    assert_eq!((s.flows[1].forward[0], s.flows[1].reverse[0]), (1, 0));
    let s = get("5.4-competing-flows", None);
    assert_eq!((mbps(&s, 0, 0), s.flows.len()), (3.5, 6));
    let s = get("5.5-rtt-fairness", None);
    let delays: Vec<_> = s.flows[..5].iter().map(|f| f.access_delay.as_millis()).collect();
    assert_eq!(delays, [10, 25, 50, 100, 150]);
    let s = get("5.6-long-tcp", Some("newreno, 1000 ms"));
    assert_eq!(s.links[0].config.limit, Limit::Time(TimeDelta::from_secs(1)));
    let s = get("5.7-short-tcp", None);
    assert_eq!(s.flows.iter().filter(|f| matches!(f.kind, FlowKind::Tcp(_))).count(), 10);
    let s = get("5.8-pause-resume", None);
    let pauses = &s.flows[1].rtp().expect("rtp").pauses;
    let (from, to) = (TimeDelta::from_secs(40), TimeDelta::from_secs(60));
    assert_eq!(pauses[..], [Pause { from, to, media_clock: TimeDelta::ZERO }]);
}

#[test]
fn rfc8869_has_its_cases() {
    let registry = Registry::builtin();
    let all = |name: &str| {
        let all = open(name).scenarios(Some(&["nada".to_owned()]), &registry);
        all.unwrap_or_else(|e| panic!("{e}"))
    };
    let variant = |all: &[Scenario], name: &str| -> Scenario {
        all.iter().find(|s| s.variant.as_deref() == Some(name)).unwrap_or_else(|| panic!("no {name}")).clone()
    };
    let load = all("2.1-varying-load");
    let s = variant(&load, "uplink, 7.0");
    let Some(weir_path::Radio::Cellular(cell)) = &s.links[0].config.radio else { panic!("no cell") };
    assert_eq!((cell.separate, cell.request_interval), (true, Some(TimeDelta::from_millis(10))));
    // Calls of 30 s, the number of the variant at a time.
    for at in [20, 35, 50] {
        let at = TimeDelta::from_secs(at);
        let calls = s.flows.iter().filter(|f| f.rtp().is_some_and(|r| r.adapts) && f.start <= at && f.stop > at);
        assert!((6..=8).contains(&calls.clone().count()));
        assert!(calls.clone().all(|f| f.stop - f.start == TimeDelta::from_secs(30)));
    }
    assert_eq!(all("2.2-bad-coverage").len(), 6);
    let wired = all("3.1-wired-bottleneck");
    let s = variant(&wired, "off-on UDP");
    assert_eq!((s.links[s.bottleneck].name.as_str(), s.flows.len()), ("wired", 3));
    let wifi = all("3.2-wifi-bottleneck");
    let s = variant(&wifi, "TCP");
    assert_eq!((s.links[s.bottleneck].name.as_str(), s.flows.len()), ("wifi", 16 + 5));
    // One medium: both directions cross the same link. A station alone gets about the RFC's 20 Mbit/s.
    assert!(s.flows.iter().all(|f| f.forward.contains(&0) && f.reverse.contains(&0)));
    let rate = s.links[0].config.sustained().rate_at(Timestamp::ZERO).as_kbps_f64();
    assert!((20_000.0..24_000.0).contains(&rate), "{rate}");
}
