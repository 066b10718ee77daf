//! Policies in calls: the same as in training, at any number of threads.

use super::models::{bytes, linear, model, node, weights};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use weir_cc::intervals::{Observation, STEP, rate};
use weir_cc::{Controller, Limits, Registry, Setup};
use weir_lab::compare::{Plan, Repeat};
use weir_lab::run::{RunOptions, Stepping};
use weir_lab::scenario::ScenarioFile;
use weir_onnx::Policy;
use weir_units::{DataRate, Timestamp};

const SHORT: &str = r#"
title = "Short"
duration = "12 s"
compare = ["gcc"]
[links.bottleneck]
rate = "2 Mbps"
delay = "20 ms"
queue = "200 ms"
loss = 0.01
[rtp.call]
controller = "$controller"
floor = "50 kbps"
ceiling = "20 Mbps"
"#;

/// A policy that follows the rate received, and falls with the queue: of the newest two intervals.
fn follower() -> Vec<u8> {
    let mut values = [0.0; 16];
    (values[0], values[3], values[5], values[8]) = (0.7, -0.8, -1.0, 0.25);
    bytes(&linear(&values, 0.1))
}

fn registry() -> Registry {
    let mut registry = Registry::builtin();
    weir_onnx::add_to(&mut registry);
    registry
}

fn written(folder: &Path, name: &str, bytes: &[u8]) -> (String, PathBuf) {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("writable");
    (format!("onnx:{}", path.display()), path)
}

fn setup() -> Setup {
    let limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(20_000) };
    Setup { limits, start_rate: DataRate::from_kbps(300), now: Timestamp::ZERO, seed: 1, params: Vec::new() }
}

#[test]
fn a_policy_decides_in_a_scenario_as_it_did_in_training() {
    let folder = tempfile::tempdir().expect("writable");
    let (name, path) = written(folder.path(), "policy.onnx", &follower());
    let policy = Policy::load(&path).expect("sound");
    let registry = registry();
    registry.find(&name).expect("sound");
    let file = ScenarioFile::parse("short", SHORT, Path::new("."), &registry).expect("sound");
    let kept = Observation::Recent(2).intervals();
    let outside = Stepping::new(&registry, STEP, kept, None).expect("always");
    let observed = Stepping::new(&registry, STEP, kept, Some(&name)).expect("found");
    let scenario = |s: &Stepping| s.scenario(&file, None).expect("one flow");
    let mut trained = outside.call(&scenario(&outside), 5).expect("sound");
    let mut used = observed.call(&scenario(&observed), 5).expect("sound");
    let (mut observation, mut rates) = (vec![0.0; 16], Vec::new());
    while !trained.is_over() {
        let action = policy.action(&observation).expect("finite");
        let interval = *trained.step(rate(action)).expect("it runs");
        assert_eq!(interval, *used.step(DataRate::ZERO).expect("it runs"), "at {:?}", trained.now());
        trained.with_meter(|meter| Observation::Recent(2).write(meter, &mut observation));
        rates.push(interval.receive_rate());
    }
    let late = rates[100..].iter().sum::<f64>() / rates[100..].len() as f64;
    assert_eq!(rates.len(), 200);
    assert!((0.5e6..2.1e6).contains(&late), "{late}");
}

#[test]
fn results_are_the_same_at_any_number_of_threads_and_names_are_found_in_scenarios() {
    let folder = tempfile::tempdir().expect("writable");
    let (name, _) = written(folder.path(), "policy.onnx", &follower());
    let results = [1, 3].map(|threads| {
        // Its own registry each time: the file is read again.
        let registry = registry();
        let text = SHORT.replace(r#"["gcc"]"#, &format!("[{name:?}, \"{name}+fec\"]"));
        let file = ScenarioFile::parse("short", &text, Path::new("."), &registry).expect("sound");
        let repeat = Repeat { runs: 3, own: false, seed: Some(1) };
        let plan = Plan::new(&[file], None, repeat, &registry).expect("sound");
        let stop = AtomicBool::new(false);
        let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
        let outcome = plan.run(threads, &options, None, &|_, _| {});
        assert_eq!((outcome.count(), outcome.failed), (6, 0));
        outcome.runs().map(|r| format!("{r:?}")).collect::<Vec<_>>()
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn an_output_that_is_no_number_holds_the_rate_and_is_counted() {
    let folder = tempfile::tempdir().expect("writable");
    // The logarithm of -1, whatever is observed.
    let nodes = vec![node("Gemm", &["observation", "w", "b"], "sum"), node("Log", &["sum"], "action")];
    let nan = model(8, nodes, vec![weights("w", &[8, 1], &[0.0; 8]), weights("b", &[1], &[-1.0])]);
    let (name, _) = written(folder.path(), "nan.onnx", &bytes(&nan));
    let registry = registry();
    registry.find(&name).expect("sound");
    let mut made = registry.make(&name, &setup()).expect("sound").sender;
    for ms in 0..600 {
        made.on_timeout(Timestamp::from_millis(ms));
    }
    assert_eq!(made.target().media_rate, DataRate::from_kbps(300));
    let mut metrics = Vec::new();
    made.metrics(&mut |name, value| metrics.push((name, value)));
    assert_eq!(metrics[1..], [("decisions", 10.0), ("invalid_outputs", 10.0)]);
    assert!(metrics[0].0 == "action" && metrics[0].1.is_nan());
}

#[test]
fn a_model_of_the_challenge_sets_the_rate_of_a_call() {
    let folder = tempfile::tempdir().expect("writable");
    let (name, _) = written(folder.path(), "challenge.onnx", &bytes(&super::models::challenge(10e3)));
    let registry = registry();
    registry.find(&name).expect("sound");
    let mut made = registry.make(&name, &setup()).expect("sound").sender;
    // Eleven decisions with nothing received: each is 10 kbit/s more than the one before, from zero on.
    for ms in 0..=600 {
        made.on_timeout(Timestamp::from_millis(ms));
    }
    assert_eq!(made.target().media_rate, DataRate::from_kbps(100));
    let mut metrics = Vec::new();
    made.metrics(&mut |name, value| metrics.push((name, value)));
    assert_eq!(metrics, [("estimate", 100e3), ("decisions", 11.0), ("invalid_outputs", 0.0)]);
}

#[test]
fn only_names_that_were_found_are_made_and_faults_name_the_file() {
    let folder = tempfile::tempdir().expect("writable");
    let (name, _) = written(folder.path(), "policy.onnx", &follower());
    let registry = registry();
    // A name from a stranger reads no file.
    assert!(registry.get(&name).is_none() && registry.make(&name, &setup()).is_err());
    assert_eq!(registry.find(&name).map(|s| s.name.clone()), Ok(name.clone()));
    assert!(registry.make(&format!("{name}+fec"), &setup()).is_ok());
    assert!(registry.specs().all(|s| s.name != name));
    let with = Setup { params: vec![("beta".into(), 0.5)], ..setup() };
    assert!(registry.make(&name, &with).err().is_some_and(|e| e.to_string().contains("beta")));
    let (short, _) = written(folder.path(), "short.onnx", &bytes(&linear(&[0.0; 12], 0.0)));
    let why = registry.find(&short).expect_err("refused").to_string();
    assert!(why.contains("short.onnx") && why.contains("[1, 8 n]"), "{why}");
    let text = SHORT.replace(r#""$controller""#, &format!("{short:?}")).replace("compare = [\"gcc\"]\n", "");
    let error = ScenarioFile::parse("short", &text, Path::new("."), &registry).expect_err("refused");
    assert!(error.to_string().contains("short.onnx") && error.position().is_some(), "{error}");
}
