//! The result of one run: a summary that serialises to JSON, and its time series.

mod aggregate;
mod burstiness;
mod joiner;
mod live;
mod media;
mod outline;
mod paths;
mod picture_quantiles;
mod rates_over_time;
mod streams;
mod student;
mod transfers;

pub use aggregate::{Aggregate, FlowAggregate, Stat, aggregate};
pub use burstiness::{BurstWindow, Burstiness, ChunkSizes};
pub use joiner::Joiner;
pub use live::Live;
pub use media::{CodedFrames, FrameSummary, Probing, QualitySummary, RepairSummary};
pub use outline::{FlowOutline, FlowRow, OUTLINE_QUANTILES, Outline};
pub use paths::{MultipathSummary, PathSummary};
pub use picture_quantiles::{PictureQuantiles, QUANTILES, quantiles};
pub use rates_over_time::RatesOverTime;
pub use streams::StreamSummary;
pub use student::student_t_975;
pub use transfers::TransferSummary;

use crate::histogram::Histogram;
use crate::series::Series;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Kind of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FlowKind {
    /// Media under a congestion controller.
    Rtp,
    /// A TCP connection.
    Tcp,
    /// Datagrams without congestion control.
    Udp,
    /// A DCCP connection without RTP.
    Dccp,
}

/// Shape of a distribution. Quantiles are within 0.4 %, the rest is exact.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

impl Distribution {
    /// The shape of some values, exactly; `None` if there are none.
    pub(crate) fn of_values(mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let q = |q: f64| values[((values.len() as f64 * q).ceil() as usize).clamp(1, values.len()) - 1];
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(Self { mean, p50: q(0.5), p95: q(0.95), p99: q(0.99), min, max })
    }

    /// The shape of a histogram, each value multiplied by `scale`; `None` if it is empty.
    pub fn of(h: &Histogram, scale: f64) -> Option<Self> {
        let q = |q| h.quantile(q).map(|v| v * scale);
        Some(Self {
            mean: h.mean()? * scale,
            p50: q(0.5)?,
            p95: q(0.95)?,
            p99: q(0.99)?,
            min: h.min()? as f64 * scale,
            max: h.max()? as f64 * scale,
        })
    }
}

/// Mean rates over a flow's active time, in bit/s.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rates {
    /// The controller's target, constant between changes; `None` for flows without one.
    pub target_bps: Option<f64>,
    /// Media made by the source.
    pub generated_bps: f64,
    /// RTP bytes sent (including headers, padding and repair), or TCP segments, including retransmissions.
    pub sent_bps: f64,
    /// The same with UDP or TCP and IP headers.
    pub wire_bps: f64,
    /// Bytes that arrived.
    pub received_bps: f64,
    /// Bytes that arrived and were of use: received less discarded, without repair packets. Media that retransmissions or
    /// forward error correction brought back is not part of it, other than in RFC 5166, section 2.1.1: `repair` has their
    /// number (`recovered`), `frames` what was played.
    pub goodput_bps: f64,
    /// Repair packets' RTP bytes sent; part of `sent_bps`.
    #[serde(default)]
    pub repair_bps: f64,
    /// Bytes acknowledged over the time in which a TCP flow had data to send; `None` for other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_bps: Option<f64>,
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Packet counts. Repair packets are counted in [`RepairSummary`] only.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PacketCounts {
    /// Packets sent.
    pub sent: u64,
    /// Packets that arrived.
    pub received: u64,
    /// Dropped by a full queue.
    pub dropped_queue: u64,
    /// Dropped by active queue management.
    pub dropped_aqm: u64,
    /// Marked CE by links on the path; omitted if none is.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked: u64,
    /// Arrived marked CE; left out where none did.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ce_received: u64,
    /// Lost on the channel (random loss).
    pub dropped_channel: u64,
    /// Dropped by the sender before they were sent; neither part of `sent` nor of the loss.
    pub dropped_sender: u64,
    /// Arrived too late for playout.
    pub discarded: u64,
}

