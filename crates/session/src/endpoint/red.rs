//! Received RED packets (RFC 2198): media, and ULPFEC (RFC 5109, section 14.2).

use super::Endpoint;
use super::incoming::{kind_of_media, parse_rtp};
use crate::datagram::{Datagram, Kind};
use crate::identity::Red;
use crate::outcome::{Outcome, Refusal};
use crate::received_packet::ReceivedPacket;
use crate::repair_format::{Format, ReceivedRepair};
use weir_wire::fec::{Octets, red};

impl Endpoint {
    /// A RED packet on a media stream's source. Its media go on as a packet without RED; repair packets are taken as packets without
    /// media, and then repair.
    #[inline(never)]
    pub(super) fn on_red(&mut self, index: usize, packet: &ReceivedPacket<'_>, numbers: &Red) -> Outcome {
        if packet.payload().is_empty() {
            // Padding.
            if let Some(o) = &mut self.observer {
                o.on_rtp_received(&packet.seen());
            }
            return self.on_media(index, packet);
        }
        let mut unwrapped = core::mem::take(&mut self.scratch.without_red);
        let outcome = self.on_red_blocks(index, packet, numbers, &mut unwrapped);
        self.scratch.without_red = unwrapped;
        self.settled = false;
        outcome.unwrap_or_else(|| {
            self.counters.malformed += 1;
            self.report_stranger(packet);
            Outcome::Refused(Refusal::Malformed)
        })
    }

    /// A RED packet with content, of which that without RED is put into `unwrapped`; `None` if it is malformed.
    fn on_red_blocks(
        &mut self,
        index: usize,
        packet: &ReceivedPacket<'_>,
        numbers: &Red,
        unwrapped: &mut Vec<u8>,
    ) -> Option<Outcome> {
        let Datagram { bytes, payload: zeros, .. } = packet.datagram;
        unwrapped.clear();
        let parsed = red::Red::parse(packet.payload()).ok()?;
        let zeros = red::virtual_packet_into(Octets { bytes, zeros }, unwrapped).ok()?;
        if parsed.payload_type == numbers.payload_type {
            // RED in RED is nothing that anyone sends.
            return None;
        }
        let is_repair = parsed.payload_type == numbers.ulpfec;
        if let Some(o) = &mut self.observer {
            if is_repair { o.on_fec_received(&packet.seen()) } else { o.on_rtp_received(&packet.seen()) }
        }
        let datagram = Datagram { bytes: unwrapped, payload: zeros, ..packet.datagram };
        let rtp = parse_rtp(&datagram).ok()?;
        let kind = if is_repair { Kind::Repair } else { kind_of_media(&rtp, zeros) };
        let outcome = self.on_media(index, &ReceivedPacket { datagram, rtp, kind, ..*packet });
        let blocks = parsed.redundant.iter().filter(|b| b.payload_type == numbers.ulpfec);
        for block in blocks.map(|b| b.data).chain(is_repair.then_some(parsed.primary)) {
            self.on_repair_in_red(index, packet, block);
        }
        Some(match outcome {
            Outcome::Rtp { stream, .. } if is_repair => Outcome::Rtp { stream, kind: Kind::Repair },
            other => other,
        })
    }

    fn on_repair_in_red(&mut self, index: usize, packet: &ReceivedPacket<'_>, payload: Octets<'_>) {
        let Some(receiver) = &mut self.receiver else { return };
        let (stream, path) = receiver.with_path_at(index, packet.path);
        if stream.stats.is_started() {
            let repair = ReceivedRepair { format: Format::UlpFec, rtp: &packet.rtp, payload };
            stream.on_repair(path, packet, repair, &mut self.observer);
        }
    }
}
