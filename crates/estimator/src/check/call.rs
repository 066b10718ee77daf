//! The call of a check, without a session: a link, frames, feedback and a silence.

use crate::nominal;
use crate::process::Traffic;
use std::collections::VecDeque;
use weir_cc::cue::{PacketResult, QueueState, ReportBlock, SentPacket, TransportFeedback};
use weir_cc::{Controller, Cue, Limits};
use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};
use weir_wire::rtcp::twcc;

/// The link of the call: its rate in bit/s, delay one way, and room in s of its rate.
pub(super) const RATE: f64 = 2e6;
pub(super) const DELAY: f64 = 0.025;
const ROOM: f64 = 0.3;
/// Length of the call, and when feedback stops and comes back, in s.
pub(super) const LENGTH: f64 = 60.0;
pub(super) const SILENCE: std::ops::Range<f64> = 40.0..46.0;
/// Pictures a second, feedback interval in ms, packets' size in bytes.
const FPS: f64 = 30.0;
const FEEDBACK_MS: i64 = 100;
pub(super) const PACKET: u64 = 1_200;
/// Steps of the call, in ms.
pub(super) const STEP_MS: i64 = 1;

/// A call: targets over time, and what was exchanged.
#[derive(Default)]
pub(super) struct Call {
    pub(super) targets: Vec<(f64, DataRate)>,
    pub(super) timers: u64,
    pub(super) traffic: Traffic,
    /// Wall time in s.
    pub(super) took: f64,
    pub(super) outside: Option<DataRate>,
}

/// Frames of the call: packets of a target's rate, as many at a time as are due.
#[derive(Default)]
pub(super) struct Frames {
    debt: f64,
    next: f64,
}

impl Frames {
    /// Packets of the frame that is due, if one is.
    pub(super) fn due(&mut self, at: f64, rate: DataRate) -> Option<u64> {
        if at < self.next {
            return None;
        }
        self.next += 1.0 / FPS;
        self.debt += rate.as_bps_f64() / 8.0 / FPS;
        let packets = (self.debt / PACKET as f64) as u64;
        self.debt -= (packets * PACKET) as f64;
        Some(packets)
    }
}

/// Packets on their way, and those whose fate will be reported.
#[derive(Default)]
pub(super) struct Path {
    free: f64,
    pub(super) reported: VecDeque<PacketResult>,
    in_flight: u64,
}

impl Path {
    pub(super) fn send(&mut self, sequence: u64, at: Timestamp) {
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

/// The datagram in which a receiver reports packets, for estimators that read it themselves.
fn datagram(packets: &[PacketResult], count: u8) -> Vec<u8> {
    let arrivals = packets.iter().map(|p| (p.sequence as u16, p.arrival.map(|a| Timestamp::from_nanos(a.as_nanos()))));
    let mut out = Vec::new();
    let Some(reference) = arrivals.clone().find_map(|(_, arrival)| arrival) else { return out };
    let first = packets.first().map_or(0, |p| p.sequence as u16);
    // One message, also after the silence.
    let mut builder = twcc::Builder::new(1, 2, count, first, reference).with_max_size(60_000);
    for (sequence, arrival) in arrivals {
        let has_room = builder.push(sequence, arrival);
        debug_assert!(has_room);
    }
    builder.finish_into(&mut out);
    out
}

/// The call with an estimator at the sender.
pub(super) fn call(remote: &mut impl Controller) -> Call {
    let (mut out, mut path) = (Call::default(), Path::default());
    let limits = nominal().limits;
    let (mut sequence, mut frames) = (0, Frames::default());
    let mut queue = 0.0_f64;
    let begin = crate::process::wall();
    for ms in 1..(LENGTH * 1e3) as i64 {
        let now = Timestamp::from_millis(ms * STEP_MS);
        let at = now.as_secs_f64();
        while remote.poll_timeout().is_some_and(|(due, _)| due <= now) {
            remote.on_timeout(now);
            out.timers += 1;
        }
        // Probes are accepted, and not sent.
        while remote.poll_probe(now).is_some() {}
        let target = remote.target();
        if target.media_rate != limits.clamp(target.media_rate) {
            out.outside = Some(target.media_rate);
        }
        if let Some(packets) = frames.due(at, target.media_rate) {
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
        }
        if ms % FEEDBACK_MS == 0 && !SILENCE.contains(&at) {
            let packets = path.report(at);
            let last = packets.iter().rev().find(|p| p.arrival.is_some());
            let rtt = last.map(|p| now - p.departure);
            let bytes_in_flight = DataSize::from_bytes(path.in_flight);
            let datagram = datagram(&packets, (ms / FEEDBACK_MS) as u8);
            if !datagram.is_empty() {
                remote.on_rtcp(&datagram, now);
            }
            remote.on_cue(&Cue::TransportFeedback(TransportFeedback { now, packets: &packets, bytes_in_flight, rtt }));
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
        }
    }
    let limits = Limits { floor: limits.floor, ceiling: DataRate::from_kbps(100) };
    remote.on_limits(limits, Timestamp::from_secs_f64(LENGTH));
    out.targets.push((LENGTH, remote.target().media_rate));
    out.took = begin.elapsed().as_secs_f64();
    out
}
