//! A call over several paths: subflow numbers in RTP, and reports and feedback on each path in multipath RTCP
//! (draft-ietf-avtcore-mprtp-03).

use super::{Endpoint, with_report_interval};
use crate::config::{GroupConfig, ReceivingPath, SendingPath};
use crate::datagram::Transmit;
use crate::feedback::{MAX_FEEDBACK, MAX_SUBFLOW_FEEDBACK, TwccWriter};
use crate::identity::FeedbackSsrcs;
use crate::multipath::{MAX_PATHS, PathPolicy};
use crate::observer::Seen;
use crate::receiver::Subflow;
use crate::rtcp::{Heard, NextUnit, ReportContext, report_block, write_report};
use crate::sender::{SendPath, SubflowBlock};
use crate::session_params::Profile;
use weir_cc::cue::{self, Cue, EstimateKind, NadaMode};
use weir_units::{DataRate, DataSize, Ecn, PathId, TimeDelta, Timestamp};
use weir_wire::ntp::{NtpTime, round_trip};
use weir_wire::rtcp::mprtcp::{Block, Mprtcp, Writer};
use weir_wire::rtcp::xr::{self, BytesDiscarded, IntervalMetric};
use weir_wire::rtcp::{Packet, ReceiverReport, ReportBlock, SenderInfo, SenderReport, Xr};
use weir_wire::rtp::PacketView;
use weir_wire::rtp::mprtp::{SubflowNumber, renumber};

/// Statistics of one path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PathStats {
    /// RTP packets sent.
    pub sent_packets: u64,
    /// Their RTP bytes.
    pub sent_bytes: u64,
    /// Media rate of the path's controller; zero at an end that sends nothing.
    pub target: DataRate,
    /// Smoothed round-trip time, at a sender.
    pub rtt: Option<TimeDelta>,
    /// Share of packets lost by the last report, at a sender.
    pub loss: f64,
    /// RTP packets received.
    pub received_packets: u64,
    /// Their RTP bytes.
    pub received_bytes: u64,
    /// Packets received too late to be played.
    pub discarded_packets: u64,
}

/// A packet as sent on one path, for others.
#[derive(Debug)]
pub(super) struct PacketCopy {
    bytes: Vec<u8>,
    transmit: Transmit,
}

/// A writer of feedback on a path.
pub(super) fn twcc_writer(ssrc: u32, remote_ssrc: u32, is_multipath: bool) -> TwccWriter {
    let max_size = if is_multipath { MAX_SUBFLOW_FEEDBACK } else { MAX_FEEDBACK };
    TwccWriter::with_max_size(ssrc, remote_ssrc, max_size)
}

impl Endpoint {
    /// Sends by subflow from now on, and adds the paths after the first.
    pub(super) fn add_send_paths(
        &mut self,
        first_policy: PathPolicy,
        further: impl Iterator<Item = SendingPath>,
        group: GroupConfig,
        now: Timestamp,
    ) {
        let firsts = [1, 2, 3, 4, 5, 6, 7].map(|n| self.first_numbers(u16::MAX - n).media);
        let Some(sender) = &mut self.sender else { return };
        let mut policies = vec![first_policy];
        for ((path, n), first) in further.zip(1..MAX_PATHS as u8).zip(firsts) {
            policies.push(path.policy);
            let path = with_report_interval(path, &self.timer, &self.config);
            sender.paths.push(SendPath::new(PathId::new(n), path, first, now));
        }
        sender.use_paths(&group, now);
        for (policy, n) in policies.into_iter().zip(0..).filter(|(p, _)| *p != PathPolicy::default()) {
            sender.set_policy(PathId::new(n), policy, now);
        }
        if group.sufficient_rate.is_some() {
            sender.set_sufficient_rate(group.sufficient_rate, now);
        }
    }

    /// Receives by subflow from now on, and adds the paths after the first.
    pub(super) fn add_receive_paths(&mut self, further: impl Iterator<Item = ReceivingPath>, now: Timestamp) {
        let Some(receiver) = &mut self.receiver else { return };
        let clock_rate = receiver.streams[0].identity.clock_rate;
        let (ssrc, remote) = (self.config.ssrc, self.config.remote_ssrc);
        receiver.path.make_subflow(PathId::FIRST, clock_rate);
        receiver.path.twcc = twcc_writer(ssrc, remote, true);
        for (path, n) in further.zip(1..MAX_PATHS as u8) {
            receiver.put_path(PathId::new(n), path, twcc_writer(ssrc, remote, true), &self.config.params, now);
        }
        // Feedback is by path, not by stream.
        receiver.streams.iter_mut().for_each(|s| s.log = None);
    }

