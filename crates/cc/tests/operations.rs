//! What every controller holds to, whatever happens to it: random sequences of operations over each entry of the
//! registry, sender and receiver halves.
//!
//! A new controller is picked up by itself. `PROPTEST_CASES=5000` looks longer, with a fresh seed each time.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use std::collections::BTreeMap;
use weir_cc::cue::{
    EstimateKind, Fate, FramePlayout, IntervalPacket, IntervalReport, NadaMode, NadaReport, NextDataUnit, OneWayDelay,
    QueueState, ReceivedPacket, ReceiverEstimate, ReportBlock, SentPacket, TransportFeedback,
};
use weir_cc::{Controller, Cue, Limits, Receiver, ReceiverController, Registry, RepairPlan, ReportedPacket, Sender};
use weir_cc::{SentHistory, Setup, Spec, Target};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

const DEFAULT_CASES: u32 = 150;
/// More probe clusters than this at one instant are a flood.
const MAX_PROBES_AT_ONCE: usize = 16;
/// Deadlines further ahead are not waited for.
const REACHABLE: TimeDelta = TimeDelta::from_secs(86_400);

#[derive(Clone, Copy, Debug)]
enum Reports {
    /// The packets not yet told of, in order, some of them lost.
    True,
    /// As true, and told in the opposite order.
    Reordered,
    /// The message before once more.
    Duplicate,
    /// Packets of long ago.
    Late,
    /// Sequence numbers that may never have been sent, with any arrival time.
    Forged,
    /// Nothing at all.
    Empty,
}

#[derive(Clone, Copy, Debug)]
enum Rtt {
    Absent,
    Measured,
    Absurd(i64),
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Media,
    Padding,
    Repair,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Send {
        gap_us: u32,
        size: u16,
        kind: Kind,
        queued: u32,
    },
    Feedback {
        reports: Reports,
        gap_us: u32,
        loss: u64,
        ecn: u64,
        jitter_us: u32,
        absurd: i64,
        rtt: Rtt,
    },
    ReportBlock {
        fraction_lost: u8,
        cumulative_lost: i32,
        expected: u16,
        jitter_ns: i64,
        rtt: Rtt,
    },
    /// A report with run lengths: of the media packets not yet in one, or of the packets before once more.
    Interval {
        again: bool,
        gap_us: u32,
        lost: u64,
        discarded: u64,
        repaired: u64,
        /// Least, mean and last one-way delay.
        delays_ns: Option<(i64, i64, i64)>,
        rtt: Rtt,
    },
    NextUnit {
        sequence: u64,
        playout_ns: Option<i64>,
    },
    Estimate {
        bps: u64,
        tmmbr: bool,
    },
    Nada {
        ramp_up: bool,
        delay_ns: i64,
        bps: u64,
        rtt: Rtt,
    },
    Queue {
        added: u32,
        behind: u32,
        age_ns: i64,
    },
    Limits {
        floor: u64,
        ceiling: u64,
    },
    /// The deadline that the controller gave, and `late_us` more.
    Timeout {
        late_us: u32,
    },
    Silence {
        ms: u32,
    },
    /// The session counts what left so long ago as gone.
    GiveUp {
        age_ms: u32,
    },
}

#[derive(Clone, Copy, Debug)]
enum ReceiverOp {
    Packet {
        gap_us: u32,
        size: u16,
        departure: Option<i64>,
        step: i8,
        rtp_step: u32,
        marker: bool,
        ecn: u8,
    },
    /// A packet with a departure time in keeping with its arrival.
    Steady {
        gap_us: u32,
        size: u16,
        delay_us: u32,
    },
    Playout {
        rtp_timestamp: u32,
        complete: bool,
        discarded: u32,
        buffered_ns: i64,
    },
    Rtt {
        ns: i64,
    },
    Poll {
        late_us: u32,
    },
    Silence {
        ms: u32,
    },
}

