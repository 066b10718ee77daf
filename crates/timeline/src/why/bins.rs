//! Numbers of each half second of a call, from its packets.

use super::passage::{Fate, Passage, Passages};

/// Length of a bin, in s.
pub(super) const BIN: f64 = 0.5;
/// Longest call that is looked at, in bins: two days.
const MAX_BINS: usize = 345_600;

/// Half a second of packets, by when they were sent.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Bin {
    /// Begin, in s.
    pub(super) at: f64,
    /// Packets sent, and those whose fate is known.
    pub(super) sent: u32,
    pub(super) known: u32,
    pub(super) lost: u32,
    /// Runs of lost packets that begin here.
    pub(super) runs: u32,
    /// Rate sent, in kbit/s.
    pub(super) sent_kbps: f64,
    /// Rate that arrived in this half second, in kbit/s.
    pub(super) arrived_kbps: f64,
    /// Delay above the call's least one, in ms: least, median and largest.
    pub(super) delay: Option<[f64; 3]>,
    /// Median change of delay from one packet to the next, in ms, without its sign.
    pub(super) step: f64,
    /// RTCP that arrived at the sender.
    pub(super) answers: u32,
    /// Rate of others from the sender's host, in kbit/s.
    pub(super) other_kbps: f64,
}

fn median(values: &mut [f64]) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The bins of a call.
pub(super) fn bins(of: &Passages) -> Vec<Bin> {
    let end = of.packets.last().map_or(0.0, |p| p.at);
    let n = ((end / BIN) as usize + 1).min(MAX_BINS);
    let mut bins: Vec<Bin> = (0..n).map(|i| Bin { at: i as f64 * BIN, ..Bin::default() }).collect();
    let index = |at: f64| if at >= 0.0 { ((at / BIN) as usize).min(n - 1) } else { 0 };
    let least = least_delay(of);
    let mut delays: Vec<Vec<f64>> = vec![vec![]; n];
    let mut steps: Vec<Vec<f64>> = vec![vec![]; n];
    let (mut last_lost, mut last_delay) = (false, None::<f64>);
    for packet in &of.packets {
        let i = index(packet.at);
        bins[i].sent += 1;
        bins[i].sent_kbps += packet.size;
        match packet.fate {
            Fate::Arrived(delay) => {
                let delay = delay - least;
                bins[i].known += 1;
                delays[i].push(delay);
                if let Some(last) = last_delay {
                    steps[i].push((delay - last).abs());
                }
                last_delay = Some(delay);
                bins[index(packet.at + delay * 1e-3)].arrived_kbps += packet.size;
                last_lost = false;
            }
            Fate::Lost => {
                bins[i].known += 1;
                bins[i].lost += 1;
                bins[i].runs += u32::from(!last_lost);
                last_lost = true;
            }
            Fate::Unknown => {}
        }
    }
    for answer in of.answers.iter().filter_map(|a| a.arrived) {
        bins[index(answer)].answers += 1;
    }
    for (at, bytes) in &of.other {
        bins[index(*at)].other_kbps += bytes;
    }
    let kbps = |bytes: f64| bytes * 8e-3 / BIN;
    for (bin, (mut delays, mut steps)) in bins.iter_mut().zip(delays.into_iter().zip(steps)) {
        bin.sent_kbps = kbps(bin.sent_kbps);
        bin.arrived_kbps = kbps(bin.arrived_kbps);
        bin.other_kbps = kbps(bin.other_kbps);
        bin.step = median(&mut steps).unwrap_or(0.0);
        if let Some(middle) = median(&mut delays) {
            bin.delay = Some([delays[0], middle, delays[delays.len() - 1]]);
        }
    }
    bins
}

/// The least delay of the call, in ms by two clocks.
pub(super) fn least_delay(of: &Passages) -> f64 {
    let arrived = |p: &Passage| if let Fate::Arrived(d) = p.fate { Some(d) } else { None };
    of.packets.iter().filter_map(arrived).fold(f64::INFINITY, f64::min)
}
