//! Departures of packets from the element: the queue, the pacer, the controller, and the packets that feedback may name.

use super::twcc::Reported;
use std::collections::VecDeque;
use weir_cc::cue::{QueueState, SentPacket};
use weir_cc::flow::ArrivalClock;
use weir_cc::{Flow, Limits, Pacer, PacerDecision, ReportedPacket, Target};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::rtp::PacketView;

/// The queue is sent within this time, faster than the pacing rate if need be, so that an encoder above its rate delays media no
/// further (libwebrtc's `kDefaultQueueTimeLimit`, 2 s).
const MAX_QUEUE_TIME: TimeDelta = TimeDelta::from_secs(2);
/// Time whose packets at the pacing rate may leave at once: packets for which the thread woke up too late do not lower the rate
/// (own choice; `rtpgccbwe` sends every 5 ms).
const BURST: TimeDelta = TimeDelta::from_millis(20);
/// Most packets and events queued, beyond which the queued packets are discarded: 4 s at 40 Mbit/s in packets of 1,200 bytes.
const MAX_QUEUED: usize = 1 << 14;
/// Most packets remembered that feedback may name: half of the range of its numbers.
const MAX_SENT: usize = 1 << 15;
/// Payload of a packet before any was seen, in bytes, for the share of headers in the rate.
const USUAL_PAYLOAD: f64 = 1_100.0;
/// Weight of a new packet in the mean payload.
const PAYLOAD_WEIGHT: f64 = 1.0 / 64.0;

/// An item that passes through the element in order.
#[derive(Debug)]
pub(super) enum Item {
    Packet(Packet),
    /// A serialised event.
    Event(gst::Event),
}

#[derive(Debug)]
pub(super) struct Packet {
    pub buffer: gst::Buffer,
    entered: Timestamp,
    size: DataSize,
    /// `None` if it is no RTP packet: sent and paced, but feedback cannot name it.
    payload: Option<u32>,
}

impl Packet {
    /// Whether the packet ends its frame, and itself.
    fn read(buffer: gst::Buffer, entered: Timestamp) -> (Self, bool) {
        let parsed = buffer.map_readable().ok().and_then(|map| {
            let view = PacketView::parse(&map).ok()?;
            Some((u32::try_from(view.payload().len()).ok()?, view.marker()))
        });
        let size = DataSize::from_bytes(buffer.size() as u64);
        (Self { buffer, entered, size, payload: parsed.map(|p| p.0) }, parsed.is_none_or(|p| p.1))
    }
}

/// The next action.
#[derive(Debug)]
pub(super) enum Step {
    Push(Item),
    /// Nothing before this time, unless something happens; `None`: until something happens.
    Wait(Option<Timestamp>),
}

/// Numbers for the property `stats`.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Counts {
    /// Packets discarded from the queue: too old for the controller, or too many.
    pub discarded: u64,
    /// Packets of feedback that were sent, and that no packet of this element matches.
    pub matched: u64,
    pub unmatched: u64,
}

/// A packet as it left.
#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Timestamp,
    payload: u32,
    number: u64,
}

pub(super) struct Sending {
    flow: Flow,
    pacer: Pacer,
    queue: VecDeque<Item>,
    queued: DataSize,
    queued_packets: u64,
    /// Bytes of the frame that is entering.
    frame: DataSize,
    sent: VecDeque<Departure>,
    arrivals: ArrivalClock,
    reported: Vec<ReportedPacket>,
    mean_payload: f64,
    /// The controller's rate, and that for encoders.
    rates: Option<(DataRate, DataRate)>,
    /// No feedback is expected: the controller is not asked, and its rate stays.
    held: bool,
    pub counts: Counts,
    /// Media was discarded, so that the decoder needs a key frame.
    pub wants_key_frame: bool,
}

impl Sending {
    pub(super) fn new(flow: Flow, now: Timestamp) -> Self {
        let pacer = Pacer::new(&flow.target(), now);
        Self {
            flow,
            pacer,
            queue: VecDeque::new(),
            queued: DataSize::ZERO,
            queued_packets: 0,
            frame: DataSize::ZERO,
            sent: VecDeque::new(),
            arrivals: ArrivalClock::default(),
            reported: Vec::new(),
            mean_payload: USUAL_PAYLOAD,
            rates: None,
            held: false,
            counts: Counts::default(),
            wants_key_frame: false,
        }
    }

