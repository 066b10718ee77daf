//! One row a second of the numbers that `getStats()` names (W3C, Identifiers for WebRTC's Statistics API).

use crate::{Recording, Series};
use std::collections::BTreeMap;

/// Longest call that is looked at, in s: two days.
const MAX_SECONDS: f64 = 172_800.0;
/// Most seconds of all series of a number together, and least series, the heaviest: an hour has room for a thousand streams.
const MAX_CELLS: usize = 4_000_000;
const LEAST_SERIES: usize = 16;
/// Mean size below which packets are of audio, in bytes without headers, and least packets a second of it.
const SMALL: f64 = 280.0;
const STEADY: f64 = 15.0;

/// A second of a call, as one end's or both ends' `getStats()` have it.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Second {
    /// Rate sent; of a receiver alone, received. In kbit/s, without headers.
    pub kbps: f64,
    /// Bytes of the RTP headers of the same, where they are counted.
    pub headers: Option<f64>,
    /// Rate received in kbit/s, without headers, where the receiver's statistics are there.
    pub arrived_kbps: Option<f64>,
    /// Packets sent.
    pub sent: f64,
    /// Packets that arrived.
    pub arrived: Option<f64>,
    /// Packets that the receiver misses.
    pub lost: Option<f64>,
    /// Packets that the sender received.
    pub answers: Option<f64>,
    /// Mean of the round-trip times measured in it, in ms.
    pub rtt: Option<f64>,
    /// Mean of those by STUN, in ms.
    pub stun_rtt: Option<f64>,
    /// Way of the sender's reports to the receiver, the longest one, in ms by two clocks.
    pub way: Option<f64>,
    /// `availableOutgoingBitrate`, in kbit/s.
    pub available: Option<f64>,
    /// Largest `targetBitrate` of an encoder, in kbit/s.
    pub target: Option<f64>,
    /// Jitter of the arrivals, in ms.
    pub jitter: Option<f64>,
    /// Standard deviation of the time between decoded frames, in ms.
    pub frame_spread: Option<f64>,
    /// Frames encoded.
    pub encoded: f64,
    /// Frames that the source gave.
    pub source: Option<f64>,
    /// Share of the second in which the encoder was limited by the processor.
    pub cpu: f64,
    /// Pictures that the other end asked for.
    pub pictures: f64,
    /// Times at which a picture stood still.
    pub freezes: Option<f64>,
    /// How long pictures stood still, in s.
    pub frozen_s: f64,
}

/// A call's seconds.
#[derive(Clone, PartialEq, Debug)]
pub struct Seconds {
    /// Unix time of zero, in ms.
    pub zero: f64,
    /// One a second.
    pub rows: Vec<Second>,
    /// Whether the receiver's own statistics are there, beside the sender's.
    pub both_ends: bool,
    /// Rate of all streams of small packets at a steady pace, such as audio, in bit/s, headers left out.
    pub audio_bps: f64,
}

fn ms(at: weir_units::Timestamp) -> f64 {
    at.as_nanos() as f64 * 1e-6
}

/// Growth of a counter over the whole recording.
pub(in crate::why) fn growth(series: &Series) -> f64 {
    series.points.first().zip(series.points.last()).map_or(0.0, |(a, b)| (b.1 - a.1).max(0.0))
}

/// Value of a counter at a time, between its points by the line through them. Reports are never whole seconds apart.
fn counter(series: &Series, time: f64) -> f64 {
    let n = series.points.partition_point(|p| ms(p.0) <= time);
    match (n.checked_sub(1).and_then(|i| series.points.get(i)), series.points.get(n)) {
        (Some(a), Some(b)) => {
            let (from, to) = (ms(a.0), ms(b.0));
            a.1 + (b.1 - a.1) * (time - from) / (to - from).max(1e-3)
        }
        (Some(only), None) | (None, Some(only)) => only.1,
        (None, None) => 0.0,
    }
}

/// Growth of a counter between two Unix times in ms.
pub(in crate::why) fn growth_between(series: &Series, from: f64, to: f64) -> f64 {
    (counter(series, to) - counter(series, from)).max(0.0)
}

/// The last value at or before a time.
fn step(series: &Series, time: f64) -> f64 {
    let n = series.points.partition_point(|p| ms(p.0) <= time);
    n.checked_sub(1).and_then(|i| series.points.get(i)).or(series.points.first()).map_or(0.0, |p| p.1)
}

