//! The two models of iBox (S. Ashok et al., "Data-Driven Network Path Simulation with iBox", SIGMETRICS 2022), rebuilt as baselines.
//!
//! A path is one bottleneck of a constant rate with a buffer, and others' traffic in it: rates of each second that react to nothing (the paper's
//! lightweight model), or TCP flows, found by Bayesian optimisation over simulations (its reactive model). The profiles that the authors
//! published (github.com/microsoft/internet-in-a-box) have the same numbers: bandwidth, buffer, propagation delay, and a rate of UDP a
//! second. How each is computed is rebuilt from its meaning, since these sources do not say.

use super::bayes::minimise;
use weir_fit::{CrossTraffic, Discipline, Fit, QueueFit, WhatIfError, residual};
use weir_lab::run::RunOptions;
use weir_timeline::Call;
use weir_timeline::why::{Fate, passages};

/// Window of the peak rate, in s, and steps in it.
const WINDOW: f64 = 1.0;
const STEP: f64 = 0.1;
/// Bytes of IPv4 and UDP headers.
const HEADERS: f64 = 28.0;
/// Least rate of others in a second, in bit/s, and least room of a buffer, in bytes.
const LEAST_BPS: f64 = 8e3;
const LEAST_ROOM: f64 = 3_000.0;
/// Most TCP flows, greatest factor on the peak rate, and simulations of a search: at first, and each where the model of the others says.
const FLOWS: f64 = 4.0;
const FACTOR: f64 = 2.0;
const SEARCH: (usize, usize) = (10, 22);

/// A packet that arrived.
struct Arrived {
    sent: f64,
    /// Delay in s above the least.
    delay: f64,
    bits: f64,
}

/// Numbers that the models take from a call.
pub(super) struct Observed {
    packets: Vec<Arrived>,
    /// Peak rate that arrived, in bit/s.
    peak_bps: f64,
    /// Largest delay above the least, in s.
    largest: f64,
    length: f64,
}

impl Observed {
    /// `None` for a call whose packets have no fates.
    pub(super) fn of(call: &Call) -> Option<Self> {
        let all = passages(call)?.packets;
        let delay = |fate: Fate| if let Fate::Arrived(ms) = fate { Some(ms * 1e-3) } else { None };
        let least = all.iter().filter_map(|p| delay(p.fate)).fold(f64::INFINITY, f64::min);
        let arrived = all.iter().filter_map(|p| {
            Some(Arrived { sent: p.at, delay: delay(p.fate)? - least, bits: (p.size + HEADERS) * 8.0 })
        });
        let packets: Vec<Arrived> = arrived.collect();
        let largest = packets.iter().map(|p| p.delay).fold(0.0, f64::max);
        let length = all.last()?.at;
        let mut bins = vec![0.0; ((length + largest) / STEP) as usize + 1];
        for p in &packets {
            if let Some(bin) = bins.get_mut(((p.sent + p.delay) / STEP).max(0.0) as usize) {
                *bin += p.bits;
            }
        }
        let peak = bins.windows((WINDOW / STEP) as usize).map(|w| w.iter().sum::<f64>()).fold(0.0, f64::max);
        (peak > 0.0).then_some(Self { packets, peak_bps: peak / WINDOW, largest, length })
    }

    /// The last time at which others may end: a scenario has none behind its own end.
    fn end(&self, fit: &Fit) -> f64 {
        (self.length.min(fit.length_s) - STEP).max(1.0)
    }

    /// Bits of others that came in each second: what has to have been in the buffer beside the call's own packets for the next one to wait as
    /// long as it did.
    fn others(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.length as usize + 1];
        let before = |p: &Arrived| p.delay * self.peak_bps;
        for pair in self.packets.windows(2) {
            let left = before(&pair[0]) + pair[0].bits - self.peak_bps * (pair[1].sent - pair[0].sent);
            if let Some(second) = out.get_mut(pair[1].sent.max(0.0) as usize) {
                *second += before(&pair[1]) - left.max(0.0);
            }
        }
        out
    }

    /// Mean rate in kbit/s and mean delay in ms in each of some intervals, by their ends in s.
    fn series(&self, ends: &[f64], base_ms: f64) -> Vec<Option<(f64, f64)>> {
        let mut out = vec![(0.0, 0.0, 0.0); ends.len()];
        for p in &self.packets {
            let at = p.sent + p.delay;
            if let Some(bin) = out.get_mut(ends.partition_point(|end| *end < at)) {
                *bin = (bin.0 + p.bits - HEADERS * 8.0, bin.1 + p.delay * 1e3 + base_ms, bin.2 + 1.0);
            }
        }
        let spans = ends.iter().scan(0.0, |from, end| Some(end - core::mem::replace(from, *end)));
        let mean = |((bits, delay, n), span): (&(f64, f64, f64), f64)| {
            (*n > 0.0 && span > 0.0).then(|| (bits / span * 1e-3, delay / n))
        };
        out.iter().zip(spans).map(mean).collect()
    }
}

