//! Falls of the rate, pictures that stand still, and slow starts.

use super::bins::{BIN, Bin};
use super::{Cause, Episode, EpisodeKind};

/// Share of the rate before, below which it has fallen, and above which it has come back.
const FALLEN: f64 = 0.8;
const BACK: f64 = 0.9;
/// Bins that the rate before is the median of: 8 s.
pub(super) const BEFORE: usize = 16;
/// Time directly before, that is left out of it, in s.
const GUARD: f64 = 2.0;
/// Bins that a rate is the mean of: 1 s, so that key frames are no falls behind them.
pub(super) const SMOOTH: usize = 2;
/// Bins at the start in which a rate is found first.
pub(super) const START: usize = 8;
/// Bins of the start that are looked at for lasting loss: 10 s.
const FIRST: usize = 20;
/// Share of lost packets that lasts, and least packets that it is a share of.
const LASTING_LOSS: f64 = 0.02;
const LEAST_PACKETS: u32 = 200;
/// Shortest start, in s, whose losses say something of the start and not of a moment.
const SHORTEST: f64 = 2.0;
/// Time after which half of the usual rate comes late, in s; shortest call in which there is a usual rate, in s, and
/// least usual rate in kbit/s.
const LATE: f64 = 6.0;
const LONG: f64 = 20.0;
const LEAST_KBPS: f64 = 200.0;
/// Frames that the mean interval is taken of, and how much longer a freeze is: three times it, and 150 ms more than it
/// (W3C, Identifiers for WebRTC's Statistics API, `freezeCount`).
const FRAMES: usize = 30;
const STILL: f64 = 3.0;
const STILL_S: f64 = 0.15;
/// Freezes that are no further apart are one episode, in s.
const APART: f64 = 3.0;
/// A freeze so long before and behind a fall's begin is of the same cause, in s.
const SAME_BEFORE: f64 = 3.0;
const SAME_BEHIND: f64 = 8.0;

/// An episode's times, in s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) kind: EpisodeKind,
    /// Rate before, and the least one in it, in kbit/s.
    pub(super) before_kbps: f64,
    pub(super) least_kbps: f64,
    /// Freezes in it, and their sum in s, where each is known.
    pub(super) frozen: Option<(u32, f64)>,
}

/// The episodes of a call whose pictures came at `frames`, a list a stream, in s.
pub(super) fn find(bins: &[Bin], frames: &[Vec<f64>]) -> Vec<Span> {
    let rates: Vec<f64> = bins.iter().map(|b| b.sent_kbps).collect();
    let first = &bins[..bins.len().min(FIRST)];
    let (known, lost) = first.iter().fold((0, 0), |(k, l), b| (k + b.known, l + b.lost));
    let mut found: Vec<Span> = slow_start(&rates, BIN, f64::from(known), f64::from(lost)).into_iter().collect();
    found.extend(falls(&rates, BIN, SMOOTH, BEFORE, START));
    let stood: Vec<(f64, f64)> = frames.iter().flat_map(|times| still(times)).collect();
    found.extend(freezes(stood, &rates, BIN, true));
    found
}

/// A start with lasting loss among the packets known in its first 10 s, or one that comes late to half of the rate that
/// three quarters of the call do not exceed.
pub(super) fn slow_start(rates: &[f64], bin: f64, known: f64, lost: f64) -> Option<Span> {
    let first = &rates[..rates.len().min((FIRST as f64 * BIN / bin) as usize)];
    let kind = EpisodeKind::SlowStart;
    let is_long = first.len() as f64 * bin >= SHORTEST;
    if is_long && known >= f64::from(LEAST_PACKETS) && lost >= LASTING_LOSS * known {
        let mean = first.iter().sum::<f64>() / first.len().max(1) as f64;
        return Some(Span {
            from: 0.0,
            to: first.len() as f64 * bin,
            kind,
            before_kbps: mean,
            least_kbps: mean,
            frozen: None,
        });
    }
    if (rates.len() as f64) * bin < LONG {
        return None;
    }
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let usual = sorted[sorted.len() * 3 / 4];
    let second = (1.0 / bin + 0.5) as usize;
    let reached = rates.windows(second.max(1)).position(|w| w.iter().sum::<f64>() >= 0.5 * usual * w.len() as f64)?;
    let to = reached as f64 * bin;
    let least_kbps = rates[..reached].iter().copied().fold(f64::INFINITY, f64::min);
    (to >= LATE && usual >= LEAST_KBPS).then_some(Span {
        from: 0.0,
        to,
        kind,
        before_kbps: usual,
        least_kbps,
        frozen: None,
    })
}

