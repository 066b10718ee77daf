use super::{LookaheadError, in_range};
use crate::{Capacity, Cell, Filter, Level, Position, View, WallTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_units::DataRate;

/// Most cells that a subscription watches: a radius of 30 cells, 4 km at the default resolution.
const MAX_STEPS: u32 = 30;
/// A poor region is left when its rate is above the bound by this factor, so that it does not flap.
const HYSTERESIS: f64 = 1.1;

/// A subscription to regions of poor coverage around a moving end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct FenceRequest {
    /// Regions whose lower quartile is below this, in bit/s, are poor.
    pub below_bps: u64,
    /// How far around to look, in metres, up to 4,000.
    pub radius_m: f64,
    /// Of which network.
    #[serde(default)]
    pub network: Filter,
}

/// A poor region.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct PoorRegion {
    /// Its cell.
    pub cell: Cell,
    /// Its capacity as known.
    pub capacity: Capacity,
}

/// An event for a subscriber.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub enum FenceEvent {
    /// A poor region came into reach, or what is known of it has changed.
    Poor(PoorRegion),
    /// A region is no longer poor, or out of reach.
    Gone {
        /// Its cell.
        cell: Cell,
    },
    /// The end is in a poor region.
    Entered(PoorRegion),
    /// The end has left the poor region that it was in.
    Left {
        /// Its cell.
        cell: Cell,
    },
}

/// A subscription's state. It is the subscriber's position alone that is kept, and only the last one.
#[derive(Clone, Debug)]
pub struct Fence {
    request: FenceRequest,
    poor: BTreeMap<Cell, Capacity>,
    inside: Option<Cell>,
    position: Option<Position>,
}

impl Fence {
    /// A subscription.
    ///
    /// # Errors
    /// The request is out of range.
    pub fn new(request: FenceRequest) -> Result<Self, LookaheadError> {
        in_range("radius in metres", request.radius_m, 1.0, 4_000.0)?;
        in_range("rate in bit/s", request.below_bps as f64, 1.0, 1e11)?;
        Ok(Self { request, poor: BTreeMap::new(), inside: None, position: None })
    }

    /// Takes a new position, or looks again at the last one, and returns what has changed. Nothing happens before the
    /// first position.
    pub fn update(&mut self, view: &impl View, position: Option<Position>, now: WallTime) -> Vec<FenceEvent> {
        self.position = position.or(self.position);
        let Some(position) = self.position else { return Vec::new() };
        let here = position.cell(view.resolution());
        // The mean distance between centres of neighbours is 1.73 edges; 1.5 edges is the least.
        let width = view.resolution().edge_length_m() * 1.5;
        let steps = (libm::ceil(self.request.radius_m / width) as u32).min(MAX_STEPS);
        let mut events = Vec::new();
        let mut next = BTreeMap::new();
        for cell in here.disk(steps) {
            if cell != here && cell.center().distance_m(position) > self.request.radius_m {
                continue;
            }
            let Some(capacity) = view.capacity_within(cell, &self.request.network, now, Level::AnyHour) else {
                continue;
            };
            if capacity.quantiles.p25 < self.bound(cell) {
                next.insert(cell, capacity);
            }
        }
        for cell in self.poor.keys().filter(|cell| !next.contains_key(cell)) {
            events.push(FenceEvent::Gone { cell: *cell });
        }
        for (cell, capacity) in &mut next {
            match self.poor.get(cell) {
                // Later values are compared with the one sent last.
                Some(sent) if !differs(sent, capacity) => *capacity = *sent,
                _ => events.push(FenceEvent::Poor(PoorRegion { cell: *cell, capacity: *capacity })),
            }
        }
        let inside = next.get(&here).map(|_| here);
        if self.inside != inside {
            if let Some(cell) = self.inside {
                events.push(FenceEvent::Left { cell });
            }
            if let Some((cell, capacity)) = next.get_key_value(&here) {
                events.push(FenceEvent::Entered(PoorRegion { cell: *cell, capacity: *capacity }));
            }
        }
        self.inside = inside;
        self.poor = next;
        events
    }

    /// The rate below which a cell is poor: somewhat more for one that is.
    fn bound(&self, cell: Cell) -> DataRate {
        let factor = if self.poor.contains_key(&cell) { HYSTERESIS } else { 1.0 };
        DataRate::from_bps_f64(self.request.below_bps as f64 * factor)
    }
}

/// Whether a change is worth an event: a fifth of the lower quartile.
fn differs(before: &Capacity, after: &Capacity) -> bool {
    let (a, b) = (before.quantiles.p25.as_bps_f64(), after.quantiles.p25.as_bps_f64());
    (a - b).abs() > 0.2 * a.max(b)
}
