//! Layers of one picture as streams of their own (simulcast, RFC 8853), one of which stops.
//!
//! Layers differ from other streams in their timestamps: those of one picture are captured together, so that the
//! difference between two layers' timestamps stays the same. It is another number than zero, since each stream begins
//! at one of its own (RFC 3550, section 5.1); retransmissions have the timestamps of what they repeat.

use super::episodes::Span;
use super::passage::{Passage, Passages};
use std::collections::BTreeMap;

/// Times before and behind an episode's begin that are compared, in s, the second around it apart.
const BEFORE: f64 = 8.0;
const BEHIND: f64 = 5.0;
const APART: f64 = 1.0;
/// Least share of the bytes before of a layer that stops, and of one that goes on: the lowest of three may have a twentieth. Most share of its own
/// rate that is left of one that stopped.
const LEAST_SHARE: f64 = 0.1;
const LEAST_LEFT: f64 = 0.02;
const STOPPED: f64 = 0.05;
/// Least frames before, and least share of those of the layer that has fewer with a frame of the other one at a constant difference: encoders
/// leave out frames of each layer on their own.
const LEAST_FRAMES: usize = 30;
const TOGETHER: f64 = 0.8;
/// Longest time between the layers of one picture, in s.
const NEAR: f64 = 0.02;

/// A layer that stopped.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Layer {
    /// Its SSRC, where packets tell.
    pub(super) ssrc: Option<u32>,
    /// Its rate before, and that of the layers of its picture that are left, in kbit/s.
    pub(super) kbps: f64,
    pub(super) left_kbps: f64,
}

#[derive(Default)]
struct Stream {
    bytes: f64,
    /// Timestamps of frames, with the time of their first packets.
    frames: Vec<(f64, u32)>,
}

fn streams(packets: &[Passage]) -> BTreeMap<u32, Stream> {
    let mut out: BTreeMap<u32, Stream> = BTreeMap::new();
    for p in packets {
        let stream = out.entry(p.ssrc).or_default();
        stream.bytes += p.size;
        if stream.frames.last().is_none_or(|f| f.1 != p.timestamp) {
            stream.frames.push((p.at, p.timestamp));
        }
    }
    out
}

/// Whether two streams' frames come in pairs at a constant difference of timestamps other than zero.
fn together(a: &Stream, b: &Stream) -> bool {
    let mut differences: BTreeMap<u32, usize> = BTreeMap::new();
    for (at, timestamp) in &a.frames {
        let next = b.frames.partition_point(|f| f.0 < *at);
        let near = [next.checked_sub(1), Some(next)].into_iter().flatten().filter_map(|i| b.frames.get(i));
        let nearest = near.min_by(|x, y| (x.0 - at).abs().total_cmp(&(y.0 - at).abs()));
        if let Some((_, other)) = nearest.filter(|f| (f.0 - at).abs() < NEAR) {
            *differences.entry(other.wrapping_sub(*timestamp)).or_default() += 1;
        }
    }
    let most = differences.into_iter().max_by_key(|d| d.1);
    most.is_some_and(|(d, n)| d != 0 && n as f64 >= TOGETHER * a.frames.len().min(b.frames.len()) as f64)
}

/// The largest layer that stopped at an episode's begin while another one of its picture went on.
pub(super) fn stopped(of: &Passages, span: &Span) -> Option<Layer> {
    let end = span.to.min(span.from + BEHIND);
    let (past, now) = ((span.from - BEFORE, span.from - APART), (span.from + APART, end));
    let (length, later) = (past.1 - past.0.max(0.0), now.1 - now.0);
    if length < 1.0 || later < 1.0 {
        return None;
    }
    let (before, after) = (streams(of.between(past.0, past.1)), streams(of.between(now.0, now.1)));
    let all: f64 = before.values().map(|s| s.bytes).sum();
    let rate = |ssrc: &u32| after.get(ssrc).map_or(0.0, |s| s.bytes / later);
    let large = before.iter().filter(|(_, s)| s.bytes >= LEAST_LEFT * all && s.frames.len() >= LEAST_FRAMES);
    let (mut off, on): (Vec<_>, Vec<_>) = large.partition(|(ssrc, s)| rate(ssrc) < STOPPED * s.bytes / length);
    off.retain(|(_, s)| s.bytes >= LEAST_SHARE * all);
    let kbps = |bytes_s: f64| bytes_s * 8e-3;
    let layer = |(ssrc, stream): &(&u32, &Stream)| {
        let left: Vec<f64> = on.iter().filter(|(_, s)| together(stream, s)).map(|(ssrc, _)| rate(ssrc)).collect();
        (!left.is_empty()).then(|| Layer {
            ssrc: Some(**ssrc),
            kbps: kbps(stream.bytes / length),
            left_kbps: kbps(left.iter().sum()),
        })
    };
    off.iter().filter_map(layer).max_by(|a, b| a.kbps.total_cmp(&b.kbps))
}
