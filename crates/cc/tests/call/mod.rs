//! A call over one narrow link: 30 frames a second at the target rate, split into packets, a drop-tail queue counted in
//! packets, playout with a maximum delay, and RTCP as planned by the controller's entry in the registry.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use weir_cc::cue::{
    EstimateKind, Fate, FramePlayout, IntervalPacket, IntervalReport, NextDataUnit, ReceivedPacket, ReceiverEstimate,
    ReportBlock, SentPacket,
};
use weir_cc::{Controller, Cue, Limits, Receiver, ReceiverController, Registry, Report, ReportPlan, Sender, Setup};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

const FRAME: TimeDelta = TimeDelta::from_nanos(1_000_000_000 / 30);
const MTU: u64 = 1_500;
/// RTCP interval without a plan.
const UNPLANNED: TimeDelta = TimeDelta::from_secs(1);

/// The conditions of a call.
pub(crate) struct CallPlan {
    /// Start second and kbit/s of the link.
    pub(crate) capacity: Vec<(i64, u64)>,
    pub(crate) one_way: TimeDelta,
    pub(crate) queue_packets: usize,
    /// Packets older than this on arrival are discarded.
    pub(crate) delay_max: TimeDelta,
    pub(crate) start_kbps: u64,
    pub(crate) floor_kbps: u64,
    pub(crate) ceiling_kbps: u64,
    pub(crate) seconds: i64,
}

/// The result of a call.
#[derive(Default, Debug)]
pub(crate) struct CallTrace {
    /// Target rate by second, in kbit/s.
    pub(crate) target_kbps: Vec<f64>,
    /// Maximum queueing delay of an arrival by second, in ms.
    pub(crate) queue_ms: Vec<f64>,
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    pub(crate) discarded: u64,
    received_bits: u64,
    played_bits: u64,
    seconds: f64,
}

impl CallTrace {
    /// Rate received in time, in kbit/s.
    pub(crate) fn goodput_kbps(&self) -> f64 {
        self.played_bits as f64 / self.seconds * 1e-3
    }
    /// Rate received, in kbit/s.
    pub(crate) fn received_kbps(&self) -> f64 {
        self.received_bits as f64 / self.seconds * 1e-3
    }
    /// Packets dropped by the queue, in percent.
    pub(crate) fn loss_percent(&self) -> f64 {
        100.0 * self.lost as f64 / self.sent as f64
    }
    /// Packets received too late, in percent.
    pub(crate) fn late_percent(&self) -> f64 {
        100.0 * self.discarded as f64 / self.sent as f64
    }
    pub(crate) fn mean(of: &[f64], from: usize, to: usize) -> f64 {
        of[from..to].iter().sum::<f64>() / (to - from) as f64
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Capacity(u64),
    Frame,
    Transmitted,
    Arrive(u64),
    ReceiverTimer,
    SenderTimer,
    Report,
    Deliver(usize),
}

#[derive(Clone, Copy)]
struct Packet {
    departure: Timestamp,
    size: DataSize,
    marker: bool,
    fate: Fate,
}

#[derive(Clone)]
enum Message {
    Regular { packets: std::ops::Range<u64>, lost: u64, rtt: TimeDelta },
    Interval { report: Report, next: (u64, Option<TimeDelta>) },
}

struct Call<'a> {
    plan: &'a CallPlan,
    reports: Option<ReportPlan>,
    sender: Sender,
    receiver: Option<Receiver>,
    events: BinaryHeap<Reverse<(Timestamp, u64, What)>>,
    order: u64,
    packets: Vec<Packet>,
    queue: VecDeque<u64>,
    capacity: DataRate,
    highest: Option<u64>,
    reported: u64,
    forward: TimeDelta,
    /// Deadline and number of packets waiting for playout.
    playing: VecDeque<(Timestamp, u64)>,
    messages: Vec<Message>,
    timers: [Option<Timestamp>; 2],
    trace: CallTrace,
}

