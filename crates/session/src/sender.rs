//! The sending direction: frame source, packetiser, RTP queue, pacer and the controller's sender half.

mod breaker;
mod packets;
mod picture;
mod resilience;

pub(crate) use packets::{Kind, Outgoing};

use crate::config::SendConfig;
use crate::feedback::ccfb_packets;
use crate::picture::PictureFeedback;
use crate::protection::RepairSender;
use crate::queue::{QueuedPacket, RtpQueue};
use crate::resilience::{Room, SendResilience};
use crate::retransmission::{RetransmissionConfig, Retransmitter};
use crate::sent::{Intervals, SentStream, Traces};
use breaker::Breaker;
use picture::PictureState;
use weir_cc::cue::{Cue, IntervalReport, OneWayDelay, PacketResult, QueueState, TransportFeedback};
use weir_cc::{Controller, Pacer, PacerDecision, RepairPlan, ReportedPacket, Sender, SentHistory, Target};
use weir_fec::Importance;
use weir_media::{Frame, FrameKind, Packetiser, Payloads, Source};
use weir_units::{DataRate, DataSize, RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::rtcp::ccfb;

/// Packets without any report leave the flight after this long, so that a window never closes for good.
/// Far above any round trip that a call survives (RFC 8298 leaves the value open).
const GIVE_UP_AFTER: TimeDelta = TimeDelta::from_secs(3);
/// Frames generated at one instant; a source that never stops is cut short there.
const MAX_FRAMES_AT_ONCE: u32 = 1_000;
/// Probe clusters taken from a controller at one instant.
const MAX_PROBES_AT_ONCE: u32 = 8;
/// Payload of a padding packet: the most that RTP's one-byte padding count allows (RFC 3550, section 5.1).
pub(crate) const PADDING_SIZE: u8 = 255;

/// What the sending direction has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendCounters {
    /// Media payload bytes that the source has generated.
    pub generated: u64,
    /// Frames that the source has generated.
    pub frames: u64,
    /// Key frames among them.
    pub key_frames: u64,
    /// RTP packets sent on the media stream, padding included.
    pub packets: u64,
    /// RTP payload bytes sent, without padding (the sender's octet count of RFC 3550, section 6.4.1).
    pub payload: u64,
    /// RTP bytes sent on the media stream: headers, payload and padding.
    pub bytes: u64,
    /// Padding-only packets sent.
    pub padding_packets: u64,
    /// Repair packets sent, on their own stream.
    pub repair_packets: u64,
    /// RTP bytes of repair packets: headers and payload.
    pub repair_bytes: u64,
    /// RTP payload bytes of repair packets.
    pub repair_payload: u64,
    /// Media packets that left under a repair scheme.
    pub protected_packets: u64,
    /// Repair packets that were made and did not leave: no room, or packets that their format cannot tell.
    pub repair_dropped: u64,
    /// Repair plans of the controller that no code can follow.
    pub repair_refused: u64,
    /// Frames that did not leave: their source made a payload larger than a packet holds.
    pub oversized_frames: u64,
    /// Packets among those sent that a transport with a queue of its own did not take: they are lost.
    pub refused_packets: u64,
    /// RTP payload bytes of these.
    pub refused_payload: u64,
}

pub(crate) struct MediaSender {
    source: Source,
    packetiser: Packetiser,
    /// Its longest payload, where a transport bears that.
    wanted_payload: DataSize,
    pub controller: Sender,
    history: SentHistory,
    remembers: bool,
    pacer: Pacer,
    queue: RtpQueue,
    /// The frame that is being packetised, where it has content.
    payloads: Payloads,
    max_queue_age: Option<TimeDelta>,
    /// What the controller wants, and what of it holds.
    wanted: Target,
    target: Target,
    results: Vec<PacketResult>,
    /// Transport-wide number of the next packet.
    next_transport: u64,
    /// The media stream, padding included.
    media: SentStream,
    intervals: Intervals,
    pub repair: RepairSender,
    pub retransmitter: Option<Retransmitter>,
    pub resilience: Option<SendResilience>,
    /// What media leaves to error resilience.
    room: Option<Room>,
    pub breaker: Breaker,
    pub picture: PictureState,
    pub last_rtp_timestamp: u32,
    rtp_offset: u32,
    pub counters: SendCounters,
    window_closed: bool,
    /// The packet that leaves now. It stays where its fields are stored: moving it whole would wait for them.
    pub outgoing: Outgoing,
    /// The rate that the application wants of the encoder instead of the controller's.
    held: Option<DataRate>,
}

