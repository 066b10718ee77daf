//! What an endpoint does with the datagrams that arrive: media to the receiving direction, RTCP to cues.

use super::{Datagram, Endpoint, Sync};
use crate::observer::Seen;
use crate::receiver::{Incoming, Payload};
use crate::repair_format::Format;
use crate::rtcp::Heard;
use crate::sent::{Traces, nearest};
use crate::session_params::RapidSynchronisation;
use core::net::SocketAddr;
use weir_cc::FeedbackFormat;
use weir_cc::cue::{self, Cue, EstimateKind, NadaMode, OneWayDelay};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};
use weir_wire::Kind;
use weir_wire::ntp::{NtpTime, round_trip};
use weir_wire::rtcp::xr::{Block, Xr};
use weir_wire::rtcp::{NaduEntry, Packet, ReportBlock, Rpsi, SenderReport, parse_compound};
use weir_wire::rtp::PacketView;
use weir_wire::rtp::extension::{read_ntp_56, read_ntp_64};

impl Endpoint {
    /// A datagram has arrived. What it says is never trusted: what does not fit is counted.
    pub fn handle_datagram(&mut self, now: Timestamp, datagram: &Datagram<'_>) {
        self.receive(now, datagram, None);
    }

    /// The same, telling an observer where it came from.
    pub fn handle_datagram_from(&mut self, now: Timestamp, datagram: &Datagram<'_>, source: SocketAddr) {
        self.receive(now, datagram, Some(&source));
    }

    fn receive(&mut self, now: Timestamp, datagram: &Datagram<'_>, source: Option<&SocketAddr>) {
        if weir_wire::kind_of(datagram.bytes) == Some(Kind::Rtcp) {
            self.counters.rtcp_received += 1;
            if let Some(o) = &mut self.observer {
                o.on_rtcp_received(&seen(now, datagram, source));
            }
            let size = datagram.bytes.len() as u64 + u64::from(self.config.header_overhead);
            self.timer.on_packet(DataSize::from_bytes(size));
            let mut extended = Extended::default();
            if let Some(s) = &mut self.sender {
                s.breaker.on_rtcp_interval(self.timer.calculated_interval());
            }
            for packet in parse_compound(datagram.bytes) {
                match packet {
                    Ok(packet) => self.on_rtcp(&packet, &mut extended, now),
                    Err(_) => self.counters.malformed += 1,
                }
            }
            // Behind the report blocks of the same compound, whatever their order in it.
            if let Some(sender) = self.sender.as_mut().filter(|_| extended.traces.loss.is_some()) {
                sender.on_traces(&extended.traces, extended.one_way_delay, self.rtt, now);
            }
            if let Some(sender) = self.sender.as_mut().filter(|_| extended.rpsi.is_some() || extended.slices_lost) {
                let rpsi = (extended.rpsi, self.config.payload_type);
                sender.on_picture_feedback(rpsi, extended.slices_lost, self.rtt, now);
            }
            return;
        }
        self.on_rtp(now, datagram, source);
    }

    pub(super) fn on_rtp(&mut self, now: Timestamp, datagram: &Datagram<'_>, source: Option<&SocketAddr>) {
        let parsed = if datagram.payload > 0 {
            PacketView::parse_header(datagram.bytes)
        } else {
            PacketView::parse(datagram.bytes)
        };
        let Ok(view) = parsed else {
            self.counters.malformed += 1;
            return;
        };
        let Some(receiver) = &self.receiver else {
            self.counters.unknown_source += 1;
            self.on_heard(view.ssrc(), now);
            return;
        };
        let by_transport = receiver.format() == Some(FeedbackFormat::TransportWide);
        let transport = if by_transport { view.transport_sequence(self.config.transport_sequence_id) } else { None };
        if view.ssrc() != self.config.remote_ssrc {
            return self.on_other_rtp(now, &view, transport, datagram, source);
        }
        let wants_departure = receiver.controller.is_some();
        self.on_remote_rtp(now);
        let incoming = Incoming {
            sequence: view.sequence(),
            transport,
            rtp_timestamp: view.timestamp(),
            marker: view.marker(),
            size: DataSize::from_bytes(datagram.bytes.len() as u64 + u64::from(datagram.payload)),
            payload: DataSize::from_bytes(view.payload().len() as u64 + u64::from(datagram.payload)),
            is_padding: view.padding() > 0 && view.payload().is_empty() && datagram.payload == 0,
            abs_send_time: if wants_departure { view.abs_send_time(self.config.abs_send_time_id) } else { None },
            ecn: datagram.ecn,
        };
        if let Some(o) = &mut self.observer {
            o.on_rtp_received(&seen(now, datagram, source));
        }
        if self.config.params.rapid_synchronisation != RapidSynchronisation::Off && self.last_sr.is_none() {
            self.synchronise(now, &view);
        }
        let Some(receiver) = &mut self.receiver else { return };
        let observer = &mut self.observer;
        let payload = Payload { bytes: view.payload(), zeros: datagram.payload, repaired: false };
        receiver.on_rtp(&incoming, (datagram.bytes, payload), observer, now);
        if wants_departure && let Some(report) = receiver.poll_report(now) {
            self.report = Some(report);
        }
    }

