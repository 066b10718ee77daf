//! Whether an estimator keeps the protocol, in words.

use crate::faults::Faults;
use crate::process::Fault;
use crate::{Remote, nominal};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::VecDeque;
use weir_cc::cue::{PacketResult, QueueState, ReportBlock, SentPacket, TransportFeedback};
use weir_cc::{Controller as _, Cue, Limits};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Something that an adapter should mend, or that its author should know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "EstimatorFinding")]
pub struct Finding {
    /// Whether it breaks the protocol or makes results differ; else it is a remark.
    pub is_fault: bool,
    /// In words.
    pub text: String,
}

/// An estimator, checked.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "EstimatorChecked")]
pub struct Checked {
    /// The name that it gives itself.
    pub name: String,
    /// Faults and remarks.
    pub findings: Vec<Finding>,
    /// Events of a call, batched ones included.
    pub events: u64,
    /// Wall time of an event in us, start-up left out.
    pub us_per_event: f64,
    /// Simulated time over wall time.
    pub times_real_time: f64,
    /// Mean target over the last 10 s before the silence, in bit/s, on a link of 2 Mbit/s.
    pub target_bps: f64,
}

/// The link of the call: its rate in bit/s, delay one way, and room in s of its rate.
const RATE: f64 = 2e6;
const DELAY: f64 = 0.025;
const ROOM: f64 = 0.3;
/// Length of the call, and when feedback stops and comes back, in s.
const LENGTH: f64 = 60.0;
const SILENCE: std::ops::Range<f64> = 40.0..46.0;
/// Pictures a second, feedback interval in ms, packets' size in bytes.
const FPS: f64 = 30.0;
const FEEDBACK_MS: i64 = 100;
const PACKET: u64 = 1_200;
/// Steps of the call, in ms.
const STEP_MS: i64 = 1;
/// Timers a second from which they are a storm.
const STORM: f64 = 500.0;

/// A call: targets at each feedback, and counts.
#[derive(Default)]
struct Call {
    targets: Vec<(f64, DataRate)>,
    events: u64,
    timers: u64,
    /// Wall time in s.
    took: f64,
    outside: Option<DataRate>,
}

/// Packets on their way, and those whose fate will be reported.
#[derive(Default)]
struct Path {
    free: f64,
    reported: VecDeque<PacketResult>,
    in_flight: u64,
}

impl Path {
    fn send(&mut self, sequence: u64, at: Timestamp) {
        let now = at.as_secs_f64();
        let waits = (self.free - now).max(0.0);
        let arrival = (waits <= ROOM).then(|| {
            self.free = self.free.max(now) + PACKET as f64 * 8.0 / RATE;
            RemoteTimestamp::from_secs_f64(self.free + DELAY)
        });
        let size = DataSize::from_bytes(PACKET);
        let ecn = Ecn::NotEct;
        self.reported.push_back(PacketResult {
            sequence,
            departure: at,
            arrival,
            size,
            ecn,
            probe: 0,
            was_lost: false,
        });
        self.in_flight += PACKET;
    }

    /// Packets that have arrived, or would have, by the time at which the receiver reported.
    fn report(&mut self, now: f64) -> Vec<PacketResult> {
        let by = now - DELAY;
        let known =
            |p: &PacketResult| p.arrival.map_or(p.departure.as_secs_f64() + ROOM + DELAY, |a| a.as_secs_f64()) <= by;
        let count = self.reported.iter().take_while(|p| known(p)).count();
        self.in_flight -= count as u64 * PACKET;
        self.reported.drain(..count).collect()
    }
}

