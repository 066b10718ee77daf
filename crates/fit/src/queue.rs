//! The queue before the link: how much was in it when packets were lost.

use crate::packets::Entered;
use serde::Serialize;

/// How the queue drops.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "FitDiscipline"))]
pub enum Discipline {
    /// When it is full.
    DropTail,
    /// Before it is full.
    Managed,
    /// It never dropped, or too rarely to tell.
    Unknown,
}

/// The queue before the link.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QueueFit {
    /// How it drops.
    pub discipline: Discipline,
    /// Its room in bytes with UDP and IPv4 headers; null if it never overflowed.
    pub limit_bytes: Option<f64>,
    /// Most bytes that were in it.
    pub at_least_bytes: f64,
    /// Longest time in it, in ms.
    pub longest_ms: f64,
}

/// The fit, and which packets the queue dropped.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Queue {
    pub(crate) fit: QueueFit,
    /// By packet: whether the queue dropped it.
    pub(crate) overflowed: Vec<bool>,
    /// By packet: whether it came when the queue dropped packets, so that its loss says nothing of chance.
    pub(crate) full: Vec<bool>,
}

/// Share of the most bytes from which a queue counts as full, and share below which it counts as empty but for a packet.
const FULL: f64 = 0.8;
/// Bits up to which it counts as empty: a packet.
const EMPTY: f64 = 13_000.0;
/// Least losses to tell, and how much more often packets are lost at a full queue than at an empty one.
pub(crate) const LEAST: u32 = 3;
const OFTENER: f64 = 3.0;
const BEYOND_CHANCE: f64 = 0.003;
/// Share of the losses with a queue that a full queue accounts for under drop tail.
const TAIL: f64 = 0.6;
/// Time in s within which losses with and without a queue are compared, since losses by chance may begin in mid-call; and packets without a queue
/// in it that weigh as much as all others of the call.
const WINDOW: f64 = 2.0;
const PRIOR: f64 = 20.0;

/// Bits in the queue when each packet came, and those of the packet in transmission then, which has no place in its room.
fn backlogs(packets: &[Entered]) -> Vec<(f64, f64)> {
    let mut left = 0;
    let (mut entered, mut gone) = (0.0, 0.0);
    let mut out = Vec::with_capacity(packets.len());
    for (i, p) in packets.iter().enumerate() {
        while left < i {
            match packets[left].left {
                Some(at) if at > p.at => break,
                Some(_) => gone += packets[left].bits,
                None => {}
            }
            left += 1;
        }
        let in_transmission = if left < i { packets[left].bits } else { 0.0 };
        out.push((entered - gone, in_transmission));
        if p.left.is_some() {
            entered += p.bits;
        }
    }
    out
}

/// The room in bits between what was taken and what was dropped; where these overlap, such that most dropped ones did not fit.
fn room(mut taken: Vec<f64>, mut dropped: Vec<f64>) -> Option<f64> {
    taken.sort_by(f64::total_cmp);
    dropped.sort_by(f64::total_cmp);
    let most = *taken.get(taken.len().saturating_sub(1) * 999 / 1000)?;
    let (few, middle) = (*dropped.get(dropped.len() / 10)?, dropped[dropped.len() / 2]);
    Some(if few > most { 0.5 * (most + few) } else { middle.max(most) })
}

