//! Calls whose rate is set from outside, and episodes of them.

use std::sync::{Arc, Mutex};
use weir_cc::cue::{PacketResult, SentPacket, TransportFeedback};
use weir_cc::intervals::{Decide, IntervalController, Observation, STEP, rate, spec};
use weir_cc::{Pair, Registry, Sender};
use weir_lab::episode::{Course, Episodes, LinkRanges, Reward, Stepped};
use weir_lab::run::{BareRun, SteppedCall, Stepping};
use weir_lab::scenario::{Scenario, ScenarioFile};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// A falling and rising capacity, losses, and a competing TCP transfer, which uses much of the simulator.
const SCENARIO: &str = r#"
title = "Stepped"
duration = "12 s"
compare = ["gcc"]
[links.bottleneck]
rate = { steps = [{ at = "0 s", rate = "2 Mbps" }, { at = "4 s", rate = "600 kbps" }, { at = "8 s", rate = "3 Mbps" }] }
delay = "25 ms"
queue = "200 ms"
loss = 0.01
[rtp.call]
controller = "$controller"
floor = "50 kbps"
ceiling = "5 Mbps"
[tcp.bulk]
algorithm = "cubic"
start = "2 s"
stop = "6 s"
"#;

fn file(registry: &Registry) -> ScenarioFile {
    ScenarioFile::parse("stepped", SCENARIO, std::path::Path::new("."), registry).expect("sound")
}

/// The rates of each step: up and down, some beyond the bounds.
fn script(n: usize) -> DataRate {
    rate(0.9 * (n as f64 / 9.0).sin())
}

/// Follows the script without steps, and keeps what was reported.
struct Script {
    n: usize,
    packets: Arc<Mutex<Vec<PacketResult>>>,
}

impl Decide for Script {
    fn on_sent(&mut self, _: &SentPacket) {}
    fn on_feedback(&mut self, feedback: &TransportFeedback<'_>) {
        self.packets.lock().expect("unpoisoned").extend_from_slice(feedback.packets);
    }
    fn decide(&mut self, _: bool, _: Timestamp) -> DataRate {
        self.n += 1;
        script(self.n - 1)
    }
}

#[test]
fn a_stepped_call_is_the_same_run_as_one_without_steps() {
    let mut registry = Registry::builtin();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let packets = Arc::clone(&seen);
    registry.register(spec("script", "a script", "this test", STEP), move |_, setup| {
        let script = Script { n: 0, packets: Arc::clone(&packets) };
        let made = IntervalController::new(script, &setup.start(), STEP);
        Ok(Pair::alone(Sender::Custom(Box::new(made))))
    });
    let scenario = file(&registry).scenario(None, Some("script"), &registry).expect("sound");
    let mut whole = BareRun::new(&scenario, 5, &registry).expect("runs");
    whole.run_until(Timestamp::from_secs(12) - TimeDelta::from_nanos(1)).expect("runs");
    let seen = seen.lock().expect("unpoisoned");

    let stepping = Stepping::new(&Registry::builtin(), STEP, 1, None).expect("steps");
    let scenario = stepping.scenario(&file(stepping.registry()), None).expect("one call");
    let mut call = stepping.call(&scenario, 5).expect("runs");
    let (mut stepped, mut sent, mut lost) = (Vec::new(), 0, 0);
    while !call.is_over() {
        let n = stepped.len();
        let interval = *call.step(script(n)).expect("runs");
        sent += interval.sent.as_bytes();
        lost += interval.lost;
        stepped.push(call.packets().to_vec());
    }
    assert_eq!(stepped.len(), 200);
    assert_eq!(stepped.concat(), *seen);
    assert_eq!(call.events(), whole.events());
    let reported: u64 = seen.iter().filter(|p| !p.was_lost).map(|p| p.size.as_bytes()).sum();
    assert!(reported < sent && sent < reported + 100_000, "{reported} of {sent} bytes");
    assert!(lost > 20 && seen.len() > 800, "{lost} of {}", seen.len());
}

