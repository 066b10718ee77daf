//! What an endpoint sends: RTP from the pacer, RTCP by its timer.

use super::{Bye, Endpoint, Sync, Transmit};
use crate::config::EndpointConfig;
use crate::feedback::write_ccfb;
use crate::observer::Seen;
use crate::receiver::MediaReceiver;
use crate::repair_format::Format;
use crate::rtcp::{Compound, report_block, write_bye, write_report};
use crate::sender::{Kind, MediaSender, Outgoing, PADDING_SIZE};
use crate::session_params::{Profile, RapidSynchronisation};
use weir_cc::{FeedbackFormat, Report};
use weir_units::{DataSize, Ecn, Timestamp};
use weir_wire::ntp::NtpTime;
use weir_wire::rtcp::{SenderInfo, SrRequest};
use weir_wire::rtp::extension::{Element, abs_send_time, ntp_64};
use weir_wire::rtp::{Header, write_padding};

impl Endpoint {
    /// Writes the next datagram into `out`, which is cleared, and tells what it is; `None` where nothing is due.
    pub fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        out.clear();
        if self.bye == Bye::Sent {
            return None;
        }
        self.poll_rtcp(now, out).or_else(|| self.poll_rtp(now, out))
    }

    fn poll_rtp(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        let sender = self.sender.as_mut()?;
        if !sender.poll_packet(self.rtp_overhead, now) {
            return None;
        }
        let kind = sender.outgoing.kind;
        let is_repair = matches!(kind, Kind::Repair | Kind::Retransmission);
        let plain = self.config.params.rapid_synchronisation == RapidSynchronisation::Off && !is_repair;
        let payload = if plain {
            header(&sender.outgoing, &self.config, now).write_into(out);
            finish_packet(sender, now, out)
        } else {
            write_extended(sender, &self.config, self.zero, now, out)
        };
        let size = DataSize::from_bytes(out.len() as u64 + u64::from(payload));
        if let Some(o) = &mut self.observer {
            let seen = Seen { now, bytes: out, payload, source: None };
            match kind {
                Kind::Media | Kind::Padding => o.on_rtp_sent(&seen),
                Kind::Repair => o.on_fec_sent(&seen),
                Kind::Retransmission => o.on_retransmission_sent(&seen),
            }
        }
        Some(Transmit { payload, size, ecn: self.config.ecn, is_rtp: true, is_repair })
    }

    fn poll_rtcp(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        let ends = self.bye == Bye::Wanted || self.remote.given_up.is_some();
        let regular = self.timer.next_regular() <= now || ends;
        let waits = self.report.is_some() || self.early_wanted || self.sync == Sync::Wanted || self.picture.is_due(now);
        let due = |r: &MediaReceiver| r.feedback_due(now) || r.is_urgent() || r.nack_due(now);
        if !regular && !waits && !self.receiver.as_ref().is_some_and(due) {
            return None;
        }
        self.poll_wanted_rtcp(regular, now, out)
    }

    #[inline(never)]
    fn poll_wanted_rtcp(&mut self, regular: bool, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        let is_avpf = self.config.params.profile == Profile::Avpf;
        let may_be_early = is_avpf && self.timer.may_send_early(now);
        let feedback = is_avpf && self.receiver.as_ref().is_some_and(|r| r.feedback_due(now));
        // NADA's report is its per-interval feedback; the others are events under the rules of early feedback.
        let periodic = is_avpf && matches!(self.report, Some(Report::Nada { .. }));
        let early = self.report.is_some() && (periodic || may_be_early);
        let urgent =
            may_be_early && (self.early_wanted || self.receiver.as_ref().is_some_and(MediaReceiver::is_urgent));
        let asks = self.sync == Sync::Wanted && may_be_early;
        let picture = may_be_early && self.picture.is_due(now);
        let nack = is_avpf && self.receiver.as_mut().is_some_and(|r| r.prepare_nack(now));
        if !(regular || feedback || early || urgent || asks || picture || nack) {
            return None;
        }
        if regular || urgent {
            self.early_wanted = false;
            self.write_compound(now, out);
        }
        let ssrcs = (self.config.ssrc, self.config.remote_ssrc);
        let mut upto = None;
        if let Some(r) = &self.receiver
            && let Some(log) = r.log.as_ref().filter(|_| feedback || (regular && is_avpf && r.news() > 0))
        {
            let repair = r.repair_log().map(|log| (self.config.repair_ssrcs().1, log));
            let resent = r.retransmission_log().map(|log| (self.config.retransmission_ssrcs().1, log));
            upto = Some(match r.format() {
                Some(FeedbackFormat::TransportWide) => [self.twcc.write(log, out), 0, 0],
                _ => write_ccfb([Some((ssrcs.1, log)), repair, resent], ssrcs.0, self.zero, now, out),
            });
        }
        if let Some(report) = self.report.take_if(|_| regular || early) {
            let next = self.receiver.as_ref().map_or((0, None), |r| r.next_to_decode(now));
            write_report(&report, ssrcs, (is_avpf, self.config.header_overhead), next, out);
        }
        if let Some(n) = self.receiver.as_mut().and_then(|r| r.nack.as_mut()).filter(|_| nack) {
            n.write(ssrcs, now, out);
        }
        if self.sync == Sync::Wanted && is_avpf {
            SrRequest { sender_ssrc: ssrcs.0, media_ssrc: ssrcs.1 }.write_into(out);
            self.sync = Sync::Asked;
        }
        if is_avpf {
            self.write_picture_feedback(now, out);
        }
        if let Some((given_up, count)) = self.remote.given_up.take() {
            write_bye(&given_up[..count], out);
        }
        if self.bye == Bye::Wanted {
            let mut sources = [self.config.ssrc; 3];
            let mut count = 1;
            for (source, packets) in [
                (self.config.repair_ssrcs().0, self.send_counters().repair_packets),
                (self.config.retransmission_ssrcs().0, self.retransmission_counters().packets),
            ] {
                sources[count] = source;
                count += usize::from(packets > 0);
            }
            write_bye(&sources[..count], out);
            self.bye = Bye::Sent;
        }
        let size = DataSize::from_bytes(out.len() as u64);
        let on_wire = size + DataSize::from_bytes(u64::from(self.config.header_overhead));
        if let (Some(r), Some(upto)) = (&mut self.receiver, upto) {
            r.on_feedback_sent(upto, on_wire, now);
        }
        if regular {
            // It may be repeated once a reporting interval (RFC 6051, section 3.2).
            if self.sync == Sync::Asked && self.last_sr.is_none() {
                self.sync = Sync::Wanted;
            }
            self.timer.on_regular_sent(on_wire, &mut self.rng, now);
        } else if urgent || asks || picture || (early && !periodic) {
            self.timer.on_early_sent(on_wire, &mut self.rng, now);
        } else {
            self.timer.on_packet(on_wire);
        }
        if let Some(o) = &mut self.observer {
            o.on_rtcp_sent(&Seen { now, bytes: out, payload: 0, source: None });
        }
        self.counters.rtcp_sent += 1;
        self.counters.rtcp_bytes += on_wire.as_bytes();
        Some(Transmit { payload: 0, size, ecn: Ecn::NotEct, is_rtp: false, is_repair: false })
    }

    fn write_compound(&mut self, now: Timestamp, out: &mut Vec<u8>) {
        let ntp = NtpTime::at(now, self.zero);
        let (repair_ssrc, remote_repair_ssrc) = self.config.repair_ssrcs();
        let (resent_ssrc, remote_resent_ssrc) = self.config.retransmission_ssrcs();
        let info = |rtp_timestamp, packets: u64, octets: u64| SenderInfo {
            ntp,
            rtp_timestamp,
            packets: packets as u32,
            octets: octets as u32,
        };
        let (mut media, mut beside) = (None, [None; 2]);
        if let Some(s) = &self.sender {
            let (rtp_timestamp, c) = (s.rtp_timestamp_at(now, self.config.clock_rate), &s.counters);
            let (packets, payload) =
                (c.packets.saturating_sub(c.refused_packets), c.payload.saturating_sub(c.refused_payload));
            media = (c.packets > 0).then(|| info(rtp_timestamp, packets, payload));
            beside[0] =
                (c.repair_packets > 0).then(|| (repair_ssrc, info(rtp_timestamp, c.repair_packets, c.repair_payload)));
            if let Some(c) = s.retransmitter.as_ref().map(|r| r.counters).filter(|c| c.packets > 0) {
                beside[1] = Some((resent_ssrc, info(rtp_timestamp, c.packets, c.payload)));
            }
        }
        let mut blocks = [None; 3];
        if let Some(r) = self.receiver.as_mut().filter(|r| r.stats.is_started() && !self.remote.has_left()) {
            let numbers = r.stats.take_block();
            r.on_loss_told(f64::from(numbers.fraction_lost) / 256.0);
            blocks[0] = Some(report_block(self.config.remote_ssrc, &numbers, self.last_sr, now));
            if let Some(stats) = r.repair.as_mut().map(|r| &mut r.stats).filter(|s| s.is_started()) {
                let numbers = stats.take_block();
                blocks[1] = Some(report_block(remote_repair_ssrc, &numbers, self.last_repair_sr, now));
            }
            if let Some(stats) = r.resent.as_mut().map(|r| &mut r.stats).filter(|s| s.is_started()) {
                let numbers = stats.take_block();
                blocks[2] = Some(report_block(remote_resent_ssrc, &numbers, self.last_retransmission_sr, now));
            }
        }
        let wants_rtt = self.receiver.as_ref().is_some_and(MediaReceiver::wants_round_trip) && media.is_none();
        Compound {
            ssrc: self.config.ssrc,
            cname: &self.config.cname,
            info: media,
            blocks,
            beside,
            reference: wants_rtt.then_some(ntp),
            reference_heard: self.reference_heard.take(),
        }
        .write_into(now, out);
        if let Some(r) = &mut self.receiver {
            r.write_interval((self.config.ssrc, self.config.remote_ssrc), out);
        }
    }
}

