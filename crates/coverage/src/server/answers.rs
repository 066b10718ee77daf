//! Answers of the map that many subscribers look at, kept for a short time: regions are made from all their devices' sketches at
//! each question, which costs some 30 us, and a subscriber asks for a hundred of them at each position.

use crate::{Capacity, Cell, Filter, Level, Map, View, WallTime};
use h3o::Resolution;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_units::{TimeDelta, Timestamp};

/// Most answers kept; then all are dropped.
const MOST: usize = 65_536;

/// Answers, by network and cell.
#[derive(Debug, Default)]
pub(super) struct Answers {
    cache: Mutex<Cache>,
}

/// Operator and technology.
type Network = (Option<String>, Option<u8>);
/// An answer, and when it was given.
type Given = (Timestamp, Option<Capacity>);

#[derive(Debug, Default)]
struct Cache {
    of: BTreeMap<Network, BTreeMap<Cell, Given>>,
    count: usize,
}

/// A map whose answers for single cells are those of the last `fresh`.
pub(super) struct Recent<'a> {
    pub(super) map: &'a Map,
    pub(super) answers: &'a Answers,
    pub(super) now: Timestamp,
    pub(super) fresh: Duration,
}

impl Answers {
    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl View for Recent<'_> {
    fn resolution(&self) -> Resolution {
        self.map.resolution()
    }

    fn capacity_within(&self, cell: Cell, filter: &Filter, at: WallTime, furthest: Level) -> Option<Capacity> {
        if furthest != Level::AnyHour {
            return self.map.capacity_within(cell, filter, at, furthest);
        }
        let network =
            (filter.operator.as_ref().map(ToString::to_string), filter.technology.map(crate::Technology::number));
        let fresh = TimeDelta::from_secs_f64(self.fresh.as_secs_f64());
        if let Some((since, answer)) = self.answers.cache().of.get(&network).and_then(|cells| cells.get(&cell))
            && self.now.saturating_since(*since) < fresh
        {
            return *answer;
        }
        let answer = self.map.capacity_within(cell, filter, at, furthest);
        let mut kept = self.answers.cache();
        if kept.count >= MOST {
            *kept = Cache::default();
        }
        if kept.of.entry(network).or_default().insert(cell, (self.now, answer)).is_none() {
            kept.count += 1;
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MapConfig, Position, Technology, Update};
    use weir_units::DataRate;

    const NOW: WallTime = WallTime::from_unix_millis(1_700_000_000_000);

    fn report(map: &mut Map, device: u32, at: Position, kbps: u64) {
        let operator = "244-91".parse().expect("valid");
        let update = Update::new(0, NOW, at, operator, Technology::Umts, DataRate::from_kbps(kbps));
        map.insert(device, &update, NOW);
    }

    #[test]
    fn answers_are_kept_for_a_while_by_network_and_are_bounded() {
        let at = Position::new(60.187, 24.833).expect("valid");
        let mut map = Map::new(MapConfig::default());
        (0..3).for_each(|device| report(&mut map, device, at, 1_000));
        let answers = Answers::default();
        let cell = at.cell(map.resolution());
        let ask = |map: &Map, s: i64, filter: &Filter| {
            let recent = Recent { map, answers: &answers, now: Timestamp::from_secs(s), fresh: Duration::from_secs(5) };
            recent.capacity_within(cell, filter, NOW, Level::AnyHour).map(|c| c.quantiles.p50.as_kbps_f64().round())
        };
        let all = Filter::default();
        let first = ask(&map, 10, &all).expect("three devices");
        (3..20).for_each(|device| report(&mut map, device, at, 5_000));
        assert_eq!(ask(&map, 14, &all), Some(first));
        let other = Filter { operator: Some("1-1".parse().expect("valid")), technology: None };
        assert_eq!(ask(&map, 14, &other), None);
        assert!(ask(&map, 15, &all).expect("known") > 2.0 * first);
        let near = cell.disk(150);
        for cell in near {
            let recent = Recent { map: &map, answers: &answers, now: Timestamp::ZERO, fresh: Duration::from_secs(5) };
            recent.capacity_within(cell, &all, NOW, Level::AnyHour);
        }
        let kept = answers.cache();
        assert!(kept.count <= MOST && kept.of.values().map(BTreeMap::len).sum::<usize>() == kept.count);
    }
}
