//! RTCP becomes cues: per-packet feedback, receiver reports and receivers' estimates.

use crate::controller::Flow;
use crate::failure::Failure;
use weir_cc::cue::{Cue, EstimateKind, NadaMode, NadaReport, ReceiverEstimate, ReportBlock};
use weir_cc::{Controller, ReportedPacket};
use weir_units::{DataRate, Ecn, RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::ntp::{CompactClock, NtpTime, round_trip};
use weir_wire::rtcp::{Packet, ReportBlock as WireBlock, ccfb, parse_compound, twcc};

/// Clock rate of RTP video, which most streams have (RFC 3551, section 5), in Hz.
const VIDEO_CLOCK_HZ: u32 = 90_000;
/// Most sources whose receiver reports are told apart.
const MAX_SOURCES: usize = 256;

/// What is known of the other end's clocks and reports.
pub(crate) struct Reader {
    /// NTP time at zero of the caller's clock, if it has one.
    ntp_zero: Option<NtpTime>,
    clock_hz: u32,
    twcc_clock: twcc::ReferenceClock,
    ccfb_clock: CompactClock,
    reporter: Option<u32>,
    /// Whether the next report is the first of another end's clock.
    restarted: bool,
    /// Added to the other end's clock, so that it continues where a previous end's stopped.
    offset: TimeDelta,
    /// The last report's time, and when it was received.
    last: Option<(RemoteTimestamp, Timestamp)>,
    /// Highest sequence number of the report before, by source.
    highest: Vec<(u32, u32)>,
}

impl Reader {
    pub(crate) fn new(ntp_zero: u64, clock_hz: u32) -> Self {
        Self {
            ntp_zero: (ntp_zero != 0).then(|| NtpTime::from_bits(ntp_zero)),
            clock_hz: if clock_hz == 0 { VIDEO_CLOCK_HZ } else { clock_hz },
            twcc_clock: twcc::ReferenceClock::new(),
            ccfb_clock: CompactClock::new(),
            reporter: None,
            restarted: false,
            offset: TimeDelta::ZERO,
            last: None,
            highest: Vec::new(),
        }
    }

    /// A new source of reports has another clock.
    fn on_reporter(&mut self, ssrc: u32) {
        if self.reporter.replace(ssrc).is_some_and(|before| before != ssrc) {
            (self.twcc_clock, self.ccfb_clock, self.restarted) = (Default::default(), Default::default(), true);
        }
    }
    fn continued(&mut self, at: RemoteTimestamp, now: Timestamp) -> RemoteTimestamp {
        if std::mem::take(&mut self.restarted) {
            self.offset = self.last.map_or(TimeDelta::ZERO, |(last, came)| last + now.saturating_since(came) - at);
        }
        let at = at + self.offset;
        self.last = Some((at, now));
        at
    }

    /// Packets expected since the report before, about the same source.
    fn expected(&mut self, block: &WireBlock) -> u32 {
        match self.highest.iter_mut().find(|(ssrc, _)| *ssrc == block.ssrc) {
            Some((_, highest)) => {
                block.highest_sequence.wrapping_sub(std::mem::replace(highest, block.highest_sequence))
            }
            None => {
                if self.highest.len() == MAX_SOURCES {
                    self.highest.remove(0);
                }
                self.highest.push((block.ssrc, block.highest_sequence));
                0
            }
        }
    }

    fn block(&mut self, block: &WireBlock, now: Timestamp) -> ReportBlock {
        let rtt =
            self.ntp_zero.and_then(|zero| round_trip(NtpTime::at(now, zero), block.last_sr, block.delay_since_last_sr));
        ReportBlock {
            now,
            fraction_lost: f64::from(block.fraction_lost) / 256.0,
            cumulative_lost: block.cumulative_lost.into(),
            highest_sequence: block.highest_sequence.into(),
            expected: self.expected(block).into(),
            jitter: TimeDelta::from_nanos(i64::from(block.jitter) * 1_000_000_000 / i64::from(self.clock_hz)),
            rtt,
        }
    }
}

impl Flow {
    /// A datagram of RTCP. Failure: messages that do not parse, counted; the others have been applied.
    pub(crate) fn rtcp(&mut self, now_ns: i64, datagram: &[u8]) -> Result<(), Failure> {
        let now = self.advance(now_ns)?;
        let mut fault = None;
        // All report blocks of a compound are one cue.
        let mut blocks = None;
        for packet in parse_compound(datagram) {
            match packet {
                Ok(packet) => self.message(&packet, &mut blocks, now),
                Err(e) => {
                    self.malformed += 1;
                    fault.get_or_insert(e);
                }
            }
        }
        if let Some(block) = blocks {
            self.on_block(block);
        }
        fault.map_or(Ok(()), |e| Err(e.into()))
    }

    pub(crate) fn on_block(&mut self, block: ReportBlock) {
        self.rtt = block.rtt.or(self.rtt);
        self.controller.on_cue(&Cue::ReportBlock(block));
    }

    fn message(&mut self, packet: &Packet<'_>, blocks: &mut Option<ReportBlock>, now: Timestamp) {
        match packet {
            Packet::SenderReport(sr) => sr.blocks.iter().for_each(|b| self.block(&b, blocks, now)),
            Packet::ReceiverReport(rr) => rr.blocks.iter().for_each(|b| self.block(&b, blocks, now)),
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
                let (aggregate_delay, receive_rate, rtt) = (n.x_curr, n.r_recv, self.rtt);
                let report = NadaReport { now, mode, aggregate_delay, receive_rate, rtt };
                self.controller.on_cue(&Cue::NadaReport(report));
            }
            _ => {}
        }
    }

    fn estimate(&mut self, rate: DataRate, kind: EstimateKind, now: Timestamp) {
        self.controller.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate { now, rate, kind }));
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
        self.reader.on_reporter(f.sender_ssrc);
        let reference = self.reader.twcc_clock.unwrap(f.reference);
        let reference = self.reader.continued(reference, now);
        let mut reported = self.take_reported();
        for (sequence, since) in f.statuses() {
            let Some(sequence) = self.names.by_transport(sequence, self.next) else { continue };
            let arrival = since.map(|since| reference + since);
            reported.push(ReportedPacket { sequence, arrival, ecn: Ecn::NotEct });
        }
        self.report(now, &reported, |_| TimeDelta::ZERO);
        self.give_back(reported);
    }

    /// An arrival out of the format's range counts as the longest offset; one without a time as that of the report.
    fn ccfb(&mut self, f: &ccfb::Feedback<'_>, now: Timestamp) {
        self.reader.on_reporter(f.sender_ssrc);
        // Away from zero of the clock, so that arrivals before the first report stay positive.
        let at = self.reader.ccfb_clock.unwrap(f.report_timestamp) + TimeDelta::from_secs(64);
        let at = self.reader.continued(at, now);
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
