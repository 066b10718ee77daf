//! Sequence numbers, timestamps, payload types and sources of RTP.

use super::{Findings, Rule};
use crate::Recording;
use crate::recording::SendClock;
use crate::schema::{Direction, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Largest step of a sequence number: beyond it a receiver takes the stream for restarted (`MAX_DROPOUT`).
const MAX_DROPOUT: i32 = 3000;
/// Most by which timestamps and the time of sending may differ between two packets, in s.
const MAX_JUMP: f64 = 10.0;
/// Clocks of RTP: audio of 8 kHz up to video.
const SLOWEST: f64 = 8_000.0;
const FASTEST: f64 = 96_000.0;
/// Share of padding in what a stream sends from which it is more than probing.
const PADDED: f64 = 0.2;
const LEAST_BYTES: u64 = 500_000;
/// Most faults of timestamps that are counted of a stream.
const MAX_FAULTS: usize = 10_000;

const SEQUENCE: Rule = Rule {
    name: "sequence-jump",
    section: "RFC 3550, appendix A.1",
    effect: "a receiver drops the packet and takes the next one in order for the start of a new stream; its loss counters start again",
};
const BACK: Rule = Rule {
    name: "timestamp-back",
    section: "RFC 3550, section 5.1",
    effect: "a receiver takes the frame for an old one, and drops it or shows it out of order",
};
const JUMP: Rule = Rule {
    name: "timestamp-jump",
    section: "RFC 3550, section 5.1",
    effect: "a jitter buffer waits for the moment that the timestamp gives, or empties itself; sound and picture come apart until the next sender report",
};
const TYPE: Rule = Rule {
    name: "payload-type-like-rtcp",
    section: "RFC 5761, section 4",
    effect: "with RTP and RTCP on one port a receiver takes the marked packets for RTCP and drops them",
};
const COLLISION: Rule = Rule {
    name: "source-collision",
    section: "RFC 3550, section 8.2",
    effect: "both ends have the same SSRC: reports about one are taken for reports about the other",
};
const PADDING: Rule = Rule {
    name: "padding-beside-media",
    section: "RFC 3550, section 5.1",
    effect: "a receiver drops padding after counting it: the rate is there, and the picture does not have it",
};

const DRIFT: Rule = Rule {
    name: "send-time-drift",
    section: "abs-send-time (webrtc.org/experiments/rtp-hdrext/abs-send-time)",
    effect: "an estimator at the receiver takes the drift for a queue that grows or drains, and the rate falls or overshoots without a reason",
};
/// Drift of absolute send times that is none of a crystal, as a share: ten times 100 ppm; least time that it is measured over, in s, and least
/// difference, in s, beside which the delay of a packet on its way to the capture is small.
const DRIFTS: f64 = 1e-3;
const DRIFT_OVER: f64 = 10.0;
const DRIFTED: f64 = 0.03;

/// Timestamps that are remembered, to know retransmissions by: these have that of the first sending (RFC 4588, section 4).
const REMEMBERED: usize = 4096;

#[derive(Default)]
struct Stream {
    last: Option<Packet>,
    packets: u64,
    /// Packets with the timestamp of another stream before.
    echoes: u64,
    /// Faults of timestamps, which retransmissions have by design.
    times: Vec<(Rule, Packet, String)>,
    bytes: u64,
    padding: u64,
    first_padded: Option<Packet>,
    types: BTreeSet<u8>,
}

pub(super) fn lint(recording: &Recording, found: &mut Findings) {
    let mut streams: BTreeMap<(Direction, u32), Stream> = BTreeMap::new();
    let mut known: BTreeMap<(Direction, u32), u32> = BTreeMap::new();
    let mut order = VecDeque::new();
    for packet in &recording.packets {
        let key = (packet.direction, packet.timestamp);
        let first = *known.entry(key).or_insert_with(|| {
            order.push_back(key);
            packet.ssrc
        });
        if order.len() > REMEMBERED
            && let Some(old) = order.pop_front()
        {
            known.remove(&old);
        }
        let stream = streams.entry((packet.direction, packet.ssrc)).or_default();
        let at = (packet.number, packet.at);
        if (64..=95).contains(&packet.payload_type) && stream.types.insert(packet.payload_type) {
            found.rtp(TYPE, packet.direction, at, || format!("payload type {}", packet.payload_type));
        }
        stream.bytes += u64::from(packet.size);
        if let Some(padding) = packet.padding.filter(|p| *p > 0) {
            stream.padding += u64::from(padding);
            stream.first_padded.get_or_insert(*packet);
        }
        stream.packets += 1;
        // Padding to probe with may have a timestamp of zero.
        stream.echoes += u64::from(first != packet.ssrc || packet.timestamp == 0);
        if let Some(last) = stream.last.filter(|l| l.timestamp != 0) {
            compare(found, stream, &last, packet);
        }
        // A packet that comes late is compared with, and is not compared to.
        if stream.last.is_none_or(|last| step(&last, packet) > 0) {
            stream.last = Some(*packet);
        }
    }
    let drifts = |c: &&SendClock| c.over_s >= DRIFT_OVER && c.ahead_s.abs() > DRIFTED.max(DRIFTS * c.over_s);
    for clock in recording.send_clocks.iter().filter(drifts) {
        let text = || {
            let way = if clock.ahead_s > 0.0 { "further" } else { "less far" };
            let ms = clock.ahead_s.abs() * 1e3;
            format!("header extension {}: in {:.0} s it went {ms:.0} ms {way} than the capture", clock.id, clock.over_s)
        };
        found.rtp(DRIFT, Direction::Sent, (clock.number, clock.at), text);
    }
    for ((direction, ssrc), stream) in &streams {
        let repeats = stream.echoes * 2 > stream.packets || recording.streams.iter().any(|s| s.rtx == Some(*ssrc));
        for (rule, packet, text) in stream.times.iter().filter(|_| !repeats) {
            found.rtp(*rule, *direction, (packet.number, packet.at), || text.clone());
        }
        let other = streams.get(&(Direction::Received, *ssrc)).and_then(|s| s.last);
        if let (Direction::Sent, Some(other)) = (direction, other) {
            found.rtp(COLLISION, Direction::Received, (other.number, other.at), || format!("SSRC {ssrc:08x}"));
        }
        let share = stream.padding as f64 / stream.bytes.max(1) as f64;
        if let Some(first) =
            stream.first_padded.filter(|_| stream.bytes > LEAST_BYTES && (PADDED..0.9).contains(&share))
        {
            let text = || format!("SSRC {ssrc:08x}: {:.0} % of its bytes are padding", share * 100.0);
            found.rtp(PADDING, *direction, (first.number, first.at), text);
        }
    }
}

fn step(last: &Packet, packet: &Packet) -> i32 {
    i32::from(packet.sequence.wrapping_sub(last.sequence) as i16)
}

fn compare(found: &mut Findings, stream: &mut Stream, last: &Packet, packet: &Packet) {
    let step = step(last, packet);
    if step.abs() > MAX_DROPOUT {
        let text = || format!("SSRC {:08x}: {} after {}", packet.ssrc, packet.sequence, last.sequence);
        return found.rtp(SEQUENCE, packet.direction, (packet.number, packet.at), text);
    }
    if packet.payload_type != last.payload_type || step != 1 || stream.times.len() == MAX_FAULTS {
        return;
    }
    let ticks = packet.timestamp.wrapping_sub(last.timestamp) as i32;
    let text = format!("SSRC {:08x}: timestamp {} after {}", packet.ssrc, packet.timestamp, last.timestamp);
    // B-frames have earlier timestamps, and repair packets in the stream those of what they protect.
    if f64::from(ticks) / FASTEST < -MAX_JUMP {
        return stream.times.push((BACK, *packet, text));
    }
    let passed = (packet.at - last.at).as_secs_f64();
    let (least, most) = (f64::from(ticks) / FASTEST, f64::from(ticks) / SLOWEST);
    if least > passed + MAX_JUMP || (passed > MAX_JUMP && most < passed - MAX_JUMP) {
        stream.times.push((JUMP, *packet, format!("{text}, {passed:.1} s later")));
    }
}
