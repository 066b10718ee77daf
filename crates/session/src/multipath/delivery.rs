//! Estimates of when a packet would arrive over each path.

use super::scheduler::{MAX_PATHS, MAX_WAIT, PathSet, PathView, Scheduled};
use weir_units::{DataSize, PathId, TimeDelta, Timestamp};

/// All paths together are at most this far behind (calibrated: more than paths differ in latency).
const COMMON_BACKLOG: TimeDelta = TimeDelta::from_millis(500);

/// When each path has transmitted what was assigned to it (EDPF: K. Chebrolu and R. Rao, "Bandwidth Aggregation for
/// Real-Time Applications in Heterogeneous Wireless Networks", IEEE Trans. Mobile Computing 5(4), 2006), with the choice of ECF (Y. Lim and
/// others, "ECF: An MPTCP Path Scheduler to Manage Heterogeneous Paths", CoNEXT 2017).
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    free: [Timestamp; MAX_PATHS],
    /// The paths that could be used at the last packet.
    usable: PathSet,
}

impl Delivery {
    /// When a packet sent now would have left this path's transmitter, and when it would arrive. Sending it on a slower path pays
    /// only if it arrives there before it could leave on a path that holds it back.
    fn estimate(&self, path: &PathView, size: DataSize, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let free = *self.free.get(path.id.index())?;
        let time = path.rate.time_for(size).unwrap_or(MAX_WAIT).min(MAX_WAIT);
        let sent = free.max(path.departure(size, now)).min(now + MAX_WAIT) + time;
        Some((sent, sent + path.backlog + path.latency() + path.queueing))
    }

    /// Assigns a packet to the usable path over which it would arrive first; of equals, the first. If that path holds it back, it goes over
    /// the one that it can leave on first, unless the best path would deliver all that is queued before (ECF).
    pub(super) fn earliest(&mut self, paths: &[PathView], packet: &Scheduled) -> Option<PathId> {
        let (size, now) = (packet.size, packet.now);
        self.follow(paths, now);
        let usable = || paths.iter().filter(|p| p.is_usable);
        let arrival = |p: &&PathView| self.estimate(p, size, now).map_or(Timestamp::MAX, |(_, arrival)| arrival);
        let mut path = usable().min_by_key(arrival)?;
        let leaves = path.departure(size, now).max(now);
        if leaves > now {
            let all = arrival(&path) + path.rate.time_for(packet.queued).unwrap_or(MAX_WAIT).min(MAX_WAIT);
            let earlier = usable().filter(|p| p.departure(size, now) < leaves && arrival(p) < all);
            path = earlier.min_by_key(|p| p.departure(size, now)).unwrap_or(path);
        }
        let (sent, _) = self.estimate(path, size, now)?;
        self.free[path.id.index()] = sent;
        Some(path.id)
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
