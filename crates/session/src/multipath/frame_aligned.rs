//! Whole frames on one path each.

use super::delivery::Delivery;
use super::scheduler::{Named, PathSet, PathView, Scheduled, Scheduler, SchedulerSpec};
use crate::datagram::Kind;
use weir_units::{DataSize, PathId};

/// Weight of a frame in the mean size of frames.
const SIZE_WEIGHT: f64 = 1.0 / 8.0;

/// Sends all packets of a frame on one path, the one over which a frame of mean size arrives first. Packets of a frame
/// then have one latency, and a path that fails costs whole frames instead of parts of many.
#[derive(Clone, Debug, Default)]
pub struct FrameAligned {
    delivery: Delivery,
    /// The frame being sent, its path and its bytes so far.
    frame: Option<((usize, u32), PathId, u64)>,
    /// Mean bytes of a frame.
    mean: f64,
}

impl Named for FrameAligned {
    const SPEC: SchedulerSpec = SchedulerSpec {
        name: "frame-aligned",
        summary: "all packets of a frame on the path over which it arrives first",
        source: "earliest delivery, decided once a frame",
    };
}

impl Scheduler for FrameAligned {
    fn choose(&mut self, packet: &Scheduled, paths: &[PathView]) -> PathSet {
        let usable = |id: PathId| paths.iter().any(|p| p.id == id && p.is_usable);
        let same = self.frame.filter(|(frame, path, _)| *frame == packet.frame && usable(*path));
        let is_media = packet.kind == Kind::Media;
        let path = match same {
            Some((_, path, _)) => Some(path),
            None => {
                let whole = DataSize::from_bytes(self.mean as u64).max(packet.size);
                self.delivery.earliest(paths, if is_media { whole } else { packet.size }, packet.now)
            }
        };
        let Some(path) = path else { return PathSet::NONE };
        self.delivery.on_sent(path, paths, packet.size, packet.now);
        if is_media {
            let bytes = packet.size.as_bytes();
            match &mut self.frame {
                Some((frame, on, sum)) if *frame == packet.frame => (*on, *sum) = (path, *sum + bytes),
                _ => {
                    if let Some((.., sum)) = self.frame.replace((packet.frame, path, bytes)) {
                        let weight = if self.mean == 0.0 { 1.0 } else { SIZE_WEIGHT };
                        self.mean += weight * (sum as f64 - self.mean);
                    }
                }
            }
        }
        PathSet::one(path)
    }
}