fn rate() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), Just(1), 10_000u64..20_000_000, any::<u64>()]
}
fn nanos() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), Just(i64::MIN), Just(i64::MAX), Just(-1), 0i64..2_000_000_000, any::<i64>()]
}
fn rtt() -> impl Strategy<Value = Rtt> {
    prop_oneof![2 => Just(Rtt::Absent), 6 => Just(Rtt::Measured), 1 => nanos().prop_map(Rtt::Absurd)]
}
fn gap_us() -> impl Strategy<Value = u32> {
    prop_oneof![2 => Just(0), 6 => 0u32..8_000, 2 => 0u32..200_000]
}
fn reports() -> impl Strategy<Value = Reports> {
    prop_oneof![
        8 => Just(Reports::True),
        1 => Just(Reports::Reordered),
        1 => Just(Reports::Duplicate),
        1 => Just(Reports::Late),
        1 => Just(Reports::Forged),
        1 => Just(Reports::Empty),
    ]
}

fn op() -> impl Strategy<Value = Op> {
    let size = prop_oneof![1 => Just(0u16), 8 => 100u16..1_500, 1 => any::<u16>()];
    let mask = || prop_oneof![4 => Just(0u64), 2 => any::<u64>(), 1 => Just(u64::MAX)];
    // Mostly no absurd arrival time, for one is enough to spoil a run.
    let absurd = prop_oneof![30 => Just(0i64), 1 => nanos()];
    let kind = prop_oneof![8 => Just(Kind::Media), 1 => Just(Kind::Padding), 1 => Just(Kind::Repair)];
    let delay = || prop_oneof![8 => 20_000_000i64..100_000_000, 1 => nanos()];
    let delays = prop::option::of((delay(), delay(), delay()));
    let interval = (prop::bool::weighted(0.1), gap_us(), mask(), mask(), mask(), delays, rtt());
    let feedback = (reports(), gap_us(), mask(), mask(), 0u32..60_000, absurd, rtt());
    prop_oneof![
        24 => (gap_us(), size, kind, 0u32..100_000).prop_map(
            |(gap_us, size, kind, queued)| Op::Send { gap_us, size, kind, queued }),
        8 => interval.prop_map(|(again, gap_us, lost, discarded, repaired, delays_ns, rtt)| Op::Interval {
            again, gap_us, lost, discarded, repaired, delays_ns, rtt }),
        1 => (prop_oneof![0u64..200_000, any::<u64>()], prop::option::of(nanos())).prop_map(
            |(sequence, playout_ns)| Op::NextUnit { sequence, playout_ns }),
        12 => feedback.prop_map(|(reports, gap_us, loss, ecn, jitter_us, absurd, rtt)| Op::Feedback {
            reports, gap_us, loss, ecn, jitter_us, absurd, rtt }),
        2 => (any::<u8>(), any::<i32>(), any::<u16>(), nanos(), rtt()).prop_map(
            |(fraction_lost, cumulative_lost, expected, jitter_ns, rtt)| Op::ReportBlock {
                fraction_lost, cumulative_lost, expected, jitter_ns, rtt }),
        2 => (rate(), any::<bool>()).prop_map(|(bps, tmmbr)| Op::Estimate { bps, tmmbr }),
        2 => (any::<bool>(), nanos(), rate(), rtt()).prop_map(
            |(ramp_up, delay_ns, bps, rtt)| Op::Nada { ramp_up, delay_ns, bps, rtt }),
        3 => (0u32..200_000, 0u32..200_000, nanos()).prop_map(
            |(added, behind, age_ns)| Op::Queue { added, behind, age_ns }),
        1 => (rate(), rate()).prop_map(|(floor, ceiling)| Op::Limits { floor, ceiling }),
        1 => rate().prop_map(|r| Op::Limits { floor: r, ceiling: r }),
        6 => prop_oneof![3 => Just(0u32), 1 => 0u32..500_000].prop_map(|late_us| Op::Timeout { late_us }),
        1 => (0u32..100_000).prop_map(|ms| Op::Silence { ms }),
        1 => (0u32..2_000).prop_map(|age_ms| Op::GiveUp { age_ms }),
    ]
}

