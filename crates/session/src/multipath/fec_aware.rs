//! Media on the best path, repair on another.

use super::best_path::BestPath;
use super::scheduler::{Named, PathSet, PathView, Scheduled, Scheduler, SchedulerSpec, best};
use crate::datagram::Kind;
use weir_units::DataRate;

/// Sends media on the best path, and repair packets and retransmissions on the best of the others, so that losses of
/// one path do not take a packet and its repair together.
#[derive(Clone, Debug, Default)]
pub struct FecAware {
    media: BestPath,
}

impl Named for FecAware {
    const SPEC: SchedulerSpec = SchedulerSpec {
        name: "fec-aware",
        summary: "media on the best path, repair and retransmissions on the next",
        source: "thesis, section 6.1 (Chesterfield and others: protection over a second 3G interface)",
    };
}

impl Scheduler for FecAware {
    fn choose(&mut self, packet: &Scheduled, paths: &[PathView]) -> PathSet {
        let media = self.media.choose(packet, paths);
        if matches!(packet.kind, Kind::Media | Kind::Padding) {
            return media;
        }
        best(paths.iter().filter(|p| !media.contains(p.id))).map_or(media, |p| PathSet::one(p.id))
    }
    fn media_rate(&self, paths: &[PathView]) -> DataRate {
        self.media.media_rate(paths)
    }
}