    /// When checks or regular reports on a path are due has changed.
    pub(super) fn note_subflow_due(&mut self) {
        if let Some(paths) = &mut self.paths {
            paths.note_due();
        }
    }

    pub(super) fn path_count(&self) -> usize {
        let sending = self.sender.as_ref().map_or(0, |s| s.paths.len());
        let receiving = self.receiver.as_ref().map_or(0, |r| 1 + r.others.len());
        sending.max(receiving).min(MAX_PATHS)
    }

    /// Statistics of the path with this number; `None` if the call does not have it, or has one path.
    pub(super) fn path_stats(&self, path: PathId) -> Option<PathStats> {
        if !self.is_multipath || path.index() >= self.path_count() {
            return None;
        }
        let mut stats = PathStats::default();
        if let Some(s) = &self.sender
            && let Some((p, state)) = s.paths.get(path.index()).zip(s.multipath.as_ref()?.state(path.index()))
        {
            (stats.sent_packets, stats.sent_bytes) = (state.packets, state.bytes);
            (stats.target, stats.rtt, stats.loss) = (p.target().media_rate, state.rtt, state.loss);
        }
        if let Some(s) = self.subflow(path.index()) {
            (stats.received_packets, stats.received_bytes) = (s.packets, s.bytes);
            stats.discarded_packets = s.discarded;
        }
        Some(stats)
    }

    pub(super) fn subflow(&self, path: usize) -> Option<&Subflow> {
        self.receiver.as_ref()?.paths().nth(path)?.subflow.as_deref()
    }
    fn subflow_mut(&mut self, path: usize) -> Option<&mut Subflow> {
        self.receiver.as_mut()?.path_mut(path)?.subflow.as_deref_mut()
    }

    /// The subflow number of a packet, if it belongs to a path of the call.
    #[inline(never)]
    pub(super) fn subflow_of(&mut self, view: &PacketView<'_>) -> Option<SubflowNumber> {
        let number = view.extension(self.config.extensions.subflow_id).and_then(SubflowNumber::from_data);
        let known = number.filter(|n| usize::from(n.subflow) < self.path_count());
        self.counters.unknown_subflow += u64::from(known.is_none());
        known
    }

    /// Keeps the packet just written if copies of it are to be sent; returns it.
    #[inline(never)]
    pub(super) fn keep_copy(&mut self, transmit: Transmit, out: &[u8]) -> Transmit {
        if self.sender.as_ref().is_some_and(|s| s.has_copies())
            && let Some(paths) = &mut self.paths
        {
            let copy = paths.copy.get_or_insert_with(|| PacketCopy { bytes: Vec::new(), transmit });
            copy.bytes.clear();
            copy.bytes.extend_from_slice(out);
            copy.transmit = transmit;
        }
        transmit
    }

    /// The next copy of the packet sent last.
    #[inline(never)]
    pub(super) fn poll_copy(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        let (sender, copy) = (self.sender.as_mut()?, self.paths.as_ref()?.copy.as_ref()?);
        let (path, number) = sender.next_copy()?;
        out.extend_from_slice(&copy.bytes);
        let number = SubflowNumber { subflow: path.number().into(), sequence: number as u16 };
        renumber(out, self.config.extensions.subflow_id, number);
        Some(Transmit { path, ..copy.transmit })
    }

    /// The path for RTCP about the whole call: the first that can be used, or on which media arrived last.
    pub(super) fn rtcp_path(&self) -> PathId {
        if let Some(m) = self.sender.as_ref().and_then(|s| s.multipath.as_ref()) {
            return m.usable().first().unwrap_or(PathId::FIRST);
        }
        let paths = self.receiver.iter().flat_map(|r| r.paths());
        let last = paths.max_by_key(|p| (p.subflow.as_ref().and_then(|s| s.last), core::cmp::Reverse(p.id)));
        last.map_or(PathId::FIRST, |p| p.id)
    }

    /// Reports and feedback on one path that are due, in one datagram on that path.
    #[inline]
    pub(super) fn poll_subflow_rtcp(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(path) = self.receiver.as_ref().and_then(|r| r.due_path(now)) {
            return self.write_subflow_rtcp(path, now, out);
        }
        if self.paths.as_ref().is_none_or(|p| p.due > now) {
            return None;
        }
        self.poll_due_subflow(now, out)
    }

    /// Checks and regular reports, one of which is due.
    #[inline(never)]
    fn poll_due_subflow(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(transmit) = self.poll_check(now, out).or_else(|| self.poll_path_check(now, out)) {
            return Some(transmit);
        }
        // Paths with nothing to report wait for their next time.
        while let Some(path) = self.paths.as_ref().and_then(|p| p.times.due(now)) {
            if self.is_reported(path.index(), now) {
                return self.write_subflow_rtcp(path, now, out);
            }
            self.after_subflow_reports(path, now);
        }
        None
    }

