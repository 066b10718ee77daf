//! Overviews for a window onto the map: regions of one resolution, of any coarseness, each answering under the same rule as a
//! look-ahead's.

use super::leaf::Entry;
use super::query::Wanted;
use super::{Filter, Map};
use crate::{Capacity, Cell, Extent, HourClass, Level, Operator, Technology, WallTime};
use h3o::Resolution;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Cells of the map from which a coarser region is formed: all, up to two steps (49 cells); beyond that as many, spread
/// evenly, so that the view of a country costs no more than that of a town.
const SAMPLES: u64 = 49;
/// Most devices' reports from one cell of a sampled region.
const MAX_ENTRIES: usize = 64;

/// Of which part of the week a region shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Hours {
    /// The part that it is now, and where that is not known, any: as look-aheads do. Written `now`.
    #[default]
    Now,
    /// All parts together. Written `any`.
    Any,
    /// This part alone. Written as its number, 0 to 7.
    Class(HourClass),
}

impl TryFrom<String> for Hours {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "now" => Ok(Self::Now),
            "any" => Ok(Self::Any),
            number => {
                let class = number.parse().ok().and_then(HourClass::from_number);
                class
                    .map(Self::Class)
                    .ok_or("hours are now, any, or 0 to 7 (night, morning, day, evening; 4 to 7 at weekends)")
            }
        }
    }
}

impl From<Hours> for String {
    fn from(hours: Hours) -> Self {
        match hours {
            Hours::Now => "now".to_owned(),
            Hours::Any => "any".to_owned(),
            Hours::Class(class) => class.number().to_string(),
        }
    }
}

/// How many devices an answer is of. Exact numbers would show when one has come or gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub enum Devices {
    /// Up to twice as many as an answer needs.
    Few,
    /// Up to eight times as many.
    Some,
    /// More.
    Many,
}

/// A region of an overview.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Its capacity as known.
    pub capacity: Capacity,
    /// Of how many devices.
    pub devices: Devices,
}

/// Operators that were met in regions, with up to as many devices of each as an answer needs.
#[derive(Clone, Debug, Default)]
pub struct OperatorsSeen(BTreeMap<u16, Vec<u32>>);

impl Map {
    /// Cells of a resolution that touch a window and have reports, in order of the index; `most` at most. Whether they can
    /// answer is not known yet.
    pub fn cells_touching(&self, window: Extent, resolution: Resolution, most: usize) -> Vec<Cell> {
        let mut found = Vec::new();
        // Depth first, so that the order is that of the index.
        let mut open: Vec<Cell> = Cell::coarsest().collect();
        open.reverse();
        while let Some(cell) = open.pop() {
            let (first, last) = cell.span(self.config.resolution);
            let wanted = cell.resolution() >= resolution;
            if !window.touches(cell, !wanted) || self.cells.range(first.index()..=last.index()).next().is_none() {
                continue;
            }
            if wanted {
                found.push(cell);
                if found.len() >= most {
                    break;
                }
            } else {
                let children: Vec<Cell> = cell.children().collect();
                open.extend(children.into_iter().rev());
            }
        }
        found
    }

    /// Returns the capacity of a region, itself and not from around it, or `None` if too few devices have reported. Of one that is
    /// more than two steps coarser than the map, 49 cells are taken for all.
    pub fn region(&self, cell: Cell, network: &Filter, hours: Hours, at: WallTime) -> Option<Region> {
        let operator = match &network.operator {
            Some(name) => Some(*self.operators.get(name)?),
            None => None,
        };
        let class = match hours {
            Hours::Now => Some(HourClass::of(at, cell.center()).number()),
            Hours::Class(class) => Some(class.number()),
            Hours::Any => None,
        };
        let technology = network.technology.map(Technology::number);
        let wanted = Wanted { operator, technology, hours: class };
        let level = if class.is_some() { Level::Cell } else { Level::AnyHour };
        let own = self.region_of(cell, wanted, at, level);
        if own.is_some() || hours != Hours::Now {
            return own;
        }
        self.region_of(cell, Wanted { hours: None, ..wanted }, at, Level::AnyHour)
    }

