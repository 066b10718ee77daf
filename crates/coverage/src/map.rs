//! The map: reports by cell, operator, technology and part of the week; answers from as near as enough devices reported.

mod insert;
mod leaf;
mod overview;
mod query;
mod sweep;
#[cfg(test)]
mod tests;
mod trust;

pub use overview::{Devices, Hours, OperatorsSeen, Region};
pub use sweep::Sweep;

use crate::{Capacity, Cell, Level, Operator, Technology, WallTime};
use h3o::Resolution;
use leaf::Leaf;
use std::collections::BTreeMap;
use trust::Trust;
use weir_units::TimeDelta;

/// How a map aggregates.
#[derive(Clone, Debug, PartialEq)]
pub struct MapConfig {
    /// Of the cells. Default: 10, hexagons of 132 m across on average (H3's table of cell areas), near Netradar's squares
    /// of 100 m.
    pub resolution: Resolution,
    /// Time in which an update loses half its weight. Default: 14 days, about half of the month over which the thesis
    /// collected. Own choice.
    pub half_life: TimeDelta,
    /// Devices that must have reported before a region answers (k-anonymity). Those that always disagree with others do not
    /// count. Default: 3.
    pub anonymity: usize,
    /// Updates of one device in one region from which on it has its whole weight. Default: 3.
    pub whole_weight: f32,
    /// Most cells; updates for others are counted and left out. Default: 2,000,000.
    pub max_cells: usize,
    /// Most devices kept for one cell, operator, technology and part of the week; the one unheard for longest gives way.
    /// Default: 48.
    pub max_devices: usize,
}

impl Default for MapConfig {
    fn default() -> Self {
        Self {
            resolution: Resolution::Ten,
            half_life: TimeDelta::from_secs(14 * 86_400),
            anonymity: 3,
            whole_weight: 3.0,
            max_cells: 2_000_000,
            max_devices: 48,
        }
    }
}

/// Of which network an answer shall be.
#[derive(Clone, Debug, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct Filter {
    /// One operator, or all taken together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<Operator>,
    /// One technology, or all taken together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub technology: Option<Technology>,
}

/// A source of answers for cells: a map, or a copy of a part of one.
pub trait View {
    /// The resolution of its cells.
    fn resolution(&self) -> Resolution;

    /// Returns the capacity of a cell at a time from no further than `furthest`, or `None` if too few devices have reported.
    fn capacity_within(&self, cell: Cell, filter: &Filter, at: WallTime, furthest: Level) -> Option<Capacity>;

    /// Returns the capacity of a cell at a time, or `None` if too few devices have reported.
    fn capacity(&self, cell: Cell, filter: &Filter, at: WallTime) -> Option<Capacity> {
        self.capacity_within(cell, filter, at, Level::District)
    }
}

/// Outcome of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It counts in its region.
    Counted,
    /// The sender had no more to send, and the region's rate is higher already: it says nothing.
    Limited,
    /// The map has as many cells as it may have, or operators, or trusted devices in this region.
    Full,
}

/// The size of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct MapStats {
    /// Cells.
    pub cells: usize,
    /// Cells by operator, technology and part of the week.
    pub leaves: usize,
    /// Devices in these.
    pub entries: usize,
    /// Devices whose agreement with others is known.
    pub devices: usize,
}

/// Names of operators are kept once, as numbers.
const MAX_OPERATORS: usize = 4_096;

/// Group of reports of a cell: operator, technology, part of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LeafKey {
    operator: u16,
    technology: u8,
    hours: u8,
}

/// A coverage map.
///
/// Answers depend only on the updates, their order and the time asked for. No device has more influence on a region than
/// any other that reported as often, and less the more it disagrees with others, here and elsewhere.
#[derive(Clone, Debug)]
pub struct Map {
    config: MapConfig,
    /// By index of the cell, so that those inside a coarser one are together.
    cells: BTreeMap<u64, Vec<Leaf>>,
    operators: BTreeMap<Operator, u16>,
    trust: BTreeMap<u32, Trust>,
    leaves: usize,
    entries: usize,
}

impl Map {
    /// A map without updates.
    pub fn new(config: MapConfig) -> Self {
        Self {
            config,
            cells: BTreeMap::new(),
            operators: BTreeMap::new(),
            trust: BTreeMap::new(),
            leaves: 0,
            entries: 0,
        }
    }

    /// How it aggregates.
    pub fn config(&self) -> &MapConfig {
        &self.config
    }

    /// Of its cells.
    pub fn resolution(&self) -> Resolution {
        self.config.resolution
    }

    /// Its size.
    pub fn stats(&self) -> MapStats {
        MapStats { cells: self.cells.len(), leaves: self.leaves, entries: self.entries, devices: self.trust.len() }
    }

    /// The weight of a device by its agreement with others so far, 0 to 1.
    pub fn trust_of(&self, device: u32) -> f64 {
        self.trust.get(&device).map_or(Trust::UNKNOWN, Trust::weight)
    }
}
