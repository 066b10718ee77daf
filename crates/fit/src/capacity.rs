//! Capacity over time.

use schemars::JsonSchema;
use serde::Serialize;

/// Length of a bin, in s.
pub(crate) const BIN: f64 = 0.05;

/// Capacity over time, one value a bin.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(rename = "FitCapacity")]
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
    /// Share of the time in which the rate is known.
    pub fn known_share(&self) -> f64 {
        self.served_bps.iter().flatten().count() as f64 / self.served_bps.len().max(1) as f64
    }
}