fn receiver_op() -> impl Strategy<Value = ReceiverOp> {
    let packet = (gap_us(), any::<u16>(), prop::option::of(nanos()), any::<i8>(), any::<u32>(), any::<bool>(), 0u8..4);
    prop_oneof![
        2 => packet.prop_map(|(gap_us, size, departure, step, rtp_step, marker, ecn)| ReceiverOp::Packet {
            gap_us, size, departure, step, rtp_step, marker, ecn }),
        12 => (gap_us(), 100u16..1_500, 0u32..300_000).prop_map(
            |(gap_us, size, delay_us)| ReceiverOp::Steady { gap_us, size, delay_us }),
        2 => (any::<u32>(), any::<bool>(), any::<u32>(), nanos()).prop_map(
            |(rtp_timestamp, complete, discarded, buffered_ns)| ReceiverOp::Playout {
                rtp_timestamp, complete, discarded, buffered_ns }),
        1 => nanos().prop_map(|ns| ReceiverOp::Rtt { ns }),
        4 => prop_oneof![3 => Just(0u32), 1 => 0u32..500_000].prop_map(|late_us| ReceiverOp::Poll { late_us }),
        1 => (0u32..100_000).prop_map(|ms| ReceiverOp::Silence { ms }),
    ]
}

fn setup_strategy() -> impl Strategy<Value = Setup> {
    (rate(), rate(), rate(), 0i64..1_000_000, any::<u64>()).prop_map(|(floor, ceiling, start, now, seed)| Setup {
        limits: Limits { floor: DataRate::from_bps(floor), ceiling: DataRate::from_bps(ceiling) },
        start_rate: DataRate::from_bps(start),
        now: Timestamp::from_millis(now),
        seed,
        params: Vec::new(),
    })
}

/// Some of the entry's parameters, anywhere in their ranges, the ends included.
fn params_strategy(spec: &Spec) -> impl Strategy<Value = Vec<(String, f64)>> + use<> {
    let known = spec.params.clone();
    let share = prop_oneof![Just(0.0), Just(1.0), 0.0f64..=1.0];
    prop::collection::vec((any::<prop::sample::Index>(), share), 0..8).prop_map(move |picks| {
        let picks = picks.iter().filter(|_| !known.is_empty());
        picks
            .map(|(i, share)| (i.get(&known), share))
            .map(|(p, s)| (p.name.into(), p.min + s * (p.max - p.min)))
            .collect()
    })
}

/// What a run has shown, for comparison with another of the same operations.
#[derive(Clone, PartialEq, Debug, Default)]
struct Trace {
    targets: Vec<Target>,
    probes: Vec<(u32, u64)>,
    metrics: Vec<u64>,
}

/// A sender half with the session's part of the work around it, checking as it goes.
struct Harness {
    controller: Sender,
    limits: Limits,
    now: Timestamp,
    history: SentHistory,
    /// The flight as the history's rules have it.
    flight: BTreeMap<u64, (Timestamp, u64)>,
    next: u64,
    /// First packet that no true report has covered.
    untold: u64,
    last_reports: Vec<ReportedPacket>,
    /// Media packets that no interval report has covered, and those of the last one.
    unreported: Vec<IntervalPacket>,
    last_interval: Vec<IntervalPacket>,
    pending_probe: Option<(u32, u32)>,
    names: Vec<&'static str>,
    trace: Trace,
}

type Checked = Result<(), TestCaseError>;

impl Harness {
    fn new(spec: &Spec, setup: &Setup) -> Result<Self, TestCaseError> {
        let pair = (spec.make)(setup).map_err(|e| TestCaseError::fail(e.to_string()))?;
        let mut h = Self {
            controller: pair.sender,
            limits: setup.limits,
            now: setup.now,
            history: SentHistory::new(),
            flight: BTreeMap::new(),
            next: setup.seed % 100_000,
            untold: setup.seed % 100_000,
            last_reports: Vec::new(),
            unreported: Vec::new(),
            last_interval: Vec::new(),
            pending_probe: None,
            names: Vec::new(),
            trace: Trace::default(),
        };
        h.controller.metrics(&mut |name, _| h.names.push(name));
        h.check()?;
        Ok(h)
    }

    fn advance(&mut self, us: u32) {
        self.now += TimeDelta::from_micros(i64::from(us));
    }

