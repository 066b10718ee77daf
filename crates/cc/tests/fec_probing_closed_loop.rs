//! FBRA, and other controllers with probed steps, over a simulated link: 30 frames per second, parity packets, a
//! drop-tail queue of 50 packets, packets later than 400 ms discarded, a report every second round trip (Nagy et al.,
//! MMSys 2014, section 5), or per-packet feedback every 100 ms for controllers that require it.

use std::collections::VecDeque;
use weir_cc::cue::{
    Fate, IntervalPacket, IntervalReport, OneWayDelay, PacketResult, QueueState, SentPacket, TransportFeedback,
};
use weir_cc::{Controller, Cue, Limits, OneWayDelayMeter, Registry, RepairPlan, Sender, Setup};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

const MTU: u64 = 1_460;
const QUEUE: usize = 50;
const DISCARD_AFTER: TimeDelta = TimeDelta::from_millis(400);
const FRAMES_PER_SECOND: i64 = 30;

struct Plan {
    controller: &'static str,
    /// Start second and kbit/s.
    capacity: Vec<(i64, u64)>,
    one_way_ms: i64,
    seconds: i64,
    /// Whether losses and discards are reported early.
    early: bool,
    /// Time between the packets of a frame, which wait in the RTP queue.
    spacing_ms: i64,
}

impl Default for Plan {
    fn default() -> Self {
        Self { controller: "fbra", capacity: vec![], one_way_ms: 52, seconds: 150, early: false, spacing_ms: 0 }
    }
}

/// Rates sent by second, and totals.
#[derive(Default)]
struct Run {
    sent_kbps: Vec<f64>,
    repair_bits: f64,
    good_kbps: Vec<f64>,
    sent: u64,
    lost: u64,
    discarded: u64,
    metrics: Vec<(&'static str, f64)>,
}

impl Run {
    fn sent(&self, from: usize, to: usize) -> f64 {
        self.sent_kbps[from..to].iter().sum::<f64>() / (to - from) as f64
    }
    fn goodput(&self, from: usize, to: usize) -> f64 {
        self.good_kbps[from..to].iter().sum::<f64>() / (to - from) as f64
    }
    fn loss(&self) -> f64 {
        (self.lost + self.discarded) as f64 / self.sent as f64
    }
    fn metric(&self, name: &str) -> f64 {
        self.metrics.iter().find(|m| m.0 == name).expect("reported").1
    }
    fn frcc(&self) -> f64 {
        (self.metric("fec_raised") + self.metric("fec_kept")) / self.metric("fec_enabled")
    }
}

#[derive(Clone, Copy)]
struct Packet {
    of_interval: IntervalPacket,
    arrival: Option<Timestamp>,
    /// `None` for parity packets.
    rtp_timestamp: Option<u32>,
}

struct Report {
    arrives: Timestamp,
    packets: Vec<Packet>,
    delay: Option<OneWayDelay>,
    rtt: TimeDelta,
}

struct Flow<'a> {
    plan: &'a Plan,
    sender: Sender,
    meter: OneWayDelayMeter,
    sequence: u64,
    since_repair: u32,
    /// Whether the controller had parity kept at the last frame.
    is_on_standby: bool,
    /// The RTP queue: sizes and timestamps, and when the next packet may leave.
    waiting: VecDeque<(u64, u32)>,
    next_departure: Timestamp,
    /// When packets leave the queue.
    queue: VecDeque<Timestamp>,
    free_at: Timestamp,
    per_packet_feedback: bool,
    /// In order of departure.
    under_way: VecDeque<Packet>,
    /// The packets of the next report; packets after the highest received are kept in `gap`.
    interval: Vec<Packet>,
    gap: Vec<Packet>,
    queuing: TimeDelta,
    reports: VecDeque<Report>,
    in_flight: DataSize,
    run: Run,
}