pub(crate) fn find(packets: &[Entered], policed: bool) -> Queue {
    let backlogs = backlogs(packets);
    let backlog: Vec<f64> = backlogs.iter().map(|b| b.0).collect();
    let mut sorted: Vec<f64> =
        packets.iter().zip(&backlog).filter(|(p, _)| p.left.is_some()).map(|(p, b)| b + p.bits).collect();
    sorted.sort_by(f64::total_cmp);
    let most = sorted.get(sorted.len().saturating_sub(1) * 999 / 1000).copied().unwrap_or(0.0);
    let longest = packets.iter().filter_map(|p| Some(p.left? - p.at)).fold(0.0, f64::max);
    let mut fit = QueueFit {
        discipline: Discipline::Unknown,
        limit_bytes: None,
        at_least_bytes: most / 8.0,
        longest_ms: longest * 1e3,
    };
    let mut overflowed = vec![false; packets.len()];
    let mut full = overflowed.clone();
    if policed {
        return Queue { fit, overflowed, full };
    }
    // Losses over packets: with an empty queue, with one between, with a full one.
    let class = |b: f64, bits: f64| {
        if b + bits >= FULL * most && b > EMPTY * 0.5 {
            2
        } else if b <= EMPTY {
            0
        } else {
            1
        }
    };
    let mut counts = [[0_u32; 2]; 3];
    let mut windows: Vec<[[u32; 2]; 3]> = Vec::new();
    let mut end = f64::NEG_INFINITY;
    for (p, b) in packets.iter().zip(&backlog) {
        if p.at >= end {
            end = p.at + WINDOW;
            windows.push(Default::default());
        }
        let class = class(*b, p.bits);
        for c in windows.last_mut().into_iter().chain([&mut counts]).map(|c| &mut c[class]) {
            c[0] += u32::from(p.left.is_none());
            c[1] += 1;
        }
    }
    let share = |c: [u32; 2], of: f64| (f64::from(c[0]) + PRIOR * of) / (f64::from(c[1]) + PRIOR);
    let idle = f64::from(counts[0][0]) / f64::from(counts[0][1].max(1));
    // Losses to expect by the chance that packets without a queue had at the time.
    let expected = |class: usize| windows.iter().map(|w| share(w[0], idle) * f64::from(w[class][1])).sum::<f64>();
    let expected = [0.0, expected(1), expected(2)];
    let queued = [counts[1][0] + counts[2][0], counts[1][1] + counts[2][1]];
    let by_chance = OFTENER * (expected[1] + expected[2]) + BEYOND_CHANCE * f64::from(queued[1]);
    if queued[0] >= LEAST && f64::from(queued[0]) > by_chance {
        let between = (f64::from(counts[1][0]) - expected[1]).max(0.0);
        let at_full = f64::from(counts[2][0]);
        let tail = at_full >= TAIL * (between + at_full);
        fit.discipline = if tail { Discipline::DropTail } else { Discipline::Managed };
        // Room that the queue had to have, by packets that it took and by those that it dropped.
        let (mut taken, mut dropped) = (Vec::new(), Vec::new());
        for (i, p) in packets.iter().enumerate() {
            let class = class(backlog[i], p.bits);
            full[i] = class == 2 || (class == 1 && !tail);
            overflowed[i] = full[i] && p.left.is_none();
            let needed = backlog[i] - backlogs[i].1 + p.bits;
            if overflowed[i] {
                dropped.push(needed);
            } else if p.left.is_some() {
                taken.push(needed);
            }
        }
        if tail {
            fit.limit_bytes = room(taken, dropped).map(|bits| bits / 8.0);
        }
    }
    Queue { fit, overflowed, full }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_in_the_queue_are_those_that_came_and_have_not_left() {
        let p = |at: f64, left: Option<f64>| Entered { at, left, bits: 1_000.0 };
        let packets = [p(0.0, Some(1.0)), p(0.1, Some(2.0)), p(0.5, None), p(1.5, Some(3.0)), p(9.0, Some(9.1))];
        let (all, in_transmission): (Vec<f64>, Vec<f64>) = backlogs(&packets).into_iter().unzip();
        assert_eq!(all, [0.0, 1_000.0, 2_000.0, 1_000.0, 0.0]);
        assert_eq!(in_transmission, [0.0, 1_000.0, 1_000.0, 1_000.0, 0.0]);
    }

    #[test]
    fn chance_that_begins_in_mid_call_is_not_that_of_a_queue() {
        // Single packets that all arrive, then pictures of eight of which each fifth packet is lost.
        let single = |i: usize| Entered { at: i as f64 * 0.01, left: Some(i as f64 * 0.01 + 1e-3), bits: 8_000.0 };
        let picture = |i: usize| {
            let at = 10.0 + (i / 8) as f64 * 0.04;
            Entered { at, left: (!i.is_multiple_of(5)).then_some(at + (i % 8 + 1) as f64 * 1e-3), bits: 8_000.0 }
        };
        let chance: Vec<Entered> = (0..1_000).map(single).chain((0..2_000).map(picture)).collect();
        let found = find(&chance, false);
        assert_eq!((found.fit.discipline, found.overflowed.iter().any(|o| *o)), (Discipline::Unknown, false));
        // The last packets of each picture do not fit.
        let tail = |i: usize| {
            let Entered { at, bits, .. } = picture(i);
            Entered { at, left: (i % 8 < 6).then_some(at + (i % 8 + 1) as f64 * 1e-3), bits }
        };
        let overflow: Vec<Entered> = (0..1_000).map(single).chain((0..2_000).map(tail)).collect();
        assert_eq!(find(&overflow, false).fit.discipline, Discipline::DropTail);
    }
}
