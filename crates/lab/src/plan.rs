//! Experiments of many ends that are no scenarios ([`crate::overlay`], [`crate::layers`]): why a plan cannot be run, and its run in
//! virtual time.

use crate::run::RunOptions;
use core::ops::ControlFlow;
use std::sync::atomic::Ordering;
use weir_session::overlay::HopControlError;
use weir_sim::{Agent, Outcome, Simulator};
use weir_units::{TimeDelta, Timestamp};

/// Events between two looks at the stop flag.
const LOOK_EVERY: u64 = 100_000;

/// Why a plan cannot be run, or was not.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A value is out of its range.
    #[error("{what} is {value}, expected {expected}")]
    Value {
        /// Name of the value.
        what: &'static str,
        /// Its value.
        value: String,
        /// Its range.
        expected: String,
    },
    /// The controller cannot be that of hops.
    #[error(transparent)]
    Control(#[from] HopControlError),
    /// A link's configuration is not valid.
    #[error(transparent)]
    Link(#[from] weir_path::ConfigError),
    /// The run was stopped.
    #[error("stopped")]
    Stopped,
    /// Time does not advance.
    #[error("the simulation does not get beyond {at}")]
    Stuck {
        /// The time reached.
        at: TimeDelta,
    },
}

impl PlanError {
    /// A value that is out of its range.
    pub(crate) fn value(what: &'static str, value: impl ToString, expected: impl Into<String>) -> Self {
        Self::Value { what, value: value.to_string(), expected: expected.into() }
    }
}

/// Runs until a time, with progress as a share of the whole duration.
pub(crate) fn advance<A: Agent>(
    sim: &mut Simulator<A>,
    until: Timestamp,
    whole: TimeDelta,
    options: &RunOptions<'_>,
) -> Result<(), PlanError> {
    let whole = whole.as_secs_f64();
    let outcome = sim.run_until_with(until, LOOK_EVERY, |now| {
        (options.progress)((now.as_secs_f64() / whole).min(1.0));
        if options.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match outcome {
        Outcome::Reached => Ok(()),
        Outcome::Cancelled => Err(PlanError::Stopped),
        Outcome::Stuck => Err(PlanError::Stuck { at: sim.now().saturating_since(Timestamp::ZERO) }),
    }
}
