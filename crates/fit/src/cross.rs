//! Traffic of others in the same queue.

use crate::capacity::Capacity;
use crate::jitter::{self, JitterStep};
use crate::packets::Entered;
use crate::service::{Served, Service};
use serde::Serialize;

/// A time in which others sent through the same queue.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FitCrossTraffic"))]
pub struct CrossTraffic {
    /// Begin, in s.
    pub from_s: f64,
    /// End, in s.
    pub to_s: f64,
    /// Their rate in bit/s, while packets of the call waited.
    pub rate_bps: f64,
    /// Whether it takes what the call leaves, as TCP does: the queue is seldom empty, whatever the call sends.
    pub elastic: bool,
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

/// Where lone packets tell the rate: ratio of the rates of neighbours, as a logarithm, that a quarter of them exceed beside others, also over
/// that of the steadiest quarter of the windows; least pairs of neighbours in a window; and the time on either side in which the link's own
/// rate is taken, in s. Of recorded calls at most 0.13 without others, but 0.24 where the rate has just fallen, and 0.7 and more beside TCP and UDP.
const IRREGULAR: f64 = 0.3;
const OVER_STEADIEST: f64 = 4.0;
const LEAST_PAIRS: usize = 5;
const SIDE: f64 = 8.0;
/// Time in s by which times of a capture are off, so that ratios of short packets vary by themselves, and how much they may: of recorded calls'
/// delays over an emulated link 99 % were off by 0.2 ms or less.
const TIMES_OFF: f64 = 0.1e-3;
const ALIKE: f64 = 0.12;
/// Share of the link's rate below which others begin or end.
const LOWER: f64 = 0.97;
/// Bits of others before a packet that has waited, and least share of packets that have where others take what they get.
const WAITED: f64 = 36_000.0;
const ELASTIC: f64 = 0.5;

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
    if service.lone {
        return irregular(service, capacity);
    }
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
                out.push((CrossTraffic { from_s: w.at, to_s: w.at + WINDOW, rate_bps, elastic: true }, 1.0));
            }
        }
    }
    let out: Vec<CrossTraffic> = out.into_iter().map(|o| o.0).filter(|c| c.to_s - c.from_s >= LASTING).collect();
    for c in &out {
        capacity.set(c.from_s, c.to_s, rate);
    }
    out
}

/// Looks for others' traffic where each packet tells the link's rate: neighbours then tell the same one, but for those with packets of others
/// between them.
fn irregular(service: &Service, capacity: &mut Capacity) -> Vec<CrossTraffic> {
    let end = service.served.last().map_or(0.0, |s| s.to);
    let mut windows: Vec<Vec<f64>> = vec![Vec::new(); (end / WINDOW) as usize + 1];
    for pair in service.served.windows(2).filter(|pair| pair.iter().all(|s| !s.has_lost)) {
        let time = |s: &Served| (s.to - s.from).max(1e-9);
        let rate = |s: &Served| s.bits / time(s);
        let noise = TIMES_OFF / time(&pair[0]) + TIMES_OFF / time(&pair[1]);
        let unlike = libm::log(rate(&pair[1]) / rate(&pair[0])).abs();
        windows[(pair[1].to / WINDOW).max(0.0) as usize].push(unlike * (ALIKE / noise).min(1.0));
    }
    let upper = |mut of: Vec<f64>| {
        of.sort_by(f64::total_cmp);
        (of.len() >= LEAST_PAIRS).then(|| of[of.len() * 3 / 4])
    };
    let unlike: Vec<Option<f64>> = windows.into_iter().map(upper).collect();
    let mut sorted: Vec<f64> = unlike.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let steadiest = sorted.get(sorted.len() / 4).copied().unwrap_or(0.0);
    let is_shared = |u: &Option<f64>| u.is_some_and(|u| u > IRREGULAR.max(OVER_STEADIEST * steadiest));
    let mut times: Vec<(f64, f64)> = Vec::new();
    for (k, _) in unlike.iter().enumerate().filter(|(_, u)| is_shared(u)) {
        let (from, to) = (k as f64 * WINDOW, (k + 1) as f64 * WINDOW);
        match times.last_mut().filter(|t| from - t.1 <= PAUSE) {
            Some(last) => last.1 = to,
            None => times.push((from, to)),
        }
    }
    times.retain(|t| t.1 - t.0 >= LASTING);
    // Others only make the rate seem lower.
    let link = |from: f64, to: f64| {
        let sides = [capacity.median(from - SIDE, from), capacity.median(to, to + SIDE)];
        sides.into_iter().flatten().max_by(f64::total_cmp)
    };
    let mut shared: Vec<CrossTraffic> = Vec::new();
    for (from, to) in times {
        let Some(rate) = link(from, to) else { continue };
        // At the ends, while others begin or end, neighbours may be alike: the rate is lower all the same.
        let (from_s, to_s) = capacity.lower_around(from, to, LOWER * rate);
        match shared.last_mut().filter(|last| from_s <= last.to_s + PAUSE) {
            Some(last) => last.to_s = to_s,
            None => shared.push(CrossTraffic { from_s, to_s, rate_bps: rate, elastic: true }),
        }
    }
    for c in &mut shared {
        let within = service.served.iter().filter(|s| s.to >= c.from_s && s.to < c.to_s);
        let own = within.map(|s| s.bits).sum::<f64>() / (c.to_s - c.from_s);
        capacity.set(c.from_s, c.to_s, c.rate_bps);
        c.rate_bps = (c.rate_bps - own).max(0.0);
    }
    shared
}

/// Tells traffic that takes what the call leaves from that of a rate of its own: the call, which keeps queues short, waits all the same.
pub(crate) fn tell_elastic(cross: &mut [CrossTraffic], packets: &[Entered], capacity: &Capacity) {
    for c in cross {
        let (mut waited, mut all) = (0_u32, 0_u32);
        let from = packets.partition_point(|p| p.at < c.from_s);
        for p in packets[from..].iter().take_while(|p| p.at < c.to_s) {
            let Some(left) = p.left else { continue };
            all += 1;
            waited += u32::from((left - p.at) * capacity.likely_at(p.at) > p.bits + WAITED);
        }
        c.elastic = f64::from(waited) >= ELASTIC * f64::from(all);
    }
}