    /// A packet that is not of the media stream: repair, or a stranger.
    #[inline(never)]
    fn on_other_rtp(
        &mut self,
        now: Timestamp,
        view: &PacketView<'_>,
        transport: Option<u16>,
        datagram: &Datagram<'_>,
        source: Option<&SocketAddr>,
    ) {
        let c = &self.config;
        if view.ssrc() == c.retransmission_ssrcs().1 && view.payload_type() == c.retransmission_payload_type {
            return self.on_retransmission(now, view, transport, datagram, source);
        }
        let Some(receiver) = &mut self.receiver else { return };
        let format = match view.payload_type() {
            _ if view.ssrc() != c.repair_ssrcs().1 => None,
            pt if pt == c.parity_payload_type => Some(Format::FlexFec),
            pt if pt == c.reed_solomon_payload_type => Some(Format::ReedSolomon),
            _ => None,
        };
        let packet = format.map(|f| (f, view, datagram.payload));
        if let Some(o) = self.observer.as_mut().filter(|_| packet.is_some()) {
            o.on_fec_received(&seen(now, datagram, source));
        }
        let observer = &mut self.observer;
        if packet.is_some_and(|p| receiver.on_repair(p, transport, datagram.ecn, observer, now)) {
            return;
        }
        if packet.is_some() || !self.on_stranger(now, view, datagram, source) {
            self.counters.unknown_source += 1;
        }
    }

    /// No sender report has come yet: the capture time is told by the packet, or the report asked for (RFC 6051).
    #[inline(never)]
    fn synchronise(&mut self, now: Timestamp, view: &PacketView<'_>) {
        let captured = match self.config.params.rapid_synchronisation {
            RapidSynchronisation::Ntp64(id) => view.extension(id).and_then(read_ntp_64),
            // The upper bits are those of a sender report (RFC 6051, section 3.3), or of this end's clock.
            RapidSynchronisation::Ntp56(id) => {
                view.extension(id).and_then(|data| read_ntp_56(data, NtpTime::at(now, self.zero)))
            }
            RapidSynchronisation::Off => None,
        };
        if let Some(receiver) = self.receiver.as_mut().filter(|_| self.config.synchronised_clocks)
            && let Some(ntp) = captured
        {
            receiver.set_capture_time(view.timestamp(), Timestamp::ZERO + ntp.since(self.zero));
        }
        if captured.is_none() && self.sync == Sync::No {
            self.sync = Sync::Wanted;
        }
    }

