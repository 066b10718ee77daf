//! Forgetting: what has decayed, and devices that want to be forgotten. In steps, so that answers do not wait for it.

use super::Map;
use crate::WallTime;
use std::collections::BTreeSet;

/// Weight of a device's reports from a region, in updates, below which they are forgotten.
const NEGLIGIBLE: f64 = 0.02;

/// How far forgetting has come.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    forget: BTreeSet<u32>,
    next: Option<u64>,
    done: bool,
}

impl Sweep {
    /// A sweep over a whole map, that also forgets all of these devices.
    pub fn new(forget: impl IntoIterator<Item = u32>) -> Self {
        Self { forget: forget.into_iter().collect(), next: None, done: false }
    }

    /// Whether all cells have been visited.
    pub fn is_done(&self) -> bool {
        self.done
    }
}

impl Map {
    /// Continues a sweep by `cells` cells.
    pub fn sweep(&mut self, sweep: &mut Sweep, cells: usize, now: WallTime) {
        if sweep.done {
            return;
        }
        if sweep.next.is_none() {
            for device in &sweep.forget {
                self.trust.remove(device);
            }
        }
        let half_life = self.config.half_life;
        let mut empty = Vec::new();
        sweep.done = true;
        for (visited, (index, leaves)) in self.cells.range_mut(sweep.next.unwrap_or(0)..).enumerate() {
            if visited == cells {
                sweep.next = Some(*index);
                sweep.done = false;
                break;
            }
            let (leaves_before, mut removed) = (leaves.len(), 0);
            for leaf in leaves.iter_mut() {
                let before = leaf.entries.len();
                leaf.entries.retain(|e| !sweep.forget.contains(&e.device) && e.weight(now, half_life) > NEGLIGIBLE);
                removed += before - leaf.entries.len();
            }
            leaves.retain(|l| !l.entries.is_empty());
            self.entries -= removed;
            self.leaves -= leaves_before - leaves.len();
            if leaves.is_empty() {
                empty.push(*index);
            }
        }
        for index in empty {
            self.cells.remove(&index);
        }
    }
}
