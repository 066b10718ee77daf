//! Sending: RTP from the pacer, RTCP by its timer.

use super::{Bye, Endpoint, SrRequestState, used_sources};
use crate::config::EndConfig;
use crate::datagram::{Kind, Transmit};
use crate::identity::{FeedbackSsrcs, StreamIdentity};
use crate::observer::Seen;
use crate::receiver::Receiver;
use crate::repair_format::Format;
use crate::retransmission::Keep;
use crate::rtcp::{Compound, NextUnit, ReportContext, report_block, write_bye, write_report};
use crate::sender::{Outgoing, Sender};
use crate::session_params::{Profile, RapidSynchronisation};
use weir_cc::Report;
use weir_units::cold_path;
use weir_units::{DataSize, Ecn, PathId, Timestamp};
use weir_wire::ntp::NtpTime;
use weir_wire::rtcp::{SenderInfo, SrRequest};
use weir_wire::rtp::extension::{Element, abs_send_time, ntp_64};
use weir_wire::rtp::mprtp::SubflowNumber;
use weir_wire::rtp::{Header, write_padding};

impl Endpoint {
    /// Writes the next datagram into `out`, which is cleared, and returns its description; `None` if nothing is due.
    // Most calls find nothing, after a packet that was the last one or was received: that much is decided in the caller.
    #[inline]
    pub fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        self.settled = false;
        if self.bye == Bye::Sent {
            return None;
        }
        if self.may_send_rtcp(now)
            && let Some(transmit) = self.poll_rtcp(now, out)
        {
            return Some(transmit);
        }
        if self.is_multipath || self.sender.as_ref().is_some_and(Sender::may_send) {
            return self.poll_rtp(now, out);
        }
        None
    }

    /// Whether [`Self::poll_rtcp`] may find anything to send.
    #[inline]
    pub(super) fn may_send_rtcp(&self, now: Timestamp) -> bool {
        self.is_multipath
            || self.is_regular_due(now)
            || self.report.is_some()
            || self.early_wanted
            || self.vector_waits
            || self.sr_request == SrRequestState::Wanted
            || self.receiver.as_ref().is_some_and(|r| r.is_rtcp_due(now))
    }

    /// Whether a regular report is due, or the call or a source ends.
    #[inline]
    fn is_regular_due(&self, now: Timestamp) -> bool {
        self.timer.next_regular() <= now || self.bye == Bye::Wanted || !self.goodbyes.is_empty()
    }

    #[inline(never)]
    fn poll_rtp(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        if self.is_multipath
            && let Some(transmit) = self.poll_copy(out)
        {
            return Some(transmit);
        }
        let sent = self.sender.as_mut()?.poll_packet(now);
        if self.is_multipath {
            self.note_failures(now);
        }
        if !sent {
            return None;
        }
        let sender = self.sender.as_mut()?;
        let packet = &sender.outgoing;
        let (kind, path) = (packet.kind, packet.path);
        let stream = &sender.streams[packet.stream];
        let id = stream.id;
        let is_beside = matches!(kind, Kind::Repair | Kind::Retransmission);
        let plain =
            self.config.params.rapid_synchronisation == RapidSynchronisation::Off && !is_beside && !stream.is_labelled;
        let ecn = sender.path().ecn;
        let payload = if plain {
            let header = header(packet, &stream.identity, &self.config, now);
            if self.is_multipath && sender.multipath.is_some() {
                cold_path();
                by_subflow(header, packet, &self.config).write_into(out);
            } else {
                header.write_into(out);
            }
            finish_packet(sender, now, out)
        } else {
            write_extended(sender, &self.config, self.zero, now, out)
        };
        let size = DataSize::from_bytes(out.len() as u64 + u64::from(payload));
        if let Some(o) = &mut self.observer {
            cold_path();
            let seen = Seen { now, bytes: out, payload, source: None };
            match kind {
                Kind::Media | Kind::Padding => o.on_rtp_sent(&seen),
                Kind::Repair => o.on_fec_sent(&seen),
                Kind::Retransmission => o.on_retransmission_sent(&seen),
            }
        }
        // RTCP was not due before the packet.
        self.settled = !self.is_multipath && !sender.may_send();
        // Written where the caller reads it: one that is passed on by reference would be copied there.
        if self.is_multipath {
            return Some(self.keep_copy(Transmit { path, payload, size, ecn, rtp: Some((id, kind)) }, out));
        }
        Some(Transmit { path, payload, size, ecn, rtp: Some((id, kind)) })
    }

    #[inline(never)]
    fn poll_rtcp(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        if self.is_multipath
            && let Some(transmit) = self.poll_subflow_rtcp(now, out)
        {
            return Some(transmit);
        }
        let regular = self.is_regular_due(now);
        let is_avpf = self.config.params.profile == Profile::Avpf;
        let may_be_early = is_avpf && self.timer.may_send_early(now);
        let feedback = is_avpf && self.receiver.as_ref().is_some_and(|r| r.path.is_feedback_due(now));
        // NADA's report is its per-interval feedback; the others are events under the rules of early feedback.
        let periodic = is_avpf && matches!(self.report, Some(Report::Nada { .. }));
        let early = self.report.is_some() && (periodic || may_be_early);
        let urgent = may_be_early && (self.early_wanted || self.receiver.as_ref().is_some_and(Receiver::is_urgent));
        let asks = self.sr_request == SrRequestState::Wanted && may_be_early;
        let vector = self.vector_waits && may_be_early && self.is_vector_due(now);
        let picture = may_be_early && self.receiver.as_ref().is_some_and(|r| r.is_picture_due(now));
        let nack = is_avpf && self.receiver.as_mut().is_some_and(|r| r.prepare_nacks(now));
        if !(regular || feedback || early || urgent || asks || vector || picture || nack) {
            return None;
        }
        if regular {
            cold_path();
            self.age_limit(now);
        }
        if regular || urgent {
            cold_path();
            self.early_wanted = false;
            self.write_compound(now, out);
        }
        let ssrcs = FeedbackSsrcs { sender: self.config.ssrc, media: self.config.remote_ssrc };
        let (zero, mut reported) = (self.zero, false);
        if let Some(r) = &mut self.receiver
            && r.has_feedback()
            && (feedback || (regular && is_avpf && r.path.rides_along() && r.news() > 0))
        {
            r.write_feedback(ssrcs.sender, zero, now, out);
            reported = true;
        }
        if let Some(report) = self.report.take_if(|_| regular || early) {
            cold_path();
            let next_unit = self.first_incoming().map_or_else(NextUnit::default, |s| s.next_to_decode(now));
            let context = ReportContext { ssrcs, is_avpf, overhead: self.config.header_overhead, next_unit };
            write_report(&report, &context, out);
        }
        if let Some(r) = self.receiver.as_mut().filter(|_| nack) {
            cold_path();
            r.write_nacks(ssrcs.sender, now, out);
        }
        if self.sr_request == SrRequestState::Wanted && is_avpf {
            cold_path();
            SrRequest { sender_ssrc: ssrcs.sender, media_ssrc: ssrcs.media }.write_into(out);
            self.sr_request = SrRequestState::Sent;
        }
        if is_avpf && self.receiver.as_ref().is_some_and(Receiver::has_picture_feedback) {
            cold_path();
            self.write_picture_feedback(now, out);
        }
        if (regular || urgent) && self.paths.is_some() {
            cold_path();
            self.write_interfaces(out);
        }
        if (regular || vector) && self.vectors.is_some() {
            cold_path();
            self.write_vector(now, out);
        }
        if !self.goodbyes.is_empty() {
            cold_path();
            write_bye(&self.goodbyes, None, out);
            self.goodbyes.clear();
        }
        if self.bye == Bye::Wanted {
            self.write_goodbye(out);
        }
        let size = DataSize::from_bytes(out.len() as u64);
        let on_wire = size + DataSize::from_bytes(u64::from(self.config.header_overhead));
        if let Some(r) = self.receiver.as_mut().filter(|_| reported) {
            r.on_feedback_sent(on_wire, now);
        }
        if regular {
            cold_path();
            // It may be repeated once per reporting interval (RFC 6051, section 3.2).
            if self.sr_request == SrRequestState::Sent && self.first_incoming().is_none_or(|s| s.heard.media.is_none())
            {
                self.sr_request = SrRequestState::Wanted;
            }
            self.timer.on_regular_sent(on_wire, &mut self.rng, now);
        } else if urgent || asks || vector || picture || (early && !periodic) {
            cold_path();
            self.timer.on_early_sent(on_wire, &mut self.rng, now);
        } else {
            self.timer.on_packet(on_wire);
        }
        if let Some(o) = &mut self.observer {
            cold_path();
            o.on_rtcp_sent(&Seen { now, bytes: out, payload: 0, source: None });
        }
        self.counters.rtcp_sent += 1;
        self.counters.rtcp_bytes += on_wire.as_bytes();
        let path = if self.is_multipath { self.rtcp_path() } else { PathId::FIRST };
        Some(Transmit { path, payload: 0, size, ecn: Ecn::NotEct, rtp: None })
    }

    /// Ends the call: a BYE for all sources of this end.
    #[cold]
    fn write_goodbye(&mut self, out: &mut Vec<u8>) {
        self.scratch.sources.clear();
        let streams = self.sender.iter().flat_map(|s| &s.streams);
        self.scratch.sources.extend(streams.flat_map(used_sources).flatten());
        if !self.scratch.sources.contains(&self.config.ssrc) {
            self.scratch.sources.insert(0, self.config.ssrc);
        }
        write_bye(&self.scratch.sources, self.own_reason.as_deref(), out);
        self.bye = Bye::Sent;
    }

    fn write_compound(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        let ntp = NtpTime::at(now, self.zero);
        let mut scratch = core::mem::take(&mut self.scratch);
        scratch.clear();
        let mut media = None;
        for s in self.sender.iter().flat_map(|s| &s.streams) {
            let (rtp_timestamp, c) = (s.rtp_timestamp_at(now), &s.counters);
            let mut add = |ssrc, packets: u64, octets: u64| {
                let info = SenderInfo { ntp, rtp_timestamp, packets: packets as u32, octets: octets as u32 };
                if ssrc == self.config.ssrc {
                    media = Some(info);
                } else {
                    scratch.beside.push((ssrc, info));
                }
            };
            let [own, repair, resent] = s.identity.sources();
            if c.packets > 0 {
                let (beside, beside_payload) =
                    if s.is_in_red() { (c.repair_packets, c.repair_payload) } else { (0, 0) };
                let packets = (c.packets + beside).saturating_sub(c.refused_packets);
                add(own, packets, (c.payload + beside_payload).saturating_sub(c.refused_payload));
            }
            if c.repair_packets > 0 && !s.is_in_red() {
                add(repair, c.repair_packets, c.repair_payload);
            }
            let (packets, payload) = s.retransmitted();
            if packets > 0 {
                add(resent, packets, payload);
            }
        }
        for s in self.receiver.iter_mut().flat_map(|r| &mut r.streams) {
            if !s.stats.is_started() || s.source.has_left() {
                continue;
            }
            let [own, repair, resent] = s.identity.sources();
            let numbers = s.stats.take_block();
            s.on_loss_reported(f64::from(numbers.fraction_lost) / 256.0);
            scratch.blocks.push(report_block(own, &numbers, s.heard.media, now));
            if let Some(stats) = s.repair.as_mut().map(|r| &mut r.stats).filter(|s| s.is_started()) {
                scratch.blocks.push(report_block(repair, &stats.take_block(), s.heard.repair, now));
            }
            if let Some(stats) = s.resent.as_mut().map(|r| &mut r.stats).filter(|s| s.is_started()) {
                scratch.blocks.push(report_block(resent, &stats.take_block(), s.heard.retransmission, now));
            }
        }
        let wants_rtt = self.receiver.as_ref().is_some_and(Receiver::wants_round_trip) && media.is_none();
        Compound {
            ssrc: self.config.ssrc,
            cname: &self.config.cname,
            info: media,
            reference: wants_rtt.then_some(ntp),
            reference_heard: self.reference_heard.take(),
        }
        .write_into(&mut scratch, now, out);
        self.scratch = scratch;
        for s in self.receiver.iter_mut().flat_map(|r| &mut r.streams) {
            s.write_interval(self.config.ssrc, out);
        }
    }
}

