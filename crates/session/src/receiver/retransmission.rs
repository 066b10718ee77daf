//! Retransmission in the receiving direction: requests for gaps, and retransmitted packets (RFC 4588).

use super::path::ReceivePath;
use super::resent::ResentStream;
use super::stream::{DEFAULT_DEADLINE, IncomingStream};
use crate::arrivals::ArrivalLog;
use crate::frames::FramePart;
use crate::identity::StreamIdentity;
use crate::nack::Arrived;
use crate::observer::MaybeObserver;
use crate::received_packet::ReceivedPacket;
use crate::sent::nearest;
use crate::statistics::{ReceiveStatistics, Sequenced};
use weir_media::resilience::Mechanisms;
use weir_units::Timestamp;
use weir_wire::fec::Octets;
use weir_wire::fec::red::Red;
use weir_wire::rtp::retransmission;
use weir_wire::rtp::{Header, PacketView};

/// The media in a payload of RED: none if that is empty, or its primary block is a repair packet.
fn without_red(payload: Octets<'_>, ulpfec: u8) -> Option<Octets<'_>> {
    if payload.is_empty() {
        return Some(payload);
    }
    let red = Red::parse(payload).ok()?;
    Some(if red.payload_type == ulpfec { Octets::default() } else { red.primary })
}

impl IncomingStream {
    /// A packet of the media stream has arrived or was recovered: packets missing before it are requested.
    #[inline(never)]
    pub(super) fn look_for_gaps(&mut self, sequence: u64, part: FramePart, is_repaired: bool, now: Timestamp) {
        let deadline = self.playout.as_ref().and_then(|p| p.deadline_of(part.rtp_timestamp));
        let deadline = deadline.unwrap_or(now + self.deadline.unwrap_or(DEFAULT_DEADLINE));
        let Some(nack) = &mut self.nack else { return };
        let packet = Arrived { sequence, deadline, marker: part.marker };
        if is_repaired { nack.on_repaired(now, packet) } else { nack.on_packet(now, packet) }
    }

    /// A report of this fraction lost is sent to the other end.
    pub(crate) fn on_loss_reported(&mut self, fraction: f64) {
        let (Some(r), Some(nack)) = (&mut self.resilience, &self.nack) else { return };
        r.on_loss(fraction, nack.gaps());
        self.follow_resilience();
    }

    /// Applies the policy's decision.
    pub(super) fn follow_resilience(&mut self) {
        if let (Some(r), Some(nack)) = (&self.resilience, &mut self.nack) {
            nack.enable(r.decision().mechanisms.contains(Mechanisms::NACK));
        }
    }

    /// Pictures after this one are damaged: requests it as a reference from the other end, or a key frame if a policy
    /// of error resilience disables references.
    pub(crate) fn on_damaged(&mut self, last_decoded_rtp_timestamp: u32, now: Timestamp) {
        let references = |d: weir_media::resilience::Decision| d.mechanisms.contains(Mechanisms::REFERENCES);
        if self.resilience.as_ref().is_none_or(|r| references(r.decision())) {
            self.picture.on_damaged(last_decoded_rtp_timestamp, now);
        } else {
            self.picture.want_key_frame(now);
        }
    }

    #[inline]
    pub(crate) fn is_nack_due(&self, now: Timestamp) -> bool {
        self.nack.as_ref().is_some_and(|n| n.is_due(now))
    }
    pub(crate) fn prepare_nack(&mut self, now: Timestamp) -> bool {
        self.nack.as_mut().is_some_and(|n| n.prepare(now))
    }

    /// Takes a packet of the retransmission stream.
    pub(crate) fn on_retransmission(
        &mut self,
        path: &mut ReceivePath,
        packet: &ReceivedPacket<'_>,
        observer: &mut MaybeObserver,
    ) {
        let ReceivedPacket { now, rtp, .. } = *packet;
        let ecn = packet.datagram.ecn;
        let clock_rate = self.identity.clock_rate;
        let resent = self.resent.get_or_insert_with(|| {
            Box::new(ResentStream {
                stats: ReceiveStatistics::new(clock_rate),
                log: path.stream_log(),
                packet: Vec::new(),
            })
        });
        let Sequenced::Valid(number) = resent.stats.on_sequence(rtp.sequence()) else {
            path.on_rtp(packet.path_sequence, packet.size, ecn, now);
            self.schedule_feedback(path, now);
            return;
        };
        resent.stats.on_arrival(now, rtp.timestamp());
        if let Some(log) = &mut resent.log {
            log.on_packet(number, now, ecn);
        }
        path.on_rtp(packet.path_sequence, packet.size, ecn, now);
        self.schedule_feedback(path, now);
        let highest = self.stats.highest();
        let (Some(nack), Some(resent)) = (&mut self.nack, &mut self.resent) else { return };
        nack.counters.retransmissions += 1;
        nack.counters.bytes += packet.size.as_bytes();
        let red = self.identity.parity_format.red().filter(|r| r.retransmission == Some(rtp.payload_type()));
        let zeros = packet.datagram.payload;
        let original = retransmission::read(rtp.payload()).ok().filter(|_| self.stats.is_started());
        let original = original.and_then(|(sequence, payload)| match red {
            Some(red) => Some((sequence, without_red(Octets { bytes: payload, zeros }, red.ulpfec)?)),
            None => Some((sequence, Octets { bytes: payload, zeros })),
        });
        let Some((sequence, Octets { bytes: payload, zeros })) = original else {
            nack.counters.malformed += 1;
            return;
        };
        let sequence = nearest(highest, sequence);
        if sequence > highest {
            // No packet after the newest was requested.
            nack.counters.malformed += 1;
            return;
        }
        let was_missing = nack.on_retransmission(now, sequence);
        if nack.config().count_retransmissions {
            self.stats.on_retransmission();
        }
        // The packet as it was sent, except for header extensions. An empty one is padding that was requested.
        let (timestamp, marker) = (rtp.timestamp(), rtp.marker());
        let StreamIdentity { ssrc, payload_type, .. } = self.identity;
        let padding = u8::from(payload.is_empty() && zeros == 0);
        let sequence_16 = sequence as u16;
        let header =
            Header { payload_type, marker, sequence: sequence_16, timestamp, ssrc, padding, ..Header::default() };
        let mut original = core::mem::take(&mut resent.packet);
        original.clear();
        header.write_into(&mut original);
        original.extend_from_slice(payload);
        let in_time = PacketView::parse_header(&original).is_ok_and(|rtp| {
            let recovered = ReceivedPacket::recovered(rtp, &original, zeros, now);
            if let Some(o) = observer.as_mut().filter(|_| was_missing) {
                o.on_rtp_recovered(&recovered.seen());
            }
            self.on_recovered(path, sequence, &recovered)
        });
        if let Some(resent) = &mut self.resent {
            resent.packet = original;
        }
        if let Some(nack) = &mut self.nack {
            match (in_time, was_missing) {
                (true, true) => nack.counters.recovered += 1,
                (false, _) => nack.counters.late += 1,
                (true, false) => nack.counters.duplicates += 1,
            }
        }
    }

    /// Arrivals of the retransmission stream, if it exists and feedback is per stream.
    pub(crate) fn retransmission_log(&self) -> Option<&ArrivalLog> {
        self.resent.as_ref()?.log.as_ref().filter(|l| l.range().end > 0)
    }
    pub(super) fn retransmission_log_mut(&mut self) -> Option<&mut ArrivalLog> {
        self.resent.as_mut()?.log.as_mut().filter(|l| l.range().end > 0)
    }
}
