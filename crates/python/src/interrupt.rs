//! Ctrl-C, progress, and the end of a run whose controller raised.

use crate::controller::Failed;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// Steps of a run after which signals are looked at and progress is passed on.
const STEPS: f64 = 200.0;
/// Time between two looks for signals.
const LOOK: Duration = Duration::from_millis(5);

pub(crate) struct Interrupt {
    /// Called with the share that is done.
    progress: Option<Py<PyAny>>,
    failed: Failed,
    last: AtomicU32,
}

impl Interrupt {
    pub(crate) fn new(progress: Option<Py<PyAny>>, failed: Failed) -> Self {
        Self { progress, failed, last: AtomicU32::new(0) }
    }
    pub(crate) fn stop(&self) -> &AtomicBool {
        self.failed.stop()
    }

    /// A share of the work is done, from any thread.
    pub(crate) fn progress(&self, share: f64) {
        let step = (share.clamp(0.0, 1.0) * STEPS) as u32;
        if self.last.swap(step, Ordering::Relaxed) == step {
            return;
        }
        Python::attach(|py| {
            let mut result = py.check_signals();
            if let (Ok(()), Some(callback)) = (&result, &self.progress) {
                result = callback.call1(py, (share,)).map(drop);
            }
            if let Err(e) = result {
                self.failed.set(e);
            }
        });
    }

    /// Does work of several threads while this one, Python's first, looks for signals.
    pub(crate) fn heeded<T: Send>(&self, py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
        std::thread::scope(|threads| {
            let work = threads.spawn(work);
            while !work.is_finished() {
                py.detach(|| std::thread::sleep(LOOK));
                if let Err(e) = py.check_signals() {
                    self.failed.set(e);
                }
            }
            work.join().map_err(|_| PyRuntimeError::new_err("a run panicked: please report it"))
        })
    }

    /// The cause that ended the work early.
    pub(crate) fn raise(&self) -> PyResult<()> {
        self.failed.take().map_or(Ok(()), Err)
    }
}