/// Runs a call under a controller with its default parameters, except for `params`.
pub(crate) fn call(controller: &str, plan: &CallPlan, params: &[(&str, f64)]) -> CallTrace {
    let registry = Registry::builtin();
    let spec = registry.get(controller).expect("built in");
    let kbps = DataRate::from_kbps;
    let setup = Setup {
        limits: Limits { floor: kbps(plan.floor_kbps), ceiling: kbps(plan.ceiling_kbps) },
        start_rate: kbps(plan.start_kbps),
        now: Timestamp::ZERO,
        seed: 1,
        params: params.iter().map(|&(n, v)| (n.into(), v)).collect(),
    };
    let pair = registry.make(controller, &setup).expect("valid");
    let seconds = plan.seconds as usize + 1;
    let mut call = Call {
        plan,
        reports: spec.reports,
        sender: pair.sender,
        receiver: pair.receiver,
        events: BinaryHeap::new(),
        order: 0,
        packets: Vec::new(),
        queue: VecDeque::new(),
        capacity: kbps(1),
        highest: None,
        reported: 0,
        forward: plan.one_way,
        playing: VecDeque::new(),
        messages: Vec::new(),
        timers: [None; 2],
        trace: CallTrace {
            target_kbps: vec![0.0; seconds],
            queue_ms: vec![0.0; seconds],
            seconds: plan.seconds as f64,
            ..CallTrace::default()
        },
    };
    for &(at, kbps) in &plan.capacity {
        call.at(Timestamp::from_secs(at), What::Capacity(kbps));
    }
    call.at(Timestamp::ZERO, What::Frame);
    call.at(Timestamp::ZERO + call.interval(), What::Report);
    while let Some(Reverse((now, _, what))) = call.events.pop() {
        if now > Timestamp::from_secs(plan.seconds) {
            break;
        }
        call.step(now, what);
    }
    call.trace
}