    #[inline(never)]
    fn write_subflow_rtcp(&mut self, path: PathId, now: Timestamp, out: &mut Vec<u8>) -> Option<Transmit> {
        let index = path.index();
        let is_avpf = self.config.params.profile == Profile::Avpf;
        let reports = self.paths.as_ref().is_some_and(|p| p.times.is_due(path, now));
        let receiving = self.receiver.as_mut().and_then(|r| r.path_mut(index));
        let feedback = is_avpf && receiving.is_some_and(|p| p.is_feedback_due(now));
        let report = self.receiver.as_mut().and_then(|r| r.path_mut(index)?.report.take());
        let ssrcs = FeedbackSsrcs { sender: self.config.ssrc, media: self.config.remote_ssrc };
        let (zero, mut upto) = (self.zero, None);
        let mut writer = Writer::new(out, ssrcs.sender, ssrcs.media);
        writer.reports(path.number().into(), |out| {
            if reports {
                self.write_subflow_reports(index, now, out);
            }
            if let Some(r) = self.receiver.as_mut().filter(|_| feedback) {
                upto = r.write_subflow_feedback(index, ssrcs.sender, zero, now, out);
            }
            if let Some(report) = report {
                let next_unit = self.first_incoming().map_or_else(NextUnit::default, |s| s.next_to_decode(now));
                let context = ReportContext { ssrcs, is_avpf, overhead: self.config.header_overhead, next_unit };
                write_report(&report, &context, out);
            }
        });
        writer.finish();
        let size = DataSize::from_bytes(out.len() as u64);
        let on_wire = size + DataSize::from_bytes(u64::from(self.config.header_overhead));
        if let Some(r) = &mut self.receiver
            && feedback
        {
            r.on_subflow_feedback_sent(index, upto, on_wire, now);
        }
        self.on_subflow_rtcp_sent(size, out, now);
        if reports {
            self.after_subflow_reports(path, now);
        }
        Some(Transmit { path, payload: 0, size, ecn: Ecn::NotEct, rtp: None })
    }

    /// A datagram of multipath RTCP is written: counts it.
    pub(super) fn on_subflow_rtcp_sent(&mut self, size: DataSize, out: &[u8], now: Timestamp) {
        let on_wire = size + DataSize::from_bytes(u64::from(self.config.header_overhead));
        self.timer.on_packet(on_wire);
        if let Some(o) = &mut self.observer {
            o.on_rtcp_sent(&Seen { now, bytes: out, payload: 0, source: None });
        }
        self.counters.rtcp_sent += 1;
        self.counters.rtcp_bytes += on_wire.as_bytes();
    }

    /// The sender report of an end that sends, and the receiver report and discarded bytes of one that receives.
    fn write_subflow_reports(&mut self, index: usize, now: Timestamp, out: &mut Vec<u8>) {
        let (ssrc, media) = (self.config.ssrc, self.config.remote_ssrc);
        let mut block = None;
        let mut discarded = 0;
        if let Some(s) = self.subflow_mut(index)
            && s.stats.is_started()
        {
            block = Some(report_block(media, &s.stats.take_block(), s.heard, now));
            discarded = s.take_discarded();
        }
        let blocks = block.as_slice().into();
        let ntp = NtpTime::at(now, self.zero);
        let state = self.sender.as_ref().and_then(|s| Some((&s.streams[0], s.multipath.as_ref()?.state(index)?)));
        match state.filter(|(_, state)| state.packets > 0) {
            Some((stream, state)) => {
                let headers = state.packets * u64::from(stream.overhead);
                let octets = state.bytes.saturating_sub(headers) as u32;
                let rtp_timestamp = stream.rtp_timestamp_at(now);
                let info = SenderInfo { ntp, rtp_timestamp, packets: state.packets as u32, octets };
                SenderReport { ssrc, info, blocks, extension: &[] }.write_into(out);
            }
            None => ReceiverReport { ssrc, blocks, extension: &[] }.write_into(out),
        }
        if discarded > 0 {
            let late =
                BytesDiscarded { ssrc: media, interval: IntervalMetric::Interval, early: false, bytes: discarded };
            Xr { ssrc, blocks: xr::Blocks::Own(&[xr::Block::BytesDiscarded(late)]) }.write_into(out);
        }
    }

