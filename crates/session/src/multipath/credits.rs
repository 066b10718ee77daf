//! Division of packets among paths by weight.

use super::scheduler::MAX_PATHS;
use weir_units::{DataSize, PathId};

/// Bytes that each path is behind its share: every packet adds its size to all in proportion to their weights, and is
/// taken off the path that sends it. They add up to zero.
#[derive(Clone, Debug, Default)]
pub(super) struct Credits([f64; MAX_PATHS]);

impl Credits {
    /// The path that is furthest behind its share; `None` if all weights are zero.
    ///
    /// Paths without weight keep no credit: what they were behind before does not return as a burst.
    pub(super) fn next(&self, weights: &[(PathId, f64)]) -> Option<PathId> {
        let of = |id: &PathId| self.0.get(id.index()).copied().unwrap_or(0.0);
        let open = weights.iter().filter(|(id, weight)| *weight > 0.0 && id.index() < MAX_PATHS);
        // Of equals, the one with the greater weight, then the first.
        let best = open.reduce(|best, p| if (of(&p.0), p.1) > (of(&best.0), best.1) { p } else { best });
        best.map(|(id, _)| *id)
    }

    /// A packet is sent on `path`.
    pub(super) fn on_sent(&mut self, path: PathId, size: DataSize, weights: &[(PathId, f64)]) {
        let size = size.as_bytes() as f64;
        let open = || weights.iter().filter(|(id, weight)| *weight > 0.0 && id.index() < MAX_PATHS);
        let total: f64 = open().map(|(_, weight)| weight).sum();
        for index in 0..MAX_PATHS {
            if !open().any(|(id, _)| id.index() == index) {
                self.0[index] = 0.0;
            }
        }
        for (id, weight) in open() {
            self.0[id.index()] += size * weight / total;
        }
        if let Some(credit) = self.0.get_mut(path.index()) {
            *credit -= size;
        }
    }
}
