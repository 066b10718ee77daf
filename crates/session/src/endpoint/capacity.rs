//! Capacity vectors of an endpoint: announced to the other end, or followed.
//!
//! In a call over several paths each has its own: it travels in a block of multipath RTCP that names its path, beside the
//! compound about the whole call, and thus on whichever path RTCP takes. A path that is in a hole need not carry the news of it.

use super::{Endpoint, PathMut, PathUse, RtcpControl};
use crate::capacity_vector::Verdict;
use weir_cc::cue::{CapacityForecast, Channel, Cue, ForecastSegment};
use weir_units::{DataSize, PathId, TimeDelta, Timestamp};
use weir_wire::rtcp::CapacityVector;
use weir_wire::rtcp::mprtcp::Writer;

impl RtcpControl<'_> {
    /// Announces to the other end the capacity that this end expects on the way to it, from `now` on: a map of network
    /// coverage has answered. It holds for the time `valid_for`, and replaces the one before; without segments it withdraws it.
    /// In a call over several paths it is that of the first: [`PathMut::announce_capacity`].
    ///
    /// It is sent as soon as the rules of early feedback permit (RFC 4585, section 3.5), at least a second after the one before,
    /// and again with regular reports after 1 s, 2 s, 4 s and then each 8 s. At most
    /// [`CapacityVector::MAX_ENTRIES`] stretches are sent, equal neighbours as one. Returns `false`, and sends nothing, where the
    /// ends have not agreed on it ([`EndConfig::capacity_vectors`](crate::EndConfig::capacity_vectors)) or this end receives
    /// nothing.
    pub fn announce_capacity(&mut self, segments: &[ForecastSegment], valid_for: TimeDelta, now: Timestamp) -> bool {
        self.end.announce_path_capacity(PathId::FIRST, segments, valid_for, now)
    }
}

impl PathMut<'_> {
    /// Announces to the other end the capacity that this end expects on this path to it, as
    /// [`RtcpControl::announce_capacity`] does. Returns `false`, and sends nothing, also where the path is removed.
    pub fn announce_capacity(&mut self, segments: &[ForecastSegment], valid_for: TimeDelta, now: Timestamp) -> bool {
        let path = self.id();
        self.end().announce_path_capacity(path, segments, valid_for, now)
    }
}

impl Endpoint {
    fn announce_path_capacity(
        &mut self,
        path: PathId,
        segments: &[ForecastSegment],
        valid_for: TimeDelta,
        now: Timestamp,
    ) -> bool {
        let is_there = self.receiver.is_some() && self.is_in_use(path);
        let Some(vectors) = self.vectors.as_mut().filter(|_| is_there) else { return false };
        vectors.of(path.index()).announced.set(segments, valid_for, now);
        self.vector_waits = true;
        true
    }

    /// Whether a path can carry media, now or once it is checked.
    fn is_in_use(&self, path: PathId) -> bool {
        path.index() < self.path_count() && matches!(self.path_use(path), None | Some(PathUse::Open | PathUse::Checked))
    }

    /// Whether a vector is to be sent, and the source that it concerns is known.
    pub(super) fn is_vector_due(&self, now: Timestamp) -> bool {
        self.config.remote_ssrc != 0 && self.vectors.as_ref().is_some_and(|v| v.are_due(now))
    }

    /// Appends the vectors that are due to a datagram, as far as it has room.
    pub(super) fn write_vector(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        if !self.is_vector_due(now) {
            return;
        }
        let ssrcs = (self.config.ssrc, self.config.remote_ssrc);
        let Some(vectors) = &mut self.vectors else { return };
        if self.is_multipath {
            let (begin, mut sent) = (out.len(), 0);
            let mut writer = Writer::new(out, ssrcs.0, ssrcs.1);
            for (v, subflow) in vectors.all().iter_mut().zip(0..) {
                writer.reports(subflow, |out| sent += u64::from(v.announced.write(ssrcs, now, out)));
            }
            writer.finish();
            if sent == 0 {
                out.truncate(begin);
            }
            self.counters.vectors.sent += sent;
        } else if vectors.of(0).announced.write(ssrcs, now, out) {
            self.counters.vectors.sent += 1;
        }
        self.vector_waits &= vectors.are_due(now);
    }

