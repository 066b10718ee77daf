//! Handling of received datagrams: media goes to its stream, RTCP to the reports.

use super::reports::Compound;
use super::{Endpoint, Sync};
use crate::content::Payload;
use crate::datagram::Datagram;
use crate::datagram::Kind as PacketKind;
use crate::observer::Seen;
use crate::outcome::{Outcome, Refusal, RtcpOutcome};
use crate::receiver::{Arrival, Incoming};
use crate::repair_format::{Format, ReceivedRepair};
use crate::session_params::RapidSynchronisation;
use core::net::SocketAddr;
use weir_cc::FeedbackFormat;
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

    fn receive(&mut self, now: Timestamp, datagram: &Datagram<'_>, source: Option<&SocketAddr>) -> Outcome {
        match weir_wire::kind_of(datagram.bytes) {
            Some(DatagramKind::Rtcp) => self.on_rtcp_datagram(now, datagram, source),
            Some(DatagramKind::Rtp) => self.on_rtp(now, datagram, source),
            None => {
                self.counters.malformed += 1;
                Outcome::Refused(Refusal::NotRtp)
            }
        }
    }

    fn on_rtcp_datagram(&mut self, now: Timestamp, datagram: &Datagram<'_>, source: Option<&SocketAddr>) -> Outcome {
        self.counters.rtcp_received += 1;
        if let Some(o) = &mut self.observer {
            o.on_rtcp_received(&seen(now, datagram, source));
        }
        let size = datagram.bytes.len() as u64 + u64::from(self.config.header_overhead);
        self.timer.on_packet(DataSize::from_bytes(size));
        let before = self.counters;
        let path = self.sender.as_ref().map_or(0, |s| s.path_index(datagram.path));
        if let Some(s) = &mut self.sender {
            s.paths[path].breaker.on_rtcp_interval(self.timer.calculated_interval());
        }
        let mut compound = Compound::on_path(path);
        for packet in parse_compound(datagram.bytes) {
            match packet {
                Ok(packet) => self.on_rtcp(&packet, &mut compound, now),
                Err(_) => self.counters.malformed += 1,
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

    pub(super) fn on_rtp(&mut self, now: Timestamp, datagram: &Datagram<'_>, source: Option<&SocketAddr>) -> Outcome {
        let parsed = if datagram.payload > 0 {
            PacketView::parse_header(datagram.bytes)
        } else {
            PacketView::parse(datagram.bytes)
        };
        let Ok(view) = parsed else {
            self.counters.malformed += 1;
            return Outcome::Refused(Refusal::Malformed);
        };
        let ssrc = view.ssrc();
        let subflow = if self.is_multipath { self.subflow_of(&view) } else { None };
        let Some(receiver) = &self.receiver else {
            self.counters.unknown_source += 1;
            self.on_heard(ssrc, now);
            return Outcome::Refused(Refusal::NotWanted);
        };
        let by_transport = receiver.path.format() == Some(FeedbackFormat::TransportWide);
        let transport = match subflow {
            Some(subflow) => Some(subflow.sequence),
            None if by_transport => view.transport_sequence(self.config.extensions.transport_sequence_id),
            None => None,
        };
        let place = Place { path: subflow.map_or(0, |s| s.subflow.into()), transport };
        let Some(index) = receiver.streams.iter().position(|s| s.identity.ssrc == ssrc) else {
            return self.on_other_rtp(now, &view, place, datagram, source);
        };
        let red = receiver.streams[index].identity.parity_format.red();
        if let Some(red) = red.copied().filter(|r| r.payload_type == view.payload_type()) {
            return self.on_red(index, now, &view, place, &red, datagram, source);
        }
        if let Some(o) = &mut self.observer {
            o.on_rtp_received(&seen(now, datagram, source));
        }
        self.on_media(index, now, &view, place, datagram, size_of(datagram), false)
    }

    /// A packet of a media stream; `size` is that of the packet as received. In RED it is one without, and a repair packet has no media.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "two callers, on the path of each packet")]
    pub(super) fn on_media(
        &mut self,
        index: usize,
        now: Timestamp,
        view: &PacketView<'_>,
        place: Place,
        datagram: &Datagram<'_>,
        size: DataSize,
        is_repair: bool,
    ) -> Outcome {
        let Some(receiver) = &self.receiver else { return Outcome::Refused(Refusal::NotWanted) };
        let transport = place.transport;
        let id = receiver.streams[index].id;
        let wants_departure = receiver.path.controller.is_some();
        self.on_stream_rtp(index, now);
        let incoming = Incoming {
            sequence: view.sequence(),
            transport,
            rtp_timestamp: view.timestamp(),
            marker: view.marker(),
            size,
            is_repair,
            payload: DataSize::from_bytes(view.payload().len() as u64 + u64::from(datagram.payload)),
            is_padding: is_repair || view.padding() > 0 && view.payload().is_empty() && datagram.payload == 0,
            abs_send_time: if wants_departure {
                view.abs_send_time(self.config.extensions.abs_send_time_id)
            } else {
                None
            },
            ecn: datagram.ecn,
        };
        if self.config.params.rapid_synchronisation != RapidSynchronisation::Off {
            self.synchronise(index, now, view);
        }
        let outcome = Outcome::Rtp { stream: id, kind: PacketKind::Media };
        let Some(receiver) = &mut self.receiver else { return outcome };
        let observer = &mut self.observer;
        let payload = Payload { bytes: view.payload(), zeros: datagram.payload, repaired: false };
        let (stream, path) = receiver.with_path_at(index, place.path);
        if let (Some(subflow), Some(sequence)) = (&mut path.subflow, transport) {
            subflow.on_packet(sequence, incoming.rtp_timestamp, incoming.size, now);
        }
        stream.on_rtp(path, &incoming, datagram.bytes, &payload, observer, now);
        if wants_departure && let Some(report) = path.poll_report(now) {
            let waiting = if path.subflow.is_some() { &mut path.report } else { &mut self.report };
            *waiting = Some(report);
        }
        outcome
    }

    /// A packet of no media stream: repair, a retransmission, or an unknown source.
    #[inline(never)]
    fn on_other_rtp(
        &mut self,
        now: Timestamp,
        view: &PacketView<'_>,
        place: Place,
        datagram: &Datagram<'_>,
        source: Option<&SocketAddr>,
    ) -> Outcome {
        let unknown = Outcome::Refused(Refusal::UnknownSource);
        let Some(receiver) = &mut self.receiver else { return unknown };
        let index = receiver.index_of_source(view.ssrc());
        let Some((index, identity)) = index.map(|i| (i, receiver.streams[i].identity)) else {
            return self.on_stranger(now, view, datagram, source);
        };
        let id = receiver.streams[index].id;
        let of_red = identity.parity_format.red().is_some_and(|r| r.retransmission == Some(view.payload_type()));
        if view.ssrc() == identity.retransmission()
            && (of_red || view.payload_type() == identity.retransmission_payload_type)
        {
            return self.on_retransmission(index, now, view, place, datagram, source);
        }
        let format = match view.payload_type() {
            // In RED they are on the media's source.
            _ if view.ssrc() != identity.repair() || identity.parity_format.red().is_some() => None,
            pt if pt == identity.parity_payload_type => Some(identity.parity_format.into()),
            pt if pt == identity.reed_solomon_payload_type => Some(Format::ReedSolomon),
            _ => None,
        };
        let Some(format) = format else { return self.on_stranger(now, view, datagram, source) };
        if let Some(o) = &mut self.observer {
            o.on_fec_received(&seen(now, datagram, source));
        }
        let observer = &mut self.observer;
        let (stream, path) = receiver.with_path_at(index, place.path);
        let packet = ReceivedRepair { format, view, payload: view.payload(), zeros: datagram.payload };
        let transport = place.transport;
        if let (Some(subflow), Some(sequence)) = (&mut path.subflow, transport) {
            subflow.on_packet(sequence, view.timestamp(), size_of(datagram), now);
        }
        if stream.on_repair(path, packet, Arrival { transport, ecn: datagram.ecn, now }, observer) {
            return Outcome::Rtp { stream: id, kind: PacketKind::Repair };
        }
        self.counters.unknown_source += 1;
        Outcome::Refused(Refusal::NotWanted)
    }

    /// Before the first sender report, uses the packet's own capture time, or requests the report (RFC 6051).
    #[inline(never)]
    fn synchronise(&mut self, index: usize, now: Timestamp, view: &PacketView<'_>) {
        let Some(receiver) = &mut self.receiver else { return };
        let stream = &mut receiver.streams[index];
        if stream.heard.media.is_some() {
            return;
        }
        let captured = match self.config.params.rapid_synchronisation {
            RapidSynchronisation::Ntp64(id) => view.extension(id).and_then(read_ntp_64),
            // The upper bits are those of a sender report (RFC 6051, section 3.3), or of this end's clock.
            RapidSynchronisation::Ntp56(id) => {
                view.extension(id).and_then(|data| read_ntp_56(data, NtpTime::at(now, self.zero)))
            }
            RapidSynchronisation::Off => None,
        };
        if let Some(ntp) = captured.filter(|_| self.config.synchronised_clocks) {
            stream.set_capture_time(view.timestamp(), Timestamp::ZERO + ntp.since(self.zero));
        }
        if captured.is_none() && self.sync == Sync::No {
            self.sync = Sync::Wanted;
        }
    }
}

/// Where a packet belongs on its path.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Index of the path.
    pub path: usize,
    /// Its number there, if feedback uses it and the packet has it.
    pub transport: Option<u16>,
}

/// Header, extensions, payload and padding of a datagram.
pub(super) fn size_of(datagram: &Datagram<'_>) -> DataSize {
    DataSize::from_bytes(datagram.bytes.len() as u64 + u64::from(datagram.payload))
}

/// A datagram as passed to observers.
pub(super) fn seen<'a>(now: Timestamp, datagram: &Datagram<'a>, source: Option<&SocketAddr>) -> Seen<'a> {
    Seen { now, bytes: datagram.bytes, payload: datagram.payload, source: source.copied() }
}