/// The header of a packet of the media stream.
#[inline(always)]
fn header(p: &Outgoing, c: &EndpointConfig, now: Timestamp) -> Header<'static> {
    Header {
        payload_type: c.payload_type,
        marker: p.media.marker,
        sequence: p.sequence as u16,
        timestamp: p.media.rtp_timestamp,
        ssrc: c.ssrc,
        transport_sequence: c.transport_sequence.then_some((c.transport_sequence_id, p.transport as u16)),
        abs_send_time: c.abs_send_time.then(|| (c.abs_send_time_id, abs_send_time(now))),
        padding: if p.kind == Kind::Padding { PADDING_SIZE } else { 0 },
        ..Header::default()
    }
}

/// What follows the header of a packet of the media stream; how much of its payload is not in `out`.
#[inline(always)]
fn finish_packet(sender: &mut MediaSender, now: Timestamp, out: &mut Vec<u8>) -> u32 {
    match sender.outgoing.kind {
        Kind::Padding => write_padding(out, PADDING_SIZE),
        _ => sender.write_content(out),
    }
    if sender.repair.is_active() {
        sender.protect(out);
    }
    if sender.retransmitter.is_some() {
        sender.keep(out, now);
    }
    sender.outgoing.media.payload.into()
}

/// Writes a packet with a timestamp of RFC 6051, one that is sent again, or a repair packet; how much of its payload is not in `out`.
#[inline(never)]
fn write_extended(
    sender: &mut MediaSender,
    c: &EndpointConfig,
    zero: NtpTime,
    now: Timestamp,
    out: &mut Vec<u8>,
) -> u32 {
    let packet = sender.outgoing;
    // RFC 6051, section 3.3: the instant that the RTP timestamp stands for.
    let ntp = ntp_64(NtpTime::at(packet.media.captured, zero));
    let element = match c.params.rapid_synchronisation {
        RapidSynchronisation::Off => None,
        RapidSynchronisation::Ntp64(id) => Element::new(id, &ntp),
        RapidSynchronisation::Ntp56(id) => Element::new(id, &ntp[1..]),
    };
    let header = Header { elements: element.as_slice(), ..header(&packet, c, now) };
    if let Some(r) = sender.retransmitter.as_mut().filter(|_| packet.kind == Kind::Retransmission) {
        let payload_type = c.retransmission_payload_type;
        Header { payload_type, ssrc: c.retransmission_ssrcs().0, ..header }.write_into(out);
        return r.write(packet.resent, out);
    }
    let Some(repair) = sender.repair.take_popped() else {
        header.write_into(out);
        return finish_packet(sender, now, out);
    };
    let source = [c.ssrc];
    let (payload_type, csrcs) = match repair.format {
        Format::FlexFec => (c.parity_payload_type, &source[..]),
        Format::ReedSolomon => (c.reed_solomon_payload_type, &source[..0]),
    };
    // RFC 8627, section 4.2.1: the time of sending, and the protected sources as CSRCs.
    let timestamp = sender.rtp_timestamp_at(now, c.clock_rate);
    Header { payload_type, csrcs, timestamp, ssrc: c.repair_ssrcs().0, ..header }.write_into(out);
    out.extend_from_slice(&repair.bytes);
    sender.repair.recycle(repair.bytes);
    repair.zeros
}
