//! `weir bench`: speed by CPU time, compared with the goals and, if it is installed, with ns-3.

#[cfg(target_os = "linux")]
mod loopback;
mod many;
mod ns3;

use crate::Done;
use crate::args::{BenchArgs, Ns3};
use crate::output::{Failure, print, print_report, remark};
use crate::progress::Progress;
use crate::session::Session;
use crate::tables::{fold, table};
use cpu_time::ThreadTime;
use ns3::Beside;
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::Cell;
use weir_bench::call::bare_call;
use weir_bench::simulator::SCENARIOS;
use weir_cc::drive::{Drive, PACKETS_PER_STEP};
use weir_lab::run::{RunError, RunOptions, run};
use weir_lab::scenario::{Scenario, ScenarioFile};
use weir_units::TimeDelta;

/// Measurements of which the best counts, after one to warm up.
const TRIES: u32 = 3;
/// The link of the whole sessions, 2 Mbit/s and 100 ms, without random loss in its first variant.
const SESSION: &str = "rmcat-comparison/random-loss";
const SESSION_CONTROLLERS: [&str; 3] = ["gcc", "nada", "scream"];
/// Simulated seconds at `--scale 1`.
const SESSION_SECONDS: f64 = 2_000.0;
const RUN_SECONDS: f64 = 500.0;
/// Steps of 100 ms of media at `--scale 1`.
const DRIVE_STEPS: f64 = 20_000.0;

/// Times ns-3 without its flow monitor.
const TIMES_NS3: f64 = 120.0;
/// Bottleneck packets a CPU second.
const GIGABIT_PACKETS: f64 = 1.5e6;
/// Simulated seconds of an RTP session a CPU second.
const SESSION_SPEED: f64 = 10_000.0;
/// Nanoseconds a media packet, the sent history included.
const CONTROLLER_NS: [(&str, f64); 3] = [("nada", 60.0), ("scream", 250.0), ("gcc", 300.0)];

/// The unit of a row's speed.
#[derive(Clone, Copy, PartialEq, Serialize, JsonSchema)]
enum Unit {
    #[serde(rename = "simulated_s_per_cpu_s")]
    Seconds,
    #[serde(rename = "packets_per_cpu_s")]
    Packets,
    #[serde(rename = "ns_per_packet")]
    Nanoseconds,
}

impl Unit {
    fn label(self) -> &'static str {
        match self {
            Self::Seconds => "s/CPU s",
            Self::Packets => "packets/CPU s",
            Self::Nanoseconds => "ns/packet",
        }
    }
}

/// What a speed should come to.
#[derive(Serialize, JsonSchema)]
struct Goal {
    /// In the row's unit, or times ns-3.
    value: f64,
    /// Whether it is in times ns-3's speed.
    times_ns3: bool,
    /// Absent if ns-3 was not measured.
    met: Option<bool>,
}

/// One benchmark.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Benchmark")]
struct Row {
    /// Its name.
    name: String,
    /// What it does.
    summary: String,
    /// In `unit`.
    speed: f64,
    /// What the speed counts.
    unit: Unit,
    /// Simulated time in s.
    simulated_s: f64,
    /// Least CPU time of the runs in s.
    cpu_s: f64,
    /// The first over the second.
    simulated_s_per_cpu_s: f64,
    /// Packets that the simulation sent a second of CPU time.
    packets_per_cpu_s: Option<f64>,
    /// Memory of the process per call, without metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_per_call: Option<u64>,
    /// What the speed should come to.
    goal: Option<Goal>,
    /// The same in ns-3, where it was measured.
    ns3: Option<Beside>,
}

/// What `--json` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Report {
    /// Weir's version.
    version: &'static str,
    /// Whether this is a debug build, whose speed says little.
    debug_build: bool,
    /// Share of the usual simulated time.
    scale: f64,
    /// Runs of which the fastest counts.
    best_of: u32,
    /// The benchmarks.
    rows: Vec<Row>,
    /// Datagrams over the loopback device, by the clock.
    #[cfg(target_os = "linux")]
    loopback: Vec<loopback::Row>,
}

