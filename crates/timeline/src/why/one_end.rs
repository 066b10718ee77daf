//! Episodes of a call of which one end's packets are known, and nobody's feedback on them: one capture, or a receiver's log.
//!
//! Of what arrived, numbers that are missing in a stream are taken for lost, at even distances between the packets around them. When
//! packets were sent is not known, and so neither whether a queue stood: most causes are not told apart, and `missing` says what would
//! do it.

use super::bins::{BIN, Bin, bins};
use super::episodes::{self, Span};
use super::evidence::Evidence;
use super::passage::{Fate, Passage, Passages, bytes, ms};
use super::rules::Signals;
use super::{Cause, Episode, EpisodeKind, Explanation, Level, frames};
use crate::schema::{Direction, Packet};
use crate::{Call, Format, Recording};
use std::collections::BTreeMap;

/// Most numbers in a row that are taken for lost: beyond, a sender has restarted (RFC 3550, appendix A.1).
const MAX_DROPOUT: i64 = 3_000;
/// Most lost packets that are kept, as a multiple of those that arrived.
const MOST_LOST: usize = 8;
/// Least time in which nothing arrives, in s, and times around an episode's begin in which it is looked for.
const DARK: f64 = 0.8;
const EARLY: f64 = 3.0;
const LATE: f64 = 4.0;
/// Least share and number of packets lost, and packets in a row up to which chance loses them, as for packets at both ends.
const LEAST_LOSS: f64 = 0.02;
const LEAST_LOST: u32 = 10;
const RANDOM_RUN: f64 = 1.5;
/// Share of a silence that the sender's clock advanced over it, below which its packets were held back.
const HELD: f64 = 0.3;

/// Packets of a call as one end saw them.
struct Seen {
    passages: Passages,
    /// Whether they were seen where they arrived; else where they were sent.
    arrived: bool,
}

/// The recording and the direction with most bytes.
fn heaviest(call: &Call) -> Option<(&Recording, Direction)> {
    let ways = [Direction::Received, Direction::Passing, Direction::Sent];
    let all = call.recordings.iter().flat_map(|r| ways.map(|way| (r, way, bytes(r, way))));
    all.filter(|w| w.2 > 0).max_by_key(|w| w.2).map(|(r, way, _)| (r, way))
}

/// A stream's numbers in the order of arrival.
struct Numbers {
    highest: i64,
    at: f64,
}

fn seen(call: &Call) -> Option<Seen> {
    let (recording, way) = heaviest(call)?;
    let arrived = way != Direction::Sent;
    let packets: Vec<&Packet> = recording.packets.iter().filter(|p| p.direction == way).collect();
    let zero = ms(packets.first()?.at);
    let mut out = Passages { zero, ..Passages::default() };
    let mut streams: BTreeMap<u32, Numbers> = BTreeMap::new();
    // Gaps by stream and number, for packets that come late.
    let mut gaps: BTreeMap<(u32, i64), usize> = BTreeMap::new();
    let most = packets.len().saturating_mul(MOST_LOST);
    let fate = if arrived { Fate::Arrived(0.0) } else { Fate::Unknown };
    for p in packets {
        let at = (ms(p.at) - zero) * 1e-3;
        let size = f64::from(p.size);
        let passage = Passage { at, size, ssrc: p.ssrc, timestamp: p.timestamp, marker: p.marker, fate };
        let stream = streams.entry(p.ssrc).or_insert(Numbers { highest: i64::from(p.sequence), at });
        let number = stream.highest + i64::from(p.sequence.wrapping_sub(stream.highest as u16) as i16);
        let gap = number - stream.highest - 1;
        if arrived && (1..=MAX_DROPOUT).contains(&gap) && gaps.len() < most {
            for i in 1..=gap {
                let at = stream.at + (at - stream.at) * i as f64 / (gap + 1) as f64;
                gaps.insert((p.ssrc, stream.highest + i), out.packets.len());
                out.packets.push(Passage { at, fate: Fate::Lost, ..passage });
            }
        }
        if gap < 0
            && let Some(i) = gaps.remove(&(p.ssrc, number))
        {
            // It was late: its place is when it came.
            out.packets[i].fate = Fate::Unknown;
            out.packets[i].size = 0.0;
        }
        if gap >= 0 {
            *stream = Numbers { highest: number, at };
        }
        out.packets.push(passage);
    }
    out.packets.sort_by(|a, b| a.at.total_cmp(&b.at));
    Some(Seen { passages: out, arrived })
}

