//! Compact rates over time, kept for every run, whereas series are kept for some.

use serde::{Deserialize, Serialize};

/// A run over time, one row per second or more; `None` if there was no such flow.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RatesOverTime {
    /// Length of a row, in s.
    pub interval_s: f64,
    /// Goodput of a media flow that adapts, the mean over them, in bit/s.
    pub media_bps: Vec<Option<f32>>,
    /// Goodput of a TCP flow, the mean over them, in bit/s.
    pub tcp_bps: Vec<Option<f32>>,
    /// Target of the first adaptive media flow at each row's end, in bit/s.
    pub target_bps: Vec<Option<f32>>,
}
