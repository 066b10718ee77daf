//! The delay of a path without a queue, and its steps.

use crate::packets::{Packets, Segment};
use serde::Serialize;

/// Base delay from an instant on.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FitBaseDelay"))]
pub struct BaseDelay {
    /// The instant, in s.
    pub from_s: f64,
    /// Delay one way, more than that of the first, in ms.
    pub more_ms: f64,
}

/// Blocks in which minima are taken, in s, and blocks on either side of a step: a queue that never empties for so long looks like a
/// longer path.
const BLOCK: f64 = 0.5;
const SIDE: usize = 16;
/// Least step, in s, and least share of it that lies between two packets: a queue grows from packet to packet.
const LEAST: f64 = 8e-3;
const ABRUPT: f64 = 0.6;
/// Least time between two steps, in s.
const APART: f64 = 0.1;
/// Share of the usual rate of gaps that arrives where a link is never idle, and least gaps to tell.
const BUSY: f64 = 0.95;
const LEAST_GAPS: usize = 100;
/// Largest median of the blocks' least delays above the least of all on the side of the longer path, as a share of the step.
const STEADY: f64 = 0.25;

/// Whether packets sent in a time left a link one right behind the other, at one rate without pauses, though they came otherwise.
fn always_busy(packets: &Packets, from: f64, to: f64) -> bool {
    let within = packets.all.iter().filter(|p| (from..to).contains(&p.sent) && p.delay.is_some());
    let (came, left): (Vec<_>, Vec<_>) =
        within.map(|p| ((p.sent, p.bits), (p.sent + p.delay.unwrap_or(0.0), p.bits))).unzip();
    is_one_rate(&left) && !is_one_rate(&came)
}

/// Whether gaps between packets are in proportion to their bits.
fn is_one_rate(packets: &[(f64, f64)]) -> bool {
    let gaps = packets.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1)).filter(|gap| gap.0 > 0.0);
    let (time, bits) = gaps.clone().fold((0.0, 0.0), |(t, b), gap| (t + gap.0, b + gap.1));
    let mut rates: Vec<f64> = gaps.map(|(time, bits)| bits / time).collect();
    rates.sort_by(f64::total_cmp);
    bits > 0.0 && rates.len() >= LEAST_GAPS && bits >= BUSY * time * rates[rates.len() / 2]
}