    fn apply(&mut self, op: Op) -> Checked {
        match op {
            Op::Send { gap_us, size, kind, queued } => {
                self.advance(gap_us);
                self.poll_probes()?;
                self.send(size, kind, queued);
            }
            Op::Interval { .. } => self.interval(op),
            Op::NextUnit { sequence, playout_ns } => {
                let playout_delay = playout_ns.map(TimeDelta::from_nanos);
                let unit = NextDataUnit { now: self.now, next_sequence: sequence, playout_delay };
                self.controller.on_cue(&Cue::NextDataUnit(unit));
            }
            Op::Feedback { .. } => self.feedback(op)?,
            Op::ReportBlock { fraction_lost, cumulative_lost, expected, jitter_ns, rtt } => {
                let block = ReportBlock {
                    now: self.now,
                    fraction_lost: f64::from(fraction_lost) / 256.0,
                    cumulative_lost: i64::from(cumulative_lost),
                    highest_sequence: self.next,
                    expected: u64::from(expected),
                    jitter: TimeDelta::from_nanos(jitter_ns),
                    rtt: self.rtt(rtt),
                };
                self.controller.on_cue(&Cue::ReportBlock(block));
            }
            Op::Estimate { bps, tmmbr } => {
                let kind = if tmmbr { EstimateKind::Tmmbr } else { EstimateKind::Remb };
                let estimate = ReceiverEstimate { now: self.now, rate: DataRate::from_bps(bps), kind };
                self.controller.on_cue(&Cue::ReceiverEstimate(estimate));
            }
            Op::Nada { ramp_up, delay_ns, bps, rtt } => {
                let report = NadaReport {
                    now: self.now,
                    mode: if ramp_up { NadaMode::AcceleratedRampUp } else { NadaMode::GradualUpdate },
                    aggregate_delay: TimeDelta::from_nanos(delay_ns),
                    receive_rate: DataRate::from_bps(bps),
                    rtt: self.rtt(rtt),
                };
                self.controller.on_cue(&Cue::NadaReport(report));
            }
            Op::Queue { added, behind, age_ns } => {
                let (added, behind) = (DataSize::from_bytes(u64::from(added)), DataSize::from_bytes(u64::from(behind)));
                let oldest_age = TimeDelta::from_nanos(age_ns);
                self.controller.on_queue(&QueueState { now: self.now, added, queued: added + behind, oldest_age });
            }
            Op::Limits { floor, ceiling } => {
                self.limits = Limits { floor: DataRate::from_bps(floor), ceiling: DataRate::from_bps(ceiling) };
                self.controller.on_limits(self.limits, self.now);
            }
            Op::Timeout { late_us } => {
                // A deadline beyond any run, drawn from an absurd round-trip time, is one that nobody reaches.
                let at = self.controller.poll_timeout().map(|t| t.0).filter(|&t| t - self.now < REACHABLE);
                if let Some(at) = at {
                    self.now = self.now.max(at) + TimeDelta::from_micros(i64::from(late_us));
                    self.controller.on_timeout(self.now);
                    let next = self.controller.poll_timeout();
                    prop_assert!(next.is_none_or(|(t, _)| t > self.now), "{next:?} is not after {:?}", self.now);
                }
            }
            Op::Silence { ms } => self.now += TimeDelta::from_millis(i64::from(ms)),
            Op::GiveUp { age_ms } => {
                let before = self.now - TimeDelta::from_millis(i64::from(age_ms));
                self.history.give_up_before(before);
                self.flight.retain(|_, p| p.0 >= before);
            }
        }
        self.check()
    }

    fn interval(&mut self, op: Op) {
        let Op::Interval { again, gap_us, lost, discarded, repaired, delays_ns, rtt } = op else { return };
        self.advance(gap_us);
        if !again {
            self.last_interval = std::mem::take(&mut self.unreported);
        }
        for (k, p) in self.last_interval.iter_mut().enumerate() {
            let is = |mask: u64| mask >> (k % 64) & 1 == 1;
            p.fate = match (is(lost), is(discarded)) {
                (true, _) => Fate::Lost,
                (_, true) => Fate::Discarded,
                _ => Fate::Received,
            };
            p.repaired = p.fate != Fate::Received && is(repaired);
        }
        let ns = TimeDelta::from_nanos;
        let one_way_delay = delays_ns.map(|(a, b, c)| OneWayDelay { min: ns(a), mean: ns(b), last: ns(c) });
        let rtt = self.rtt(rtt);
        let report = IntervalReport { now: self.now, packets: &self.last_interval, one_way_delay, rtt };
        self.controller.on_cue(&Cue::IntervalReport(report));
    }