pub(crate) fn bench(session: &Session, args: &BenchArgs) -> Done {
    if !(args.scale.is_finite() && args.scale > 0.0 && args.scale <= 1_000.0) {
        return Err(Failure::Work("--scale must lie above 0 and not above 1000".into()));
    }
    if cfg!(debug_assertions) && !args.quiet {
        remark("this is a debug build, whose speed is not representative; use cargo run --release -- bench");
    }
    let ns3 = match args.ns3 {
        Ns3::Never => Vec::new(),
        when => match ns3::measure(session, args.scale, TRIES, args.quiet) {
            Ok(figures) => figures,
            Err(ns3::Trouble::Interrupted) => return Err(Failure::Interrupted),
            Err(ns3::Trouble::Absent(why)) if when == Ns3::Always => return Err(Failure::Work(why)),
            Err(ns3::Trouble::Absent(why)) => {
                if !args.quiet {
                    remark(&format!("ns-3 is not measured: {why}"));
                }
                Vec::new()
            }
        },
    };
    let work = Work::new(session, args);
    // First, while the process has no memory to reuse.
    let many = many::calls(&work)?;
    let mut rows = simulator(&work, &ns3)?;
    rows.extend(sessions(&work)?);
    rows.extend(many);
    rows.extend(controllers(&work)?);
    #[cfg(target_os = "linux")]
    let loopback = loopback::measure(&work)?;
    drop(work);
    if args.json {
        let version = env!("CARGO_PKG_VERSION");
        let debug_build = cfg!(debug_assertions);
        return print_report(
            "bench",
            &Report {
                version,
                debug_build,
                scale: args.scale,
                best_of: TRIES,
                rows,
                #[cfg(target_os = "linux")]
                loopback,
            },
        );
    }
    print(&show(&rows))?;
    #[cfg(target_os = "linux")]
    print(&loopback::show(&loopback))?;
    Ok(())
}

/// What all benchmarks are measured with.
struct Work<'a> {
    session: &'a Session,
    /// Share of the usual simulated time.
    scale: f64,
    progress: Progress,
    /// Benchmarks that have begun, and all.
    begun: Cell<usize>,
    planned: usize,
}

impl<'a> Work<'a> {
    fn new(session: &'a Session, args: &BenchArgs) -> Self {
        let mut planned = weir_bench::many::NUMBERS.len() + SCENARIOS.len() + 2 * SESSION_CONTROLLERS.len();
        planned += session.registry.specs().len();
        #[cfg(target_os = "linux")]
        {
            planned += loopback::TRANSPORTS.len();
        }
        Self { session, scale: args.scale, progress: Progress::share(args.quiet), begun: Cell::new(0), planned }
    }

    /// The next benchmark begins. Errors: Ctrl-C.
    fn begin(&self, name: &str) -> Done {
        let begun = self.begun.replace(self.begun.get() + 1);
        self.progress.set_share(begun as f64 / self.planned as f64);
        self.progress.doing(name.into());
        self.check()
    }

    fn check(&self) -> Done {
        if self.session.stopped() { Err(Failure::Interrupted) } else { Ok(()) }
    }
}

/// The result of a benchmark and its minimum CPU time.
fn best<T>(work: &Work<'_>, name: &str, mut once: impl FnMut() -> Result<T, Failure>) -> Result<(T, f64), Failure> {
    work.begin(name)?;
    let mut made = once()?;
    let mut least = f64::INFINITY;
    for _ in 0..TRIES {
        work.check()?;
        let start = ThreadTime::now();
        made = once()?;
        least = least.min(start.elapsed().as_secs_f64());
    }
    Ok((made, least.max(1e-9)))
}

