//! Faults of estimators during runs.

use crate::process::Fault;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;
use weir_units::Timestamp;

/// Most faults that are kept.
const MAX_FAULTS: usize = 100;

/// Faults of all estimators of a registry, in the order in which they happened. Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Vec<(ThreadId, String)>>>);

impl Faults {
    pub(crate) fn add(&self, name: &str, now: Timestamp, fault: &Fault) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MAX_FAULTS {
            let text = format!("{name}, {:.3} s after the begin: {fault}", now.as_secs_f64());
            all.push((std::thread::current().id(), text));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Takes what is there.
    pub fn take(&self) -> Vec<String> {
        let all = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        all.into_iter().map(|(_, text)| text).collect()
    }

    /// Takes those of runs on this thread, which are those of the last run where they are taken after each: a run has one thread.
    pub fn take_here(&self) -> Vec<String> {
        let here = std::thread::current().id();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extract_if(.., |(thread, _)| *thread == here).map(|(_, text)| text).collect()
    }
}
