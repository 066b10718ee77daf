//! A coarser link from statistics once a second.
//!
//! A second hides single packets: that the link was busy shows by more being sent than arrived, or lost, while round trips are longer. Then
//! what arrived is the capacity; else it is only known to be at least that.

use crate::capacity::{BIN, Capacity};
use crate::losses::{LossFit, Outage, shares};
use crate::measured::Measured;
use crate::packets::HEADERS;
use crate::policer::PolicerFit;
use crate::queue::{Discipline, QueueFit};
use crate::scenario::RTT_MS;
use crate::seconds::{Row, Rows};
use crate::source::SourceFit;
use crate::{BaseDelay, Evidence, Fit};

/// Round trips beyond the least that count as a queue, in ms: sending pictures at once fills one for a moment.
const QUEUED_MS: f64 = 30.0;
/// Share of what was sent beyond what arrived that shows a busy link, and seconds around in which it has to.
const OVER: f64 = 1.05;
const AROUND: usize = 1;
/// Seconds on either side of a longer path, its least step in ms, the share of it by which others exceed the least, and the share of it that
/// comes at once.
const SIDE: usize = 8;
const STEP_MS: f64 = 15.0;
const STEADY: f64 = 0.25;
const ABRUPT: f64 = 0.6;
/// Share of a second's packets that is lost where a path is down.
const DOWN: f64 = 0.98;
/// Seconds with losses, largest variation of what arrived in them, and least share of seconds without that sent less: a policer.
const POLICED: usize = 5;
const VARIED: f64 = 0.1;
const BELOW: f64 = 0.8;
const LOSSY: f64 = 0.02;
/// A policer's bucket, which seconds do not show, in s of its rate.
const BURST_S: f64 = 0.15;
/// Seconds of one share of losses.
const WINDOW: usize = 5;
/// Likely rate over the highest that arrived, where nothing bounds it, and the greatest over what is known around.
const UNBOUND: f64 = 1.25;
const BEYOND: f64 = 2.0;
/// Least and likely rate over what seems to arrive in busy seconds by a sender's statistics alone. Chosen on one call, in which it is 1.4 times
/// the capacity.
const ONE_END: (f64, f64) = (0.5, 0.75);
/// Seconds with losses that tell the room of a queue.
const OVERFLOWED: usize = 3;
/// Rate that libwebrtc starts with, in bit/s; statistics begin later.
const START_BPS: f64 = 300e3;
/// Bins in a second.
const BINS: usize = (1.0 / BIN + 0.5) as usize;

pub(crate) fn find(of: &Rows) -> Fit {
    let rows = &of.rows;
    let least = rows.iter().filter_map(|r| r.rtt_ms).reduce(f64::min);
    let base = longer_paths(rows, least);
    // Round trips beyond the path's own.
    let beyond: Vec<Option<f64>> = rows
        .iter()
        .enumerate()
        .map(|(k, r)| {
            let more = base.iter().rfind(|b| b.from_s <= k as f64).map_or(0.0, |b| b.more_ms);
            Some((r.rtt_ms? - least? - more).max(0.0))
        })
        .collect();
    let busy = busy(rows, &beyond);
    let policer = policer(rows, &busy);
    let capacity = capacity(rows, &busy, of.both_ends);
    let queue = queue(rows, &busy, &beyond);
    let loss = losses(rows, &busy, policer.is_some());
    let mut out = Fit {
        evidence: Evidence::Statistics,
        length_s: rows.len() as f64,
        rtt_ms: least,
        // It is not known which way became longer: half of it each.
        base: base.iter().map(|b| BaseDelay { more_ms: b.more_ms / 2.0, ..*b }).collect(),
        back: base.iter().map(|b| BaseDelay { more_ms: b.more_ms / 2.0, ..*b }).collect(),
        capacity,
        stalls: Vec::new(),
        cross: Vec::new(),
        queue,
        policer,
        loss,
        jitter: Vec::new(),
        reordered: 0.0,
        answers_lost: None,
        source: source(of),
        measured: measured(rows, least),
        unknown: Vec::new(),
    };
    out.unknown = out.gaps();
    if !of.both_ends && busy.contains(&true) {
        out.unknown.push("what arrived while the link was busy: losses are reported late and without those that were repaired, so that it is a bound".into());
    }
    out
}

