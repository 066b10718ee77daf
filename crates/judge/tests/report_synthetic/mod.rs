//! Synthetic runs with the shapes of real ones: rate laws over a fluid queue, recorded packet by packet.

use weir_judge::paper::{Check, ClaimSpec, Note, Paper, Published, TableTitle, reproduce};
use weir_lab::metrics::{Capacity, DropCause, FlowInfo, LinkInfo, Recorder, RecorderConfig, Window};
use weir_lab::results::{FlowKind, RunResult};
use weir_report::page::{ControllerRuns, Report, ScenarioReport};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

const SECONDS: i64 = 200;
const PACKET: DataSize = DataSize::from_bytes(1_000);
const WIRE: DataSize = DataSize::from_bytes(1_028);

struct Flow {
    name: &'static str,
    controller: &'static str,
    kind: FlowKind,
    start: i64,
    stop: i64,
}

/// A flow's rate law.
struct Law {
    rate: f64,
    credit: f64,
    hold: i64,
}

impl Law {
    /// One step of 1 ms, in bit/s.
    fn step(&mut self, controller: &str, queue_ms: f64, fair: f64, lost: bool, now: i64) {
        let congested = queue_ms > 40.0 || lost;
        match controller {
            "gcc" if congested && now > self.hold => (self.rate, self.hold) = (self.rate * 0.85, now + 600),
            "gcc" => self.rate += 60.0,
            "gcc-remb" if queue_ms > 25.0 && now > self.hold => (self.rate, self.hold) = (self.rate * 0.85, now + 300),
            "gcc-remb" => self.rate += 30.0,
            "nada" => self.rate += (fair * 0.97 - self.rate) * 0.001 - queue_ms * 2.0,
            "scream" if queue_ms > 15.0 && now > self.hold => (self.rate, self.hold) = (self.rate * 0.75, now + 400),
            "scream" => self.rate += 40.0,
            _ if lost && now > self.hold => (self.rate, self.hold) = (self.rate * 0.5, now + 300),
            _ => self.rate += 80.0,
        }
        self.rate = self.rate.clamp(100e3, 3e6);
    }
}

