//! Faults of estimators during runs.

use crate::process::Fault;
use std::sync::{Arc, Mutex, PoisonError};
use weir_units::Timestamp;

/// Most faults that are kept.
const MAX_FAULTS: usize = 100;

/// Faults of all estimators of a registry, in the order in which they happened. Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Vec<String>>>);

impl Faults {
    pub(crate) fn add(&self, name: &str, now: Timestamp, fault: &Fault) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MAX_FAULTS {
            all.push(format!("{name}, {:.3} s after the begin: {fault}", now.as_secs_f64()));
        }
    }

    /// Takes what is there.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
