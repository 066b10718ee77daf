//! Whole frames on one path.

use super::scheduler::{Named, PathSet, PathView, Scheduled, Scheduler, SchedulerSpec};
use crate::datagram::Kind;
use weir_units::{DataRate, PathId};

/// A path is left for one whose rate is higher by more than this share (calibrated: controllers' rates swing by less).
const BETTER: f64 = 1.1;

/// Sends media on the path with the highest rate, and changes it between frames only: packets of a frame have one
/// latency, and none is held up by another path. What is not media takes the same path.
#[derive(Clone, Debug, Default)]
pub struct FrameAligned {
    /// The path in use, and the frame sent on it last.
    current: Option<(PathId, (usize, u32))>,
}

impl Named for FrameAligned {
    const SPEC: SchedulerSpec = SchedulerSpec {
        name: "frame-aligned",
        summary: "whole frames on the path with the highest rate",
        source: "thesis, section 6.1 (Jurca and Frossard), without reading ahead",
    };
}

/// The usable path with the highest rate; of equals the one with less latency, then the first.
fn fastest(paths: &[PathView]) -> Option<&PathView> {
    let usable = paths.iter().filter(|p| p.is_usable);
    usable.reduce(|best, p| {
        let is_better = p.rate > best.rate || (p.rate == best.rate && p.latency() < best.latency());
        if is_better { p } else { best }
    })
}

impl Scheduler for FrameAligned {
    fn choose(&mut self, packet: &Scheduled, paths: &[PathView]) -> PathSet {
        let Some(best) = fastest(paths) else { return PathSet::NONE };
        let current = self.current.filter(|(id, _)| paths.iter().any(|p| p.id == *id && p.is_usable));
        let rate = |id: PathId| paths.iter().find(|p| p.id == id).map_or(0.0, |p| p.rate.as_bps_f64());
        let path = match current {
            Some((id, frame)) if frame == packet.frame || packet.kind != Kind::Media => id,
            Some((id, _)) if best.rate.as_bps_f64() <= rate(id) * BETTER => id,
            _ => best.id,
        };
        let frame = if packet.kind == Kind::Media { packet.frame } else { self.current.map_or(packet.frame, |c| c.1) };
        self.current = Some((path, frame));
        PathSet::one(path)
    }

    /// The rate of the fastest path, since one at a time carries media.
    fn media_rate(&self, paths: &[PathView]) -> DataRate {
        let current = self.current.and_then(|(id, _)| paths.iter().find(|p| p.id == id && p.is_usable));
        current.or(fastest(paths)).map_or(DataRate::ZERO, |p| p.rate)
    }
}
