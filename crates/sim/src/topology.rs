//! Network topologies of experiments.

use crate::agent::Agent;
use crate::engine::Simulator;
use crate::observer::Observer;
use crate::route::Route;
use weir_path::{ConfigError, LinkConfig};

/// Both directions of a connection between two nodes, which may differ.
#[derive(Clone, PartialEq, Debug)]
pub struct DuplexConfig {
    /// The forward direction.
    pub forward: LinkConfig,
    /// The reverse direction.
    pub reverse: LinkConfig,
}

impl DuplexConfig {
    /// The same in both directions.
    pub fn symmetric(link: LinkConfig) -> Self {
        Self { forward: link.clone(), reverse: link }
    }
}

/// A single connection: two links, shared by any number of agents.
///
/// Errors: as for [`LinkConfig`], also for the other functions here.
pub fn point_to_point<A: Agent, O: Observer>(
    sim: &mut Simulator<A, O>,
    config: &DuplexConfig,
) -> Result<Route, ConfigError> {
    Ok(Route { forward: vec![sim.add_link(&config.forward)?], reverse: vec![sim.add_link(&config.reverse)?] })
}

/// Pairs of hosts that share one bottleneck, each host with its own access connection.
#[derive(Clone, PartialEq, Debug)]
pub struct Dumbbell {
    /// The shared part.
    pub bottleneck: Route,
    /// For each pair the route from its left host to its right host.
    pub pairs: Vec<Route>,
}

impl Dumbbell {
    /// Builds it; for each pair `access` returns the connections from left host to left router and from right router to
    /// right host, in this direction.
    pub fn build<A: Agent, O: Observer>(
        sim: &mut Simulator<A, O>,
        bottleneck: &DuplexConfig,
        access: &[(DuplexConfig, DuplexConfig)],
    ) -> Result<Self, ConfigError> {
        let bottleneck = point_to_point(sim, bottleneck)?;
        let mut pairs = Vec::with_capacity(access.len());
        for (left, right) in access {
            let (left, right) = (point_to_point(sim, left)?, point_to_point(sim, right)?);
            pairs.push(left.then(&bottleneck).then(&right));
        }
        Ok(Self { bottleneck, pairs })
    }
}

/// Routers in a row with a bottleneck between neighbours: a long flow passes all, cross flows one each.
#[derive(Clone, PartialEq, Debug)]
pub struct ParkingLot {
    /// The bottlenecks, in order.
    pub hops: Vec<Route>,
}

impl ParkingLot {
    /// Builds it.
    pub fn build<A: Agent, O: Observer>(sim: &mut Simulator<A, O>, hops: &[DuplexConfig]) -> Result<Self, ConfigError> {
        Ok(Self { hops: hops.iter().map(|h| point_to_point(sim, h)).collect::<Result<_, _>>()? })
    }

    /// The route over all bottlenecks.
    pub fn long_route(&self) -> Route {
        self.hops.iter().fold(Route::default(), |route, hop| route.then(hop))
    }

    /// The route over bottlenecks `first..=last`; `None` if there is no such bottleneck or none in between.
    pub fn cross_route(&self, first: usize, last: usize) -> Option<Route> {
        let hops = self.hops.get(first..=last).filter(|h| !h.is_empty())?;
        Some(hops.iter().fold(Route::default(), |route, hop| route.then(hop)))
    }
}
