//! Prints the speed of each fixed scenario as a JSON line: `cargo run --release -p weir-bench --example simulator_speed [NAME] [SECONDS]`.

use cpu_time::ProcessTime;
use weir_bench::simulator::SCENARIOS;
use weir_units::TimeDelta;

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next();
    let seconds = args.next().and_then(|s| s.parse::<f64>().ok());
    for s in SCENARIOS.iter().filter(|s| name.as_deref().is_none_or(|n| n == s.name)) {
        let seconds = seconds.unwrap_or(if s.name == "gigabit" { 20.0 } else { 30_000.0 });
        let start = ProcessTime::now();
        let work = (s.run)(TimeDelta::from_secs_f64(seconds));
        let cpu = start.elapsed().as_secs_f64();
        println!(
            r#"{{"scenario":"{}","simulated_s":{seconds},"cpu_s":{cpu:.4},"simulated_s_per_cpu_s":{:.1},"packets":{},"packets_per_cpu_s":{:.0},"events":{}}}"#,
            s.name,
            seconds / cpu,
            work.packets,
            work.packets as f64 / cpu,
            work.events,
        );
    }
}
