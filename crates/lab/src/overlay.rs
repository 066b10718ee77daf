//! An overlay of distribution trees in the simulator: joins, nodes that leave at once, and what the others miss.

mod agent;
mod meter;
mod network;
mod plan;
mod results;
mod source;

pub use network::Depth;
pub use plan::{Division, OverlayPlan};
pub use results::{Churn, Delivery, Joins, Neighbours, OverlayResult, Traffic};

use crate::plan::{PlanError, advance};
use crate::run::RunOptions;
use agent::Agent;
use network::Overlay;
use weir_units::{TimeDelta, Timestamp};

/// Runs an overlay. The result depends on the plan alone.
///
/// # Errors
/// The plan is not possible, or the run was stopped.
pub fn run(plan: &OverlayPlan, options: &RunOptions<'_>) -> Result<OverlayResult, PlanError> {
    plan.check()?;
    let mut overlay = Overlay::new(plan, options.registry)?;
    let end = Timestamp::ZERO + plan.duration;
    let leave_at = Timestamp::ZERO + plan.leave_at;
    advance(&mut overlay.sim, leave_at.min(end), plan.duration, options)?;
    let depth = overlay.depth(plan, &[]);
    let leaving = overlay.leaving(plan);
    for (at, id) in &leaving {
        advance(&mut overlay.sim, (*at).min(end), plan.duration, options)?;
        if plan.graceful {
            overlay.sim.with_agent(*id, |agent, now| {
                if let Agent::Node(node) = agent {
                    node.leave(now);
                }
            });
        } else {
            overlay.sim.stop_agent(*id, *at);
        }
    }
    advance(&mut overlay.sim, end, plan.duration, options)?;
    let mut leaving: Vec<_> = leaving.into_iter().map(|l| l.1).collect();
    leaving.sort_unstable();
    Ok(results::result(plan, &overlay, depth, &leaving))
}

/// A time in seconds.
fn seconds(time: TimeDelta) -> f64 {
    time.as_secs_f64()
}

#[cfg(test)]
mod tests;
