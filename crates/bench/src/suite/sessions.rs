//! One RTP call, both ends, with real RTP and RTCP bytes: first without metrics, then with all of them.

use super::{BenchError, Work, run_failed};
use crate::call::{bare_call, session};
use crate::report::Row;
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::Scenario;
use weir_units::TimeDelta;

/// Controllers, and goals of their sessions in simulated seconds a CPU second.
const CONTROLLERS: [(&str, f64); 3] = [("gcc", 20_000.0), ("nada", 20_000.0), ("scream", 10_000.0)];
/// Rows.
pub(super) const COUNT: usize = 2 * CONTROLLERS.len();
/// Simulated seconds at scale 1.
const SESSION_SECONDS: f64 = 2_000.0;
const RUN_SECONDS: f64 = 500.0;
/// Most that metrics may cost: a session's speed over that of the same with all metrics.
const WITH_METRICS: f64 = 1.15;

pub(super) fn rows(work: &Work<'_>) -> Result<Vec<Row>, BenchError> {
    let registry = work.suite.registry;
    let file = session(registry).map_err(BenchError::failed)?;
    let lasting = |controller: &str, seconds: f64| -> Result<Scenario, BenchError> {
        let mut s = file.scenario(None, Some(controller), registry).map_err(BenchError::failed)?;
        s.duration = TimeDelta::from_secs_f64(seconds * work.suite.scale);
        s.flows.iter_mut().for_each(|f| f.stop = s.duration);
        Ok(s)
    };
    let mut rows: Vec<Row> = Vec::new();
    for (controller, goal) in CONTROLLERS {
        let scenario = lasting(controller, SESSION_SECONDS)?;
        let name = format!("session-{controller}");
        let (call, cpu_s) = work.best(&name, || bare_call(&scenario, 1, registry).map_err(run_failed))?;
        let summary = format!("one RTP session under {controller} over 2 Mbit/s and 100 ms, without metrics");
        let row = Row::new(name, summary, scenario.duration.as_secs_f64(), cpu_s);
        rows.push(row.with_packets(call.packets as f64).with_goal(Some(goal)));
    }
    for (k, (controller, _)) in CONTROLLERS.into_iter().enumerate() {
        let scenario = lasting(controller, RUN_SECONDS)?;
        let options = RunOptions { registry, series: false, stop: work.suite.stop, progress: &|_| {} };
        let name = format!("run-{controller}");
        let ((), cpu_s) = work.best(&name, || run(&scenario, 1, &options).map(drop).map_err(run_failed))?;
        let summary = format!("the session under {controller} as weir run does it, metrics included");
        let goal = rows[k].speed / WITH_METRICS;
        rows.push(Row::new(name, summary, scenario.duration.as_secs_f64(), cpu_s).with_goal(Some(goal)));
    }
    Ok(rows)
}