/// The last value at or before a time, if it came within the seconds before.
fn gauge(series: &Series, time: f64) -> Option<f64> {
    let n = series.points.partition_point(|p| ms(p.0) <= time);
    let (at, value) = series.points.get(n.checked_sub(1)?)?;
    (time - ms(*at) < 3000.0).then_some(*value)
}

/// Series of one number over all objects of a kind of one recording.
struct Numbers<'a>(Vec<&'a Series>);

impl<'a> Numbers<'a> {
    fn of(recording: Option<&'a Recording>, kind: &str, name: &str) -> Self {
        Self(recording.into_iter().flat_map(|r| r.series_of(kind, name)).collect())
    }

    /// Those that grow most, no more than this.
    fn heaviest(mut self, most: usize) -> Self {
        if self.0.len() > most {
            self.0.sort_by(|a, b| growth(b).total_cmp(&growth(a)));
            self.0.truncate(most);
        }
        self
    }

    fn grown(&self, from: f64) -> Option<f64> {
        let grown = |s: &&Series| (counter(s, from + 1000.0) - counter(s, from)).max(0.0);
        (!self.0.is_empty()).then(|| self.0.iter().map(grown).sum())
    }

    fn largest(&self, time: f64) -> Option<f64> {
        self.0.iter().filter_map(|s| gauge(s, time)).reduce(f64::max)
    }
}

/// A sum and the count of what it is a sum of, of one object: the one that was measured most often.
struct Measured<'a>(Option<(&'a Series, &'a Series)>);

impl<'a> Measured<'a> {
    fn of(recording: Option<&'a Recording>, kind: &str, sum: &str, count: &str) -> Self {
        let counts = recording.into_iter().flat_map(|r| &r.series).filter(|((k, _, n), _)| k == kind && n == count);
        let most = counts.max_by(|a, b| growth(a.1).total_cmp(&growth(b.1)));
        let sums = recording.map(|r| &r.series);
        Self(most.and_then(|((k, id, _), count)| {
            let sum = sums?.get(&(k.clone(), id.clone(), sum.to_owned()))?;
            Some((sum, count))
        }))
    }

    /// Mean of what was measured in a second, in ms of a sum in s.
    fn mean(&self, from: f64) -> Option<f64> {
        let (sum, count) = self.0?;
        let grown = |s: &Series| (step(s, from + 1000.0) - step(s, from)).max(0.0);
        (grown(count) >= 1.0).then(|| 1000.0 * grown(sum) / grown(count))
    }
}

/// Bytes of the streams sent whose packets are small and come at a steady pace.
fn small(recording: &Recording) -> f64 {
    let bytes = recording.series.iter().filter(|((k, _, n), _)| k == "outbound-rtp" && n == "bytesSent");
    let of = bytes.filter_map(|((kind, id, _), bytes)| {
        let packets = recording.series.get(&(kind.clone(), id.clone(), "packetsSent".to_owned()))?;
        let (from, to) = (packets.points.first()?.0, packets.points.last()?.0);
        let (bytes, packets) = (growth(bytes), growth(packets));
        (bytes < SMALL * packets && packets > STEADY * (ms(to) - ms(from)) * 1e-3).then_some(bytes)
    });
    of.sum()
}

/// The longest way of a report of the sender in each second, in ms: from the sender's time in it to that at which it came. Two clocks may differ by
/// years; so the shortest way of all is zero.
fn ways(reports: &Numbers<'_>, zero: f64) -> BTreeMap<usize, f64> {
    let way = |p: &(weir_units::Timestamp, f64)| (ms(p.0) - zero, ms(p.0) - p.1);
    let all = reports.0.iter().flat_map(|s| {
        // The same report is there until the next one comes.
        let first = s.points.first().into_iter();
        first.chain(s.points.windows(2).filter(|w| w[0].1 != w[1].1).map(|w| &w[1])).map(way)
    });
    let all: Vec<(f64, f64)> = all.filter(|(at, _)| *at >= 0.0).collect();
    let least = all.iter().map(|w| w.1).fold(f64::INFINITY, f64::min);
    let mut out: BTreeMap<usize, f64> = BTreeMap::new();
    for (at, way) in all {
        let longest = out.entry((at * 1e-3) as usize).or_default();
        *longest = longest.max(way - least);
    }
    out
}

