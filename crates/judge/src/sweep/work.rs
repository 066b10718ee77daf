//! Making the runs of a sweep.

use super::dataset::SweepResult;
use super::grid::{Given, SweepRun};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use weir_cc::Registry;
use weir_lab::run::{RunError, RunOptions, run};
use weir_lab::scenario::ScenarioFile;

/// Runs in a file at most, so that a broken-off sweep loses few and datasets have few files.
pub const CHUNK: usize = 64;

/// The runs in parts of at most [`CHUNK`], each under one controller.
pub fn chunks(mut runs: Vec<SweepRun>) -> Vec<Vec<SweepRun>> {
    runs.sort_by(|a, b| a.controller.cmp(&b.controller));
    let one = runs.chunk_by(|a, b| a.controller == b.controller);
    one.flat_map(|part| part.chunks(CHUNK)).map(<[SweepRun]>::to_vec).collect()
}

/// Makes runs one after the other; those after a stop are left out.
pub fn make(runs: &[SweepRun], registry: &Registry, stop: &AtomicBool) -> Vec<SweepResult> {
    let mut last = None;
    runs.iter().filter_map(|run| made(run, registry, stop, &mut last)).collect()
}

/// One run; `last` is the scenario of the run before, which is read once for all its runs. `None` if it was stopped.
fn made(
    about: &SweepRun,
    registry: &Registry,
    stop: &AtomicBool,
    last: &mut Option<(Given, ScenarioFile)>,
) -> Option<SweepResult> {
    if stop.load(Ordering::Relaxed) {
        return None;
    }
    let kept = |result: Result<String, String>| {
        let (result, error) = match result {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        Some(SweepResult { run: about.clone(), result, error })
    };
    if last.as_ref().is_none_or(|(given, _)| *given != about.given) {
        match about.given.open(registry) {
            Ok(file) => *last = Some((about.given.clone(), file)),
            Err(e) => return kept(Err(e.to_string())),
        }
    }
    let (_, file) = last.as_ref()?;
    let scenario = match file.one(about.variant.as_deref(), about.controller.as_deref(), registry) {
        Ok(scenario) => scenario,
        Err(e) => return kept(Err(e.to_string())),
    };
    let options = RunOptions { registry, series: false, stop, progress: &|_| {} };
    match run(&scenario, u64::from(about.seed), &options) {
        Ok(result) => kept(serde_json::to_string(&result).map_err(|e| e.to_string())),
        Err(RunError::Stopped { .. }) => None,
        Err(e) => kept(Err(e.to_string())),
    }
}

/// Makes the runs of all chunks on several threads. `done` gets each chunk once all of it was made; after a stop, what was made of the
/// chunks that had begun. Its errors end the work and are returned.
pub fn make_all(
    chunks: &[Vec<SweepRun>],
    jobs: usize,
    registry: &Registry,
    stop: &AtomicBool,
    done: impl FnMut(&[SweepResult]) -> Result<(), String>,
    one: impl FnMut(&SweepResult),
) -> Result<(), String> {
    in_chunks(chunks, jobs, || None, |run, last| made(run, registry, stop, last), done, one)
}

/// Makes the items of all chunks on several threads, each with a state of its own that `begin` makes; `make` returns `None` after a stop.
/// `done` and `one` are as those of [`make_all`].
pub(crate) fn in_chunks<T: Sync, R: Send, S>(
    chunks: &[Vec<T>],
    jobs: usize,
    begin: impl Fn() -> S + Sync,
    make: impl Fn(&T, &mut S) -> Option<R> + Sync,
    mut done: impl FnMut(&[R]) -> Result<(), String>,
    mut one: impl FnMut(&R),
) -> Result<(), String> {
    let flat: Vec<(usize, &T)> =
        chunks.iter().enumerate().flat_map(|(n, part)| part.iter().map(move |item| (n, item))).collect();
    let (next, broken) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut parts: Vec<Vec<R>> = chunks.iter().map(|_| Vec::new()).collect();
    let mut result = Ok(());
    std::thread::scope(|threads| {
        let (results, taken) = channel();
        for _ in 0..jobs.clamp(1, flat.len().max(1)) {
            let (results, flat, next, broken) = (results.clone(), &flat, &next, &broken);
            let (begin, make) = (&begin, &make);
            threads.spawn(move || {
                let mut state = begin();
                while let Some((chunk, item)) = flat.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if broken.load(Ordering::Relaxed) {
                        break;
                    }
                    let Some(kept) = make(item, &mut state) else { break };
                    if results.send((*chunk, kept)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(results);
        for (chunk, kept) in taken {
            one(&kept);
            parts[chunk].push(kept);
            if parts[chunk].len() == chunks[chunk].len() && result.is_ok() {
                result = done(&std::mem::take(&mut parts[chunk]));
                broken.store(result.is_err(), Ordering::Relaxed);
            }
        }
    });
    result?;
    parts.iter().filter(|part| !part.is_empty()).try_for_each(|part| done(part))
}
