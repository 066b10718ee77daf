//! Samples of the paths of calls that have several.

use super::network::Network;
use super::observer::RunObserver;
use crate::scenario::Scenario;
use weir_units::{DataRate, DataSize, PathId, Timestamp};

/// Samples the paths of a flow at its sending end and, at the end of a row, passes what was sent on each to the
/// recorder. Without effect on flows of one path.
pub(super) fn sample(scenario: &Scenario, network: &mut Network<RunObserver<'_>>, flow: usize, now: Timestamp) {
    let about = &scenario.flows[flow];
    let Some(multipath) = about.rtp().and_then(|r| r.multipath.as_ref()) else { return };
    if now < Timestamp::ZERO + about.start || now > Timestamp::ZERO + about.stop {
        return;
    }
    let sim = &mut network.sim;
    let Some(call) = sim.agent(network.flows[flow].sender).call() else { return };
    let ids = (0..multipath.paths.len() as u8).map(PathId::new);
    let stats: Vec<_> = ids.map(|id| call.path(id).and_then(|p| p.stats()).unwrap_or_default()).collect();
    let Some((meter, recorder)) = sim.observer_mut().paths_mut(flow) else { return };
    for (path, stats) in stats.iter().enumerate() {
        meter.on_stats(path, stats);
    }
    if now < recorder.next_row() {
        return;
    }
    for (path, (name, bytes)) in meter.take_row().enumerate() {
        let rate = DataRate::from_size_over(DataSize::from_bytes(bytes), scenario.sample_interval);
        recorder.path(flow, now, path, name, rate.unwrap_or(DataRate::ZERO));
    }
}
