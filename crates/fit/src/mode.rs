//! The commonest rate of pairs of packets.
//!
//! Jitter that keeps the order of packets, and others' packets between two of the call, make gaps longer; none makes them shorter than
//! the transmission time. Enough pairs have just that gap, so that their rate is the commonest one.

use crate::packets::Entered;

/// Times in which it is taken, in s, and least pairs in one.
pub(crate) const WINDOW: f64 = 5.0;
const LEAST: usize = 20;
/// Rates that are one, as a ratio, and least share of the pairs that have the commonest.
const ONE: f64 = 1.02;
const SHARE: f64 = 0.15;

/// The commonest rate in bit/s of each window; `None` where none is common.
pub(crate) fn rates(packets: &[Entered]) -> Vec<Option<f64>> {
    let end = packets.last().map_or(0.0, |p| p.at);
    let mut windows: Vec<Vec<f64>> = vec![Vec::new(); (end / WINDOW) as usize + 1];
    for pair in packets.windows(2) {
        let (Some(left), Some(behind)) = (pair[0].left, pair[1].left) else { continue };
        if pair[1].at < left && behind > left {
            windows[(pair[1].at / WINDOW).max(0.0) as usize].push(pair[1].bits / (behind - left));
        }
    }
    windows.into_iter().map(common).collect()
}

/// The commonest rate at a time.
pub(crate) fn at(rates: &[Option<f64>], at: f64) -> Option<f64> {
    rates.get((at / WINDOW).max(0.0) as usize).copied().flatten()
}

fn common(mut rates: Vec<f64>) -> Option<f64> {
    rates.sort_by(f64::total_cmp);
    let (mut from, mut best) = (0, 0..0);
    for to in 0..rates.len() {
        while rates[to] > rates[from] * ONE {
            from += 1;
        }
        // Of equals the faster ones: nothing makes gaps shorter.
        if to + 1 - from >= best.len() {
            best = from..to + 1;
        }
    }
    let enough = rates.len() >= LEAST && best.len() as f64 >= SHARE * rates.len() as f64;
    enough.then(|| rates[best.start + best.len() / 2])
}
