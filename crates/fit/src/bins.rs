//! Capacity over time, with bounds.

use crate::capacity::{BIN, Capacity};
use crate::packets::Entered;
use crate::service::Service;

/// Least share of a bin in which the link was busy for its rate to be known.
const BUSY: f64 = 0.4;
/// Least busy time, in s, and bits by which the rate of a bin's surroundings is known, and how far these reach on either side, in s.
const NEAR: f64 = 0.2;
const LEAST_TIME: f64 = 0.01;
const LEAST_BITS: f64 = 20_000.0;
/// The same where lone packets tell the rate, and how many bins these are looked for on either side.
const LONE_TIME: f64 = 2e-3;
const LONE_BITS: f64 = 6_000.0;
const LONE_REACH: usize = 4;
/// Time over which the rate that arrived is a lower bound, in s.
const ARRIVED: f64 = 0.5;
/// Reach of known rates for bins between them, in s: as many bins nearby, else those farther away.
const SOON: f64 = 3.0;
const ENOUGH: usize = 10;
const REACH: f64 = 15.0;
/// Quantiles of the known rates around that stand for a bin's low, usual and high rate: packets queue where the rate is low, so that
/// those between are rather higher.
const LOW: f64 = 0.25;
const USUAL: f64 = 0.75;
const HIGH: f64 = 0.95;
/// A rate that varies is higher where nobody queued: by its variation, and at most by so many times of it; bounds of both factors. Chosen on
/// simulated links of seed 1.
const HIGHER: f64 = 2.0;
const MORE: f64 = 3.0;
const HIGHEST: f64 = 3.0;
/// Likely capacity over the highest rate that arrived, where no packet ever queued.
const UNBOUND: f64 = 1.25;

/// Standard deviation over the mean.
fn variation(rates: &[f64]) -> f64 {
    let n = rates.len().max(1) as f64;
    let mean = rates.iter().sum::<f64>() / n;
    let variance = rates.iter().map(|r| (r - mean) * (r - mean)).sum::<f64>() / n;
    if mean > 0.0 { libm::sqrt(variance) / mean } else { 0.0 }
}

/// Adds to bins what is spread evenly over a time.
fn spread(bins: &mut [f64], from: f64, to: f64, amount: f64) {
    let last = bins.len().saturating_sub(1);
    let (first, end) = (((from / BIN).max(0.0) as usize).min(last), ((to / BIN).max(0.0) as usize).min(last));
    if first == end || to <= from {
        if let Some(bin) = bins.get_mut(end) {
            *bin += amount;
        }
        return;
    }
    for (k, bin) in bins.iter_mut().enumerate().take(end + 1).skip(first) {
        let (begin, stop) = ((k as f64 * BIN).max(from), ((k + 1) as f64 * BIN).min(to));
        *bin += amount * (stop - begin).max(0.0) / (to - from);
    }
}

pub(crate) fn capacity(packets: &[Entered], service: &Service) -> Capacity {
    let end = packets.iter().filter_map(|p| p.left).fold(0.0, f64::max);
    let count = (end / BIN) as usize + 1;
    let (mut bits, mut time, mut arrived) = (vec![0.0; count], vec![0.0; count], vec![0.0; count]);
    for s in &service.served {
        spread(&mut bits, s.from, s.to, s.bits);
        spread(&mut time, s.from, s.to, s.to - s.from);
    }
    for p in packets {
        if let Some(left) = p.left {
            spread(&mut arrived, left, left, p.bits);
        }
    }
    let around = |of: &[f64], k: usize, reach: f64| -> f64 {
        let reach = (reach / BIN + 0.5) as usize;
        of[k.saturating_sub(reach)..(k + reach + 1).min(count)].iter().sum()
    };
    let served_bps: Vec<Option<f64>> = (0..count)
        .map(|k| {
            if service.lone {
                // Each packet tells the rate at its time.
                let mut reaches = (0..=LONE_REACH).map(|reach| reach as f64 * BIN);
                let enough =
                    |reach: &f64| around(&bits, k, *reach) >= LONE_BITS && around(&time, k, *reach) >= LONE_TIME;
                return reaches.find(enough).map(|reach| around(&bits, k, reach) / around(&time, k, reach));
            }
            if time[k] >= BUSY * BIN {
                return Some(bits[k] / time[k]);
            }
            let (near_bits, near_time) = (around(&bits, k, NEAR), around(&time, k, NEAR));
            (near_bits >= LEAST_BITS && near_time >= LEAST_TIME).then(|| near_bits / near_time)
        })
        .collect();
    let arrived_bps: Vec<f64> = (0..count).map(|k| around(&arrived, k, ARRIVED / 2.0) / (ARRIVED + BIN)).collect();
    let mut least_bps: Vec<f64> = served_bps.iter().zip(&arrived_bps).map(|(s, a)| s.unwrap_or(*a)).collect();
    let (mut likely_bps, mut most_bps) = (Vec::with_capacity(count), Vec::with_capacity(count));
    let known: Vec<(usize, f64)> = served_bps.iter().enumerate().filter_map(|(k, r)| Some((k, (*r)?))).collect();
    let greatest = least_bps.iter().copied().fold(0.0, f64::max);
    for k in 0..count {
        if let Some(rate) = served_bps[k] {
            likely_bps.push(rate);
            most_bps.push(Some(rate));
            continue;
        }
        let within = |reach: f64| {
            let reach = (reach / BIN) as usize;
            let from = known.partition_point(|(j, _)| *j + reach < k);
            let to = known.partition_point(|(j, _)| *j <= k + reach);
            let mut rates: Vec<f64> = known[from..to].iter().map(|n| n.1).collect();
            rates.sort_by(f64::total_cmp);
            rates
        };
        let near = within(SOON);
        let rates = if near.len() >= ENOUGH { near } else { within(REACH) };
        let at = |q: f64| rates.get(((rates.len().max(1) - 1) as f64 * q + 0.5) as usize).copied();
        let (Some(low), Some(usual), Some(high)) = (at(LOW), at(USUAL), at(HIGH)) else {
            likely_bps.push(greatest.max(arrived_bps[k]) * UNBOUND);
            most_bps.push(None);
            continue;
        };
        let varied = variation(&rates);
        let least = arrived_bps[k].max(low * (1.0 - varied).max(0.5));
        least_bps[k] = least;
        likely_bps.push(least.max(usual * (1.0 + varied).min(HIGHER)));
        most_bps.push(Some(high.max(least) * (1.0 + MORE * varied).clamp(1.02, HIGHEST)));
    }
    Capacity { bin_s: BIN, served_bps, arrived_bps, likely_bps, least_bps, most_bps }
}