    /// Indices of the cells that a region is formed from.
    fn formed_from(&self, cell: Cell) -> Vec<u64> {
        let finest = self.config.resolution;
        let steps = u8::from(finest).saturating_sub(u8::from(cell.resolution()));
        let (first, last) = cell.span(finest);
        let mut indices = Vec::new();
        if steps <= 2 {
            indices.extend(self.cells.range(first.index()..=last.index()).map(|(index, _)| *index));
            return indices;
        }
        for seed in cell.spread(finest, SAMPLES) {
            // The next one that is known stands for those around.
            let from = indices.last().map_or(seed.index(), |before| seed.index().max(before + 1));
            if from > last.index() {
                break;
            }
            indices.extend(self.cells.range(from..=last.index()).next().map(|(index, _)| *index));
        }
        indices
    }

    fn region_of(&self, cell: Cell, wanted: Wanted, at: WallTime, level: Level) -> Option<Region> {
        let mut entries: Vec<&Entry> = Vec::new();
        for index in self.formed_from(cell) {
            let leaves = self.cells.get(&index)?.iter().filter(|l| wanted.includes(l.key));
            entries.extend(leaves.flat_map(|l| &l.entries).take(MAX_ENTRIES));
        }
        if entries.len() < self.config.anonymity {
            return None;
        }
        let voices = self.voices(entries, at);
        if voices.len() < self.config.anonymity {
            return None;
        }
        let least = self.config.anonymity.max(1);
        let devices = match voices.len() / least {
            0 | 1 => Devices::Few,
            2..8 => Devices::Some,
            _ => Devices::Many,
        };
        Some(Region { capacity: self.combine(&voices, level)?, devices })
    }

    /// Notes the operators of a region.
    pub fn note_operators(&self, cell: Cell, seen: &mut OperatorsSeen) {
        let needed = self.config.anonymity.max(1);
        for leaf in self.formed_from(cell).iter().filter_map(|index| self.cells.get(index)).flatten() {
            let devices = seen.0.entry(leaf.key.operator).or_default();
            for entry in &leaf.entries {
                if devices.len() >= needed {
                    break;
                }
                if !devices.contains(&entry.device) && self.trust_of(entry.device) > 0.0 {
                    devices.push(entry.device);
                }
            }
        }
    }

    /// The names of operators of which as many devices were met as an answer needs, in order; `most` at most.
    pub fn operators(&self, seen: &OperatorsSeen, most: usize) -> Vec<Operator> {
        let needed = self.config.anonymity.max(1);
        let known = |number: &u16| seen.0.get(number).is_some_and(|devices| devices.len() >= needed);
        self.operators.iter().filter(|(_, number)| known(number)).map(|(name, _)| name.clone()).take(most).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MapConfig, Position, Update};
    use weir_units::{DataRate, TimeDelta};

    const NOW: WallTime = WallTime::from_unix_millis(1_700_000_000_000);

    fn start() -> Position {
        Position::new(60.187, 24.833).expect("valid")
    }

    /// Devices that each report every 200 m eastward: `devices` of them over the first kilometre, two over the next four.
    fn map(devices: u32) -> Map {
        let mut map = Map::new(MapConfig::default());
        for device in 0..devices {
            for i in 0..25 {
                let operator = if device == 0 { "rare" } else { "244-91" };
                if i > 5 && device > 1 {
                    continue;
                }
                let at = start().offset(90.0, f64::from(i) * 200.0);
                for second in 0..3 {
                    let time = NOW.plus(TimeDelta::from_secs(second));
                    let rate = DataRate::from_kbps(if i < 5 { 1_000 } else { 4_000 });
                    let update = Update::new(0, time, at, operator.parse().expect("valid"), Technology::Umts, rate);
                    map.insert(device, &update, NOW);
                }
            }
        }
        map
    }

