//! Transport-wide feedback and the feedback of RFC 8888.

use super::{Findings, Rule};
use crate::Recording;
use crate::schema::{Direction, RtcpKind};
use std::collections::{BTreeMap, VecDeque};
use weir_units::{RemoteTimestamp, Timestamp};

/// Longest time between two messages while packets are sent, in s; the draft has 50 to 250 ms.
const RARE: f64 = 1.0;
/// Least packets in that time.
const LEAST_PACKETS: usize = 20;
/// Largest packet that fits a path of 1280 bytes, the least MTU of IPv6, with its IP and UDP headers.
const MTU: u32 = 1280 - 48;
/// Largest delta: 16 bits of 250 µs, in s.
const DELTA: f64 = 8.191;
/// Arrivals within one message that go back further than reordering does, in s.
const BACK: f64 = 1.0;
/// Packets whose reports are remembered.
const REMEMBERED: usize = 4096;

const SKIPS: Rule = Rule {
    name: "feedback-skips",
    section: "draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.1",
    effect: "the sender takes feedback for lost: packets reported in it stay in flight until they are given up, or count as lost",
};
const REPEATS: Rule = Rule {
    name: "feedback-repeats",
    section: "draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.1",
    effect: "the sender passes over the second report; of a packet that was reported as lost before it may count a loss that was none",
};
const SELDOM: Rule = Rule {
    name: "feedback-rare",
    section: "draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3; RFC 8888, section 5",
    effect: "the sender's estimate is as old as the feedback: it goes on at its rate, or falls back (RFC 8083 stops it)",
};
const LARGE: Rule = Rule {
    name: "feedback-larger-than-mtu",
    section: "RFC 8888, section 3; RFC 8200, section 5",
    effect: "the packet is sent in fragments or dropped on the way, with all its reports",
};
const FAR: Rule = Rule {
    name: "feedback-delta-overflow",
    section: "draft-holmer-rmcat-transport-wide-cc-extensions-01, section 3.1.5",
    effect: "arrivals further apart than a delta can say are wrong: the sender sees a delay that was none",
};

pub(super) fn lint(recording: &Recording, found: &mut Findings) {
    let mut counts: BTreeMap<(Direction, u32), u8> = BTreeMap::new();
    let mut last: BTreeMap<Direction, Timestamp> = BTreeMap::new();
    let mut numbers: BTreeMap<(Direction, Timestamp), u32> = BTreeMap::new();
    for rtcp in &recording.rtcp {
        let at = (rtcp.number, rtcp.at);
        if rtcp.size > MTU {
            found.rtcp(LARGE, rtcp.direction, at, || format!("{} bytes", rtcp.size));
        }
        let count = match rtcp.kind {
            RtcpKind::Twcc { count } => Some(count),
            RtcpKind::Ccfb => None,
            _ => continue,
        };
        numbers.entry((rtcp.direction, rtcp.at)).or_insert(rtcp.number);
        if let Some(count) = count
            && let Some(before) = counts.insert((rtcp.direction, rtcp.sender_ssrc), count)
            && !matches!(count.wrapping_sub(before), 1)
        {
            found.rtcp(SKIPS, rtcp.direction, at, || format!("message {count} after {before}"));
        }
        if let Some(before) = last.insert(rtcp.direction, rtcp.at) {
            let passed = (rtcp.at - before).as_secs_f64();
            if passed > RARE && reportable(recording, rtcp.direction, before, rtcp.at) {
                found.rtcp(SELDOM, rtcp.direction, at, || format!("{passed:.1} s after the one before"));
            }
        }
    }
    reports(recording, found, &numbers);
}

/// Whether packets that feedback reports came between two messages.
fn reportable(recording: &Recording, direction: Direction, from: Timestamp, to: Timestamp) -> bool {
    let other = match direction {
        Direction::Sent => Direction::Received,
        Direction::Received => Direction::Sent,
        Direction::Passing => return false,
    };
    let first = recording.packets.partition_point(|p| p.at < from);
    let between = recording.packets.iter().skip(first).take_while(|p| p.at < to);
    between.filter(|p| p.direction == other && p.transport_sequence.is_some()).count() >= LEAST_PACKETS
}

/// A packet in feedback: direction, stream (none with transport-wide numbers) and sequence number.
type Reported = (Direction, Option<u32>, u16);

/// The reports of each message, in the order in which they stand in it.
fn reports(recording: &Recording, found: &mut Findings, numbers: &BTreeMap<(Direction, Timestamp), u32>) {
    let mut seen: BTreeMap<Reported, (u64, Timestamp)> = BTreeMap::new();
    let mut order: VecDeque<(Reported, u64)> = VecDeque::new();
    let mut before: Option<(Direction, Timestamp, RemoteTimestamp)> = None;
    for (i, report) in recording.reported.iter().enumerate() {
        let Some(arrival) = report.arrival else { continue };
        let number = numbers.get(&(report.direction, report.at)).copied().unwrap_or(0);
        let at = (number, report.at);
        if let Some((direction, time, last)) = before
            && (direction, time) == (report.direction, report.at)
            && report.ssrc.is_none()
        {
            let delta = (arrival - last).as_secs_f64();
            if !(-BACK..=DELTA).contains(&delta) {
                let text = || format!("packet {} arrived {delta:.2} s after the one before it", report.sequence);
                found.rtcp(FAR, report.direction, at, text);
            }
        }
        before = Some((report.direction, report.at, arrival));
        let key = (report.direction, report.ssrc, report.sequence);
        if report.ssrc.is_none()
            && let Some((_, time)) = seen.insert(key, (i as u64, report.at))
            && time != report.at
        {
            found.rtcp(REPEATS, report.direction, at, || format!("packet {} a second time", report.sequence));
        }
        order.push_back((key, i as u64));
        while order.len() > REMEMBERED
            && let Some((old, index)) = order.pop_front()
        {
            if seen.get(&old).is_some_and(|(i, _)| *i == index) {
                seen.remove(&old);
            }
        }
    }
}
