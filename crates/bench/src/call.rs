//! Calls in the simulator without metrics.

use weir_cc::Registry;
use weir_lab::run::{BareRun, RunError};
use weir_lab::scenario::{InputError, Scenario, ScenarioFile};
use weir_units::{TimeDelta, Timestamp};

/// The call whose speed is measured, under `gcc`, `nada` or `scream`: 2 Mbit/s and 100 ms. It is no scenario of a paper, whose
/// parameters change as its reproduction gets better.
///
/// Errors: the registry lacks one of them.
pub fn session(registry: &Registry) -> Result<ScenarioFile, InputError> {
    ScenarioFile::parse("session", include_str!("session.toml"), std::path::Path::new(""), registry)
}

/// Totals of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CallWork {
    /// Simulated time.
    pub simulated: TimeDelta,
    /// RTP packets sent by the scenario's calls.
    pub packets: u64,
    /// Events handled by the simulator.
    pub events: u64,
    /// The last target of the first call in bit/s, to check that it has worked.
    pub target_bps: u64,
}

/// Runs `scenario` to its end with real RTP and RTCP bytes and no metrics. Errors: as [`BareRun::new`] and
/// [`BareRun::run_until`].
pub fn bare_call(scenario: &Scenario, seed: u64, registry: &Registry) -> Result<CallWork, RunError> {
    let mut run = BareRun::new(scenario, seed, registry)?;
    run.run_until(Timestamp::ZERO + scenario.duration)?;
    let packets = run.calls().map(|c| c.stats().send_counters().packets).sum();
    let target_bps = run.calls().next().and_then(|c| c.target()).map_or(0, |t| t.media_rate.as_bps());
    Ok(CallWork { simulated: scenario.duration, packets, events: run.events(), target_bps })
}
