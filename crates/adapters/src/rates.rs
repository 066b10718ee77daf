//! Rates that the application reads.

use crate::core::Core;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_cc::Limits;
use weir_units::{DataRate, TimeDelta};

/// A controller's rates, for the application; clones read the same controller.
#[derive(Clone)]
pub struct Rates(Arc<Mutex<Core>>);

impl Rates {
    pub(crate) fn new(core: Core) -> Self {
        Self(Arc::new(Mutex::new(core)))
    }
    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        // A controller that panicked is in an unknown state, but its last rates are still numbers.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rate for the encoders.
    pub fn media_rate(&self) -> DataRate {
        self.core().target().media_rate
    }
    /// The rate at which a pacer should release packets.
    pub fn pacing_rate(&self) -> DataRate {
        self.core().target().pacing_rate
    }
    /// Round-trip time of the newest packet reported; `None` before the first.
    pub fn rtt(&self) -> Option<TimeDelta> {
        self.core().rtt()
    }
    /// Changes the bounds on the media rate; they hold as soon as this returns.
    pub fn set_limits(&self, limits: Limits) {
        self.core().set_limits(limits);
    }
    /// Passes the controller's internal values by name to `out`, as
    /// [`Controller::metrics`](weir_cc::Controller::metrics).
    pub fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        self.core().metrics(out);
    }
}
