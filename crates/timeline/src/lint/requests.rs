//! Requests for pictures and retransmissions.

use super::{Findings, Rule};
use crate::Recording;
use crate::schema::{Direction, RtcpKind, StreamKind};
use std::collections::{BTreeMap, VecDeque};
use weir_units::{TimeDelta, Timestamp};

/// Requests for pictures in two seconds that are more than losses explain, and the time.
const PICTURES: usize = 8;
const NACKS: usize = 100;
const WINDOW: TimeDelta = TimeDelta::from_secs(2);
/// Time in which a retransmission is answered at the latest, and requests without an answer from which it is a finding.
const ANSWERED: TimeDelta = TimeDelta::from_secs(1);
const UNANSWERED: usize = 5;
const CROSSED: TimeDelta = TimeDelta::from_millis(500);

const ASKED: Rule = Rule {
    name: "picture-requests-without-end",
    section: "RFC 5104, section 4.3.1.2; RFC 4585, section 6.3.1",
    effect: "each request costs a key frame, many times a usual frame: the queue that it makes loses packets and leads to the next request",
};
const STORM: Rule = Rule {
    name: "nack-storm",
    section: "RFC 4585, section 6.2.1; RFC 4588, section 9",
    effect: "retransmissions take the rate of new frames, and come after these were due",
};
const IGNORED: Rule = Rule {
    name: "retransmission-never-answered",
    section: "RFC 4588, section 4; RFC 4585, section 6.2.1",
    effect: "the receiver waits for the packet, then asks for a picture: each loss becomes a freeze",
};

pub(super) fn lint(recording: &Recording, found: &mut Findings) {
    let mut windows: BTreeMap<(bool, Direction), VecDeque<Timestamp>> = BTreeMap::new();
    for rtcp in &recording.rtcp {
        let (pictures, most, rule) = match rtcp.kind {
            RtcpKind::Pli | RtcpKind::Fir => (true, PICTURES, ASKED),
            RtcpKind::Nack(_) => (false, NACKS, STORM),
            _ => continue,
        };
        let window = windows.entry((pictures, rtcp.direction)).or_default();
        window.push_back(rtcp.at);
        while window.front().is_some_and(|first| rtcp.at - *first > WINDOW) {
            window.pop_front();
        }
        if window.len() >= most {
            found.rtcp(rule, rtcp.direction, (rtcp.number, rtcp.at), || format!("{} in 2 s", window.len()));
            // The next finding needs as many again.
            window.clear();
        }
    }
    answers(recording, found);
}

/// Requests that reached the sender of a stream with retransmissions of its own, and no packet of these after them.
fn answers(recording: &Recording, found: &mut Findings) {
    let sends = |s: &&crate::Stream| s.direction == Direction::Sent && s.kind == StreamKind::Video;
    let rtx: Vec<u32> = recording.streams.iter().filter(sends).filter_map(|s| s.rtx).collect();
    if rtx.is_empty() {
        return;
    }
    let repeats = recording.packets.iter().filter(|p| p.direction == Direction::Sent && rtx.contains(&p.ssrc));
    let times: Vec<Timestamp> = repeats.map(|p| p.at).collect();
    let end = recording.packets.last().map(|p| p.at);
    let mut ignored = Vec::new();
    for rtcp in recording.rtcp.iter().filter(|r| r.direction == Direction::Received) {
        let RtcpKind::Nack(packets) = rtcp.kind else { continue };
        // One that was sent just before answers a request that crossed it.
        let next = times.get(times.partition_point(|t| *t < rtcp.at - CROSSED));
        let late = next.is_none_or(|t| *t - rtcp.at > ANSWERED) && end.is_some_and(|end| end - rtcp.at > ANSWERED);
        if late {
            ignored.push((rtcp, packets));
        }
    }
    if ignored.len() >= UNANSWERED {
        for (rtcp, packets) in ignored {
            let text = || format!("{packets} packets asked for, none sent again within 1 s");
            found.rtcp(IGNORED, Direction::Received, (rtcp.number, rtcp.at), text);
        }
    }
}
