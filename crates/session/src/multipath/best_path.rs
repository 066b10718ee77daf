//! All packets on the single best path.

use super::scheduler::{Named, PathSet, PathView, Scheduled, Scheduler, SchedulerSpec, best};
use weir_units::{DataRate, PathId};

/// Another path has to be better by this factor before packets move to it (calibrated: controllers' rates vary by a few
/// per cent within a second, and each move costs reordering).
const MARGIN: f64 = 1.25;

/// Sends on the path with the most capacity by latency, and stays there until another is clearly better.
#[derive(Clone, Debug, Default)]
pub struct BestPath {
    current: Option<PathId>,
}

impl Named for BestPath {
    const SPEC: SchedulerSpec = SchedulerSpec {
        name: "best-path",
        summary: "all packets on the path with the most capacity by latency",
        source: "thesis, section 6.1.1 (order of paths)",
    };
}

impl BestPath {
    fn pick<'p>(&self, paths: &'p [PathView]) -> Option<&'p PathView> {
        let best = best(paths)?;
        let current = paths.iter().find(|p| p.is_usable && Some(p.id) == self.current);
        Some(current.filter(|c| best.merit() <= c.merit() * MARGIN).unwrap_or(best))
    }
}

impl Scheduler for BestPath {
    fn choose(&mut self, _: &Scheduled, paths: &[PathView]) -> PathSet {
        let picked = self.pick(paths).map(|p| p.id);
        self.current = picked.or(self.current);
        picked.map_or(PathSet::NONE, PathSet::one)
    }
    fn media_rate(&self, paths: &[PathView]) -> DataRate {
        self.pick(paths).map_or(DataRate::ZERO, |p| p.rate)
    }
}