fn run(scenario: &str, condition: &str, capacity: &[u64], flows: &[Flow], seed: u64, loss: f64) -> RunResult {
    let steps: Vec<(Timestamp, DataRate)> =
        (0..).zip(capacity).map(|(i, &k)| (Timestamp::from_secs(20 * i), DataRate::from_kbps(k))).collect();
    let capacity = Capacity::steps(steps);
    let window = |(label, a, b): (&str, i64, i64)| Window {
        label: label.into(),
        start: Timestamp::from_secs(a),
        end: Timestamp::from_secs(b),
    };
    let mut recorder = Recorder::new(RecorderConfig {
        scenario: scenario.into(),
        condition: condition.into(),
        controller: flows[0].controller.into(),
        seed,
        flows: (flows.iter())
            .map(|f| FlowInfo {
                name: f.name.into(),
                controller: f.controller.into(),
                kind: f.kind,
                adapts: f.kind != FlowKind::Udp,
                start: Timestamp::from_secs(f.start),
                stop: Some(Timestamp::from_secs(f.stop)),
                playout_deadline: None,
                reported_headers: 0,
                bottleneck: 0,
                further: vec![],
                links: vec![0],
                most: None,
            })
            .collect(),
        links: vec![LinkInfo { name: "bottleneck".into(), capacity: capacity.clone() }],
        bottleneck: 0,
        sampling: TimeDelta::from_millis(100),
        series: true,
        duration: TimeDelta::from_secs(SECONDS),
        burstiness: false,
        windows: [("0-20s", 0, 20), ("20-40s", 20, 40), ("150-200s", 150, 200)].map(window).into(),
    });
    let mut laws: Vec<Law> = flows.iter().map(|_| Law { rate: 300e3, credit: 0.0, hold: 0 }).collect();
    let (mut queue, mut dice) = (0.0f64, seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut chance = || {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice >> 11) as f64 / (1u64 << 53) as f64
    };
    for ms in 0..SECONDS * 1_000 {
        let now = Timestamp::from_millis(ms);
        let rate = capacity.at(now).as_bps_f64();
        queue = (queue - rate / 8e3).max(0.0);
        let queue_ms = queue * 8e3 / rate;
        let active = flows.iter().filter(|f| ms >= f.start * 1_000 && ms < f.stop * 1_000).count().max(1) as f64;
        let queue_size = DataSize::from_bytes(queue as u64);
        recorder.link(0, now, queue_size, TimeDelta::from_millis_f64(queue_ms));
        for (i, (f, law)) in flows.iter().zip(&mut laws).enumerate() {
            if ms < f.start * 1_000 || ms >= f.stop * 1_000 {
                continue;
            }
            let mut lost = false;
            law.credit += law.rate / 8e3;
            while law.credit >= 1_000.0 {
                law.credit -= 1_000.0;
                if f.kind == FlowKind::Rtp {
                    recorder.generated(i, now, PACKET);
                }
                recorder.sent(i, now, PACKET, WIRE);
                if queue > 75_000.0 {
                    recorder.dropped(i, now, DropCause::Queue);
                    lost = true;
                } else if chance() < loss {
                    recorder.dropped(i, now, DropCause::Channel);
                } else {
                    queue += 1_028.0;
                    let way = TimeDelta::from_millis_f64(100.0 + queue * 8e3 / rate);
                    recorder.received(i, now, now - way, PACKET);
                }
            }
            law.step(f.controller, queue_ms, rate / active, lost, ms);
            if f.kind == FlowKind::Rtp && ms % 50 == 0 {
                recorder.target(i, now, DataRate::from_bps_f64(law.rate));
                recorder.metric(i, now, "queue_delay_ms", queue_ms);
            }
        }
    }
    recorder.finish(Timestamp::from_secs(SECONDS))
}

fn flow(name: &'static str, controller: &'static str, start: i64) -> Flow {
    Flow { name, controller, kind: FlowKind::Rtp, start, stop: SECONDS }
}

fn scenario(title: &str, doc: &str, runs: Vec<Vec<RunResult>>) -> ScenarioReport {
    ScenarioReport {
        title: title.into(),
        doc: doc.into(),
        controllers: runs.into_iter().filter_map(ControllerRuns::new).collect(),
        ..ScenarioReport::default()
    }
}

/// A report of four scenarios under three or four controllers, and a paper with numbers that are met and missed.
pub(crate) fn report() -> Report {
    const STEPS: [u64; 10] = [2_000, 1_500, 1_000, 500, 1_000, 1_500, 2_000, 1_500, 1_000, 500];
    const ALL: [&str; 3] = ["gcc", "nada", "scream"];
    let single = |name: &str, condition: &str, steps: &[u64], loss: f64| -> Vec<Vec<RunResult>> {
        let runs = |c| (1..=3).map(|seed| run(name, condition, steps, &[flow("media", c, 0)], seed, loss)).collect();
        ALL.map(runs).into()
    };
    let steps = single("paper/responsiveness", "", &STEPS, 0.0);
    let loss = single("paper/random-loss", "1%", &[2_000], 0.01);
    let fair = |c| {
        vec![run(
            "paper/fairness",
            "",
            &[2_000],
            &[flow("flow 1", c, 0), flow("flow 2", c, 40), flow("flow 3", c, 80)],
            1,
            0.0,
        )]
    };
    let compete = |c| {
        let tcp = Flow { name: "bulk", controller: "newreno", kind: FlowKind::Tcp, start: 20, stop: 100 };
        vec![run("paper/competition", "", &[2_000], &[flow("media", c, 0), tcp], 1, 0.0)]
    };
    let all: Vec<RunResult> = steps.iter().chain(&loss).flatten().cloned().collect();
    Report {
        title: "GCC, NADA and SCReAM on one link".into(),
        summary: "Made-up runs with the shapes of real ones, for looking at the report and testing it.".into(),
        command: "weir judge paper rmcat-comparison --runs 3".into(),
        stopped: None,
        reproduction: Some(reproduce(&paper(), &all)),
        scenarios: vec![
            scenario("Responsiveness", "Capacity changes every 20 s.\n\nOne flow has the link to itself.", steps),
            scenario("Fairness", "Three flows of one algorithm, started at 0, 40 and 80 s.", ALL.map(fair).into()),
            scenario(
                "Competition with TCP",
                "A NewReno flow from 20 to 100 s.",
                ["gcc-remb", "gcc", "nada", "scream"].map(compete).into(),
            ),
            scenario("Random loss [1%]", "", loss),
        ],
    }
}