    /// A vector was received of the path with this number, or in a call over several paths of none.
    pub(super) fn on_vector(&mut self, vector: &CapacityVector<'_>, path: Option<usize>, now: Timestamp) {
        let (is_about_own, remote) = (self.is_own(vector.media_ssrc), self.config.remote_ssrc);
        let path = path.filter(|p| self.is_in_use(PathId::new(*p as u8)));
        let counters = &mut self.counters.vectors;
        let Some((vectors, sender)) = self.vectors.as_mut().zip(self.sender.as_mut()) else {
            counters.not_agreed += 1;
            return;
        };
        if !is_about_own {
            counters.foreign += 1;
            return;
        }
        let Some(path) = path.filter(|p| *p < sender.paths.len()) else {
            counters.of_no_path += 1;
            return;
        };
        // One source announces all paths.
        let remote = if remote != 0 { remote } else { vectors.sender().unwrap_or(0) };
        let followed = &mut vectors.of(path).followed;
        match followed.on_vector(vector, remote, now) {
            Verdict::Taken { is_contradicted } => {
                counters.accepted += 1;
                counters.contradicted += u64::from(is_contradicted);
                let forecast = CapacityForecast { now, segments: followed.segments(), channel: Channel::InBand };
                sender.on_cue(path, &Cue::CapacityForecast(forecast));
            }
            Verdict::Repeated { is_longer } => {
                counters.repeated += 1;
                if is_longer {
                    let forecast = CapacityForecast { now, segments: followed.segments(), channel: Channel::InBand };
                    sender.on_cue(path, &Cue::CapacityForecast(forecast));
                }
            }
            Verdict::Stale => counters.stale += 1,
            Verdict::Foreign => counters.foreign += 1,
            Verdict::Faulty => counters.faulty += 1,
        }
    }

    /// A source has left: its vectors hold no longer.
    pub(super) fn on_vector_source_left(&mut self, ssrc: u32, now: Timestamp) {
        let Some((vectors, sender)) = self.vectors.as_mut().zip(self.sender.as_mut()) else { return };
        for (v, path) in vectors.all().iter_mut().zip(0..sender.paths.len()) {
            if v.followed.on_left(ssrc) {
                let forecast = CapacityForecast { now, segments: &[], channel: Channel::InBand };
                sender.on_cue(path, &Cue::CapacityForecast(forecast));
            }
        }
    }

    /// A path is removed: this end announces nothing of it any more.
    pub(super) fn forget_vector(&mut self, path: PathId) {
        if let Some(v) = &mut self.vectors {
            v.of(path.index()).announced.forget();
        }
    }

    /// Per-packet feedback on a path was received.
    #[inline]
    pub(super) fn prove_by_packets(&mut self, path: usize, now: Timestamp) {
        if let Some((v, sender)) = self.vectors.as_mut().zip(self.sender.as_ref()) {
            v.of(path).followed.on_packets(sender.paths[path].results(), now);
        }
    }

    /// A report block on a stream, or on a path of several, was received: what was sent since the one before has arrived, if
    /// nothing was lost.
    #[inline]
    pub(super) fn prove_by_block(&mut self, path: usize, fraction_lost: f64, now: Timestamp) {
        let Some((v, sender)) = self.vectors.as_mut().zip(self.sender.as_ref()) else { return };
        if sender.paths.get(path).is_some_and(|p| !p.has_packet_feedback()) {
            let sent = match &sender.multipath {
                Some(m) => m.state(path).map_or(0, |s| s.bytes),
                None => sender.counters().payload,
            };
            v.of(path).followed.on_block(DataSize::from_bytes(sent), fraction_lost, now);
        }
    }
}
