//! The passage of each packet from the sender to the receiver, from captures at both ends or from one log with feedback.

use crate::recording::Recording;
use crate::schema::{Direction, Packet, Rtcp};
use crate::{Call, RtcpKind};
use std::collections::{BTreeMap, BTreeSet};
use weir_units::Timestamp;

/// Packets whose arrivals tell their clock's resolution, and the least one, in ms.
const MOST_TIMES: usize = 10_000;
const LEAST_GAP: f64 = 1e-3;

/// Fate of a sent packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fate {
    /// It arrived so many ms after it was sent, by two clocks whose offset is not known.
    Arrived(f64),
    /// It never arrived.
    Lost,
    /// Nobody reports.
    Unknown,
}

/// A sent packet.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Passage {
    /// When it was sent, in s since the call's begin.
    pub at: f64,
    /// Bytes of RTP header, payload and padding.
    pub size: f64,
    /// Synchronisation source.
    pub ssrc: u32,
    /// RTP timestamp.
    pub timestamp: u32,
    /// Marker bit: of video, the last packet of a picture.
    pub marker: bool,
    /// Its fate.
    pub fate: Fate,
}

/// One RTCP compound on its way back to the sender, in s, each time by its end's clock; `None`: not known, or never
/// arrived.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Answer {
    /// When it was sent, by the receiver's clock.
    pub sent: Option<f64>,
    /// When it arrived, by the sender's clock.
    pub arrived: Option<f64>,
}

/// Packets of the heavier direction of a call, and the answers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Passages {
    /// Unix time of zero, in ms.
    pub zero: f64,
    /// The packets, in the order in which they were sent.
    pub packets: Vec<Passage>,
    /// RTCP from the receiver.
    pub answers: Vec<Answer>,
    /// Whether fates are known from a capture at the receiver, else from feedback.
    pub captured: bool,
    /// Whether both times of answers are known: by captures, or by the feedback in them.
    pub both_ends: bool,
    /// Resolution of the times at which packets arrived, in ms.
    pub resolution: f64,
    /// Bytes of others' traffic from the sender's host, by time.
    pub other: Vec<(f64, f64)>,
}

impl Passages {
    /// The packets sent in a time, of which the end is not part.
    pub(super) fn between(&self, from: f64, to: f64) -> &[Passage] {
        let first = self.packets.partition_point(|p| p.at < from);
        let end = self.packets.partition_point(|p| p.at < to);
        self.packets.get(first..end).unwrap_or_default()
    }
}

pub(super) fn bytes(recording: &Recording, direction: Direction) -> u64 {
    recording.packets.iter().filter(|p| p.direction == direction).map(|p| u64::from(p.size)).sum()
}

pub(super) fn ms(at: Timestamp) -> f64 {
    at.as_nanos() as f64 * 1e-6
}

/// The passages of the packets of the heavier sender; `None` where no recording has sent packets with their fates.
pub fn passages(call: &Call) -> Option<Passages> {
    let with = |direction| {
        let all = call.recordings.iter().map(move |r| (r, bytes(r, direction))).filter(|(_, b)| *b > 0);
        all.max_by_key(|(_, b)| *b).map(|(r, _)| r)
    };
    let mut sender = with(Direction::Sent);
    let mut receiver = with(Direction::Received).filter(|r| Some(r.name.as_str()) != sender.map(|s| s.name.as_str()));
    let mut streams = None;
    if sender.is_none() {
        // Two logs that do not tell: the sender's has every packet first.
        let mut passing: Vec<&Recording> =
            call.recordings.iter().filter(|r| bytes(r, Direction::Passing) > 0).collect();
        passing.sort_by_key(|r| r.packets.first().map(|p| p.at));
        if let [first, second, ..] = passing[..]
            && let Some(found) = two_ways(first, second)
        {
            if found.is_back {
                passing.swap(0, 1);
            }
            streams = Some(found.streams);
        }
        (sender, receiver) = (passing.first().copied(), passing.get(1).copied());
    }
    let sender = sender?;
    let is_of = |p: &&Packet| {
        p.direction != Direction::Received && streams.as_ref().is_none_or(|streams| streams.contains(&p.ssrc))
    };
    let sent: Vec<&Packet> = sender.packets.iter().filter(is_of).collect();
    let zero = ms(sent.first()?.at);
    let mut out = Passages { zero, captured: receiver.is_some(), ..Passages::default() };
    let seconds = |at: Timestamp| (ms(at) - zero) * 1e-3;
    let fates = match receiver {
        Some(receiver) => by_capture(&sent, receiver),
        None => by_feedback(&sent, sender),
    };
    if fates.iter().all(|f| *f == Fate::Unknown) {
        return None;
    }
    out.packets = sent
        .iter()
        .zip(fates)
        .map(|(p, fate)| Passage {
            at: seconds(p.at),
            size: f64::from(p.size),
            ssrc: p.ssrc,
            timestamp: p.timestamp,
            marker: p.marker,
            fate,
        })
        .collect();
    out.resolution = resolution(&out.packets);
    let own: BTreeSet<u32> = sent.iter().map(|p| p.ssrc).collect();
    out.answers = answers(sender, receiver, &own, &seconds);
    out.both_ends = out.answers.iter().any(|a| a.sent.is_some());
    out.other = sender
        .other
        .iter()
        .filter(|o| o.direction == Direction::Sent)
        .map(|o| (seconds(o.at), o.bytes as f64))
        .collect();
    Some(out)
}

