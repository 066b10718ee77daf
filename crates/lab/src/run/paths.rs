//! Paths of a call after its first.

use crate::scenario::{Multipath, RtpFlow};
use weir_cc::coupled::Division;
use weir_cc::tunable::SetupError;
use weir_cc::{Registry, Setup};
use weir_session::multipath::{AnyScheduler, Coupling, PathPolicy, SkewPlayoutConfig};
use weir_session::{CallPlan, Control, GroupConfig};
use weir_sim::mix;
use weir_units::TimeDelta;

/// Playout delay beyond the skew (calibrated: half of the time in which a frame's packets leave at 15 pictures a second).
const MARGIN: TimeDelta = TimeDelta::from_millis(50);
/// Longest playout delay of flows without a deadline (V. Singh's dissertation, section 6.3).
const MAX_DELAY: TimeDelta = TimeDelta::from_millis(500);

/// Gives each path after the first a controller of its own, like the first one's `setup` but for the seed. The media
/// of all paths together stay below the flow's ceiling.
pub(super) fn add(
    plan: &mut CallPlan,
    multipath: &Multipath,
    rtp: &RtpFlow,
    registry: &Registry,
    setup: &Setup,
) -> Result<(), SetupError> {
    for n in 1..multipath.paths.len() as u64 {
        let setup = Setup { seed: mix(setup.seed, 9_000 + n), ..setup.clone() };
        let control = Control::new(registry, &rtp.controller, &setup)?;
        plan.add_path(Control { feedback: rtp.feedback, reports: rtp.reports, ..control });
    }
    let first = &plan.sending[0];
    let (circuit_breaker, ecn) = (first.circuit_breaker, first.ecn);
    let policies = multipath.policies.iter().copied().chain(std::iter::repeat(PathPolicy::default()));
    for (path, policy) in plan.sending.iter_mut().zip(policies) {
        (path.circuit_breaker, path.ecn, path.policy) = (circuit_breaker, ecn, policy);
    }
    // Names are checked when the scenario is read.
    let Some(scheduler) = AnyScheduler::named(&multipath.scheduler) else { return Ok(()) };
    let coupling = Coupling::named(&multipath.coupling, Division::Active).unwrap_or_default();
    plan.group = GroupConfig { scheduler, coupling, sufficient_rate: multipath.sufficient_rate, ..plan.group.clone() };
    plan.group.priorities.iter_mut().zip(&multipath.priorities).for_each(|(p, given)| *p = *given);
    if multipath.skew_playout {
        let max = rtp.playout_deadline.unwrap_or(MAX_DELAY);
        let skew = SkewPlayoutConfig { margin: MARGIN, max, patience: None };
        plan.incoming.iter_mut().for_each(|s| s.skew_playout = Some(skew));
    }
    if rtp.streams.is_empty() {
        plan.outgoing.iter_mut().for_each(|s| s.demand.most = rtp.ceiling);
    }
    Ok(())
}
