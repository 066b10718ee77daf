//! Handling of RTCP: reports and feedback become cues, requests go to the stream that they concern.
//!
//! All reports come from an end's own source (a reporting group, RFC 8861); its other sources join its compounds with
//! their sender reports (RFC 8108). A report-based controller gets all streams of a compound at once.

use super::{Endpoint, SrRequestState};
use crate::picture::FirId;
use crate::rtcp::Heard;
use crate::sent::Traces;
use rand::RngExt;
use weir_cc::cue::{self, Cue, EstimateKind, NadaMode, OneWayDelay};
use weir_units::{DataRate, TimeDelta, Timestamp};
use weir_wire::ntp::{NtpTime, round_trip};
use weir_wire::rtcp::xr::{Block, RleBlock, Xr};
use weir_wire::rtcp::{NaduEntry, Packet, ReportBlock, Rpsi, SenderReport};

impl Endpoint {
    /// All packets of a compound have been parsed: what several of them report together is passed on at once.
    pub(super) fn end_compound(&mut self, compound: &Compound<'_>, now: Timestamp) {
        let Some(sender) = &mut self.sender else { return };
        sender.end_compound(compound.path);
        // After the report blocks of the same compound, in any order.
        let traces = compound.traces.as_slice();
        if traces.iter().any(|(_, t)| t.loss.is_some()) {
            sender.on_traces(compound.path, traces, compound.one_way_delay, self.rtt, now);
        }
        for (ssrc, p) in compound.pictures.as_slice().iter().filter(|(_, p)| p.rpsi.is_some() || p.slices_lost) {
            if let Some(stream) = sender.by_ssrc(*ssrc) {
                stream.on_picture_feedback(p.rpsi, p.slices_lost, self.rtt, now);
            }
        }
    }

    /// Whether the source is one of this end's media streams.
    pub(super) fn is_own(&self, ssrc: u32) -> bool {
        self.sender.as_ref().is_some_and(|s| s.streams.iter().any(|s| s.identity.ssrc == ssrc))
    }

