//! Received RED packets (RFC 2198): media, and ULPFEC (RFC 5109, section 14.2).

use super::Endpoint;
use super::incoming::{Place, seen, size_of};
use crate::datagram::{Datagram, Kind};
use crate::identity::Red;
use crate::observer::Seen;
use crate::outcome::{Outcome, Refusal};
use crate::receiver::Arrival;
use crate::repair_format::{Format, ReceivedRepair};
use core::net::SocketAddr;
use weir_units::Timestamp;
use weir_wire::fec::{Octets, red};
use weir_wire::rtp::PacketView;

impl Endpoint {
    /// A RED packet on a media stream's source. Its media go on as a packet without RED; repair packets are taken as packets without
    /// media, and then repair.
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "what is known of a received packet")]
    pub(super) fn on_red(
        &mut self,
        index: usize,
        now: Timestamp,
        view: &PacketView<'_>,
        place: Place,
        numbers: &Red,
        datagram: &Datagram<'_>,
        source: Option<&SocketAddr>,
    ) -> Outcome {
        let payload = Octets { bytes: view.payload(), zeros: datagram.payload };
        if payload.is_empty() {
            // Padding.
            if let Some(o) = &mut self.observer {
                o.on_rtp_received(&seen(now, datagram, source));
            }
            return self.on_media(index, now, view, place, datagram, size_of(datagram), false);
        }
        let mut packet = core::mem::take(&mut self.scratch.without_red);
        packet.clear();
        let whole = Octets { bytes: datagram.bytes, zeros: datagram.payload };
        let outcome = match (red::Red::parse(payload), red::virtual_packet_into(whole, &mut packet)) {
            // RED in RED is nothing that anyone sends.
            (Ok(parsed), Ok(zeros)) if parsed.payload_type != numbers.payload_type => {
                let is_repair = parsed.payload_type == numbers.ulpfec;
                if let Some(o) = &mut self.observer {
                    let seen: Seen<'_> = seen(now, datagram, source);
                    if is_repair { o.on_fec_received(&seen) } else { o.on_rtp_received(&seen) }
                }
                let unwrapped = Datagram { bytes: &packet, payload: zeros, ..*datagram };
                let parsed_again =
                    if zeros > 0 { PacketView::parse_header(&packet) } else { PacketView::parse(&packet) };
                match parsed_again {
                    Ok(bare) => {
                        let outcome = self.on_media(index, now, &bare, place, &unwrapped, size_of(datagram), is_repair);
                        let blocks = parsed.redundant.iter().filter(|b| b.payload_type == numbers.ulpfec);
                        let blocks = blocks.map(|b| b.data).chain(is_repair.then_some(parsed.primary));
                        for block in blocks {
                            self.on_repair_in_red(index, now, view, place, block, datagram);
                        }
                        match outcome {
                            Outcome::Rtp { stream, .. } if is_repair => Outcome::Rtp { stream, kind: Kind::Repair },
                            other => other,
                        }
                    }
                    Err(_) => self.malformed_red(),
                }
            }
            _ => self.malformed_red(),
        };
        self.scratch.without_red = packet;
        outcome
    }

    fn malformed_red(&mut self) -> Outcome {
        self.counters.malformed += 1;
        Outcome::Refused(Refusal::Malformed)
    }

    fn on_repair_in_red(
        &mut self,
        index: usize,
        now: Timestamp,
        view: &PacketView<'_>,
        place: Place,
        block: Octets<'_>,
        datagram: &Datagram<'_>,
    ) {
        let Some(receiver) = &mut self.receiver else { return };
        let (stream, path) = receiver.with_path_at(index, place.path);
        if !stream.stats.is_started() {
            return;
        }
        let packet = ReceivedRepair { format: Format::UlpFec, view, payload: block.bytes, zeros: block.zeros };
        let arrival = Arrival { transport: place.transport, ecn: datagram.ecn, now };
        stream.on_repair(path, packet, arrival, &mut self.observer);
    }
}
