//! State of a path in the sending direction: its controller, sent history, pacer and sequence numbers.

use super::breaker::Breaker;
use crate::config::SendingPath;
use crate::feedback::FeedbackReader;
use crate::sender_model::SenderModel;
use weir_cc::cue::{Cue, PacketResult, ReportBlock, SentPacket, TransportFeedback};
use weir_cc::{Controller, Pacer, PacerDecision, ReportedPacket, Sender, SentHistory, Target};
use weir_units::cold_path;
use weir_units::{DataRate, DataSize, Ecn, PathId, TimeDelta, Timestamp};

/// Packets without a report leave the flight after this time, so that a window never closes permanently. Far above any
/// usable round-trip time (RFC 8298 leaves the value open).
const GIVE_UP_AFTER: TimeDelta = TimeDelta::from_secs(3);
/// Most probe clusters taken from a controller at one time.
const MAX_PROBES_AT_ONCE: u32 = 8;
/// RTP header with one extension element for transport-wide numbers, in bytes (RFC 3550, RFC 8285).
const RTP_HEADER: f64 = 20.0;
/// Mean size of RTP packets before the first, in bytes, and the weight of each in it.
const FIRST_PACKET_SIZE: f64 = 1_000.0;
const PACKET_SIZE_WEIGHT: f64 = 1.0 / 16.0;

// Field order: data used by each packet is adjacent, so that few cache lines are touched with many calls.
#[repr(C)]
pub(crate) struct SendPath {
    pub controller: Sender,
    pub breaker: Breaker,
    pacer: Pacer,
    /// Transport-wide number of the next packet.
    next_transport: u64,
    pub id: PathId,
    remembers: bool,
    window_closed: bool,
    pub ecn: Ecn,
    target: Target,
    pub history: SentHistory,
    /// The controller's target, and the one in force.
    wanted: Target,
    /// Mean size of RTP packets in bytes, measured while the target covers headers.
    packet_size: f64,
    /// Rate up to which padding is sent for streams that are off, so that the target can rise until they are switched
    /// on.
    fill: DataRate,
    /// Whether reports have run lengths, for which every stream remembers its packets.
    pub has_traces: bool,
    results: Vec<PacketResult>,
    pub reader: FeedbackReader,
    blocks: BlockSum,
}

impl SendPath {
    /// A path whose first transport-wide sequence number is `first`, unwrapped.
    pub(crate) fn new(id: PathId, config: SendingPath, first: u64, now: Timestamp) -> Self {
        let target = config.controller.target();
        Self {
            id,
            controller: config.controller,
            history: SentHistory::new(),
            remembers: config.per_packet_feedback,
            has_traces: config.reports.is_some_and(|p| p.extended),
            ecn: config.ecn,
            pacer: Pacer::new(&target, now),
            fill: DataRate::ZERO,
            packet_size: FIRST_PACKET_SIZE,
            wanted: target,
            target,
            results: Vec::new(),
            next_transport: first,
            breaker: Breaker::new(config.circuit_breaker, config.feedback_guard),
            reader: FeedbackReader::default(),
            blocks: BlockSum::default(),
            window_closed: false,
        }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }
    /// The part of the media rate that is left for payloads, if it covers headers.
    pub(crate) fn payload_rate(&self) -> DataRate {
        let rate = self.target.media_rate;
        if self.target.overhead.is_zero() {
            return rate;
        }
        // Headers below RTP are in the overhead, but not in the packet's size.
        let overhead = self.target.overhead.as_bytes() as f64;
        let payload = (self.packet_size - RTP_HEADER).max(1.0);
        DataRate::from_bps_f64(rate.as_bps_f64() * payload / (payload + overhead))
    }
    /// The controller's target, not necessarily in force.
    pub(crate) fn wanted(&self) -> Target {
        self.wanted
    }
    /// The transport-wide number of the last packet.
    pub(crate) fn last_transport(&self) -> u64 {
        self.next_transport.saturating_sub(1)
    }
    /// The transport-wide number of the next packet.
    pub(crate) fn next_transport(&self) -> u64 {
        self.next_transport
    }
    /// Takes the number for a packet being sent.
    pub(crate) fn take_number(&mut self) -> u64 {
        self.next_transport += 1;
        self.next_transport - 1
    }

    /// Whether arrivals are reported by packet.
    pub(crate) const fn has_packet_feedback(&self) -> bool {
        self.remembers
    }

