//! Transmission times of packets that found the link idle.
//!
//! A link that serves one packet after another holds each for its size over the rate. In the least delay of a call is therefore the
//! transmission time of the packet that had it. Where it is known, each packet tells the rate, also one that waited for none.

use crate::packets::{Entered, Packets, Segment};
use std::collections::BTreeMap;

/// Least votes, and their largest scatter: as a share of the transmission time, or in s. Beyond it something else than the link's rate
/// decides how long a lone packet takes.
const LEAST: usize = 20;
const ALIKE: f64 = 0.05;
const NOISE: f64 = 0.15e-3;
/// Shares of the votes that have to agree: of a time between two steps of the base delay, and where there would be none.
const HALF: f64 = 0.5;
const MOST: f64 = 0.75;
/// Votes that are too few to tell a longer path from a queue, and what part of the packets is then too short for one.
const FEW: usize = 5;
const SHORT: usize = 6;
/// Times within which a packet that waited tells the rate of one that did not, in s: right behind it, or, where few are or these do not
/// agree, farther away.
const REACHES: [f64; 3] = [0.0, 0.1, 1.0];
/// Classes of packet sizes in bits, least packets in a class, and least ratio of the largest size to the smallest.
const CLASS: f64 = 400.0;
const IN_CLASS: usize = 5;
const RANGE: f64 = 1.3;

/// The transmission time of the fastest packet by a pair of packets, and the transmission time that it was read from.
type Vote = (f64, f64);

/// Takes the transmission time of the fastest packet out of each base delay. Returns whether packets that found the link idle tell its
/// rate.
pub(crate) fn settle(packets: &Packets, base: &mut Vec<Segment>) -> bool {
    // Where one base delay accounts for all packets, steps were those of a queue, or of the rate.
    let whole = base.iter().min_by(|a, b| a.delay.total_cmp(&b.delay)).copied();
    if let Some(whole) = whole.filter(|_| base.len() > 1) {
        let mut one = vec![Segment { from: f64::NEG_INFINITY, ..whole }];
        if settle_by(packets, &mut one, MOST) && holds(packets, base, &one) {
            *base = one;
            return true;
        }
    }
    settle_by(packets, base, HALF)
}

/// Whether one base delay accounts for packets between all steps that were found.
fn holds(packets: &Packets, steps: &[Segment], one: &[Segment]) -> bool {
    let entered = packets.entered(one);
    let margin = one.first().map_or(0.0, |s| 2.0 * s.transmission);
    steps.iter().enumerate().all(|(k, step)| {
        let from = entered.partition_point(|p| p.at < step.from);
        let to = steps.get(k + 1).map_or(entered.len(), |next| entered.partition_point(|p| p.at < next.from));
        let votes = votes(entered.get(from..to).unwrap_or_default(), margin, REACHES[2]);
        // The base delay has the transmission time in it already, so that nothing should be left.
        let near = votes.iter().filter(|v| v.0.abs() <= (ALIKE * v.1).max(NOISE)).count();
        if votes.len() < FEW {
            return to - from < entered.len() / SHORT;
        }
        // A longer path is so for all, a queue is not.
        2 * near >= votes.len() || agreed(votes, HALF).is_none()
    })
}

fn settle_by(packets: &Packets, base: &mut [Segment], share: f64) -> bool {
    let entered = packets.entered(base);
    let rate = fastest(&entered);
    let mut told = Vec::new();
    for k in 0..base.len() {
        let from = entered.partition_point(|p| p.at < base[k].from);
        let to = base.get(k + 1).map_or(entered.len(), |next| entered.partition_point(|p| p.at < next.from));
        let of = entered.get(from..to).unwrap_or_default();
        let margin = if rate > 0.0 { 2.0 * base[k].bits / rate } else { 0.0 };
        let by_pairs = REACHES.into_iter().find_map(|reach| {
            let votes = votes(of, margin, reach);
            if votes.len() >= LEAST { agreed(votes, share) } else { None }
        });
        let told_by = by_pairs.or_else(|| by_size(of, margin, base[k].bits, share));
        told.push(told_by.filter(|transmission| *transmission > 0.0));
    }
    let lone = told.iter().all(Option::is_some);
    for (segment, told) in base.iter_mut().zip(told) {
        let first = if rate > 0.0 { segment.bits / rate } else { 0.0 };
        segment.transmission = told.filter(|_| lone).unwrap_or(first);
    }
    lone
}

