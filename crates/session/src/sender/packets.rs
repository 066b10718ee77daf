//! Packets as the pacer lets them go.

use super::{MediaSender, PADDING_SIZE};
use crate::protection::RepairPacket;
use crate::queue::QueuedPacket;
use crate::retransmission::Retransmitter;
use crate::sent::Sent;
use weir_cc::cue::SentPacket;
use weir_cc::{Controller, PacerDecision};
use weir_fec::Importance;
use weir_units::{DataSize, Timestamp};

/// The packet that the pacer lets go now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outgoing {
    /// Transport-wide sequence number.
    pub transport: u64,
    /// The stream's own.
    pub sequence: u64,
    pub kind: Kind,
    /// The media packet; of padding and repair only the RTP timestamp of the last one.
    pub media: QueuedPacket,
    /// The media stream's number of a packet that is sent again.
    pub resent: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Kind {
    #[default]
    Media,
    Padding,
    /// It waits in [`RepairSender::take_popped`](crate::protection::RepairSender::take_popped).
    Repair,
    /// The retransmitter has its payload, by [`Outgoing::resent`].
    Retransmission,
}

impl MediaSender {
    /// Appends the content of the outgoing packet, where it has any: then nothing of its payload is missing.
    #[inline]
    pub(crate) fn write_content(&mut self, out: &mut Vec<u8>) {
        if self.queue.take_content(out) {
            self.outgoing.media.payload = 0;
        }
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
            || self.repair.front().is_some()
            || self.retransmitter.as_ref().is_some_and(Retransmitter::is_waiting)
    }

    /// Takes the packet that may leave now, if one may, and puts it into [`Self::outgoing`]: a packet sent again, a
    /// repair packet right behind the media packet that completed it, media, padding. `overhead` is the size of its RTP header and extensions.
    pub(crate) fn poll_packet(&mut self, overhead: u32, now: Timestamp) -> bool {
        if self.breaker.tripped().is_some() {
            return false;
        }
        let (probe, padding) = match self.pacer.poll(now, self.has_queued()) {
            PacerDecision::Media { probe } => (probe, false),
            PacerDecision::Padding { probe } => (probe, true),
            PacerDecision::Wait(_) | PacerDecision::Idle => return false,
        };
        let resent = self.retransmitter.as_ref().and_then(Retransmitter::front_size).filter(|_| !padding);
        let repair = self.repair.front().map(RepairPacket::size).filter(|_| !padding && resent.is_none());
        let payload = match resent.or(repair) {
            _ if padding => u64::from(PADDING_SIZE),
            Some(size) => size,
            None => match self.queue.front() {
                Some(p) => u64::from(p.payload),
                None => return false,
            },
        };
        let size = DataSize::from_bytes(u64::from(overhead) + payload);
        // An empty flight always lets one packet go: a window smaller than a packet must not stop the call.
        let in_flight = self.history.bytes_in_flight();
        self.window_closed = self.target.window.is_some_and(|w| in_flight + size > w && !in_flight.is_zero());
        if self.window_closed {
            return false;
        }
        let transport = self.next_transport;
        self.next_transport += 1;
        let bytes = u32::try_from(size.as_bytes()).unwrap_or(u32::MAX);
        let packet = Sent { transport, departure: now, size: bytes, is_padding: padding };
        let own_stream = match &mut self.retransmitter {
            Some(r) if resent.is_some() => Some(&mut r.stream),
            _ if repair.is_some() => Some(&mut self.repair.stream),
            _ => None,
        };
        let sequence = match own_stream {
            // From here on the media stream has numbers of its own.
            Some(stream) => {
                self.media.keep();
                stream.on_sent(packet)
            }
            None => self.media.on_sent(packet),
        };
        let c = &mut self.counters;
        let mut media = QueuedPacket {
            payload: 0,
            marker: false,
            rtp_timestamp: self.last_rtp_timestamp,
            captured: now,
            importance: Importance::Other,
        };
        let mut resent_number = 0;
        let kind = if let Some(r) = self.retransmitter.as_mut().filter(|_| resent.is_some()) {
            r.counters.bytes += size.as_bytes();
            let packet = r.pop(now).unwrap_or_default();
            (media.marker, media.rtp_timestamp, resent_number) = (packet.marker, packet.rtp_timestamp, packet.sequence);
            Kind::Retransmission
        } else if repair.is_some() {
            c.repair_packets += 1;
            c.repair_bytes += size.as_bytes();
            c.repair_payload += self.repair.pop_next();
            Kind::Repair
        } else {
            c.packets += 1;
            c.bytes += size.as_bytes();
            if padding {
                c.padding_packets += 1;
                Kind::Padding
            } else {
                media = self.queue.pop().unwrap_or(media);
                c.payload += payload;
                self.last_rtp_timestamp = media.rtp_timestamp;
                Kind::Media
            }
        };
        let mut sent = SentPacket {
            now,
            sequence: transport,
            size,
            is_padding: padding,
            is_repair: repair.is_some(),
            is_retransmission: resent.is_some(),
            probe,
            queued: self.queue.size() + DataSize::from_bytes(self.waiting_beside()),
            bytes_in_flight: DataSize::ZERO,
        };
        if self.remembers {
            self.history.on_sent(&sent);
        }
        sent.bytes_in_flight = self.history.bytes_in_flight();
        self.controller.on_packet_sent(&sent);
        self.breaker.on_packet_sent(&sent);
        self.pacer.on_sent(now, size, padding, probe);
        let by_policy = self.protects_by_policy();
        if let Some(room) = &mut self.room {
            room.on_sent(size.as_bytes(), resent.is_some() || (repair.is_some() && by_policy));
        }
        self.outgoing = Outgoing { transport, sequence, kind, media, resent: resent_number };
        true
    }

    /// Bytes that wait beside media.
    fn waiting_beside(&self) -> u64 {
        self.repair.waiting_size() + self.retransmitter.as_ref().map_or(0, Retransmitter::waiting_size)
    }

    /// The outgoing packet of the media stream has been written to `bytes`, up to its payload.
    #[inline(never)]
    pub(crate) fn protect(&mut self, bytes: &[u8]) {
        let packet = self.outgoing;
        let importance = packet.media.importance;
        if packet.kind == Kind::Media || self.repair.wants_padding() {
            let ends_key_frame = packet.media.marker && importance == Importance::Key;
            self.repair.on_media(packet.sequence, bytes, packet.media.payload.into(), (importance, ends_key_frame));
        }
    }

    /// The outgoing packet of the media stream has been written to `bytes`, in case the other end asks for it.
    #[inline(never)]
    pub(crate) fn keep(&mut self, bytes: &[u8], now: Timestamp) {
        let packet = self.outgoing;
        if let Some(r) = &mut self.retransmitter {
            r.keep(now, packet.sequence, (bytes, packet.media.payload), packet.kind == Kind::Padding);
        }
    }
}
