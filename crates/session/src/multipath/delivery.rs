//! Estimates of when a packet would arrive over each path.

use super::scheduler::{MAX_PATHS, PathView};
use weir_units::{DataSize, PathId, TimeDelta, Timestamp};

/// Packets wait at most this long in an estimate, so that a path whose rate was near zero is not avoided long after.
const MAX_BACKLOG: TimeDelta = TimeDelta::from_secs(1);

/// When each path has transmitted what was assigned to it (EDPF: K. Chebrolu and R. Rao, "Bandwidth Aggregation for
/// Real-Time Applications in Heterogeneous Wireless Networks", IEEE Trans. Mobile Computing 5(4), 2006).
#[derive(Clone, Debug, Default)]
pub(super) struct Delivery {
    free: [Timestamp; MAX_PATHS],
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
        let waits = if path.in_flight.is_zero() { TimeDelta::ZERO } else { time(excess) };
        let sent = free.max(now + waits).min(now + MAX_BACKLOG) + time(size);
        Some((sent, sent + path.latency()))
    }

    /// The usable path over which a packet would arrive first; of equals, the first.
    pub(super) fn earliest(&self, paths: &[PathView], size: DataSize, now: Timestamp) -> Option<PathId> {
        let arrivals =
            paths.iter().filter(|p| p.is_usable).filter_map(|p| Some((p.id, self.estimate(p, size, now)?.1)));
        arrivals.reduce(|best, p| if p.1 < best.1 { p } else { best }).map(|(id, _)| id)
    }

    /// A packet is sent on `path`.
    pub(super) fn on_sent(&mut self, path: PathId, paths: &[PathView], size: DataSize, now: Timestamp) {
        let Some(view) = paths.iter().find(|p| p.id == path) else { return };
        if let Some((sent, _)) = self.estimate(view, size, now) {
            self.free[path.index()] = sent;
        }
    }
}
