//! Delay by chance of packets that found no queue.

use crate::mode;
use crate::packets::Entered;
use serde::Serialize;

/// Delay by chance from an instant on.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FitJitterStep"))]
pub struct JitterStep {
    /// The instant, in s.
    pub from_s: f64,
    /// Largest extra delay, in ms; 0 is none.
    pub max_ms: f64,
}

/// Windows that are looked at, in s, least packets in one that found the link idle, and least jitter, in s.
const WINDOW: f64 = 5.0;
pub(crate) const LEAST_PACKETS: usize = 40;
/// The same where lone packets seemed to tell the link's rate: most packets of a picture are held behind others.
pub(crate) const FEW_PACKETS: usize = 12;
const LEAST: f64 = 3e-3;
/// Quantiles between which the extra delays are taken for uniform.
const OUTER: f64 = 0.05;
/// Least quarter of the extra delays over their median: chance is always there, and others' traffic now and then. Values that are
/// uniform from zero have 0.5.
const EVEN: f64 = 0.25;
/// Greatest correlation of one packet's with the next one's: a queue of others' changes slowly.
const ALIKE: f64 = 0.6;
/// Slack of the gap to the packet before of one that was held behind it, as a share of its transmission time and in s.
const SLACK: f64 = 0.02;
const LEAST_SLACK: f64 = 0.1e-3;
/// Largest share of the jitter for which a packet may have been held.
const HELD: f64 = 0.6;
/// Share of the range of all delays by chance above which those of a time are taken to have it.
const WHOLE: f64 = 0.5;
/// Quantile of the delays that stands for the largest: single packets are late for other reasons.
const HIGHEST: f64 = 0.9995;
/// Least jitter where lone packets seemed to tell the link's rate, in ms, and as bits that the link carries in the same time.
const BESIDE_MS: f64 = 10.0;
const BESIDE_BITS: f64 = 48_000.0;
/// Time between packets whose delays are compared for that, in s: pictures of one call, since those of one picture wait for one another; and the
/// largest correlation of chance. Between live ends that of 60 ms of jitter was .1 at most, that of a queue of CUBIC .7 and more.
const APART: f64 = 0.04;
const CHANCE: f64 = 0.5;
/// Jitters that differ by less than this share are one.
const SAME: f64 = 0.4;

/// The time that a packet took beyond its queue and its transmission, and how much of that it waited behind one that chance had delayed more, in s.
#[derive(Clone, Copy)]
struct Excess {
    all: f64,
    held: f64,
    is_held: bool,
}

/// The time that packets took beyond their queue and transmission, by windows.
fn excesses(packets: &[Entered], rate_at: &dyn Fn(f64) -> f64) -> Vec<Vec<Excess>> {
    let end = packets.last().map_or(0.0, |p| p.at);
    let mut windows: Vec<Vec<Excess>> = vec![Vec::new(); (end / WINDOW) as usize + 1];
    let (mut served, mut arrived, mut is_behind_lost) = (f64::NEG_INFINITY, f64::NEG_INFINITY, false);
    for p in packets {
        let rate = rate_at(p.at);
        let transmission = if rate > 0.0 { p.bits / rate } else { 0.0 };
        served = served.max(p.at) + transmission;
        let Some(left) = p.left else {
            is_behind_lost = true;
            continue;
        };
        let held = arrived + transmission;
        let is_held = left <= held + (SLACK * transmission).max(LEAST_SLACK);
        // A packet that a full queue dropped took no time of the link, one that was lost later did: the next one says nothing of chance.
        if !is_behind_lost {
            let excess = Excess { all: left - served, held: held - served, is_held };
            windows[(p.at / WINDOW).max(0.0) as usize].push(excess);
        }
        (arrived, is_behind_lost) = (left, false);
        // A queue that the rates do not account for is none of chance.
        served = served.min(left);
    }
    windows
}

/// Looks for delay by chance: packets take longer than a queue of the link's rate accounts for, each another time. `rate_at` is the link's
/// rate in bit/s at a time, 0 if it is not known. Empty if there is none at any time. Also
/// returns the least delay by chance in s, which is not zero if the base delay has other parts.
pub(crate) fn find(packets: &[Entered], rate_at: &dyn Fn(f64) -> f64, least_packets: usize) -> (Vec<JitterStep>, f64) {
    let windows = excesses(packets, rate_at);
    let (least, span) = range(&windows);
    let windows = windows.into_iter().map(|window| by_chance(&window, least, span));
    let mut out: Vec<(JitterStep, Vec<f64>)> = Vec::new();
    for (k, extra) in windows.enumerate() {
        // A queue that never empties says nothing of jitter.
        if extra.len() < least_packets {
            continue;
        }
        let max_ms = jitter(&extra).unwrap_or(0.0) * 1e3;
        match out.last_mut() {
            Some((last, all)) if (last.max_ms - max_ms).abs() <= SAME * last.max_ms.max(max_ms) => {
                all.extend(extra);
                last.max_ms = if max_ms > 0.0 { largest(all).min(span) * 1e3 } else { 0.0 };
            }
            _ => {
                let from_s = if out.is_empty() { 0.0 } else { k as f64 * WINDOW };
                out.push((JitterStep { from_s, max_ms }, extra));
            }
        }
    }
    // Quantiles of those that were not held are rather low; the range of all is nearer, where it is not another time's.
    let whole = |s: f64| if s >= WHOLE * span * 1e3 { span * 1e3 } else { s };
    let steps = out.into_iter().map(|(step, _)| JitterStep { max_ms: whole(step.max_ms), ..step });
    let steps: Vec<JitterStep> = steps.collect();
    if steps.iter().all(|s| s.max_ms == 0.0) { (Vec::new(), 0.0) } else { (steps, least) }
}