/// Base delays over time; the first begins before the first packet.
pub(crate) fn segments(packets: &Packets) -> Vec<Segment> {
    let (first, last) = packets.span();
    let count = ((last - first) / BLOCK) as usize + 1;
    let mut least = vec![(f64::INFINITY, 0.0); count];
    // Largest rise and fall from packet to packet, each with the second one's time.
    let mut jumps = vec![[(0.0_f64, 0.0_f64); 2]; count];
    let mut before: Option<f64> = None;
    for p in &packets.all {
        let Some(delay) = p.delay else { continue };
        let block = (((p.sent - first) / BLOCK) as usize).min(count - 1);
        if delay < least[block].0 {
            least[block] = (delay, p.bits);
        }
        if let Some(before) = before {
            for (jump, size) in jumps[block].iter_mut().zip([delay - before, before - delay]) {
                if size > jump.0 {
                    *jump = (size, p.sent);
                }
            }
        }
        before = Some(delay);
    }
    let min = |blocks: &[(f64, f64)]| blocks.iter().map(|b| b.0).fold(f64::INFINITY, f64::min);
    let step_at = |k: usize| {
        let (before, after) = (min(&least[k.saturating_sub(SIDE)..k]), min(&least[k..(k + SIDE).min(count)]));
        let step = after - before;
        if before.is_finite() && after.is_finite() { step } else { 0.0 }
    };
    let jump_at = |k: usize, step: f64| {
        let near = jumps[k.saturating_sub(1)..(k + 2).min(count)].iter().map(|j| j[usize::from(step < 0.0)]);
        near.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default()
    };
    let abrupt = |k: usize, step: f64| jump_at(k, step).0 >= ABRUPT * step.abs();
    // A longer path leaves packets as they were; a queue that others keep full goes up and down.
    let steady = |k: usize, step: f64| {
        let (from, to) = if step > 0.0 { (k, (k + SIDE).min(count)) } else { (k.saturating_sub(SIDE), k) };
        let floor = min(&least[from..to]);
        let mut above: Vec<f64> = least[from..to].iter().map(|b| b.0 - floor).filter(|d| d.is_finite()).collect();
        above.sort_by(f64::total_cmp);
        above.get(above.len() / 2).is_some_and(|d| *d <= (STEADY * step.abs()).max(LEAST / 2.0))
    };
    let mut cuts = vec![0];
    let mut k = 4;
    while k + 4 <= count {
        let step = step_at(k);
        if step.abs() < LEAST || !abrupt(k, step) || !steady(k, step) {
            k += 1;
            continue;
        }
        // The first place where the step is about the largest.
        let places = || (k..(k + SIDE).min(count)).filter(|j| abrupt(*j, step_at(*j)));
        let largest = places().map(|j| step_at(j).abs()).fold(0.0, f64::max);
        let best = places().find(|j| step_at(*j).abs() >= 0.95 * largest).unwrap_or(k);
        cuts.push(best);
        k = best + 4;
    }
    // A link that was busy all the time has a queue that no packet saw empty.
    let floor = |from: usize, to: usize| min(&least[from..to]);
    let mut k = 1;
    while k < cuts.len() {
        let to = cuts.get(k + 1).copied().unwrap_or(count);
        let longer = floor(cuts[k], to) > floor(cuts[k - 1], cuts[k]);
        let time = |block: usize| first + block as f64 * BLOCK;
        if longer && always_busy(packets, time(cuts[k] + 2), time(to.min(cuts[k] + SIDE))) {
            // The fall that ends it is no shorter path either.
            let ends = k + 1 < cuts.len() && floor(to, cuts.get(k + 2).copied().unwrap_or(count)) < floor(cuts[k], to);
            cuts.drain(k..=k + usize::from(ends));
        } else {
            k += 1;
        }
    }
    let ends = cuts.iter().skip(1).copied().chain([count]);
    let mut out: Vec<Segment> = Vec::new();
    for (from, to) in cuts.iter().copied().zip(ends) {
        let (delay, bits) =
            least[from..to].iter().copied().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((f64::INFINITY, 0.0));
        if !delay.is_finite() {
            continue;
        }
        if out.last().is_some_and(|s| (s.delay - delay).abs() < LEAST) {
            let last = out.len() - 1;
            if delay < out[last].delay {
                (out[last].delay, out[last].bits) = (delay, bits);
            }
            continue;
        }
        let Some(before) = out.last() else {
            out.push(Segment { from: f64::NEG_INFINITY, delay, bits, transmission: 0.0 });
            continue;
        };
        let from = jump_at(from, delay - before.delay).1;
        // Two steps may take the same jump for theirs: one alone can be there.
        if from >= before.from.max(first).max(0.0) + APART {
            out.push(Segment { from, delay, bits, transmission: 0.0 });
        }
    }
    if out.is_empty() {
        out.push(Segment { from: f64::NEG_INFINITY, delay: 0.0, bits: 0.0, transmission: 0.0 });
    }
    out
}

/// As changes from the first.
pub(crate) fn changes(segments: &[Segment]) -> Vec<BaseDelay> {
    let first = segments.first().map_or(0.0, Segment::propagation);
    let change = |s: &Segment| BaseDelay { from_s: s.from.max(0.0), more_ms: (s.propagation() - first) * 1e3 };
    segments.iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::Packet;

    /// Pictures of three packets, 30 a second, whose `k`th packet leaves at a time.
    fn packets(leaves: impl Fn(usize, f64) -> f64) -> Packets {
        let packet = |k: usize| {
            let sent = (k / 3) as f64 / 30.0 + (k % 3) as f64 * 1e-3;
            Packet { sent, delay: Some(leaves(k, sent) - sent), bits: 8_000.0 }
        };
        Packets { all: (0..600).map(packet).collect(), reordered: 0.0, answers_lost: None, resolution: 0.3e-3 }
    }

    #[test]
    fn a_link_is_busy_if_it_makes_gaps_even_that_were_not() {
        assert!(always_busy(&packets(|k, _| k as f64 / 90.0 + 0.05), 0.0, 7.0));
        assert!(!always_busy(&packets(|_, sent| sent + 0.05), 0.0, 7.0), "each picture finds it idle");
        let paced = |k: usize| Packet { sent: k as f64 / 90.0, delay: Some(0.05), bits: 8_000.0 };
        let all = Packets { all: (0..600).map(paced).collect(), ..packets(|_, sent| sent) };
        assert!(!always_busy(&all, 0.0, 7.0), "even gaps that were so when sent say nothing");
    }
}
