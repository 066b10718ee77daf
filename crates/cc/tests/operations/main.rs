//! Properties of every controller under random sequences of operations, for sender and receiver halves of each entry of
//! the registry.
//!
//! New controllers are included automatically. `PROPTEST_CASES=5000` searches longer, with a new seed each time.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use weir_cc::cue::{
    EstimateKind, Fate, FramePlayout, IntervalPacket, IntervalReport, NadaMode, NadaReport, NextDataUnit, OneWayDelay,
    QueueState, ReceivedPacket, ReceiverEstimate, ReportBlock, SendRejected, SentPacket, TransportFeedback,
    TransportRate,
};
use weir_cc::{Controller, Cue, Limits, Receiver, ReceiverController, Registry, RepairPlan, ReportedPacket, Sender};
use weir_cc::{SentHistory, Setup, Spec, Target};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

mod clock;
mod receiver;
mod sender;

use clock::OtherClock;
use receiver::ReceiverHarness;

const DEFAULT_CASES: u32 = 75;
/// Upper bound of probe clusters at one time.
const MAX_PROBES_AT_ONCE: usize = 16;
/// Later deadlines are not waited for.
const REACHABLE: TimeDelta = TimeDelta::from_secs(86_400);

#[derive(Clone, Copy, Debug)]
enum Reports {
    /// The packets not yet reported, in order, some of them lost.
    True,
    /// The same, reported in reverse order.
    Reordered,
    /// The previous message again.
    Duplicate,
    /// Packets sent long ago.
    Late,
    /// Sequence numbers that may never have been sent, with arbitrary arrival times.
    Forged,
    /// No packets.
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
    /// A report with run lengths of the media packets not yet covered, or of the previous packets again.
    Interval {
        again: bool,
        gap_us: u32,
        lost: u64,
        discarded: u64,
        repaired: u64,
        /// Minimum, mean and last one-way delay.
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
    /// A report by the transport below the session.
    Transport {
        bps: u64,
        smoothed: u64,
        rtt: Rtt,
    },
    Rejected {
        packets: u32,
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
    /// The controller's deadline plus `late_us`.
    Timeout {
        late_us: u32,
    },
    Silence {
        ms: u32,
    },
    /// The other end's clock is another from now on: set, faster or slower, or coarse.
    Clock {
        step_ms: i16,
        ppm: i16,
        granularity_us: u16,
    },
    /// The session gives up packets sent this long ago.
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
    /// A packet whose departure time is consistent with its arrival.
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
    /// As [`Op::Clock`], of the sender.
    Clock {
        step_ms: i16,
        ppm: i16,
        granularity_us: u16,
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

/// A step of up to two seconds, a drift of up to 100 ppm, and times in steps of up to 4 ms.
fn clock() -> impl Strategy<Value = (i16, i16, u16)> {
    let step = prop_oneof![2 => Just(0i16), 1 => Just(2_000), 1 => Just(-2_000), 2 => -2_000i16..=2_000];
    let ppm = prop_oneof![Just(-100i16), Just(0), Just(100)];
    (step, ppm, prop_oneof![Just(0u16), Just(4_000), 0u16..=4_000])
}

fn op() -> impl Strategy<Value = Op> {
    let size = prop_oneof![1 => Just(0u16), 8 => 100u16..1_500, 1 => any::<u16>()];
    let mask = || prop_oneof![4 => Just(0u64), 2 => any::<u64>(), 1 => Just(u64::MAX)];
    // Mostly plausible arrival times, since one absurd time can spoil a run.
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
        2 => (rate(), rate(), rtt()).prop_map(|(bps, smoothed, rtt)| Op::Transport { bps, smoothed, rtt }),
        2 => prop_oneof![0u32..40, any::<u32>()].prop_map(|packets| Op::Rejected { packets }),
        3 => (0u32..200_000, 0u32..200_000, nanos()).prop_map(
            |(added, behind, age_ns)| Op::Queue { added, behind, age_ns }),
        1 => (rate(), rate()).prop_map(|(floor, ceiling)| Op::Limits { floor, ceiling }),
        1 => rate().prop_map(|r| Op::Limits { floor: r, ceiling: r }),
        6 => prop_oneof![3 => Just(0u32), 1 => 0u32..500_000].prop_map(|late_us| Op::Timeout { late_us }),
        1 => (0u32..100_000).prop_map(|ms| Op::Silence { ms }),
        1 => clock().prop_map(|(step_ms, ppm, granularity_us)| Op::Clock { step_ms, ppm, granularity_us }),
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
        1 => clock().prop_map(|(step_ms, ppm, granularity_us)| ReceiverOp::Clock { step_ms, ppm, granularity_us }),
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

/// Some of the entry's parameters, anywhere in their ranges including the ends.
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

/// The course of a run, for comparison with another of the same operations.
#[derive(Clone, PartialEq, Debug, Default)]
struct Trace {
    targets: Vec<Target>,
    probes: Vec<(u32, u64)>,
    metrics: Vec<u64>,
}

/// A sender half and the session's work around it, with checks.
struct Harness {
    controller: Sender,
    limits: Limits,
    now: Timestamp,
    history: SentHistory,
    /// The flight by the history's rules.
    flight: BTreeMap<u64, (Timestamp, u64)>,
    next: u64,
    /// First packet that no true report has covered.
    first_unreported: u64,
    last_reports: Vec<ReportedPacket>,
    /// Media packets not covered by an interval report, and those of the last one.
    unreported: Vec<IntervalPacket>,
    last_interval: Vec<IntervalPacket>,
    pending_probe: Option<(u32, u32)>,
    names: Vec<&'static str>,
    clock: OtherClock,
    trace: Trace,
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::builtin);

type Checked = Result<(), TestCaseError>;

fn run_sender(spec: &Spec, setup: &Setup, ops: &[Op]) -> Result<Trace, TestCaseError> {
    let mut h = Harness::new(spec, setup)?;
    ops.iter().try_for_each(|&op| h.apply(op))?;
    Ok(h.trace)
}

fn run_receiver(spec: &Spec, setup: &Setup, ops: &[ReceiverOp]) -> Result<Vec<String>, TestCaseError> {
    let pair = REGISTRY.make(&spec.name, setup).map_err(|e| TestCaseError::fail(e.to_string()))?;
    let Some(controller) = pair.receiver else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    controller.metrics(&mut |name, _| names.push(name));
    let mut h = ReceiverHarness {
        controller,
        now: setup.now,
        sequence: 1_000,
        rtp_timestamp: 0,
        names,
        clock: OtherClock::default(),
        reports: Vec::new(),
    };
    ops.iter().try_for_each(|&op| h.apply(op))?;
    Ok(h.reports)
}

/// Checks the property for every entry of the registry, alone, with probing of its steps and with padding.
fn every_controller<S: Strategy>(strategy: impl Fn(&Spec) -> S, check: impl Fn(&Spec, S::Value) -> Checked) {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = DEFAULT_CASES;
        config.rng_seed = RngSeed::Fixed(2017);
    }
    for spec in REGISTRY.specs().chain(REGISTRY.probing_specs()).chain(REGISTRY.filled_specs()) {
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
