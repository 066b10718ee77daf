//! The sending direction: frame source, packetiser, RTP queue, pacer and the controller's sender half.

use crate::config::SendConfig;
use crate::feedback::ccfb_packets;
use crate::protection::{RepairPacket, RepairSender};
use crate::queue::{QueuedPacket, RtpQueue};
use crate::sent::{Intervals, Sent, SentStream, Traces};
use weir_cc::cue::{Cue, IntervalReport, OneWayDelay, PacketResult, QueueState, SentPacket, TransportFeedback};
use weir_cc::{Controller, Pacer, PacerDecision, ReportedPacket, Sender, SentHistory, Target};
use weir_fec::Importance;
use weir_media::{Frame, FrameKind, Packetiser, Source};
use weir_units::{DataSize, RemoteTimestamp, TimeDelta, Timestamp};
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
}

/// The packet that the pacer lets go now.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Transport-wide sequence number.
    pub transport: u64,
    /// The stream's own.
    pub sequence: u64,
    pub content: Content,
}

#[derive(Debug)]
pub(crate) enum Content {
    Media(QueuedPacket),
    Padding,
    Repair(RepairPacket),
}

pub(crate) struct MediaSender {
    source: Source,
    packetiser: Packetiser,
    pub controller: Sender,
    history: SentHistory,
    remembers: bool,
    pacer: Pacer,
    queue: RtpQueue,
    target: Target,
    results: Vec<PacketResult>,
    /// Transport-wide number of the next packet.
    next_transport: u64,
    /// The media stream, padding included.
    media: SentStream,
    intervals: Intervals,
    pub repair: RepairSender,
    pub last_rtp_timestamp: u32,
    rtp_offset: u32,
    pub counters: SendCounters,
    window_closed: bool,
}

impl MediaSender {
    /// `first` are the first sequence numbers of media and repair.
    pub(crate) fn new(config: SendConfig, ssrc: u32, first: (u16, u16), rtp_offset: u32, now: Timestamp) -> Self {
        let target = config.controller.target();
        let (first, first_repair) = (65_536 + u64::from(first.0), 65_536 + u64::from(first.1));
        let extended = config.reports.is_some_and(|p| p.extended);
        let mut s = Self {
            source: config.source,
            packetiser: config.packetiser,
            controller: config.controller,
            history: SentHistory::new(),
            remembers: config.per_packet_feedback,
            pacer: Pacer::new(&target, now),
            queue: RtpQueue::default(),
            target,
            results: Vec::new(),
            next_transport: first,
            media: SentStream::new(first, extended),
            intervals: Intervals::default(),
            repair: RepairSender::new(config.repair, first_repair, ssrc),
            last_rtp_timestamp: rtp_offset,
            rtp_offset,
            counters: SendCounters::default(),
            window_closed: false,
        };
        s.source.on_target(target.media_rate, now);
        s.repair.follow(target.repair);
        s
    }

