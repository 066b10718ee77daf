//! Packets as the pacer lets them go.

use super::{MediaSender, PADDING_SIZE};
use crate::protection::RepairPacket;
use crate::queue::QueuedPacket;
use crate::sent::Sent;
use weir_cc::cue::SentPacket;
use weir_cc::{Controller, PacerDecision};
use weir_fec::Importance;
use weir_units::{DataSize, Timestamp};

/// The packet that the pacer lets go now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// Transport-wide sequence number.
    pub transport: u64,
    /// The stream's own.
    pub sequence: u64,
    pub content: Content,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Content {
    Media(QueuedPacket),
    Padding,
    /// It waits in [`RepairSender::take_popped`](crate::protection::RepairSender::take_popped).
    Repair,
}

impl MediaSender {
    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty() || self.repair.front().is_some()
    }

    /// Takes the packet that may leave now: a repair packet right behind the media packet that completed it, media,
    /// padding. `overhead` is the size of its RTP header and extensions.
    pub(crate) fn poll_packet(&mut self, overhead: u32, now: Timestamp) -> Option<Outgoing> {
        if self.breaker.tripped().is_some() {
            return None;
        }
        let (probe, padding) = match self.pacer.poll(now, self.has_queued()) {
            PacerDecision::Media { probe } => (probe, false),
            PacerDecision::Padding { probe } => (probe, true),
            PacerDecision::Wait(_) | PacerDecision::Idle => return None,
        };
        let repair = self.repair.front().map(RepairPacket::size).filter(|_| !padding);
        let payload = match repair {
            _ if padding => u64::from(PADDING_SIZE),
            Some(size) => size,
            None => u64::from(self.queue.front()?.payload),
        };
        let size = DataSize::from_bytes(u64::from(overhead) + payload);
        // An empty flight always lets one packet go: a window smaller than a packet must not stop the call.
        let in_flight = self.history.bytes_in_flight();
        self.window_closed = self.target.window.is_some_and(|w| in_flight + size > w && !in_flight.is_zero());
        if self.window_closed {
            return None;
        }
        let transport = self.next_transport;
        self.next_transport += 1;
        let bytes = u32::try_from(size.as_bytes()).unwrap_or(u32::MAX);
        let packet = Sent { transport, departure: now, size: bytes, is_padding: padding };
        let sequence = match repair {
            // From here on the media stream has numbers of its own.
            Some(_) => {
                self.media.keep();
                self.repair.stream.on_sent(packet)
            }
            None => self.media.on_sent(packet),
        };
        let c = &mut self.counters;
        let content = if repair.is_some() {
            c.repair_packets += 1;
            c.repair_bytes += size.as_bytes();
            c.repair_payload += self.repair.pop_next();
            Content::Repair
        } else {
            c.packets += 1;
            c.bytes += size.as_bytes();
            if padding {
                c.padding_packets += 1;
                Content::Padding
            } else {
                let m = self.queue.pop()?;
                c.payload += payload;
                self.last_rtp_timestamp = m.rtp_timestamp;
                Content::Media(m)
            }
        };
        let mut sent = SentPacket {
            now,
            sequence: transport,
            size,
            is_padding: padding,
            is_repair: repair.is_some(),
            probe,
            queued: self.queue.size() + DataSize::from_bytes(self.repair.waiting_size()),
            bytes_in_flight: DataSize::ZERO,
        };
        if self.remembers {
            self.history.on_sent(&sent);
        }
        sent.bytes_in_flight = self.history.bytes_in_flight();
        self.controller.on_packet_sent(&sent);
        self.breaker.on_packet_sent(&sent);
        self.pacer.on_sent(now, size, padding, probe);
        Some(Outgoing { transport, sequence, content })
    }

    /// A packet of the media stream has been written: `zeros` bytes of its payload are not in `packet`.
    #[inline(never)]
    pub(crate) fn protect(&mut self, sequence: u64, packet: &[u8], zeros: u32, media: Option<&QueuedPacket>) {
        let importance = match media {
            Some(m) if m.key => Importance::Key,
            Some(_) => Importance::Reference,
            None => Importance::Other,
        };
        if media.is_some() || self.repair.wants_padding() {
            self.repair.on_media(sequence, packet, zeros, importance);
        }
    }
}
