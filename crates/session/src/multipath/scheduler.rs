//! The interface of packet schedulers.

use super::characterisation::PathReport;
use crate::datagram::Kind;
use weir_units::{DataRate, DataSize, PathId, TimeDelta, Timestamp};

/// Most paths of a call.
pub const MAX_PATHS: usize = 8;
/// Least latency in ratios of capacity and latency, so that paths without measurable latency compare by capacity.
const LEAST_LATENCY: TimeDelta = TimeDelta::from_millis(1);

/// The longest wait for a path in estimates, so that one whose rate was near zero is not avoided long after.
pub(super) const MAX_WAIT: TimeDelta = TimeDelta::from_secs(1);

/// A path as a scheduler sees it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathView {
    /// Its number, below [`MAX_PATHS`].
    pub id: PathId,
    /// Whether packets may be sent on it.
    pub is_usable: bool,
    /// The media rate that its controller allows.
    pub rate: DataRate,
    /// When its pacer lets the next packet pass; in the past while it holds nothing back.
    pub open_at: Timestamp,
    /// The time that the packets in flight on it take beyond a usual round trip: what waits in front of a link that has become slower.
    pub backlog: TimeDelta,
    /// Half of the time by which the smoothed round-trip time exceeds the least one of late: with half of the former it is the delay in
    /// this direction, since it is this path's own media that wait.
    pub queueing: TimeDelta,
    /// Its smoothed round-trip time; `None` before the first.
    pub rtt: Option<TimeDelta>,
    /// Share of packets lost by its last report, 0 to 1.
    pub loss: f64,
    /// Bytes in flight.
    pub in_flight: DataSize,
    /// The most that may be in flight, if its controller has a window.
    pub window: Option<DataSize>,
}

impl PathView {
    /// The first path before anything is known of it.
    pub(crate) const NEW: Self = Self {
        id: PathId::FIRST,
        is_usable: false,
        rate: DataRate::ZERO,
        open_at: Timestamp::ZERO,
        backlog: TimeDelta::ZERO,
        queueing: TimeDelta::ZERO,
        rtt: None,
        loss: 0.0,
        in_flight: DataSize::ZERO,
        window: None,
    };

    /// Estimate of the one-way latency: half of the round-trip time. Zero before the first is measured.
    pub fn latency(&self) -> TimeDelta {
        self.rtt.map_or(TimeDelta::ZERO, |rtt| rtt / 2)
    }
    /// When a packet of this size could be sent: once the pacer lets it pass, and what exceeds a full window has been acknowledged,
    /// at the path's rate, as ECF (Y. Lim and others, CoNEXT 2017) and BLEST (S. Ferlin and others, IFIP Networking 2016) count. At most
    /// a second from now.
    pub fn departure(&self, size: DataSize, now: Timestamp) -> Timestamp {
        let excess = self.window.map_or(DataSize::ZERO, |w| (self.in_flight + size).saturating_sub(w));
        let is_full = !self.in_flight.is_zero() && !excess.is_zero();
        let waits = if is_full { self.rate.time_for(excess).unwrap_or(MAX_WAIT) } else { TimeDelta::ZERO };
        self.open_at.max(now + waits.min(MAX_WAIT)).min(now + MAX_WAIT)
    }
    /// When a packet of this size that is sent as early as possible would arrive, without its own transmission time.
    pub fn arrival(&self, size: DataSize, now: Timestamp) -> Timestamp {
        self.departure(size, now) + self.backlog + self.latency() + self.queueing
    }
    /// Capacity by latency, by which the thesis orders paths (section 6.1.1): bit/s per second.
    pub fn merit(&self) -> f64 {
        merit(self.rate.as_bps_f64(), self.latency())
    }
}

/// Capacity in bit/s by latency.
pub(super) fn merit(capacity: f64, latency: TimeDelta) -> f64 {
    capacity / latency.max(LEAST_LATENCY).as_secs_f64()
}

/// A packet to be scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scheduled {
    /// When.
    pub now: Timestamp,
    /// Its kind.
    pub kind: Kind,
    /// Whether it belongs to a key frame.
    pub is_key: bool,
    /// Its size with RTP header.
    pub size: DataSize,
    /// Bytes queued behind it.
    pub queued: DataSize,
    /// The frame: its stream's index and RTP timestamp.
    pub frame: (usize, u32),
}

/// The paths on which a packet is sent: none, one, or copies on several.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct PathSet(u8);

impl PathSet {
    /// No path.
    pub const NONE: Self = Self(0);

    /// One path; none if its number is not below [`MAX_PATHS`].
    pub const fn one(id: PathId) -> Self {
        if id.index() < MAX_PATHS { Self(1 << id.number()) } else { Self::NONE }
    }
    /// This set with one path more.
    #[must_use]
    pub const fn with(self, id: PathId) -> Self {
        Self(self.0 | Self::one(id).0)
    }
    /// This set without one path.
    #[must_use]
    pub const fn without(self, id: PathId) -> Self {
        Self(self.0 & !Self::one(id).0)
    }
    /// The paths of this set that the other does not have.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
    /// The paths that both sets have.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
    /// The paths that either set has.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Whether it has this path.
    pub const fn contains(self, id: PathId) -> bool {
        self.0 & Self::one(id).0 != 0
    }
    /// Whether it has no path.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Number of paths.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }
    /// The path with the least number.
    pub fn first(self) -> Option<PathId> {
        self.iter().next()
    }
    /// Its paths, by number.
    pub fn iter(self) -> impl Iterator<Item = PathId> {
        let mut left = self.0;
        core::iter::from_fn(move || {
            let number = left.trailing_zeros() as u8;
            left &= left.checked_sub(1)?;
            Some(PathId::new(number))
        })
    }
}

/// A scheduler's entry in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SchedulerSpec {
    /// Name in scenario files and on the command line.
    pub name: &'static str,
    /// One line for lists.
    pub summary: &'static str,
    /// The document that it follows.
    pub source: &'static str,
}

/// Assigns packets to paths. It has no clock and draws no random numbers.
pub trait Scheduler {
    /// The paths on which to send a packet: usable ones of `paths`, and none if no path is usable. Called once for each
    /// packet sent, in order.
    fn choose(&mut self, packet: &Scheduled, paths: &[PathView]) -> PathSet;

    /// The media rate that these paths carry together under this scheduler.
    fn media_rate(&self, paths: &[PathView]) -> DataRate {
        let usable = paths.iter().filter(|p| p.is_usable);
        usable.fold(DataRate::ZERO, |sum, p| sum + p.rate)
    }

    /// The other end has reported on a path.
    fn on_report(&mut self, _path: PathId, _report: &PathReport) {}
}

/// A scheduler with an entry in the list.
pub(super) trait Named: Scheduler + Default {
    /// Its entry.
    const SPEC: SchedulerSpec;
}

/// The usable path with the greatest merit; of equals, the first.
pub(super) fn best<'p>(paths: impl IntoIterator<Item = &'p PathView>) -> Option<&'p PathView> {
    let usable = paths.into_iter().filter(|p| p.is_usable);
    usable.reduce(|best, p| if p.merit() > best.merit() { p } else { best })
}
