//! Handling of received datagrams: media goes to its stream, RTCP to the reports.

use super::reports::Compound;
use super::{Bye, Endpoint, SrRequestState};
use crate::datagram::{Datagram, Kind};
use crate::observer::Seen;
use crate::outcome::{Outcome, Refusal, RtcpOutcome};
use crate::received_packet::ReceivedPacket;
use crate::repair_format::{Format, ReceivedRepair};
use crate::session_params::RapidSynchronisation;
use core::net::SocketAddr;
use weir_cc::FeedbackFormat;
use weir_units::cold_path;
use weir_units::{DataSize, Timestamp};
use weir_wire::DatagramKind;
use weir_wire::ntp::NtpTime;
use weir_wire::rtcp::parse_compound;
use weir_wire::rtp::PacketView;
use weir_wire::rtp::extension::{read_ntp_56, read_ntp_64};

impl Endpoint {
    /// Handles a received datagram. Its contents are untrusted: what does not fit is counted, and the outcome states
    /// what it was.
    pub fn handle_datagram(&mut self, now: Timestamp, datagram: &Datagram<'_>) -> Outcome {
        self.receive(now, datagram, None)
    }

    /// The same with the datagram's source address, for an observer.
    pub fn handle_datagram_from(&mut self, now: Timestamp, datagram: &Datagram<'_>, source: SocketAddr) -> Outcome {
        self.receive(now, datagram, Some(&source))
    }

    #[inline]
    fn receive(&mut self, now: Timestamp, datagram: &Datagram<'_>, source: Option<&SocketAddr>) -> Outcome {
        self.settled = false;
        let due = if cfg!(debug_assertions) && self.sender.is_none() { self.poll_timeout(now) } else { None };
        // Another stream's feedback may be waiting until it may be sent.
        let waits = cfg!(debug_assertions) && (due.is_some_and(|at| at <= now) || self.may_send_rtcp(now));
        let outcome = self.handle(now, datagram, source);
        debug_assert!(!self.settled || self.poll_timeout(now) == due);
        debug_assert!(!self.settled || waits || !self.may_send_rtcp(now));
        outcome
    }

    #[inline]
    fn handle(&mut self, now: Timestamp, datagram: &Datagram<'_>, source: Option<&SocketAddr>) -> Outcome {
        match weir_wire::kind_of(datagram.bytes) {
            Some(DatagramKind::Rtcp) => self.on_rtcp_datagram(now, datagram, source),
            Some(DatagramKind::Rtp) => self.on_rtp(now, datagram, source),
            None => {
                self.counters.malformed += 1;
                Outcome::Refused(Refusal::NotRtp)
            }
        }
    }

    #[inline(never)]
    fn on_rtcp_datagram(&mut self, now: Timestamp, datagram: &Datagram<'_>, source: Option<&SocketAddr>) -> Outcome {
        self.counters.rtcp_received += 1;
        if let Some(o) = &mut self.observer {
            cold_path();
            let Datagram { bytes, payload, .. } = *datagram;
            o.on_rtcp_received(&Seen { now, bytes, payload, source: source.copied() });
        }
        let size = datagram.bytes.len() as u64 + u64::from(self.config.header_overhead);
        self.timer.on_packet(DataSize::from_bytes(size));
        let before = self.counters;
        let path = self.sender.as_ref().map_or(0, |s| s.path_index(datagram.path));
        if let Some(s) = &mut self.sender {
            s.paths[path].breaker.on_rtcp_interval(self.timer.calculated_interval());
            s.on_rtcp(path, datagram.bytes, now);
        }
        let mut compound = Compound::on_path(path);
        for packet in parse_compound(datagram.bytes) {
            match packet {
                Ok(packet) => self.on_rtcp(&packet, &mut compound, now),
                Err(_) => {
                    cold_path();
                    self.counters.malformed += 1;
                }
            }
        }
        self.end_compound(&compound, now);
        let more = |after: u64, before: u64| u32::try_from(after - before).unwrap_or(u32::MAX);
        Outcome::Rtcp(RtcpOutcome {
            malformed: more(self.counters.malformed, before.malformed),
            unknown_source: more(self.counters.unknown_source, before.unknown_source),
            goodbyes: more(self.counters.byes, before.byes),
            offers: more(self.counters.offers, before.offers),
        })
    }

    #[inline]
    pub(super) fn on_rtp(&mut self, now: Timestamp, datagram: &Datagram<'_>, source: Option<&SocketAddr>) -> Outcome {
        let Ok(rtp) = parse_rtp(datagram) else {
            cold_path();
            self.counters.malformed += 1;
            return Outcome::Refused(Refusal::Malformed);
        };
        let subflow = if self.is_multipath { self.subflow_of(&rtp) } else { None };
        let Some(receiver) = &self.receiver else {
            cold_path();
            self.counters.unknown_source += 1;
            self.on_heard(rtp.ssrc(), now);
            return Outcome::Refused(Refusal::NotWanted);
        };
        let by_transport = receiver.path.format() == Some(FeedbackFormat::TransportWide);
        let path_sequence = match subflow {
            Some(subflow) => Some(subflow.sequence),
            None if by_transport => rtp.transport_sequence(self.config.extensions.transport_sequence_id),
            None => None,
        };
        let wants_departure = receiver.path.controller.is_some();
        let packet = ReceivedPacket {
            now,
            datagram: *datagram,
            source,
            rtp,
            kind: kind_of_media(&rtp, datagram.payload),
            is_recovered: false,
            size: datagram.size(),
            path: subflow.map_or(0, |s| s.subflow.into()),
            path_sequence,
            abs_send_time: if wants_departure {
                rtp.abs_send_time(self.config.extensions.abs_send_time_id)
            } else {
                None
            },
        };
        let Some(index) = receiver.index_of_media(rtp.ssrc()) else { return self.on_other_rtp(&packet) };
        let red = receiver.streams[index].identity.parity_format.red();
        if let Some(red) = red.copied().filter(|r| r.payload_type == rtp.payload_type()) {
            return self.on_red(index, &packet, &red);
        }
        if let Some(o) = &mut self.observer {
            cold_path();
            o.on_rtp_received(&packet.seen());
        }
        self.on_media(index, &packet)
    }

