//! A scenario's network without measurements.

use super::RunError;
use super::network::{self, Network};
use super::observer::FlowObserver;
use crate::scenario::Scenario;
use weir_cc::Registry;
use weir_session::Endpoint;
use weir_sim::Outcome;
use weir_units::Timestamp;

/// A scenario's simulator and agents without metrics, run step by step by its caller.
pub struct BareRun {
    network: Network<()>,
}

impl FlowObserver for () {}

impl BareRun {
    /// A run at time zero. Errors: something that the scenario refers to cannot be constructed.
    pub fn new(scenario: &Scenario, seed: u64, registry: &Registry) -> Result<Self, RunError> {
        let mut network = network::network(scenario, seed, registry, ())?;
        network.sim.divide();
        Ok(Self { network })
    }

    /// Runs up to and including a time. Sources paused by the scenario resume here. Errors: time stands still.
    pub fn run_until(&mut self, until: Timestamp) -> Result<(), RunError> {
        match self.network.sim.run_until(until) {
            Outcome::Reached => Ok(()),
            _ => Err(RunError::Stuck { at: self.network.sim.now() }),
        }
    }

    /// The sending ends of the scenario's calls, in the order of its flows.
    pub fn calls(&self) -> impl Iterator<Item = &Endpoint> {
        self.network.flows.iter().filter_map(|ids| self.network.sim.agent(ids.sender).call())
    }

    /// Events that the simulator has handled.
    pub fn events(&self) -> u64 {
        self.network.sim.totals().events
    }
}
