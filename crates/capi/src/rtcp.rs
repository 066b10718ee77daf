//! RTCP becomes cues: per-packet feedback, receiver reports, run lengths and receivers' estimates.

use crate::controller::Flow;
use crate::failure::Failure;
use crate::runs::Interval;
use weir_cc::ReportedPacket;
use weir_cc::cue::{
    Cue, EstimateKind, IntervalReport, NadaMode, NadaReport, NextDataUnit, OneWayDelay, ReceiverEstimate, ReportBlock,
};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{NaduEntry, Packet, ReportBlock as WireBlock, ccfb, parse_compound, twcc};

/// The combined reports of a datagram's messages.
#[derive(Default)]
struct Compound<'a> {
    blocks: Option<ReportBlock>,
    interval: Interval<'a>,
}

impl Flow {
    /// A datagram of RTCP. Failure: messages that do not parse, counted; the others have been applied.
    pub(crate) fn rtcp(&mut self, now_ns: i64, datagram: &[u8]) -> Result<(), Failure> {
        let now = self.advance(now_ns)?;
        let mut fault = None;
        // All report blocks of a compound are one cue, and so are all run lengths.
        let mut compound = Compound::default();
        for packet in parse_compound(datagram) {
            match packet {
                Ok(packet) => self.message(&packet, &mut compound, now),
                Err(e) => {
                    self.malformed += 1;
                    fault.get_or_insert(e);
                }
            }
        }
        if let Some(block) = compound.blocks {
            self.on_block(block);
        }
        self.on_interval(&compound.interval, now);
        fault.map_or(Ok(()), |e| Err(e.into()))
    }

    pub(crate) fn on_block(&mut self, block: ReportBlock) {
        if let Some(rtt) = block.rtt {
            self.inner.set_rtt(rtt);
        }
        self.inner.on_cue(&Cue::ReportBlock(block));
    }

    fn message<'a>(&mut self, packet: &Packet<'a>, compound: &mut Compound<'a>, now: Timestamp) {
        let blocks = &mut compound.blocks;
        match packet {
            Packet::SenderReport(sr) => sr.blocks.iter().for_each(|b| self.block(&b, blocks, now)),
            Packet::ReceiverReport(rr) => rr.blocks.iter().for_each(|b| self.block(&b, blocks, now)),
            Packet::Xr(xr) if self.runs.is_some() => compound.interval.add(xr, &self.names),
            Packet::OneWayDelay(d) if self.names.has_sent(d.media_ssrc) => {
                let delay = OneWayDelay { min: d.min, mean: d.mean, last: d.latest };
                compound.interval.one_way_delay = Some(delay);
            }
            Packet::Nadu(n) => n.entries.iter().for_each(|e| self.next_unit(&e, now)),
            Packet::Twcc(f) => self.twcc(f, now),
            Packet::Ccfb(f) => self.ccfb(f, now),
            Packet::Remb(r) if r.sources.iter().any(|s| self.names.concerns(s)) => {
                self.estimate(r.rate.rate(), EstimateKind::Remb, now);
            }
            Packet::Tmmbr(t) => {
                for entry in t.entries.iter() {
                    if self.names.concerns(entry.ssrc) {
                        self.estimate(entry.max_rate.rate(), EstimateKind::Tmmbr, now);
                    }
                }
            }
            Packet::Nada(n) if self.names.concerns(n.media_ssrc) => {
                let mode = if n.gradual { NadaMode::GradualUpdate } else { NadaMode::AcceleratedRampUp };
                let (aggregate_delay, receive_rate, rtt) = (n.x_curr, n.r_recv, self.inner.rtt());
                let report = NadaReport { now, mode, aggregate_delay, receive_rate, rtt };
                self.inner.on_cue(&Cue::NadaReport(report));
            }
            _ => {}
        }
    }

    /// The media packets that a datagram's run lengths cover for the first time.
    fn on_interval(&mut self, interval: &Interval<'_>, now: Timestamp) {
        let Some(runs) = self.runs.as_mut().filter(|_| interval.has_losses()) else { return };
        let (packets, rtt) = (runs.resolve(interval, &self.names), self.inner.rtt());
        let report = IntervalReport { now, packets, one_way_delay: interval.one_way_delay, rtt };
        self.inner.on_cue(&Cue::IntervalReport(report));
    }

    fn next_unit(&mut self, e: &NaduEntry, now: Timestamp) {
        let next = self.names.by_rtp_or_next(e.ssrc, e.next_sequence, self.inner.next());
        if let Some(next_sequence) = next {
            let unit = NextDataUnit { now, next_sequence, playout_delay: e.playout_delay };
            self.inner.on_cue(&Cue::NextDataUnit(unit));
        }
    }

    fn estimate(&mut self, rate: DataRate, kind: EstimateKind, now: Timestamp) {
        self.inner.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate { now, rate, kind }));
    }

    /// Adds a block to those of the same compound: losses and packets add up, and so do sequence numbers, whose
    /// differences count packets.
    fn block(&mut self, block: &WireBlock, blocks: &mut Option<ReportBlock>, now: Timestamp) {
        if !self.names.concerns(block.ssrc) {
            return;
        }
        let one = self.reader.block(block, now);
        let Some(sum) = blocks else {
            *blocks = Some(one);
            return;
        };
        let lost = sum.fraction_lost * sum.expected as f64 + one.fraction_lost * one.expected as f64;
        sum.expected += one.expected;
        if sum.expected > 0 {
            sum.fraction_lost = lost / sum.expected as f64;
        }
        sum.cumulative_lost += one.cumulative_lost;
        sum.highest_sequence += one.highest_sequence;
        sum.jitter = sum.jitter.max(one.jitter);
        sum.rtt = one.rtt.or(sum.rtt);
    }

    fn twcc(&mut self, f: &twcc::Feedback<'_>, now: Timestamp) {
        let reference = self.reader.twcc_reference(f, now);
        let mut reported = self.take_reported();
        for (sequence, since) in f.statuses() {
            let Some(sequence) = self.names.by_transport(sequence, self.inner.next()) else { continue };
            let arrival = since.map(|since| reference + since);
            reported.push(ReportedPacket { sequence, arrival, ecn: Ecn::NotEct });
        }
        self.report(now, &reported, |_| TimeDelta::ZERO);
        self.give_back(reported);
    }

    /// An arrival out of the format's range counts as the longest offset; one without a time as that of the report.
    fn ccfb(&mut self, f: &ccfb::Feedback<'_>, now: Timestamp) {
        let at = self.reader.ccfb_time(f, now);
        let mut reported = self.take_reported();
        for stream in f.streams() {
            for (sequence, metric) in stream.packets() {
                let Some(sequence) = self.names.by_rtp(stream.ssrc, sequence) else { continue };
                reported.push(match metric {
                    ccfb::Metric::NotReceived => ReportedPacket { sequence, arrival: None, ecn: Ecn::NotEct },
                    ccfb::Metric::Received { ecn, offset } => {
                        let back = match offset {
                            ccfb::ArrivalOffset::OverRange => TimeDelta::from_secs(8),
                            other => other.as_time_delta().unwrap_or(TimeDelta::ZERO),
                        };
                        ReportedPacket { sequence, arrival: Some(at - back), ecn }
                    }
                });
            }
        }
        if !reported.is_empty() {
            reported.sort_by_key(|r| r.sequence);
            self.report(now, &reported, |newest| newest.arrival.map_or(TimeDelta::ZERO, |arrival| at - arrival));
        }
        self.give_back(reported);
    }
}
