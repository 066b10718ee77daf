//! Parts of a map, as clients keep them: answers without a server.

use crate::{Capacity, Cell, Filter, Level, View, WallTime};
use h3o::Resolution;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_units::TimeDelta;

/// Most cells of a part.
const MAX_CELLS: usize = 20_000;

/// Capacities of the cells inside a coarser one, as downloaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
pub struct CachedPart {
    /// When it was made.
    pub made_ms: WallTime,
    /// The coarser cell.
    pub area: Cell,
    /// Of the cells.
    pub resolution: u8,
    /// Of which network.
    pub network: Filter,
    /// The cells that are known, by index.
    #[cfg_attr(feature = "server", schema(value_type = Vec<Vec<serde_json::Value>>))]
    pub cells: Vec<(Cell, Capacity)>,
}

/// Why a text is no map.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// Not what was written.
    #[error("the cached map cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// Too much, or of different resolutions.
    #[error("the cached map has parts that do not fit: {0}")]
    Part(&'static str),
}

/// A map of downloaded parts, one for each area and network. Its confidence decreases with age.
#[derive(Clone, Debug, PartialEq)]
pub struct CachedMap {
    resolution: Resolution,
    /// Age at which confidence is one half of what it was.
    half_life: TimeDelta,
    most: usize,
    parts: Vec<CachedPart>,
    cells: BTreeMap<(Cell, usize), Capacity>,
}

impl CachedMap {
    /// A map without parts, of up to `most` of them; the one made first gives way. Parts count half as much after each
    /// `half_life`.
    pub fn new(resolution: Resolution, half_life: TimeDelta, most: usize) -> Self {
        Self { resolution, half_life, most: most.max(1), parts: Vec::new(), cells: BTreeMap::new() }
    }

    /// Reads what [`Self::to_json`] wrote.
    ///
    /// # Errors
    /// The text is something else.
    pub fn from_json(text: &str, half_life: TimeDelta, most: usize) -> Result<Option<Self>, CacheError> {
        let parts: Vec<CachedPart> = serde_json::from_str(text)?;
        let Some(first) = parts.first() else { return Ok(None) };
        let resolution = Resolution::try_from(first.resolution).map_err(|_| CacheError::Part("no resolution"))?;
        let mut map = Self::new(resolution, half_life, most);
        for part in parts {
            map.add(part)?;
        }
        Ok(Some(map))
    }

    /// All parts, as JSON.
    pub fn to_json(&self) -> String {
        // Nothing in a part can fail to be written.
        serde_json::to_string(&self.parts).unwrap_or_default()
    }

    /// Adds a part, in the place of one of the same area and network.
    ///
    /// # Errors
    /// The part is of another resolution, has too many cells, or cells elsewhere.
    pub fn add(&mut self, part: CachedPart) -> Result<(), CacheError> {
        if part.resolution != u8::from(self.resolution) {
            return Err(CacheError::Part("another resolution"));
        }
        if part.cells.len() > MAX_CELLS {
            return Err(CacheError::Part("too many cells"));
        }
        let inside =
            |cell: Cell| cell.resolution() == self.resolution && cell.parent(part.area.resolution()) == part.area;
        if !part.cells.iter().all(|(cell, _)| inside(*cell)) {
            return Err(CacheError::Part("cells of another area"));
        }
        self.parts.retain(|p| p.area != part.area || p.network != part.network);
        self.parts.push(part);
        if self.parts.len() > self.most
            && let Some(oldest) = (0..self.parts.len()).min_by_key(|i| self.parts[*i].made_ms)
        {
            self.parts.remove(oldest);
        }
        self.cells = self
            .parts
            .iter()
            .enumerate()
            .flat_map(|(i, part)| part.cells.iter().map(move |(cell, capacity)| ((*cell, i), *capacity)))
            .collect();
        Ok(())
    }

