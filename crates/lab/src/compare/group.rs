//! One scenario of a plan.

use crate::scenario::Scenario;

/// Points of a run's time series, over all flows, up to which a comparison keeps them: about 200 MB.
const MAX_SERIES: i64 = 2_000_000;

/// One scenario, and how often it runs.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) scenario: Scenario,
    /// Seed of the first run; each further one has the next.
    pub(super) first: u64,
    pub(super) runs: u32,
}

impl Group {
    /// Whether the time series of a run are small enough to be kept.
    pub(super) fn keeps_series(&self) -> bool {
        let rows = self.scenario.duration.as_nanos() / self.scenario.sample_interval.as_nanos().max(1);
        rows.saturating_mul(self.scenario.flows.len() as i64) <= MAX_SERIES
    }
}
