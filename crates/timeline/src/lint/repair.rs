//! Forward error correction that protects nothing: repair packets whose packets do not exist, which come too late, or beside which nothing
//! is lost.
//!
//! A repair packet's packets are named in its payload: of SRTP and of event logs nothing is seen but the counters of `getStats()`.

use super::{Findings, Rule};
use crate::Recording;
use crate::recording::Repair;
use crate::schema::{Direction, Packet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weir_units::{TimeDelta, Timestamp};

/// Time after a repair packet in which what it protects may still come.
const BEHIND: TimeDelta = TimeDelta::from_secs(1);
/// Time between the last protected packet and its repair packet, beyond which no player of a call waits.
const WAITED: TimeDelta = TimeDelta::from_millis(500);
/// Numbers of a stream that are remembered: the longest mask reaches 110 back, a grid 255 times 255 at most.
const REMEMBERED: i64 = 4_096;
/// Distance from a stream's newest number beyond which no receiver relates a number to it (`MAX_DROPOUT`, RFC 3550, appendix A.1).
const FAR: i64 = 3_000;
/// Time whose losses are compared with the repair packets in it.
const WINDOW: TimeDelta = TimeDelta::from_secs(10);
/// Share of repair packets in the bytes of a window, and number, from which they are more than now and then.
const SHARE: f64 = 0.05;
const LEAST: u64 = 20;
/// Most protected streams, and windows, that are looked at: what is behind them is not.
const MAX_STREAMS: usize = 256;
const MAX_WINDOWS: usize = 100_000;
/// Lost packets from which it tells something that none of them could be recovered.
const LOST: u64 = 20;
/// Counters of `getStats()`: repair packets received, and the share that was discarded.
const RECEIVED: f64 = 100.0;
const DISCARDED: f64 = 0.95;

const NOTHING: Rule = Rule {
    name: "repair-protects-nothing",
    section: "RFC 8627, section 4.2.2; RFC 5109, section 7.4",
    effect: "a receiver finds no packet that belongs to it, and drops it: its bytes are lost for the picture",
};
const LATE: Rule = Rule {
    name: "repair-late",
    section: "RFC 8627, sections 1.1 and 1.1.8",
    effect: "it comes behind the repair window: the player has passed over what it would have brought back",
};
const UNNEEDED: Rule = Rule {
    name: "repair-without-loss",
    section: "RFC 8854, section 8",
    effect: "the pictures have so much less of the rate, for losses that are not there; a sender that probes by repair packets does so on purpose",
};
const USELESS: Rule = Rule {
    name: "repair-recovers-nothing",
    section: "RFC 8627, section 6.3.1.2; RFC 5109, section 9",
    effect: "a repair packet brings back one of its packets, and each time more of them were lost: bursts need masks with gaps, or more repair packets",
};
const UNUSED: Rule = Rule {
    name: "repair-discarded",
    section: "W3C, Identifiers for WebRTC's Statistics API, fecPacketsDiscarded; RFC 8854, section 8",
    effect: "the receiver had all packets already, or passed over them before: the pictures have so much less of the rate",
};

pub(super) fn lint(recording: &Recording, found: &mut Findings) {
    statistics(recording, found);
    if recording.repairs.is_empty() {
        return;
    }
    let protected: BTreeSet<u32> = recording.repairs.iter().map(|r| r.ssrc).collect();
    let protected: BTreeSet<u32> = protected.into_iter().take(MAX_STREAMS).collect();
    let mut streams = Streams::default();
    let mut waiting: VecDeque<&Repair> = VecDeque::new();
    let mut repairs = recording.repairs.iter().peekable();
    for packet in &recording.packets {
        while let Some(repair) = repairs.next_if(|r| r.at <= packet.at) {
            waiting.push_back(repair);
        }
        while waiting.front().is_some_and(|r| packet.at - r.at > BEHIND) {
            waiting.pop_front().into_iter().for_each(|repair| streams.judge(repair, found));
        }
        if protected.contains(&packet.ssrc) {
            streams.add(packet);
        }
    }
    waiting.into_iter().chain(repairs).for_each(|repair| streams.judge(repair, found));
    streams.recovered(found);
    Windows::of(recording).judge(recording, found);
}

/// Numbers of a protected stream, as far as they are remembered.
struct Seen {
    first: i64,
    newest: i64,
    numbers: BTreeMap<i64, Timestamp>,
}

impl Seen {
    /// The number of a packet near the newest.
    fn number(&self, sequence: u16) -> i64 {
        self.newest + i64::from(sequence.wrapping_sub(self.newest as u16) as i16)
    }
}

/// Packets that repair packets of one direction could bring back.
#[derive(Default)]
struct Recovered {
    repairs: u64,
    lost: u64,
    recovered: u64,
    last: Option<Repair>,
}

#[derive(Default)]
struct Streams {
    seen: BTreeMap<(Direction, u32), Seen>,
    recovered: BTreeMap<Direction, Recovered>,
}

impl Streams {
    fn add(&mut self, packet: &Packet) {
        let first = i64::from(packet.sequence);
        let new = || Seen { first, newest: first, numbers: BTreeMap::new() };
        let seen = self.seen.entry((packet.direction, packet.ssrc)).or_insert_with(new);
        let number = seen.number(packet.sequence);
        seen.newest = seen.newest.max(number);
        seen.numbers.entry(number).or_insert(packet.at);
        while seen.numbers.first_key_value().is_some_and(|(n, _)| *n < seen.newest - REMEMBERED) {
            seen.numbers.pop_first();
        }
    }

    fn judge(&mut self, repair: &Repair, found: &mut Findings) {
        let (direction, at) = (repair.direction, (repair.number, repair.at));
        let base = repair.coverage.base;
        let text = || format!("SSRC {:08x} from {base} on: {} packets", repair.ssrc, repair.coverage.len());
        if repair.coverage.is_empty() {
            return found.rtp(NOTHING, direction, at, text);
        }
        let Some(seen) = self.seen.get(&(direction, repair.ssrc)) else { return };
        let numbers: Vec<i64> = repair.coverage.sequences().map(|s| seen.number(s)).collect();
        // Packets sent before the capture began are not in it.
        if numbers.iter().any(|n| *n < seen.first && *n > seen.first - FAR) {
            return;
        }
        let there: Vec<Timestamp> = numbers.iter().filter_map(|n| seen.numbers.get(n)).copied().collect();
        let far = numbers.iter().all(|n| (seen.newest - n).abs() > FAR);
        if there.is_empty() && (direction == Direction::Sent || far) {
            return found.rtp(NOTHING, direction, at, || format!("{}, none of which was seen", text()));
        }
        if let Some(last) = there.iter().max().filter(|last| repair.at - **last > WAITED) {
            let late = (repair.at - *last).as_millis();
            return found.rtp(LATE, direction, at, || format!("{}, {late} ms behind the last", text()));
        }
        let counts = self.recovered.entry(direction).or_default();
        counts.repairs += 1;
        counts.lost += (numbers.len() - there.len()) as u64;
        counts.recovered += u64::from(numbers.len() == there.len() + 1);
        counts.last = Some(*repair);
    }

    /// Losses at a receiver that no repair packet could bring back: a capture at the sender has all packets.
    fn recovered(&self, found: &mut Findings) {
        for (direction, counts) in self.recovered.iter().filter(|(d, _)| **d != Direction::Sent) {
            let Recovered { repairs, lost, .. } = *counts;
            if let Some(last) = counts.last.filter(|_| counts.recovered == 0 && lost >= LOST && repairs >= LEAST) {
                let text = || format!("{lost} packets missing beside {repairs} repair packets, up to this one");
                found.rtp(USELESS, *direction, (last.number, last.at), text);
            }
        }
    }
}

/// Bytes and losses of each direction by windows of time.
#[derive(Default)]
struct Window {
    media: u64,
    repair: u64,
    repairs: u64,
    first: Option<(u32, Timestamp)>,
    /// Losses that are known, and reports or packets that know them.
    lost: u64,
    known: u64,
}

struct Windows {
    start: Timestamp,
    all: BTreeMap<(Direction, i64), Window>,
}

impl Windows {
    fn of(recording: &Recording) -> Self {
        let start = recording.packets.first().map_or(Timestamp::ZERO, |p| p.at);
        Self { start, all: BTreeMap::new() }
    }

    fn at(&mut self, direction: Direction, at: Timestamp) -> Option<&mut Window> {
        let key = (direction, (at - self.start).as_nanos().div_euclid(WINDOW.as_nanos()));
        if self.all.len() >= MAX_WINDOWS && !self.all.contains_key(&key) {
            return None;
        }
        Some(self.all.entry(key).or_default())
    }

    fn judge(mut self, recording: &Recording, found: &mut Findings) {
        let mut newest: BTreeMap<(Direction, u32), u16> = BTreeMap::new();
        for packet in &recording.packets {
            let stream = newest.entry((packet.direction, packet.ssrc));
            let last = *stream.or_insert(packet.sequence);
            let step = packet.sequence.wrapping_sub(last) as i16;
            if step > 0 {
                newest.insert((packet.direction, packet.ssrc), packet.sequence);
            }
            let Some(window) = self.at(packet.direction, packet.at) else { continue };
            window.media += u64::from(packet.size);
            // A number missing at a receiver is a loss, and at a sender a packet that the capture lacks.
            if packet.direction != Direction::Sent {
                window.known += 1;
                window.lost += u64::from(step > 1);
            }
        }
        let mut last = 0;
        for repair in &recording.repairs {
            let Some(window) = self.at(repair.direction, repair.at) else { continue };
            window.first.get_or_insert((repair.number, repair.at));
            // One packet may protect several streams.
            if repair.number != last {
                window.repair += u64::from(repair.size);
                window.repairs += 1;
            }
            last = repair.number;
        }
        for report in recording.reported.iter().filter(|r| r.direction == Direction::Received) {
            let Some(window) = self.at(Direction::Sent, report.at) else { continue };
            window.known += 1;
            window.lost += u64::from(report.arrival.is_none());
        }
        for block in recording.blocks.iter().filter(|b| b.direction == Direction::Received) {
            let Some(window) = self.at(Direction::Sent, block.at) else { continue };
            window.known += 1;
            window.lost += u64::from(block.fraction_lost > 0.0);
        }
        let without = |w: Option<&Window>| w.is_some_and(|w| w.known > 0 && w.lost == 0);
        for ((direction, number), window) in &self.all {
            let share = window.repair as f64 / window.media.max(1) as f64;
            // A sender adapts to losses of the time before.
            let lossless = without(Some(window)) && without(self.all.get(&(*direction, number - 1)));
            if let Some(at) = window.first.filter(|_| lossless && share >= SHARE && window.repairs >= LEAST) {
                let text = || format!("{:.0} % of the bytes of 10 s, and nothing was lost in 20 s", 100.0 * share);
                found.rtp(UNNEEDED, *direction, at, text);
            }
        }
    }
}

/// Repair packets that the receiver counts as of no use. Opus has its own in the packets of sound, at no cost of this kind.
fn statistics(recording: &Recording, found: &mut Findings) {
    for ((kind, id, name), received) in &recording.series {
        if kind != "inbound-rtp" || name != "fecPacketsReceived" {
            continue;
        }
        let of = |name: &str| recording.series.get(&(kind.clone(), id.clone(), name.to_owned()));
        let is_video = of("kind").is_some_and(|s| s.texts.iter().any(|t| t.1 == "video"));
        let discarded = of("fecPacketsDiscarded").and_then(|s| s.points.last());
        let last = received.points.last().zip(discarded).filter(|_| is_video);
        if let Some(((at, received_last), (_, discarded))) = last
            && *received_last >= RECEIVED
            && *discarded >= DISCARDED * received_last
        {
            let row = received.points.len() as u32;
            let text = || format!("getStats, {id}: {discarded} of {received_last} repair packets discarded");
            found.rtp(UNUSED, Direction::Received, (row, *at), text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Reported;
    use crate::{Format, read};
    use weir_units::RemoteTimestamp;
    use weir_wire::fec::{Coverage, Mask, Pattern};

    const MEDIA: u32 = 7;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_secs(1_700_000_000) + TimeDelta::from_millis(ms)
    }

    fn packet(n: u32, direction: Direction) -> Packet {
        Packet {
            at: at(i64::from(n) * 10),
            number: n + 1,
            direction,
            ssrc: MEDIA,
            sequence: n as u16,
            timestamp: n * 900,
            payload_type: 96,
            marker: true,
            size: 1000,
            padding: None,
            transport_sequence: Some(n as u16),
        }
    }

    /// One of the ten packets before the number, so long behind the last of them.
    fn repair(n: u32, after_ms: i64, direction: Direction) -> Repair {
        let coverage = Coverage { base: n as u16 - 10, pattern: Pattern::Mask(Mask::from_bits(0x3ff)) };
        Repair {
            at: at(i64::from(n) * 10 - 10 + after_ms),
            number: 10_000 + n,
            direction,
            size: 1000,
            ssrc: MEDIA,
            coverage,
        }
    }

    fn recording(packets: Vec<Packet>, repairs: Vec<Repair>) -> Recording {
        let mut out = Recording::new("capture", Format::Pcap);
        (out.packets, out.repairs) = (packets, repairs);
        out
    }

    fn broken(of: &Recording) -> Vec<(&'static str, u64)> {
        let mut found = Findings::default();
        lint(of, &mut found);
        found.0.into_iter().map(|((rule, _), (count, _))| (rule.name, count)).collect()
    }

    fn all(direction: Direction, lost: impl Fn(u32) -> bool) -> Vec<Packet> {
        (0..6_000).filter(|n| !lost(*n)).map(|n| packet(n, direction)).collect()
    }

    fn each_ten(after_ms: i64, direction: Direction) -> Vec<Repair> {
        (1..600).map(|n| repair(n * 10, after_ms, direction)).collect()
    }

    #[test]
    fn repair_packets_beside_losses_that_they_mend_break_no_rule() {
        let lossy = recording(all(Direction::Received, |n| n % 40 == 5), each_ten(5, Direction::Received));
        assert_eq!(broken(&lossy), []);
        let mut sent = recording(all(Direction::Sent, |_| false), each_ten(5, Direction::Sent));
        let report = |n: u32| Reported {
            at: at(i64::from(n) * 10 + 50),
            direction: Direction::Received,
            ssrc: None,
            sequence: n as u16,
            arrival: (n % 40 != 5).then_some(RemoteTimestamp::ZERO),
        };
        sent.reported = (0..6_000).map(report).collect();
        assert_eq!(broken(&sent), []);
        // Without any report nobody knows whether there are losses.
        sent.reported.clear();
        assert_eq!(broken(&sent), []);
        // All of them arrived: six windows, the first of which has none before it.
        sent.reported = (0..6_000).map(|n| report(n * 40)).collect();
        assert_eq!(broken(&sent), [("repair-without-loss", 5)]);
        // One in two hundred is no matter of rate.
        sent.repairs.retain(|r| r.number % 200 == 0);
        assert_eq!(broken(&sent), []);
    }

    #[test]
    fn packets_that_do_not_exist_or_are_long_past_are_no_use() {
        let lost = |n: u32| n % 40 == 5;
        let mut sent = recording(all(Direction::Sent, |_| false), each_ten(5, Direction::Sent));
        sent.repairs.iter_mut().skip(100).take(7).for_each(|r| r.coverage.base = r.coverage.base.wrapping_add(20_000));
        sent.repairs[300].coverage.pattern = Pattern::Mask(Mask::from_bits(0));
        assert_eq!(broken(&sent), [("repair-protects-nothing", 8)]);
        let late = recording(all(Direction::Received, lost), each_ten(900, Direction::Received));
        assert_eq!(broken(&late), [("repair-late", 599)]);
        // Two of each ten are missing: nothing comes back.
        let burst = recording(all(Direction::Received, |n| n % 10 < 2), each_ten(5, Direction::Received));
        assert_eq!(broken(&burst), [("repair-recovers-nothing", 1)]);
    }

    #[test]
    fn counters_of_video_tell_what_a_receiver_made_of_them() {
        let of = |kind: &str, discarded: u64| {
            let line = format!(
                "{{\"epoch_ms\":1700000000000,\"stats\":{{\"I\":{{\"type\":\"inbound-rtp\",\"kind\":\"{kind}\",\
                 \"fecPacketsReceived\":200,\"fecPacketsDiscarded\":{discarded}}}}}}}\n"
            );
            broken(&read("stats", line.as_bytes()).expect("statistics"))
        };
        assert_eq!(of("video", 199), [("repair-discarded", 1)]);
        assert_eq!((of("video", 150), of("audio", 200)), (vec![], vec![]));
    }
}
