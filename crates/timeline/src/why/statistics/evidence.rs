//! The numbers around an episode, once a second.

use super::seconds::{Second, Seconds};
use crate::why::episodes::Span;
use crate::why::layers::Layer;

/// Seconds that an episode is compared with, and those around its begin that show signs.
const PAST: usize = 8;
const EARLY: usize = 2;
const LATE: usize = 5;
/// Seconds behind the begin in which it is seen whether delay stays.
const STAY: usize = 12;
/// Seconds behind the begin in which peaks of the round-trip time are counted, and their least height in ms.
const PEAKS: usize = 10;
const PEAK: f64 = 60.0;
/// Least seconds before, around and behind a begin with the way of a report, and most that ways before may differ by, in ms.
const LEAST_WAYS: usize = 3;
const SAME_WAY: f64 = 60.0;
/// Share of the usual answers below which a second is silent, and of packets that arrive below which it is dark.
const SILENT: f64 = 0.15;
const DARK: f64 = 0.03;

/// Numbers around an episode.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Evidence {
    pub(super) both_ends: bool,
    pub(super) has_past: bool,
    /// Median round-trip time before, in ms, and the longest around the begin.
    pub(super) rtt: Option<(f64, f64)>,
    /// The first, fifth and ninth tenth of those behind the begin, where enough are known.
    pub(super) stays: Option<(f64, f64, f64)>,
    /// Ways of the sender's reports, in ms: the median before; the longest around the begin; the median behind it.
    pub(super) way: Option<(f64, f64, f64)>,
    /// Share of packets lost around the begin, and the share before.
    pub(super) loss: f64,
    pub(super) loss_before: f64,
    /// The largest share of a second around the begin.
    pub(super) worst: f64,
    /// Share of the seconds around the begin that have losses, and their number.
    pub(super) lossy: f64,
    pub(super) lossy_s: usize,
    /// Spread of the rate that arrived in seconds with loss, as a share of its mean, and the mean, in packets a second.
    pub(super) policed: Option<(f64, f64)>,
    /// Estimate before, least one around the begin, and the longest time for which it was exactly the same, in s.
    pub(super) available: Option<(f64, f64)>,
    pub(super) same_s: usize,
    /// Seconds without answers, and share of the packets sent in them that arrived, where it is known.
    pub(super) silent_s: usize,
    pub(super) silent_arrived: Option<f64>,
    /// Seconds in which packets were sent and none arrived.
    pub(super) dark_s: usize,
    /// Those of them, the first one apart, in which the sender received something.
    pub(super) dark_heard_s: usize,
    /// Jitter of arrivals, and of frames, before and in it, in ms.
    pub(super) jitter: Option<(f64, f64)>,
    pub(super) frames: Option<(f64, f64)>,
    /// Frames a second that the source gave, and that were encoded, before and in it.
    pub(super) source: Option<(f64, f64)>,
    pub(super) encoded: Option<(f64, f64)>,
    /// A layer of a picture that stopped while another went on.
    pub(super) layer: Option<Layer>,
    /// Separate peaks of the round-trip time around the begin, between seconds in which it was as before.
    pub(super) peaks: u32,
    /// Seconds around the begin in which it was longer, or the way of the sender's reports.
    pub(super) high_s: usize,
    /// Pictures asked for around the begin.
    pub(super) pictures: f64,
    /// Share of the time limited by the processor.
    pub(super) cpu: f64,
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn largest(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}

impl Evidence {
    pub(super) fn around(of: &Seconds, span: &Span) -> Self {
        let begin = span.from.max(0.0) as usize;
        let rows = |from: usize, to: usize| {
            let to = to.min(of.rows.len());
            of.rows.get(from.min(to)..to).unwrap_or_default()
        };
        let past = rows(begin.saturating_sub(PAST), begin.saturating_sub(1));
        let now = rows(begin.saturating_sub(EARLY), begin + LATE);
        let behind = rows(begin + 1, begin + STAY);
        let whole = span.from < 1.0;
        let now = if whole { rows(0, span.to as usize) } else { now };
        let mut e = Self { both_ends: of.both_ends, has_past: past.len() >= 3 && !whole, ..Self::default() };
        let rtts = |rows: &[Second]| rows.iter().filter_map(|r| r.rtt).collect::<Vec<_>>();
        // A start has nothing before: then the shortest of the call is the path's own.
        let usual = median(rtts(past).into_iter()).filter(|_| e.has_past);
        let usual = usual.or_else(|| rtts(&of.rows).into_iter().reduce(f64::min));
        let longest = largest(now.iter().flat_map(|r| [r.rtt, r.stun_rtt]).flatten());
        e.rtt = usual.zip(longest);
        if let Some(usual) = usual {
            let near = rows(begin.saturating_sub(EARLY), begin + PEAKS);
            let way = median(past.iter().filter_map(|r| r.way)).filter(|_| e.has_past);
            let heights = heights(near, usual, way);
            (e.peaks, e.high_s) = (peaks(&heights), heights.iter().filter(|h| **h > PEAK / 2.0).count());
        }
        e.pictures = now.iter().map(|r| r.pictures).sum();
        let mut after = rtts(behind);
        after.sort_by(f64::total_cmp);
        if after.len() >= 5 {
            // A report in ten may be from before, or late.
            let part = |tenths: usize| after[(after.len() * tenths / 10).min(after.len() - 1)];
            e.stays = Some((part(1), part(5), part(9)));
        }
        e.way = e.ways(past, now, behind);
        e.loss = loss(now);
        e.loss_before = if e.has_past { loss(past) } else { 0.0 };
        e.worst = now.iter().map(|r| loss(&[*r])).fold(0.0, f64::max);
        let lossy: Vec<&Second> = now.iter().filter(|r| loss(&[**r]) >= 0.01).collect();
        e.lossy = lossy.len() as f64 / now.len().max(1) as f64;
        e.lossy_s = lossy.len();
        e.policed = policed(&lossy);
        let usual = median(past.iter().filter_map(|r| r.available));
        // The estimate is a report's last one: it falls before what is sent in its second.
        let least = now.iter().filter_map(|r| r.available).reduce(f64::min);
        e.available = usual.zip(least).filter(|_| e.has_past);
        e.same_s = same(rows(begin.saturating_sub(1), begin + LATE + 2));
        e.silence(past, rows(begin.saturating_sub(EARLY), begin + LATE));
        let dark = now.iter().filter(|r| r.sent > 5.0 && r.arrived.is_some_and(|n| n < DARK * r.sent));
        e.dark_s = dark.clone().count();
        e.dark_heard_s = dark.skip(1).filter(|r| r.answers.is_some_and(|n| n >= 1.0)).count();
        let pair = |of: &dyn Fn(&Second) -> Option<f64>| {
            median(past.iter().filter_map(of)).zip(largest(now.iter().filter_map(of))).filter(|_| e.has_past)
        };
        (e.jitter, e.frames) = (pair(&|r| r.jitter), pair(&|r| r.frame_spread));
        let fallen = rows(begin + 1, begin + 4);
        let given = |rows: &[Second]| median(rows.iter().filter_map(|r| r.source));
        e.source = given(past).zip(given(fallen));
        let encoded = |rows: &[Second]| median(rows.iter().map(|r| r.encoded));
        e.encoded = encoded(past).zip(encoded(fallen));
        let after = rows(begin, begin + LATE);
        e.cpu = after.iter().map(|r| r.cpu).sum::<f64>() / after.len().max(1) as f64;
        e
    }