/// A path of a constant rate, whose buffer fills in the longest time that a packet waited; without losses, jitter and steps, which no part of
/// the model is for.
fn bottleneck(fit: &Fit, rate: f64, waited: f64, cross: Vec<CrossTraffic>) -> Fit {
    let mut out = fit.clone();
    out.capacity.served_bps.fill(Some(rate));
    out.base.truncate(1);
    let room = (waited * rate / 8.0).max(LEAST_ROOM);
    out.queue = QueueFit {
        discipline: Discipline::DropTail,
        limit_bytes: Some(room),
        at_least_bytes: room,
        longest_ms: waited * 1e3,
    };
    out.policer = None;
    out.jitter.clear();
    out.stalls.clear();
    out.loss.steps.clear();
    out.loss.outages.clear();
    out.cross = cross;
    out
}

/// The lightweight model: rates of others by second.
pub(super) fn unreactive(fit: &Fit, seen: &Observed) -> Fit {
    let rates = seen.others().into_iter().enumerate().filter(|(_, bits)| *bits >= LEAST_BPS);
    let second = |(k, rate_bps): (usize, f64)| CrossTraffic {
        from_s: k as f64,
        to_s: (k as f64 + 1.0).min(seen.end(fit)),
        rate_bps: rate_bps.min(seen.peak_bps),
        elastic: false,
    };
    let cross = rates.map(second).filter(|c| c.to_s - c.from_s > STEP).collect();
    bottleneck(fit, seen.peak_bps, seen.largest, cross)
}

/// The reactive model: as many TCP flows, from and to such times, at such a rate of the bottleneck that the recorded controller's series over
/// it are nearest to the recorded ones.
///
/// # Errors
/// The controller does not exist, or a run is stopped.
pub(super) fn reactive(
    fit: &Fit,
    seen: &Observed,
    controller: &str,
    seed: u64,
    options: &RunOptions<'_>,
) -> Result<Fit, WhatIfError> {
    let path = |[flows, from, length, factor]: [f64; 4]| {
        let count = (flows * (FLOWS + 1.0)).min(FLOWS) as usize;
        let from_s = from * (seen.end(fit) - 1.0);
        let to_s = from_s + (length * (seen.end(fit) - from_s)).max(1.0);
        let one = CrossTraffic { from_s, to_s, rate_bps: 0.0, elastic: true };
        bottleneck(fit, seen.peak_bps * libm::pow(FACTOR, factor), seen.largest, vec![one; count])
    };
    let fastest = seen.packets.iter().min_by(|a, b| a.delay.total_cmp(&b.delay));
    let base_ms = fit.rtt_ms.unwrap_or(0.0) / 2.0 + fastest.map_or(0.0, |p| p.bits / seen.peak_bps * 1e3);
    let best = minimise(seed, SEARCH, &mut |at| -> Result<f64, WhatIfError> {
        let over = residual(&path(at), controller, options)?;
        let ends: Vec<f64> = over.received_kbps.iter().map(|v| v.0).collect();
        let recorded = seen.series(&ends, base_ms);
        let delay_at = |end: f64| over.delay_ms.iter().find(|v| v.0 == end).map(|v| v.1);
        let (mut off, mut all) = ([0.0; 2], [0.0; 2]);
        for ((end, rate), recorded) in over.received_kbps.iter().zip(recorded) {
            let Some((their_rate, their_delay)) = recorded else { continue };
            off[0] += (rate - their_rate).abs();
            all[0] += their_rate;
            // An interval in which nothing arrived has no delay.
            off[1] += (delay_at(*end).unwrap_or(0.0) - their_delay).abs();
            all[1] += their_delay;
        }
        Ok(off[0] / all[0].max(1e-9) + off[1] / all[1].max(1e-9))
    })?;
    Ok(path(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_of_others_are_those_that_the_next_packet_waits_for() {
        // 8,000 bits each at 800 kbit/s take 10 ms; 4,000 bits of others stand before the third.
        let packet = |sent: f64, delay: f64| Arrived { sent, delay, bits: 8_000.0 };
        let packets = vec![packet(0.0, 0.0), packet(0.005, 0.005), packet(0.01, 0.015), packet(1.5, 0.0)];
        let seen = Observed { packets, peak_bps: 800e3, largest: 0.015, length: 1.5 };
        let others = seen.others();
        assert!((others[0] - 4_000.0).abs() < 1e-6 && others[1] == 0.0, "{others:?}");
    }
}
