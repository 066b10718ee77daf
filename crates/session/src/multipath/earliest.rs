//! Earliest delivery.

use super::delivery::Delivery;
use super::scheduler::{Named, PathSet, PathView, Scheduled, Scheduler, SchedulerSpec};

/// Sends each packet on the path over which it arrives first, by the paths' rates, latencies, windows and what has been
/// assigned to them.
#[derive(Clone, Debug, Default)]
pub struct Earliest {
    delivery: Delivery,
}

impl Named for Earliest {
    const SPEC: SchedulerSpec = SchedulerSpec {
        name: "earliest",
        summary: "each packet on the path over which it arrives first",
        source: "EDPF (Chebrolu and Rao 2006), with full windows as in ECF (2017) and BLEST (2016)",
    };
}

impl Scheduler for Earliest {
    fn choose(&mut self, packet: &Scheduled, paths: &[PathView]) -> PathSet {
        self.delivery.earliest(paths, packet).map_or(PathSet::NONE, PathSet::one)
    }
}