/// Whether there is delay by chance where lone packets seemed to tell the link's rate: much of it, since packets of others make them wait too,
/// for a packet or two.
pub(crate) fn is_beside(packets: &[Entered], common: &[Option<f64>]) -> bool {
    // Without a common rate nothing is said of that time.
    let told: Vec<Entered> = packets.iter().filter(|p| mode::at(common, p.at).is_some()).copied().collect();
    let (steps, _) = find(&told, &|at| mode::at(common, at).unwrap_or(0.0), FEW_PACKETS);
    steps.iter().enumerate().any(|(k, s)| {
        let rate = mode::at(common, s.from_s).unwrap_or(0.0);
        let to = steps.get(k + 1).map_or(f64::INFINITY, |next| next.from_s);
        s.max_ms >= BESIDE_MS && s.max_ms * 1e-3 * rate >= BESIDE_BITS && !is_queue(packets, s.from_s, to)
    })
}

/// Whether delays in a time are those of a queue, also of others: one says much of the next.
fn is_queue(packets: &[Entered], from: f64, to: f64) -> bool {
    let (mut delays, mut next) = (Vec::new(), from);
    for p in packets.iter().filter(|p| (from..to).contains(&p.at)) {
        if let Some(left) = p.left.filter(|_| p.at >= next) {
            delays.push(left - p.at);
            next = p.at + APART;
        }
    }
    let mean = delays.iter().sum::<f64>() / delays.len().max(1) as f64;
    let variance = delays.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>();
    let together = delays.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>();
    together > CHANCE * variance
}

/// The least delay by chance by the base delay's clock, and the length of the range of all above it. Some packet of a call had the largest,
/// and one about the least.
fn range(windows: &[Vec<Excess>]) -> (f64, f64) {
    let mut all: Vec<f64> = windows.iter().flatten().map(|e| e.all).collect();
    all.sort_by(f64::total_cmp);
    let at = |q: f64| all.get((all.len().saturating_sub(1) as f64 * q) as usize).copied().unwrap_or(0.0);
    (at(0.0), at(HIGHEST) - at(0.0))
}

/// Delays by chance of packets that were hardly held, as if none had been: what is left of a uniform value above a bound is uniform too.
fn by_chance(window: &[Excess], least: f64, span: f64) -> Vec<f64> {
    let free = window.iter().filter(|e| !e.is_held && e.held - least <= HELD * span);
    let value = |e: &Excess| {
        let held = (e.held - least).max(0.0);
        ((e.all - least - held) / (span - held).max(1e-9) * span).max(0.0)
    };
    free.map(value).collect()
}

/// The end of delays that are uniform from zero.
fn largest(extra: &[f64]) -> f64 {
    let mut sorted = extra.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |q: f64| sorted[((sorted.len() - 1) as f64 * q) as usize];
    (at(1.0 - OUTER) - at(OUTER)) / (1.0 - 2.0 * OUTER)
}

/// Largest extra delay in s, if extra delays are chance.
fn jitter(extra: &[f64]) -> Option<f64> {
    let n = extra.len() as f64;
    let mean = extra.iter().sum::<f64>() / n;
    let variance = extra.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>();
    let together = extra.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>();
    if variance <= 0.0 || together > ALIKE * variance {
        return None;
    }
    let mut sorted = extra.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |q: f64| sorted[((n - 1.0) * q) as usize];
    let largest = largest(extra);
    (largest >= LEAST && at(0.25) >= EVEN * at(0.5) && at(0.5) > 0.0).then_some(largest)
}

/// Jitter at a time, in s.
pub(crate) fn at(steps: &[JitterStep], time: f64) -> f64 {
    let i = steps.partition_point(|s| s.from_s <= time);
    i.checked_sub(1).map_or(0.0, |i| steps[i].max_ms * 1e-3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_that_a_full_queue_dropped_took_no_time_of_the_link() {
        // A link of 500 kbit/s with room for 0.1 s: bursts of 80 packets in 0.24 s fill it, and four packets come alone.
        let (rate, bits, room) = (500e3, 9_600.0, 0.1);
        let mut done = 0.0_f64;
        let (mut packets, mut dropped) = (Vec::new(), 0);
        for second in 0..20 {
            let burst = (0..80).map(|k| f64::from(k) * 3e-3);
            for at in burst.chain((0..4).map(|k| 0.6 + 0.1 * f64::from(k))).map(|at| f64::from(second) + at) {
                let left = (done.max(at) - at <= room).then(|| done.max(at) + bits / rate);
                done = left.unwrap_or(done);
                dropped += u32::from(left.is_none());
                packets.push(Entered { at, left, bits });
            }
        }
        assert!(dropped > 500 && packets.len() > 1_500, "{dropped} of {}", packets.len());
        let windows = excesses(&packets, &|_| rate);
        let all: Vec<f64> = windows.iter().flatten().map(|e| e.all).collect();
        assert!(all.len() >= 100, "{}", all.len());
        assert!(all.iter().all(|excess| excess.abs() < 1e-6), "{:?}", range(&windows));
    }
}
