//! Controllers fed with a recorded call: what each would have asked for on this feedback, not what would have happened.
//!
//! The loop is open: packets and feedback are the recorded ones, whatever a controller asks for. A controller that would
//! have sent more than was sent is never told what that had led to.

use crate::schema::{
    BlockReport, CandidatePair, Direction, EstimateKind, EventKind, Packet, PairChange, ProbeStep, Reported,
};
use crate::{Call, Format, Recording, parameters};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use weir_cc::cue::{ReportBlock, SentPacket};
use weir_cc::flow::Refused;
use weir_cc::{Cue, Flow, Limits, ProbeCluster, Registry, ReportedPacket, Setup};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

/// Label of every face that shows these targets.
pub const LABEL: &str = "what it would have asked for on this feedback, not what would have happened";

/// Time between two targets.
const STEP: TimeDelta = TimeDelta::from_millis(100);
/// Most targets of a controller: two days.
const MAX_STEPS: usize = 1_728_000;
/// Packets sent whose reports are waited for.
const IN_FLIGHT: usize = 65_536;
/// Probe clusters that wait, on either side.
const MAX_PROBES: usize = 16;
/// Least size of a packet that a cluster begins with, in bytes.
const SMALL: u64 = 200;
/// Most bytes of an RTP header with its extensions.
const HEADER: u32 = 64;
/// Bytes of UDP and IPv4, which controllers count for each packet by themselves, and of what libwebrtc counts of an event log that has no route: UDP,
/// IPv6, which ICE prefers (RFC 8421), and SRTP's tag (RFC 3711, section 5.2).
const OVERHEAD: u64 = 28;
const USUAL_OVERHEAD: u64 = 58;
/// Bounds and start of libwebrtc's defaults; the ceiling is the highest rate that was probed or estimated, if any was.
const FLOOR: DataRate = DataRate::from_kbps(30);
const START: DataRate = DataRate::from_kbps(300);
const CEILING: DataRate = DataRate::from_mbps(20);

/// Targets of one controller over a recorded call.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Replay {
    /// The controller.
    pub controller: String,
    /// Meaning of these targets.
    pub label: &'static str,
    /// Time in Unix ms, and target in kbit/s, each 100 ms.
    pub targets: Vec<(i64, f64)>,
    /// Median over time of the difference to the logged estimate by delay, as a share of it; none without one.
    pub off_delay: Option<f64>,
    /// The same of the lower one of the logged estimates by delay and by loss.
    pub off_estimate: Option<f64>,
}

/// Why there is no replay.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// No controller of this name that per-packet feedback is enough for.
    #[error("{0}")]
    Refused(String),
    /// The call has no sent packets with transport-wide feedback on them.
    #[error("no recording has sent packets with transport-wide numbers and the feedback on them")]
    NoFeedback,
}