fn simulator(work: &Work<'_>, ns3: &[ns3::Figures]) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for s in SCENARIOS {
        let gigabit = s.name == "gigabit";
        let seconds = work.scale * if gigabit { 5.0 } else { 10_000.0 };
        let (done, cpu_s) = best(work, s.name, || Ok((s.run)(TimeDelta::from_secs_f64(seconds))))?;
        let packets = done.packets as f64 / cpu_s;
        let (speed, unit) = if gigabit { (packets, Unit::Packets) } else { (seconds / cpu_s, Unit::Seconds) };
        let beside = Beside::new(ns3, s.name, speed, unit == Unit::Packets);
        let goal = if gigabit {
            Goal { value: GIGABIT_PACKETS, times_ns3: false, met: Some(packets >= GIGABIT_PACKETS) }
        } else {
            let met = beside.as_ref().map(|b| b.times_bare >= TIMES_NS3);
            Goal { value: TIMES_NS3, times_ns3: true, met }
        };
        rows.push(Row {
            name: s.name.into(),
            summary: s.summary.into(),
            speed,
            unit,
            simulated_s: seconds,
            cpu_s,
            simulated_s_per_cpu_s: seconds / cpu_s,
            packets_per_cpu_s: Some(packets),
            bytes_per_call: None,
            goal: Some(goal),
            ns3: beside,
        });
    }
    Ok(rows)
}

/// One RTP call, both ends, with real RTP and RTCP bytes: first without metrics, then with all of them.
fn sessions(work: &Work<'_>) -> Result<Vec<Row>, Failure> {
    let registry = &work.session.registry;
    let file = ScenarioFile::open(SESSION, registry)?;
    let variant = file.variants().first().copied().flatten();
    let lasting = |controller: &str, seconds: f64| -> Result<Scenario, Failure> {
        let mut s = file.scenario(variant, Some(controller), registry)?;
        s.duration = TimeDelta::from_secs_f64(seconds * work.scale);
        s.flows.iter_mut().for_each(|f| f.stop = s.duration);
        Ok(s)
    };
    let row = |name, summary, scenario: &Scenario, cpu_s, packets: Option<u64>, goal: Option<f64>| {
        let simulated_s = scenario.duration.as_secs_f64();
        let speed = simulated_s / cpu_s;
        let goal = goal.map(|value| Goal { value, times_ns3: false, met: Some(speed >= value) });
        let packets_per_cpu_s = packets.map(|p| p as f64 / cpu_s);
        let (unit, simulated_s_per_cpu_s) = (Unit::Seconds, speed);
        Row {
            name,
            summary,
            speed,
            unit,
            simulated_s,
            cpu_s,
            simulated_s_per_cpu_s,
            packets_per_cpu_s,
            bytes_per_call: None,
            goal,
            ns3: None,
        }
    };
    let mut rows = Vec::new();
    for controller in SESSION_CONTROLLERS {
        let scenario = lasting(controller, SESSION_SECONDS)?;
        let name = format!("session-{controller}");
        let (call, cpu) = best(work, &name, || bare_call(&scenario, 1, registry).map_err(Failure::work))?;
        let summary = format!("one RTP session under {controller} over 2 Mbit/s and 100 ms, without metrics");
        rows.push(row(name, summary, &scenario, cpu, Some(call.packets), Some(SESSION_SPEED)));
    }
    for controller in SESSION_CONTROLLERS {
        let scenario = lasting(controller, RUN_SECONDS)?;
        let options = RunOptions { registry, series: false, stop: &work.session.stop, progress: &|_| {} };
        let name = format!("run-{controller}");
        let ((), cpu) = best(work, &name, || match run(&scenario, 1, &options) {
            Err(RunError::Stopped { .. }) => Err(Failure::Interrupted),
            Err(e) => Err(Failure::work(e)),
            Ok(_) => Ok(()),
        })?;
        let summary = format!("the session under {controller} as weir run does it, metrics included");
        rows.push(row(name, summary, &scenario, cpu, None, None));
    }
    Ok(rows)
}

