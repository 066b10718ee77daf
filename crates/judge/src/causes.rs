//! Causes that are known, beside those that the rules for recorded calls find.
//!
//! A cause is put into a simulated call at a known time. The call is recorded at both ends, and looked at three times by the engine that
//! explains recordings of other programs (`weir_timeline::why`): as captures of both ends, as the sender's log alone, and as the statistics
//! that a browser would show once a second. Bounds of rules are chosen on half of the calls; the other half validates them.

mod kinds;
mod made;
mod score;
mod statistics;

pub use kinds::{Kind, MAGNITUDES};
pub use made::MadeCall;
pub use score::{CauseScore, Confusion, Summary, Verdict, confusion};

use score::score;
use std::sync::Mutex;
use weir_lab::results::RunResult;
use weir_lab::run::{RunError, RunOptions, Task, run_each};
use weir_lab::scenario::{InputError, Scenario};
use weir_report::recorded;
use weir_timeline::why::{Level, explain};
use weir_timeline::{Call, Recording};

/// Length of a call, and time at which its cause begins, in s.
pub const LENGTH: f64 = 42.0;
/// See [`LENGTH`].
pub const ONSET: f64 = 20.0;

/// Levels of evidence that each call is looked at on.
pub const LEVELS: [Level; 3] = [Level::Packets, Level::Log, Level::Statistics];

/// Runs a call; returns its result and the recordings of its sender and its receiver.
///
/// # Errors
/// The run is stopped, or fails.
pub fn record(
    call: &MadeCall,
    scenario: &Scenario,
    options: &RunOptions<'_>,
) -> Result<(RunResult, Option<[Recording; 2]>), RunError> {
    let quiet = RunOptions { series: true, progress: &|_| {}, ..*options };
    let (result, calls) = recorded::run(scenario, call.number, &quiet)?;
    let flow = calls.into_iter().find(|c| c.name == made::FLOW).map(|c| c.call.recordings);
    let ends = flow.and_then(|r| <[Recording; 2]>::try_from(r).ok()).map(|ends| call.told(ends));
    Ok((result, ends))
}

/// The recordings of a call's ends as a level of evidence has them.
pub fn evidence(ends: &[Recording; 2], level: Level) -> Call {
    let [sender, receiver] = ends;
    Call::new(match level {
        Level::Log => vec![sender.clone()],
        Level::Statistics => statistics::of(sender, receiver).into(),
        _ => vec![sender.clone(), receiver.clone()],
    })
}

/// Scores of all calls on all levels, `threads` calls at a time, in the calls' order. A stopped judgement has what was done.
///
/// # Errors
/// A controller does not exist.
pub fn judge(calls: &[MadeCall], threads: usize, options: &RunOptions<'_>) -> Result<Vec<CauseScore>, InputError> {
    let scenarios: Vec<Scenario> =
        calls.iter().map(|c| c.scenario(options.registry)).collect::<Result<_, InputError>>()?;
    let slots: Vec<Mutex<Vec<CauseScore>>> = calls.iter().map(|_| Mutex::default()).collect();
    let tasks =
        scenarios.iter().enumerate().map(|(id, s)| Task { scenario: s, seed: calls[id].number, series: true, id });
    let make = |task: &Task<'_>, options: &RunOptions<'_>| -> Result<RunResult, RunError> {
        let call = &calls[task.id];
        let (result, ends) = record(call, task.scenario, options)?;
        if let (Some(ends), Ok(mut slot)) = (ends, slots[task.id].lock()) {
            let one = |level: Level| score(call, &ends[0], level, &explain(&evidence(&ends, level)).episodes);
            *slot = LEVELS.map(one).into();
        }
        Ok(result)
    };
    run_each(tasks, calls.len() as u64, threads, options, &make, &mut |_, _| {});
    Ok(slots.into_iter().filter_map(|s| s.into_inner().ok()).flatten().collect())
}
