//! Pictures and limits of the sender.

use serde::Serialize;
use std::collections::BTreeMap;
use weir_timeline::why::Passages;
use weir_timeline::{Call, EstimateKind};

/// Pictures and limits of the sender.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceFit {
    /// Pictures a second.
    pub fps: f64,
    /// Greatest rate that the sender would have sent, in bit/s.
    pub ceiling_bps: f64,
    /// Whether it is the highest target of the recording; else it is from what was sent, and the sender may have had more.
    pub ceiling_is_logged: bool,
    /// Rate at the begin, in bit/s.
    pub start_bps: f64,
    /// Rate of all streams of small packets at a steady pace, such as audio, in bit/s.
    pub audio_bps: f64,
    /// Rates in bit/s from given times on, in s, where the sender sent less than its target; its ceiling elsewhere.
    pub demand: Vec<(f64, f64)>,
}

/// Clock of video (RFC 3551, section 5).
const VIDEO_CLOCK: f64 = 90_000.0;
/// Mean size below which a stream is audio, in bytes, and least packets a second of it.
const SMALL: f64 = 300.0;
const STEADY: f64 = 15.0;
/// Quantile of the seconds that stands for the highest rate, where no target is known: an encoder overshoots now and then.
const HIGHEST: f64 = 0.95;
/// Time at the begin in which the start rate is looked for, in s, and first pictures whose median tells it: the first one of all is larger than its
/// share, and later ones follow from what the sender has learnt of the path.
const BEGIN: f64 = 0.3;
const PICTURES: usize = 3;
/// Share of the target below which the source limits the rate, and least time of it in s.
const LIMITED: f64 = 0.6;
const LASTING: usize = 3;
/// Pictures a second where timestamps do not say, and the bounds of what they say.
const FPS: f64 = 30.0;
const SENSIBLE: std::ops::RangeInclusive<f64> = 4.0..=120.0;

#[derive(Default)]
struct Stream {
    packets: f64,
    bytes: f64,
    stamps: BTreeMap<u32, ()>,
}

pub(crate) fn find(call: &Call, passages: &Passages) -> SourceFit {
    let mut streams: BTreeMap<u32, Stream> = BTreeMap::new();
    let times = passages.packets.iter().map(|p| p.at).filter(|at| at.is_finite());
    let length = times.fold(1.0, f64::max);
    for p in &passages.packets {
        let s = streams.entry(p.ssrc).or_default();
        s.packets += 1.0;
        s.bytes += p.size;
        s.stamps.insert(p.timestamp, ());
    }
    let is_audio = |s: &Stream| s.bytes / s.packets < SMALL && s.packets / length > STEADY;
    let audio: BTreeMap<u32, ()> = streams.iter().filter(|(_, s)| is_audio(s)).map(|(k, _)| (*k, ())).collect();
    let video = streams.iter().filter(|(k, _)| !audio.contains_key(k)).max_by(|a, b| a.1.bytes.total_cmp(&b.1.bytes));
    let fps = video.map_or(FPS, |(_, s)| frame_rate(s.stamps.keys().copied()));
    let audio_bps = streams.iter().filter(|(k, _)| audio.contains_key(k)).map(|(_, s)| s.bytes * 8.0 / length).sum();
    // Video by second.
    let mut sent = vec![0.0; length as usize + 1];
    for p in passages.packets.iter().filter(|p| !audio.contains_key(&p.ssrc)) {
        if let Some(second) = sent.get_mut(p.at.max(0.0) as usize) {
            *second += p.size * 8.0;
        }
    }
    let targets = targets(call, passages.zero, sent.len());
    let logged = targets.iter().flatten().copied().fold(0.0, f64::max);
    let mut sorted = sent.clone();
    sorted.sort_by(f64::total_cmp);
    let highest = sorted[((sorted.len() - 1) as f64 * HIGHEST) as usize];
    let ceiling_is_logged = logged > 0.0;
    let ceiling_bps = if ceiling_is_logged { logged } else { highest };
    let demand = if ceiling_is_logged { limits(&sent, &targets, ceiling_bps) } else { Vec::new() };
    let sent_first = || {
        let begin = passages.packets.iter().filter(|p| p.at < BEGIN && !audio.contains_key(&p.ssrc));
        begin.map(|p| p.size * 8.0).sum::<f64>() / BEGIN
    };
    let drawn = || Some(first_pictures(passages, *video?.0)? * 8.0 * fps);
    let start_bps = first_target(call, passages.zero).or_else(drawn).unwrap_or_else(sent_first).max(50e3);
    SourceFit { fps, ceiling_bps: ceiling_bps.max(100e3), ceiling_is_logged, start_bps, audio_bps, demand }
}