fn run(plan: &Plan) -> Run {
    let kbps = DataRate::from_kbps;
    let registry = Registry::builtin();
    let setup = Setup {
        limits: Limits { floor: kbps(32), ceiling: kbps(10_000) },
        start_rate: kbps(128),
        now: Timestamp::ZERO,
        seed: 1,
        params: vec![],
    };
    let seconds = vec![0.0; plan.seconds as usize + 1];
    let mut flow = Flow {
        plan,
        sender: registry.make(plan.controller, &setup).expect("built in").sender,
        meter: OneWayDelayMeter::new(90_000),
        sequence: 0,
        since_repair: 0,
        is_on_standby: false,
        per_packet_feedback: registry.get(plan.controller).expect("built in").feedback.is_some(),
        waiting: VecDeque::new(),
        next_departure: Timestamp::ZERO,
        queue: VecDeque::new(),
        free_at: Timestamp::ZERO,
        under_way: VecDeque::new(),
        interval: Vec::new(),
        gap: Vec::new(),
        queuing: TimeDelta::ZERO,
        reports: VecDeque::new(),
        in_flight: DataSize::ZERO,
        run: Run { sent_kbps: seconds.clone(), good_kbps: seconds, ..Run::default() },
    };
    let (mut frame, mut report_at, mut may_be_early) = (0, Timestamp::from_millis(200), true);
    for ms in 0..1_000 * plan.seconds {
        let now = Timestamp::from_millis(ms);
        flow.receive(now);
        let regular = now >= report_at;
        // RFC 4585, section 3.5.2: after an early report the next regular one is suppressed.
        let early = plan.early && may_be_early && flow.interval.iter().any(|p| p.of_interval.fate != Fate::Received);
        if regular || early {
            let interval = flow.report(now);
            report_at = if early { report_at + interval } else { now + interval };
            may_be_early = !early;
        }
        flow.deliver(now);
        if let Some((at, _)) = flow.sender.poll_timeout()
            && at <= now
        {
            flow.sender.on_timeout(now);
        }
        if ms * FRAMES_PER_SECOND >= frame * 1_000 {
            flow.frame(now, (frame * 90_000 / FRAMES_PER_SECOND) as u32);
            frame += 1;
        }
        flow.pump(now);
    }
    flow.sender.metrics(&mut |name, v| flow.run.metrics.push((name, v)));
    flow.run
}

