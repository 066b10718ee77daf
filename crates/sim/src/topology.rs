//! The shapes of networks that experiments use.

use crate::agent::Agent;
use crate::engine::Simulator;
use crate::observer::Observer;
use crate::route::Route;
use weir_path::{ConfigError, LinkConfig};

/// Both directions of a connection between two nodes, which need not be alike.
#[derive(Clone, PartialEq, Debug)]
pub struct DuplexConfig {
    /// What leads forward.
    pub forward: LinkConfig,
    /// What leads back.
    pub reverse: LinkConfig,
}

impl DuplexConfig {
    /// The same both ways.
    pub fn symmetric(link: LinkConfig) -> Self {
        Self { forward: link.clone(), reverse: link }
    }
}

/// A single connection: two links, which any number of agents may share.
///
/// Errors: what [`LinkConfig`] refuses; so for every function here.
pub fn point_to_point<A: Agent, O: Observer>(
    sim: &mut Simulator<A, O>,
    config: &DuplexConfig,
) -> Result<Route, ConfigError> {
    Ok(Route { forward: vec![sim.add_link(&config.forward)?], reverse: vec![sim.add_link(&config.reverse)?] })
}

/// Many pairs of hosts that share one bottleneck, each host with an access connection of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct Dumbbell {
    /// The shared part.
    pub bottleneck: Route,
    /// For each pair the way from its left host to its right host.
    pub pairs: Vec<Route>,
}

impl Dumbbell {
    /// Builds it; for each pair `access` gives the connection left host to left router and that from right router to
    /// right host, each seen from left to right.
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

/// Routers in a row with a bottleneck between each two: a long flow passes them all, cross flows one each.
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

    /// The way over all bottlenecks.
    pub fn long_route(&self) -> Route {
        self.hops.iter().fold(Route::default(), |route, hop| route.then(hop))
    }

    /// The way over bottlenecks `first..=last`; `None` if there is no such bottleneck or none in between.
    pub fn cross_route(&self, first: usize, last: usize) -> Option<Route> {
        let hops = self.hops.get(first..=last).filter(|h| !h.is_empty())?;
        Some(hops.iter().fold(Route::default(), |route, hop| route.then(hop)))
    }
}
