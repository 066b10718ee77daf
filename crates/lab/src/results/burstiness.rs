//! Results of a flow whose burstiness was measured.

use super::Distribution;
use serde::{Deserialize, Serialize};

/// How bursty a flow was, which S. Jero, 2013, section 5.2, leaves to future work. The metrics are those of the literature on
/// traffic, applied to one flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Burstiness {
    /// Packets sent, in windows of 10 and 100 ms and a second; without those that the flow's time does not hold twice.
    pub windows: Vec<BurstWindow>,
    /// Packets in bursts: groups with at most 1 ms between one and the next, repair included.
    pub burst_packets: Distribution,
    /// Chunks made by the source, before any is refused; absent for flows without a source that reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<ChunkSizes>,
}

impl Burstiness {
    /// The windows of this length in ms.
    pub fn window(&self, ms: f64) -> Option<&BurstWindow> {
        self.windows.iter().find(|w| w.window_ms == ms)
    }
}

/// Packets of a flow in windows of one length.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BurstWindow {
    /// Length of a window, in ms.
    pub window_ms: f64,
    /// Index of dispersion for counts: variance over mean of the packets in a window. 0 is an even flow, 1 Poisson's
    /// (R. Gusella, "Characterizing the variability of arrival processes with indexes of dispersion", IEEE JSAC 9(2), 1991).
    pub dispersion: f64,
    /// Bytes in the fullest window over the mean.
    pub peak_to_mean: f64,
}

/// Sizes of what a source makes at one time, mostly frames: what it makes within one sampling step (10 ms) counts as one.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChunkSizes {
    /// Their number.
    pub chunks: u64,
    /// Mean, in bytes.
    pub mean_bytes: f64,
    /// Coefficient of variation.
    pub variation: f64,
    /// The largest over the mean.
    pub peak_to_mean: f64,
}