/// The header of a packet of a media stream.
#[inline(always)]
fn header(p: &Outgoing, id: &StreamIdentity, c: &EndConfig, now: Timestamp) -> Header<'static> {
    let red = id.parity_format.red().filter(|_| p.kind == Kind::Media);
    Header {
        payload_type: red.map_or(id.payload_type, |r| r.payload_type),
        marker: p.media.marker,
        sequence: p.sequence as u16,
        timestamp: p.media.rtp_timestamp,
        ssrc: id.ssrc,
        transport_sequence: c
            .extensions
            .transport_sequence
            .then_some((c.extensions.transport_sequence_id, p.transport as u16)),
        abs_send_time: c
            .extensions
            .abs_send_time
            .then(|| (c.extensions.abs_send_time_id, abs_send_time(now + c.clock_offset))),
        padding: p.padding,
        ..Header::default()
    }
}

/// A header with the packet's number in its subflow, which replaces the transport-wide one.
#[inline(always)]
fn by_subflow<'a>(header: Header<'a>, p: &Outgoing, c: &EndConfig) -> Header<'a> {
    let number = SubflowNumber { subflow: p.path.number().into(), sequence: p.transport as u16 };
    Header { transport_sequence: None, subflow: Some((c.extensions.subflow_id, number)), ..header }
}

