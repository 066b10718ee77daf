//! Recordings of both ends as `getStats()` of a browser would show them, once a second.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use weir_timeline::{Direction, EstimateKind, Packet, Recording, RtcpKind, read};
use weir_units::Timestamp;

/// Clock of video (RFC 3551, section 5), in kHz.
const CLOCK_KHZ: f64 = 90.0;
/// Frames whose delays set the time at which the next is shown, and the share of them that is then there in time.
const FRAMES: usize = 150;
const IN_TIME: f64 = 0.95;
/// Frames that the usual interval is the mean of (W3C, Identifiers for WebRTC's Statistics API, `freezeCount`).
const USUAL: usize = 30;

type Key = (u32, u16, u32);

fn key(p: &Packet) -> Key {
    (p.ssrc, p.sequence, p.timestamp)
}

fn s(at: Timestamp) -> f64 {
    at.as_nanos() as f64 * 1e-9
}

/// The statistics of the sender and of the receiver.
pub(super) fn of(sender: &Recording, receiver: &Recording) -> [Recording; 2] {
    let [left, right] = [sending(sender, receiver), receiving(sender, receiver)];
    let lines = |of: Vec<Value>| {
        let line = |(i, objects): (usize, Value)| json!({ "epoch_ms": 1000 * (i + 1), "stats": objects }).to_string();
        of.into_iter().enumerate().map(line).collect::<Vec<String>>().join("\n")
    };
    [("left", left), ("right", right)].map(|(name, of)| {
        let text = lines(of);
        read(name, text.as_bytes()).unwrap_or_else(|_| weir_timeline::Observed::new(name, None).finish())
    })
}

/// Whole seconds of a recording.
fn length(of: &Recording) -> usize {
    of.packets.last().map_or(0, |p| s(p.at) as usize)
}

/// Arrivals of packets at the receiver.
fn arrivals(receiver: &Recording) -> BTreeMap<Key, f64> {
    let of = receiver.packets.iter().filter(|p| p.direction == Direction::Received);
    let mut out = BTreeMap::new();
    of.for_each(|p| {
        out.entry(key(p)).or_insert(s(p.at));
    });
    out
}

fn sending(sender: &Recording, receiver: &Recording) -> Vec<Value> {
    let arrived = arrivals(receiver);
    let sent: Vec<&Packet> = sender.packets.iter().filter(|p| p.direction == Direction::Sent).collect();
    // Reports without news have the same bytes: the last one before an arrival counts.
    let mut left: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for r in receiver.rtcp.iter().filter(|r| r.direction == Direction::Sent) {
        if let Some(fingerprint) = r.fingerprint {
            left.entry(fingerprint).or_default().push(s(r.at));
        }
    }
    let answers: Vec<_> = sender.rtcp.iter().filter(|r| r.direction == Direction::Received).collect();
    let (mut bytes, mut frames, mut last) = (0.0, 0u32, None);
    let (mut rtts, mut measured) = (0.0, 0u32);
    let (mut i, mut a, mut estimate) = (0, 0, 0);
    let mut way = None;
    let mut second = |n: usize| {
        let end = n as f64 + 1.0;
        // A sender report a second, which comes behind the media that is sent with it.
        let mut report = None;
        while let Some(p) = sent.get(i).filter(|p| s(p.at) < end) {
            bytes += f64::from(p.size) - 12.0;
            frames += u32::from(last != Some(p.timestamp));
            last = Some(p.timestamp);
            report = report.or_else(|| Some(arrived.get(&key(p)).copied()? - s(p.at)));
            i += 1;
        }
        let mut back = None;
        while let Some(r) = answers.get(a).filter(|r| s(r.at) < end) {
            let sent = r.fingerprint.and_then(|f| left.get(&f)?.iter().rev().find(|at| **at < s(r.at)));
            back = sent.map(|at| s(r.at) - at).or(back);
            a += 1;
        }
        if let Some((there, back)) = way.or(report).zip(back) {
            (rtts, measured) = (rtts + there + back, measured + 1);
        }
        // The receiver's report answers the sender report before it.
        way = report;
        while sender.estimates.get(estimate + 1).is_some_and(|e| s(e.at) < end) {
            estimate += 1;
        }
        let available = sender.estimates.get(estimate).filter(|e| e.kind == EstimateKind::Target);
        let pair = sender.pairs.iter().rev().find(|p| s(p.at) < end).map_or("1", |p| p.pair.as_str());
        let pictures = answers[..a].iter().filter(|r| r.kind == RtcpKind::Pli).count();
        json!({
            "O": { "type": "outbound-rtp", "kind": "video", "bytesSent": bytes, "packetsSent": i, "framesEncoded": frames, "pliCount": pictures },
            "R": { "type": "remote-inbound-rtp", "kind": "video", "totalRoundTripTime": rtts, "roundTripTimeMeasurements": measured },
            "C": { "type": "candidate-pair", "availableOutgoingBitrate": available.map(|e| e.rate.as_bps()) },
            "T": { "type": "transport", "packetsReceived": a, "selectedCandidatePairId": pair },
        })
    };
    (0..length(sender)).map(&mut second).collect()
}