    fn send(&mut self, size: u16, kind: Kind, queued: u32) {
        let probe = self.pending_probe.map_or(0, |p| p.0);
        self.pending_probe = self.pending_probe.filter(|p| p.1 > 1).map(|(id, left)| (id, left - 1));
        let mut packet = SentPacket {
            now: self.now,
            sequence: self.next,
            size: DataSize::from_bytes(u64::from(size)),
            is_padding: kind == Kind::Padding,
            is_repair: kind == Kind::Repair,
            probe,
            queued: DataSize::from_bytes(u64::from(queued)),
            bytes_in_flight: DataSize::ZERO,
        };
        self.history.on_sent(&packet);
        packet.bytes_in_flight = self.history.bytes_in_flight();
        self.controller.on_packet_sent(&packet);
        self.flight.insert(self.next, (self.now, u64::from(size)));
        if kind == Kind::Media {
            self.unreported.push(IntervalPacket {
                sequence: self.next,
                departure: self.now,
                size: packet.size,
                fate: Fate::Received,
                repaired: false,
            });
        }
        self.next += 1;
    }

    fn rtt(&self, rtt: Rtt) -> Option<TimeDelta> {
        match rtt {
            Rtt::Absent => None,
            Rtt::Measured => Some(TimeDelta::from_millis(80)),
            Rtt::Absurd(ns) => Some(TimeDelta::from_nanos(ns)),
        }
    }

    fn feedback(&mut self, op: Op) -> Checked {
        let Op::Feedback { reports, gap_us, loss, ecn, jitter_us, absurd, rtt } = op else { return Ok(()) };
        self.advance(gap_us);
        let report = |i: u64, sequence: u64, at: Timestamp| {
            let jitter = i64::from(jitter_us) * (i as i64 % 3);
            let arrival = RemoteTimestamp::from_nanos(if absurd == 0 { at.as_nanos() } else { absurd });
            let arrival = arrival + TimeDelta::from_micros(jitter);
            let ecn = if ecn >> (i % 64) & 1 == 1 { Ecn::Ce } else { Ecn::Ect0 };
            ReportedPacket { sequence, arrival: (loss >> (i % 64) & 1 == 0).then_some(arrival), ecn }
        };
        let batch: Vec<_> = match reports {
            Reports::True | Reports::Reordered => {
                let told = (self.untold..self.next).zip(0u64..);
                let mut all: Vec<_> = told.map(|(s, i)| report(i, s, self.now)).collect();
                self.untold = self.next;
                if matches!(reports, Reports::Reordered) {
                    all.reverse();
                }
                all
            }
            Reports::Duplicate => self.last_reports.clone(),
            Reports::Late => {
                let from = self.next.saturating_sub(u64::from(jitter_us % 3_000));
                (from..from + 20).zip(0u64..).map(|(s, i)| report(i, s, self.now)).collect()
            }
            Reports::Forged => (0..8).map(|i| report(i, loss.rotate_left(8 * i as u32), self.now)).collect(),
            Reports::Empty => Vec::new(),
        };
        self.model_resolve(&batch);
        let mut packets = Vec::new();
        self.history.resolve(batch.iter().copied(), &mut packets);
        self.last_reports = batch;
        let feedback = TransportFeedback {
            now: self.now,
            packets: &packets,
            bytes_in_flight: self.history.bytes_in_flight(),
            rtt: self.rtt(rtt),
        };
        self.controller.on_cue(&Cue::TransportFeedback(feedback));
        prop_assert!(packets.windows(2).all(|w| w[0].sequence < w[1].sequence), "each once, in send order");
        Ok(())
    }

    /// What is reported leaves the flight, and so does all that was sent before the first of it.
    fn model_resolve(&mut self, batch: &[ReportedPacket]) {
        let remembered = self.next - self.history.len() as u64..self.next;
        let known = || batch.iter().map(|r| r.sequence).filter(|s| remembered.contains(s));
        let Some(lowest) = known().min() else { return };
        known().for_each(|s| {
            self.flight.remove(&s);
        });
        self.flight = self.flight.split_off(&lowest);
    }

    fn poll_probes(&mut self) -> Checked {
        for n in 0.. {
            let Some(p) = self.controller.poll_probe(self.now) else { break };
            prop_assert!(n < MAX_PROBES_AT_ONCE, "a flood of probes");
            prop_assert!(p.id != 0 && p.rate > DataRate::ZERO, "{p:?}");
            self.trace.probes.push((p.id, p.rate.as_bps()));
            self.pending_probe = Some((p.id, p.min_packets.clamp(1, 20)));
        }
        Ok(())
    }

