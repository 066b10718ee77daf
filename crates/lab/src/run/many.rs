//! Many runs on several threads, each run on one.

use super::{RunError, RunOptions, run};
use crate::results::RunResult;
use crate::scenario::Scenario;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use weir_units::Timestamp;

/// Runs that may be begun, a thread, while an earlier one is still under way: so many results wait for it at most.
const AHEAD: u64 = 16;

/// One run to be made.
#[derive(Clone, Debug)]
pub struct Job {
    /// The scenario.
    pub scenario: Scenario,
    /// With which seed.
    pub seed: u64,
}

/// One of many runs, made when a thread is free.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// With which seed.
    pub seed: u64,
    /// Whether it keeps time series, where the options ask for them.
    pub series: bool,
    /// The caller's number for it.
    pub id: usize,
}

/// Makes the run of a task: [`run`], or a result that is there already.
pub type Make<'f, 'a> = &'f (dyn Fn(&Task<'a>, &RunOptions<'_>) -> Result<RunResult, RunError> + Sync);

/// Makes all runs, `threads` at a time, and gives their results in the order of the jobs. `done` is called with each job's
/// index as its result is taken, in that order. Runs that a stop left undone are [`RunError::Stopped`].
pub fn run_many(
    jobs: &[Job],
    threads: usize,
    options: &RunOptions<'_>,
    done: &(dyn Fn(usize) + Sync),
) -> Vec<Result<RunResult, RunError>> {
    let tasks =
        jobs.iter().enumerate().map(|(id, j)| Task { scenario: &j.scenario, seed: j.seed, series: options.series, id });
    let mut results = Vec::with_capacity(jobs.len());
    let make = |task: &Task<'_>, options: &RunOptions<'_>| run(task.scenario, task.seed, options);
    run_each(tasks, jobs.len() as u64, threads, options, &make, &mut |task, result| {
        results.push(result);
        done(task.id);
    });
    results.resize_with(jobs.len(), || Err(RunError::Stopped { at: Timestamp::ZERO }));
    results
}

/// Makes runs as `tasks` gives them, `threads` at a time, and hands each result to `take` in the order of the tasks: which
/// thread makes which run changes nothing. Memory does not grow with the number of tasks. One thread is the caller's own; in
/// WebAssembly there is no other. `total` is how many tasks there are, for progress; `make` makes a run, with options of that
/// task.
///
/// Once the stop flag is up no further task is taken. What was under way goes to `take` as finished or as stopped.
pub fn run_each<'a>(
    tasks: impl Iterator<Item = Task<'a>> + Send,
    total: u64,
    threads: usize,
    options: &RunOptions<'_>,
    make: Make<'_, 'a>,
    take: &mut (dyn FnMut(Task<'a>, Result<RunResult, RunError>) + Send),
) {
    let threads = threads.min(usize::try_from(total).unwrap_or(usize::MAX));
    if threads <= 1 || cfg!(target_family = "wasm") {
        return on_this_thread(tasks, total, options, make, take);
    }
    let pool = Pool {
        line: Mutex::new(Line { tasks, begun: 0, taken: 0, waiting: BTreeMap::new(), take }),
        room: Condvar::new(),
        ahead: AHEAD * threads as u64,
        panicked: AtomicBool::new(false),
        finished: AtomicU64::new(0),
        shares: (0..threads).map(|_| AtomicU64::new(0)).collect(),
    };
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let pool = &pool;
            scope.spawn(move || {
                let _guard = OnPanic(pool);
                while let Some((at, task)) = pool.next(options.stop) {
                    let progress = |share: f64| {
                        pool.shares[thread].store(share.to_bits(), Ordering::Relaxed);
                        (options.progress)(pool.progress(total));
                    };
                    let series = options.series && task.series;
                    let result = make(&task, &RunOptions { series, progress: &progress, ..*options });
                    pool.shares[thread].store(0, Ordering::Relaxed);
                    pool.finished.fetch_add(1, Ordering::Relaxed);
                    pool.finish(at, task, result);
                }
            });
        }
    });
}

/// Runs not yet begun, and results that wait for an earlier one.
struct Line<'t, 'a, I> {
    tasks: I,
    begun: u64,
    taken: u64,
    waiting: BTreeMap<u64, (Task<'a>, Result<RunResult, RunError>)>,
    take: &'t mut (dyn FnMut(Task<'a>, Result<RunResult, RunError>) + Send),
}

struct Pool<'t, 'a, I> {
    line: Mutex<Line<'t, 'a, I>>,
    /// Signalled as results are taken.
    room: Condvar,
    ahead: u64,
    panicked: AtomicBool,
    finished: AtomicU64,
    /// Share of each thread's run that is done, as the bits of an `f64`.
    shares: Vec<AtomicU64>,
}

impl<'a, I: Iterator<Item = Task<'a>>> Pool<'_, 'a, I> {
    fn next(&self, stop: &AtomicBool) -> Option<(u64, Task<'a>)> {
        let mut line = lock(&self.line);
        while line.begun - line.taken >= self.ahead && !self.panicked.load(Ordering::Relaxed) {
            line = self.room.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        if stop.load(Ordering::Relaxed) || self.panicked.load(Ordering::Relaxed) {
            return None;
        }
        let task = line.tasks.next()?;
        line.begun += 1;
        Some((line.begun - 1, task))
    }

    fn finish(&self, at: u64, task: Task<'a>, result: Result<RunResult, RunError>) {
        let mut guard = lock(&self.line);
        let line = &mut *guard;
        line.waiting.insert(at, (task, result));
        while let Some((task, result)) = line.waiting.remove(&line.taken) {
            (line.take)(task, result);
            line.taken += 1;
        }
        self.room.notify_all();
    }

    fn progress(&self, total: u64) -> f64 {
        let under_way: f64 = self.shares.iter().map(|s| f64::from_bits(s.load(Ordering::Relaxed))).sum();
        ((self.finished.load(Ordering::Relaxed) as f64 + under_way) / total.max(1) as f64).min(1.0)
    }
}

/// Lets waiting threads go when one of them panics; the scope passes the panic on.
struct OnPanic<'p, 't, 'a, I>(&'p Pool<'t, 'a, I>);

impl<I> Drop for OnPanic<'_, '_, '_, I> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.panicked.store(true, Ordering::Relaxed);
            let _line = lock(&self.0.line);
            self.0.room.notify_all();
        }
    }
}

/// All runs one after the other, without a thread of their own.
fn on_this_thread<'a>(
    tasks: impl Iterator<Item = Task<'a>>,
    total: u64,
    options: &RunOptions<'_>,
    make: Make<'_, 'a>,
    take: &mut (dyn FnMut(Task<'a>, Result<RunResult, RunError>) + Send),
) {
    for (i, task) in tasks.enumerate() {
        if options.stop.load(Ordering::Relaxed) {
            return;
        }
        let progress = |share: f64| (options.progress)((i as f64 + share) / total.max(1) as f64);
        let series = options.series && task.series;
        let result = make(&task, &RunOptions { series, progress: &progress, ..*options });
        take(task, result);
    }
}

// A poisoned lock means that another thread panicked; the scope passes that panic on.
fn lock<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}