fn call(remote: &mut Remote) -> Call {
    let (mut out, mut path) = (Call::default(), Path::default());
    let limits = nominal().limits;
    let (mut sequence, mut debt, mut next_frame) = (0, 0.0, 0.0);
    let mut queue = 0.0_f64;
    let begin = crate::process::wall();
    for ms in 1..(LENGTH * 1e3) as i64 {
        let now = Timestamp::from_millis(ms * STEP_MS);
        let at = now.as_secs_f64();
        while remote.poll_timeout().is_some_and(|(due, _)| due <= now) {
            remote.on_timeout(now);
            (out.timers, out.events) = (out.timers + 1, out.events + 1);
        }
        // Probes are accepted, and not sent.
        while remote.poll_probe(now).is_some() {}
        let target = remote.target();
        if target.media_rate != limits.clamp(target.media_rate) {
            out.outside = Some(target.media_rate);
        }
        if at >= next_frame {
            next_frame += 1.0 / FPS;
            debt += target.media_rate.as_bps_f64() / 8.0 / FPS;
            let packets = (debt / PACKET as f64) as u64;
            debt -= (packets * PACKET) as f64;
            let added = DataSize::from_bytes(packets * PACKET);
            queue += (packets * PACKET) as f64;
            let queued = DataSize::from_bytes(queue as u64);
            remote.on_queue(&QueueState { now, added, queued, oldest_age: TimeDelta::ZERO });
            for _ in 0..packets {
                sequence += 1;
                queue -= PACKET as f64;
                path.send(sequence, now);
                remote.on_packet_sent(&SentPacket {
                    queued: DataSize::from_bytes(queue as u64),
                    bytes_in_flight: DataSize::from_bytes(path.in_flight),
                    ..SentPacket::media(now, sequence, DataSize::from_bytes(PACKET))
                });
            }
            out.events += 1 + packets;
        }
        if ms % FEEDBACK_MS == 0 && !SILENCE.contains(&at) {
            let packets = path.report(at);
            let last = packets.iter().rev().find(|p| p.arrival.is_some());
            let rtt = last.map(|p| now - p.departure);
            let bytes_in_flight = DataSize::from_bytes(path.in_flight);
            remote.on_cue(&Cue::TransportFeedback(TransportFeedback { now, packets: &packets, bytes_in_flight, rtt }));
            out.events += 1;
            out.targets.push((at, remote.target().media_rate));
        }
        if ms % 1_000 == 0 && !SILENCE.contains(&at) {
            let jitter = TimeDelta::from_millis(1);
            let (expected, highest_sequence) = (sequence, sequence);
            let block = ReportBlock {
                now,
                fraction_lost: 0.0,
                cumulative_lost: 0,
                highest_sequence,
                expected,
                jitter,
                rtt: None,
            };
            remote.on_cue(&Cue::ReportBlock(block));
            out.events += 1;
        }
    }
    let limits = Limits { floor: limits.floor, ceiling: DataRate::from_kbps(100) };
    remote.on_limits(limits, Timestamp::from_secs_f64(LENGTH));
    out.targets.push((LENGTH, remote.target().media_rate));
    out.took = begin.elapsed().as_secs_f64();
    out
}

/// Runs a command through two like calls and says what is wrong with it. `command` is without [`PREFIX`](crate::PREFIX).
///
/// # Errors
/// It does not start, or its first answer is not in the protocol.
pub fn check(command: &str) -> Result<Checked, Fault> {
    let faults = Faults::default();
    let mut remote = Remote::start("it", command, &nominal(), faults.clone())?;
    let name = remote.about().name.clone();
    let first = call(&mut remote);
    drop(remote);
    let mut findings: Vec<Finding> = Vec::new();
    let mut fault = |text: String| findings.push(Finding { is_fault: true, text });
    let broken = faults.take();
    broken.iter().for_each(|f| fault(f.clone()));
    if broken.is_empty() {
        let mut again = Remote::start("it", command, &nominal(), faults.clone())?;
        let second = call(&mut again);
        faults.take().into_iter().for_each(&mut fault);
        let differs = first.targets.iter().zip(&second.targets).find(|(a, b)| a != b);
        if let Some(((at, a), (_, b))) = differs {
            fault(format!(
                "two like calls differ from {at:.1} s on ({} and {} bit/s): it uses a clock or a random number of its own; take the times of the \
                 events, and the seed of `configure`",
                a.as_bps(),
                b.as_bps()
            ));
        }
    }
    if let Some(rate) = first.outside {
        fault(format!("a target of {} bit/s is outside the limits", rate.as_bps()));
    }
    if first.timers as f64 > STORM * LENGTH {
        fault(format!("{} timers in {LENGTH:.0} s: it is woken for nothing", first.timers));
    }
    let known = first.targets.iter().filter(|(at, _)| (SILENCE.start - 10.0..SILENCE.start).contains(at));
    let rates: Vec<f64> = known.map(|(_, r)| r.as_bps_f64()).collect();
    let target_bps = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
    let mut remark = |text: String| findings.push(Finding { is_fault: false, text });
    let start = nominal().start_rate;
    if broken.is_empty() && first.targets.iter().all(|(at, r)| *at >= LENGTH || *r == start) {
        remark("the target never left the start rate: does it read `feedback`?".into());
    } else if broken.is_empty() && target_bps > 1.5 * RATE {
        remark(format!("the target is {:.1} Mbit/s on a link of {:.1} Mbit/s", target_bps * 1e-6, RATE * 1e-6));
    }
    let us_per_event = first.took * 1e6 / first.events.max(1) as f64;
    Ok(Checked { name, findings, events: first.events, us_per_event, times_real_time: LENGTH / first.took, target_bps })
}