    fn on_rtcp<'a>(&mut self, packet: &Packet<'a>, extended: &mut Extended<'a>, now: Timestamp) {
        let ours = self.config.ssrc;
        match packet {
            Packet::SenderReport(sr) => {
                self.on_heard(sr.ssrc, now);
                self.on_sender_report(sr, now);
            }
            Packet::ReceiverReport(rr) => {
                self.on_heard(rr.ssrc, now);
                rr.blocks.iter().for_each(|b| self.on_block(&b, now));
            }
            Packet::Bye(b) => self.on_bye(b, now),
            Packet::Xr(xr) => self.on_extended_report(xr, extended, now),
            Packet::OneWayDelay(d) if d.media_ssrc == ours => {
                extended.one_way_delay = Some(OneWayDelay { min: d.min, mean: d.mean, last: d.latest });
            }
            Packet::Nadu(n) => n.entries.iter().filter(|e| e.ssrc == ours).for_each(|e| self.on_next_unit(&e, now)),
            Packet::Twcc(f) => {
                let Some(sender) = &mut self.sender else { return };
                sender.breaker.on_feedback();
                let last = sender.last_transport();
                let reports = self.reader.twcc(f, move |s| nearest(last, s), now);
                if let Some(rtt) = sender.on_reports(reports, |_| TimeDelta::ZERO, now) {
                    self.rtt = Some(rtt);
                }
            }
            Packet::Ccfb(f) => {
                let Some(sender) = &mut self.sender else { return };
                let report = self.reader.ccfb_report_time(f, now);
                let ssrcs = [ours, self.config.repair_ssrcs().0, self.config.retransmission_ssrcs().0];
                let mut known = false;
                for stream in f.streams() {
                    let is_ours = ssrcs.contains(&stream.ssrc);
                    known |= is_ours;
                    self.counters.unknown_source += u64::from(!is_ours);
                }
                if known {
                    sender.breaker.on_feedback();
                }
                if known && let Some(rtt) = sender.on_ccfb(f, ssrcs, report, now) {
                    self.rtt = Some(rtt);
                }
            }
            Packet::Remb(r) if r.sources.iter().any(|s| s == ours) => {
                self.on_estimate(r.rate.rate(), EstimateKind::Remb, now);
            }
            Packet::Tmmbr(t) if Some(t.sender_ssrc) == self.config.station_ssrc => {
                for e in t.entries.iter() {
                    self.on_notice(e.ssrc, e.max_rate.rate(), now);
                }
            }
            Packet::Tmmbr(t) => {
                for e in t.entries.iter().filter(|e| e.ssrc == ours) {
                    self.on_estimate(e.max_rate.rate(), EstimateKind::Tmmbr, now);
                }
            }
            Packet::Nada(n) if n.media_ssrc == ours => {
                let mode = if n.gradual { NadaMode::GradualUpdate } else { NadaMode::AcceleratedRampUp };
                let report =
                    cue::NadaReport { now, mode, aggregate_delay: n.x_curr, receive_rate: n.r_recv, rtt: self.rtt };
                if let Some(s) = &mut self.sender {
                    s.on_cue(&Cue::NadaReport(report));
                }
            }
            Packet::SrRequest(r) if r.media_ssrc == ours && self.sender.is_some() => self.early_wanted = true,
            Packet::Nack(n) if n.media_ssrc == ours => self.on_nack(n, now),
            Packet::Pli(p) if p.media_ssrc == ours => self.on_key_request(None, now),
            Packet::Fir(f) => {
                if let Some(entry) = f.entries.iter().find(|e| e.ssrc == ours) {
                    self.on_key_request(Some((f.sender_ssrc, entry.sequence)), now);
                }
            }
            Packet::Rpsi(r) if r.media_ssrc == ours => extended.rpsi = Some(*r),
            Packet::Sli(s) if s.media_ssrc == ours => extended.slices_lost |= s.entries.iter().next().is_some(),
            _ => {}
        }
    }

    fn on_key_request(&mut self, fir: Option<(u32, u8)>, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.on_key_request(fir, self.rtt, now);
        }
    }

    fn on_sender_report(&mut self, sr: &SenderReport<'_>, now: Timestamp) {
        sr.blocks.iter().for_each(|b| self.on_block(&b, now));
        let heard = Some(Heard { compact: sr.info.ntp.compact(), at: now });
        if sr.ssrc == self.config.repair_ssrcs().1 {
            self.last_repair_sr = heard;
        }
        if sr.ssrc == self.config.retransmission_ssrcs().1 {
            self.last_retransmission_sr = heard;
        }
        if sr.ssrc != self.config.remote_ssrc {
            return;
        }
        self.last_sr = heard;
        self.sync = Sync::No;
        if let Some(receiver) = self.receiver.as_mut().filter(|_| self.config.synchronised_clocks) {
            let captured = Timestamp::ZERO + sr.info.ntp.since(self.zero);
            receiver.set_capture_time(sr.info.rtp_timestamp, captured);
        }
    }

    fn on_extended_report<'a>(&mut self, xr: &Xr<'a>, extended: &mut Extended<'a>, now: Timestamp) {
        let ours = self.config.ssrc;
        let traces = &mut extended.traces;
        for block in xr.blocks.iter() {
            match block {
                // One block of a kind: what a datagram costs stays bounded.
                Block::LossRle(t) if t.ssrc == ours => _ = traces.loss.get_or_insert(t),
                Block::DiscardRle { early: false, trace: t } if t.ssrc == ours => _ = traces.discard.get_or_insert(t),
                Block::PostRepairLossRle(t) if t.ssrc == ours => _ = traces.post_repair.get_or_insert(t),
                Block::Rrtr(ntp) => {
                    self.reference_heard = Some((xr.ssrc, Heard { compact: ntp.compact(), at: now }));
                }
                Block::Dlrr(entries) => {
                    for e in entries.iter().filter(|e| e.ssrc == ours) {
                        let ntp = NtpTime::at(now, self.zero);
                        if let Some(rtt) = round_trip(ntp, e.last_rr, e.delay_since_last_rr) {
                            self.on_rtt(rtt, now);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn on_next_unit(&mut self, e: &NaduEntry, now: Timestamp) {
        let Some(sender) = &mut self.sender else { return };
        let sequence = sender.media().nearest(e.next_sequence);
        let Some(next_sequence) = sender.number_of_next(sequence) else {
            self.counters.unknown_packet += 1;
            return;
        };
        sender.on_cue(&Cue::NextDataUnit(cue::NextDataUnit { now, next_sequence, playout_delay: e.playout_delay }));
    }

    fn on_estimate(&mut self, rate: DataRate, kind: EstimateKind, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.on_cue(&Cue::ReceiverEstimate(cue::ReceiverEstimate { now, rate, kind }));
        }
    }

    /// A device on the path says what its link can carry of a source's media: on this end's way out, or on its way in.
    fn on_notice(&mut self, about: u32, rate: DataRate, now: Timestamp) {
        let notice = cue::CapacityNotice { now, rate };
        if about == self.config.ssrc
            && let Some(s) = &mut self.sender
        {
            s.on_cue(&Cue::CapacityNotice(notice));
        } else if about == self.config.remote_ssrc
            && let Some(r) = &mut self.receiver
        {
            if let Some(report) = r.on_notice(&notice) {
                self.report = Some(report);
            }
        } else {
            self.counters.unknown_source += 1;
        }
    }

    fn on_block(&mut self, b: &ReportBlock, now: Timestamp) {
        let Some(sender) = &mut self.sender else { return };
        if b.ssrc != self.config.ssrc {
            if b.ssrc == self.config.repair_ssrcs().0 || b.ssrc == self.config.retransmission_ssrcs().0 {
                sender.breaker.on_feedback();
            }
            return;
        }
        let rtt = round_trip(NtpTime::at(now, self.zero), b.last_sr, b.delay_since_last_sr);
        let expected = self.prior_highest.replace(b.highest_sequence).map_or(0, |p| b.highest_sequence.wrapping_sub(p));
        let block = cue::ReportBlock {
            now,
            fraction_lost: f64::from(b.fraction_lost) / 256.0,
            cumulative_lost: i64::from(b.cumulative_lost),
            highest_sequence: u64::from(b.highest_sequence),
            expected: u64::from(expected),
            jitter: TimeDelta::from_nanos(
                i64::from(b.jitter) * 1_000_000_000 / i64::from(self.config.clock_rate.max(1)),
            ),
            rtt,
        };
        sender.on_cue(&Cue::ReportBlock(block));
        if sender.resilience.is_some() {
            sender.on_loss(block.fraction_lost, rtt, now);
        }
        if sender.breaker.tripped().is_some() {
            sender.cease();
        }
        if let Some(rtt) = rtt {
            self.on_rtt(rtt, now);
        }
    }

    fn on_rtt(&mut self, rtt: TimeDelta, now: Timestamp) {
        self.rtt = Some(rtt);
        self.timer.on_round_trip(rtt);
        if let Some(r) = &mut self.receiver {
            r.on_rtt(rtt, now);
        }
        if let Some(r) = self.sender.as_mut().and_then(|s| s.retransmitter.as_mut()) {
            r.on_rtt(rtt);
        }
    }
}

/// A datagram as observers see it.
fn seen<'a>(now: Timestamp, datagram: &Datagram<'a>, source: Option<&SocketAddr>) -> Seen<'a> {
    Seen { now, bytes: datagram.bytes, payload: datagram.payload, source: source.copied() }
}

/// What a compound says in several packets and is told as one cue.
#[derive(Default)]
struct Extended<'a> {
    traces: Traces<'a>,
    one_way_delay: Option<OneWayDelay>,
    rpsi: Option<Rpsi<'a>>,
    slices_lost: bool,
}