/// A flow's reaction to one change of its bottleneck's capacity.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Settling {
    /// When the capacity changed, in s.
    pub at_s: f64,
    /// Capacity after the change, in bit/s.
    pub capacity_bps: f64,
    /// Time to settle, in s; `None` if it did not before the next change.
    pub settled_after_s: Option<f64>,
}

fn adapts() -> bool {
    true
}

/// One flow over one run. [`crate::metrics`] defines every metric.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSummary {
    /// Name in the scenario.
    pub name: String,
    /// Controller, or TCP variant.
    pub controller: String,
    /// Its kind.
    pub kind: FlowKind,
    /// Whether it adapts its rate to the path; written if it does not.
    #[serde(default = "adapts", skip_serializing_if = "Clone::clone")]
    pub adapts: bool,
    /// The link that it is measured against: the scenario's `bottleneck` if that is on its path, or else the link of the
    /// smallest mean capacity there; of several paths that of the first, and capacity is the sum over all. A link that all
    /// paths cross and that has less than the sum is taken alone.
    #[serde(default)]
    pub bottleneck: String,
    /// Start in s.
    pub start_s: f64,
    /// Stop in s.
    pub stop_s: f64,
    /// Mean rates.
    pub rates: Rates,
    /// Generated rate over capacity, 0 to 1 or a little more (paper, equation 12); of TCP and UDP flows goodput over
    /// capacity. Null if no link of the flow has a capacity.
    pub utilisation: Option<f64>,
    /// Goodput over capacity, 0 to 1; null likewise.
    pub utilisation_goodput: Option<f64>,
    /// One-way delay of received packets in ms.
    pub one_way_delay_ms: Option<Distribution>,
    /// Mean round-trip time in ms as last measured by the sender's session, weighted by time; for RTP flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<f64>,
    /// Packets lost on the path, as a share of those sent.
    pub loss: f64,
    /// Packets discarded by playout, as a share of those received.
    pub discard: f64,
    /// Packet counts.
    pub packets: PacketCounts,
    /// Time in s until the goodput of a second first reached 90 % of the fair share, or of what the flow itself may send
    /// (its ceiling, its application's demand) where that is lower; `None` if it never did.
    pub ramp_up_s: Option<f64>,
    /// Reaction to each change of capacity.
    pub settling: Vec<Settling>,
    /// Coefficient of variation of the media rate over whole seconds.
    pub rate_variation: Option<f64>,
    /// How bursty it was, if the scenario asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burstiness: Option<Box<Burstiness>>,
    /// Mean goodput over the tail of the run, in bit/s.
    pub tail_goodput_bps: f64,
    /// Playout deadline in ms, if the flow has one.
    pub playout_deadline_ms: Option<f64>,
    /// Frames, for flows that report them; of a flow with several streams, those of its video streams together, with the
    /// stalls of the stream that stalled longest.
    pub frames: Option<FrameSummary>,
    /// Transfers, for TCP flows with several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<TransferSummary>,
    /// Forward error correction, for flows that sent any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<RepairSummary>,
    /// Frames made by the source, for media flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coded: Option<CodedFrames>,
    /// Quality of pictures, for flows that carry some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality: Option<QualitySummary>,
    /// How the quality of those pictures was spread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub picture_quantiles: Option<PictureQuantiles>,
    /// Probing by forward error correction, for controllers that do so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probing: Option<Probing>,
    /// When the circuit breaker stopped the flow, in s, and by which rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tripped: Option<(f64, String)>,
    /// The streams, if the flow has several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamSummary>,
    /// The paths, if the flow has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multipath: Option<Box<MultipathSummary>>,
    /// The controller's internals at the end by name, those without a value omitted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub internals: BTreeMap<String, f64>,
}

/// One link over one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkSummary {
    /// Name in the scenario.
    pub name: String,
    /// Mean capacity in bit/s; null for a link without a limit.
    pub capacity_bps: Option<f64>,
    /// Delay in the queue in ms, weighted by time.
    pub delay_ms: Option<Distribution>,
    /// Bytes in the queue, weighted by time.
    pub bytes: Option<Distribution>,
}

