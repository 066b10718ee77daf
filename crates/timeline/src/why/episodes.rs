//! Falls of the rate, and starts with lasting loss.

use super::EpisodeKind;
use super::bins::{BIN, Bin};

/// Share of the rate before, below which it has fallen, and above which it has come back.
const FALLEN: f64 = 0.8;
const BACK: f64 = 0.9;
/// Bins that the rate before is the median of: 8 s.
const BEFORE: usize = 16;
/// Bins that a rate is the mean of: 1 s, so that key frames are no falls behind them.
const SMOOTH: usize = 2;
/// Bins at the start in which a rate is found first.
const START: usize = 8;
/// Bins of the start that are looked at for lasting loss: 10 s.
const FIRST: usize = 20;
/// Share of lost packets that lasts, and least packets that it is a share of.
const LASTING_LOSS: f64 = 0.02;
const LEAST_PACKETS: u32 = 200;

/// An episode's times, in s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) kind: EpisodeKind,
    /// Rate before, and the least one in it, in kbit/s.
    pub(super) before_kbps: f64,
    pub(super) least_kbps: f64,
}

/// The episodes of a call.
pub(super) fn find(bins: &[Bin]) -> Vec<Span> {
    let mut found: Vec<Span> = slow_start(bins).into_iter().collect();
    found.extend(falls(&bins.iter().map(|b| b.sent_kbps).collect::<Vec<_>>(), BIN, SMOOTH, BEFORE, START));
    found
}

fn slow_start(bins: &[Bin]) -> Option<Span> {
    let first = &bins[..bins.len().min(FIRST)];
    let (known, lost) = first.iter().fold((0, 0), |(k, l), b| (k + b.known, l + b.lost));
    let lossy = known >= LEAST_PACKETS && f64::from(lost) >= LASTING_LOSS * f64::from(known);
    let mean = first.iter().map(|b| b.sent_kbps).sum::<f64>() / first.len().max(1) as f64;
    let (from, to, kind) = (0.0, first.len() as f64 * BIN, EpisodeKind::SlowStart);
    lossy.then_some(Span { from, to, kind, before_kbps: mean, least_kbps: mean })
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
    while i + least(1.0) <= n {
        let mut past: Vec<f64> = (i.saturating_sub(before).max(since)..i).map(mean).collect();
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
        found.push(Span { from, to, kind: EpisodeKind::Fall, before_kbps: base, least_kbps });
        since = end;
        i = end.max(i + 1) + start / 2;
    }
    found
}
