//! Paths that hold packets back, before or after they are sent, while another would deliver them earlier.
//!
//! A path whose capacity falls delays all that it has: packets in front of its pacer or its window, and those that wait in front of its
//! link. With them it delays the frames of which other paths carry a part.

use super::SendPath;
use crate::multipath::{PathSet, PathView};
use weir_units::{DataSize, TimeDelta, Timestamp};

/// A packet waits this long for a path though another would deliver it earlier, or the duration of two packets (calibrated: about a
/// picture's duration; pacers hold packets back for less than that as long as rates stand).
pub(super) const PATIENCE: TimeDelta = TimeDelta::from_millis(30);
const PATIENT_PACKETS: u64 = 2;
/// Packets in flight are reported this much later than a round trip takes (RFC 8888, section 4, has feedback every 50 to 200 ms;
/// libwebrtc's takes up to 250 ms).
const REPORTING: TimeDelta = TimeDelta::from_millis(100);
/// The longest backlog, and the greatest time in flight that is taken from a rate, which may be near zero (calibrated: above any playout
/// delay).
pub(super) const MAX_BACKLOG: TimeDelta = TimeDelta::from_secs(2);
/// The least round-trip time is that of one to two spans of this length, so that a route that becomes longer is no backlog (BBR's
/// `MinRTTFilterLen`, draft-ietf-ccwg-bbr).
const SPAN: TimeDelta = TimeDelta::from_secs(10);

/// The least round-trip time of late.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeastRtt {
    before: TimeDelta,
    now: TimeDelta,
    since: Timestamp,
}

impl Default for LeastRtt {
    fn default() -> Self {
        Self { before: TimeDelta::MAX, now: TimeDelta::MAX, since: Timestamp::ZERO }
    }
}

impl LeastRtt {
    pub(super) fn update(&mut self, rtt: TimeDelta, now: Timestamp) {
        if now.saturating_since(self.since) > SPAN {
            (self.before, self.now, self.since) = (self.now, TimeDelta::MAX, now);
        }
        self.now = self.now.min(rtt);
    }
    /// Half of the excess of a round-trip time.
    pub(super) fn queueing(&self, rtt: Option<TimeDelta>) -> TimeDelta {
        rtt.zip(self.get()).map_or(TimeDelta::ZERO, |(rtt, least)| (rtt - least).max(TimeDelta::ZERO) / 2)
    }
    /// `None` before the first sample.
    fn get(&self) -> Option<TimeDelta> {
        Some(self.before.min(self.now)).filter(|least| *least < TimeDelta::MAX)
    }
}

/// The time that a path's packets in flight take beyond a usual round trip and its report.
pub(super) fn backlog(path: &SendPath, least: &LeastRtt) -> TimeDelta {
    let (Some(least), true) = (least.get(), path.has_packet_feedback()) else { return TimeDelta::ZERO };
    let takes = path.payload_rate().time_for(path.history.bytes_in_flight()).unwrap_or(MAX_BACKLOG).min(MAX_BACKLOG);
    (takes - least - REPORTING).max(TimeDelta::ZERO)
}

fn patience(view: &PathView, size: DataSize) -> TimeDelta {
    PATIENCE.max(view.rate.time_for(size * PATIENT_PACKETS).unwrap_or(TimeDelta::ZERO))
}

/// Whether nothing holds a packet of this size back, as on most paths most of the time.
fn is_open(v: &PathView, size: DataSize, now: Timestamp) -> bool {
    let is_full = v.window.is_some_and(|w| !v.in_flight.is_zero() && v.in_flight + size > w);
    !is_full && v.backlog <= TimeDelta::ZERO && v.open_at <= now + PATIENCE
}

/// Usable paths on which a packet of this size leaves soon, and arrives before the best path would deliver it and all that is queued behind
/// it.
pub(super) fn prompt(views: &[PathView], size: DataSize, queued: DataSize, now: Timestamp) -> PathSet {
    let usable = || views.iter().filter(|v| v.is_usable);
    let set = |set: PathSet, v: &PathView| set.with(v.id);
    if usable().all(|v| is_open(v, size, now)) {
        return usable().fold(PathSet::NONE, set);
    }
    let Some(best) = usable().min_by_key(|v| v.arrival(size, now)) else { return PathSet::NONE };
    let leaves = usable().map(|v| v.departure(size, now)).min().map_or(now, |first| first.max(now));
    let arrives = best.arrival(size, now) + best.rate.time_for(queued).unwrap_or(MAX_BACKLOG).min(MAX_BACKLOG);
    let prompt = usable().filter(|v| {
        let patience = patience(v, size);
        let is_soon =
            v.departure(size, now) <= leaves + patience || v.arrival(size, now) <= best.arrival(size, now) + patience;
        is_soon && (v.backlog <= TimeDelta::ZERO || v.arrival(size, now) <= arrives + patience)
    });
    prompt.fold(PathSet::NONE, set)
}