fn paper() -> Paper {
    let row = |table: &str, scenario: &str, condition: &str, algorithm: &str, value| Published {
        paper: "paper".into(),
        table: table.into(),
        scenario: scenario.into(),
        condition: condition.into(),
        algorithm: algorithm.into(),
        metric: "utilisation".into(),
        unit: "percent".into(),
        value,
        sigma: None,
    };
    let check = |scenario: &str, controller: &str, metric: &str| Check {
        scenario: scenario.into(),
        controller: controller.into(),
        metric: metric.into(),
        ..Check::default()
    };
    let claim = |id: &str, statement: &str, criterion: &str, check: Check| ClaimSpec {
        id: id.into(),
        statement: statement.into(),
        source: "section 3.1, figure 2".into(),
        criterion: criterion.into(),
        checks: vec![check],
    };
    let title = |table: &str, title: &str| TableTitle { table: table.into(), title: title.into() };
    Paper {
        name: "paper".into(),
        title: "Congestion Control for RTP Media: A Comparison on Simulated Environment".into(),
        tables: vec![title("1", "Average link utilisation"), title("2", "Capacity utilisation in lossy link")],
        published: vec![
            row("1", "responsiveness", "0-20s", "gcc", 56.79),
            row("1", "responsiveness", "20-40s", "gcc", 88.10),
            row("1", "responsiveness", "0-20s", "nada", 80.41),
            row("1", "responsiveness", "20-40s", "nada", 95.54),
            row("1", "responsiveness", "0-20s", "scream", 43.41),
            row("1", "responsiveness", "20-40s", "scream", 61.08),
            row("2", "random-loss", "1%", "gcc", 85.81),
            row("2", "random-loss", "1%", "nada", 92.65),
            row("2", "random-loss", "5%", "nada", 14.40),
            row("2", "random-loss", "1%", "scream", 15.30),
        ],
        places: vec![],
        explained: vec![],
        claims: vec![
            claim(
                "queue",
                "SCReAM keeps the lowest queue",
                "Mean queueing delay of the bottleneck: SCReAM below GCC and NADA",
                Check { below: vec!["gcc".into(), "nada".into()], ..check("responsiveness", "scream", "queue_delay_mean_ms") },
            ),
            claim(
                "nada",
                "NADA uses no more than half of the link",
                "Utilisation over the whole run is at most 0.5",
                Check { at_most: Some(0.5), ..check("responsiveness", "nada", "utilisation") },
            ),
            claim(
                "open",
                "A controller that nobody ran is starved by TCP",
                "Its share against TCP is at most 0.1",
                Check { at_most: Some(0.1), ..check("competition", "absent", "tcp_share") },
            ),
        ],
        notes: vec![Note {
            title: "Utilisation under 1 % loss".into(),
            text: "The made-up rate laws do not react to single losses, so that the published collapse cannot appear.\n\nTried: nothing, these runs are made up.".into(),
        }],
    }
}
