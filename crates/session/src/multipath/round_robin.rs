//! Weighted round robin.

use super::credits::Credits;
use super::scheduler::{MAX_PATHS, Named, PathSet, PathView, Scheduled, Scheduler, SchedulerSpec};
use weir_units::{DataRate, PathId};

/// Sends on all paths in proportion to the rates of their controllers, packet by packet.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    credits: Credits,
}

impl Named for RoundRobin {
    const SPEC: SchedulerSpec = SchedulerSpec {
        name: "round-robin",
        summary: "packets on all paths in turn, by their rates",
        source: "weighted round robin; weights are the controllers' rates",
    };
}

impl Scheduler for RoundRobin {
    fn choose(&mut self, packet: &Scheduled, paths: &[PathView]) -> PathSet {
        let mut weights = [(PathId::FIRST, 0.0); MAX_PATHS];
        for (weight, p) in weights.iter_mut().zip(paths) {
            // A rate of zero still gets a packet in many, or nothing would ever be learnt of the path.
            let rate = p.rate.max(DataRate::from_bps(1)).as_bps_f64();
            *weight = (p.id, if p.is_usable { rate } else { 0.0 });
        }
        let Some(path) = self.credits.next(&weights) else { return PathSet::NONE };
        self.credits.on_sent(path, packet.size, &weights);
        PathSet::one(path)
    }
}
