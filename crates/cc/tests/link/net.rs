//! The network's events.

use super::tcp::Tcp;
use super::{FlowPlan, FlowTrace, LinkPlan};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_cc::circuit_breaker::{CircuitBreaker, Config, RtcpIntervals};
use weir_cc::cue::{
    EstimateKind, NadaReport, PacketResult, ReceivedPacket, ReceiverEstimate, ReportBlock, SentPacket,
    TransportFeedback,
};
use weir_cc::{
    Controller, Cue, Limits, Receiver, ReceiverController, Registry, RepairPlan, Report, ReportedPacket, Sender,
};
use weir_cc::{SentHistory, Setup};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Size of every packet.
const SIZE: DataSize = DataSize::from_bytes(1_012);
/// Offset of the receiver's clock from the sender's.
const OFFSET: TimeDelta = TimeDelta::from_secs(777);
const WINDOW_POLL: TimeDelta = TimeDelta::from_millis(5);
const RECEIVER_REPORT: TimeDelta = TimeDelta::from_secs(1);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum What {
    Capacity(usize),
    Start(usize),
    Send(usize),
    Arrive { flow: usize, sequence: u64, departure: Timestamp, marked: bool },
    Feedback(usize),
    ReceiverTimer(usize),
    ReceiverReport(usize),
    Deliver { flow: usize, message: usize },
    SenderTimer(usize),
    TcpStart,
    TcpArrive { sequence: u64 },
    TcpAck { sequence: u64 },
    TcpTimeout,
}

#[derive(Clone)]
enum Message {
    Packets(Vec<ReportedPacket>, Timestamp),
    Block { lost: u64, expected: u64, highest: u64, total_lost: i64 },
    Report(Report),
}

struct Flow {
    sender: Sender,
    receiver: Option<Receiver>,
    history: SentHistory,
    breaker: CircuitBreaker,
    per_packet: bool,
    next: u64,
    /// Media packets in the current block, and repair packets due.
    block: (u8, u8),
    /// Receiver state of RFC 3550 and RFC 8888.
    pending: Vec<ReportedPacket>,
    reported_to: u64,
    highest: Option<u64>,
    received: u64,
    block_expected: u64,
    block_received: u64,
    rtt: Option<TimeDelta>,
    wake: Option<Timestamp>,
    receiver_wake: Option<Timestamp>,
    trace: FlowTrace,
}

impl Flow {
    /// Counts the packet just sent, and returns the rate of media and repair together. Packets are evenly spaced.
    fn rate_with_repair(&mut self) -> DataRate {
        let target = self.sender.target();
        let (media, repair) = match target.repair {
            RepairPlan::ReedSolomon { block, repair } => (block - repair, repair),
            RepairPlan::Parity { interval } => (interval, 1),
            _ => (u8::MAX, 0),
        };
        if self.block.1 > 0 {
            self.block.1 -= 1;
        } else {
            self.block.0 = self.block.0.saturating_add(1);
            if self.block.0 >= media {
                self.block = (0, repair);
            }
        }
        DataRate::from_bps_f64(target.media_rate.as_bps_f64() * (1.0 + f64::from(repair) / f64::from(media)))
    }
}

pub(super) struct Net<'a> {
    pub(super) plan: &'a LinkPlan,
    flows: Vec<Flow>,
    events: BinaryHeap<Reverse<(Timestamp, u64, What)>>,
    order: u64,
    messages: Vec<Option<Message>>,
    capacity_bps: f64,
    pub(super) free_at: Timestamp,
    random: Pcg32,
    results: Vec<PacketResult>,
    pub(super) tcp: Tcp,
}