    pub(crate) fn counters(&self) -> SendCounters {
        SendCounters {
            protected_packets: self.repair.protected,
            repair_dropped: self.repair.dropped,
            repair_refused: self.repair.refused,
            ..self.counters
        }
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
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

    /// Takes up what the controller wants after an event that may have changed it.
    fn follow_controller(&mut self, now: Timestamp) {
        let target = self.controller.target();
        if target != self.target {
            self.pacer.set_target(&target, now);
            if target.media_rate != self.target.media_rate {
                self.source.on_target(target.media_rate, now);
            }
            self.repair.follow(target.repair);
            self.target = target;
        }
        for _ in 0..MAX_PROBES_AT_ONCE {
            match self.controller.poll_probe(now) {
                Some(probe) => self.pacer.add_probe(probe, now),
                None => break,
            }
        }
    }

    pub(crate) fn on_cue(&mut self, cue: &Cue<'_>) {
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
        (media, repair): (u32, u32),
        report: RemoteTimestamp,
        now: Timestamp,
    ) -> Option<TimeDelta> {
        let stream = |ssrc| match () {
            () if ssrc == media => Some(&self.media),
            () if ssrc == repair => Some(&self.repair.stream),
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
        self.controller.on_cue(&Cue::IntervalReport(IntervalReport { now, packets, one_way_delay, rtt }));
        self.follow_controller(now);
    }

    fn enqueue(&mut self, frame: &Frame, now: Timestamp) {
        let total = frame.size.as_bytes();
        self.counters.generated += total;
        self.counters.frames += 1;
        let rtp_timestamp = frame.rtp_timestamp.wrapping_add(self.rtp_offset);
        for p in self.packetiser.split(frame.size) {
            let payload = u16::try_from(p.size.as_bytes()).unwrap_or(u16::MAX);
            let (captured, key) = (frame.captured, frame.kind == FrameKind::Key);
            self.queue.push(QueuedPacket { payload, marker: p.marker, rtp_timestamp, captured, key });
        }
        let oldest_age = self.queue.oldest_age(now);
        let queue = QueueState { now, added: frame.size, queued: self.queue.size(), oldest_age };
        self.controller.on_queue(&queue);
        self.follow_controller(now);
    }

    /// Runs what is due. Frames of a paused source are made and thrown away, so that it stays in step with time.
    pub(crate) fn on_timeout(&mut self, now: Timestamp, paused: bool) {
        for _ in 0..MAX_FRAMES_AT_ONCE {
            match self.source.poll_frame(now) {
                Some(_) if paused => {}
                Some(frame) => self.enqueue(&frame, now),
                None => break,
            }
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
    }

    pub(crate) fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut at = self.source.next_frame_at();
        earliest(&mut at, self.controller.poll_timeout().map(|(at, _)| at));
        if self.window_closed {
            earliest(&mut at, self.history.oldest_in_flight().map(|d| d + GIVE_UP_AFTER + TimeDelta::from_nanos(1)));
        } else if let PacerDecision::Wait(t) = self.pacer.poll(now, self.has_queued()) {
            earliest(&mut at, Some(t));
        }
        at
    }

    fn has_queued(&self) -> bool {
        !self.queue.is_empty() || self.repair.front().is_some()
    }

    /// Takes the packet that may leave now: a repair packet right behind the media packet that completed it, media,
    /// padding. `overhead` is the size of its RTP header and extensions.
    pub(crate) fn poll_packet(&mut self, overhead: u32, now: Timestamp) -> Option<Outgoing> {
        let (probe, padding) = match self.pacer.poll(now, self.has_queued()) {
            PacerDecision::Media { probe } => (probe, false),
            PacerDecision::Padding { probe } => (probe, true),
            PacerDecision::Wait(_) | PacerDecision::Idle => return None,
        };
        let repair = self.repair.front().map(RepairPacket::size).filter(|_| !padding);
        let payload = match repair {
            _ if padding => u64::from(PADDING_SIZE),
            Some(size) => size,
            None => u64::from(self.queue.front()?.payload),
        };
        let size = DataSize::from_bytes(u64::from(overhead) + payload);
        // An empty flight always lets one packet go: a window smaller than a packet must not stop the call.
        let in_flight = self.history.bytes_in_flight();
        self.window_closed = self.target.window.is_some_and(|w| in_flight + size > w && !in_flight.is_zero());
        if self.window_closed {
            return None;
        }
        let transport = self.next_transport;
        self.next_transport += 1;
        let bytes = u32::try_from(size.as_bytes()).unwrap_or(u32::MAX);
        let packet = Sent { transport, departure: now, size: bytes, is_padding: padding };
        let sequence = match repair {
            // From here on the media stream has numbers of its own.
            Some(_) => {
                self.media.keep();
                self.repair.stream.on_sent(packet)
            }
            None => self.media.on_sent(packet),
        };
        let c = &mut self.counters;
        let content = if repair.is_some() {
            c.repair_packets += 1;
            c.repair_bytes += size.as_bytes();
            let p = self.repair.pop()?;
            c.repair_payload += p.bytes.len() as u64 + u64::from(p.zeros);
            Content::Repair(p)
        } else {
            c.packets += 1;
            c.bytes += size.as_bytes();
            if padding {
                c.padding_packets += 1;
                Content::Padding
            } else {
                let m = self.queue.pop()?;
                c.payload += payload;
                self.last_rtp_timestamp = m.rtp_timestamp;
                Content::Media(m)
            }
        };
        let mut sent = SentPacket {
            now,
            sequence: transport,
            size,
            is_padding: padding,
            is_repair: repair.is_some(),
            probe,
            queued: self.queue.size() + DataSize::from_bytes(self.repair.waiting_size()),
            bytes_in_flight: DataSize::ZERO,
        };
        if self.remembers {
            self.history.on_sent(&sent);
        }
        sent.bytes_in_flight = self.history.bytes_in_flight();
        self.controller.on_packet_sent(&sent);
        self.pacer.on_sent(now, size, padding, probe);
        Some(Outgoing { transport, sequence, content })
    }

    /// A packet of the media stream has been written: `zeros` bytes of its payload are not in `packet`.
    pub(crate) fn protect(&mut self, sequence: u64, packet: &[u8], zeros: u32, media: Option<&QueuedPacket>) {
        let importance = match media {
            Some(m) if m.key => Importance::Key,
            Some(_) => Importance::Reference,
            None => Importance::Other,
        };
        if media.is_some() || self.repair.wants_padding() {
            self.repair.on_media(sequence, packet, zeros, importance);
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
