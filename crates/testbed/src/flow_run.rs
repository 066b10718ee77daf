//! State shared by the threads of one flow of a run.

use super::samples::SharedSamples;
use super::start::Start;
use std::sync::atomic::AtomicBool;
use weir_lab::scenario::{Flow, Scenario};
use weir_units::TimeDelta;

/// One flow of a run.
#[derive(Clone, Copy)]
pub(super) struct FlowRun<'s> {
    pub(super) scenario: &'s Scenario,
    /// Index of the flow in the scenario.
    pub(super) index: usize,
    /// The samples of its ends.
    pub(super) samples: &'s SharedSamples,
    pub(super) start: &'s Start,
    /// Whether the run has ended.
    pub(super) ended: &'s AtomicBool,
    /// Interval between samples of the controller's internals; `None` if they are not recorded.
    pub(super) internals_every: Option<TimeDelta>,
}

impl<'s> FlowRun<'s> {
    /// The flow as the scenario describes it.
    pub(super) fn flow(&self) -> &'s Flow {
        &self.scenario.flows[self.index]
    }
}