    /// Another controller from now on; packets of the old one are no longer awaited.
    pub(super) fn replace(&mut self, flow: Flow) {
        self.flow = flow;
        self.sent.clear();
    }
    /// Keeps the present rate, since no feedback is expected: to a controller, none means that nothing arrives.
    pub(super) fn hold(&mut self) {
        self.held = true;
    }
    /// Asks the controller again.
    pub(super) fn resume(&mut self) {
        self.held = false;
    }
    pub(super) fn is_held(&self) -> bool {
        self.held
    }
    /// Whether feedback names a packet that left here.
    pub(super) fn knows(&self, packets: &[Reported]) -> bool {
        packets.iter().any(|p| self.number(p).is_some())
    }
    pub(super) fn flow(&self) -> &Flow {
        &self.flow
    }
    pub(super) fn set_limits(&mut self, limits: Limits, now: Timestamp) {
        self.flow.on_limits(limits, now);
    }
    pub(super) fn queued(&self) -> DataSize {
        self.queued
    }
    /// Forgets what is queued, but neither rates nor packets sent; returns the events.
    pub(super) fn flush(&mut self) -> Vec<gst::Event> {
        (self.queued, self.queued_packets, self.frame) = (DataSize::ZERO, 0, DataSize::ZERO);
        let events = self.queue.drain(..).filter_map(|item| match item {
            Item::Packet(_) => None,
            Item::Event(event) => Some(event),
        });
        events.collect()
    }

    /// The rate for encoders: the controller's, without the headers that it covers. It changes with the controller's alone,
    /// not with every packet's length.
    pub(super) fn media_rate(&mut self) -> DataRate {
        let target = self.flow.target();
        if self.rates.is_none_or(|(of, _)| of != target.media_rate) {
            let share = self.mean_payload / (self.mean_payload + target.overhead.as_bytes() as f64);
            let rate = DataRate::from_bps_f64(target.media_rate.as_bps_f64() * share);
            self.rates = Some((target.media_rate, rate));
        }
        self.rates.map_or(target.media_rate, |r| r.1)
    }

    pub(super) fn on_event(&mut self, event: gst::Event) {
        self.queue.push_back(Item::Event(event));
    }

    pub(super) fn on_buffer(&mut self, buffer: gst::Buffer, now: Timestamp) {
        if self.queue.len() >= MAX_QUEUED {
            self.discard();
        }
        let (packet, ends_frame) = Packet::read(buffer, now);
        self.frame += packet.size;
        self.queued += packet.size;
        self.queued_packets += 1;
        self.queue.push_back(Item::Packet(packet));
        if ends_frame {
            let added = std::mem::take(&mut self.frame);
            let queue = QueueState { now, added, queued: self.queued, oldest_age: self.oldest_age(now) };
            if !self.held {
                self.flow.on_queue(&queue);
            }
        }
    }

    fn oldest_age(&self, now: Timestamp) -> TimeDelta {
        let oldest = self.queue.iter().find_map(|item| match item {
            Item::Packet(p) => Some(p.entered),
            Item::Event(_) => None,
        });
        oldest.map_or(TimeDelta::ZERO, |at| now.saturating_since(at))
    }

    /// Discards the queued packets, not the events.
    fn discard(&mut self) {
        self.counts.discarded += self.queued_packets;
        self.wants_key_frame |= self.queued_packets > 0;
        self.queue.retain(|item| matches!(item, Item::Event(_)));
        (self.queued, self.queued_packets) = (DataSize::ZERO, 0);
    }

    /// A feedback message.
    pub(super) fn on_feedback(&mut self, packets: &[Reported], now: Timestamp) {
        self.reported.clear();
        for p in packets {
            let Some(sequence) = self.number(p) else {
                self.counts.unmatched += 1;
                continue;
            };
            self.counts.matched += 1;
            let arrival = p.arrival.map(|a| self.arrivals.next(a, ArrivalClock::TRANSPORT_WIDE));
            self.reported.push(ReportedPacket { sequence, arrival, ecn: Ecn::NotEct });
        }
        if !self.reported.is_empty() {
            self.reported.sort_by_key(|r| r.sequence);
            self.flow.on_reports(now, &self.reported, |_| TimeDelta::ZERO);
        }
    }

