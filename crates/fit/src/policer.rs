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
/// Step of the second search.
const FINE: f64 = 0.005;
/// Rates that are tried, over the one that arrived: a window may begin with a full bucket.
const FACTORS: [f64; 13] = [0.7, 0.75, 0.8, 0.85, 0.9, 0.94, 0.97, 1.0, 1.03, 1.06, 1.1, 1.15, 1.2];
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
    let try_rate = |rate_bps: f64| {
        let burst = burst(packets, rate_bps);
        (likeness(packets, rate_bps, burst), PolicerFit { rate_bps, burst_bytes: burst / 8.0 })
    };
    let coarse = FACTORS.into_iter().map(|f| try_rate(rate * f)).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let fine = (-6..=6).map(|k| try_rate(coarse.1.rate_bps * (1.0 + FINE * f64::from(k))));
    let (like, fit) = fine.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (like > LIKE).then_some(fit)
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

/// Most bits that passed beyond the rate, over all times: the bucket's depth.
fn burst(packets: &[Entered], rate: f64) -> f64 {
    let (mut level, mut most, mut before) = (0.0_f64, 0.0_f64, 0.0);
    for p in packets.iter().filter(|p| p.left.is_some()) {
        level = (level - rate * (p.at - before)).max(0.0) + p.bits;
        before = p.at;
        most = most.max(level);
    }
    most
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
