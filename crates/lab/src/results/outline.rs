//! A run in few numbers, for plots over many runs.

use serde::{Deserialize, Serialize};

/// Quantiles that an [`Outline`] keeps of a distribution, as shares: closer together at the upper end.
pub const OUTLINE_QUANTILES: [f64; 29] = [
    0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9,
    0.93, 0.95, 0.97, 0.98, 0.99, 0.995, 0.999, 1.0,
];

/// Coarse series and distributions of one run, kept for every run, where full series are kept for some. Plots over many
/// runs use them. Rows are a second or more long; `None` where there is no value.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Outline {
    /// Length of a row, in s.
    pub interval_s: f64,
    /// Delay in the bottleneck's queue in ms: the largest mean of a sampling interval within each row.
    pub queue_delay_ms: Vec<Option<f32>>,
    /// The first flows of the run, in its order.
    pub flows: Vec<FlowOutline>,
}

/// One flow in an [`Outline`].
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowOutline {
    /// The flow over time.
    pub rows: Vec<FlowRow>,
    /// One-way delay of packets in ms at [`OUTLINE_QUANTILES`]; empty where none arrived.
    pub packet_delay_ms: Vec<f32>,
    /// From capture to complete frame in ms, likewise; empty for flows that report no frames.
    pub frame_delay_ms: Vec<f32>,
}

/// One row of a flow.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct FlowRow {
    /// RTP bytes (TCP segments) sent, in bit/s; `None` while the flow is not active.
    pub sent_bps: Option<f32>,
    /// One-way delay in ms: the largest mean of a sampling interval.
    pub delay_ms: Option<f32>,
    /// Packets lost on the path over packets sent, 0 to 1.
    pub loss: Option<f32>,
}