    fn check(&mut self) -> Checked {
        let flight = self.flight.values().map(|p| p.1).sum::<u64>();
        prop_assert_eq!(self.history.bytes_in_flight().as_bytes(), flight, "bytes in flight are conserved");
        let t = self.controller.target();
        prop_assert_eq!(t, self.controller.target(), "asking twice changes nothing");
        prop_assert_eq!(self.limits.clamp(t.media_rate), t.media_rate, "inside {:?}", self.limits);
        prop_assert!(t.media_rate == DataRate::ZERO || t.pacing_rate > DataRate::ZERO, "{t:?} never sends");
        prop_assert!(t.window.is_none_or(|w| !w.is_zero()), "{t:?} never sends");
        prop_assert!(t.max_queue_age.is_none_or(|a| a > TimeDelta::ZERO), "{t:?} discards everything");
        match t.repair {
            RepairPlan::Parity { interval } => prop_assert!(interval >= 2, "{t:?}"),
            RepairPlan::ReedSolomon { block, repair } => prop_assert!(repair < block, "{t:?}"),
            _ => {}
        }
        self.trace.targets.push(t);
        let (mut at, mut wrong) = (0, None);
        let mut probes = [0.0; 4];
        let (names, metrics) = (&self.names, &mut self.trace.metrics);
        self.controller.metrics(&mut |name, value| {
            if names.get(at) != Some(&name) || value.is_infinite() {
                wrong.get_or_insert((name, value));
            }
            at += 1;
            metrics.push(value.to_bits());
            let counts = ["fec_enabled", "fec_raised", "fec_kept", "fec_failed"];
            counts.iter().position(|&c| c == name).into_iter().for_each(|k| probes[k] = value);
        });
        let [enabled, ended @ ..] = probes;
        let open = enabled - ended.iter().sum::<f64>();
        prop_assert!(open == 0.0 || open == 1.0, "one probe at a time, each ends in one way: {probes:?}");
        prop_assert!(wrong.is_none() && at == names.len(), "metric {wrong:?}, {at} of {}", names.len());
        Ok(())
    }
}

/// A receiver half, told of packets.
struct ReceiverHarness {
    controller: Receiver,
    now: Timestamp,
    sequence: u64,
    rtp_timestamp: u32,
    names: Vec<&'static str>,
    reports: Vec<String>,
}

impl ReceiverHarness {
    fn apply(&mut self, op: ReceiverOp) -> Checked {
        match op {
            ReceiverOp::Packet { gap_us, size, departure, step, rtp_step, marker, ecn } => {
                self.now += TimeDelta::from_micros(i64::from(gap_us));
                self.sequence = self.sequence.saturating_add_signed(i64::from(step));
                self.rtp_timestamp = self.rtp_timestamp.wrapping_add(rtp_step);
                let departure = departure.map(RemoteTimestamp::from_nanos);
                self.packet(size, departure, marker, Ecn::from_bits(ecn));
            }
            ReceiverOp::Steady { gap_us, size, delay_us } => {
                self.now += TimeDelta::from_micros(i64::from(gap_us));
                self.sequence += 1;
                self.rtp_timestamp = self.rtp_timestamp.wrapping_add(3_000);
                let departure = self.now - TimeDelta::from_micros(i64::from(delay_us));
                self.packet(size, Some(RemoteTimestamp::from_nanos(departure.as_nanos())), true, Ecn::Ect0);
            }
            ReceiverOp::Playout { rtp_timestamp, complete, discarded, buffered_ns } => {
                // Of the last packet, or of anything.
                let rtp_timestamp = if complete { self.rtp_timestamp } else { rtp_timestamp };
                let buffered = TimeDelta::from_nanos(buffered_ns);
                let frame = FramePlayout { now: self.now, rtp_timestamp, complete, discarded, buffered };
                self.controller.on_playout(&frame);
                let report = self.controller.poll_report(self.now);
                self.reports.extend(report.map(|r| format!("{r:?}")));
            }
            ReceiverOp::Rtt { ns } => self.controller.on_rtt(TimeDelta::from_nanos(ns), self.now),
            ReceiverOp::Poll { late_us } => {
                let at = self.controller.poll_timeout().unwrap_or(self.now);
                self.now = self.now.max(at) + TimeDelta::from_micros(i64::from(late_us));
                self.poll()?;
            }
            ReceiverOp::Silence { ms } => self.now += TimeDelta::from_millis(i64::from(ms)),
        }
        let (mut at, mut wrong) = (0, None);
        self.controller.metrics(&mut |name, value| {
            if self.names.get(at) != Some(&name) || value.is_infinite() {
                wrong.get_or_insert((name, value));
            }
            at += 1;
        });
        prop_assert!(wrong.is_none() && at == self.names.len(), "metric {wrong:?}, {at} of {}", self.names.len());
        Ok(())
    }