impl Flow<'_> {
    fn capacity(&self, now: Timestamp) -> DataRate {
        let steps = self.plan.capacity.iter().rev();
        let step = steps.into_iter().find(|s| Timestamp::from_secs(s.0) <= now).expect("a step at 0");
        DataRate::from_kbps(step.1)
    }

    fn round_trip(&self) -> TimeDelta {
        TimeDelta::from_millis(2 * self.plan.one_way_ms) + self.queuing
    }

    fn frame(&mut self, now: Timestamp, rtp_timestamp: u32) {
        let target = self.sender.target();
        let mut left = (target.media_rate.as_bps() / (8 * FRAMES_PER_SECOND as u64)).max(1);
        let is_probing = matches!(target.repair, RepairPlan::Parity { .. });
        if is_probing && self.is_on_standby {
            // The parity of the packets just sent leaves at once.
            self.since_repair = 0;
            self.send(now, left.min(MTU), None);
        }
        self.is_on_standby = matches!(target.repair, RepairPlan::Standby { .. });
        let added = DataSize::from_bytes(left);
        while left > 0 {
            let size = left.min(MTU);
            left -= size;
            self.waiting.push_back((size, rtp_timestamp));
        }
        if self.plan.spacing_ms > 0 {
            let queued = self.waiting_bytes();
            self.sender.on_queue(&QueueState { now, added, queued, oldest_age: TimeDelta::ZERO });
        }
    }

    fn waiting_bytes(&self) -> DataSize {
        DataSize::from_bytes(self.waiting.iter().map(|p| p.0).sum())
    }

    /// Sends the queued packets that are due, with their repair packets.
    fn pump(&mut self, now: Timestamp) {
        while now >= self.next_departure
            && let Some((size, rtp_timestamp)) = self.waiting.pop_front()
        {
            self.next_departure = now + TimeDelta::from_millis(self.plan.spacing_ms);
            self.send(now, size, Some(rtp_timestamp));
            self.since_repair += 1;
            if let RepairPlan::Parity { interval } = self.sender.target().repair
                && self.since_repair >= u32::from(interval)
            {
                self.since_repair = 0;
                self.send(now, size, None);
            }
        }
    }

    /// Sends a media packet with this timestamp, or a parity packet.
    fn send(&mut self, now: Timestamp, size: u64, rtp_timestamp: Option<u32>) {
        let size = DataSize::from_bytes(size);
        let sequence = self.sequence;
        self.sequence += 1;
        self.in_flight += size;
        self.sender.on_packet_sent(&SentPacket {
            is_repair: rtp_timestamp.is_none(),
            bytes_in_flight: self.in_flight,
            queued: if self.plan.spacing_ms > 0 { self.waiting_bytes() } else { DataSize::ZERO },
            ..SentPacket::media(now, sequence, size)
        });
        while self.queue.front().is_some_and(|&t| t <= now) {
            self.queue.pop_front();
        }
        let mut arrival = None;
        if self.queue.len() < QUEUE {
            let takes = self.capacity(now).time_for(size).expect("a capacity");
            self.free_at = self.free_at.max(now) + takes;
            self.queue.push_back(self.free_at);
            arrival = Some(self.free_at + TimeDelta::from_millis(self.plan.one_way_ms));
        }
        let (bits, second) = (size.as_bits() as f64, now.as_secs_f64() as usize);
        self.run.sent_kbps[second] += bits * 1e-3;
        let late = arrival.is_some_and(|a| a - now > DISCARD_AFTER);
        let fate = match arrival {
            None => Fate::Lost,
            Some(_) if late => Fate::Discarded,
            Some(_) => Fate::Received,
        };
        if rtp_timestamp.is_some() {
            self.run.sent += 1;
            match fate {
                Fate::Received => self.run.good_kbps[second] += bits * 1e-3,
                Fate::Lost => self.run.lost += 1,
                Fate::Discarded => self.run.discarded += 1,
            }
        } else {
            self.run.repair_bits += bits;
        }
        let of_interval = IntervalPacket { sequence, departure: now, size, fate, repaired: false };
        self.under_way.push_back(Packet { of_interval, arrival, rtp_timestamp });
    }

    fn receive(&mut self, now: Timestamp) {
        while let Some(&packet) = self.under_way.front() {
            let Some(arrival) = packet.arrival else {
                self.gap.push(packet);
                self.under_way.pop_front();
                continue;
            };
            if arrival > now {
                break;
            }
            self.under_way.pop_front();
            if let Some(timestamp) = packet.rtp_timestamp {
                self.meter.on_packet(arrival, timestamp);
            }
            self.queuing = arrival - packet.of_interval.departure - TimeDelta::from_millis(self.plan.one_way_ms);
            self.interval.append(&mut self.gap);
            self.interval.push(packet);
        }
    }

    /// Sends a report and returns the time until the next.
    fn report(&mut self, now: Timestamp) -> TimeDelta {
        let rtt = self.round_trip();
        self.meter.on_rtt(rtt);
        let arrives = now + TimeDelta::from_millis(self.plan.one_way_ms);
        let (packets, delay) = (std::mem::take(&mut self.interval), self.meter.take_interval());
        self.reports.push_back(Report { arrives, packets, delay, rtt });
        let least = TimeDelta::from_millis(100);
        if self.per_packet_feedback { least } else { least.max(rtt * 2) }
    }

    fn deliver(&mut self, now: Timestamp) {
        while self.reports.front().is_some_and(|r| r.arrives <= now) {
            let report = self.reports.pop_front().expect("the first");
            let rtt = Some(report.rtt);
            if self.per_packet_feedback {
                let result = |p: &Packet| PacketResult {
                    sequence: p.of_interval.sequence,
                    departure: p.of_interval.departure,
                    arrival: p.arrival.map(|a| RemoteTimestamp::from_nanos(a.as_nanos())),
                    size: p.of_interval.size,
                    ecn: Ecn::NotEct,
                    probe: 0,
                    was_lost: false,
                };
                let packets: Vec<_> = report.packets.iter().map(result).collect();
                let reported = packets.iter().fold(DataSize::ZERO, |sum, p| sum + p.size);
                self.in_flight = self.in_flight.saturating_sub(reported);
                let bytes_in_flight = self.in_flight;
                let feedback = TransportFeedback { now, packets: &packets, bytes_in_flight, rtt };
                self.sender.on_cue(&Cue::TransportFeedback(feedback));
            } else {
                let media = report.packets.iter().filter(|p| p.rtp_timestamp.is_some());
                let packets: Vec<_> = media.map(|p| p.of_interval).collect();
                let one_way_delay = report.delay;
                self.sender.on_cue(&Cue::IntervalReport(IntervalReport { now, packets: &packets, one_way_delay, rtt }));
            }
            let target = self.sender.target();
            assert!(target.media_rate >= DataRate::from_kbps(32), "{target:?}");
        }
    }
}