/// Controllers with only the sent history around them.
fn controllers(work: &Work<'_>) -> Result<Vec<Row>, Failure> {
    let registry = &work.session.registry;
    let steps = (DRIVE_STEPS * work.scale).ceil() as u64;
    let packets = (steps * PACKETS_PER_STEP) as f64;
    let mut rows = Vec::new();
    for spec in registry.specs() {
        let mut drive = Drive::new(registry, &spec.name, None).map_err(Failure::work)?;
        let name = format!("controller-{}", spec.name);
        let ((), cpu_s) = best(work, &name, || {
            (0..steps).for_each(|_| drive.step());
            Ok(())
        })?;
        std::hint::black_box(drive.checksum());
        let speed = cpu_s * 1e9 / packets;
        let goal = CONTROLLER_NS.iter().find(|g| g.0 == spec.name).map(|g| g.1);
        let simulated_s = steps as f64 * 0.1;
        rows.push(Row {
            name,
            summary: format!("{} and the sent history alone, for each media packet, feedback included", spec.name),
            speed,
            unit: Unit::Nanoseconds,
            simulated_s,
            cpu_s,
            simulated_s_per_cpu_s: simulated_s / cpu_s,
            packets_per_cpu_s: Some(packets / cpu_s),
            bytes_per_call: None,
            goal: goal.map(|value| Goal { value, times_ns3: false, met: Some(speed <= value) }),
            ns3: None,
        });
    }
    Ok(rows)
}

/// A whole number with its thousands apart.
fn grouped(x: f64) -> String {
    let digits = format!("{x:.0}");
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

fn show(rows: &[Row]) -> String {
    let mut t = table(&["benchmark", "speed", "per", "goal", "ns-3.37", "Weir is", "+ monitor", "Weir is"], 1);
    for r in rows {
        let goal = r.goal.as_ref().map_or("-".to_owned(), |g| {
            let times = if g.times_ns3 { "x ns-3" } else { "" };
            let met = match g.met {
                Some(true) => "met",
                Some(false) => "MISSED",
                None => "?",
            };
            format!("{}{times}: {met}", grouped(g.value))
        });
        let ns3 = |f: fn(&Beside) -> String| r.ns3.as_ref().map_or("-".to_owned(), f);
        t.add_row([
            r.name.clone(),
            grouped(r.speed),
            r.unit.label().to_owned(),
            goal,
            ns3(|b| grouped(b.bare)),
            ns3(|b| format!("{:.0}x", b.times_bare)),
            ns3(|b| grouped(b.flow_monitor)),
            ns3(|b| format!("{:.0}x", b.times_flow_monitor)),
        ]);
    }
    let note = format!(
        "CPU time of one thread, the best of {TRIES} after a warm-up. Beside ns-3: the same unit, bare and with its flow \
         monitor, measured just now. session: RTP and RTCP bytes, no metrics; run: with metrics; --json says more."
    );
    format!("{t}\n{}\n", fold(&note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        let cases = [(0.0, "0"), (999.4, "999"), (1_000.0, "1,000"), (123_456.0, "123,456"), (1.5e6, "1,500,000")];
        for (x, text) in cases {
            assert_eq!(grouped(x), text);
        }
    }

    #[test]
    fn the_table_is_narrow_and_states_which_goals_are_met() {
        let row = |met| Row {
            name: "controller-nada-receiver".into(),
            summary: String::new(),
            speed: 12_345_678.0,
            unit: Unit::Packets,
            simulated_s: 1.0,
            cpu_s: 1.0,
            simulated_s_per_cpu_s: 1.0,
            packets_per_cpu_s: None,
            bytes_per_call: None,
            goal: Some(Goal { value: 1.5e6, times_ns3: false, met }),
            ns3: Some(Beside { bare: 123_456.0, times_bare: 1e4, flow_monitor: 123_456.0, times_flow_monitor: 1e4 }),
        };
        let shown = show(&[row(Some(true)), row(Some(false)), row(None)]);
        for part in ["1,500,000: met", "1,500,000: MISSED", "1,500,000: ?", "10000x"] {
            assert!(shown.contains(part), "{part} in\n{shown}");
        }
        assert!(shown.lines().all(|l| l.chars().count() < 120), "{shown}");
    }
}
