//! Capacity vectors of an endpoint: announced to the other end, or followed.

use super::{Endpoint, RtcpControl};
use crate::capacity_vector::{CapacityVectors, Verdict};
use weir_cc::cue::{CapacityForecast, Channel, Cue, ForecastSegment};
use weir_units::{DataSize, TimeDelta, Timestamp};
use weir_wire::rtcp::CapacityVector;

impl RtcpControl<'_> {
    /// Announces to the other end the capacity that this end expects on the way to it, from `now` on: a map of network
    /// coverage has answered. It holds for the time `valid_for`, and replaces the one before; without segments it withdraws it.
    ///
    /// It is sent as soon as the rules of early feedback permit (RFC 4585, section 3.5), at least a second after the one before,
    /// and again with regular reports after 1 s, 2 s, 4 s and then each 8 s. At most
    /// [`CapacityVector::MAX_ENTRIES`] stretches are sent, equal neighbours as one. Returns `false`, and sends nothing, where the
    /// ends have not agreed on it ([`EndConfig::capacity_vectors`](crate::EndConfig::capacity_vectors)) or this end receives
    /// nothing.
    pub fn announce_capacity(&mut self, segments: &[ForecastSegment], valid_for: TimeDelta, now: Timestamp) -> bool {
        let end = &mut *self.end;
        let Some(vectors) = end.vectors.as_mut().filter(|_| end.receiver.is_some()) else { return false };
        vectors.announced.set(segments, valid_for, now);
        end.vector_waits = true;
        true
    }
}

impl Endpoint {
    /// Whether a vector is to be sent, and the source that it concerns is known.
    pub(super) fn is_vector_due(&self, now: Timestamp) -> bool {
        self.config.remote_ssrc != 0 && self.vectors.as_ref().is_some_and(|v| v.announced.is_due(now))
    }

    /// Appends the vector to a datagram if it is due.
    pub(super) fn write_vector(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        if !self.is_vector_due(now) {
            return;
        }
        let ssrcs = (self.config.ssrc, self.config.remote_ssrc);
        let Some(vectors) = &mut self.vectors else { return };
        if vectors.announced.write(ssrcs, now, out) {
            self.counters.vectors.sent += 1;
        }
        self.vector_waits &= vectors.announced.is_due(now);
    }

    /// A vector was received.
    pub(super) fn on_vector(&mut self, vector: &CapacityVector<'_>, path: usize, now: Timestamp) {
        let (is_about_own, remote) = (self.is_own(vector.media_ssrc), self.config.remote_ssrc);
        let counters = &mut self.counters.vectors;
        let Some((vectors, sender)) = self.vectors.as_mut().zip(self.sender.as_mut()) else {
            counters.not_agreed += 1;
            return;
        };
        if !is_about_own {
            counters.foreign += 1;
            return;
        }
        match vectors.followed.on_vector(vector, remote, now) {
            Verdict::Taken { is_contradicted } => {
                counters.accepted += 1;
                counters.contradicted += u64::from(is_contradicted);
                let segments = vectors.followed.segments();
                let forecast = CapacityForecast { now, segments, channel: Channel::InBand };
                sender.on_cue(path, &Cue::CapacityForecast(forecast));
            }
            Verdict::Repeated => counters.repeated += 1,
            Verdict::Stale => counters.stale += 1,
            Verdict::Foreign => counters.foreign += 1,
            Verdict::Faulty => counters.faulty += 1,
        }
    }

    /// A source has left: its vector holds no longer.
    pub(super) fn on_vector_source_left(&mut self, ssrc: u32, now: Timestamp) {
        if let Some((v, sender)) = self.vectors.as_mut().zip(self.sender.as_mut())
            && v.followed.on_left(ssrc)
        {
            let forecast = CapacityForecast { now, segments: &[], channel: Channel::InBand };
            sender.on_cue(0, &Cue::CapacityForecast(forecast));
        }
    }

    /// Per-packet feedback was received.
    #[inline]
    pub(super) fn prove_by_packets(&mut self, path: usize, now: Timestamp) {
        if let Some((v, sender)) = self.vectors.as_mut().zip(self.sender.as_ref()) {
            v.followed.on_packets(sender.paths[path].results(), now);
        }
    }

    /// A report block on a stream was received: what was sent since the one before has arrived, if nothing was lost.
    #[inline]
    pub(super) fn prove_by_block(&mut self, fraction_lost: f64, now: Timestamp) {
        let Some((v, sender)) = self.vectors.as_mut().zip(self.sender.as_ref()) else { return };
        let CapacityVectors { followed, .. } = &mut **v;
        if sender.paths.first().is_some_and(|p| !p.has_packet_feedback()) {
            followed.on_block(DataSize::from_bytes(sender.counters().payload), fraction_lost, now);
        }
    }
}
