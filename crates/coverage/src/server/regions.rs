//! Regions shown in a window onto the map, computed a few regions at a time so that reports do not wait for it.

use super::problem::Problem;
use super::shared::{Caller, Shared};
use crate::lookahead::encode_polyline;
use crate::{Capacity, Cell, Devices, Extent, Filter, Hours, Operator, OperatorsSeen, Region, Resolution, WallTime};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Most regions of one answer.
pub(super) const MAX_REGIONS: usize = 4_000;
/// Regions that are computed while the writer waits.
const HELD: usize = 64;
/// Most names of operators of one answer.
const MAX_OPERATORS: usize = 100;
/// Cost of an overview, in look-aheads: it asks for as many cells as a few of them.
const COST: f64 = 4.0;

fn default_most() -> usize {
    2_000
}

/// A request for regions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RegionsRequest {
    /// The window.
    pub window: Extent,
    /// Of which network.
    #[serde(default)]
    pub network: Filter,
    /// Of which part of the week: `now`, `any`, or `0` to `7`: night, morning, day and evening of weekdays, then of weekends.
    #[serde(default)]
    #[schema(value_type = String, example = "now")]
    pub hours: Hours,
    /// About how many regions would cover the window: the more, the finer. 1 to 4,000. Default: 2,000.
    #[serde(default = "default_most")]
    pub most: usize,
}

/// A region, as the page draws it.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct RegionShown {
    /// Its cell.
    pub cell: Cell,
    /// Its corners, as a polyline of Google's format with 5 decimals.
    pub outline: String,
    /// Its capacity as known.
    #[serde(flatten)]
    pub capacity: Capacity,
    /// Of how many devices.
    pub devices: Devices,
}

impl RegionShown {
    fn new(cell: Cell, region: Region) -> Self {
        Self { cell, outline: encode_polyline(cell.boundary()), capacity: region.capacity, devices: region.devices }
    }
}

/// The regions of a window.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct Regions {
    /// When it was made.
    pub made_ms: WallTime,
    /// Of the regions: the map's, or a coarser one for a large window.
    pub resolution: u8,
    /// Whether these are all regions of the window that are known.
    pub complete: bool,
    /// Names of operators that have reports in the window, of enough devices.
    pub operators: Vec<Operator>,
    /// The regions that are known.
    pub regions: Vec<RegionShown>,
}

/// The same, by cell.
pub(super) struct Overview {
    pub(super) made: WallTime,
    pub(super) resolution: Resolution,
    pub(super) complete: bool,
    pub(super) operators: Vec<Operator>,
    pub(super) known: BTreeMap<Cell, Region>,
}

impl Overview {
    pub(super) fn shown(&self) -> Regions {
        Regions {
            made_ms: self.made,
            resolution: u8::from(self.resolution),
            complete: self.complete,
            operators: self.operators.clone(),
            regions: show(&self.known),
        }
    }
}

pub(super) fn show<'a>(known: impl IntoIterator<Item = (&'a Cell, &'a Region)>) -> Vec<RegionShown> {
    known.into_iter().map(|(cell, region)| RegionShown::new(*cell, *region)).collect()
}

/// Computes what a window shows, if this caller may ask again already.
pub(super) async fn overview(shared: &Shared, caller: &Caller, request: &RegionsRequest) -> Result<Overview, Problem> {
    if !(1..=MAX_REGIONS).contains(&request.most) {
        return Err(Problem::bad(format!("most {}: expected 1 to {MAX_REGIONS}", request.most)));
    }
    shared.take_look(caller, COST)?;
    let now = shared.now();
    let (cells, resolution) = {
        let map = shared.map();
        let resolution = request.window.resolution(request.most, map.resolution());
        (map.cells_touching(request.window, resolution, MAX_REGIONS + 1), resolution)
    };
    let complete = cells.len() <= MAX_REGIONS;
    let mut seen = OperatorsSeen::default();
    let mut known = BTreeMap::new();
    for some in cells[..cells.len().min(MAX_REGIONS)].chunks(HELD) {
        {
            let map = shared.map();
            for cell in some {
                map.note_operators(*cell, &mut seen);
                known.extend(map.region(*cell, &request.network, request.hours, now).map(|region| (*cell, region)));
            }
        }
        tokio::task::yield_now().await;
    }
    let operators = shared.map().operators(&seen, MAX_OPERATORS);
    Ok(Overview { made: now, resolution, complete, operators, known })
}