    /// The controller's new target if it has changed, or if the circuit breaker may limit it.
    #[inline]
    pub(crate) fn wants_news(&self) -> Option<Target> {
        let has_news = self.breaker.is_on() || self.controller.has_other_target(&self.wanted);
        has_news.then(|| self.controller.target())
    }

    /// Applies a target whose media rate may have been set by the application, within the circuit breaker's limit;
    /// returns the previous target if this changes it.
    pub(crate) fn apply(&mut self, wanted: Target, media_rate: DataRate, now: Timestamp) -> Option<Target> {
        self.wanted = wanted;
        // A rate set by the application is that of the payload.
        let overhead = if media_rate == wanted.media_rate { wanted.overhead } else { DataSize::ZERO };
        let target = self.breaker.within_cap(Target { media_rate, overhead, ..wanted });
        if target == self.target {
            return None;
        }
        let before = core::mem::replace(&mut self.target, target);
        self.set_pacer(now);
        Some(before)
    }

    fn set_pacer(&mut self, now: Timestamp) {
        let fill = self.fill.min(self.target.media_rate);
        let target = Target { padding_rate: self.target.padding_rate.max(fill), ..self.target };
        self.pacer.set_target(&target, now);
    }

    /// Streams that are off would be switched on at a target of this rate: sends padding for them up to it, and up to
    /// the target.
    pub(crate) fn fill_up_to(&mut self, needed: Option<DataRate>, now: Timestamp) {
        let fill = needed.unwrap_or(DataRate::ZERO);
        if fill != self.fill {
            self.fill = fill;
            self.set_pacer(now);
        }
    }

    #[inline]
    pub(crate) fn take_probes(&mut self, now: Timestamp) {
        for _ in 0..MAX_PROBES_AT_ONCE {
            match self.controller.poll_probe(now) {
                Some(probe) => self.pacer.add_probe(probe, now),
                None => break,
            }
        }
    }

    /// The pacer behaves as this program's.
    pub(crate) fn pace_as(&mut self, model: SenderModel) {
        if let Some(bursts) = model.bursts() {
            self.pacer.send_in_bursts(bursts);
        }
    }
    /// Whether the pacer's rate depends on what is queued.
    #[inline]
    pub(super) fn follows_backlog(&self) -> bool {
        self.pacer.sends_in_bursts()
    }
    /// Whether a packet may leave in spite of the pacer: none does beside a probe.
    pub(super) fn may_skip_pacer(&self) -> bool {
        !self.pacer.is_probing()
    }
    /// The next packet does so.
    pub(super) fn skip_pacer(&mut self, skips: bool) {
        self.pacer.free_next(skips);
    }
    /// So many bytes are queued, for a time of `mean_age` in the mean.
    pub(super) fn on_backlog(&mut self, queued: DataSize, mean_age: TimeDelta, now: Timestamp) {
        self.pacer.on_backlog(queued, mean_age, now);
    }

    /// Whether packets may be due while no media is queued.
    #[inline]
    pub(super) fn may_pad(&self) -> bool {
        self.pacer.may_pad()
    }

    /// Whether the padding that may be sent is to be as small as possible.
    pub(crate) fn pads_little(&self) -> bool {
        self.pacer.pads_little()
    }

    /// The pacer's decision; `None` if the window is closed for a packet of `size`.
    #[inline]
    pub(crate) fn poll_pacer(&mut self, now: Timestamp, is_queued: bool) -> PacerDecision {
        self.pacer.poll(now, is_queued)
    }

    /// Whether the window was full at the last packet.
    #[inline]
    pub(super) const fn is_window_closed(&self) -> bool {
        self.window_closed
    }
    /// When the pacer lets media pass.
    #[inline]
    pub(super) fn open_at(&self) -> Timestamp {
        self.pacer.open_at()
    }

    /// Whether the window is open for a packet of this size. An empty flight always allows one: a window smaller than a
    /// packet must not stop the call.
    #[inline]
    pub(crate) fn has_room(&mut self, size: DataSize) -> bool {
        let in_flight = self.history.bytes_in_flight();
        self.window_closed = self.target.window.is_some_and(|w| in_flight + size > w && !in_flight.is_zero());
        if self.window_closed {
            cold_path();
            self.pacer.stop_waiting();
        }
        !self.window_closed
    }