    fn ways(&self, past: &[Second], now: &[Second], behind: &[Second]) -> Option<(f64, f64, f64)> {
        let of = |rows: &[Second]| rows.iter().filter_map(|r| r.way).collect::<Vec<_>>();
        let (past, now, behind) = (of(past), of(now), of(behind));
        // Ways that differ so much on a path as it was are those of a time that is not a report's own.
        let spread = past.iter().copied().fold(0.0, f64::max) - past.iter().copied().fold(f64::INFINITY, f64::min);
        let enough = self.has_past && past.len().min(now.len()).min(behind.len()) >= LEAST_WAYS && spread < SAME_WAY;
        enough.then(|| Some((median(past.into_iter())?, largest(now.into_iter())?, median(behind.into_iter())?)))?
    }

    fn silence(&mut self, past: &[Second], now: &[Second]) {
        let Some(usual) = median(past.iter().filter_map(|r| r.answers)).filter(|n| *n >= 4.0) else { return };
        let silent: Vec<&Second> =
            now.iter().filter(|r| r.sent > 5.0 && r.answers.is_some_and(|n| n < SILENT * usual)).collect();
        self.silent_s = silent.len();
        let sent: f64 = silent.iter().map(|r| r.sent).sum();
        if silent.iter().any(|r| r.arrived.is_some()) && sent > 0.0 {
            self.silent_arrived = Some(silent.iter().filter_map(|r| r.arrived).sum::<f64>() / sent);
        }
    }

    /// Growth of the longest round-trip time, in ms.
    pub(super) fn rise(&self) -> f64 {
        self.rtt.map_or(0.0, |(before, longest)| longest - before)
    }

    /// Least estimate as a share of that before.
    pub(super) fn estimate_left(&self) -> Option<f64> {
        self.available.filter(|(before, _)| *before > 0.0).map(|(before, least)| least / before)
    }
}

/// Growth of the round-trip time, or of the way of the sender's reports, in each second that has one of them, in ms.
fn heights(rows: &[Second], rtt: f64, way: Option<f64>) -> Vec<f64> {
    let height = |r: &Second| {
        let ways = r.way.zip(way).map(|(now, before)| now - before);
        r.rtt.map(|now| now - rtt).into_iter().chain(ways).reduce(f64::max)
    };
    rows.iter().filter_map(height).collect()
}

/// Rises of more than `PEAK`, each over before the next.
fn peaks(heights: &[f64]) -> u32 {
    let (mut count, mut up) = (0, false);
    for height in heights {
        let high = *height > PEAK;
        count += u32::from(high && !up);
        up = high || (up && *height > PEAK / 2.0);
    }
    count
}

fn loss(rows: &[Second]) -> f64 {
    let lost: f64 = rows.iter().filter_map(|r| r.lost).sum();
    let arrived: f64 = rows.iter().map(|r| r.arrived.unwrap_or((r.sent - r.lost.unwrap_or(0.0)).max(0.0))).sum();
    if lost > 0.0 { lost / (lost + arrived) } else { 0.0 }
}

fn policed(lossy: &[&Second]) -> Option<(f64, f64)> {
    let arrived: Vec<f64> = lossy.iter().filter_map(|r| r.arrived).collect();
    if arrived.len() < 3 {
        return None;
    }
    let n = arrived.len() as f64;
    let mean = arrived.iter().sum::<f64>() / n;
    let variance = arrived.iter().map(|a| (a - mean) * (a - mean)).sum::<f64>() / n;
    (mean > 0.0).then(|| (libm::sqrt(variance) / mean, mean))
}

/// Most seconds in a row with exactly the same estimate.
fn same(rows: &[Second]) -> usize {
    let (mut most, mut run, mut last) = (0, 0, None);
    for row in rows {
        run = if row.available.is_some() && row.available == last { run + 1 } else { 1 };
        last = row.available;
        most = most.max(if last.is_some() { run } else { 0 });
    }
    most
}
