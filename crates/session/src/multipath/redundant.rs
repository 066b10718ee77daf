//! Every packet on every path.

use super::scheduler::{Named, PathSet, PathView, Scheduled, Scheduler, SchedulerSpec};
use weir_units::DataRate;

/// Sends a copy of each packet on every usable path: the first to arrive counts. The media rate is that of the slowest.
#[derive(Clone, Debug, Default)]
pub struct Redundant;

impl Named for Redundant {
    const SPEC: SchedulerSpec = SchedulerSpec {
        name: "redundant",
        summary: "a copy of each packet on every path",
        source: "RFC 7198 (duplication of RTP streams), over paths",
    };
}

impl Scheduler for Redundant {
    fn choose(&mut self, _: &Scheduled, paths: &[PathView]) -> PathSet {
        paths.iter().filter(|p| p.is_usable).fold(PathSet::NONE, |set, p| set.with(p.id))
    }
    fn media_rate(&self, paths: &[PathView]) -> DataRate {
        paths.iter().filter(|p| p.is_usable).map(|p| p.rate).min().unwrap_or(DataRate::ZERO)
    }
}
