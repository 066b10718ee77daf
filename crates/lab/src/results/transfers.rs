use super::Distribution;
use serde::{Deserialize, Serialize};

/// Transfers of a TCP flow: the objects of an on-off flow, or short flows.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferSummary {
    /// Transfers completely acknowledged.
    pub completed: u64,
    /// Transfers in progress at the end of the run.
    pub unfinished: u64,
    /// Short flows refused because too many were in progress.
    pub refused: u64,
    /// Data acknowledged over the flow's whole time, in bit/s: the aggregate's goodput.
    pub goodput_bps: f64,
    /// Data acknowledged over the time in which there was something to send, in bit/s; of short flows, completed
    /// ones' data over the sum of their times.
    pub active_bps: Option<f64>,
    /// Mean over completed transfers of each one's size over its time, in bit/s.
    pub mean_throughput_bps: Option<f64>,
    /// Completion times of short flows in s, from the first packet to the last acknowledgement; quantiles within 4.4 %.
    pub completion_s: Option<Distribution>,
}