#[test]
fn an_observed_controller_runs_as_it_does_alone() {
    let registry = Registry::builtin();
    let scenario = file(&registry).scenario(None, Some("gcc"), &registry).expect("sound");
    let mut alone = BareRun::new(&scenario, 9, &registry).expect("runs");
    alone.run_until(Timestamp::from_secs(12) - TimeDelta::from_nanos(1)).expect("runs");
    let stepping = Stepping::new(&registry, STEP, 1, Some("gcc")).expect("known");
    let scenario = stepping.scenario(&file(stepping.registry()), None).expect("one call");
    let mut call = stepping.call(&scenario, 9).expect("runs");
    let mut targets = Vec::new();
    while !call.is_over() {
        targets.push(call.step(DataRate::ZERO).expect("runs").target_bps);
    }
    assert_eq!(call.events(), alone.events());
    let last = alone.calls().next().and_then(|c| c.target()).expect("a target").media_rate.as_bps_f64();
    assert_eq!(targets.last().copied(), Some(last));
    assert!(targets[0] > 0.0 && targets.iter().any(|t| *t > 1.5 * targets[0]));
    assert!(Stepping::new(&registry, STEP, 1, Some("gc")).is_err());
}

#[test]
fn only_scenarios_with_one_call_to_set_are_stepped() {
    let stepping = Stepping::new(&Registry::builtin(), STEP, 1, None).expect("steps");
    let two = SCENARIO.replace("[tcp.bulk]", "[rtp.other]\ncontroller = \"$controller\"\n[tcp.bulk]");
    for text in [two, SCENARIO.replace("$controller", "gcc").replace("compare = [\"gcc\"]\n", "")] {
        let file = ScenarioFile::parse("wrong", &text, std::path::Path::new("."), stepping.registry()).expect("sound");
        let refused = stepping.scenario(&file, None).expect_err("not one call").to_string();
        assert!(refused.contains("expected one"), "{refused}");
    }
}

fn course(scenario: impl Fn(&Stepping) -> Scenario) -> Arc<Course> {
    let observation = Observation::Recent(5);
    let stepping = Stepping::new(&Registry::builtin(), STEP, observation.intervals(), None).expect("steps");
    let scenarios = vec![scenario(&stepping)];
    let links = LinkRanges { rate_bps: Some((300e3, 3e6)), change_s: Some((1.0, 4.0)), ..LinkRanges::default() };
    Arc::new(Course { stepping, scenarios, links: Some(links), observation, reward: Reward::OpenNetLab })
}

#[test]
fn episodes_follow_their_seed() {
    let course = course(|s| s.scenario(&file(s.registry()), None).expect("one call"));
    let play = |seed: u64, steps: usize| {
        let mut episodes = Episodes::new(Arc::clone(&course), seed);
        let mut observation = vec![9.0_f32; 40];
        episodes.begin(&mut observation).expect("runs");
        assert!(observation.iter().all(|v| *v == 0.0));
        let step = |n: usize| {
            let stepped = episodes.step((n as f64 / 30.0).sin(), &mut observation).expect("runs");
            assert!(observation.iter().all(|v| (-1.0..=1.0).contains(v)), "{observation:?}");
            (stepped, observation.clone())
        };
        (0..steps).map(step).collect::<Vec<(Stepped, Vec<f32>)>>()
    };
    let once = play(3, 402);
    // A number without a sample is NaN, which equals nothing.
    assert_eq!(format!("{once:?}"), format!("{:?}", play(3, 402)));
    assert_ne!(once[..50], play(4, 50)[..]);
    let over: Vec<usize> = once.iter().enumerate().filter(|(_, s)| s.0.is_over).map(|(n, _)| n).collect();
    // The step after the end begins the next episode.
    assert_eq!(over, [199, 400]);
    assert!(once[200].0.numbers[0].is_nan() && once[200].0.reward == 0.0);
    let capacities: Vec<f64> = once[..200].iter().map(|s| s.0.numbers[3]).collect();
    assert!(capacities.iter().all(|c| (300e3..=3e6).contains(c)));
    assert_ne!(capacities, once[201..401].iter().map(|s| s.0.numbers[3]).collect::<Vec<_>>());
}

#[test]
fn calls_can_move_between_threads() {
    fn moves<T: Send>() {}
    moves::<SteppedCall>();
    moves::<Episodes>();
    fn is_shared<T: Sync>() {}
    is_shared::<Course>();
}
