//! An overlay of distribution trees in the simulator: joins, nodes that leave at once, and what the others miss.

mod agent;
mod meter;
mod network;
mod plan;
mod results;
mod source;

pub use network::Depth;
pub use plan::{Division, OverlayError, OverlayPlan};
pub use results::{Churn, Delivery, Joins, Neighbours, OverlayResult, Traffic};

use crate::run::RunOptions;
use agent::Agent;
use network::Overlay;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use weir_sim::Outcome;
use weir_units::{TimeDelta, Timestamp};

/// Events between two looks at the stop flag.
const LOOK_EVERY: u64 = 100_000;

/// Runs an overlay. The result depends on the plan alone.
///
/// # Errors
/// The plan is not possible, or the run was stopped.
pub fn run(plan: &OverlayPlan, options: &RunOptions<'_>) -> Result<OverlayResult, OverlayError> {
    plan.check()?;
    let mut overlay = Overlay::new(plan, options.registry)?;
    let end = Timestamp::ZERO + plan.duration;
    let leave_at = Timestamp::ZERO + plan.leave_at;
    advance(&mut overlay, leave_at.min(end), plan, options)?;
    let depth = overlay.depth(plan, &[]);
    let leaving = overlay.leaving(plan);
    for (at, id) in &leaving {
        advance(&mut overlay, (*at).min(end), plan, options)?;
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
    advance(&mut overlay, end, plan, options)?;
    let mut leaving: Vec<_> = leaving.into_iter().map(|l| l.1).collect();
    leaving.sort_unstable();
    Ok(results::result(plan, &overlay, depth, &leaving))
}

fn advance(
    overlay: &mut Overlay,
    until: Timestamp,
    plan: &OverlayPlan,
    options: &RunOptions<'_>,
) -> Result<(), OverlayError> {
    let whole = plan.duration.as_secs_f64();
    let outcome = overlay.sim.run_until_with(until, LOOK_EVERY, |now| {
        (options.progress)((now.as_secs_f64() / whole).min(1.0));
        if options.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match outcome {
        Outcome::Reached => Ok(()),
        Outcome::Cancelled => Err(OverlayError::Stopped),
        Outcome::Stuck => Err(OverlayError::Stuck { at: overlay.sim.now().saturating_since(Timestamp::ZERO) }),
    }
}

/// A time in seconds.
fn seconds(time: TimeDelta) -> f64 {
    time.as_secs_f64()
}

#[cfg(test)]
mod tests;