/// Streams of the heavier direction between two recordings of passing packets.
struct Heavier {
    streams: BTreeSet<u32>,
    /// Whether it is from the second recording to the first.
    is_back: bool,
}

/// The heavier direction where streams go both ways between two recordings: whatever their clocks, what goes one way takes longer by
/// them than anything that goes the other way. `None` where all streams go one way, or none is in both.
fn two_ways(first: &Recording, second: &Recording) -> Option<Heavier> {
    let key = |p: &Packet| (p.ssrc, p.sequence, p.timestamp);
    let mut seen: BTreeMap<(u32, u16, u32), Timestamp> = BTreeMap::new();
    for packet in &first.packets {
        seen.entry(key(packet)).or_insert(packet.at);
    }
    // Least and greatest difference of the clocks' times of a stream, and its bytes.
    let mut streams: BTreeMap<u32, (f64, f64, u64)> = BTreeMap::new();
    for packet in &second.packets {
        let Some(at) = seen.remove(&key(packet)) else { continue };
        let difference = ms(packet.at) - ms(at);
        let stream = streams.entry(packet.ssrc).or_insert((f64::INFINITY, f64::NEG_INFINITY, 0));
        stream.0 = stream.0.min(difference);
        stream.1 = stream.1.max(difference);
        stream.2 += u64::from(packet.size);
    }
    let longest = streams.values().map(|s| s.0).reduce(f64::max)?;
    let (back, there): (Vec<_>, Vec<_>) = streams.iter().partition(|(_, s)| s.1 < longest);
    if back.is_empty() {
        return None;
    }
    let sum = |of: &[(&u32, &(f64, f64, u64))]| of.iter().map(|(_, s)| s.2).sum::<u64>();
    let is_back = sum(&back) > sum(&there);
    let streams = if is_back { back } else { there };
    Some(Heavier { streams: streams.into_iter().map(|(ssrc, _)| *ssrc).collect(), is_back })
}

/// The least time between two arrivals, in ms: that of a clock in whole ms is one. Digits that are lost on the way are no time.
fn resolution(packets: &[Passage]) -> f64 {
    let arrival = |p: &Passage| if let Fate::Arrived(delay) = p.fate { Some(p.at * 1e3 + delay) } else { None };
    let mut times: Vec<f64> = packets.iter().filter_map(arrival).take(MOST_TIMES).collect();
    times.sort_by(f64::total_cmp);
    let gaps = times.windows(2).map(|w| w[1] - w[0]).filter(|gap| *gap > LEAST_GAP);
    gaps.reduce(f64::min).unwrap_or(LEAST_GAP)
}

/// Fates by a capture at the receiver. Before its first and after its last packet nothing is known.
fn by_capture(sent: &[&Packet], receiver: &Recording) -> Vec<Fate> {
    let mut arrived: BTreeMap<(u32, u16, u32), Timestamp> = BTreeMap::new();
    let received = receiver.packets.iter().filter(|p| p.direction != Direction::Sent);
    for packet in received.clone() {
        arrived.entry((packet.ssrc, packet.sequence, packet.timestamp)).or_insert(packet.at);
    }
    let key = |p: &Packet| (p.ssrc, p.sequence, p.timestamp);
    let known: Vec<usize> = (0..sent.len()).filter(|i| arrived.contains_key(&key(sent[*i]))).collect();
    let (first, last) = (known.first().copied().unwrap_or(sent.len()), known.last().copied().unwrap_or(0));
    let fate = |(i, p): (usize, &&Packet)| match arrived.get(&key(p)) {
        Some(at) => Fate::Arrived(ms(*at) - ms(p.at)),
        None if i > first && i < last => Fate::Lost,
        None => Fate::Unknown,
    };
    sent.iter().enumerate().map(fate).collect()
}

