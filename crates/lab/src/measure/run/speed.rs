//! A call without anybody watching it, for speed measurements.

use super::{RunError, build};
use crate::measure::scenario::Scenario;
use weir_cc::Registry;
use weir_sim::Outcome;
use weir_units::{TimeDelta, Timestamp};

/// What a measured run has done; the caller brings the clock.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallSpeed {
    /// Simulated time.
    pub simulated: TimeDelta,
    /// RTP packets that the scenario's calls have sent.
    pub packets: u64,
    /// Events that the simulator has handled.
    pub events: u64,
    /// The last target of the first call, in bit/s, as a check that it has worked.
    pub target_bps: u64,
}

/// Runs `scenario` to its end with real RTP and RTCP bytes and no metrics. Errors: as [`super::run`].
pub fn call_speed(scenario: &Scenario, seed: u64, registry: &Registry) -> Result<CallSpeed, RunError> {
    let mut network = build::network(scenario, seed, registry, ())?;
    let outcome = network.sim.run_until(Timestamp::ZERO + scenario.duration);
    if outcome != Outcome::Reached {
        return Err(RunError::Stuck { at: network.sim.now() });
    }
    let calls = network.flows.iter().filter_map(|ids| network.sim.agent(ids.0).call());
    let packets = calls.clone().map(|c| c.send_counters().packets).sum();
    let target_bps = calls.clone().next().and_then(|c| c.target()).map_or(0, |t| t.media_rate.as_bps());
    Ok(CallSpeed { simulated: scenario.duration, packets, events: network.sim.totals().events, target_bps })
}