impl MediaSender {
    /// `first` are the first sequence numbers of media, repair and retransmission.
    pub(crate) fn new(
        config: SendConfig,
        (ssrc, picture): (u32, PictureFeedback),
        first: [u16; 3],
        rtp_offset: u32,
        now: Timestamp,
    ) -> Self {
        let target = config.controller.target();
        let [first, first_repair, first_resent] = first.map(|f| 65_536 + u64::from(f));
        let extended = config.reports.is_some_and(|p| p.extended);
        let retransmission = config.retransmission.or(config.resilience.map(|_| RetransmissionConfig::default()));
        let max_payload = config.packetiser.max_payload;
        let resilience = config.resilience.map(|c| SendResilience::new(c, max_payload, config.repair));
        let mut s = Self {
            source: config.source,
            wanted_payload: max_payload,
            packetiser: config.packetiser,
            controller: config.controller,
            history: SentHistory::new(),
            remembers: config.per_packet_feedback,
            pacer: Pacer::new(&target, now),
            queue: RtpQueue::default(),
            payloads: Payloads::default(),
            max_queue_age: config.max_queue_age,
            wanted: target,
            target,
            results: Vec::new(),
            next_transport: first,
            media: SentStream::new(first, extended),
            intervals: Intervals::default(),
            repair: RepairSender::new(config.repair, first_repair, ssrc),
            room: retransmission.map(|_| Room::new(now)),
            retransmitter: retransmission.map(|c| Retransmitter::new(c, first_resent)),
            resilience,
            breaker: Breaker::new(config.circuit_breaker),
            picture: PictureState::new(picture),
            last_rtp_timestamp: rtp_offset,
            rtp_offset,
            counters: SendCounters::default(),
            window_closed: false,
            outgoing: Outgoing::default(),
            held: None,
        };
        s.source.on_target(target.media_rate, now);
        s.repair.follow(target.repair);
        if target.repair != RepairPlan::Off {
            s.yield_protection(now);
        }
        s.follow_resilience(now);
        s
    }

    pub(crate) fn rtp_offset(&self) -> u32 {
        self.rtp_offset
    }

    pub(crate) fn counters(&self) -> SendCounters {
        SendCounters {
            protected_packets: self.repair.protected,
            repair_dropped: self.repair.dropped,
            repair_refused: self.repair.refused,
            ..self.counters
        }
    }

