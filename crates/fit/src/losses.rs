//! Losses by chance: of packets that no queue and no policer dropped.

use crate::packets::Entered;
use crate::policer::PolicerFit;
use crate::queue::Queue;
use core::ops::Range;
use serde::Serialize;

/// Losses by chance from an instant on.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FitLossStep"))]
pub struct LossStep {
    /// The instant, in s.
    pub from_s: f64,
    /// Share of the packets.
    pub share: f64,
}

/// A time in which nothing of many packets arrived.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FitOutage"))]
pub struct Outage {
    /// When the first packet lost in it was sent, in s.
    pub from_s: f64,
    /// When the first packet that arrived again was sent, or the last one lost, in s.
    pub to_s: f64,
}

/// Losses by chance.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LossFit {
    /// Share over time, outages left out.
    pub steps: Vec<LossStep>,
    /// Times in which everything was lost.
    pub outages: Vec<Outage>,
    /// Mean number of packets lost in a row, outages left out.
    pub in_a_row: f64,
    /// Packets lost by chance.
    pub by_chance: u32,
    /// Packets lost in outages.
    pub by_outage: u32,
    /// Packets that the queue dropped.
    pub by_queue: u32,
    /// Packets that a policer dropped.
    pub by_policer: u32,
}

impl LossFit {
    /// Shares over time, in outages 1.
    pub(crate) fn steps_with_outages(&self) -> Vec<LossStep> {
        let share_at = |t: f64| self.steps.iter().rfind(|s| s.from_s <= t).map_or(0.0, |s| s.share);
        let is_down = |t: f64| self.outages.iter().any(|o| (o.from_s..o.to_s).contains(&t));
        let beside = self.steps.iter().filter(|s| !is_down(s.from_s)).copied();
        let around = self.outages.iter().flat_map(|o| {
            [LossStep { from_s: o.from_s, share: 1.0 }, LossStep { from_s: o.to_s, share: share_at(o.to_s) }]
        });
        let mut steps: Vec<LossStep> = beside.chain(around).collect();
        steps.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        if steps.first().is_some_and(|s| s.from_s > 0.0) {
            steps.insert(0, LossStep { from_s: 0.0, share: share_at(0.0) });
        }
        steps
    }
}

/// Windows in which shares are taken, in s, and how many standard deviations two differ by.
const WINDOW: f64 = 5.0;
const DIFFERENT: f64 = 4.0;

/// Least time, in s, and least number of packets lost in a row that are an outage: an instant at which the path was down, and not a chance
/// of each packet. Chosen here: bursts of a radio link's losses are shorter (a Gilbert chain with a mean of 5 has 10 in a row in one
/// burst of nine), and a call at its least rate sends ten packets in that time.
const OUTAGE: (f64, usize) = (0.4, 10);

/// Lost, and all.
pub(crate) type Counts = (f64, f64);

/// Whether two shares differ by more than chance does. Losses in a row are one event.
fn differ(a: Counts, b: Counts, in_a_row: f64) -> bool {
    let pooled = (a.0 + b.0) / (a.1 + b.1).max(1.0);
    let variance = pooled * (1.0 - pooled) * (1.0 / a.1.max(1.0) + 1.0 / b.1.max(1.0)) * in_a_row;
    (a.0 / a.1.max(1.0) - b.0 / b.1.max(1.0)).abs() > DIFFERENT * libm::sqrt(variance)
}

/// The runs of lost packets that are outages.
fn outages(packets: &[Entered], lost: &[bool]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    for run in lost.chunk_by(|a, b| a == b) {
        let range = from..from + run.len();
        from = range.end;
        let Outage { from_s, to_s } = outage(packets, &range);
        if run[0] && run.len() >= OUTAGE.1 && to_s - from_s >= OUTAGE.0 {
            found.push(range);
        }
    }
    found
}

fn outage(packets: &[Entered], run: &Range<usize>) -> Outage {
    let to = packets.get(run.end).or(packets.last()).map_or(0.0, |p| p.at);
    Outage { from_s: packets[run.start].at, to_s: to }
}

pub(crate) fn find(packets: &[Entered], queue: &Queue, policer: Option<&PolicerFit>) -> LossFit {
    let chance: Vec<bool> = (0..packets.len()).map(|i| packets[i].left.is_none() && !queue.overflowed[i]).collect();
    let is_policed = policer.is_some();
    let down = if is_policed { Vec::new() } else { outages(packets, &chance) };
    let by_outage = down.iter().map(|d| d.len() as u32).sum();
    let mut out = LossFit {
        outages: down.iter().map(|d| outage(packets, d)).collect(),
        steps: Vec::new(),
        in_a_row: 1.0,
        by_chance: 0,
        by_outage,
        by_queue: 0,
        by_policer: 0,
    };
    let mut down = down.into_iter().peekable();
    let end = packets.last().map_or(0.0, |p| p.at);
    let mut windows = vec![(0.0, 0.0); (end / WINDOW) as usize + 1];
    let (mut runs, mut run) = (0_u32, false);
    for (i, p) in packets.iter().enumerate() {
        while down.next_if(|d| d.end <= i).is_some() {}
        if down.peek().is_some_and(|d| d.contains(&i)) {
            run = false;
            continue;
        }
        let window = &mut windows[((p.at / WINDOW).max(0.0) as usize).min((end / WINDOW) as usize)];
        window.1 += f64::from(u8::from(!queue.full[i]));
        let chance = chance[i];
        if p.left.is_none() && !chance {
            out.by_queue += 1;
        }
        if chance && is_policed {
            out.by_policer += 1;
        } else if chance {
            out.by_chance += 1;
            window.0 += 1.0;
            runs += u32::from(!run);
        }
        run = chance;
    }
    if runs > 0 {
        out.in_a_row = (f64::from(out.by_chance) / f64::from(runs)).max(1.0);
    }
    out.steps = shares(&windows, WINDOW, out.in_a_row);
    out
}

/// Shares of windows of a length in s; neighbours that do not differ become one.
pub(crate) fn shares(windows: &[Counts], length: f64, in_a_row: f64) -> Vec<LossStep> {
    let mut merged: Vec<(f64, Counts)> = Vec::new();
    for (k, w) in windows.iter().enumerate() {
        match merged.last_mut().filter(|(_, m)| !differ(*m, *w, in_a_row)) {
            Some((_, m)) => *m = (m.0 + w.0, m.1 + w.1),
            None => merged.push((k as f64 * length, *w)),
        }
    }
    merged.into_iter().map(|(from_s, (lost, all))| LossStep { from_s, share: (lost / all.max(1.0)).min(1.0) }).collect()
}