/// How the flows shared.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fairness {
    /// Jain's index of the RTP flows that share a link with a limit, mean over time; `None` with fewer than two.
    pub jain_mean: Option<f64>,
    /// The lowest that it was.
    pub jain_min: Option<f64>,
    /// Jain's index of their mean goodputs over the tail of the run.
    pub jain_end: Option<f64>,
    /// Largest tail goodput of one of them over the smallest.
    pub end_ratio: Option<f64>,
    /// An RTP flow's goodput against a TCP flow's while both are active: 0.5 is even, 0 is starved. Of the flows that share
    /// a link with a limit with one of the other kind.
    pub tcp_share: Option<f64>,
    /// Mean over the TCP flows of the rate while they had data to send, in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_throughput_bps: Option<f64>,
    /// Goodput of all TCP flows together, in bit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_goodput_bps: Option<f64>,
    /// The throughput over the capacity's even share, among the flows at the bottleneck: TCP fair share (TFS, Nagy and
    /// others 2014, section 5.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_fair_share: Option<f64>,
}

/// One flow in one window of time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowWindow {
    /// Name of the flow.
    pub name: String,
    /// Generated rate in bit/s.
    pub generated_bps: f64,
    /// Goodput in bit/s.
    pub goodput_bps: f64,
    /// Generated rate over capacity; of TCP and UDP flows goodput over capacity. Null where there is no capacity.
    pub utilisation: Option<f64>,
    /// Goodput over capacity; null likewise.
    pub utilisation_goodput: Option<f64>,
    /// Mean one-way delay in ms.
    pub one_way_delay_ms: Option<f64>,
    /// Loss in this window (drops over packets sent).
    pub loss: f64,
}

/// One named window of time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WindowSummary {
    /// Its label, as a table's condition ("20-40s").
    pub label: String,
    /// Start in s.
    pub start_s: f64,
    /// End in s.
    pub end_s: f64,
    /// The flows, in the order of the run.
    pub flows: Vec<FlowWindow>,
    /// Mean queueing delay in ms of each link, in the order of the run.
    pub queue_delay_ms: Vec<Option<f64>>,
}

/// The whole result of one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResult {
    /// Scenario by name.
    pub scenario: String,
    /// Variant of the scenario ("1%"), or empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// The controller compared, or several joined by "+".
    pub controller: String,
    /// Seed of the run.
    pub seed: u64,
    /// Simulated time in s.
    pub duration_s: f64,
    /// The flows.
    pub flows: Vec<FlowSummary>,
    /// How they shared.
    pub fairness: Fairness,
    /// Queue of the bottleneck.
    pub queue: Option<LinkSummary>,
    /// Every link's queue.
    pub links: Vec<LinkSummary>,
    /// Set if the run was made in real time, on kernel sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<Live>,
    /// The requested windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowSummary>,
    /// The run over time in few numbers; not part of the JSON.
    #[serde(skip)]
    pub rates_over_time: RatesOverTime,
    /// The first flows over time and their distributions, for plots over many runs; not part of the JSON.
    #[serde(skip)]
    pub outline: Outline,
    /// Time series, if they were requested; not part of the JSON.
    #[serde(skip)]
    pub series: Option<Series>,
}

impl RunResult {
    /// A flow by name.
    pub fn flow(&self, name: &str) -> Option<&FlowSummary> {
        self.flows.iter().find(|f| f.name == name)
    }
    /// The RTP flows.
    pub fn rtp_flows(&self) -> impl Iterator<Item = &FlowSummary> {
        self.flows.iter().filter(|f| f.kind == FlowKind::Rtp)
    }
    /// A window by label.
    pub fn window(&self, label: &str) -> Option<&WindowSummary> {
        self.windows.iter().find(|w| w.label == label)
    }
    /// SHA-256, in hexadecimal, of the summary and of the series' exact bits: equal only for equal results.
    pub fn digest(&self) -> String {
        let mut sha = Sha256::new();
        // Serialisation to memory fails only for maps with non-string keys, and there is none.
        sha.update(serde_json::to_vec(self).expect("plain structs serialise"));
        if let Some(series) = &self.series {
            series.feed(&mut |bytes| sha.update(bytes));
        }
        sha.finalize().iter().map(|b| format!("{b:02x}")).collect()
    }
}