    fn window() -> Extent {
        Extent::new(60.1, 24.7, 60.3, 25.1).expect("valid")
    }

    #[test]
    fn a_window_finds_what_is_inside_and_has_reports() {
        let map = map(6);
        let cells = map.cells_touching(window(), Resolution::Ten, 1_000);
        assert!((24..=26).contains(&cells.len()), "{}", cells.len());
        assert!(cells.is_sorted() && cells.iter().all(|c| c.resolution() == Resolution::Ten));
        assert_eq!(map.cells_touching(window(), Resolution::Ten, 7), cells[..7]);
        let elsewhere = Extent::new(60.1, 25.2, 60.3, 25.3).expect("valid");
        assert_eq!(map.cells_touching(elsewhere, Resolution::Ten, 1_000), []);
        let world = Extent::new(-90.0, -180.0, 90.0, 180.0).expect("valid");
        let coarse = map.cells_touching(world, Resolution::Zero, 1_000);
        let mut parents: Vec<Cell> = cells.iter().map(|c| c.parent(Resolution::Zero)).collect();
        parents.dedup();
        assert_eq!(coarse, parents);
    }

    #[test]
    fn regions_answer_for_as_many_devices_as_look_aheads_at_any_coarseness() {
        let (few, map) = (map(2), map(6));
        let answer = |map: &Map, cell, hours| map.region(cell, &Filter::default(), hours, NOW);
        let (here, far) = (start().cell(Resolution::Ten), start().offset(90.0, 4_000.0).cell(Resolution::Ten));
        let known = answer(&map, here, Hours::Now).expect("six devices");
        assert_eq!((known.capacity.level, known.devices), (Level::Cell, Devices::Some));
        assert!((known.capacity.quantiles.p50.as_kbps_f64() / 1_000.0 - 1.0).abs() < 0.05);
        assert_eq!(answer(&map, far, Hours::Any), None, "two devices");
        for resolution in [Resolution::Nine, Resolution::Seven, Resolution::Four, Resolution::Zero] {
            let cell = start().cell(resolution);
            assert!(answer(&map, cell, Hours::Now).is_some(), "{resolution}");
            assert_eq!(answer(&few, cell, Hours::Now), None, "{resolution}");
        }
        // The evening is the only part with reports; "now" falls back to any part at night.
        let evening = HourClass::of(NOW, start());
        assert!(answer(&map, here, Hours::Class(evening)).is_some());
        let night = HourClass::from_number(0).expect("a class");
        assert_eq!(answer(&map, here, Hours::Class(night)), None);
        let later = map.region(here, &Filter::default(), Hours::Now, NOW.plus(TimeDelta::from_secs(6 * 3_600)));
        assert_eq!(later.expect("known").capacity.level, Level::AnyHour);
        let rare = Filter { operator: Some("rare".parse().expect("valid")), technology: None };
        assert_eq!(map.region(here, &rare, Hours::Any, NOW), None);
    }

    #[test]
    fn operators_of_too_few_devices_are_not_named() {
        let map = map(6);
        let mut seen = OperatorsSeen::default();
        for cell in map.cells_touching(window(), Resolution::Ten, 1_000) {
            map.note_operators(cell, &mut seen);
        }
        assert_eq!(map.operators(&seen, 10), ["244-91".parse::<Operator>().expect("valid")]);
        assert!(seen.0.values().all(|devices| devices.len() <= 3));
        assert_eq!(map.operators(&seen, 0), []);
    }

    #[test]
    fn hours_are_written_as_they_are_read() {
        for text in ["\"now\"", "\"any\"", "\"0\"", "\"7\""] {
            let hours: Hours = serde_json::from_str(text).expect("valid");
            assert_eq!(serde_json::to_string(&hours).expect("JSON"), text);
        }
        assert!(serde_json::from_str::<Hours>("\"8\"").is_err() && serde_json::from_str::<Hours>("\"\"").is_err());
    }
}