/// Median size of the first pictures of a stream, in bytes; `None`: too few have an end. What has a picture's timestamp and comes behind its
/// end is padding, such as probes have.
fn first_pictures(passages: &Passages, ssrc: u32) -> Option<f64> {
    let mut of = passages.packets.iter().filter(|p| p.ssrc == ssrc).peekable();
    let mut sizes = Vec::new();
    while let Some(first) = of.next().filter(|_| sizes.len() < PICTURES) {
        let (mut size, mut has_end) = (first.size, first.marker);
        while let Some(p) = of.next_if(|p| p.timestamp == first.timestamp) {
            size += if has_end { 0.0 } else { p.size };
            has_end |= p.marker;
        }
        if has_end {
            sizes.push(size);
        }
    }
    sizes.sort_by(f64::total_cmp);
    (sizes.len() == PICTURES).then(|| sizes[PICTURES / 2])
}

/// By the usual distance of timestamps.
fn frame_rate(stamps: impl Iterator<Item = u32>) -> f64 {
    let all: Vec<u32> = stamps.collect();
    let mut gaps: Vec<u32> = all.windows(2).map(|w| w[1].wrapping_sub(w[0])).collect();
    gaps.sort_unstable();
    let rate = gaps.get(gaps.len() / 2).map_or(FPS, |g| VIDEO_CLOCK / f64::from((*g).max(1)));
    if SENSIBLE.contains(&rate) { rate } else { FPS }
}

/// The target at the begin.
fn first_target(call: &Call, zero_ms: f64) -> Option<f64> {
    let all = call.recordings.iter().flat_map(|r| &r.estimates);
    let known = all.filter(|e| matches!(e.kind, EstimateKind::Target | EstimateKind::Delay));
    let first = known.min_by_key(|e| e.at)?;
    ((first.at.as_nanos() as f64 * 1e-6 - zero_ms).abs() < BEGIN * 1e3).then(|| first.rate.as_bps() as f64)
}

/// The last target in each second of the call.
fn targets(call: &Call, zero_ms: f64, seconds: usize) -> Vec<Option<f64>> {
    let mut out = vec![None; seconds];
    let mut all: Vec<(f64, f64)> = (call.recordings.iter())
        .flat_map(|r| &r.estimates)
        .filter(|e| e.kind == EstimateKind::Target)
        .map(|e| ((e.at.as_nanos() as f64 * 1e-6 - zero_ms) * 1e-3, e.rate.as_bps() as f64))
        .collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut next = 0;
    let mut last = None;
    for (second, slot) in out.iter_mut().enumerate() {
        while let Some((_, rate)) = all.get(next).filter(|t| t.0 <= second as f64 + 0.5) {
            last = Some(*rate);
            next += 1;
        }
        *slot = last;
    }
    out
}

/// Times in which much less than the target was sent.
fn limits(sent: &[f64], targets: &[Option<f64>], ceiling: f64) -> Vec<(f64, f64)> {
    let limited: Vec<bool> = sent.iter().zip(targets).map(|(s, t)| t.is_some_and(|t| *s < LIMITED * t)).collect();
    let mut out = Vec::new();
    let mut second = 0;
    while second < sent.len() {
        let run = limited[second..].iter().take_while(|l| **l).count();
        // The last second is not whole.
        if run >= LASTING && second + run < sent.len() {
            let mean = sent[second..second + run].iter().sum::<f64>() / run as f64;
            out.push((second as f64, mean));
            out.push(((second + run) as f64, ceiling));
        }
        second += run.max(1);
    }
    out
}