/// Runs flows over a link and returns their traces.
pub(crate) fn run(plan: &LinkPlan, flows: &[FlowPlan]) -> Vec<FlowTrace> {
    let registry = Registry::builtin();
    let seconds = plan.seconds as usize + 1;
    let limits =
        Limits { floor: DataRate::from_kbps(plan.limits_kbps.0), ceiling: DataRate::from_kbps(plan.limits_kbps.1) };
    let make = |f: &FlowPlan| {
        let setup = Setup { limits, start_rate: f.start_rate, now: f.start, seed: 1, params: f.params.clone() };
        let pair = registry.make(f.controller, &setup).expect("a built-in controller");
        Flow {
            sender: pair.sender,
            receiver: pair.receiver,
            history: SentHistory::new(),
            breaker: {
                let mut breaker = CircuitBreaker::new(Config::default());
                breaker.on_rtcp_interval(RtcpIntervals { own: RECEIVER_REPORT, receiver: RECEIVER_REPORT });
                breaker
            },
            per_packet: registry.get(f.controller).expect("built in").feedback.is_some(),
            next: 0,
            block: (0, 0),
            pending: Vec::new(),
            reported_to: 0,
            highest: None,
            received: 0,
            block_expected: 0,
            block_received: 0,
            rtt: None,
            wake: None,
            receiver_wake: None,
            trace: FlowTrace {
                sent: vec![0.0; seconds],
                worst_queue: vec![0.0; seconds],
                queue_sum: vec![(0.0, 0.0); seconds],
                breaker: (None, None),
            },
        }
    };
    let mut net = Net {
        plan,
        flows: flows.iter().map(make).collect(),
        events: BinaryHeap::new(),
        order: 0,
        messages: Vec::new(),
        capacity_bps: 1.0,
        free_at: Timestamp::ZERO,
        random: Pcg32::seed_from_u64(7),
        results: Vec::new(),
        tcp: Tcp::default(),
    };
    if let Some((start, _)) = plan.tcp {
        net.at(Timestamp::from_secs(start), What::TcpStart);
    }
    for (k, &(at, _)) in plan.capacity.iter().enumerate() {
        net.at(Timestamp::from_secs(at), What::Capacity(k));
    }
    for (k, f) in flows.iter().enumerate() {
        net.at(f.start, What::Start(k));
    }
    let end = Timestamp::from_secs(plan.seconds);
    while let Some(Reverse((now, _, what))) = net.events.pop() {
        if now > end {
            break;
        }
        net.step(now, what);
    }
    let trace = |f: Flow| FlowTrace { breaker: (f.breaker.tripped(), f.breaker.rate_cap()), ..f.trace };
    let traces: Vec<_> = net.flows.into_iter().map(trace).collect();
    assert!(traces.iter().all(|t| t.breaker.0.is_none_or(|trip| trip.at <= end)), "a trip after the end");
    traces
}

fn second(now: Timestamp) -> usize {
    now.as_secs_f64() as usize
}