/// Times in which no frame came for much longer than usual, of frames at `times`.
pub(super) fn still(times: &[f64]) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    for i in FRAMES..times.len() {
        let usual = (times[i - 1] - times[i - FRAMES]) / (FRAMES - 1) as f64;
        if times[i] - times[i - 1] > (STILL * usual).max(usual + STILL_S) {
            found.push((times[i - 1], times[i]));
        }
    }
    found
}

/// Episodes of pictures that stood still in these times, near ones joined. `exact` times are those of single freezes.
pub(super) fn freezes(stood: impl IntoIterator<Item = (f64, f64)>, rates: &[f64], bin: f64, exact: bool) -> Vec<Span> {
    let mut stood: Vec<(f64, f64)> = stood.into_iter().collect();
    stood.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Each with its freezes and their sum; what two streams share counts once.
    let mut joined: Vec<(f64, f64, u32, f64)> = Vec::new();
    for (from, to) in stood {
        match joined.last_mut() {
            Some(last) if from - last.1 < APART => {
                last.2 += u32::from(from > last.1);
                last.3 += (to - from.max(last.1)).max(0.0);
                last.1 = last.1.max(to);
            }
            _ => joined.push((from, to, 1, to - from)),
        }
    }
    let index = |s: f64| ((s / bin).max(0.0) as usize).min(rates.len());
    let span = |(from, to, count, sum): (f64, f64, u32, f64)| {
        let mut past = rates[index(from - BEFORE as f64 * BIN)..index(from)].to_vec();
        past.sort_by(f64::total_cmp);
        let before_kbps = past.get(past.len() / 2).copied().unwrap_or(0.0);
        let least_kbps = rates[index(from)..index(to + bin)].iter().copied().fold(before_kbps, f64::min);
        let frozen = exact.then_some((count, sum));
        Span { from, to, kind: EpisodeKind::Freeze, before_kbps, least_kbps, frozen }
    };
    joined.into_iter().map(span).collect()
}

/// The episodes of these times, in their order, each with its ranked causes. A freeze at a fall's begin has the fall's.
pub(super) fn explained(mut spans: Vec<Span>, zero: f64, causes: impl Fn(&Span) -> Vec<Cause>) -> Vec<Episode> {
    spans.sort_by(|a, b| a.from.total_cmp(&b.from));
    let episode = |span: &Span| {
        let near = |f: &&Span| span.from > f.from - SAME_BEFORE && span.from < (f.from + SAME_BEHIND).min(f.to);
        let fall = spans.iter().filter(|f| f.kind == EpisodeKind::Fall).find(near);
        let of = if span.kind == EpisodeKind::Freeze { fall.unwrap_or(span) } else { span };
        let unix = |at: f64| (zero + at * 1000.0) as i64;
        let causes = super::ranked(causes(of));
        let (freezes, frozen_ms) = span.frozen.map(|(n, s)| (n, (s * 1000.0).round() as i64)).unzip();
        Episode { from_ms: unix(span.from), to_ms: unix(span.to), kind: span.kind, freezes, frozen_ms, causes }
    };
    spans.iter().map(episode).collect()
}

/// Falls of a rate that is given once a `bin` seconds.
pub(super) fn falls(rates: &[f64], bin: f64, smooth: usize, before: usize, start: usize) -> Vec<Span> {
    let mean = |i: usize| rates[i..i + smooth].iter().sum::<f64>() / smooth as f64;
    // The last bin is not whole.
    let n = rates.len().saturating_sub(smooth);
    let (mut found, mut i) = (Vec::new(), start);
    // A rate before is one of the time after the last episode.
    let mut since = 0;
    let least = |n: f64| (n / bin + 0.5) as usize;
    let guard = least(GUARD);
    while i + least(1.0) <= n {
        // A fall that takes some seconds is no part of what it falls from.
        let until = i.saturating_sub(guard).max(since + start / 2).min(i);
        let mut past: Vec<f64> = (until.saturating_sub(before).max(since)..until).map(mean).collect();
        past.sort_by(f64::total_cmp);
        let Some(base) = past.get(past.len() / 2).copied().filter(|_| past.len() >= start / 2) else {
            i += 1;
            continue;
        };
        let low = |j: usize| mean(j) < FALLEN * base;
        if !(i..i + least(1.0)).all(low) || base < 50.0 {
            i += 1;
            continue;
        }
        let end = (i..n).find(|j| mean(*j) >= BACK * base).unwrap_or(n);
        let least_kbps = (i..end).map(mean).fold(f64::INFINITY, f64::min);
        let (from, to) = (i as f64 * bin, end as f64 * bin);
        found.push(Span { from, to, kind: EpisodeKind::Fall, before_kbps: base, least_kbps, frozen: None });
        since = end;
        i = end.max(i + 1) + start / 2;
    }
    found
}