/// The episodes of such a call; `None`: no packet is in it.
pub(super) fn explain(call: &Call) -> Option<Explanation> {
    let Seen { passages, arrived } = seen(call)?;
    let bins = bins(&passages);
    let rates: Vec<f64> = bins.iter().map(|b| if arrived { b.arrived_kbps } else { b.sent_kbps }).collect();
    let first = bins.get(..20).unwrap_or(&bins);
    let (known, lost) = first.iter().fold((0.0, 0.0), |(k, l), b| (k + f64::from(b.known), l + f64::from(b.lost)));
    let mut spans: Vec<Span> = episodes::slow_start(&rates, BIN, known, lost).into_iter().collect();
    spans.extend(episodes::falls(&rates, BIN, episodes::SMOOTH, episodes::BEFORE, episodes::START));
    if arrived {
        let stood = frames::frames(call, &passages);
        spans.extend(episodes::freezes(stood.iter().flat_map(|times| episodes::still(times)), &rates, BIN, true));
    }
    let signals = Signals::of(call, passages.zero);
    let episodes: Vec<Episode> = episodes::explained(spans, passages.zero, |span| {
        let mut found = signals.causes(span, false);
        // Pictures are asked for by this end too, whose requests are not the sender's.
        found.retain(|c| c.name == "route-change");
        if arrived {
            found.extend(causes(&passages, &bins, span));
        }
        if found.is_empty() {
            let known = if arrived { "when packets were sent" } else { "what became of the packets" };
            let evidence = vec![format!("from {:.0} to {:.0} kbit/s", span.before_kbps, span.least_kbps)];
            let evidence = [evidence, vec![format!("{known} is not known")]].concat();
            found.push(Cause { name: "not-known".into(), confidence: 0.0, evidence });
        }
        found
    });
    Some(Explanation { level: Level::OneEnd, episodes, missing: None })
}

fn causes(of: &Passages, bins: &[Bin], span: &Span) -> Vec<Cause> {
    let e = Evidence::around(of, bins, span);
    let cause = |name: &'static str, confidence, evidence| Cause { name: name.into(), confidence, evidence };
    let whole = span.kind == EpisodeKind::SlowStart;
    let (from, to) = if whole { (0.0, span.to) } else { (span.from - EARLY, span.from + LATE) };
    let silence = silence(of.between(from, to)).filter(|s| s.length >= DARK);
    if let Some(s) = &silence
        && s.lost > 0
        && 2 * s.lost >= e.lost
    {
        let text =
            format!("nothing arrived for {:.1} s, and {} packets that were sent in it are missing", s.length, s.lost);
        return vec![cause("outage", 0.85, vec![text])];
    }
    let mut found = Vec::new();
    if let Some(s) = silence.filter(|s| s.lost == 0) {
        let nothing = format!("nothing arrived for {:.1} s, and nothing is missing", s.length);
        match s.advanced {
            Some(share) if share < HELD => {
                let text = "what came then was of the time before: it was held back".into();
                found.push(cause("stalls", 0.45, vec![nothing, text]));
            }
            Some(_) => {
                let text = "timestamps went on by the same time: nothing was sent in it".into();
                found.push(cause("source-paused", 0.5, vec![nothing, text]));
            }
            None => {}
        }
    }
    if e.loss >= LEAST_LOSS && e.lost >= LEAST_LOST {
        let text = format!("{:.1} % of packets missing, {:.1} in a row", e.loss * 100.0, e.run);
        let before = format!("{:.1} % before; whether a queue was full is not known", e.loss_before * 100.0);
        let name = if e.run < RANDOM_RUN { "random-loss" } else { "burst-loss" };
        found.push(cause(name, 0.4, vec![text, before]));
        if span.kind != EpisodeKind::Freeze {
            found.push(cause("capacity-fell", 0.35, vec!["a full queue would lose them as well".into()]));
        }
    }
    found
}

