//! Traffic of others in the same queue.

use crate::capacity::{BIN, Capacity};
use crate::jitter::{self, JitterStep};
use crate::service::Service;
use schemars::JsonSchema;
use serde::Serialize;

/// A time in which others sent through the same queue.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "FitCrossTraffic")]
pub struct CrossTraffic {
    /// Begin, in s.
    pub from_s: f64,
    /// End, in s.
    pub to_s: f64,
    /// Their rate in bit/s, while packets of the call waited.
    pub rate_bps: f64,
}

/// Windows in which the gaps between packets are compared, in s, and least number of them.
const WINDOW: f64 = 1.0;
const LEAST_GAPS: usize = 8;
/// Quantile of the rates of single packets that stands for the link's: between two of them came none of others.
const TOP: f64 = 0.9;
/// Largest share of that rate that packets are served at on average beside others, and least share where there are none.
const SHARED: f64 = 0.85;
const ALONE: f64 = 0.95;
/// How far the rate of single packets may be from that of packets alone, as a share.
const SAME: f64 = 0.1;
/// Longest gap that others' packets account for, in s: beyond it the link stood still.
const STILL: f64 = 0.1;
/// Windows apart by so much belong together, and shortest time, in s.
const PAUSE: f64 = 2.0;
const LASTING: f64 = 3.0;

#[derive(Clone, Copy)]
struct Window {
    at: f64,
    /// Mean rate, and that of the fastest packets.
    mean: f64,
    top: f64,
}

/// Looks for others' traffic. Beside others a packet is served either right behind the one before, at the link's rate, or behind packets
/// of others too. Where the fastest are as fast as packets that were alone, and most are slower, the difference is theirs. Capacity in
/// these times is set to the link's.
pub(crate) fn find(service: &Service, jitter: &[JitterStep], capacity: &mut Capacity) -> Vec<CrossTraffic> {
    let mut windows: Vec<Window> = Vec::new();
    let mut rates: Vec<f64> = Vec::new();
    let (mut bits, mut time, mut at) = (0.0, 0.0, 0.0);
    let close = |rates: &mut Vec<f64>, bits: f64, time: f64, at: f64, windows: &mut Vec<Window>| {
        if rates.len() >= LEAST_GAPS && time > 0.0 {
            rates.sort_by(f64::total_cmp);
            let top = rates[((rates.len() - 1) as f64 * TOP) as usize];
            windows.push(Window { at, mean: bits / time, top });
        }
        rates.clear();
    };
    for s in service.served.iter().filter(|s| s.to > s.from && s.to - s.from <= STILL) {
        if s.to >= at + WINDOW {
            close(&mut rates, bits, time, at, &mut windows);
            (bits, time, at) = (0.0, 0.0, libm::floor(s.to / WINDOW) * WINDOW);
        }
        rates.push(s.bits / (s.to - s.from));
        bits += s.bits;
        time += s.to - s.from;
    }
    close(&mut rates, bits, time, at, &mut windows);
    // The link's rate by packets that were alone; a link that changes has no such rate, and nothing is said of others on it.
    let mut alone: Vec<f64> = windows.iter().filter(|w| w.mean >= ALONE * w.top).map(|w| w.mean).collect();
    alone.sort_by(f64::total_cmp);
    let (Some(low), Some(rate), Some(high)) = (
        alone.get(alone.len() / 10).copied(),
        alone.get(alone.len() / 2).copied(),
        alone.get(alone.len().saturating_sub(1) * 9 / 10).copied(),
    ) else {
        return Vec::new();
    };
    if high > low * (1.0 + 2.0 * SAME) {
        return Vec::new();
    }
    let shared = windows.iter().filter(|w| w.mean <= SHARED * w.top);
    let shared = shared.filter(|w| (w.top / rate - 1.0).abs() <= SAME && jitter::at(jitter, w.at) == 0.0);
    let mut out: Vec<(CrossTraffic, f64)> = Vec::new();
    for w in shared {
        match out.last_mut().filter(|(c, _)| w.at - c.to_s <= PAUSE) {
            Some((c, n)) => {
                c.rate_bps = (c.rate_bps * *n + rate - w.mean) / (*n + 1.0);
                c.to_s = w.at + WINDOW;
                *n += 1.0;
            }
            None => {
                let rate_bps = rate - w.mean;
                out.push((CrossTraffic { from_s: w.at, to_s: w.at + WINDOW, rate_bps }, 1.0));
            }
        }
    }
    let out: Vec<CrossTraffic> = out.into_iter().map(|o| o.0).filter(|c| c.to_s - c.from_s >= LASTING).collect();
    for c in &out {
        let count = capacity.served_bps.len();
        let bins = ((c.from_s / BIN) as usize).min(count)..((c.to_s / BIN) as usize).min(count);
        for k in bins {
            capacity.served_bps[k] = Some(rate);
            capacity.likely_bps[k] = rate;
            capacity.least_bps[k] = rate;
            capacity.most_bps[k] = Some(rate);
        }
    }
    out
}
