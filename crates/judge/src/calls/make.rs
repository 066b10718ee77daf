//! Making the rows of calls: reading, fitting, predicting.

use super::plan::CallTask;
use super::row::{About, CallFailure, CallResult, CallRow};
use crate::sweep::work::in_chunks;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use weir_cc::Registry;
use weir_fit::{Changes, WhatIfError, changed_whatif, fit};
use weir_lab::run::{RunError, RunOptions};
use weir_timeline::why::explain;
use weir_timeline::{Call, ReadError, Recording, read};

/// Makes the rows of calls, one call after the other; those after a stop are left out.
pub fn make(tasks: &[CallTask], registry: &Registry, stop: &AtomicBool) -> Vec<CallResult> {
    tasks.iter().map_while(|task| guarded(task, registry, stop)).collect()
}

/// Makes the rows of all chunks on several threads, one call a thread at a time. `done` gets each chunk once all of it was made; after a
/// stop, what was made of the chunks that had begun. Its errors end the work and are returned. `one` gets each call.
pub fn make_all(
    chunks: &[Vec<CallTask>],
    jobs: usize,
    registry: &Registry,
    stop: &AtomicBool,
    done: impl FnMut(&[CallResult]) -> Result<(), String>,
    one: impl FnMut(&CallResult),
) -> Result<(), String> {
    in_chunks(chunks, jobs, || (), |task, ()| guarded(task, registry, stop), done, one)
}

/// A call whose recordings are no call must not end the work on the others, whatever is in them.
fn guarded(task: &CallTask, registry: &Registry, stop: &AtomicBool) -> Option<CallResult> {
    catch_unwind(AssertUnwindSafe(|| made(task, registry, stop)))
        .unwrap_or_else(|_| Some(failed(task, "a fault of Weir: it panicked at this call; please report it".into())))
}

/// A call without a fit: its rows fail together, and one failure stands for all.
fn failed(task: &CallTask, error: String) -> CallResult {
    let failure = CallFailure { key: task.fit.clone(), call: task.name.clone(), controller: None, error };
    CallResult { failures: vec![failure], ..CallResult::default() }
}

/// The rows of a call; `None` if it was stopped.
fn made(task: &CallTask, registry: &Registry, stop: &AtomicBool) -> Option<CallResult> {
    if stop.load(Ordering::Relaxed) {
        return None;
    }
    if let Some(why) = &task.unreadable {
        return Some(failed(task, why.clone()));
    }
    let call = match opened(task) {
        Ok(call) => call,
        Err(why) => return Some(failed(task, why)),
    };
    let why = explain(&call);
    let mut found = match fit(&call) {
        Ok(found) => found,
        Err(e) => return Some(failed(task, e.to_string())),
    };
    let files = call.recordings.len();
    // Packets are many, and none is needed any more.
    drop(call);
    if let Some(ceiling) = task.ceiling_bps {
        found.source.ceiling_bps = ceiling;
    }
    let mut out = CallResult::default();
    if task.lacks_fit {
        out.rows.push(CallRow::of_fit(&task.fit, &task.name, files, &found, &why));
    }
    let changes = match Changes::new(&task.set) {
        Ok(changes) => changes,
        Err(e) => return Some(failed(task, e.to_string())),
    };
    let about = About { call: &task.name, key: &task.fit, fit: &found, why: &why, draws: task.draws };
    let options = RunOptions { registry, series: false, stop, progress: &|_| {} };
    for controller in &task.controllers {
        let none = Changes::default();
        let changes = if controller.is_changed { &changes } else { &none };
        let name = std::slice::from_ref(&controller.name);
        let answer = changes.check(found.source.ceiling_bps).map_err(|e| e.to_string()).and_then(|()| {
            match changed_whatif(&found, changes, name, task.draws, 1, &options) {
                Err(WhatIfError::Run(e)) if matches!(*e, RunError::Stopped { .. }) => Ok(None),
                Err(e) => Err(e.to_string()),
                Ok(answer) => Ok(answer.controllers.into_iter().next()),
            }
        });
        match answer {
            Ok(Some(p)) => {
                let set = serde_json::to_string(changes.given()).unwrap_or_default();
                out.rows.push(CallRow::of_prediction(&controller.key, &about, &p, &set));
            }
            Ok(None) => return None,
            Err(error) => out.failures.push(CallFailure {
                key: controller.key.clone(),
                call: task.name.clone(),
                controller: Some(controller.name.clone()),
                error,
            }),
        }
    }
    Some(out)
}

/// The recordings of a call. Errors, in words: the file, and why it is not read or where it is damaged.
fn opened(task: &CallTask) -> Result<Call, String> {
    let (mut recordings, mut strange): (Vec<Recording>, _) = (Vec::new(), None);
    for path in &task.files {
        let name = path.display().to_string();
        let file = weir_files::open(path).map_err(|e| format!("{name}: {e}"))?;
        match read(&name, file) {
            Ok(recording) => recordings.push(recording),
            Err(ReadError::Unknown(why)) if task.is_folder => strange = Some(format!("{name}: {why}")),
            Err(e) => return Err(format!("{name}: {e}")),
        }
    }
    if recordings.is_empty() {
        return Err(
            strange.map_or_else(|| "it has no files".into(), |why| format!("none of its files is a recording: {why}"))
        );
    }
    let damage = recordings.iter().find_map(|r| {
        let stop = r.stop.as_ref().map(|at| ("stopped", at)).or(r.damaged.as_ref().map(|at| ("damaged", at)));
        stop.map(|(what, at)| format!("{}: {what} at byte {}: {}", r.name, at.offset, at.why))
    });
    match damage.filter(|_| !task.take_damaged) {
        Some(damage) => Err(format!("{damage}; --take-damaged takes what can be read")),
        None => Ok(Call::new(recordings)),
    }
}