/// Writes what follows the header of a media packet; returns how much of its payload is not in `out`.
#[inline(always)]
fn finish_packet(sender: &mut Sender, now: Timestamp, out: &mut Vec<u8>) -> u32 {
    match sender.outgoing.kind {
        Kind::Padding => {
            cold_path();
            write_padding(out, sender.outgoing.padding);
        }
        _ => {
            let stream = &sender.streams[sender.outgoing.stream];
            if stream.is_in_red() {
                cold_path();
                // The last block of RED has no length (RFC 2198, section 3).
                out.push(stream.identity.payload_type);
            }
            sender.write_content(out);
        }
    }
    let stream = &sender.streams[sender.outgoing.stream];
    let (protects, keeps) = (stream.repair.is_active(), stream.retransmitter.is_some());
    if protects {
        sender.protect(out, now);
    }
    if keeps {
        sender.keep(out, now);
    }
    sender.outgoing.media.payload.into()
}

/// Writes a packet with a timestamp of RFC 6051 or labels, a retransmission, or a repair packet; returns how much of
/// its payload is not in `out`.
#[inline(never)]
fn write_extended(sender: &mut Sender, c: &EndConfig, zero: NtpTime, now: Timestamp, out: &mut Vec<u8>) -> u32 {
    let (packet, is_multipath) = (sender.outgoing, sender.multipath.is_some());
    let stream = &mut sender.streams[packet.stream];
    let identity = stream.identity;
    // RFC 6051, section 3.3: the time that the RTP timestamp represents.
    let ntp = ntp_64(NtpTime::at(packet.media.captured, zero));
    let element = match c.params.rapid_synchronisation {
        RapidSynchronisation::Off => None,
        RapidSynchronisation::Ntp64(id) => Element::new(id, &ntp),
        RapidSynchronisation::Ntp56(id) => Element::new(id, &ntp[1..]),
    };
    let (mid, rid) = if stream.is_labelled { (identity.mid, identity.rid) } else { (None, None) };
    let mid = mid.as_ref().and_then(|l| Element::new(c.extensions.mid_id, l.as_bytes()));
    let rid = rid.as_ref().and_then(|l| Element::new(c.extensions.rid_id, l.as_bytes()));
    let mut elements = [element, mid, rid].into_iter().flatten();
    let own = [elements.next(), elements.next(), elements.next()];
    let elements = match own {
        [Some(a), Some(b), Some(c)] => &[a, b, c][..],
        [Some(a), Some(b), ..] => &[a, b],
        [Some(a), ..] => &[a],
        _ => &[],
    };
    let plain = header(&packet, &identity, c, now);
    let plain = if is_multipath { by_subflow(plain, &packet, c) } else { plain };
    let header = Header { elements, ..plain };
    if let Some(r) = stream.retransmitter.as_mut().filter(|_| packet.kind == Kind::Retransmission) {
        let payload_type = identity.retransmission_payload_type;
        Header { payload_type, ssrc: identity.retransmission(), ..header }.write_into(out);
        return r.write(packet.resent, out);
    }
    let Some(repair) = stream.repair.take_popped() else {
        header.write_into(out);
        return finish_packet(sender, now, out);
    };
    if let Some(red) = identity.parity_format.red() {
        // After the frame that it ends, with that frame's timestamp.
        Header { payload_type: red.payload_type, ..header }.write_into(out);
        out.extend_from_slice(&repair.bytes);
        stream.repair.recycle(repair.bytes);
        if let Some(r) = &mut stream.retransmitter {
            r.keep(now, packet.sequence, out, 0, Keep::Nothing);
        }
        return repair.zeros;
    }
    let source = [identity.ssrc];
    let (payload_type, csrcs) = match repair.format {
        Format::FlexFec => (identity.parity_payload_type, &source[..]),
        Format::FlexFec03 | Format::UlpFec => (identity.parity_payload_type, &source[..0]),
        Format::ReedSolomon => (identity.reed_solomon_payload_type, &source[..0]),
        Format::Rlc | Format::MaskedRlc => (identity.rlc_payload_type, &source[..0]),
    };
    let header = Header { marker: repair.format == Format::MaskedRlc, ..header };
    // RFC 8627, section 4.2.1: the time of sending, and the protected sources as CSRCs.
    let timestamp = stream.rtp_timestamp_at(now);
    Header { payload_type, csrcs, timestamp, ssrc: identity.repair(), ..header }.write_into(out);
    out.extend_from_slice(&repair.bytes);
    stream.repair.recycle(repair.bytes);
    repair.zeros
}