/// Leaves only these paths usable in the scheduler's view; returns those that were.
pub(super) fn leave_only(views: &mut [PathView], paths: PathSet) -> PathSet {
    let mut usable = PathSet::NONE;
    for v in views {
        if v.is_usable {
            usable = usable.with(v.id);
        }
        v.is_usable = paths.contains(v.id);
    }
    usable
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{DataRate, PathId};

    const A: PathId = PathId::FIRST;
    const B: PathId = PathId::new(1);
    const SIZE: DataSize = DataSize::from_bytes(1_000);
    const NOW: Timestamp = Timestamp::from_secs(10);

    fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }
    /// 8 Mbit/s: a packet takes a millisecond.
    fn view(id: PathId, rtt_ms: i64) -> PathView {
        let rate = DataRate::from_mbps(8);
        PathView { id, is_usable: true, rate, rtt: Some(ms(rtt_ms)), ..PathView::NEW }
    }
    fn of(views: [PathView; 2], queued: u64) -> Vec<PathId> {
        prompt(&views, SIZE, DataSize::from_bytes(queued), NOW).iter().collect()
    }

    #[test]
    fn a_path_that_holds_packets_back_is_left_for_one_that_delivers_earlier() {
        let (a, b) = (view(A, 40), view(B, 40));
        let held = |n| PathView { open_at: NOW + ms(n), ..a };
        assert_eq!(of([held(20), b], 0), [A, B]);
        assert_eq!(of([held(40), b], 0), [B]);
        // However long the queue: what the path holds back holds it up.
        assert_eq!(of([held(40), b], 1_000_000), [B]);
        // Both hold it back, or the other one is slower by more than that.
        assert_eq!(of([held(40), PathView { open_at: NOW + ms(35), ..b }], 0), [A, B]);
        assert_eq!(of([held(40), view(B, 200)], 0), [A, B]);
        assert_eq!(of([held(2_000), PathView { is_usable: false, ..b }], 0), [A]);
        // Packets of 80 ms at 100 kbit/s are spaced by as much.
        let slow = |n| PathView { rate: DataRate::from_kbps(100), ..held(n) };
        assert_eq!((of([slow(150), b], 0), of([slow(170), b], 0)), (vec![A, B], vec![B]));
    }

    #[test]
    fn a_path_with_a_backlog_is_used_once_the_other_has_as_much_to_do() {
        let (a, b) = (PathView { backlog: ms(200), ..view(A, 40) }, view(B, 40));
        assert_eq!(of([a, b], 0), [B]);
        // 150 kB are 150 ms, and 30 ms are waited for.
        assert_eq!(of([a, b], 150_000), [B]);
        assert_eq!(of([a, b], 180_000), [A, B]);
        assert_eq!(of([a, PathView { backlog: ms(200), ..b }], 0), [A, B]);
        assert_eq!(of([a, PathView { is_usable: false, ..b }], 0), [A]);
        assert_eq!(of([PathView { is_usable: false, ..a }, PathView { is_usable: false, ..b }], 0), []);
    }

    #[test]
    fn the_least_round_trip_time_is_forgotten() {
        let mut least = LeastRtt::default();
        assert_eq!(least.get(), None);
        let mut at = |s, rtt| {
            least.update(ms(rtt), Timestamp::from_secs(s));
            least.get()
        };
        assert_eq!(at(1, 50), Some(ms(50)));
        assert_eq!(at(9, 90), Some(ms(50)));
        assert_eq!(at(12, 90), Some(ms(50)));
        assert_eq!(at(23, 90), Some(ms(90)));
    }

    #[test]
    fn others_are_left_out_of_a_view_and_put_back() {
        let mut views = [view(A, 40), view(B, 40)];
        let before = leave_only(&mut views, PathSet::one(B));
        assert_eq!((before, views[0].is_usable, views[1].is_usable), (PathSet::one(A).with(B), false, true));
        assert_eq!(leave_only(&mut views, before), PathSet::one(B));
        assert!(views.iter().all(|v| v.is_usable));
    }
}