impl Seconds {
    /// The seconds of what a sender sends; without one, of what a receiver receives. `None`: nothing of it is there.
    pub(in crate::why) fn of(sender: Option<&Recording>, receiver: Option<&Recording>) -> Option<Self> {
        let sent = Numbers::of(sender, "outbound-rtp", "bytesSent");
        let got = Numbers::of(receiver, "inbound-rtp", "bytesReceived");
        let sends = !sent.0.is_empty();
        let rate = if sends { sent } else { got };
        let ends = rate.0.iter().filter_map(|s| Some((ms(s.points.first()?.0), ms(s.points.last()?.0))));
        let (zero, end) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
        let n = ((end - zero) * 1e-3).min(MAX_SECONDS) as usize;
        let most = (MAX_CELLS / n.max(1)).max(LEAST_SERIES);
        let rate = rate.heaviest(most);
        let here = |kind, name| Numbers::of(sender, kind, name).heaviest(most);
        let there = |kind, name| Numbers::of(receiver, kind, name).heaviest(most);
        let packets = here("outbound-rtp", "packetsSent");
        let arrived = there("inbound-rtp", "packetsReceived");
        let missed = there("inbound-rtp", "packetsLost");
        let told = here("remote-inbound-rtp", "packetsLost");
        let transport = here("transport", "packetsReceived");
        let pair = here("candidate-pair", "packetsReceived");
        let total = "totalRoundTripTime";
        let rtts = Measured::of(sender, "remote-inbound-rtp", total, "roundTripTimeMeasurements");
        let stun = Measured::of(sender, "candidate-pair", total, "responsesReceived");
        let ways = ways(&there("remote-outbound-rtp", "remoteTimestamp"), zero);
        let available = here("candidate-pair", "availableOutgoingBitrate");
        let jitter = there("inbound-rtp", "jitter");
        let told_jitter = here("remote-inbound-rtp", "jitter");
        let (gap, gaps, frames) = ["totalInterFrameDelay", "totalSquaredInterFrameDelay", "framesDecoded"]
            .map(|n| there("inbound-rtp", n))
            .into();
        let target = here("outbound-rtp", "targetBitrate");
        let headers = [here("outbound-rtp", "headerBytesSent"), there("inbound-rtp", "headerBytesReceived")];
        let received = there("inbound-rtp", "bytesReceived");
        let encoded = here("outbound-rtp", "framesEncoded");
        let source = here("media-source", "frames");
        let cpu = here("outbound-rtp", "qualityLimitationDurations.cpu");
        let (freezes, frozen) = ["freezeCount", "totalFreezesDuration"].map(|n| there("inbound-rtp", n)).into();
        let pictures = ["pliCount", "firCount"].map(|n| here("outbound-rtp", n));
        let row = |i: usize| {
            let from = zero + i as f64 * 1000.0;
            let time = from + 1000.0;
            let spread = || {
                let n = frames.grown(from).filter(|n| *n > 1.0)?;
                let (mean, square) = (gap.grown(from)? / n, gaps.grown(from)? / n);
                Some(libm::sqrt((square - mean * mean).max(0.0)) * 1000.0)
            };
            let pairs = || pair.grown(from);
            Second {
                kbps: rate.grown(from).unwrap_or(0.0) * 8e-3,
                headers: headers.iter().find_map(|h| h.grown(from)),
                arrived_kbps: received.grown(from).map(|bytes| bytes * 8e-3),
                sent: packets.grown(from).unwrap_or(0.0),
                arrived: arrived.grown(from),
                lost: missed.grown(from).or_else(|| told.grown(from)),
                answers: transport.grown(from).or_else(pairs),
                rtt: rtts.mean(from),
                stun_rtt: stun.mean(from),
                way: ways.get(&i).copied(),
                available: available.largest(time).map(|bps| bps * 1e-3),
                target: target.largest(time).map(|bps| bps * 1e-3),
                jitter: jitter.largest(time).or_else(|| told_jitter.largest(time)).map(|s| s * 1000.0),
                frame_spread: spread(),
                encoded: encoded.grown(from).unwrap_or(0.0),
                source: source.grown(from),
                cpu: cpu.grown(from).unwrap_or(0.0),
                pictures: pictures.iter().filter_map(|p| p.grown(from)).sum(),
                freezes: freezes.grown(from),
                frozen_s: frozen.grown(from).unwrap_or(0.0),
            }
        };
        let rows = (0..n).map(row).collect();
        let audio_bps = sender.map_or(0.0, |r| small(r) * 8e3 / (end - zero).max(1.0));
        Some(Self { zero, rows, both_ends: sends && !arrived.0.is_empty(), audio_bps })
    }
}
