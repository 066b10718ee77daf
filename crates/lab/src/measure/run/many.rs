//! Many runs on several threads, each run on one.

use super::{RunError, RunOptions, run};
use crate::measure::results::RunResult;
use crate::measure::scenario::Scenario;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One run to be made.
#[derive(Clone, Debug)]
pub struct Job {
    /// The scenario.
    pub scenario: Scenario,
    /// With which seed.
    pub seed: u64,
}

/// Makes all runs, `threads` at a time, and returns their results in the order of the jobs: the assignment to threads
/// changes nothing. One thread is the caller's; in WebAssembly there is no other. `done` is called with each job's
/// index as it ends.
pub fn run_many(
    jobs: &[Job],
    threads: usize,
    options: &RunOptions<'_>,
    done: &(dyn Fn(usize) + Sync),
) -> Vec<Result<RunResult, RunError>> {
    if threads.min(jobs.len()) <= 1 || cfg!(target_family = "wasm") {
        return on_this_thread(jobs, options, done);
    }
    let next = AtomicUsize::new(0);
    let shares: Vec<Mutex<f64>> = jobs.iter().map(|_| Mutex::new(0.0)).collect();
    let results: Vec<Mutex<Option<Result<RunResult, RunError>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(jobs.len()) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(i) else { return };
                    let progress = |share: f64| {
                        set(&shares[i], share);
                        let all: f64 = shares.iter().map(get).sum();
                        (options.progress)(all / jobs.len() as f64);
                    };
                    let result = run(&job.scenario, job.seed, &RunOptions { progress: &progress, ..*options });
                    set(&results[i], Some(result));
                    done(i);
                }
            });
        }
    });
    results.into_iter().map(|r| into_inner(r).expect("every job has been taken")).collect()
}

/// All runs in sequence, on the caller's thread.
fn on_this_thread(
    jobs: &[Job],
    options: &RunOptions<'_>,
    done: &(dyn Fn(usize) + Sync),
) -> Vec<Result<RunResult, RunError>> {
    let mut results = Vec::with_capacity(jobs.len());
    for (i, job) in jobs.iter().enumerate() {
        let progress = |share: f64| (options.progress)((i as f64 + share) / jobs.len() as f64);
        results.push(run(&job.scenario, job.seed, &RunOptions { progress: &progress, ..*options }));
        done(i);
    }
    results
}

// A poisoned lock means that another worker panicked; the scope propagates that panic.
fn set<T>(lock: &Mutex<T>, value: T) {
    *lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = value;
}
fn get<T: Copy>(lock: &Mutex<T>) -> T {
    *lock.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
fn into_inner<T>(lock: Mutex<T>) -> T {
    lock.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}
