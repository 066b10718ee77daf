//! Paths of a call in a result.

use super::Distribution;
use serde::{Deserialize, Serialize};

/// One path of a flow that has several.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathSummary {
    /// Name: the first link that no other path of the flow crosses.
    pub name: String,
    /// Bytes sent on it, as a share of those sent on all paths.
    pub share: f64,
    /// Mean rate of RTP sent on it, repair, padding and copies included, in bit/s.
    pub sent_bps: f64,
    /// The same received, in bit/s.
    pub received_bps: f64,
    /// Mean media rate of its controller, in bit/s.
    pub target_bps: Option<f64>,
    /// Mean of the smoothed round-trip time measured by the sender, in ms.
    pub rtt_ms: Option<f64>,
    /// One-way delay of the packets received on it, in ms.
    pub one_way_delay_ms: Option<Distribution>,
    /// RTP packets sent on it.
    pub packets: u64,
    /// Packets lost on it, as a share of those sent.
    pub loss: f64,
}

/// All paths of a flow, and the order of arrival on them together. Packets are counted once, however many copies of
/// them were sent or received.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MultipathSummary {
    /// The scheduler.
    pub scheduler: String,
    /// The paths, in the order of the scenario.
    pub paths: Vec<PathSummary>,
    /// Media packets of which no copy was received, as a share of those sent; retransmissions and repair not counted.
    pub residual_loss: f64,
    /// Copies received of packets that were there already, as a share of the media packets received.
    pub duplicates: f64,
    /// Media packets received after one with a higher sequence number, as a share of those received (RFC 4737,
    /// section 4.1).
    pub reordered: f64,
    /// Reordering extent of those packets, in packets (RFC 4737, section 4.2.2).
    pub reordering_extent: Option<Distribution>,
    /// Their late time offset in ms: how long packets sent later have waited for them (RFC 4737, section 4.3).
    pub late_time_ms: Option<Distribution>,
    /// Largest median one-way delay of a path less the smallest, in ms; `None` unless two paths received media.
    pub skew_ms: Option<f64>,
    /// Longest time without a new media packet, in ms.
    pub longest_gap_ms: f64,
    /// When that gap began, in s.
    pub longest_gap_at_s: f64,
}
