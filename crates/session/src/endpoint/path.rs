//! A path of an endpoint by its number.

use super::{Endpoint, PathError, PathStats, PathUse};
use crate::multipath::PathPolicy;
use crate::sender::SendPath;
use weir_cc::Sender as Controller;
use weir_cc::cue::{CapacityForecast, Channel, Cue, ForecastSegment, PacketResult};
use weir_units::{PathId, Timestamp};

/// A path of an [`Endpoint`].
#[derive(Clone, Copy)]
pub struct Path<'a> {
    end: &'a Endpoint,
    id: PathId,
}

/// A path of an [`Endpoint`], to be changed.
pub struct PathMut<'a> {
    end: &'a mut Endpoint,
    id: PathId,
}

impl Endpoint {
    /// The path with this number; `None` if the call has never had it.
    pub fn path(&self, id: PathId) -> Option<Path<'_>> {
        (id.index() < self.path_count()).then_some(Path { end: self, id })
    }
    /// The path with this number, to be changed; `None` if the call has never had it.
    pub fn path_mut(&mut self, id: PathId) -> Option<PathMut<'_>> {
        (id.index() < self.path_count()).then_some(PathMut { end: self, id })
    }
}

impl<'a> Path<'a> {
    /// Its statistics; `None` in a call made for one path.
    pub fn stats(&self) -> Option<PathStats> {
        self.end.path_stats(self.id)
    }
    /// Its use.
    pub fn usage(&self) -> PathUse {
        self.end.path_use(self.id).unwrap_or(PathUse::Open)
    }
    /// Its policy, with the budget that is left; `None` if this end does not send on it, or the call was made for one path.
    pub fn policy(&self) -> Option<PathPolicy> {
        self.end.sender.as_ref()?.policy(self.id)
    }
    /// The packets that the last per-packet feedback on it has resolved, in the order of sending.
    pub fn reported_packets(&self) -> &'a [PacketResult] {
        self.end.sender.as_ref().and_then(|s| s.paths.get(self.id.index())).map_or(&[], SendPath::results)
    }
}

impl PathMut<'_> {
    pub(super) const fn id(&self) -> PathId {
        self.id
    }
    pub(super) const fn end(&mut self) -> &mut Endpoint {
        self.end
    }

    /// Sets what the application wants of it: how it is preferred, and which part of its rate and how many bytes it may
    /// carry. It takes effect with the next packet, under any scheduler, and until the path is removed.
    ///
    /// # Errors
    /// This end does not send on the path, or the call was made for one path; nothing changes then.
    pub fn set_policy(&mut self, policy: PathPolicy, now: Timestamp) -> Result<(), PathError> {
        let is_multipath = self.end.is_multipath;
        let sender = self.end.sender.as_mut().filter(|_| is_multipath).ok_or(PathError::SinglePath)?;
        if sender.set_policy(self.id, policy, now) { Ok(()) } else { Err(PathError::Unknown) }
    }

    /// The other end is known to answer on it, as by a connectivity check of ICE: it carries media from now on, without a
    /// challenge of its own. Without effect unless it is being checked.
    pub fn open(&mut self) {
        self.end.open_checked_path(self.id);
    }

    /// Another controller takes it over in mid-call, from its own start rate; `false` if this end does not send on the
    /// path. What it needs of feedback has to be what the other end sends. Packets sent before are reported to it as well.
    pub fn set_controller(&mut self, controller: Controller, now: Timestamp) -> bool {
        self.end.sender.as_mut().is_some_and(|s| s.set_controller(self.id, controller, now))
    }

    /// Restarts media after a trip of its circuit breaker; `false` if it is too early, or there is no circuit breaker. The
    /// caller should have reason to believe that the congestion has ended (RFC 8083, section 4.5).
    pub fn restart_after_trip(&mut self, now: Timestamp) -> bool {
        let path = self.end.sender.as_mut().and_then(|s| s.paths.get_mut(self.id.index()));
        path.is_some_and(|p| p.breaker.restart(now))
    }

    /// Passes the capacity expected on it, by a map of network coverage, to its controller; one named `NAME+map` is bounded
    /// by it. It replaces the forecast before. A receiving end has a use for that of the first path.
    pub fn on_capacity_forecast(&mut self, segments: &[ForecastSegment], now: Timestamp) {
        let (end, path) = (&mut *self.end, self.id);
        let forecast = CapacityForecast { now, segments, channel: Channel::OutOfBand };
        if let Some(s) = end.sender.as_mut().filter(|s| path.index() < s.paths.len()) {
            s.on_cue(path.index(), &Cue::CapacityForecast(forecast));
        }
        if path == PathId::FIRST
            && let Some(r) = &mut end.receiver
            && let Some(report) = r.path.on_forecast(&forecast)
        {
            end.report = Some(report);
        }
    }

    /// Writes a challenge on the path into `out`, for the caller to send to an address that is not the path's yet. It
    /// replaces the path's previous one. Returns `false`, with nothing written, in a call of one path.
    pub fn challenge_address(&mut self, now: Timestamp, out: &mut Vec<u8>) -> bool {
        self.end.challenge_address(self.id, now, out)
    }

    /// Whether the path's last challenge has been answered; `true` once. The answer is of the datagram handled last, so
    /// that the caller knows its source.
    pub fn take_address_answer(&mut self) -> bool {
        self.end.take_address_answer(self.id)
    }
}
