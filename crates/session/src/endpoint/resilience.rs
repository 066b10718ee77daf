//! Error resilience at an endpoint: received NACKs and retransmissions, and the mechanisms in use.

use super::Endpoint;
use crate::datagram::Kind;
use crate::outcome::{Outcome, Refusal};
use crate::received_packet::ReceivedPacket;
use weir_media::resilience::{Decision, Mechanisms};
use weir_units::Timestamp;
use weir_wire::rtcp::Nack;

impl Endpoint {
    /// A packet of the other end's retransmission stream.
    #[inline(never)]
    pub(super) fn on_retransmission(&mut self, index: usize, packet: &ReceivedPacket<'_>) -> Outcome {
        let Some(receiver) = self.receiver.as_mut().filter(|r| r.streams[index].nack.is_some()) else {
            self.counters.unknown_source += 1;
            self.report_stranger(packet);
            return Outcome::Refused(Refusal::NotWanted);
        };
        if let Some(o) = &mut self.observer {
            o.on_retransmission_received(&packet.seen());
        }
        let (stream, path) = receiver.with_path_at(index, packet.path);
        path.count_subflow(packet);
        stream.on_retransmission(path, packet, &mut self.observer);
        Outcome::Rtp { stream: stream.id, kind: Kind::Retransmission }
    }

    /// The other end has reported packets missing.
    pub(super) fn on_nack(&mut self, nack: &Nack<'_>, path: usize, now: Timestamp) {
        let Some(sender) = self.sender.as_mut().filter(|s| s.has(nack.media_ssrc)) else { return };
        sender.paths[path].breaker.on_feedback(now);
        sender.on_nack(nack.media_ssrc, nack.sequences(), now);
    }

    /// Counts of error resilience, by name: retransmissions of all streams, all else of the first.
    pub(super) fn resilience_metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let streams = self.sender.iter().flat_map(|s| &s.streams);
        let counters = streams.filter_map(|s| s.retransmitter.as_ref()).map(|r| r.counters);
        if let Some(c) = counters.reduce(|a, b| a + b) {
            out("nacks_received", c.nacks as f64);
            out("retransmissions_sent", c.packets as f64);
            out("retransmissions_refused", c.refused as f64);
            if self.is_multipath {
                out("retransmissions_early", c.early as f64);
                out("retransmissions_unasked", c.unasked as f64);
            }
        }
        if let Some(s) = self.first_outgoing() {
            s.repair.metrics(out);
        }
        if let Some(planned) = self.first_incoming().and_then(|r| r.planned.as_ref()) {
            planned.metrics(out);
        }
        if let Some(c) = self.first_incoming().and_then(|r| r.nack.as_ref()).map(|n| n.counters) {
            out("nacks_sent", c.nacks as f64);
            out("packets_nacked", c.requested as f64);
            out("retransmissions_received", c.retransmissions as f64);
            out("retransmissions_useless", c.useless() as f64);
            out("recovered_by_retransmission", c.recovered as f64);
            out("recovered_by_repair", self.stats().repair_counters().window.recovered as f64);
        }
        let on = |d: &Decision, m| f64::from(u8::from(d.mechanisms.contains(m)));
        let (sending, receiving) = self.stats().resilience();
        if let Some(d) = sending {
            out("resilience_ssa", on(&d, Mechanisms::SLICES));
            out("resilience_uep", on(&d, Mechanisms::PROTECTION));
            if let Some(size) = d.slice_size {
                out("slice_size", size.as_bytes() as f64);
            }
        }
        if let Some(d) = receiving {
            out("resilience_nack", on(&d, Mechanisms::NACK));
            out("resilience_rps", on(&d, Mechanisms::REFERENCES));
        }
    }
}