    /// A packet was sent, whose RTP header and extensions have so many bytes.
    // Not a call, since each packet passes here: nor are those below that are marked so.
    #[inline(always)]
    pub(crate) fn on_sent(&mut self, mut sent: SentPacket, headers: u32) {
        if !self.target.overhead.is_zero() && !sent.is_padding {
            self.packet_size += PACKET_SIZE_WEIGHT * (sent.size.as_bytes() as f64 - self.packet_size);
        }
        if self.remembers {
            self.history.on_sent(&sent);
        }
        sent.bytes_in_flight = self.history.bytes_in_flight();
        self.controller.on_packet_sent(&sent);
        self.breaker.on_packet_sent(&sent, self.target.media_rate);
        let uncounted = if self.target.paces_payload { headers } else { 0 };
        let paced = sent.size.saturating_sub(DataSize::from_bytes(uncounted.into()));
        self.pacer.on_sent(sent.now, paced, sent.is_padding, sent.probe);
    }

    /// Matches per-packet feedback to sent packets and passes it to the controller. `holding` is the time from the
    /// arrival of the last packet reported received to the report, if the format has it. Returns the round-trip time.
    pub(crate) fn on_reports(
        &mut self,
        reports: impl IntoIterator<Item = ReportedPacket>,
        holding: impl Fn(&PacketResult) -> TimeDelta,
        now: Timestamp,
    ) -> Option<TimeDelta> {
        self.history.resolve(reports, &mut self.results);
        let latest = self.results.iter().rev().find(|p| p.arrival.is_some());
        let rtt = latest.map(|p| (now.saturating_since(p.departure) - holding(p)).max(TimeDelta::from_nanos(1)));
        let bytes_in_flight = self.history.bytes_in_flight();
        let feedback = TransportFeedback { now, packets: &self.results, bytes_in_flight, rtt };
        self.controller.on_cue(&Cue::TransportFeedback(feedback));
        rtt
    }

    /// The packets that the last per-packet feedback resolved.
    pub(crate) fn results(&self) -> &[PacketResult] {
        &self.results
    }

    pub(crate) fn on_block(&mut self, block: ReportBlock) {
        self.breaker.on_block(&block);
        self.controller.on_cue(&Cue::ReportBlock(block));
    }

    /// A report block on one of several streams, to be joined with others of the same compound.
    pub(crate) fn add_block(&mut self, block: ReportBlock) {
        self.blocks.add(block);
    }
    /// The blocks of a compound as one, if there were any.
    pub(crate) fn take_blocks(&mut self) -> Option<ReportBlock> {
        self.blocks.take()
    }

    /// Runs the controller if its timeout has passed; returns whether it did.
    #[inline]
    pub(crate) fn run_controller(&mut self, now: Timestamp) -> bool {
        let due = self.controller.poll_timeout().is_some_and(|(at, _)| at <= now);
        if due {
            self.controller.on_timeout(now);
        }
        due
    }

    pub(crate) fn give_up(&mut self, now: Timestamp) {
        self.history.give_up_before(now - GIVE_UP_AFTER);
    }

    /// When packets may be sent, or an empty window opens, if either is awaited.
    #[inline]
    pub(crate) fn next_departure(&mut self, now: Timestamp, is_queued: impl FnOnce() -> bool) -> Option<Timestamp> {
        if self.window_closed {
            cold_path();
            return self.history.oldest_in_flight().map(|d| d + GIVE_UP_AFTER + TimeDelta::from_nanos(1));
        }
        let is_queued = is_queued();
        if !is_queued {
            self.pacer.stop_waiting();
            if !self.may_pad() {
                return None;
            }
        }
        match self.pacer.poll(now, is_queued) {
            PacerDecision::Wait(t) => Some(t),
            _ => None,
        }
    }
}

/// Report blocks of several streams, joined for a controller that knows one path: losses and packets are added up, and
/// also sequence numbers, whose differences count packets.
#[derive(Clone, Debug, Default)]
struct BlockSum {
    sum: Option<ReportBlock>,
    lost: f64,
}

impl BlockSum {
    fn add(&mut self, block: ReportBlock) {
        let lost = block.fraction_lost * block.expected as f64;
        let Some(sum) = &mut self.sum else {
            (self.sum, self.lost) = (Some(block), lost);
            return;
        };
        self.lost += lost;
        sum.cumulative_lost += block.cumulative_lost;
        sum.highest_sequence += block.highest_sequence;
        sum.expected += block.expected;
        sum.jitter = sum.jitter.max(block.jitter);
        sum.rtt = block.rtt.or(sum.rtt);
    }

    fn take(&mut self) -> Option<ReportBlock> {
        let mut sum = self.sum.take()?;
        if sum.expected > 0 {
            sum.fraction_lost = self.lost / sum.expected as f64;
        }
        Some(sum)
    }
}
