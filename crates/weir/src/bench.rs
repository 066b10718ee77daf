//! `weir bench`: speed by CPU time.

use crate::Done;
use crate::args::BenchArgs;
use crate::output::{Failure, print, print_json, remark};
use crate::session::Session;
use crate::tables::table;
use cpu_time::ThreadTime;
use serde::Serialize;
use weir_lab::run::{RunError, RunOptions, run};
use weir_lab::scenario::ScenarioFile;
use weir_sim::speed::SCENARIOS;
use weir_units::TimeDelta;

/// What Debian's ns-3.37 does with the same scenarios on a machine like those that Weir is developed on: simulated
/// seconds, and bottleneck packets, a CPU second. `benches/compare` measures it anew.
const NS3: [(&str, &str); 3] =
    [("udp", "130 to 210 s"), ("udp-newreno", "130 to 210 s"), ("gigabit", "11,000 to 33,000 packets")];

/// A whole RTP session, both ends, on the paper's link.
const SESSION: &str = r#"
title = "One RTP session on 2 Mbps and 100 ms"
duration = "1000 s"
links.bottleneck = { rate = "2 Mbps", delay = "100 ms", queue = "75000 B" }
rtp.video = { controller = "$controller", ceiling = "3 Mbps" }
"#;

#[derive(Serialize)]
struct Row {
    name: String,
    summary: String,
    simulated_s: f64,
    cpu_s: f64,
    simulated_s_per_cpu_s: f64,
    packets_per_cpu_s: Option<f64>,
    ns3: Option<&'static str>,
}

pub(crate) fn bench(session: &Session, args: &BenchArgs) -> Done {
    if !(args.scale.is_finite() && args.scale > 0.0 && args.scale <= 1_000.0) {
        return Err(Failure::Work("--scale must lie above 0 and not above 1000".into()));
    }
    if cfg!(debug_assertions) && !args.quiet {
        remark("this is a debug build: its speed says little; use cargo run --release -- bench");
    }
    let mut rows = Vec::new();
    for s in SCENARIOS {
        let seconds = args.scale * if s.name == "gigabit" { 5.0 } else { 10_000.0 };
        let start = ThreadTime::now();
        let work = (s.run)(TimeDelta::from_secs_f64(seconds));
        let cpu = start.elapsed().as_secs_f64().max(1e-9);
        rows.push(Row {
            name: s.name.into(),
            summary: s.summary.into(),
            simulated_s: seconds,
            cpu_s: cpu,
            simulated_s_per_cpu_s: seconds / cpu,
            packets_per_cpu_s: Some(work.packets as f64 / cpu),
            ns3: NS3.iter().find(|n| n.0 == s.name).map(|n| n.1),
        });
        if session.stopped() {
            return Err(Failure::Interrupted);
        }
    }
    let file = ScenarioFile::parse("bench", SESSION, ".".as_ref(), &session.registry)?;
    for mut scenario in file.scenarios(None, &session.registry)? {
        scenario.duration = scenario.duration.mul_f64(args.scale);
        scenario.flows.iter_mut().for_each(|f| f.stop = scenario.duration);
        let options = RunOptions { registry: &session.registry, series: false, stop: &session.stop, progress: &|_| {} };
        let start = ThreadTime::now();
        let result = run(&scenario, 1, &options);
        let cpu = start.elapsed().as_secs_f64().max(1e-9);
        match result {
            Err(RunError::Stopped { .. }) => return Err(Failure::Interrupted),
            Err(e) => return Err(Failure::work(e)),
            Ok(_) => {}
        }
        let seconds = scenario.duration.as_secs_f64();
        let controller = scenario.controller.unwrap_or_default();
        rows.push(Row {
            name: format!("session-{controller}"),
            summary: format!("one RTP session under {controller} over 2 Mbit/s and 100 ms, metrics included"),
            simulated_s: seconds,
            cpu_s: cpu,
            simulated_s_per_cpu_s: seconds / cpu,
            packets_per_cpu_s: None,
            ns3: None,
        });
    }
    if args.json {
        return print_json(&rows);
    }
    let header = ["benchmark", "what it is", "simulated s / CPU s", "packets / CPU s", "ns-3.37 / CPU s"];
    let mut t = table(&header, 2);
    for r in &rows {
        let packets = r.packets_per_cpu_s.map_or("-".to_owned(), |p| format!("{p:.0}"));
        let speed = format!("{:.0}", r.simulated_s_per_cpu_s);
        t.add_row([&r.name, &r.summary, &speed, &packets, r.ns3.unwrap_or("-")]);
    }
    print(&format!("{t}\n"))
}