    /// Whether there is a part of this area and network that was made within `age`.
    pub fn has(&self, area: Cell, network: &Filter, age: TimeDelta, now: WallTime) -> bool {
        let fits = |p: &CachedPart| p.area == area && p.network == *network && now.since(p.made_ms) <= age;
        self.parts.iter().any(fits)
    }

    /// When its parts were made and of which area they are.
    pub fn parts(&self) -> impl Iterator<Item = (Cell, WallTime)> + '_ {
        self.parts.iter().map(|p| (p.area, p.made_ms))
    }
}

impl View for CachedMap {
    fn resolution(&self) -> Resolution {
        self.resolution
    }

    fn capacity_within(&self, cell: Cell, filter: &Filter, at: WallTime, furthest: Level) -> Option<Capacity> {
        let of_cell = self.cells.range((cell, 0)..=(cell, usize::MAX));
        let fitting = of_cell.filter(|((_, i), c)| self.parts[*i].network == *filter && c.level <= furthest);
        // The newest, where areas overlap.
        let ((_, i), capacity) = fitting.max_by_key(|((_, i), _)| self.parts[*i].made_ms)?;
        let age = at.since(self.parts[*i].made_ms).as_secs_f64().max(0.0);
        let left = libm::exp2(-age / self.half_life.as_secs_f64().max(1.0)) as f32;
        Some(Capacity { confidence: capacity.confidence * left, ..*capacity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Position, Quantiles};
    use weir_units::DataRate;

    const NOW: WallTime = WallTime::from_unix_millis(1_700_000_000_000);

    fn part(lat: f64, kbps: u64, made: WallTime) -> CachedPart {
        let cell = Position::new(lat, 24.8).expect("valid").cell(Resolution::Ten);
        let quantiles = Quantiles::from_values([DataRate::from_kbps(kbps); 5]);
        let capacity = Capacity { quantiles, rtt_ms: None, loss: None, confidence: 0.8, level: Level::Cell };
        let area = cell.parent(Resolution::Five);
        CachedPart { made_ms: made, area, resolution: 10, network: Filter::default(), cells: vec![(cell, capacity)] }
    }

    #[test]
    fn parts_answer_and_give_way() {
        let day = TimeDelta::from_secs(86_400);
        let mut map = CachedMap::new(Resolution::Ten, day, 2);
        map.add(part(60.0, 100, NOW)).expect("fits");
        map.add(part(60.0, 200, NOW)).expect("in its place");
        let cell = part(60.0, 0, NOW).cells[0].0;
        let at = |map: &CachedMap, at| map.capacity(cell, &Filter::default(), at);
        let known = at(&map, NOW.plus(day)).expect("known");
        assert_eq!((known.quantiles.p50, known.confidence), (DataRate::from_kbps(200), 0.4));
        assert!(map.has(part(60.0, 0, NOW).area, &Filter::default(), day, NOW));
        let again = CachedMap::from_json(&map.to_json(), day, 2).expect("read").expect("parts");
        assert_eq!(again, map);
        map.add(part(10.0, 1, NOW.plus(day))).expect("fits");
        map.add(part(20.0, 1, NOW.plus(day))).expect("fits");
        assert_eq!((map.parts().count(), at(&map, NOW)), (2, None));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut map = CachedMap::new(Resolution::Ten, TimeDelta::from_secs(1), 2);
        let other = CachedPart { resolution: 9, ..part(60.0, 1, NOW) };
        assert!(map.add(other).is_err());
        let elsewhere = CachedPart { area: part(10.0, 1, NOW).area, ..part(60.0, 1, NOW) };
        assert!(map.add(elsewhere).is_err());
        for wrong in ["", "{}", "[1]", "[{\"made_ms\":1}]"] {
            assert!(CachedMap::from_json(wrong, TimeDelta::from_secs(1), 2).is_err(), "{wrong}");
        }
        assert!(CachedMap::from_json("[]", TimeDelta::from_secs(1), 2).expect("empty").is_none());
    }
}