impl Net<'_> {
    pub(super) fn at(&mut self, time: Timestamp, what: What) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, what)));
    }

    fn step(&mut self, now: Timestamp, what: What) {
        match what {
            What::Capacity(k) => {
                let bps = self.plan.capacity[k].1 as f64 * 1e3;
                let backlog = self.free_at.saturating_since(now).as_secs_f64() * self.capacity_bps;
                self.capacity_bps = bps;
                self.free_at = now + TimeDelta::from_secs_f64(backlog / bps);
            }
            What::Start(f) => {
                self.at(now, What::Send(f));
                if self.flows[f].per_packet {
                    self.at(now + self.plan.feedback, What::Feedback(f));
                }
                self.at(now + RECEIVER_REPORT, What::ReceiverReport(f));
            }
            What::Send(f) => self.send(now, f),
            What::Arrive { flow, sequence, departure, marked } => self.arrive(now, flow, sequence, departure, marked),
            What::Feedback(f) => {
                let flow = &mut self.flows[f];
                let pending = std::mem::take(&mut flow.pending);
                if !pending.is_empty() {
                    self.report(now, f, Message::Packets(pending, now));
                }
                self.at(now + self.plan.feedback, What::Feedback(f));
            }
            What::ReceiverTimer(f) => {
                if self.flows[f].receiver_wake == Some(now) {
                    self.flows[f].receiver_wake = None;
                    self.poll_receiver(now, f);
                }
            }
            What::ReceiverReport(f) => {
                let flow = &mut self.flows[f];
                if let Some(highest) = flow.highest {
                    let expected = highest + 1 - flow.block_expected;
                    let lost = expected.saturating_sub(flow.received - flow.block_received);
                    let total_lost = highest as i64 + 1 - flow.received as i64;
                    (flow.block_expected, flow.block_received) = (highest + 1, flow.received);
                    self.report(now, f, Message::Block { lost, expected, highest, total_lost });
                }
                self.at(now + RECEIVER_REPORT, What::ReceiverReport(f));
            }
            What::Deliver { flow, message } => self.deliver(now, flow, message),
            What::TcpStart => {
                (self.tcp.window, self.tcp.threshold, self.tcp.progress) = (10.0, 1e9, now);
                self.tcp_send(now);
                self.at(now + TimeDelta::from_secs(1), What::TcpTimeout);
            }
            What::TcpArrive { sequence } => self.at(now + self.plan.one_way, What::TcpAck { sequence }),
            What::TcpAck { sequence } => self.tcp_ack(now, sequence),
            What::TcpTimeout => {
                if now - self.tcp.progress >= TimeDelta::from_secs(1) {
                    self.tcp.flying.clear();
                    (self.tcp.threshold, self.tcp.window) = ((self.tcp.window / 2.0).max(2.0), 1.0);
                    self.tcp_send(now);
                }
                self.at(now + TimeDelta::from_secs(1), What::TcpTimeout);
            }
            What::SenderTimer(f) => {
                if self.flows[f].wake == Some(now) {
                    self.flows[f].wake = None;
                    self.flows[f].sender.on_timeout(now);
                    self.arm(now, f);
                }
            }
        }
    }

    fn send(&mut self, now: Timestamp, f: usize) {
        let flow = &mut self.flows[f];
        // The window is full: the codec drops this packet and tries again a little later.
        let in_flight = flow.history.bytes_in_flight();
        if flow.sender.target().window.is_some_and(|w| !in_flight.is_zero() && in_flight + SIZE > w) {
            return self.at(now + WINDOW_POLL, What::Send(f));
        }
        let packet = SentPacket {
            is_repair: flow.block.1 > 0,
            bytes_in_flight: flow.history.bytes_in_flight() + SIZE,
            ..SentPacket::media(now, flow.next, SIZE)
        };
        flow.next += 1;
        flow.history.on_sent(&packet);
        flow.sender.on_packet_sent(&packet);
        flow.breaker.on_timeout(now);
        flow.breaker.on_packet_sent(&packet);
        flow.trace.sent[second(now)] += SIZE.as_bits() as f64;
        let rate = flow.rate_with_repair();
        self.at(now + rate.time_for(SIZE).expect("a rate above zero"), What::Send(f));
        self.arm(now, f);
        let unlucky = f64::from(self.random.next_u32()) < self.plan.loss * f64::from(u32::MAX);
        if self.enqueue(now) && !unlucky {
            let marked = f64::from(self.random.next_u32()) < self.plan.marks * f64::from(u32::MAX);
            let arrival = self.free_at + self.plan.one_way;
            self.at(arrival, What::Arrive { flow: f, sequence: packet.sequence, departure: now, marked });
        }
    }

    /// Puts a packet into the bottleneck's queue; returns whether there was room.
    pub(super) fn enqueue(&mut self, now: Timestamp) -> bool {
        let start = self.free_at.max(now);
        let backlog = (start - now).as_secs_f64() * self.capacity_bps / 8.0;
        let room = backlog + SIZE.as_bytes() as f64 <= self.plan.queue_bytes;
        if room {
            self.free_at = start + TimeDelta::from_secs_f64(SIZE.as_bits() as f64 / self.capacity_bps);
        }
        room
    }

    fn arrive(&mut self, now: Timestamp, f: usize, sequence: u64, departure: Timestamp, marked: bool) {
        let flow = &mut self.flows[f];
        let ecn = if marked { Ecn::Ce } else { Ecn::Ect0 };
        let queue = (now - departure - self.plan.one_way).as_millis_f64();
        let s = second(now);
        flow.trace.worst_queue[s] = flow.trace.worst_queue[s].max(queue);
        flow.trace.queue_sum[s].0 += queue;
        flow.trace.queue_sum[s].1 += 1.0;
        flow.received += 1;
        flow.highest = flow.highest.max(Some(sequence));
        let remote = RemoteTimestamp::ZERO + (now - Timestamp::ZERO) + OFFSET;
        for lost in flow.reported_to..sequence {
            flow.pending.push(ReportedPacket { sequence: lost, arrival: None, ecn: Ecn::NotEct });
        }
        flow.pending.push(ReportedPacket { sequence, arrival: Some(remote), ecn });
        flow.reported_to = sequence + 1;
        if let Some(receiver) = &mut flow.receiver {
            receiver.on_packet_received(&ReceivedPacket {
                now,
                departure: Some(RemoteTimestamp::ZERO + (departure - Timestamp::ZERO) + OFFSET),
                size: SIZE,
                payload: SIZE,
                sequence,
                rtp_timestamp: (departure.as_secs_f64() * 9e4) as u32,
                marker: true,
                ecn,
            });
            self.poll_receiver(now, f);
        }
    }

    fn poll_receiver(&mut self, now: Timestamp, f: usize) {
        let Some(receiver) = &mut self.flows[f].receiver else { return };
        let report = receiver.poll_report(now);
        let next = receiver.poll_timeout();
        assert!(next.is_none_or(|t| t > now), "a receiver's timeout in the past");
        if next != self.flows[f].receiver_wake {
            self.flows[f].receiver_wake = next;
            if let Some(t) = next {
                self.at(t, What::ReceiverTimer(f));
            }
        }
        if let Some(report) = report {
            self.report(now, f, Message::Report(report));
        }
    }

    fn report(&mut self, now: Timestamp, flow: usize, message: Message) {
        self.messages.push(Some(message));
        let message = self.messages.len() - 1;
        self.at(now + self.plan.one_way, What::Deliver { flow, message });
    }

    fn deliver(&mut self, now: Timestamp, f: usize, message: usize) {
        let flow = &mut self.flows[f];
        match self.messages[message].take().expect("delivered once") {
            Message::Packets(reports, sent_at) => {
                let holding = reports
                    .last()
                    .and_then(|r| r.arrival)
                    .map(|a| RemoteTimestamp::ZERO + (sent_at - Timestamp::ZERO) + OFFSET - a);
                flow.history.resolve(reports, &mut self.results);
                let latest = self.results.iter().rev().find(|p| p.arrival.is_some());
                let rtt = latest.zip(holding).map(|(p, h)| now - p.departure - h);
                flow.rtt = rtt;
                flow.sender.on_cue(&Cue::TransportFeedback(TransportFeedback {
                    now,
                    packets: &self.results,
                    bytes_in_flight: flow.history.bytes_in_flight(),
                    rtt,
                }));
            }
            Message::Block { lost, expected, highest, total_lost } => {
                let rtt = self.plan.one_way * 2 + self.free_at.saturating_since(now);
                flow.rtt = Some(rtt);
                let block = ReportBlock {
                    now,
                    fraction_lost: lost as f64 / expected.max(1) as f64,
                    cumulative_lost: total_lost,
                    highest_sequence: highest,
                    expected,
                    jitter: TimeDelta::ZERO,
                    rtt: Some(rtt),
                };
                flow.breaker.on_report_block(&block, 0);
                flow.sender.on_cue(&Cue::ReportBlock(block));
                if let Some(receiver) = &mut flow.receiver {
                    receiver.on_rtt(rtt, now);
                }
            }
            Message::Report(Report::Nada { mode, aggregate_delay, receive_rate }) => {
                let report = NadaReport { now, mode, aggregate_delay, receive_rate, rtt: flow.rtt };
                flow.sender.on_cue(&Cue::NadaReport(report));
            }
            Message::Report(Report::Remb { rate }) => {
                let estimate = ReceiverEstimate { now, rate, kind: EstimateKind::Remb };
                flow.sender.on_cue(&Cue::ReceiverEstimate(estimate));
            }
            Message::Report(Report::Tmmbr { rate } | Report::NextDataUnit { rate }) => {
                let estimate = ReceiverEstimate { now, rate, kind: EstimateKind::Tmmbr };
                flow.sender.on_cue(&Cue::ReceiverEstimate(estimate));
            }
        }
        let target = flow.sender.target();
        let (floor, ceiling) = self.plan.limits_kbps;
        assert!(target.media_rate >= DataRate::from_kbps(floor) && target.media_rate <= DataRate::from_kbps(ceiling));
        flow.sender.metrics(&mut |name, v| assert!(!v.is_infinite(), "{name} is {v}"));
        self.arm(now, f);
    }

    fn arm(&mut self, now: Timestamp, f: usize) {
        let next = self.flows[f].sender.poll_timeout().map(|(t, _)| t);
        if next != self.flows[f].wake {
            assert!(next.is_none_or(|t| t >= now), "a sender's timeout in the past");
            self.flows[f].wake = next;
            if let Some(t) = next {
                self.at(t, What::SenderTimer(f));
            }
        }
    }
}
