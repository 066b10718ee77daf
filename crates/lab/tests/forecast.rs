//! Forecasts of capacity in scenarios: what they do to a call, and what is refused.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::results::FlowSummary;
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::ScenarioFile;

const HOLE: &str = r#"
title = "A hole"
duration = "60 s"
[links.bottleneck]
rate = { steps = [{ at = "0 s", rate = "2 Mbps" }, { at = "20 s", rate = "300 kbps" }, { at = "30 s", rate = "2 Mbps" }] }
delay = "30 ms"
queue = "200 ms"
[rtp.call]
controller = "$controller"
source = { model = "perfect-frames", fps = 25 }
floor = "50 kbps"
ceiling = "1 Mbps"
start_rate = "1 Mbps"
playout_deadline = "400 ms"
"#;

fn file(forecast: &str) -> Result<ScenarioFile, String> {
    let text = format!("{HOLE}{forecast}\n");
    let file = ScenarioFile::parse("hole", &text, env!("CARGO_MANIFEST_DIR").as_ref(), &Registry::builtin());
    file.and_then(|f| f.scenario(None, Some("fixed"), &Registry::builtin()).map(|_| f))
        .map_err(|e| format!("{e} {:?}", e.help_text()))
}

fn call(controller: &str, forecast: &str) -> FlowSummary {
    let registry = Registry::builtin();
    let file = file(forecast).unwrap_or_else(|e| panic!("{e}"));
    let scenario = file.scenario(None, Some(controller), &registry).unwrap_or_else(|e| panic!("{e}"));
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    run(&scenario, 3, &options).expect("runs").flows.remove(0)
}

fn lines(of: &str) -> String {
    format!("[rtp.call.forecast]\n{of}")
}

#[test]
fn a_map_spares_a_call_the_hole_and_a_lie_costs_some_seconds() {
    let (plain, other) = (call("fixed", ""), call("fixed", &lines("factor = 0.1")));
    assert!((0.08..0.2).contains(&plain.loss), "{}", plain.loss);
    assert_eq!(plain.rates, other.rates, "`fixed` has no use for a map");
    let map = call("fixed+map", &lines("segment = \"1 s\""));
    assert_eq!((map.loss, map.frames.map(|f| f.stalls)), (0.0, Some(0)));
    assert!((700e3..900e3).contains(&map.rates.goodput_bps), "{}", map.rates.goodput_bps);
    let lie = call("fixed+map", &lines("factor = 0.1"));
    assert!((600e3..plain.rates.goodput_bps).contains(&lie.rates.goodput_bps), "{}", lie.rates.goodput_bps);
}

#[test]
fn a_receiver_that_announces_the_hole_spares_the_call_it_as_well() {
    for controller in ["sluice", "fbra"] {
        let plain = call(controller, "");
        assert!((0.001..0.1).contains(&plain.loss), "{controller}: {}", plain.loss);
        let map = format!("{controller}+map");
        let there = call(&map, &lines("segment = \"1 s\""));
        let in_band = call(&map, &lines("segment = \"1 s\"\nin_band = true"));
        assert_eq!((in_band.loss, in_band.frames.map(|f| f.stalls)), (0.0, Some(0)), "{controller}");
        let share = in_band.rates.goodput_bps / there.rates.goodput_bps;
        assert!((0.97..1.03).contains(&share), "{controller}: {share}");
    }
}

#[test]
fn faults_name_the_key_and_the_way_out() {
    let cases = [
        ("segment = \"1 ms\"", "expected a `segment` from"),
        ("segment = \"1 s\"\nlook_ahead = \"900 s\"", "expected a `look_ahead` from"),
        ("factor = 0.0", "between 0.001 and 1000"),
        ("drawn = { rides = 0 }", "one to 100 rides, found 0"),
        ("drawn = { rides = 3, spread = 9 }", "between 0 and 3"),
        ("drawn = { rides = 3 }\nrides = [\"1 Mbps\"]", "at most one of `rides`, `folder`, `drawn`"),
        ("rides = []", "one to 100 rides, found 0"),
        ("folder = \"no-such-folder\"", "no-such-folder: No such file"),
        ("format = \"csv\"", "`format` belongs to `folder`"),
        ("file = \"Cargo.toml\"", "expected seconds from 0 to 1,000,000"),
        ("file = \"no-such-file.csv\"", "there is no such file"),
        ("segmnet = \"1 s\"", "did you mean `segment`"),
    ];
    for (forecast, expected) in cases {
        let error = file(&lines(forecast)).err().unwrap_or_else(|| panic!("{forecast} is accepted"));
        assert!(error.contains(expected), "{forecast}: {error}");
    }
}

