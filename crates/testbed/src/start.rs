//! Common start of a run's threads, and waiting by the run's clock.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock};
use std::time::Duration;
use weir_live::clock::Clock;
use weir_units::{TimeDelta, Timestamp};

/// Interval at which a waiting flow checks whether to continue.
pub(super) const TICK: Duration = Duration::from_millis(5);

/// Threads that begin together: once all are ready the clock starts, and all continue.
pub(super) struct Start {
    ready: Barrier,
    go: Barrier,
    pub(super) clock: OnceLock<Clock>,
}

impl Start {
    /// For this number of threads, excluding the one that calls [`Self::begin`].
    pub(super) fn new(threads: usize) -> Self {
        Self { ready: Barrier::new(threads + 1), go: Barrier::new(threads + 1), clock: OnceLock::new() }
    }
    /// Waits for all, and starts the clock.
    pub(super) fn begin(&self) -> Clock {
        self.ready.wait();
        let clock = *self.clock.get_or_init(Clock::starting_now);
        self.go.wait();
        clock
    }
    /// Marks a thread as ready; returns the clock once it has started.
    pub(super) fn wait(&self) -> Clock {
        self.ready.wait();
        self.go.wait();
        *self.clock.get_or_init(Clock::starting_now)
    }
}

/// Sleeps until a time, or until the run has ended.
pub(super) fn sleep_until(clock: &Clock, at: Timestamp, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let wait = at.saturating_since(clock.now());
        if wait <= TimeDelta::ZERO {
            return;
        }
        std::thread::sleep(Duration::from_nanos(wait.as_nanos().max(0).unsigned_abs()).min(TICK));
    }
}
