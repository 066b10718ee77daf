//! When each subflow's regular reports are due (draft-ietf-avtcore-mprtp-03, sections 8.4 and 10).

use super::Endpoint;
use crate::multipath::MAX_PATHS;
use weir_units::{PathId, Timestamp};

/// Part of RTCP that all paths share equally, so that a path without media is reported too. The rest goes by their media
/// rates (section 10: "based on the share of the transmitted or received bit rate").
const EQUAL_SHARE: f64 = 0.25;
/// A subflow that has received nothing for this many of RTCP's intervals is not reported (section 8.1.6; the number is
/// that of RFC 3550, section 6.3.5, for members).
const SILENT_INTERVALS: i64 = 5;

/// The timers of all paths.
#[derive(Clone, Debug, Default)]
pub(super) struct SubflowTimes {
    paths: Vec<SubflowTime>,
}

#[derive(Clone, Copy, Debug)]
struct SubflowTime {
    next: Timestamp,
    /// When it was last due, and bytes sent and received on the path until then.
    last: (Timestamp, u64),
    /// Media rate on the path between its last two reports, bit/s.
    rate: f64,
}

impl SubflowTimes {
    /// The first path whose reports are due.
    pub(super) fn due(&self, now: Timestamp) -> Option<PathId> {
        let index = self.paths.iter().position(|p| p.next <= now)?;
        Some(PathId::new(index as u8))
    }
    pub(super) fn is_due(&self, path: PathId, now: Timestamp) -> bool {
        self.paths.get(path.index()).is_some_and(|p| p.next <= now)
    }
    /// The earliest of all.
    pub(super) fn next(&self) -> Option<Timestamp> {
        self.paths.iter().map(|p| p.next).min()
    }

    /// A path's reports were sent, or left out; `bytes` have been sent and received on it so far. Returns how much more
    /// often than in the mean of all paths it is to be reported.
    fn on_reported(&mut self, path: usize, bytes: u64, now: Timestamp) -> f64 {
        let count = self.paths.len() as f64;
        let Some(p) = self.paths.get_mut(path) else { return 1.0 };
        let elapsed = now.saturating_since(p.last.0).as_secs_f64();
        if elapsed > 0.0 {
            p.rate = bytes.saturating_sub(p.last.1) as f64 * 8.0 / elapsed;
            p.last = (now, bytes);
        }
        let rate = p.rate;
        let sum: f64 = self.paths.iter().map(|p| p.rate).sum();
        if sum > 0.0 { EQUAL_SHARE + (1.0 - EQUAL_SHARE) * count * rate / sum } else { 1.0 }
    }
}

impl Endpoint {
    /// The number of paths has changed: new ones have timers from now on. RTCP's share is that of the compounds about
    /// the whole call and of all subflows' reports.
    pub(super) fn follow_paths(&mut self, now: Timestamp) {
        let count = self.path_count();
        self.share_rtcp();
        let Some(paths) = &mut self.paths else { return };
        let times = &mut paths.times;
        times.paths.truncate(count);
        while times.paths.len() < count.min(MAX_PATHS) {
            let next = now + self.timer.draw(1.0, &mut self.rng);
            times.paths.push(SubflowTime { next, last: (now, 0), rate: 0.0 });
        }
        paths.note_due();
    }

    /// A path's reports were sent or left out: draws the time of the next.
    pub(super) fn after_subflow_reports(&mut self, path: PathId, now: Timestamp) {
        let index = path.index();
        let sent = self.sender.as_ref().and_then(|s| s.multipath.as_ref()?.state(index)).map_or(0, |s| s.bytes);
        let received = self.subflow(index).map_or(0, |s| s.bytes);
        let Some(paths) = &mut self.paths else { return };
        let times = &mut paths.times;
        let share = times.on_reported(index, sent + received, now);
        let next = now + self.timer.draw(1.0 / share, &mut self.rng);
        if let Some(p) = times.paths.get_mut(index) {
            p.next = next;
        }
        paths.note_due();
    }

    /// Whether there is something to report of a subflow: this end sends on it, or has received media or a sender report
    /// recently, which a report answers (section 8.5).
    pub(super) fn is_reported(&self, path: usize, now: Timestamp) -> bool {
        if self.closed_paths().contains(PathId::new(path as u8)) {
            return false;
        }
        if self.sender.as_ref().is_some_and(|s| path < s.paths.len()) {
            return true;
        }
        let limit = self.timer.mean_interval() * SILENT_INTERVALS;
        self.subflow(path)
            .and_then(|s| s.last.max(s.heard.map(|h| h.at)))
            .is_some_and(|at| now.saturating_since(at) <= limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_follow_the_media_rate_and_their_sum_is_the_same() {
        let time = SubflowTime { next: Timestamp::ZERO, last: (Timestamp::ZERO, 0), rate: 0.0 };
        let mut times = SubflowTimes { paths: vec![time; 2] };
        let now = Timestamp::from_secs(1);
        assert_eq!(times.on_reported(0, 0, now), 1.0);
        times.on_reported(0, 3_000, Timestamp::from_secs(2));
        times.on_reported(1, 2_000, Timestamp::from_secs(2));
        let later = Timestamp::from_secs(3);
        // 24 and 8 kbit/s of 32: 1/4 + 3/4 * 2 * 3/4, and the rest of 2.
        let shares = [times.on_reported(0, 6_000, later), times.on_reported(1, 3_000, later)];
        assert!((shares[0] - 1.375).abs() < 1e-9 && (shares[0] + shares[1] - 2.0).abs() < 1e-9, "{shares:?}");
        // A path without media has a quarter of the mean.
        times.on_reported(1, 3_000, Timestamp::from_secs(4));
        assert_eq!(times.on_reported(1, 3_000, Timestamp::from_secs(5)), EQUAL_SHARE);
        assert_eq!((times.due(later), times.next()), (Some(PathId::FIRST), Some(Timestamp::ZERO)));
    }
}
