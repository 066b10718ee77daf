//! Capacity over time.

use crate::mode::WINDOW;
use serde::Serialize;

/// Length of a bin, in s.
pub(crate) const BIN: f64 = 0.05;

/// Bins in a row that end a time of lower rates.
const LONGEST_PAUSE: usize = 40;

/// Capacity over time, one value a bin.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "FitCapacity"))]
pub struct Capacity {
    /// Length of a bin, in s.
    pub bin_s: f64,
    /// Rate at which the link served packets that queued, in bit/s with UDP and IPv4 headers; null where it is not known.
    pub served_bps: Vec<Option<f64>>,
    /// Rate that arrived, in bit/s: mean of the half second around.
    pub arrived_bps: Vec<f64>,
    /// The likeliest rate, in bit/s.
    pub likely_bps: Vec<f64>,
    /// Least rate, in bit/s: what arrived, or the low rates around.
    pub least_bps: Vec<f64>,
    /// Greatest rate, in bit/s; null where nothing bounds it.
    pub most_bps: Vec<Option<f64>>,
}

impl Capacity {
    /// The likeliest rate at a time, in bit/s; 0 for a call without bins.
    pub(crate) fn likely_at(&self, at: f64) -> f64 {
        let bin = ((at / self.bin_s).max(0.0) as usize).min(self.likely_bps.len().saturating_sub(1));
        self.likely_bps.get(bin).copied().unwrap_or(0.0)
    }

    /// Median of the known rates in a time.
    pub(crate) fn median(&self, from: f64, to: f64) -> Option<f64> {
        let bin = |at: f64| ((at / self.bin_s).max(0.0) as usize).min(self.served_bps.len());
        let mut known: Vec<f64> = self.served_bps.get(bin(from)..bin(to))?.iter().flatten().copied().collect();
        known.sort_by(f64::total_cmp);
        known.get(known.len() / 2).copied()
    }

    /// A time, and as much before and behind it as has rates below `rate` without a pause.
    pub(crate) fn lower_around(&self, from: f64, to: f64, rate: f64) -> (f64, f64) {
        let count = self.served_bps.len();
        let bin = |at: f64| ((at / self.bin_s).max(0.0) as usize).min(count);
        let is_lower = |k: usize| self.served_bps[k].is_some_and(|r| r < rate);
        let walk = |bins: &mut dyn Iterator<Item = usize>, start: usize| {
            let (mut last, mut others) = (start, 0);
            for k in bins {
                (last, others) = if is_lower(k) { (k, 0) } else { (last, others + 1) };
                if others > LONGEST_PAUSE {
                    break;
                }
            }
            last
        };
        let first = walk(&mut (0..bin(from)).rev(), bin(from));
        let last = walk(&mut (bin(to)..count), bin(to));
        (from.min(first as f64 * self.bin_s), to.max((last + 1).min(count) as f64 * self.bin_s))
    }

    /// Sets the rate in a time.
    pub(crate) fn set(&mut self, from: f64, to: f64, rate: f64) {
        let count = self.served_bps.len();
        let bin = |at: f64| ((at / self.bin_s).max(0.0) as usize).min(count);
        for k in bin(from)..bin(to) {
            self.served_bps[k] = Some(rate);
            self.likely_bps[k] = rate;
            self.least_bps[k] = rate;
            self.most_bps[k] = Some(rate);
        }
    }

    /// Sets the commonest rates of windows.
    pub(crate) fn steady(&mut self, common: &[Option<f64>]) {
        for (k, rate) in common.iter().enumerate() {
            if let Some(rate) = rate {
                self.set(k as f64 * WINDOW, (k + 1) as f64 * WINDOW, *rate);
            }
        }
    }

    /// Share of the time in which the rate is known.
    pub fn known_share(&self) -> f64 {
        self.served_bps.iter().flatten().count() as f64 / self.served_bps.len().max(1) as f64
    }
}