    /// A packet of the media source of stream number `index`, without RED.
    #[inline]
    pub(super) fn on_media(&mut self, index: usize, packet: &ReceivedPacket<'_>) -> Outcome {
        let is_back = self.on_stream_rtp(index, packet.now);
        if self.config.params.rapid_synchronisation != RapidSynchronisation::Off {
            self.synchronise(index, packet);
        }
        let Some(receiver) = &mut self.receiver else { return Outcome::Refused(Refusal::NotWanted) };
        let (stream, path) = receiver.with_path_at(index, packet.path);
        path.count_subflow(packet);
        let due = path.feedback_due;
        stream.on_rtp(path, packet, &mut self.observer);
        if let Some(report) = path.poll_report(packet.now) {
            let waiting = if path.subflow.is_some() { &mut path.report } else { &mut self.report };
            *waiting = Some(report);
        }
        self.settled = path.feedback_due == due
            && stream.is_only_counted(path)
            && !(is_back | self.is_multipath | self.early_wanted | self.vector_waits)
            && self.bye == Bye::No
            && self.goodbyes.is_empty()
            && self.sender.is_none()
            && self.report.is_none()
            && self.sr_request == SrRequestState::None;
        Outcome::Rtp { stream: stream.id, kind: Kind::Media }
    }

    /// A packet of no media stream: repair, a retransmission, or an unknown source.
    #[inline(never)]
    fn on_other_rtp(&mut self, packet: &ReceivedPacket<'_>) -> Outcome {
        let (ssrc, payload_type) = (packet.rtp.ssrc(), packet.rtp.payload_type());
        let Some(receiver) = &mut self.receiver else { return Outcome::Refused(Refusal::UnknownSource) };
        let Some(index) = receiver.index_of_source(ssrc) else { return self.on_stranger(packet) };
        let identity = receiver.streams[index].identity;
        let of_red = identity.parity_format.red().is_some_and(|r| r.retransmission == Some(payload_type));
        if ssrc == identity.retransmission() && (of_red || payload_type == identity.retransmission_payload_type) {
            return self.on_retransmission(index, packet);
        }
        let format = match payload_type {
            // In RED they are on the media's source.
            _ if ssrc != identity.repair() || identity.parity_format.red().is_some() => None,
            pt if pt == identity.parity_payload_type => Some(identity.parity_format.into()),
            pt if pt == identity.reed_solomon_payload_type => Some(Format::ReedSolomon),
            pt if pt == identity.rlc_payload_type && packet.rtp.marker() => Some(Format::MaskedRlc),
            pt if pt == identity.rlc_payload_type => Some(Format::Rlc),
            _ => None,
        };
        let Some(format) = format else { return self.on_stranger(packet) };
        if let Some(o) = &mut self.observer {
            o.on_fec_received(&packet.seen());
        }
        let (stream, path) = receiver.with_path_at(index, packet.path);
        path.count_subflow(packet);
        let repair = ReceivedRepair { format, rtp: &packet.rtp, payload: packet.payload() };
        if stream.on_repair(path, packet, repair, &mut self.observer) {
            return Outcome::Rtp { stream: stream.id, kind: Kind::Repair };
        }
        self.counters.unknown_source += 1;
        self.report_stranger(packet);
        Outcome::Refused(Refusal::NotWanted)
    }

    /// Before the first sender report, uses the packet's own capture time, or requests the report (RFC 6051).
    #[inline(never)]
    fn synchronise(&mut self, index: usize, packet: &ReceivedPacket<'_>) {
        let (now, rtp) = (packet.now, &packet.rtp);
        let Some(receiver) = &mut self.receiver else { return };
        let stream = &mut receiver.streams[index];
        if stream.heard.media.is_some() {
            return;
        }
        let captured = match self.config.params.rapid_synchronisation {
            RapidSynchronisation::Ntp64(id) => rtp.extension(id).and_then(read_ntp_64),
            // The upper bits are those of a sender report (RFC 6051, section 3.3), or of this end's clock.
            RapidSynchronisation::Ntp56(id) => {
                rtp.extension(id).and_then(|data| read_ntp_56(data, NtpTime::at(now, self.zero)))
            }
            RapidSynchronisation::Off => None,
        };
        if let Some(ntp) = captured.filter(|_| self.config.synchronised_clocks) {
            stream.set_capture_time(rtp.timestamp(), Timestamp::ZERO + ntp.since(self.zero));
        }
        if captured.is_none() && self.sr_request == SrRequestState::None {
            self.sr_request = SrRequestState::Wanted;
        }
    }
}

/// Reads the RTP header of a datagram, and its padding if all of it is present.
#[inline(always)]
pub(super) fn parse_rtp<'a>(datagram: &Datagram<'a>) -> Result<PacketView<'a>, weir_wire::Error> {
    if datagram.payload > 0 { PacketView::parse_header(datagram.bytes) } else { PacketView::parse(datagram.bytes) }
}

/// Whether a packet of a media source, with so many payload bytes carried as a length only, is media or padding alone.
#[inline]
pub(super) fn kind_of_media(rtp: &PacketView<'_>, zeros: u32) -> Kind {
    if rtp.padding() > 0 && rtp.payload().is_empty() && zeros == 0 { Kind::Padding } else { Kind::Media }
}