    /// Finds the packet that feedback names. Transport-wide numbers are written after this element, and others write them too
    /// (retransmissions); but a packet is in `rtpsession` while it is being pushed, so that it is the last one that had left by
    /// then.
    fn number(&self, p: &Reported) -> Option<u64> {
        let after = self.sent.partition_point(|d| d.at <= p.departure);
        let candidate = self.sent.get(after.checked_sub(1)?)?;
        (candidate.payload == p.payload).then_some(candidate.number)
    }

    pub(super) fn poll(&mut self, now: Timestamp) -> Step {
        if !self.held {
            self.flow.on_timeout(now);
            while let Some(cluster) = self.flow.poll_probe(now) {
                self.pacer.add_probe(cluster, now);
            }
        }
        let mut target = self.flow.target();
        if self.held {
            // Feedback alone would open a window, and what is late is sent in time by the queue's drain.
            (target.window, target.max_queue_age) = (None, None);
        }
        if target.max_queue_age.is_some_and(|limit| self.oldest_age(now) > limit) {
            self.discard();
        }
        self.pacer.set_target(&self.paced(&target), now);
        let timeout = self.flow.poll_timeout().map(|(due, _)| due).filter(|_| !self.held);
        let size = match self.queue.front() {
            None => return Step::Wait(timeout),
            Some(Item::Event(_)) => None,
            Some(Item::Packet(p)) => Some(p.size),
        };
        if let Some(size) = size {
            let in_flight = self.flow.bytes_in_flight();
            if target.window.is_some_and(|w| in_flight + size > w && !in_flight.is_zero()) {
                // Feedback opens the window; without any, packets leave the flight after a while.
                return Step::Wait(Some(timeout.unwrap_or(now + RECHECK).min(now + RECHECK)));
            }
            match self.pacer.poll(now, true) {
                PacerDecision::Media { probe } => self.leave(size, probe, now),
                PacerDecision::Wait(at) => return Step::Wait(Some(timeout.map_or(at, |t| t.min(at)))),
                PacerDecision::Padding { .. } | PacerDecision::Idle => return Step::Wait(timeout),
            }
        }
        self.queue.pop_front().map_or(Step::Wait(timeout), Step::Push)
    }

    /// The first packet of the queue leaves.
    fn leave(&mut self, size: DataSize, probe: u32, now: Timestamp) {
        let payload = match self.queue.front() {
            Some(Item::Packet(p)) => p.payload.filter(|_| self.flow.target().paces_payload),
            _ => None,
        };
        self.queued = self.queued.saturating_sub(size);
        self.queued_packets -= 1;
        // A probe measures its own rate, and takes no credit.
        let at = if probe == 0 { now - BURST } else { now };
        let counted = payload.map_or(size, |payload| DataSize::from_bytes(payload.into()));
        self.pacer.on_sent(at, counted, false, probe);
        let number = self.flow.next();
        if let Some(Item::Packet(Packet { payload: Some(payload), .. })) = self.queue.front() {
            self.mean_payload += (f64::from(*payload) - self.mean_payload) * PAYLOAD_WEIGHT;
            if self.sent.len() == MAX_SENT {
                self.sent.pop_front();
            }
            self.sent.push_back(Departure { at: now, payload: *payload, number });
        }
        if !self.held {
            self.flow.on_sent(SentPacket { probe, queued: self.queued, ..SentPacket::media(now, number, size) });
        }
    }

    /// The target with a pacing rate that sends the queue in time.
    fn paced(&self, target: &Target) -> Target {
        let drain = DataRate::from_size_over(self.queued, MAX_QUEUE_TIME).unwrap_or(DataRate::ZERO);
        // No packets are made here, so that nothing pads.
        Target { pacing_rate: target.pacing_rate.max(drain), padding_rate: DataRate::ZERO, ..*target }
    }
}

/// Wait between two looks at a closed window.
const RECHECK: TimeDelta = TimeDelta::from_millis(100);