impl Call<'_> {
    fn at(&mut self, time: Timestamp, what: What) {
        self.order += 1;
        self.events.push(Reverse((time, self.order, what)));
    }

    fn interval(&self) -> TimeDelta {
        let rtt = self.forward + self.plan.one_way;
        self.reports.map_or(UNPLANNED, |p| rtt.mul_f64(p.min_round_trips).max(p.min_interval).min(p.max_interval))
    }

    fn step(&mut self, now: Timestamp, what: What) {
        match what {
            What::Capacity(kbps) => self.capacity = DataRate::from_kbps(kbps),
            What::Frame => {
                self.frame(now);
                self.at(now + FRAME, What::Frame);
            }
            What::Transmitted => {
                let sequence = self.queue.pop_front().expect("in transmission");
                self.at(now + self.plan.one_way, What::Arrive(sequence));
                self.transmit(now);
            }
            What::Arrive(sequence) => self.arrive(now, sequence),
            What::ReceiverTimer => self.poll_receiver(now),
            What::SenderTimer => {
                if self.timers[0] == Some(now) {
                    self.timers[0] = None;
                    self.sender.on_timeout(now);
                }
            }
            What::Report => {
                self.play(now);
                if let Some(highest) = self.highest {
                    let packets = self.reported..highest + 1;
                    self.reported = highest + 1;
                    let lost = packets.clone().filter(|&s| self.packets[s as usize].fate == Fate::Lost).count() as u64;
                    let rtt = self.forward + self.plan.one_way;
                    self.send_message(now, Message::Regular { packets, lost, rtt });
                    if let Some(r) = &mut self.receiver {
                        r.on_rtt(rtt, now);
                    }
                }
                self.at(now + self.interval(), What::Report);
            }
            What::Deliver(message) => self.deliver(now, message),
        }
        let wake = self.sender.poll_timeout().map(|t| t.0);
        if wake != self.timers[0] {
            self.timers[0] = wake;
            wake.into_iter().for_each(|t| self.at(t.max(now), What::SenderTimer));
        }
    }

    fn frame(&mut self, now: Timestamp) {
        let rate = self.sender.target().media_rate;
        let second = now.as_secs_f64() as usize;
        self.trace.target_kbps[second] += rate.as_kbps_f64() / 30.0;
        let mut left = rate.size_in(FRAME).as_bytes().max(1);
        while left > 0 {
            // Packets of nearly equal size, as from a packetiser.
            let size = DataSize::from_bytes(left.div_ceil(left.div_ceil(MTU)));
            left -= size.as_bytes();
            let sequence = self.packets.len() as u64;
            self.packets.push(Packet { departure: now, size, marker: left == 0, fate: Fate::Lost });
            self.trace.sent += 1;
            self.sender.on_packet_sent(&SentPacket::media(now, sequence, size));
            if self.queue.len() < self.plan.queue_packets {
                self.queue.push_back(sequence);
                if self.queue.len() == 1 {
                    self.transmit(now);
                }
            } else {
                self.trace.lost += 1;
            }
        }
    }

    fn transmit(&mut self, now: Timestamp) {
        let Some(&next) = self.queue.front() else { return };
        let time = self.capacity.time_for(self.packets[next as usize].size).expect("a capacity");
        self.at(now + time, What::Transmitted);
    }

    fn arrive(&mut self, now: Timestamp, sequence: u64) {
        self.play(now);
        self.highest = Some(sequence);
        let Packet { departure, size, marker, .. } = self.packets[sequence as usize];
        self.forward = now - departure;
        let second = now.as_secs_f64() as usize;
        let queued = (self.forward - self.plan.one_way).as_millis_f64();
        self.trace.queue_ms[second] = self.trace.queue_ms[second].max(queued);
        let late = self.forward > self.plan.delay_max;
        let fate = if late { Fate::Discarded } else { Fate::Received };
        self.packets[sequence as usize].fate = fate;
        let rtp_timestamp = (departure.as_secs_f64() * 9e4) as u32;
        self.trace.received_bits += size.as_bits();
        if late {
            self.trace.discarded += 1;
        } else {
            self.trace.played_bits += size.as_bits();
            self.playing.push_back((departure + self.plan.delay_max, sequence));
        }
        let Some(receiver) = &mut self.receiver else { return };
        if late {
            let buffered = TimeDelta::ZERO;
            receiver.on_playout(&FramePlayout { now, rtp_timestamp, complete: false, discarded: 1, buffered });
        }
        receiver.on_packet_received(&ReceivedPacket {
            now,
            departure: Some(RemoteTimestamp::from_nanos(departure.as_nanos())),
            size,
            payload: size,
            sequence,
            rtp_timestamp,
            marker,
            ecn: Ecn::NotEct,
        });
        self.poll_receiver(now);
    }

    /// Plays frames that are due.
    fn play(&mut self, now: Timestamp) {
        while let Some(&(at, sequence)) = self.playing.front().filter(|p| p.0 <= now) {
            self.playing.pop_front();
            let packet = self.packets[sequence as usize];
            if let Some(r) = self.receiver.as_mut().filter(|_| packet.marker) {
                let rtp_timestamp = (packet.departure.as_secs_f64() * 9e4) as u32;
                let buffered = TimeDelta::ZERO;
                r.on_playout(&FramePlayout { now: at, rtp_timestamp, complete: true, discarded: 0, buffered });
            }
        }
    }

    fn poll_receiver(&mut self, now: Timestamp) {
        let Some(receiver) = &mut self.receiver else { return };
        let report = receiver.poll_report(now);
        let wake = receiver.poll_timeout();
        if wake != self.timers[1] {
            self.timers[1] = wake;
            wake.into_iter().for_each(|t| self.at(t, What::ReceiverTimer));
        }
        if let Some(report) = report {
            self.play(now);
            let next = self.playing.front().map(|&(at, s)| (s, Some(at - now)));
            let next = next.unwrap_or((self.highest.map_or(0, |h| h + 1), None));
            self.send_message(now, Message::Interval { report, next });
        }
    }

    fn send_message(&mut self, now: Timestamp, message: Message) {
        self.messages.push(message);
        self.at(now + self.plan.one_way, What::Deliver(self.messages.len() - 1));
    }

    fn deliver(&mut self, now: Timestamp, message: usize) {
        match self.messages[message].clone() {
            Message::Regular { packets, lost, rtt } => {
                let expected = packets.end - packets.start;
                self.sender.on_cue(&Cue::ReportBlock(ReportBlock {
                    now,
                    fraction_lost: lost as f64 / expected.max(1) as f64,
                    cumulative_lost: 0,
                    highest_sequence: packets.end,
                    expected,
                    jitter: TimeDelta::ZERO,
                    rtt: Some(rtt),
                }));
                if self.reports.is_some_and(|p| p.extended) {
                    let one = |sequence: u64| {
                        let Packet { departure, size, fate, .. } = self.packets[sequence as usize];
                        IntervalPacket { sequence, departure, size, fate, repaired: false }
                    };
                    let packets: Vec<_> = packets.map(one).collect();
                    let rtt = Some(rtt);
                    let report = IntervalReport { now, packets: &packets, one_way_delay: None, rtt };
                    self.sender.on_cue(&Cue::IntervalReport(report));
                }
            }
            Message::Interval { report, next: (next_sequence, playout_delay) } => {
                let (rate, kind, with_unit) = match report {
                    Report::Remb { rate } => (rate, EstimateKind::Remb, false),
                    Report::Tmmbr { rate } => (rate, EstimateKind::Tmmbr, false),
                    Report::NextDataUnit { rate } => (rate, EstimateKind::Tmmbr, true),
                    Report::Nada { .. } => return,
                };
                if with_unit {
                    self.sender.on_cue(&Cue::NextDataUnit(NextDataUnit { now, next_sequence, playout_delay }));
                }
                self.sender.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate { now, rate, kind }));
            }
        }
    }
}