#[test]
fn each_path_follows_the_forecast_of_its_own_in_band_as_from_the_map() {
    let registry = Registry::builtin();
    let file = ScenarioFile::builtin("coverage/two-paths", &registry).unwrap_or_else(|e| panic!("{e}"));
    let call = |controller: &str, variant: &str| {
        let scenario = file.scenario(Some(variant), Some(controller), &registry).unwrap_or_else(|e| panic!("{e}"));
        let stop = AtomicBool::new(false);
        let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
        run(&scenario, 3, &options).expect("runs").flows.remove(0)
    };
    for controller in ["sluice", "gcc"] {
        let plain = call(controller, "in-band");
        let map = format!("{controller}+map");
        let [there, in_band] = ["from-the-map", "in-band"].map(|v| call(&map, v));
        assert!(plain.loss > 0.0003, "{controller}: {}", plain.loss);
        assert!(in_band.loss < 0.2 * plain.loss, "{controller}: {} of {}", in_band.loss, plain.loss);
        let share = in_band.rates.goodput_bps / there.rates.goodput_bps;
        assert!((0.88..1.05).contains(&share), "{controller}: {share}");
    }
}

/// A variant of the dissertation's whole call, figure 8.1.
fn synthesis(variant: &str, seed: u64) -> FlowSummary {
    let registry = Registry::builtin();
    let file = ScenarioFile::builtin("rtp-cc-thesis/synthesis", &registry).unwrap_or_else(|e| panic!("{e}"));
    let scenario = file.scenario(Some(variant), None, &registry).unwrap_or_else(|e| panic!("{e}"));
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    run(&scenario, seed, &options).expect("runs").flows.remove(0)
}

/// Lost and all pictures of the lower layer, and the 95th percentile of their delay in ms.
fn lower(flow: &FlowSummary) -> (u64, u64, f64) {
    let frames = flow.streams.iter().find_map(|s| s.frames.as_ref()).expect("pictures");
    (frames.lost, frames.frames, frames.delay_ms.as_ref().expect("pictures").p95)
}

/// Packets that wait for a path that holds them back grow too old for the queue: pictures of the lower layer are lost then.
#[test]
fn the_default_scheduler_keeps_the_lower_layer_at_a_higher_rate_and_delay() {
    let [thesis, earliest] = ["all", "earliest"].map(|v| synthesis(v, 1));
    for flow in [&thesis, &earliest] {
        let (lost, all, _) = lower(flow);
        assert!((3_590..=3_600).contains(&all) && lost * 500 <= all, "{lost} of {all}");
    }
    let rates = earliest.rates.goodput_bps / thesis.rates.goodput_bps;
    assert!((1.02..1.3).contains(&rates), "{rates}");
    let delays = lower(&earliest).2 / lower(&thesis).2;
    assert!((1.2..4.0).contains(&delays), "{delays}");
}

/// Lost speech has no time for a repair where its playout follows the delay, and has with 400 ms, which cost the conversation more.
#[test]
fn playout_by_skew_conceals_lost_speech_and_serves_the_conversation_better() {
    let speech = |variant: &str| {
        let flow = synthesis(variant, 1);
        let audio = flow.streams.iter().find(|s| s.media == "audio").expect("speech");
        (audio.loss, audio.concealed.expect("speech"), audio.mos.expect("speech"))
    };
    let ((loss, concealed, mos), (_, fixed, fixed_mos)) = (speech("all"), speech("no-skew"));
    // Lost speech is concealed, and little beside: the delay covers the paths' skew.
    assert!((0.5 * loss..1.5 * loss + 0.002).contains(&concealed), "{concealed} of {loss} lost");
    assert!(fixed < 0.1 * concealed, "{fixed}");
    assert!((4.2..4.5).contains(&mos) && (3.4..3.7).contains(&fixed_mos), "{mos}, {fixed_mos}");
}

#[test]
fn the_call_of_figure_8_1_follows_capacity_vectors_as_the_map_itself() {
    let [vectors, map, plain] = ["all", "no-vector", "no-map"].map(|v| synthesis(v, 1));
    let share = vectors.rates.goodput_bps / map.rates.goodput_bps;
    assert!((0.9..1.1).contains(&share), "{share}");
    let bounded = vectors.rates.goodput_bps / plain.rates.goodput_bps;
    assert!((0.8..0.97).contains(&bounded), "the map bounds the call: {bounded}");
}
