//! Cost of a packet by the number of calls.

use super::{BenchError, Work, run_failed};
use crate::many::{NUMBERS, bytes_a_call, packets, scenario};
use crate::report::{Row, Unit};
use weir_lab::run::RunOptions;
use weir_units::TimeDelta;

/// Simulated seconds of all calls together at scale 1.
const CALL_SECONDS: f64 = 10_000.0;
/// Minimum duration of a run at scale 1, so that the start of calls does not dominate.
const LEAST_SECONDS: f64 = 2.0;
/// Goals in nanoseconds per packet by number of calls.
const GOALS: [(u32, f64); 2] = [(1_000, 1_200.0), (10_000, 2_000.0)];
/// Calls by which memory is measured, and for how long they run, in seconds.
const MEMORY: (u32, i64) = (1_000, 2);
/// Bytes of a page, by which the kernel counts memory.
const PAGE: u64 = 4_096;

/// Resident memory of this process, if the system reports it.
fn resident() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(pages * PAGE)
}

/// A row for each number of calls. To be called first: memory that was freed and is reused does not count as allocated.
pub(super) fn rows(work: &Work<'_>) -> Result<Vec<Row>, BenchError> {
    let (registry, scale) = (work.suite.registry, work.suite.scale);
    let (count, seconds) = MEMORY;
    let held = scenario(count, TimeDelta::from_secs(seconds), registry).map_err(BenchError::failed)?;
    let bytes = bytes_a_call(&held, registry, resident).map_err(run_failed)?;
    let options = RunOptions { registry, series: false, stop: work.suite.stop, progress: &|_| {} };
    let row = |calls: u32| {
        let simulated_s = (CALL_SECONDS * scale / f64::from(calls)).max(LEAST_SECONDS * scale.min(1.0));
        let scenario = scenario(calls, TimeDelta::from_secs_f64(simulated_s), registry).map_err(BenchError::failed)?;
        let name = format!("calls-{calls}");
        let (sent, cpu_s) = work.best(&name, || packets(&scenario, &options).map_err(run_failed))?;
        let summary = format!("{calls} calls of 500 kbit/s under gcc over one link, metrics included, for each packet");
        let row = Row::new(name, summary, simulated_s, cpu_s).with_packets(sent.max(1) as f64);
        let row = row.in_unit(Unit::Nanoseconds).with_goal(GOALS.iter().find(|g| g.0 == calls).map(|g| g.1));
        Ok(Row { bytes_per_call: bytes.filter(|_| calls == count), ..row })
    };
    NUMBERS.into_iter().map(row).collect()
}