#[track_caller]
fn within(what: &str, value: f64, range: core::ops::RangeInclusive<f64>) {
    assert!(range.contains(&value), "{what} is {value:.3}, not in {range:?}");
}

/// Steps between 100 and 256 kbit/s, mean 172.
fn variable() -> Vec<(i64, u64)> {
    let steps = [256, 200, 150, 100, 120, 140, 160, 180, 200, 220, 256, 220, 200, 180, 140, 100, 150, 200, 100];
    (0..).map(|k| 20 * k).zip(steps).collect()
}

#[test]
fn fbra_follows_a_variable_link() {
    for early in [false, true] {
        for (one_way_ms, goodput) in [(52, 130.0..=168.0), (102, 120.0..=165.0), (242, 90.0..=150.0)] {
            let r = run(&Plan { capacity: variable(), one_way_ms, seconds: 380, early, ..Plan::default() });
            within("goodput", r.goodput(0, 380), goodput);
            within("loss", r.loss(), 0.01..=0.06);
            // Above 90 % in the paper (section 5.2).
            within("FRCC", r.frcc(), 0.9..=1.0);
            within("FEC rate", r.repair_bits / 380e3, 2.0..=10.0);
        }
    }
}

#[test]
fn fbra_climbs_by_probes_and_falls_with_the_capacity() {
    let capacity = vec![(0, 1_000), (60, 500), (90, 1_000)];
    let r = run(&Plan { capacity, ..Plan::default() });
    // A third at first, then a fifteenth every four reports of 208 ms, 8 % a second: eight-fold in 20 to 25 s.
    within("second 10", r.sent(10, 11), 250.0..=450.0);
    within("climbed", r.sent(20, 24), 550.0..=950.0);
    within("full", r.sent(30, 60), 930.0..=1_020.0);
    within("goodput", r.goodput(30, 60), 900.0..=1_000.0);
    // More than half is late at first, and undershooting subtracts twice what is missing: down to the floor.
    within("fallen", r.sent(62, 65), 31.0..=80.0);
    within("climbs again", r.sent(80, 84), 180.0..=400.0);
    within("full again", r.sent(115, 150), 900.0..=1_020.0);
    within("FRCC", r.frcc(), 0.9..=1.0);
}

#[test]
fn probing_keeps_a_controllers_rates() {
    let of = |controller| {
        let capacity = vec![(0, 1_000), (60, 500), (90, 1_000)];
        run(&Plan { controller, capacity, ..Plan::default() })
    };
    for (plain, probing) in [("gcc", "gcc+fec"), ("nada", "nada+fec"), ("scream", "scream+fec")] {
        let (plain, probing) = (of(plain), of(probing));
        for (from, to) in [(20, 60), (65, 90), (110, 150)] {
            within("sent", probing.sent(from, to) / plain.sent(from, to), 0.8..=1.25);
        }
        assert!(plain.repair_bits == 0.0 && plain.metrics.iter().all(|m| !m.0.starts_with("fec_")));
        within("probes", probing.metric("fec_enabled"), 20.0..=500.0);
        within("FRCC", probing.frcc(), 0.9..=1.0);
        // Parity packets are a small part of the traffic.
        within("FEC share", probing.repair_bits / probing.sent_kbps.iter().sum::<f64>() * 1e-3, 0.0005..=0.08);
        within("loss", probing.loss() - plain.loss(), -0.05..=0.01);
    }
    // Without a wish for more there is no probing.
    let fixed = of("fixed+fec");
    assert_eq!((fixed.metric("fec_enabled"), fixed.repair_bits), (0.0, 0.0));
    within("fixed", fixed.sent(0, 150), 126.0..=129.0);
}

#[test]
fn probes_decide_while_frames_wait_in_the_rtp_queue() {
    // NADA lowers the encoder's rate while more than a packet waits (RFC 8698, section 5.2.2).
    let of = |controller| {
        let capacity = vec![(0, 2_000), (60, 1_000), (90, 2_000)];
        run(&Plan { controller, capacity, spacing_ms: 4, ..Plan::default() })
    };
    let (plain, probing) = (of("nada"), of("nada+fec"));
    for (from, to) in [(20, 60), (65, 90), (110, 150)] {
        within("sent", probing.sent(from, to) / plain.sent(from, to), 0.8..=1.25);
    }
    within("raised", probing.metric("fec_raised") / probing.metric("fec_enabled"), 0.3..=1.0);
}
