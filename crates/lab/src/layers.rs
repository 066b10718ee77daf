//! Layers over multicast groups to many receivers in the simulator: each joins and leaves by its losses
//! ([`LayeredReceiver`]).
//!
//! Receivers are at sites. A site has one link to the core, the bottleneck of its receivers, and a router that asks the core for
//! the groups that any of them has joined: a layer crosses the link once. So an experiment of one receiver that fails is felt by
//! all of its site, and of no other. Sites have links of several classes in turn.

mod agent;
mod core_end;
mod message;
mod plan;
mod results;
mod site;

pub use plan::{LayersPlan, Learning};
pub use results::{ClassResult, ControlTraffic, LayersResult};

use crate::plan::{PlanError, advance};
use crate::run::RunOptions;
use agent::Agent;
use core_end::CoreEnd;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use site::SiteEnd;
use weir_path::{Limit, LinkConfig};
use weir_session::{LayeredConfig, LayeredReceiver};
use weir_sim::{AgentId, Simulator, mix};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Rate of links that are no bottleneck.
const FAST: DataRate = DataRate::from_mbps(10_000);
/// One-way delays between the core and a site, in microseconds.
const DELAYS_US: core::ops::Range<i64> = 10_000..60_000;

/// Runs a plan. The result depends on the plan alone.
///
/// # Errors
/// The plan is not possible, or the run was stopped.
pub fn run(plan: &LayersPlan, options: &RunOptions<'_>) -> Result<LayersResult, PlanError> {
    plan.check()?;
    let mut sim = Simulator::new(plan.seed);
    let mut rng = Pcg64Mcg::seed_from_u64(plan.seed);
    let sites: Vec<AgentId> = (1..=plan.sites).map(AgentId::from_index).collect();
    let core = CoreEnd::new(plan, &sites, mix(plan.seed, 0));
    let core = sim.add_agent(Agent::Core(Box::new(core)), Timestamp::ZERO);
    access(&mut sim, core, [FAST; 2], TimeDelta::ZERO, plan.queue)?;
    for k in 0..plan.sites {
        let class = k as usize % plan.classes.len();
        let mut site = SiteEnd::new(plan, core, class).with_id(sites[k as usize]);
        for r in (k..plan.receivers).step_by(plan.sites as usize) {
            let start = Timestamp::ZERO + plan.arrivals.mul_f64(rng.random());
            let config = LayeredConfig {
                learns: plan.learning != Learning::None,
                ..LayeredConfig::new(plan.layers.len() as u8, mix(plan.seed, 1 + u64::from(r)))
            };
            site.add(start, LayeredReceiver::new(config, start));
        }
        let delay = TimeDelta::from_micros(rng.random_range(DELAYS_US));
        let id = sim.add_agent(Agent::Site(Box::new(site)), Timestamp::ZERO);
        access(&mut sim, id, [FAST, plan.classes[class]], delay, plan.queue)?;
    }
    advance(&mut sim, Timestamp::ZERO + plan.duration, plan.duration, options)?;
    Ok(results::result(plan, &sim))
}

/// Gives an agent its links: up and down.
fn access(
    sim: &mut Simulator<Agent>,
    id: AgentId,
    rates: [DataRate; 2],
    delay: TimeDelta,
    queue: TimeDelta,
) -> Result<(), PlanError> {
    let mut add = |rate| {
        let mut config = LinkConfig::constant(rate, delay);
        config.limit = Limit::Time(queue);
        sim.add_link(&config)
    };
    let (up, down) = (add(rates[0])?, add(rates[1])?);
    sim.set_access(id, up, down);
    Ok(())
}

#[cfg(test)]
mod tests;