    pub(super) fn on_rtcp<'a>(&mut self, packet: &Packet<'a>, compound: &mut Compound<'a>, now: Timestamp) {
        let path = compound.path;
        match packet {
            Packet::SenderReport(sr) => {
                self.on_heard(sr.ssrc, now);
                self.on_requester(sr.ssrc, now);
                self.on_sender_report(sr, path, now);
            }
            Packet::ReceiverReport(rr) => {
                self.on_heard(rr.ssrc, now);
                self.on_requester(rr.ssrc, now);
                rr.blocks.iter().for_each(|b| self.on_block(&b, path, now));
            }
            Packet::Bye(b) => self.on_bye(b, now),
            Packet::Xr(xr) => self.on_extended_report(xr, compound, now),
            Packet::OneWayDelay(d) if self.is_own(d.media_ssrc) => {
                compound.one_way_delay = Some(OneWayDelay { min: d.min, mean: d.mean, last: d.latest });
            }
            Packet::Nadu(n) => n.entries.iter().for_each(|e| self.on_next_unit(&e, path, now)),
            Packet::Twcc(f) => {
                if let Some(sender) = &mut self.sender
                    && let Some(rtt) = sender.on_twcc(path, f, now)
                {
                    self.rtt = Some(rtt);
                }
                self.prove_by_packets(path, now);
            }
            Packet::Ccfb(f) => {
                let Some(sender) = &mut self.sender else { return };
                let mut known = false;
                for stream in f.streams() {
                    let is_ours = sender.streams.iter().any(|s| s.identity.has(stream.ssrc));
                    known |= is_ours;
                    self.counters.unknown_source += u64::from(!is_ours);
                }
                if known && let Some(rtt) = sender.on_ccfb(path, f, now) {
                    self.rtt = Some(rtt);
                }
                self.prove_by_packets(path, now);
            }
            Packet::Remb(r) if r.sources.iter().any(|s| self.is_own(s)) => {
                self.on_estimate(r.sender_ssrc, r.rate.rate(), EstimateKind::Remb, path, now);
            }
            Packet::Tmmbr(t) if Some(t.sender_ssrc) == self.config.station_ssrc => {
                for e in t.entries.iter() {
                    self.on_notice(e.ssrc, e.max_rate.rate(), path, now);
                }
            }
            Packet::Tmmbr(t) => {
                for e in t.entries.iter() {
                    if self.is_own(e.ssrc) {
                        self.on_estimate(t.sender_ssrc, e.max_rate.rate(), EstimateKind::Tmmbr, path, now);
                    }
                }
            }
            Packet::Capacity(v) => self.on_vector(v, (!self.is_multipath).then_some(path), now),
            Packet::Nada(n) if self.is_own(n.media_ssrc) => {
                let mode = if n.gradual { NadaMode::GradualUpdate } else { NadaMode::AcceleratedRampUp };
                let report =
                    cue::NadaReport { now, mode, aggregate_delay: n.x_curr, receive_rate: n.r_recv, rtt: self.rtt };
                if let Some(s) = &mut self.sender {
                    s.on_cue(path, &Cue::NadaReport(report));
                }
            }
            Packet::SrRequest(r) if self.is_own(r.media_ssrc) => self.early_wanted = true,
            Packet::Nack(n) => self.on_nack(n, path, now),
            Packet::Pli(p) => self.on_key_request(p.media_ssrc, None, now),
            Packet::Fir(f) => {
                for e in f.entries.iter() {
                    self.on_key_request(e.ssrc, Some(FirId { ssrc: f.sender_ssrc, sequence: e.sequence }), now);
                }
            }
            Packet::Rpsi(r) if self.is_own(r.media_ssrc) => {
                compound.pictures.of(r.media_ssrc).rpsi = Some(*r);
            }
            Packet::Mprtcp(m) if self.is_multipath => self.on_subflow_reports(m, now),
            Packet::Sli(s) if self.is_own(s.media_ssrc) => {
                let lost = s.entries.iter().next().is_some();
                compound.pictures.of(s.media_ssrc).slices_lost |= lost;
            }
            _ => {}
        }
    }

    fn on_key_request(&mut self, ssrc: u32, fir: Option<FirId>, now: Timestamp) {
        if let Some(s) = self.sender.as_mut().and_then(|s| s.by_ssrc(ssrc)) {
            s.on_key_request(fir, self.rtt, now);
        }
    }

    fn on_sender_report(&mut self, sr: &SenderReport<'_>, path: usize, now: Timestamp) {
        sr.blocks.iter().for_each(|b| self.on_block(&b, path, now));
        let handled = now + self.config.params.receiver.handling(|| self.rng.random()).unwrap_or_default();
        let heard = Some(Heard { compact: sr.info.ntp.compact(), at: handled });
        let Some(receiver) = &mut self.receiver else {
            if sr.ssrc == self.config.remote_ssrc {
                self.sr_request = SrRequestState::None;
            }
            return;
        };
        let Some(index) = receiver.index_of_source(sr.ssrc) else { return };
        let stream = &mut receiver.streams[index];
        let [media, repair, _] = stream.identity.sources();
        if sr.ssrc == media {
            stream.heard.media = heard;
            if index == 0 {
                self.sr_request = SrRequestState::None;
            }
            let wall = Timestamp::ZERO + sr.info.ntp.since(self.zero);
            stream.clock.on_report(sr.info.rtp_timestamp, wall, stream.identity.clock_rate);
            if self.config.synchronised_clocks {
                stream.set_capture_time(sr.info.rtp_timestamp, wall);
            } else if self.config.lip_synchronisation {
                receiver.synchronise();
            }
        } else if sr.ssrc == repair {
            stream.heard.repair = heard;
        } else {
            stream.heard.retransmission = heard;
        }
    }

    fn on_extended_report<'a>(&mut self, xr: &Xr<'a>, compound: &mut Compound<'a>, now: Timestamp) {
        for block in xr.blocks.iter() {
            match block {
                // One block of a kind per stream, which bounds the work per datagram.
                Block::LossRle(t) if self.is_own(t.ssrc) => compound.trace(t, |traces| &mut traces.loss),
                Block::DiscardRle { early: false, trace: t } if self.is_own(t.ssrc) => {
                    compound.trace(t, |traces| &mut traces.discard);
                }
                Block::PostRepairLossRle(t) if self.is_own(t.ssrc) => {
                    compound.trace(t, |traces| &mut traces.post_repair)
                }
                Block::Rrtr(ntp) => {
                    self.reference_heard = Some((xr.ssrc, Heard { compact: ntp.compact(), at: now }));
                }
                Block::Dlrr(entries) => {
                    let own = self.config.ssrc;
                    for e in entries.iter().filter(|e| e.ssrc == own) {
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

    fn on_next_unit(&mut self, e: &NaduEntry, path: usize, now: Timestamp) {
        let Some(sender) = &mut self.sender else { return };
        let Some(index) = sender.streams.iter().position(|s| s.identity.ssrc == e.ssrc) else { return };
        let sequence = sender.streams[index].media.nearest(e.next_sequence);
        let Some(next_sequence) = sender.number_of_next(index, sequence) else {
            self.counters.unknown_packet += 1;
            return;
        };
        let unit = cue::NextDataUnit { now, next_sequence, playout_delay: e.playout_delay };
        sender.on_cue(path, &Cue::NextDataUnit(unit));
    }

    /// A device on the path has announced its link's capacity for a source's media: on this end's way out or way in.
    fn on_notice(&mut self, about: u32, rate: DataRate, path: usize, now: Timestamp) {
        let notice = cue::CapacityNotice { now, rate };
        if self.is_own(about)
            && let Some(s) = &mut self.sender
        {
            s.on_cue(path, &Cue::CapacityNotice(notice));
        } else if let Some(r) = self.receiver.as_mut().filter(|r| r.streams.iter().any(|s| s.identity.ssrc == about)) {
            if let Some(report) = r.path.on_notice(&notice) {
                self.report = Some(report);
            }
        } else {
            self.counters.unknown_source += 1;
        }
    }

    fn on_block(&mut self, b: &ReportBlock, path: usize, now: Timestamp) {
        let Some(sender) = &mut self.sender else { return };
        let Some(index) = sender.streams.iter().position(|s| s.identity.ssrc == b.ssrc) else {
            if sender.streams.iter().any(|s| s.identity.has(b.ssrc)) {
                sender.paths[path].breaker.on_feedback(now);
            }
            return;
        };
        let stream = &mut sender.streams[index];
        let rtt = round_trip(NtpTime::at(now, self.zero), b.last_sr, b.delay_since_last_sr);
        let before = stream.prior_highest.replace(b.highest_sequence);
        let expected = before.map_or(0, |p| b.highest_sequence.wrapping_sub(p));
        let clock_rate = i64::from(stream.identity.clock_rate.max(1));
        let block = cue::ReportBlock {
            now,
            fraction_lost: f64::from(b.fraction_lost) / 256.0,
            cumulative_lost: i64::from(b.cumulative_lost),
            highest_sequence: u64::from(b.highest_sequence),
            expected: u64::from(expected),
            jitter: TimeDelta::from_nanos(i64::from(b.jitter) * 1_000_000_000 / clock_rate),
            rtt,
        };
        // The other end knows the stream: its labels need not be sent any more.
        if core::mem::take(&mut stream.is_labelled) {
            stream.overhead = super::rtp_overhead(&self.config, stream, self.is_multipath);
        }
        sender.on_block(path, block);
        let stream = &mut sender.streams[index];
        stream.repair.on_report(block.fraction_lost, rtt, now);
        if stream.resilience.is_some() {
            stream.on_loss(block.fraction_lost, rtt, now);
        }
        if sender.paths[path].breaker.tripped().is_some() {
            sender.cease();
        }
        if let Some(rtt) = rtt {
            self.on_rtt(rtt, now);
        }
        if !self.is_multipath {
            self.prove_by_block(path, block.fraction_lost, now);
        }
    }

    fn on_rtt(&mut self, rtt: TimeDelta, now: Timestamp) {
        self.rtt = Some(rtt);
        self.timer.on_round_trip(rtt);
        if let Some(r) = &mut self.receiver {
            r.on_rtt(rtt, now);
        }
        for r in self.sender.iter_mut().flat_map(|s| &mut s.streams).filter_map(|s| s.retransmitter.as_mut()) {
            r.on_rtt(rtt);
        }
    }
}

/// Number of streams whose feedback is stored inline; further ones use a list.
const IN_PLACE: usize = 2;

/// The contents of a compound by source. It holds this end's own sources only, so at most
/// [`MAX_STREAMS`](super::MAX_STREAMS).
#[derive(Default)]
struct ByStream<T> {
    few: [(u32, T); IN_PLACE],
    count: usize,
    /// All of them, if there are more.
    many: Vec<(u32, T)>,
}

impl<T: Default> ByStream<T> {
    fn as_slice(&self) -> &[(u32, T)] {
        if self.many.is_empty() { &self.few[..self.count] } else { &self.many }
    }

    /// The entry of a source, initially empty.
    fn of(&mut self, ssrc: u32) -> &mut T {
        let known = self.as_slice().iter().position(|(s, _)| *s == ssrc);
        let index = known.unwrap_or(self.count);
        if known.is_none() {
            self.count += 1;
            if index >= IN_PLACE {
                if index == IN_PLACE {
                    self.many.extend(self.few.iter_mut().map(core::mem::take));
                }
                self.many.push((ssrc, T::default()));
            }
        }
        let entry = if self.many.is_empty() { &mut self.few[index] } else { &mut self.many[index] };
        entry.0 = ssrc;
        &mut entry.1
    }
}

/// Feedback on one stream's pictures.
#[derive(Clone, Copy, Default)]
struct PictureNews<'a> {
    rpsi: Option<Rpsi<'a>>,
    slices_lost: bool,
}

/// Values that a compound spreads over several packets, and that are passed on as one cue.
#[derive(Default)]
pub(super) struct Compound<'a> {
    /// Index of the path on which it arrived.
    pub path: usize,
    traces: ByStream<Traces<'a>>,
    one_way_delay: Option<OneWayDelay>,
    pictures: ByStream<PictureNews<'a>>,
}

impl<'a> Compound<'a> {
    pub(super) fn on_path(path: usize) -> Self {
        Self { path, ..Self::default() }
    }

    /// Keeps the first trace of a kind for each stream.
    fn trace(&mut self, block: RleBlock<'a>, kind: for<'t> fn(&'t mut Traces<'a>) -> &'t mut Option<RleBlock<'a>>) {
        kind(self.traces.of(block.ssrc)).get_or_insert(block);
    }
}