    fn packet(&mut self, size: u16, departure: Option<RemoteTimestamp>, marker: bool, ecn: Ecn) {
        self.controller.on_packet_received(&ReceivedPacket {
            now: self.now,
            departure,
            size: DataSize::from_bytes(u64::from(size)),
            payload: DataSize::from_bytes(u64::from(size)),
            sequence: self.sequence,
            rtp_timestamp: self.rtp_timestamp,
            marker,
            ecn,
        });
        let report = self.controller.poll_report(self.now);
        self.reports.extend(report.map(|r| format!("{r:?}")));
    }

    fn poll(&mut self) -> Checked {
        let report = self.controller.poll_report(self.now);
        self.reports.extend(report.map(|r| format!("{r:?}")));
        let next = self.controller.poll_timeout();
        prop_assert!(next.is_none_or(|t| t > self.now), "{next:?} is not after {:?}", self.now);
        Ok(())
    }
}

fn run_sender(spec: &Spec, setup: &Setup, ops: &[Op]) -> Result<Trace, TestCaseError> {
    let mut h = Harness::new(spec, setup)?;
    ops.iter().try_for_each(|&op| h.apply(op))?;
    Ok(h.trace)
}

fn run_receiver(spec: &Spec, setup: &Setup, ops: &[ReceiverOp]) -> Result<Vec<String>, TestCaseError> {
    let pair = (spec.make)(setup).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let Some(controller) = pair.receiver else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    controller.metrics(&mut |name, _| names.push(name));
    let mut h =
        ReceiverHarness { controller, now: setup.now, sequence: 1_000, rtp_timestamp: 0, names, reports: Vec::new() };
    ops.iter().try_for_each(|&op| h.apply(op))?;
    Ok(h.reports)
}

/// Runs the property over every entry of the registry, alone and with its steps probed.
fn every_controller<S: Strategy>(strategy: impl Fn(&Spec) -> S, check: impl Fn(&Spec, S::Value) -> Checked) {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = DEFAULT_CASES;
        config.rng_seed = RngSeed::Fixed(2017);
    }
    let registry = Registry::builtin();
    for spec in registry.specs().iter().chain(registry.probing_specs()) {
        let result = TestRunner::new(config.clone()).run(&strategy(spec), |value| check(spec, value));
        result.unwrap_or_else(|e| panic!("{}: {e}", spec.name));
    }
}

#[test]
fn senders_hold_to_the_interface() {
    every_controller(
        |_| (setup_strategy(), prop::collection::vec(op(), 1..300)),
        |spec, (setup, ops)| {
            let first = run_sender(spec, &setup, &ops)?;
            prop_assert_eq!(first, run_sender(spec, &setup, &ops)?, "the same operations, the same targets");
            Ok(())
        },
    );
}

#[test]
fn senders_hold_to_it_with_any_parameters() {
    every_controller(
        |spec| (setup_strategy(), params_strategy(spec), prop::collection::vec(op(), 1..200)),
        |spec, (mut setup, params, ops)| {
            setup.params = params;
            run_sender(spec, &setup, &ops).map(|_| ())
        },
    );
}

#[test]
fn receivers_hold_to_the_interface() {
    every_controller(
        |spec| (setup_strategy(), params_strategy(spec), prop::collection::vec(receiver_op(), 1..300)),
        |spec, (mut setup, params, ops)| {
            setup.params = params;
            let first = run_receiver(spec, &setup, &ops)?;
            prop_assert_eq!(first, run_receiver(spec, &setup, &ops)?, "the same operations, the same reports");
            Ok(())
        },
    );
}
