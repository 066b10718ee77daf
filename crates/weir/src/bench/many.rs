//! Cost of a packet by the number of calls.

use super::{Goal, Row, Unit, Work, best};
use crate::output::Failure;
use weir_bench::many::{NUMBERS, bytes_a_call, packets, scenario};
use weir_lab::run::{RunError, RunOptions};
use weir_units::TimeDelta;

/// Simulated seconds of all calls together at `--scale 1`.
const CALL_SECONDS: f64 = 10_000.0;
/// Minimum duration of a run at `--scale 1`, so that the start of calls does not dominate.
const LEAST_SECONDS: f64 = 2.0;
/// Goals in nanoseconds per packet by number of calls.
const PACKET_NS: [(u32, f64); 2] = [(1_000, 1_200.0), (10_000, 2_000.0)];
/// Calls by which memory is measured, and for how long they run, in seconds.
const MEMORY: (u32, i64) = (1_000, 2);

/// Resident memory of this process, if the system reports it.
fn resident() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * 4_096)
}

/// A row for each number of calls. To be called first: memory that was freed and is reused does not count as allocated.
pub(super) fn calls(work: &Work<'_>) -> Result<Vec<Row>, Failure> {
    let (registry, scale) = (&work.session.registry, work.scale);
    let (count, seconds) = MEMORY;
    let held = scenario(count, TimeDelta::from_secs(seconds), registry)?;
    let bytes = bytes_a_call(&held, registry, resident).map_err(Failure::work)?;
    let options = RunOptions { registry, series: false, stop: &work.session.stop, progress: &|_| {} };
    let row = |calls: u32| {
        let simulated_s = (CALL_SECONDS * scale / f64::from(calls)).max(LEAST_SECONDS * scale.min(1.0));
        let scenario = scenario(calls, TimeDelta::from_secs_f64(simulated_s), registry)?;
        let name = format!("calls-{calls}");
        let (sent, cpu_s) = best(work, &name, || match packets(&scenario, &options) {
            Err(RunError::Stopped { .. }) => Err(Failure::Interrupted),
            other => other.map_err(Failure::work),
        })?;
        let speed = cpu_s * 1e9 / sent.max(1) as f64;
        let goal = PACKET_NS.iter().find(|g| g.0 == calls).map(|g| g.1);
        Ok(Row {
            name,
            summary: format!("{calls} calls of 500 kbit/s under gcc over one link, metrics included, for each packet"),
            speed,
            unit: Unit::Nanoseconds,
            simulated_s,
            cpu_s,
            simulated_s_per_cpu_s: simulated_s / cpu_s,
            packets_per_cpu_s: Some(sent as f64 / cpu_s),
            bytes_per_call: bytes.filter(|_| calls == count),
            goal: goal.map(|value| Goal { value, times_ns3: false, met: Some(speed <= value) }),
            ns3: None,
        })
    };
    NUMBERS.into_iter().map(row).collect()
}