/// Fates by transport-wide feedback that the sender received.
fn by_feedback(sent: &[&Packet], sender: &Recording) -> Vec<Fate> {
    let mut fates = vec![Fate::Unknown; sent.len()];
    let mut latest: BTreeMap<u16, usize> = BTreeMap::new();
    let mut next = 0;
    for report in sender.reported.iter().filter(|r| r.direction == Direction::Received && r.ssrc.is_none()) {
        while let Some(packet) = sent.get(next).filter(|p| p.at <= report.at) {
            if let Some(number) = packet.transport_sequence {
                latest.insert(number, next);
            }
            next += 1;
        }
        let Some(i) = latest.get(&report.sequence) else { continue };
        match (report.arrival, fates[*i]) {
            (Some(arrival), _) => fates[*i] = Fate::Arrived(arrival.as_nanos() as f64 * 1e-6 - ms(sent[*i].at)),
            (None, Fate::Unknown) => fates[*i] = Fate::Lost,
            _ => {}
        }
    }
    // Clocks differ by decades: what counts is the change, and small numbers keep their digits.
    let base = fates.iter().find_map(|f| if let Fate::Arrived(d) = f { Some(*d) } else { None }).unwrap_or(0.0);
    for fate in &mut fates {
        if let Fate::Arrived(delay) = fate {
            *delay -= base;
        }
    }
    fates
}

/// RTCP on its way back. A compound is recognised by its bytes; one that is sent more than once is left out. Where recordings do not
/// tell directions, it is that of others than the sources of the media.
fn answers(
    sender: &Recording,
    receiver: Option<&Recording>,
    own: &BTreeSet<u32>,
    seconds: &dyn Fn(Timestamp) -> f64,
) -> Vec<Answer> {
    let is_back = |r: &&Rtcp, known: Direction| match r.direction {
        Direction::Passing => !own.contains(&r.sender_ssrc),
        direction => direction == known,
    };
    let here = sender.rtcp.iter().filter(|r| is_back(r, Direction::Received));
    let there = receiver.into_iter().flat_map(|r| r.rtcp.iter()).filter(|r| is_back(r, Direction::Sent));
    let mut arrived: BTreeMap<u64, f64> = BTreeMap::new();
    here.clone().for_each(|r| {
        if let Some(fingerprint) = r.fingerprint {
            arrived.entry(fingerprint).or_insert(seconds(r.at));
        }
    });
    let mut times: BTreeMap<u64, u32> = BTreeMap::new();
    there.clone().filter_map(|r| r.fingerprint).for_each(|f| *times.entry(f).or_default() += 1);
    let once = |f: &u64| times.get(f) == Some(&1);
    let both: Vec<Answer> = there
        .filter_map(|r| Some((seconds(r.at), r.fingerprint.filter(once)?)))
        .map(|(sent, fingerprint)| Answer { sent: Some(sent), arrived: arrived.get(&fingerprint).copied() })
        .collect();
    if !both.is_empty() && both.iter().any(|a| a.arrived.is_some()) {
        return both;
    }
    let feedback = |k: &RtcpKind| matches!(k, RtcpKind::Twcc { .. } | RtcpKind::Ccfb | RtcpKind::Unread(_));
    let told = told(sender);
    let answer = |r: &Rtcp| Answer { sent: told.get(&r.at).copied(), arrived: Some(seconds(r.at)) };
    here.filter(|r| feedback(&r.kind)).map(answer).collect()
}

/// By the arrival of each transport-wide feedback message, the time of the newest packet in it, in s by the receiver's
/// clock: the message is sent soon behind it.
fn told(sender: &Recording) -> BTreeMap<Timestamp, f64> {
    let rows = sender.reported.iter().filter(|r| r.direction == Direction::Received && r.ssrc.is_none());
    let rows: Vec<(Timestamp, i128)> = rows.filter_map(|r| Some((r.at, i128::from(r.arrival?.as_nanos())))).collect();
    // Clocks differ by decades: small numbers keep their digits.
    let base = rows.first().map_or(0, |r| r.1);
    let mut newest: BTreeMap<Timestamp, f64> = BTreeMap::new();
    for (at, arrival) in rows {
        let arrival = (arrival - base) as f64 * 1e-9;
        newest.entry(at).and_modify(|t| *t = t.max(arrival)).or_insert(arrival);
    }
    newest
}