/// The longest time in which nothing arrived.
struct Silence {
    length: f64,
    /// Packets missing in it.
    lost: u32,
    /// Share of it by which the timestamps of the heaviest stream advanced.
    advanced: Option<f64>,
}

fn silence(packets: &[Passage]) -> Option<Silence> {
    let arrived: Vec<&Passage> = packets.iter().filter(|p| matches!(p.fate, Fate::Arrived(_))).collect();
    let longest = arrived.windows(2).max_by(|a, b| (a[1].at - a[0].at).total_cmp(&(b[1].at - b[0].at)))?;
    let (from, to) = (longest[0].at, longest[1].at);
    let lost = packets.iter().filter(|p| p.fate == Fate::Lost && p.at >= from && p.at <= to).count() as u32;
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    arrived.iter().for_each(|p| *counts.entry(p.ssrc).or_default() += 1);
    let (ssrc, _) = counts.into_iter().max_by_key(|c| c.1)?;
    let stream: Vec<&&Passage> = arrived.iter().filter(|p| p.ssrc == ssrc).collect();
    let ticks = |a: &Passage, b: &Passage| f64::from(b.timestamp.wrapping_sub(a.timestamp) as i32);
    let cut = stream.partition_point(|p| p.at <= from);
    let advanced = || {
        let (last, next) = (stream.get(cut.checked_sub(1)?)?, stream.get(cut)?);
        // The stream's clock, by the time before.
        let (first, before) = (stream.first()?, last.at - stream.first()?.at);
        let clock = ticks(first, last) / before;
        (before >= 1.0 && clock > 0.0).then(|| ticks(last, next) / clock / (next.at - last.at).max(1e-3))
    };
    Some(Silence { length: to - from, lost, advanced: advanced() })
}

/// Evidence that is missing for causes on this level, and how to get it.
pub(super) fn missing(call: &Call, level: Level) -> Option<String> {
    if level > Level::OneEnd {
        return None;
    }
    let with: Vec<&Recording> = call.recordings.iter().filter(|r| !r.packets.is_empty()).collect();
    let streams = |r: &Recording| r.packets.iter().map(|p| p.ssrc).collect::<std::collections::BTreeSet<u32>>();
    if let [first, others @ ..] = with.as_slice()
        && !others.is_empty()
    {
        let of_first = streams(first);
        if let Some(other) = others.iter().find(|o| streams(o).is_disjoint(&of_first)) {
            return Some(format!(
                "No stream of {} is in {}: they are of different calls, or a server between them gives streams other numbers",
                first.name, other.name
            ));
        }
    }
    let way_out = "the other end's capture, the sender's event log or getStats() of both ends, given beside it, tell causes apart";
    Some(match heaviest(call) {
        Some((r, Direction::Sent)) => {
            format!("{} has what was sent, and no feedback on it that can be read: {way_out}", r.name)
        }
        Some((r, _)) => format!("{} has what arrived, and not when it was sent: {way_out}", r.name),
        None if call.recordings.iter().any(|r| matches!(r.format, Format::WeirSeries | Format::WeirResult)) => {
            "Series and reports of runs have no packets: weir run NAME --explain finds causes by those, and --pcap writes them".into()
        }
        None if call.recordings.iter().any(|r| r.format == Format::WeirPage) => {
            "A page of calls has no packets: the capture that is saved beside it has them".into()
        }
        None if call.recordings.iter().all(|r| matches!(r.format, Format::Pcap | Format::Pcapng)) => {
            "No stream of RTP is in it, four packets and more of one source: perhaps another interface was captured, or the media \
             went over TCP or through a tunnel"
                .into()
        }
        None => {
            "Neither packets nor getStats() with a rate are in it: a capture, an event log or a dump has them".into()
        }
    })
}
