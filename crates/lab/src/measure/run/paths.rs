//! Paths of a call after its first.

use crate::measure::scenario::{Multipath, RtpFlow};
use weir_cc::tunable::SetupError;
use weir_cc::{Registry, Setup};
use weir_session::multipath::AnyScheduler;
use weir_session::{CallPlan, Control, MultipathConfig};
use weir_sim::mix;

/// Gives each path after the first a controller of its own, like the first one's `setup` but for the seed. The media
/// of all paths together stay below the flow's ceiling.
pub(super) fn add(
    plan: &mut CallPlan,
    multipath: &Multipath,
    rtp: &RtpFlow,
    registry: &Registry,
    setup: &Setup,
) -> Result<(), SetupError> {
    let mut controllers = Vec::new();
    for n in 1..multipath.paths.len() as u64 {
        let setup = Setup { seed: mix(setup.seed, 9_000 + n), ..setup.clone() };
        let pair = Control::new(registry, &rtp.controller, &setup)?.controller;
        controllers.push(pair.sender);
        plan.receive.further_paths.push(pair.receiver);
    }
    // Names are checked when the scenario is read.
    let Some(scheduler) = AnyScheduler::named(&multipath.scheduler) else { return Ok(()) };
    plan.send.multipath = Some(MultipathConfig::new(scheduler, controllers));
    if rtp.streams.is_empty() {
        plan.send.demand.most = rtp.ceiling;
    }
    Ok(())
}
