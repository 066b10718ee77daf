//! Times in which the link stood still: nothing left it while packets waited, and then these left one right behind the other, as on a radio that
//! waits for a grant or changes its cell.

use crate::packets::Entered;
use crate::service::{Served, Service};
use serde::Serialize;

/// A time in which the link stood still.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FitStall"))]
pub struct Stall {
    /// Begin, in s: when the last packet before had left, or, where none waited then, between that and the next one's coming.
    pub from_s: f64,
    /// End, in s.
    pub to_s: f64,
}

/// Least time, in s, and least time over a packet's transmission at the usual rate.
const LEAST: f64 = 0.08;
const PACKETS: f64 = 5.0;
/// Least rate over the usual one at which what had waited leaves.
const AT_ONCE: f64 = 0.5;

/// The rate of half of what was served, in bit/s.
fn usual(service: &Service) -> Option<f64> {
    let mut rates: Vec<f64> =
        service.served.iter().filter(|s| s.to > s.from).map(|s| s.bits / (s.to - s.from)).collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

/// Looks for them. Where jitter holds packets nothing is said, since it looks the same.
pub(crate) fn find(packets: &[Entered], service: &Service) -> Vec<Stall> {
    let Some(rate) = usual(service) else { return Vec::new() };
    // Packets lost since the one before may have been served too.
    let (mut arrived, mut lost): (Vec<(f64, f64, f64)>, f64) = (Vec::new(), 0.0);
    for p in packets {
        match p.left {
            Some(left) => arrived.push((p.at, left, p.bits + core::mem::take(&mut lost))),
            None => lost += p.bits,
        }
    }
    let mut out: Vec<Stall> = Vec::new();
    for (i, pair) in arrived.windows(2).enumerate() {
        let (before, (at, left, bits)) = (pair[0].1, pair[1]);
        let still = left - bits / rate - before.max(at);
        if still < LEAST.max(PACKETS * bits / rate) {
            continue;
        }
        // Packets that came meanwhile leave as soon as the link goes on.
        let behind = arrived[i + 2..].iter().take_while(|p| p.0 < left);
        let (last, all) = behind.fold((left, 0.0), |(_, all), p| (p.1, all + p.2));
        if all > 0.0 && all >= AT_ONCE * rate * (last - left) {
            let from_s = if at < before { before } else { (before.max(at - LEAST) + at) / 2.0 };
            out.push(Stall { from_s, to_s: left - bits / rate });
        }
    }
    out
}

impl Service {
    /// Leaves out what was served while the link stood still.
    pub(crate) fn without(&mut self, stalls: &[Stall]) {
        let is_apart = |s: &Served| {
            let next = stalls.partition_point(|stall| stall.to_s <= s.from);
            stalls.get(next).is_none_or(|stall| stall.from_s >= s.to)
        };
        self.served.retain(is_apart);
    }
}

/// Share of a time in which the link stood still.
pub(crate) fn share(stalls: &[Stall], from: f64, to: f64) -> f64 {
    let first = stalls.partition_point(|s| s.to_s <= from);
    let within = stalls[first..].iter().take_while(|s| s.from_s < to);
    let still: f64 = within.map(|s| s.to_s.min(to) - s.from_s.max(from)).sum();
    (still / (to - from)).clamp(0.0, 1.0)
}
