//! Estimates of when a packet would arrive over each path.

use super::scheduler::{MAX_PATHS, PathSet, PathView};
use weir_units::{DataSize, PathId, TimeDelta, Timestamp};

/// Packets wait at most this long in an estimate, so that a path whose rate was near zero is not avoided long after.
const MAX_BACKLOG: TimeDelta = TimeDelta::from_secs(1);
/// All paths together are at most this far behind (calibrated: more than paths differ in latency).
const COMMON_BACKLOG: TimeDelta = TimeDelta::from_millis(500);

/// When each path has transmitted what was assigned to it (EDPF: K. Chebrolu and R. Rao, "Bandwidth Aggregation for
/// Real-Time Applications in Heterogeneous Wireless Networks", IEEE Trans. Mobile Computing 5(4), 2006).
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    free: [Timestamp; MAX_PATHS],
    /// The paths that could be used at the last packet.
    usable: PathSet,
}

impl Delivery {
    /// When a packet sent now would have left this path's transmitter, and when it would arrive.
    ///
    /// Where a window is full, the packet waits for the excess to be acknowledged, at the path's rate: sending it on
    /// a slower path pays only if it arrives there before that (ECF: Y. Lim and others, CoNEXT 2017; BLEST: S. Ferlin
    /// and others, IFIP Networking 2016).
    fn estimate(&self, path: &PathView, size: DataSize, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let free = *self.free.get(path.id.index())?;
        let time = |size| path.rate.time_for(size).unwrap_or(MAX_BACKLOG).min(MAX_BACKLOG);
        let excess = path.window.map_or(DataSize::ZERO, |w| (path.in_flight + size).saturating_sub(w));
        let waits = if path.in_flight.is_zero() || excess.is_zero() { TimeDelta::ZERO } else { time(excess) };
        let sent = free.max(now + waits).min(now + MAX_BACKLOG) + time(size);
        Some((sent, sent + path.latency()))
    }

    /// Assigns a packet to the usable path over which it would arrive first; of equals, the first.
    pub(super) fn earliest(&mut self, paths: &[PathView], size: DataSize, now: Timestamp) -> Option<PathId> {
        self.follow(paths, now);
        let mut best: Option<(PathId, Timestamp, Timestamp)> = None;
        for p in paths.iter().filter(|p| p.is_usable) {
            let Some((sent, arrival)) = self.estimate(p, size, now) else { continue };
            if best.is_none_or(|(.., earliest)| arrival < earliest) {
                best = Some((p.id, sent, arrival));
            }
        }
        let (path, sent, _) = best?;
        self.free[path.index()] = sent;
        Some(path)
    }

    /// Follows changes of the usable paths. A path that returns is as far behind as the one that is least behind: media
    /// wait in front of all, and are not to go over it alone until it has caught up. What all are behind beyond a bound
    /// is forgotten.
    fn follow(&mut self, paths: &[PathView], now: Timestamp) {
        let set = paths.iter().filter(|p| p.is_usable).fold(PathSet::NONE, |set, p| set.with(p.id));
        let least = |set: PathSet, free: &[Timestamp; MAX_PATHS]| set.iter().map(|p| free[p.index()]).min();
        if set != self.usable {
            let base = least(set.and(self.usable), &self.free).unwrap_or(now).max(now);
            for path in set.iter().filter(|p| !self.usable.contains(*p)) {
                self.free[path.index()] = base;
            }
            self.usable = set;
        }
        let beyond = least(set, &self.free).map_or(TimeDelta::ZERO, |free| free.saturating_since(now) - COMMON_BACKLOG);
        if beyond > TimeDelta::ZERO {
            for path in set.iter() {
                self.free[path.index()] = self.free[path.index()] - beyond;
            }
        }
    }
}