/// A step of a recorded call, in order of time.
enum Step<'a> {
    Sent(&'a Packet),
    Feedback(&'a [Reported]),
    /// A receiver report, for controllers that take the round trip from them.
    Block(&'a BlockReport),
    /// Another candidate pair carries the call from here on.
    Route,
    /// A probe cluster of so many packets and bytes at least begins with the next packet.
    Probe(u32, u64),
}

/// Clusters that the recorded call sends, and those that the controller asks for: these are taken for each other in
/// order.
#[derive(Default)]
struct Probes {
    asked: VecDeque<ProbeCluster>,
    sent: VecDeque<Cluster>,
    /// Whether clusters begin with a packet of padding.
    padded: bool,
    /// Bytes of the network's headers of each packet.
    overhead: u64,
}

/// A cluster that is sent: sends and bytes that are to come, and the time of the last send.
struct Cluster {
    id: u32,
    sends: u32,
    bytes: u64,
    last: Option<Timestamp>,
}

impl Probes {
    fn poll(&mut self, flow: &mut Flow, now: Timestamp) {
        while let Some(cluster) = flow.poll_probe(now) {
            self.asked.push_back(cluster);
            if self.asked.len() > MAX_PROBES {
                self.asked.pop_front();
            }
        }
    }

    /// The pacer sends what it was asked for, also when nobody waits for it.
    fn forget(&mut self) {
        self.asked.clear();
        self.sent.iter_mut().for_each(|c| c.id = 0);
    }

    fn begin(&mut self, sends: u32, bytes: u64) {
        if self.sent.len() < MAX_PROBES {
            let id = self.asked.pop_front().map_or(0, |c| c.id);
            self.sent.push_back(Cluster { id, sends, bytes, last: None });
        }
    }

    /// The cluster of a packet; 0 for none. A cluster begins with a small packet of padding where the call can have that (libwebrtc,
    /// `PacingController::ProcessPackets`), else with a packet that is not small, and is counted in sends, of which one may have several
    /// packets (`BitrateProber`).
    fn of(&mut self, at: Timestamp, packet: &Packet) -> u32 {
        let bytes = u64::from(packet.size);
        if let Some(first) = self.sent.front()
            && first.sends == 0
            && first.bytes == 0
            && first.last != Some(at)
        {
            self.sent.pop_front();
        }
        let Some(cluster) = self.sent.front_mut() else { return 0 };
        let begins = if self.padded { is_padding(packet) } else { bytes >= SMALL };
        if cluster.last.is_none() && !begins {
            return 0;
        }
        if cluster.last.is_none_or(|last| last != at) {
            cluster.sends = cluster.sends.saturating_sub(1);
        }
        cluster.last = Some(at);
        cluster.bytes = cluster.bytes.saturating_sub(bytes + self.overhead);
        cluster.id
    }
}

/// Whether a packet is a small one of padding alone: header, extensions, and no more than a byte can tell.
fn is_padding(packet: &Packet) -> bool {
    packet.padding.is_some_and(|padding| padding > 0 && packet.size < u32::from(padding) + HEADER)
}

/// Feeds the packets and the feedback of a call to a controller, behind whose name there may be parameters: `gcc:beta=0.9`.
///
/// # Errors
/// The controller or a parameter is not known or needs more than feedback, or the call has no feedback.
pub fn replay(call: &Call, controller: &str) -> Result<Replay, ReplayError> {
    let fed = |r: &&Recording| {
        let sent =
            r.packets.iter().filter(|p| p.direction == Direction::Sent && p.transport_sequence.is_some()).count();
        let reports = r.reported.iter().any(|r| r.direction == Direction::Received && r.ssrc.is_none());
        if reports { sent } else { 0 }
    };
    let recording = call.recordings.iter().max_by_key(|r| fed(r)).filter(|r| fed(r) > 0);
    let recording = recording.ok_or(ReplayError::NoFeedback)?;
    let steps = steps(recording);
    let begin = recording.packets.first().map_or(Timestamp::ZERO, |p| p.at);
    // Controllers count from the call's begin: Unix time in ns is far from what they are tested with.
    let clock = |at: Timestamp| Timestamp::ZERO + (at - begin).max(TimeDelta::ZERO);
    let probed = recording.probes.iter().filter_map(|p| p.rate);
    let ceiling = probed.chain(recording.estimates.iter().map(|e| e.rate)).max().unwrap_or(CEILING);
    let registry = Registry::builtin();
    let (name, params) = parameters::split(controller, &registry);
    let mut params = parameters::read(params).map_err(ReplayError::Refused)?;
    let has = |wanted: &str| registry.get(name).is_some_and(|s| s.params.iter().any(|p| p.name == wanted));
    let by_reports = has("report_rtt");
    // The recorded sizes have the call's own headers already.
    if has("overhead") && params.iter().all(|(name, _)| name != "overhead") {
        params.push(("overhead".into(), OVERHEAD as f64));
    }
    let setup = Setup {
        limits: Limits { floor: FLOOR, ceiling: ceiling.clamp(START, DataRate::from_bps(1_000_000_000)) },
        start_rate: START,
        now: Timestamp::ZERO,
        seed: 1,
        params,
    };
    let start = |now: Timestamp| {
        let setup = Setup { now, ..setup.clone() };
        Flow::by_name(&registry, name, &setup).map_err(|e: Refused| ReplayError::Refused(e.to_string()))
    };
    let mut flow = start(Timestamp::ZERO)?;
    let (mut targets, mut next) = (Vec::new(), Timestamp::ZERO);
    let mut numbers = Numbers::default();
    let mut reported = Vec::new();
    let beyond = overhead(recording).saturating_sub(OVERHEAD);
    let padded = recording.packets.iter().any(|p| p.direction == Direction::Sent && is_padding(p));
    let mut probes = Probes { padded, overhead: beyond + OVERHEAD, ..Probes::default() };
    for (at, step) in steps {
        let now = clock(at);
        // Timeouts and targets that are due before.
        while next <= now && targets.len() < MAX_STEPS {
            run(&mut flow, next);
            let unix = (begin + (next - Timestamp::ZERO)).as_millis();
            targets.push((unix, flow.target().media_rate.as_bps() as f64 * 1e-3));
            next += STEP;
        }
        run(&mut flow, now);
        probes.poll(&mut flow, now);
        match step {
            // Nothing that is known of the old path is the new one's (libwebrtc, `GoogCcNetworkController::OnNetworkRouteChange`).
            Step::Route => {
                flow = start(now)?;
                probes.forget();
            }
            Step::Block(b) if by_reports => flow.on_cue(&Cue::ReportBlock(ReportBlock {
                now,
                fraction_lost: b.fraction_lost,
                cumulative_lost: b.lost.into(),
                highest_sequence: 0,
                expected: 0,
                jitter: TimeDelta::ZERO,
                rtt: b.rtt,
            })),
            Step::Block(_) => {}
            Step::Probe(packets, bytes) => probes.begin(packets, bytes),
            Step::Sent(packet) => {
                let size = DataSize::from_bytes(u64::from(packet.size) + beyond);
                let number = numbers.sent(packet.transport_sequence.unwrap_or(0));
                let probe = probes.of(packet.at, packet);
                flow.on_sent(SentPacket { probe, ..SentPacket::media(now, number, size) });
            }
            Step::Feedback(reports) => {
                reported.clear();
                let packet = |r: &Reported| {
                    Some(ReportedPacket {
                        sequence: numbers.reported(r.sequence)?,
                        arrival: r.arrival,
                        ecn: Ecn::NotEct,
                    })
                };
                reported.extend(reports.iter().filter_map(packet));
                reported.sort_by_key(|r| r.sequence);
                flow.on_reports(now, &reported, |_| TimeDelta::ZERO);
            }
        }
    }
    let off = |logged: &dyn Fn(Timestamp) -> Option<f64>| {
        let share = |(ms, kbps): &(i64, f64)| {
            let logged = logged(Timestamp::from_millis(*ms))?;
            (logged > 0.0).then(|| (kbps - logged).abs() / logged)
        };
        let mut shares: Vec<f64> = targets.iter().filter_map(share).collect();
        shares.sort_by(f64::total_cmp);
        shares.get(shares.len() / 2).copied()
    };
    let delay = Logged::of(recording, EstimateKind::Delay);
    let loss = Logged::of(recording, EstimateKind::Loss);
    let lower = |at| [delay.at(at), loss.at(at)].into_iter().flatten().reduce(f64::min);
    let (off_delay, off_estimate) = (off(&|at| delay.at(at)), off(&lower));
    Ok(Replay { controller: controller.into(), label: LABEL, targets, off_delay, off_estimate })
}

/// Bytes that libwebrtc counts of each packet beside it, as the log's last route has them: 48 over IPv6, and 58 once SRTP has its keys.
fn overhead(recording: &Recording) -> u64 {
    let route = recording.events.iter().rev().find_map(|e| match e.kind {
        EventKind::Route { connected: true, overhead } => Some(u64::from(overhead)),
        _ => None,
    });
    let usual = if recording.format == Format::EventLog { USUAL_OVERHEAD } else { OVERHEAD };
    route.filter(|bytes| (OVERHEAD..256).contains(bytes)).unwrap_or(usual)
}

/// Runs the timeouts up to a time, each at its own.
fn run(flow: &mut Flow, now: Timestamp) {
    for _ in 0..64 {
        match flow.poll_timeout() {
            Some((due, _)) if due <= now => flow.on_timeout(due),
            _ => return,
        }
    }
    flow.on_timeout(now);
}

/// New routes, messages of feedback, probes and packets in order of time. In one millisecond they are in this order: a new route and feedback lead to
/// probes, and a probe to packets. The first pair is that which the call begins with.
fn steps(recording: &Recording) -> Vec<(Timestamp, Step<'_>)> {
    let reports = recording.reported.chunk_by(|a, b| (a.at, a.direction) == (b.at, b.direction));
    let received = reports.filter(|m| m[0].direction == Direction::Received && m[0].ssrc.is_none());
    let mut selected: Vec<&CandidatePair> =
        recording.pairs.iter().filter(|p| p.change == PairChange::Selected).collect();
    selected.dedup_by(|a, b| a.pair == b.pair);
    let mut steps: Vec<(Timestamp, Step<'_>)> = selected.iter().skip(1).map(|p| (p.at, Step::Route)).collect();
    steps.extend(received.map(|m| (m[0].at, Step::Feedback(m))));
    let measured = |b: &&BlockReport| b.direction == Direction::Received && b.rtt.is_some();
    steps.extend(recording.blocks.iter().filter(measured).map(|b| (b.at, Step::Block(b))));
    steps.extend(recording.probes.iter().filter_map(|p| match p.step {
        ProbeStep::Made { packets, bytes } => Some((p.at, Step::Probe(packets, bytes.into()))),
        _ => None,
    }));
    let sent = |p: &&Packet| p.direction == Direction::Sent && p.transport_sequence.is_some();
    let mut packets: Vec<&Packet> = recording.packets.iter().filter(sent).collect();
    // A log has the packets of a millisecond stream by stream.
    for same in packets.chunk_by_mut(|a, b| a.at == b.at) {
        let first = same[0].transport_sequence.unwrap_or(0);
        same.sort_by_key(|p| p.transport_sequence.unwrap_or(0).wrapping_sub(first) as i16);
    }
    steps.extend(packets.into_iter().map(|p| (p.at, Step::Sent(p))));
    steps.sort_by_key(|s| s.0);
    steps
}

/// Transport-wide numbers, unwrapped.
#[derive(Default)]
struct Numbers {
    last: Option<u64>,
    known: BTreeMap<u16, u64>,
    order: VecDeque<u16>,
}

impl Numbers {
    fn sent(&mut self, number: u16) -> u64 {
        let next = match self.last {
            None => u64::from(number),
            Some(last) => {
                let ahead = number.wrapping_sub(last as u16);
                // A number that goes back is of a log out of order: the flow takes it for the next.
                last + u64::from(if ahead == 0 || ahead > u16::MAX / 2 { 1 } else { ahead })
            }
        };
        self.last = Some(next);
        self.known.insert(number, next);
        self.order.push_back(number);
        if self.order.len() > IN_FLIGHT {
            self.order.pop_front();
        }
        next
    }

    fn reported(&self, number: u16) -> Option<u64> {
        self.known.get(&number).copied()
    }
}

/// A logged estimate over time.
struct Logged(Vec<(Timestamp, f64)>);

impl Logged {
    fn of(recording: &Recording, kind: EstimateKind) -> Self {
        let of = recording.estimates.iter().filter(|e| e.kind == kind);
        Self(of.map(|e| (e.at, e.rate.as_bps() as f64 * 1e-3)).collect())
    }

    fn at(&self, at: Timestamp) -> Option<f64> {
        self.0.partition_point(|e| e.0 <= at).checked_sub(1).and_then(|i| self.0.get(i)).map(|e| e.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::RemoteTimestamp;

    /// A log of 20 s: a packet of 1,200 bytes each 10 ms, and feedback on ten of them each 100 ms. `later` ms are added to
    /// the way of each packet behind the one before, from 10 s on.
    fn log(later: f64) -> Call {
        let mut out = Recording::new("log", Format::EventLog);
        let at = |ms: i64| Timestamp::from_secs(1_700_000_000) + TimeDelta::from_millis(ms);
        for n in 0..2000i64 {
            out.packets.push(Packet {
                at: at(n * 10),
                number: n as u32 + 1,
                direction: Direction::Sent,
                ssrc: 7,
                sequence: n as u16,
                timestamp: n as u32 * 900,
                payload_type: 96,
                marker: true,
                size: 1200,
                padding: None,
                // Wraps on the way.
                transport_sequence: Some((65_000 + n) as u16),
            });
            let way = 20.0 + later * (n - 1000).max(0) as f64;
            out.reported.push(Reported {
                at: at(n / 10 * 100 + 150),
                direction: Direction::Received,
                ssrc: None,
                sequence: (65_000 + n) as u16,
                arrival: Some(RemoteTimestamp::from_nanos(((n as f64 * 10.0 + way) * 1e6) as i64)),
            });
        }
        Call::new(vec![out])
    }

    #[test]
    fn a_controller_rises_on_a_free_path_and_falls_on_a_growing_queue() {
        let rate = |replay: &Replay, s: usize| replay.targets[s * 10].1;
        let free = replay(&log(0.0), "gcc").expect("a replay");
        assert_eq!((free.targets.len(), free.label), (201, LABEL));
        assert!(rate(&free, 0) == 300.0 && (1000.0..2000.0).contains(&rate(&free, 19)), "{:?}", free.targets);
        assert_eq!((free.off_delay, free.off_estimate), (None, None));
        let queue = replay(&log(3.0), "gcc").expect("a replay");
        assert_eq!(rate(&queue, 9), rate(&free, 9));
        let slower = replay(&log(0.0), "gcc:increase=0.02").expect("a replay");
        assert_eq!(slower.controller, "gcc:increase=0.02");
        assert!(rate(&slower, 19) < 0.9 * rate(&free, 19), "{:?}", slower.targets);
    }

    #[test]
    fn the_same_call_has_the_same_targets_and_the_logged_estimate_is_compared_with() {
        let mut call = log(0.0);
        let first = replay(&call, "gcc").expect("a replay");
        let logged = first.targets.iter().map(|(ms, kbps)| crate::Estimate {
            at: Timestamp::from_millis(*ms),
            kind: EstimateKind::Delay,
            rate: DataRate::from_bps((kbps * 1250.0) as u64),
            loss: None,
            detector: None,
        });
        call.recordings[0].estimates = logged.collect();
        let second = replay(&call, "gcc").expect("a replay");
        assert!((second.off_delay.expect("logged") - 0.2).abs() < 0.01, "{:?}", second.off_delay);
        for name in ["nada", "sluice"] {
            let found = replay(&call, name).expect("a replay");
            assert_eq!(found, replay(&call, name).expect("a replay"));
            assert!(found.targets.iter().all(|t| t.1 >= 30.0), "{name}");
        }
    }

    #[test]
    fn a_call_without_feedback_and_a_name_that_is_none_are_errors() {
        let named = replay(&log(0.0), "gccc").expect_err("no controller");
        assert!(named.to_string().contains("gcc"), "{named}");
        for (wrong, said) in [("gcc:beta=2000", "beta"), ("gcc:bet=1", "bet"), ("gcc:beta", "PARAMETER=NUMBER")] {
            let refused = replay(&log(0.0), wrong).expect_err("no such parameter").to_string();
            assert!(refused.contains(said), "{refused}");
        }
        let mut call = log(0.0);
        call.recordings[0].reported.clear();
        assert!(matches!(replay(&call, "gcc"), Err(ReplayError::NoFeedback)));
    }
}
