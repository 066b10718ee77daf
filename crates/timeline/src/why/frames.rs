//! When pictures came to the receiver.

use super::passage::{Fate, Passages};
use crate::Call;
use std::collections::BTreeMap;

/// Clock of video (RFC 3551, section 5), with the error of a span from first to last frame, and least frames of a stream.
const CLOCK: std::ops::Range<f64> = 80_000.0..100_000.0;
const LEAST_FRAMES: usize = 60;

/// Times of frames, in s since the call's begin, a list a stream: those that an end decoded, else those of which any
/// packet arrived, by its last one.
pub(super) fn frames(call: &Call, of: &Passages) -> Vec<Vec<f64>> {
    let decoded = decoded(call, of.zero);
    if !decoded.is_empty() {
        return decoded;
    }
    let mut least = f64::INFINITY;
    for p in &of.packets {
        if let Fate::Arrived(delay) = p.fate {
            least = least.min(delay);
        }
    }
    // By stream: timestamps of frames, unwrapped, with the last packet's arrival.
    let mut streams: BTreeMap<u32, (i64, BTreeMap<i64, f64>)> = BTreeMap::new();
    for p in &of.packets {
        let Fate::Arrived(delay) = p.fate else { continue };
        let at = p.at + (delay - least) * 1e-3;
        let (last, frames) = streams.entry(p.ssrc).or_insert((i64::from(p.timestamp), BTreeMap::new()));
        let timestamp = *last + i64::from(p.timestamp.wrapping_sub(*last as u32) as i32);
        *last = timestamp;
        frames.entry(timestamp).and_modify(|t| *t = t.max(at)).or_insert(at);
    }
    let video = |frames: &BTreeMap<i64, f64>| {
        // The first packets may have a timestamp that is none of a picture.
        let apart = frames.len() / 20;
        let (Some(a), Some(b)) = (frames.iter().nth(apart), frames.iter().nth_back(apart)) else { return false };
        frames.len() >= LEAST_FRAMES && CLOCK.contains(&((b.0 - a.0) as f64 / (b.1 - a.1).max(1e-3)))
    };
    let times = |frames: BTreeMap<i64, f64>| {
        let mut times: Vec<f64> = frames.into_values().collect();
        times.sort_by(f64::total_cmp);
        times
    };
    streams.into_values().map(|(_, frames)| frames).filter(video).map(times).collect()
}

/// Decoded frames, a list a stream.
fn decoded(call: &Call, zero: f64) -> Vec<Vec<f64>> {
    let mut streams: BTreeMap<(usize, u32), Vec<f64>> = BTreeMap::new();
    for (i, r) in call.recordings.iter().enumerate() {
        for frame in &r.frames {
            streams.entry((i, frame.ssrc)).or_default().push(frame.at.as_nanos() as f64 * 1e-9 - zero * 1e-3);
        }
    }
    streams.into_values().filter(|times| times.len() >= LEAST_FRAMES).collect()
}