/// A high rate in bit/s at which packets were served that waited for the one before, as the fastest packet will have been; 0 if none did.
fn fastest(packets: &[Entered]) -> f64 {
    let (mut rates, mut before) = (Vec::new(), f64::NEG_INFINITY);
    for p in packets {
        let Some(left) = p.left else { continue };
        if p.at < before && left > before {
            rates.push(p.bits / (left - before));
        }
        before = left;
    }
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len().saturating_sub(1) * 9 / 10).copied().unwrap_or(0.0)
}

/// Packets that came `margin` s and more after the last one had left, each with the transmission time that the rate of a packet right
/// behind it gives, or that of the nearest packet that waited within `reach` s.
fn votes(packets: &[Entered], margin: f64, reach: f64) -> Vec<Vote> {
    let (mut idle, mut rates) = (Vec::new(), Vec::new());
    let mut busy_until = f64::NEG_INFINITY;
    let mut before: Option<Entered> = None;
    for p in packets {
        if let Some((first, left)) = before.and_then(|b| Some((b, b.left?)))
            && let Some(behind) = p.left.filter(|behind| p.at < left && *behind > left)
        {
            rates.push((first.at, p.bits / (behind - left)));
        }
        if p.left.is_some() && p.at > busy_until + margin {
            idle.push(*p);
        }
        // A lost packet may have been served all the same.
        busy_until = p.left.unwrap_or(p.at).max(busy_until);
        before = Some(*p);
    }
    let vote = |p: &Entered| {
        let next = rates.partition_point(|r| r.0 < p.at);
        let near = rates.get(next).into_iter().chain(next.checked_sub(1).and_then(|k| rates.get(k)));
        let rate = near.min_by(|a, b| (a.0 - p.at).abs().total_cmp(&(b.0 - p.at).abs()));
        let transmission = p.bits / rate.filter(|r| (r.0 - p.at).abs() <= reach)?.1;
        Some((transmission - (p.left? - p.at), transmission))
    };
    idle.iter().filter_map(vote).collect()
}

/// The median of the votes, if a share of them agrees.
fn agreed(mut votes: Vec<Vote>, share: f64) -> Option<f64> {
    let middle = votes.len() / 2;
    votes.sort_by(|a, b| a.0.total_cmp(&b.0));
    let vote = votes[middle].0;
    let mut off: Vec<f64> = votes.iter().map(|v| (v.0 - vote).abs() / (ALIKE * v.1).max(NOISE)).collect();
    off.sort_by(f64::total_cmp);
    (off[((off.len() - 1) as f64 * share) as usize] <= 1.0).then_some(vote)
}

/// Where few wait: larger packets take longer, by the rate.
fn by_size(packets: &[Entered], margin: f64, bits: f64, share: f64) -> Option<f64> {
    let mut idle: Vec<(f64, f64)> = Vec::new();
    let mut busy_until = f64::NEG_INFINITY;
    for p in packets {
        if let Some(left) = p.left.filter(|_| p.at > busy_until + margin) {
            idle.push((left - p.at, p.bits));
        }
        busy_until = p.left.unwrap_or(p.at).max(busy_until);
    }
    let mut classes: BTreeMap<u32, Vec<(f64, f64)>> = BTreeMap::new();
    for p in &idle {
        classes.entry((p.1 / CLASS) as u32).or_default().push(*p);
    }
    let least = |c: Vec<(f64, f64)>| c.into_iter().min_by(|a, b| a.0.total_cmp(&b.0));
    let points: Vec<(f64, f64)> = classes.into_values().filter(|c| c.len() >= IN_CLASS).filter_map(least).collect();
    let (small, large) = (points.first()?, points.last()?);
    if large.1 < RANGE * small.1 {
        return None;
    }
    let slope = (large.0 - small.0) / (large.1 - small.1);
    let line = |bits: f64| small.0 + slope * (bits - small.1);
    let near = |p: &&(f64, f64)| (p.0 - line(p.1)).abs() <= (ALIKE * slope * p.1).max(NOISE);
    // Not the least ones alone.
    let alike = idle.iter().filter(near).count() as f64 >= share * idle.len() as f64;
    (slope > 0.0 && alike).then_some(slope * bits)
}
