//! A token bucket that drops what exceeds its rate, without a queue.

use crate::packets::Entered;
use serde::Serialize;

/// A policer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
/// Rates that are tried over the one that arrived, as a factor up and down, and bits of buckets that are: from a packet to a time in s at
/// that rate. Each is divided into so many steps up and down; each next search is around the best, in steps so much finer.
const RATES: f64 = 1.4;
const BURST: (f64, f64) = (12_000.0, 1.0);
const COUNT: i32 = 8;
const STEPS: f64 = 8.0;
const FINER: f64 = 0.2;
const SEARCHES: usize = 4;
/// Packets that are looked at: what a longer call takes is bounded.
const MOST_PACKETS: usize = 200_000;
/// Largest share of the losses behind packets that waited, and time that counts as waiting, in s.
const QUEUED: f64 = 0.5;
const WAITED: f64 = 4e-3;
/// Bins in which losses are compared with those of the bucket, in s, and least likeness.
const BIN: f64 = 0.25;
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
    let packets = packets.get(..MOST_PACKETS).unwrap_or(packets);
    let mut best = (f64::NEG_INFINITY, rate, libm::sqrt(BURST.0 * BURST.1 * rate));
    // A step of either is a factor.
    let mut steps = (libm::log(RATES) / STEPS, libm::log(BURST.1 * rate / BURST.0) / 2.0 / STEPS);
    for _ in 0..SEARCHES {
        let (_, rate, burst) = best;
        for i in -COUNT..=COUNT {
            for k in -COUNT..=COUNT {
                let rate = rate * libm::exp(steps.0 * f64::from(i));
                let burst = burst * libm::exp(steps.1 * f64::from(k));
                let like = likeness(packets, rate, burst) + agreement(packets, rate, burst);
                if like > best.0 {
                    best = (like, rate, burst);
                }
            }
        }
        // Losses by chance are far from those of any bucket.
        if best.0 < LIKE {
            return None;
        }
        steps = (steps.0 * FINER, steps.1 * FINER);
    }
    let (like, rate_bps, burst) = best;
    (like > 2.0 * LIKE).then_some(PolicerFit { rate_bps, burst_bytes: burst / 8.0 })
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

/// Likeness of the losses to those of a bucket, by bin: 1 is the same, 0 as far as their mean is.
fn likeness(packets: &[Entered], rate: f64, burst: f64) -> f64 {
    let end = packets.last().map_or(0.0, |p| p.at);
    let mut bins = vec![(0.0_f64, 0.0_f64); (end / BIN) as usize + 1];
    let (mut tokens, mut before) = (burst, 0.0);
    for p in packets {
        tokens = (tokens + rate * (p.at - before)).min(burst);
        before = p.at;
        let bin = &mut bins[(p.at / BIN).max(0.0) as usize];
        bin.0 += f64::from(u8::from(p.left.is_none()));
        if tokens < p.bits {
            bin.1 += 1.0;
        } else {
            tokens -= p.bits;
        }
    }
    let mean = bins.iter().map(|b| b.0).sum::<f64>() / bins.len() as f64;
    let off: f64 = bins.iter().map(|b| (b.0 - b.1) * (b.0 - b.1)).sum();
    let spread: f64 = bins.iter().map(|b| (b.0 - mean) * (b.0 - mean)).sum();
    if spread > 0.0 { 1.0 - off / spread } else { 0.0 }
}

/// Share of the losses less that of errors, where the bucket is set right by each packet's fate: 1 is no error. Errors of the rate do not
/// add up, so that it tells the bucket's size.
fn agreement(packets: &[Entered], rate: f64, burst: f64) -> f64 {
    let (mut tokens, mut before) = (burst, 0.0);
    let (mut lost, mut wrong) = (0.0, 0.0);
    for p in packets {
        tokens = (tokens + rate * (p.at - before)).min(burst);
        before = p.at;
        let has_enough = tokens >= p.bits;
        if p.left.is_some() {
            wrong += f64::from(u8::from(!has_enough));
            tokens = (tokens - p.bits).max(0.0);
        } else {
            lost += 1.0;
            wrong += f64::from(u8::from(has_enough));
            tokens = tokens.min(p.bits);
        }
    }
    if lost > 0.0 { 1.0 - wrong / lost } else { 0.0 }
}