/// Counters of a stream that is received.
#[derive(Default)]
struct Stream {
    first: i64,
    highest: i64,
    packets: u32,
}

fn receiving(sender: &Recording, receiver: &Recording) -> Vec<Value> {
    let shown = shown(sender, receiver);
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    let mut of = receiver.packets.iter().filter(|p| p.direction == Direction::Received).peekable();
    let (mut packets, mut bytes, mut jitter, mut transit) = (0u32, 0.0, 0.0f64, None::<f64>);
    let (mut frames, mut gaps, mut squares, mut freezes, mut frozen) = (0usize, 0.0, 0.0, 0u32, 0.0);
    let mut second = |n: usize| {
        let end = n as f64 + 1.0;
        while let Some(p) = of.next_if(|p| s(p.at) < end) {
            (packets, bytes) = (packets + 1, bytes + f64::from(p.size) - 12.0);
            let number = i64::from(p.sequence);
            let stream = streams.entry(p.ssrc).or_insert(Stream { first: number, highest: number, packets: 0 });
            let near = stream.highest + i64::from(p.sequence.wrapping_sub(stream.highest as u16) as i16);
            (stream.highest, stream.packets) = (stream.highest.max(near), stream.packets + 1);
            // RFC 3550, section 6.4.1.
            let way = s(p.at) * 1e3 - f64::from(p.timestamp) / CLOCK_KHZ;
            if let Some(before) = transit.filter(|before| (way - before).abs() < 5_000.0) {
                jitter += ((way - before).abs() - jitter) / 16.0;
            }
            transit = Some(way);
        }
        while let Some(at) = shown.get(frames).filter(|at| **at < end) {
            if let Some(before) = frames.checked_sub(1).map(|i| shown[i]) {
                let gap = at - before;
                (gaps, squares) = (gaps + gap, squares + gap * gap);
                if let Some(past) = frames.checked_sub(USUAL).map(|i| shown[i]) {
                    let usual = (before - past) / (USUAL - 1) as f64;
                    if gap > (3.0 * usual).max(usual + 0.15) {
                        (freezes, frozen) = (freezes + 1, frozen + gap);
                    }
                }
            }
            frames += 1;
        }
        let lost: i64 = streams.values().map(|s| s.highest - s.first + 1 - i64::from(s.packets)).sum();
        json!({ "I": {
            "type": "inbound-rtp", "kind": "video", "packetsReceived": packets, "bytesReceived": bytes, "packetsLost": lost,
            "jitter": jitter * 1e-3, "framesDecoded": frames, "totalInterFrameDelay": gaps, "totalSquaredInterFrameDelay": squares,
            "freezeCount": freezes, "totalFreezesDuration": frozen,
        } })
    };
    (0..length(sender)).map(&mut second).collect()
}

/// When whole frames are shown, in s: in order, each as much behind its sending as most before it needed.
fn shown(sender: &Recording, receiver: &Recording) -> Vec<f64> {
    let arrived = arrivals(receiver);
    // By stream and timestamp: when the frame was sent, and the last arrival, if all have arrived. What is sent again counts once.
    let mut frames: BTreeMap<(u32, u32), (f64, Option<f64>)> = BTreeMap::new();
    for p in sender.packets.iter().filter(|p| p.direction == Direction::Sent) {
        let at = arrived.get(&key(p)).copied();
        let frame = frames.entry((p.ssrc, p.timestamp)).or_insert((s(p.at), Some(0.0)));
        frame.1 = frame.1.zip(at).map(|(last, at)| last.max(at));
    }
    let mut whole: Vec<(f64, f64)> = frames.into_values().filter_map(|(sent, at)| Some((sent, at?))).collect();
    whole.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut delays, mut out) = (Vec::<f64>::new(), Vec::<f64>::new());
    for (sent, at) in whole {
        let mut past = delays[delays.len().saturating_sub(FRAMES)..].to_vec();
        past.sort_by(f64::total_cmp);
        let wait = past.get((past.len() as f64 * IN_TIME) as usize).copied().unwrap_or(0.0);
        delays.push(at - sent);
        out.push(at.max(sent + wait).max(out.last().copied().unwrap_or(0.0)));
    }
    out
}