    /// Payloads may be no longer than this nor than they were meant to be, from the next frame on.
    pub(crate) fn limit_payload(&mut self, max: DataSize) {
        self.packetiser.max_payload = self.wanted_payload.min(max);
    }
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }
    pub(crate) fn source_mut(&mut self) -> &mut Source {
        &mut self.source
    }
    pub(crate) fn history(&self) -> &SentHistory {
        &self.history
    }
    pub(crate) fn queue(&self) -> &RtpQueue {
        &self.queue
    }
    /// The transport-wide number of the packet sent last.
    pub(crate) fn last_transport(&self) -> u64 {
        self.next_transport.saturating_sub(1)
    }
    /// The media stream as sent.
    pub(crate) fn media(&self) -> &SentStream {
        &self.media
    }
    /// The transport-wide number of a media packet that was sent, or is sent next.
    pub(crate) fn number_of_next(&self, sequence: u64) -> Option<u64> {
        let next = (sequence == self.media.next()).then_some(self.next_transport);
        next.or_else(|| self.media.transport(sequence))
    }
    /// Packets that run-length reports told of and that were not sent, or are no longer remembered.
    pub(crate) fn unknown_reports(&self) -> u64 {
        self.intervals.unknown
    }
    /// The RTP timestamp of an instant, for sender reports.
    pub(crate) fn rtp_timestamp_at(&self, now: Timestamp, clock_rate: u32) -> u32 {
        let ticks = i128::from(now.as_nanos()) * i128::from(clock_rate) / 1_000_000_000;
        self.rtp_offset.wrapping_add(ticks as u32)
    }

    /// Follows a target as far as the application and the circuit breaker let it.
    #[inline(never)]
    fn apply_target(&mut self, wanted: Target, now: Timestamp) {
        self.wanted = wanted;
        let media_rate = self.held.unwrap_or(wanted.media_rate);
        let target = self.breaker.within_cap(Target { media_rate, ..wanted });
        if target != self.target {
            self.pacer.set_target(&target, now);
            if target.media_rate != self.target.media_rate {
                self.source.on_target(self.beside_resilience(target.media_rate), now);
            }
            self.repair.follow(target.repair);
            self.target = target;
            if target.repair != RepairPlan::Off && self.resilience.as_ref().is_some_and(|r| !r.yields) {
                self.yield_protection(now);
            }
        }
    }

    /// What error resilience leaves of a rate.
    fn beside_resilience(&self, rate: DataRate) -> DataRate {
        self.room.map_or(rate, |room| room.within(rate))
    }

    /// The other end misses packets.
    pub(crate) fn on_nack(&mut self, sequences: impl Iterator<Item = u16>, now: Timestamp) {
        let Some(r) = self.retransmitter.as_mut().filter(|_| self.breaker.tripped().is_none()) else { return };
        r.on_nack(sequences.map(|s| self.media.nearest(s)), self.target.media_rate, now);
    }

    /// Takes up what the controller wants after an event that may have changed it.
    fn follow_controller(&mut self, now: Timestamp) {
        let wanted = self.controller.target();
        if wanted != self.wanted || self.breaker.is_on() {
            self.apply_target(wanted, now);
        }
        for _ in 0..MAX_PROBES_AT_ONCE {
            match self.controller.poll_probe(now) {
                Some(probe) => self.pacer.add_probe(probe, now),
                None => break,
            }
        }
    }

    pub(crate) fn set_source(&mut self, source: Source, now: Timestamp) {
        self.source = source;
        if let Some(r) = &mut self.resilience {
            // It is told the size of slices with the next report.
            r.slice_size = None;
        }
        self.source.on_target(self.beside_resilience(self.target.media_rate), now);
    }

    pub(crate) fn hold_media_rate(&mut self, rate: Option<DataRate>, now: Timestamp) {
        self.held = rate;
        self.apply_target(self.wanted, now);
    }

    /// Reports will tell of packets one by one.
    pub(crate) fn expect_traces(&mut self, expected: bool) {
        if expected {
            self.media.keep();
        }
    }

    pub(crate) fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::ReportBlock(block) = cue {
            self.breaker.on_block(block);
        }
        self.controller.on_cue(cue);
        self.follow_controller(cue.now());
    }

    pub(crate) fn on_limits(&mut self, limits: weir_cc::Limits, now: Timestamp) {
        self.controller.on_limits(limits, now);
        self.follow_controller(now);
    }

    /// Joins per-packet feedback with what was sent. `holding` is how long the receiver held the report after
    /// the packet `latest` arrived, where the format tells it.
    pub(crate) fn on_reports(
        &mut self,
        reports: impl IntoIterator<Item = ReportedPacket>,
        holding: impl Fn(&PacketResult) -> TimeDelta,
        now: Timestamp,
    ) -> Option<TimeDelta> {
        self.history.resolve(reports, &mut self.results);
        self.tell_results(holding, now)
    }

    /// The same for RFC 8888, which goes by the streams' own numbers. `false` where no stream is this end's.
    pub(crate) fn on_ccfb(
        &mut self,
        feedback: &ccfb::Feedback<'_>,
        [media, repair, resent]: [u32; 3],
        report: RemoteTimestamp,
        now: Timestamp,
    ) -> Option<TimeDelta> {
        let stream = |ssrc| match () {
            () if ssrc == media => Some(&self.media),
            () if ssrc == repair => Some(&self.repair.stream),
            () if ssrc == resent => self.retransmitter.as_ref().map(|r| &r.stream),
            () => None,
        };
        let reports = feedback.streams().filter_map(|s| Some((stream(s.ssrc)?, s))).flat_map(|(sent, s)| {
            // What was never sent keeps a number that the history does not know.
            let number = |s| sent.transport(sent.nearest(s)).unwrap_or(u64::MAX);
            ccfb_packets(&s, report, number)
        });
        self.history.resolve(reports, &mut self.results);
        self.tell_results(|p| p.arrival.map_or(TimeDelta::ZERO, |a| report - a), now)
    }

    fn tell_results(&mut self, holding: impl Fn(&PacketResult) -> TimeDelta, now: Timestamp) -> Option<TimeDelta> {
        let latest = self.results.iter().rev().find(|p| p.arrival.is_some());
        let rtt = latest.map(|p| (now.saturating_since(p.departure) - holding(p)).max(TimeDelta::from_nanos(1)));
        let bytes_in_flight = self.history.bytes_in_flight();
        let feedback = TransportFeedback { now, packets: &self.results, bytes_in_flight, rtt };
        self.controller.on_cue(&Cue::TransportFeedback(feedback));
        self.follow_controller(now);
        rtt
    }

    /// Joins the run lengths of a compound with what was sent.
    pub(crate) fn on_traces(
        &mut self,
        traces: &Traces<'_>,
        one_way_delay: Option<OneWayDelay>,
        rtt: Option<TimeDelta>,
        now: Timestamp,
    ) {
        let packets = self.intervals.resolve(&self.media, traces);
        if let Some(r) = &mut self.resilience {
            r.on_interval(packets);
        }
        self.controller.on_cue(&Cue::IntervalReport(IntervalReport { now, packets, one_way_delay, rtt }));
        self.follow_controller(now);
    }

    fn enqueue(&mut self, frame: &Frame, now: Timestamp) {
        self.counters.frames += 1;
        self.breaker.on_frame(now);
        let rtp_timestamp = frame.rtp_timestamp.wrapping_add(self.rtp_offset);
        let captured = frame.captured;
        if frame.kind == FrameKind::Key {
            self.counters.key_frames += 1;
            self.picture.on_key_frame(now);
        }
        let importance = if frame.kind == FrameKind::Key { Importance::Key } else { Importance::Reference };
        let packet = QueuedPacket { payload: 0, marker: false, rtp_timestamp, captured, importance };
        self.payloads.clear();
        let added = if self.source.take_payloads(self.packetiser.max_payload, &mut self.payloads) {
            self.enqueue_content(packet, frame.rtp_timestamp)
        } else {
            for p in self.packetiser.split(frame.size) {
                let payload = u16::try_from(p.size.as_bytes()).unwrap_or(u16::MAX);
                self.queue.push(QueuedPacket { payload, marker: p.marker, ..packet });
            }
            frame.size
        };
        self.counters.generated += added.as_bytes();
        let oldest_age = self.queue.oldest_age(now);
        let queue = QueueState { now, added, queued: self.queue.size(), oldest_age };
        self.controller.on_queue(&queue);
        self.follow_controller(now);
    }

    /// Queues the payloads of a frame, of which `packet` tells what they have in common; gives their size.
    #[inline(never)]
    fn enqueue_content(&mut self, packet: QueuedPacket, own_timestamp: u32) -> DataSize {
        if self.payloads.iter().any(|(bytes, _)| bytes.len() > usize::from(u16::MAX)) {
            self.counters.oversized_frames += 1;
            return DataSize::ZERO;
        }
        self.picture.on_picture(own_timestamp, self.payloads.iter().next().map(|p| p.0));
        let mut left = self.payloads.len();
        for (bytes, discardable) in self.payloads.iter() {
            left -= 1;
            let unneeded = discardable && packet.importance != Importance::Key;
            let importance = if unneeded { Importance::Other } else { packet.importance };
            let (payload, marker) = (bytes.len() as u16, left == 0);
            self.queue.push_content(QueuedPacket { payload, marker, importance, ..packet }, bytes);
        }
        self.payloads.size()
    }

    /// Runs what is due. Frames of a paused source are made and thrown away, so that it stays in step with time.
    pub(crate) fn on_timeout(&mut self, now: Timestamp, paused: bool) {
        let paused = paused || self.breaker.tripped().is_some();
        for _ in 0..MAX_FRAMES_AT_ONCE {
            match self.source.poll_frame(now) {
                Some(_) if paused => {}
                Some(frame) => self.enqueue(&frame, now),
                None => break,
            }
        }
        if let Some(room) = &mut self.room
            && room.update(now)
        {
            self.source.on_target(self.beside_resilience(self.target.media_rate), now);
        }
        if self.breaker.on_timeout(now) {
            self.cease();
        }
        if self.controller.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.controller.on_timeout(now);
            self.follow_controller(now);
        }
        self.history.give_up_before(now - GIVE_UP_AFTER);
        if let Some(limit) = self.target.max_queue_age
            && self.queue.oldest_age(now) > limit
        {
            self.queue.discard_all();
        }
        if let Some(limit) = self.max_queue_age
            && self.queue.discard_before(now - limit)
        {
            self.want_key_frame(now);
        }
        self.run_picture(now);
    }

    pub(crate) fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut at = self.source.next_frame_at();
        earliest(&mut at, self.controller.poll_timeout().map(|(at, _)| at));
        earliest(&mut at, self.breaker.poll_timeout());
        if self.breaker.tripped().is_some() {
            return at;
        }
        if self.window_closed {
            earliest(&mut at, self.history.oldest_in_flight().map(|d| d + GIVE_UP_AFTER + TimeDelta::from_nanos(1)));
        } else if let PacerDecision::Wait(t) = self.pacer.poll(now, self.has_queued()) {
            earliest(&mut at, Some(t));
        }
        at
    }
}

impl MediaSender {
    /// The circuit breaker has tripped: what waits is thrown away.
    pub(crate) fn cease(&mut self) {
        self.queue.discard_all();
        self.repair.discard_all();
        if let Some(r) = &mut self.retransmitter {
            r.discard_all();
        }
    }
}

/// Moves `at` forward to `other` where that is sooner.
pub(crate) fn earliest(at: &mut Option<Timestamp>, other: Option<Timestamp>) {
    *at = match (*at, other) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
}
