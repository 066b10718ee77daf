//! A token bucket that drops what exceeds its rate, without a queue.

use crate::packets::Entered;
use schemars::JsonSchema;
use serde::Serialize;

/// A policer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PolicerFit {
    /// Its rate in bit/s with UDP and IPv4 headers.
    pub rate_bps: f64,
    /// Its burst in bytes.
    pub burst_bytes: f64,
}

/// Windows whose rates are compared, in s; least number of those with losses; losses that make one, as a share.
const WINDOW: f64 = 1.0;
const LEAST: usize = 4;
const LOSSY: f64 = 0.02;
/// Rates that are tried over the one that arrived, as a share up and down, in so many steps: a window may begin with a full bucket. Each
/// next search is over two steps of the one before.
const RANGE: f64 = 0.35;
const STEPS: i32 = 12;
const SEARCHES: usize = 4;
/// Largest share of the losses behind packets that waited, and time that counts as waiting, in s.
const QUEUED: f64 = 0.5;
const WAITED: f64 = 4e-3;
/// Least share of the losses that a bucket has to account for, each packet that it drops in error taken off.
const LIKE: f64 = 0.4;

/// Looks for a policer: packets are lost behind none that waited, and when a bucket of some rate drops.
pub(crate) fn find(packets: &[Entered]) -> Option<PolicerFit> {
    let end = packets.last()?.at;
    if queued_losses(packets) > QUEUED {
        return None;
    }
    let mut windows = vec![(0.0_f64, 0.0_f64); (end / WINDOW) as usize + 1];
    for p in packets {
        let w = &mut windows[(p.at / WINDOW).max(0.0) as usize];
        w.0 += p.bits / WINDOW;
        w.1 += if p.left.is_some() { p.bits / WINDOW } else { 0.0 };
    }
    let mut lossy: Vec<f64> =
        windows.iter().filter(|(s, a)| *s > 0.0 && (s - a) / s > LOSSY).map(|(_, a)| *a).collect();
    if lossy.len() < LEAST {
        return None;
    }
    lossy.sort_by(f64::total_cmp);
    let rate = lossy[lossy.len() / 2];
    let (mut best, mut reach) = ((f64::NEG_INFINITY, 0.0, rate), RANGE);
    for _ in 0..SEARCHES {
        let middle = best.2;
        let step = reach / f64::from(STEPS);
        for k in -STEPS..=STEPS {
            let rate = middle * (1.0 + step * f64::from(k));
            let (like, burst) = likeness(packets, rate);
            if like > best.0 {
                best = (like, burst, rate);
            }
        }
        reach = 2.0 * step;
    }
    let (like, burst, rate_bps) = best;
    (like > LIKE).then_some(PolicerFit { rate_bps, burst_bytes: burst / 8.0 })
}

/// Share of the losses behind packets that waited.
fn queued_losses(packets: &[Entered]) -> f64 {
    let mut delays: Vec<f64> = packets.iter().filter_map(|p| Some(p.left? - p.at)).collect();
    delays.sort_by(f64::total_cmp);
    let usual = delays.get(delays.len() / 4).copied().unwrap_or(0.0);
    let (mut before, mut lost, mut queued) = (0.0, 0_u32, 0_u32);
    for p in packets {
        match p.left {
            Some(left) => before = left - p.at,
            None => {
                lost += 1;
                queued += u32::from(before > usual + WAITED);
            }
        }
    }
    f64::from(queued) / f64::from(lost.max(1))
}

/// How well a bucket of a rate accounts for the losses, 1 being all of them and no other packet, and the bits in it for which that is
/// most. What is missing in the bucket is known from the packets that passed; it drops those for which too little is left.
fn likeness(packets: &[Entered], rate: f64) -> (f64, f64) {
    let (mut missing, mut before) = (0.0_f64, 0.0);
    // What a bucket has to have for a packet to pass, and whether it passed.
    let mut needs: Vec<(f64, bool)> = Vec::with_capacity(packets.len());
    for p in packets {
        missing = (missing - rate * (p.at - before)).max(0.0);
        before = p.at;
        needs.push((missing + p.bits, p.left.is_some()));
        if p.left.is_some() {
            missing += p.bits;
        }
    }
    needs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lost = needs.iter().filter(|n| !n.1).count() as f64;
    // Right less wrong drops, for a bucket below all; then for one that just has what each packet needs.
    let mut right = 2.0 * lost - needs.len() as f64;
    let mut best = (right, 0.0);
    for (i, need) in needs.iter().enumerate() {
        right += if need.1 { 1.0 } else { -1.0 };
        if right > best.0 {
            // In the middle of what is not told.
            let next = needs.get(i + 1).map_or(need.0, |n| n.0);
            best = (right, 0.5 * (need.0 + next));
        }
    }
    (if lost > 0.0 { best.0 / lost } else { 0.0 }, best.1)
}
