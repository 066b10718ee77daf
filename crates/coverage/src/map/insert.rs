//! Taking updates.

use super::leaf::{Entry, Leaf};
use super::trust::Trust;
use super::{Inserted, LeafKey, MAX_OPERATORS, Map};
use crate::robust::consensus;
use crate::{HourClass, Update, WallTime};

/// Rates below this count as this when they are compared, bit/s: logarithms need a least value.
pub(super) const LEAST_RATE: f64 = 1_000.0;

impl Map {
    /// Takes an update of a device, as numbered by the caller. `now` is the service's time.
    ///
    /// When a device has left a region, its reports from there are compared with those of others.
    pub fn insert(&mut self, device: u32, update: &Update, now: WallTime) -> Inserted {
        let Some(operator) = self.number_of(update) else { return Inserted::Full };
        let cell = update.position.cell(self.config.resolution).index();
        let hours = HourClass::of(update.time_ms, update.position).number();
        let key = LeafKey { operator, technology: update.technology.number(), hours };
        if self.cells.len() >= self.config.max_cells && !self.cells.contains_key(&cell) {
            return Inserted::Full;
        }
        let trust = self.trust.entry(device).or_default();
        if trust.last != Some((cell, key))
            && let Some(left) = trust.last.replace((cell, key))
        {
            self.compare(device, left, now);
        }
        self.add(device, cell, key, update)
    }

    fn number_of(&mut self, update: &Update) -> Option<u16> {
        if let Some(number) = self.operators.get(&update.operator) {
            return Some(*number);
        }
        if self.operators.len() >= MAX_OPERATORS {
            return None;
        }
        let number = u16::try_from(self.operators.len()).ok()?;
        self.operators.insert(update.operator.clone(), number);
        Some(number)
    }

    fn add(&mut self, device: u32, cell: u64, key: LeafKey, update: &Update) -> Inserted {
        let leaves = self.cells.entry(cell).or_default();
        let i = match leaves.binary_search_by_key(&key, |l| l.key) {
            Ok(i) => i,
            Err(i) => {
                leaves.insert(i, Leaf { key, entries: Vec::new() });
                self.leaves += 1;
                i
            }
        };
        let entries = &mut leaves[i].entries;
        let mut at = entries.binary_search_by_key(&device, |e| e.device);
        if at.is_err() && entries.len() >= self.config.max_devices {
            // Those that are not trusted give way first, and to nobody who is not trusted either.
            let trusted = |device: u32| self.trust.get(&device).is_none_or(|t| t.weight() > 0.0);
            let oldest = (0..entries.len()).min_by_key(|i| (trusted(entries[*i].device), entries[*i].updated));
            if let Some(oldest) = oldest {
                if trusted(entries[oldest].device) && !trusted(device) {
                    return Inserted::Full;
                }
                entries.remove(oldest);
                self.entries -= 1;
            }
            at = entries.binary_search_by_key(&device, |e| e.device);
        }
        let i = match at {
            Ok(i) => i,
            Err(i) => {
                entries.insert(i, Entry::new(device, update.time_ms));
                self.entries += 1;
                i
            }
        };
        let entry = &mut entries[i];
        let median = entry.sketch.quantile(0.5);
        if update.app_limited && median.is_some_and(|m| update.throughput < m) {
            return Inserted::Limited;
        }
        entry.add(update, self.config.half_life);
        Inserted::Counted
    }

    /// Compares a device's median in a region with the others' there, where there are enough of them.
    fn compare(&mut self, device: u32, (cell, key): (u64, LeafKey), now: WallTime) {
        let leaves = self.cells.get(&cell);
        let leaf = leaves.and_then(|l| l.binary_search_by_key(&key, |l| l.key).ok().map(|i| &l[i]));
        let Some(leaf) = leaf else { return };
        let log = |e: &Entry| e.sketch.quantile(0.5).map(|r| libm::log(r.as_bps_f64().max(LEAST_RATE)));
        let own = leaf.entries.iter().find(|e| e.device == device).and_then(log);
        let weight = |e: &Entry| {
            let trust = self.trust.get(&e.device).map_or(Trust::UNKNOWN, Trust::weight);
            trust * (e.weight(now, self.config.half_life) / f64::from(self.config.whole_weight)).min(1.0)
        };
        let others = leaf.entries.iter().filter(|e| e.device != device);
        let mut others: Vec<(f64, f64)> = others.filter_map(|e| Some((log(e)?, weight(e)))).collect();
        if others.len() < self.config.anonymity.max(2) {
            return;
        }
        let (Some(own), Some(centre)) = (own, consensus(&mut others)) else { return };
        if let Some(trust) = self.trust.get_mut(&device) {
            trust.observe(own - centre);
        }
    }
}