    /// Multipath RTCP from the other end. Addresses in it are kept for the caller and not used here: no media is sent to
    /// an address that was not configured.
    pub(super) fn on_subflow_reports(&mut self, m: &Mprtcp<'_>, now: Timestamp) {
        self.on_interfaces(m);
        for block in m.blocks.iter() {
            let reports = match block {
                Block::Reports(reports) => reports,
                Block::Interface(_) => {
                    continue;
                }
                _ => {
                    self.counters.malformed += 1;
                    continue;
                }
            };
            let path = usize::from(reports.subflow);
            if path >= self.path_count() {
                self.counters.unknown_subflow += 1;
                continue;
            }
            let mut news = None;
            let mut discarded = 0;
            for packet in reports.packets() {
                match packet {
                    Ok(packet) => self.on_subflow_packet(path, &packet, &mut news, &mut discarded, now),
                    Err(_) => self.counters.malformed += 1,
                }
            }
            if let (Some(s), Some(b)) = (&mut self.sender, news) {
                s.on_subflow_block(path, &SubflowBlock { discarded, ..b }, now);
                self.prove_by_block(path, b.fraction_lost, now);
            }
        }
    }

    fn on_subflow_packet(
        &mut self,
        path: usize,
        packet: &Packet<'_>,
        news: &mut Option<SubflowBlock>,
        discarded: &mut u64,
        now: Timestamp,
    ) {
        match packet {
            Packet::SenderReport(sr) => {
                if let Some(s) = self.subflow_mut(path) {
                    s.heard = Some(Heard { compact: sr.info.ntp.compact(), at: now });
                }
                *news = sr.blocks.iter().find_map(|b| self.subflow_block(&b, now)).or(*news);
            }
            Packet::ReceiverReport(rr) => {
                *news = rr.blocks.iter().find_map(|b| self.subflow_block(&b, now)).or(*news);
            }
            Packet::Xr(xr) => {
                for block in xr.blocks.iter() {
                    if let xr::Block::BytesDiscarded(late) = block {
                        *discarded += u64::from(late.bytes);
                    }
                }
            }
            Packet::App(app) => self.on_check(path, app, now),
            Packet::Capacity(v) => self.on_vector(v, Some(path), now),
            _ => self.on_subflow_feedback(path, packet, now),
        }
    }

    /// A report block on one of this end's streams, by a subflow's numbers.
    fn subflow_block(&self, b: &ReportBlock, now: Timestamp) -> Option<SubflowBlock> {
        let stream = self.sender.as_ref()?.streams.iter().find(|s| s.identity.ssrc == b.ssrc)?;
        let clock_rate = i64::from(stream.identity.clock_rate.max(1));
        Some(SubflowBlock {
            fraction_lost: f64::from(b.fraction_lost) / 256.0,
            cumulative_lost: i64::from(b.cumulative_lost),
            highest_sequence: b.highest_sequence,
            jitter: TimeDelta::from_nanos(i64::from(b.jitter) * 1_000_000_000 / clock_rate),
            rtt: round_trip(NtpTime::at(now, self.zero), b.last_sr, b.delay_since_last_sr),
            last_report: b.last_sr,
            discarded: 0,
        })
    }

    fn on_subflow_feedback(&mut self, path: usize, packet: &Packet<'_>, now: Timestamp) {
        // An end may send on fewer paths than it receives on.
        let Some(sender) = self.sender.as_mut().filter(|s| path < s.paths.len()) else { return };
        let rtt = match packet {
            Packet::Twcc(f) => sender.on_twcc(path, f, now),
            Packet::Ccfb(f) => sender.on_subflow_ccfb(path, f, now),
            Packet::Nada(n) => {
                let mode = if n.gradual { NadaMode::GradualUpdate } else { NadaMode::AcceleratedRampUp };
                let rtt = sender.multipath.as_ref().and_then(|m| m.state(path)?.rtt);
                let report = cue::NadaReport { now, mode, aggregate_delay: n.x_curr, receive_rate: n.r_recv, rtt };
                sender.on_cue(path, &Cue::NadaReport(report));
                None
            }
            Packet::Remb(r) => {
                let estimate = cue::ReceiverEstimate { now, rate: r.rate.rate(), kind: EstimateKind::Remb };
                sender.on_cue(path, &Cue::ReceiverEstimate(estimate));
                None
            }
            Packet::Tmmbr(t) => {
                for e in t.entries.iter() {
                    let estimate = cue::ReceiverEstimate { now, rate: e.max_rate.rate(), kind: EstimateKind::Tmmbr };
                    sender.on_cue(path, &Cue::ReceiverEstimate(estimate));
                }
                None
            }
            _ => None,
        };
        if let Some(rtt) = rtt {
            sender.on_path_rtt(path, rtt, now);
            self.rtt = Some(rtt);
        }
        if matches!(packet, Packet::Twcc(_) | Packet::Ccfb(_)) {
            self.prove_by_packets(path, now);
        }
    }
}