/// Steps of the least round trip that come at once and last, and that no overload explains.
fn longer_paths(rows: &[Row], least: Option<f64>) -> Vec<BaseDelay> {
    let mut out = vec![BaseDelay { from_s: 0.0, more_ms: 0.0 }];
    let Some(least) = least else { return out };
    let of = |range: core::ops::Range<usize>| -> Vec<f64> {
        let mut all: Vec<f64> =
            rows.get(range).unwrap_or_default().iter().filter_map(|r| r.rtt_ms).map(|r| r - least).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let is_over = |k: usize| rows[k].lost > 0.0 || rows[k].sent_bps > OVER * rows[k].arrived_bps;
    let mut k = SIDE;
    while k + SIDE <= rows.len() {
        let (before, after) = (of(k - SIDE..k), of(k..k + SIDE));
        let (Some(low), Some(high)) = (before.first(), after.first()) else {
            k += 1;
            continue;
        };
        let step = high - low;
        let at_once = rows.get(k).and_then(|r| r.rtt_ms).map_or(0.0, |r| r - least - low);
        let side = if step > 0.0 { &after } else { &before };
        let above = side[side.len() / 2] - side[0];
        let longer = if step > 0.0 { k..k + SIDE } else { k - SIDE..k };
        let overloaded = longer.filter(|j| is_over(*j)).count() > AROUND + 1;
        // A longer path that ends has begun with the call, or with a step before.
        let last = out.last().map_or(0.0, |b: &BaseDelay| b.from_s) as usize;
        let began = of(last..k).first().is_some_and(|least| (low - least).abs() < STEP_MS / 2.0);
        if began && step.abs() >= STEP_MS && at_once / step >= ABRUPT && above <= STEADY * step.abs() && !overloaded {
            if let [only] = &mut out[..] {
                only.more_ms = *low;
            }
            out.push(BaseDelay { from_s: k as f64, more_ms: *high });
            k += SIDE;
        } else {
            k += 1;
        }
    }
    out
}

/// Seconds in which the link served a queue all the time: round trips are longer, and more was sent than arrived, or some was lost.
fn busy(rows: &[Row], beyond: &[Option<f64>]) -> Vec<bool> {
    let is_over = |r: &Row| r.lost > 0.0 || r.sent_bps > OVER * r.arrived_bps;
    let is_queued = |k: usize| beyond[k].is_some_and(|ms| ms >= QUEUED_MS);
    let mut out: Vec<bool> = (0..rows.len())
        .map(|k| {
            let around = rows.get(k.saturating_sub(AROUND)..=k).unwrap_or_default();
            is_queued(k) && around.iter().any(is_over)
        })
        .collect();
    // A queue that is still there while it empties.
    for k in 1..rows.len() {
        out[k] |= out[k - 1] && is_queued(k) && rows[k].arrived_bps > rows[k].sent_bps;
    }
    // In the first second the link was not busy from its beginning on, and in the last one not to its end.
    let alike = |k: usize, j: usize| (rows[k].arrived_bps / rows[j].arrived_bps.max(1.0) - 1.0).abs() < OVER - 1.0;
    let (mut whole, mut from) = (out.clone(), 0);
    for run in out.chunk_by(|a, b| a == b) {
        let (first, last) = (from, from + run.len() - 1);
        from += run.len();
        if run[0] {
            whole[first] = first < last && alike(first, first + 1);
            whole[last] = first < last && alike(last, last - 1);
        }
    }
    whole
}

/// Of a sender's statistics alone what arrived in busy seconds is a bound: losses are reported late, and without those that were repaired.
fn capacity(rows: &[Row], busy: &[bool], both_ends: bool) -> Capacity {
    let arrived: Vec<f64> = rows.iter().map(|r| r.arrived_bps).collect();
    let greatest = arrived.iter().copied().fold(0.0, f64::max);
    let known: Vec<usize> = (0..rows.len()).filter(|k| busy[*k]).collect();
    let (mut served, mut likely, mut least, mut most) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for k in 0..rows.len() {
        let around = arrived[k.saturating_sub(AROUND)..(k + AROUND + 1).min(rows.len())].iter().copied();
        let low = around.fold(0.0, f64::max);
        let next = known.partition_point(|j| *j < k);
        let before = next.checked_sub(1).and_then(|i| known.get(i)).map(|j| arrived[*j]);
        let after = known.get(next).map(|j| arrived[*j]);
        let near = [before, after].into_iter().flatten();
        // Unless more arrived the rate is that of the last time at which it was known.
        let (one, bound) = match (busy[k], before.or(after)) {
            (true, _) if !both_ends => (ONE_END.1 * arrived[k], Some(arrived[k])),
            (true, _) => (arrived[k], Some(arrived[k])),
            (false, Some(last)) => (last.max(low), Some(near.fold(low, f64::max) * BEYOND)),
            (false, None) => (greatest * UNBOUND, None),
        };
        for _ in 0..BINS {
            served.push((busy[k] && both_ends).then_some(arrived[k]));
            likely.push(one);
            least.push(match busy[k] {
                true if both_ends => arrived[k],
                true => ONE_END.0 * arrived[k],
                false => low,
            });
            most.push(bound);
        }
    }
    let arrived_bps = arrived.iter().flat_map(|r| [*r; BINS]).collect();
    Capacity { bin_s: BIN, served_bps: served, arrived_bps, likely_bps: likely, least_bps: least, most_bps: most }
}

/// Losses while no queue is there, and no more than one rate arrives.
fn policer(rows: &[Row], busy: &[bool]) -> Option<PolicerFit> {
    let share = |r: &Row| r.lost / r.sent.max(1.0);
    let lossy = rows.iter().zip(busy).filter(|(r, busy)| !**busy && share(r) >= LOSSY && share(r) < DOWN);
    let arrived: Vec<f64> = lossy.map(|(r, _)| r.arrived_bps).collect();
    let n = arrived.len() as f64;
    if arrived.len() < POLICED {
        return None;
    }
    let mean = arrived.iter().sum::<f64>() / n;
    let varied = libm::sqrt(arrived.iter().map(|a| (a - mean) * (a - mean)).sum::<f64>() / n) / mean.max(1.0);
    let free: Vec<f64> = rows.iter().filter(|r| r.lost == 0.0 && r.sent > 0.0).map(|r| r.sent_bps).collect();
    let below = free.iter().filter(|sent| **sent <= mean * (1.0 + VARIED)).count() as f64;
    let is_one = varied <= VARIED && free.len() >= POLICED && below >= BELOW * free.len() as f64;
    is_one.then_some(PolicerFit { rate_bps: mean, burst_bytes: mean * BURST_S / 8.0 })
}

fn queue(rows: &[Row], busy: &[bool], beyond: &[Option<f64>]) -> QueueFit {
    let bytes = |k: usize| beyond[k].unwrap_or(0.0) * 1e-3 * rows[k].arrived_bps / 8.0;
    let in_it =
        |of: &dyn Fn(usize) -> bool| (0..rows.len()).filter(|k| busy[*k] && of(*k)).map(bytes).fold(0.0, f64::max);
    let most = in_it(&|_| true);
    let losing = (0..rows.len()).filter(|k| busy[*k] && rows[*k].lost > 0.0).count();
    let longest_ms = (0..rows.len()).filter(|k| busy[*k]).filter_map(|k| beyond[k]).fold(0.0, f64::max);
    let limit_bytes = (losing >= OVERFLOWED && most > 0.0).then_some(most);
    QueueFit { discipline: Discipline::Unknown, limit_bytes, at_least_bytes: most, longest_ms }
}

fn losses(rows: &[Row], busy: &[bool], is_policed: bool) -> LossFit {
    let mut out = LossFit {
        steps: Vec::new(),
        outages: Vec::new(),
        in_a_row: 1.0,
        by_chance: 0,
        by_outage: 0,
        by_queue: 0,
        by_policer: 0,
    };
    let mut windows = vec![(0.0, 0.0); rows.len().div_ceil(WINDOW)];
    // Losses are reported when the receiver misses a packet, which may be a second later.
    let is_busy = |k: usize| busy[k] || k.checked_sub(1).is_some_and(|j| busy[j]) || busy.get(k + 1) == Some(&true);
    for (k, r) in rows.iter().enumerate() {
        let lost = r.lost.max(0.0) as u32;
        // Losses of a path that is down are counted when packets arrive again.
        if r.sent >= 5.0 && r.arrived_bps <= (1.0 - DOWN) * r.sent_bps {
            match out.outages.last_mut().filter(|o| o.to_s == k as f64) {
                Some(last) => last.to_s += 1.0,
                None => out.outages.push(Outage { from_s: k as f64, to_s: k as f64 + 1.0 }),
            }
            out.by_outage += lost;
        } else if out.outages.last().is_some_and(|o| o.to_s + 1.0 >= k as f64) {
            out.by_outage += lost;
        } else if is_policed {
            out.by_policer += lost;
        } else if is_busy(k) {
            out.by_queue += lost;
        } else {
            out.by_chance += lost;
            let window = &mut windows[k / WINDOW];
            *window = (window.0 + r.lost.max(0.0), window.1 + r.sent);
        }
    }
    out.steps = shares(&windows, WINDOW as f64, out.in_a_row);
    out
}

fn source(of: &Rows) -> SourceFit {
    let rows = &of.rows;
    let quantile = |mut values: Vec<f64>, q: f64| {
        values.sort_by(f64::total_cmp);
        values.get(((values.len().max(1) - 1) as f64 * q) as usize).copied()
    };
    let target = quantile(rows.iter().filter_map(|r| r.target_bps).collect(), 1.0);
    let sent = quantile(rows.iter().map(|r| (r.media_bps - of.audio_bps).max(0.0)).collect(), 0.95);
    let ceiling_bps = target.or(sent).unwrap_or(START_BPS).max(100e3);
    let fps = quantile(rows.iter().map(|r| r.frames).filter(|f| *f >= 4.0).collect(), 0.5);
    SourceFit {
        fps: fps.unwrap_or(30.0).clamp(4.0, 120.0),
        ceiling_bps,
        ceiling_is_logged: target.is_some(),
        start_bps: START_BPS.min(ceiling_bps),
        audio_bps: of.audio_bps,
        demand: Vec::new(),
    }
}

fn measured(rows: &[Row], least: Option<f64>) -> Measured {
    let n = rows.len().max(1) as f64;
    let (sent, lost) = rows.iter().fold((0.0, 0.0), |(s, l), r| (s + r.sent, l + r.lost.max(0.0)));
    let mut rtts: Vec<f64> = rows.iter().filter_map(|r| r.rtt_ms).collect();
    rtts.sort_by(f64::total_cmp);
    let p95 = rtts.get(rtts.len().saturating_sub(1) * 95 / 100).copied();
    let base = least.unwrap_or(RTT_MS);
    let headers = HEADERS * 8.0 * (sent - lost) / n;
    Measured {
        received_kbps: (rows.iter().map(|r| r.arrived_bps).sum::<f64>() / n - headers).max(0.0) * 1e-3,
        // Time beyond the least was on the way there, for the most part.
        delay_p95_ms: p95.unwrap_or(base) - base / 2.0,
        lost_percent: lost / sent.max(1.0) * 100.0,
    }
}
