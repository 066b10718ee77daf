//! The same scenarios in ns-3, by the programs in `benches/compare`.

use crate::repository::root;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

/// From the repository's root.
const SCRIPT: &str = "benches/compare/run.sh";
/// The script's exit code if ns-3 or a compiler is missing.
const NOT_INSTALLED: i32 = 3;
/// Share of the usual simulated time for the run that builds the program and warms up.
const WARM_UP: f64 = 0.01;

/// Why ns-3 was not measured.
#[derive(Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The stop flag was set.
    Interrupted,
    /// Why there are no figures, and the remedy.
    Absent(String),
}

/// One run, as the program prints it.
#[derive(Deserialize, Clone, Debug)]
pub struct Figures {
    scenario: String,
    flow_monitor: bool,
    simulated_s_per_cpu_s: f64,
    packets_per_cpu_s: f64,
}

/// ns-3's figures in the unit of the row, and Weir's speed as a multiple of them.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Beside {
    /// Without a flow monitor.
    pub bare: f64,
    /// Weir's speed over that.
    pub times_bare: f64,
    /// With its flow monitor.
    pub flow_monitor: f64,
    /// Weir's speed over that.
    pub times_flow_monitor: f64,
}

impl Beside {
    /// ns-3's fastest runs of `scenario`; none unless it has run both with and without the flow monitor.
    pub(crate) fn new(runs: &[Figures], scenario: &str, speed: f64, packets: bool) -> Option<Self> {
        let fastest = |monitor| {
            let of = runs.iter().filter(|r| r.scenario == scenario && r.flow_monitor == monitor);
            let speeds = of.map(|r| if packets { r.packets_per_cpu_s } else { r.simulated_s_per_cpu_s });
            speeds.filter(|s| s.is_finite() && *s > 0.0).max_by(f64::total_cmp)
        };
        let (bare, flow_monitor) = (fastest(false)?, fastest(true)?);
        Some(Self { bare, times_bare: speed / bare, flow_monitor, times_flow_monitor: speed / flow_monitor })
    }
}

fn run_once(stop: &AtomicBool, script: &Path, scale: f64) -> Result<Vec<Figures>, Trouble> {
    let output = Command::new("bash").arg(script).arg(scale.to_string()).output();
    if stop.load(Ordering::Relaxed) {
        return Err(Trouble::Interrupted);
    }
    let output = output.map_err(|e| Trouble::Absent(format!("bash does not start: {e}")))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(NOT_INSTALLED) => return Err(Trouble::Absent(complaint.trim().to_owned())),
        _ => {
            let why = complaint.trim();
            return Err(Trouble::Absent(format!("{} failed ({}): {why}", script.display(), output.status)));
        }
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    let figures: Result<Vec<Figures>, _> = lines.lines().map(serde_json::from_str).collect();
    figures.map_err(|e| Trouble::Absent(format!("{} printed something else than figures: {e}", script.display())))
}

/// Runs all scenarios `tries` times after a warm-up, each time at this share of the usual simulated time. `say` gets a line
/// before each. Errors: ns-3 or a compiler is not installed, or the stop flag is set.
pub fn measure(scale: f64, tries: u32, stop: &AtomicBool, say: &dyn Fn(&str)) -> Result<Vec<Figures>, Trouble> {
    let Some(root) = root() else {
        let why = format!("{SCRIPT} was not found; run this in Weir's repository, with g++ and libns3-dev installed");
        return Err(Trouble::Absent(why));
    };
    let script = root.join(SCRIPT);
    run_once(stop, &script, scale * WARM_UP)?;
    let mut all = Vec::new();
    for k in 1..=tries {
        say(&format!("running ns-3, {k} of {tries}"));
        all.extend(run_once(stop, &script, scale)?);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_run_counts_and_half_a_measurement_does_not() {
        let run = |flow_monitor, speed: f64| Figures {
            scenario: "udp".into(),
            flow_monitor,
            simulated_s_per_cpu_s: speed,
            packets_per_cpu_s: speed * 1_000.0,
        };
        let runs = [run(false, 80.0), run(false, 100.0), run(true, 50.0), run(true, f64::INFINITY)];
        let b = Beside::new(&runs, "udp", 12_000.0, false).expect("both measured");
        assert_eq!((b.bare, b.times_bare, b.flow_monitor, b.times_flow_monitor), (100.0, 120.0, 50.0, 240.0));
        assert_eq!(Beside::new(&runs, "udp", 1e6, true).expect("both measured").times_bare, 10.0);
        assert!(Beside::new(&runs[..2], "udp", 1.0, false).is_none());
        assert!(Beside::new(&runs, "gigabit", 1.0, false).is_none());
    }

    #[test]
    fn the_program_s_lines_are_read() {
        let line = r#"{"simulator":"ns-3.37","flow_monitor":true,"scenario":"udp","simulated_s":60,"cpu_s":0.0596,"simulated_s_per_cpu_s":1006.19,"packets":10000,"packets_per_cpu_s":167698,"events":30053}"#;
        let f: Figures = serde_json::from_str(line).expect("read");
        assert_eq!((f.scenario.as_str(), f.flow_monitor), ("udp", true));
        assert_eq!((f.simulated_s_per_cpu_s, f.packets_per_cpu_s), (1006.19, 167_698.0));
    }
}
