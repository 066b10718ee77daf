//! Metrics of a run, and their definitions.
//!
//! A [`Recorder`] processes the events of a run and returns a [`RunResult`](crate::results::RunResult) at its
//! end. Its memory does not grow with simulated time unless time series are requested (then by one row per sampling
//! interval).
//!
//! # Definitions
//! "Paper" is Zhang, Lei, Zhang and Guan, *Congestion Control for RTP Media: A Comparison on Simulated Environment*. A
//! flow is *active* from its start to its stop. A flow's *bottleneck* is the link on its path that
//! the scenario names as bottleneck, or else that of the smallest mean capacity. A flow over several paths is measured against the
//! sum of their capacities, or against a link that all of them cross and that has less. The *trailing rate* is goodput over the last second. A flow's *fair
//! share* is its bottleneck's capacity minus the traffic of UDP flows, divided by the number of active RTP flows and of
//! TCP flows that sent within the last second. An RTP flow under the `fixed` controller (mostly audio) does not adapt:
//! for the fair share it counts as a UDP flow, and fairness and `tcp_share` exclude it.
//!
//! | metric | definition | source |
//! |---|---|---|
//! | `utilisation` | media bits generated (of TCP and UDP flows goodput bits, of other flows without a source that reports them bits sent) over the integral of the bottleneck's capacity, both over the active time (or a window); no value without a capacity | paper, eq. 12 |
//! | `utilisation_goodput` | the same with goodput bits | RFC 8868 §3 (10) |
//! | goodput | bytes received less bytes discarded by playout, repair packets not counted: media that these bring back is missing, other than in RFC 5166 (`residual_loss` and frames have it) | RFC 5166 §2.1.1, RFC 8868 §3 (1) |
//! | `one_way_delay_ms` | arrival less departure of each packet that arrived (of TCP: each segment) | RFC 8868 §3 (4) |
//! | queue `delay_ms`, `bytes` | the queue found by a packet arriving now, weighted by time, each value held until the next | RFC 5166 §2.1.2 |
//! | `loss` | packets dropped on the path over packets sent, repair packets not counted | RFC 8868 §3 (5) |
//! | `discard` | packets received too late for playout over packets received | RFC 8868 §3 (5), RFC 7002 |
//! | `loss_or_discard` | packets lost or discarded over packets sent: what papers whose receivers drop late packets call loss rate | RFC 8868 §3 (5) |
//! | `received`, `network_loss`, `rejected` | packets that arrived, were lost on the path, or were refused by the transport's send queue, over all that the application handed over | Jero 2013, table 4.1 |
//! | `residual_loss` over several paths | media packets of which no copy arrived over those sent | RFC 8868 §3 (5) |
//! | `reordered`, `reordering_extent`, `late_time_ms` | Type-P-Reordered, reordering extent and late time offset, over all paths of a flow together | RFC 4737 §4.1 to 4.3 |
//! | `skew_ms` | largest median one-way delay of a path of a flow less the smallest | dissertation of V. Singh, 2015, §6.1.1 |
//! | `longest_gap_ms` | longest time without a new media packet, of flows over several paths | |
//! | `i_frames` | key frames over frames coded | Jero 2013, table 4.2 |
//! | `undecodable` | pictures in whose place the last one stayed over pictures; with a model of an encoder, frames whose first packet did not arrive over frames coded (or whose first or last did not: `decodes_with`) | Jero 2013, table 4.2, section 4.1.1 |
//! | `psnr_below_20db` | share of pictures with a PSNR below 20 dB | Jero 2013, section 4.1.1 |
//! | `tcp_fairness_ratio` | a / b of `tcp_share`: 1 is even, 2 twice what TCP has | Jero 2013, section 4.1.1 |
//! | `rtt_ms` | round-trip time that the sender's session measured last (from LSR and DLSR, or per-packet feedback), mean over the time since the first | RFC 3550 §6.4.1 |
//! | `ramp_up_s` | from the start until the trailing rate first reaches 90 % of the fair share or, where that is lower, of what the flow itself may send: its ceiling, or the demand of its application | RFC 8868 §3 (8) |
//! | `settling` | for each change of capacity by 10 % or more that holds for 5 s: from the change until the trailing rate enters ±20 % of the fair share (or of what the flow itself may send, where that is lower) and stays there for 2 s; at least 1 s, the averaging time | RFC 8868 §3 (8), RFC 5166 §2.1.4 |
//! | `rate_variation` | standard deviation over mean of the media rate (sent rate where no source reports) in whole seconds | RFC 5166 §2.1.4.1: coefficient of variation |
//! | `dispersion_10ms`, `dispersion_100ms`, `dispersion_1s` | variance over mean of the packets sent in windows of that length, from the flow's start on, if the scenario has `burstiness = true`: 0 is an even flow, 1 Poisson's | Gusella 1991, index of dispersion for counts; Jero 2013, section 5.2, asks for metrics |
//! | `peak_to_mean_10ms`, `peak_to_mean_100ms` | bytes sent in the fullest window over the mean | |
//! | `burst_mean_packets`, `burst_p95_packets` | packets in groups with at most 1 ms between one and the next | |
//! | `chunk_variation`, `chunk_peak_to_mean` | standard deviation, and largest, over mean of what the source makes at one time (within a sampling step) | |
//! | Jain's index | (Σx)² / (n Σx²), x the trailing rate over the fair share, of the RTP flows that have been active for a second and share a link with a limit with another RTP flow, where there are two or more; `jain_end` takes mean goodputs over the tail, of the same flows | RFC 5166 §2.2, Jain 1984 |
//! | tail | the last 20 s of the run, or its last quarter where that is shorter | |
//! | `tcp_share` | a / (a + b), a and b the mean goodput of an RTP and of a TCP flow over the sampling intervals in which both kinds are active, of the flows that share a link with a limit with one of the other kind | RFC 8868 §3 (7) |
//! | `active_bps` | bytes that a TCP flow had acknowledged over the time in which it had something to send; `tcp_throughput_bps` is its mean over the TCP flows | Nagy and others 2014 §5.3 |
//! | `tcp_goodput_bps` | goodput of all TCP flows together | |
//! | `tcp_fair_share` (TFS) | mean `active_bps` of the TCP flows that pass the run's bottleneck, over its capacity divided by the number of RTP and TCP flows there; the capacity replaces the total throughput, as in the paper's own numbers | Nagy and others 2014 §5.1 |
//! | `residual_loss` | media packets lost and not recovered by repair over those sent | Matsuzono and others 2012 §4.1 |
//! | `recovery` | media packets recovered over those lost | Matsuzono and others 2012 §4.4 |
//! | `recovery_delay` | from the departure of a media packet to its recovery by repair or retransmission, in time for playout or not; simulated calls of one stream on one path whose scenario sets `repair` or `error_resilience` | |
//! | `ffre` | frames recovered over frames that were protected and lost packets (FEC frame recovery efficiency) | Nagy and others 2014 §5.1 |
//! | `frcc` | times that probing by FEC raised or kept the rate over times that it was enabled (FEC rate-control correctness) | Nagy and others 2014 §5.1 |
//! | `lost_frames` | frames that were not played: never complete, or complete after their playout time | Nagy and others 2014 §5 |
//! | `psnr` | mean over the pictures captured of the luma PSNR in dB of the picture displayed at their playout time, the last picture shown where theirs is missing; 100 dB stands for no difference | ITU-T J.340; Nagy and others 2014 §5.5 |
//! | `ssim` | mean structural similarity of luma over 8 x 8 windows side by side, of the same pictures | Wang and others 2004 |
//! | `vmaf` | mean VMAF of the same pictures, 0 to 100, by the model vmaf_v0.6.1; where the scenario sets `vmaf` | libvmaf |
//! | frame delay | from capture to the arrival of the frame's last packet | |
//! | stall | a gap between played frames of more than max(3δ, δ + 150 ms), δ the mean of the last 30 gaps; its length is the gap | W3C webrtc-stats, `freezeCount` |
//!
//! Ramp-up, settling, Jain's index over time and `tcp_share` are sampled once per sampling interval and have that
//! precision.
//!
//! Every run keeps its rates per second: goodput and target, so that means over all runs can be plotted while time
//! series are kept for the first seed only.

mod burstiness;
mod capacity;
mod fairness;
mod frames;
mod links;
mod meter;
mod outline;
mod rates_over_time;
mod recorder;
mod windows;

pub use capacity::Capacity;
pub use recorder::Recorder;

use crate::results::{
    CodedFrames, Distribution, FlowKind, FlowSummary, LinkSummary, PictureQuantiles, QualitySummary, Stat,
    TransferSummary,
};
use weir_units::{TimeDelta, Timestamp};

/// One flow to be measured.
#[derive(Clone, PartialEq, Debug)]
pub struct FlowInfo {
    /// Name in the scenario.
    pub name: String,
    /// Controller, or TCP variant.
    pub controller: String,
    /// Its kind.
    pub kind: FlowKind,
    /// Whether it adapts its rate to the path. Other flows take their rate, and the adaptive ones share the rest.
    pub adapts: bool,
    /// Start.
    pub start: Timestamp,
    /// Stop; `None` for the end of the run.
    pub stop: Option<Timestamp>,
    /// Playout deadline after capture, if there is one; only copied to the result.
    pub playout_deadline: Option<TimeDelta>,
    /// Bytes of headers that rates count in each packet beside its size.
    pub reported_headers: u64,
    /// Index of the link against whose capacity the flow is measured.
    pub bottleneck: usize,
    /// Of a flow over several paths: the other paths' links, each once, whose capacities are added.
    pub further: Vec<usize>,
    /// All links with a limit on its paths, each once, in order; a medium that serves both directions has one index.
    pub links: Vec<usize>,
    /// The greatest rate that the flow itself may have, over time: its ceiling and what its source has to send. `None` if
    /// only the path limits it.
    pub most: Option<Capacity>,
}

impl FlowInfo {
    /// Whether it is an RTP or DCCP flow that adapts.
    pub fn is_adaptive_media(&self) -> bool {
        matches!(self.kind, FlowKind::Rtp | FlowKind::Dccp) && self.adapts
    }
}

/// One link to be measured.
#[derive(Clone, PartialEq, Debug)]
pub struct LinkInfo {
    /// Name in the scenario.
    pub name: String,
    /// Capacity over time.
    pub capacity: Capacity,
}

/// A named time interval that is also summarised separately.
#[derive(Clone, PartialEq, Debug)]
pub struct Window {
    /// Label, as a table's condition ("20-40s").
    pub label: String,
    /// Start.
    pub start: Timestamp,
    /// End.
    pub end: Timestamp,
}

/// Configuration of a [`Recorder`].
#[derive(Clone, PartialEq, Debug)]
pub struct RecorderConfig {
    /// Scenario by name.
    pub scenario: String,
    /// Variant of the scenario, or empty.
    pub condition: String,
    /// The controller compared, or several joined by "+".
    pub controller: String,
    /// Seed of the run.
    pub seed: u64,
    /// The flows; events name them by index.
    pub flows: Vec<FlowInfo>,
    /// The links; events name them by index.
    pub links: Vec<LinkInfo>,
    /// Index of the link whose queue is the run's.
    pub bottleneck: usize,
    /// Length of a row of the series and precision of the metrics over time; at least 1 ms.
    pub sampling: TimeDelta,
    /// Whether to keep time series.
    pub series: bool,
    /// Planned simulated duration of the run.
    pub duration: TimeDelta,
    /// Spans to be summed up by themselves.
    pub windows: Vec<Window>,
    /// Whether to measure how bursty each flow is.
    pub burstiness: bool,
}

impl RecorderConfig {
    /// Bits that the links carry against which a flow is measured.
    fn capacity_bits(&self, flow: &FlowInfo, from: Timestamp, to: Timestamp) -> f64 {
        let links = core::iter::once(&flow.bottleneck).chain(&flow.further);
        links.filter_map(|&l| self.links.get(l)).map(|l| l.capacity.bits(from, to)).sum()
    }
    /// `tcp_fair_share`: of the TCP flows at the run's bottleneck.
    fn tcp_fair_share(&self, flows: &[FlowSummary], links: &[LinkSummary]) -> Option<f64> {
        let capacity = links.get(self.bottleneck)?.capacity_bps?;
        let there = || flows.iter().zip(&self.flows).filter(|(_, info)| info.links.contains(&self.bottleneck));
        let sharing = there().filter(|(f, _)| f.kind != FlowKind::Udp).count() as f64;
        let active: Vec<f64> = there().filter_map(|(f, _)| f.rates.active_bps).collect();
        Some(Stat::of(&active)?.mean * sharing / capacity)
    }
}

/// Why a packet did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DropCause {
    /// A full queue.
    Queue,
    /// Active queue management, or a policer.
    Aqm,
    /// The channel: random loss.
    Channel,
    /// Dropped by the sender before it was sent, so not part of `sent`.
    Sender,
}

/// Values of a flow that are known only at the end of the run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct FlowEnd {
    /// The controller's internals by name; those without a value are omitted.
    pub internals: Vec<(&'static str, f64)>,
    /// Frames made by the source with a playout time before the end.
    pub frames: Option<u64>,
    /// Mean round-trip time as the sender's session measured it, in ms.
    pub rtt_ms: Option<f64>,
    /// Media packets recovered by repair in time.
    pub recovered: u64,
    /// From the departure of recovered media packets to their recovery, in ms, where it is watched.
    pub recovery_delay_ms: Option<Distribution>,
    /// Frames completed by repair.
    pub frames_recovered: u64,
    /// Frames that were protected, lost packets and were not completed.
    pub frames_unrecovered: u64,
    /// Frames made by the source.
    pub coded: Option<CodedFrames>,
    /// When the circuit breaker stopped the flow, and by which rule.
    pub tripped: Option<(Timestamp, String)>,
    /// Quality of the pictures shown.
    pub quality: Option<QualitySummary>,
    /// How it was spread.
    pub picture_quantiles: Option<PictureQuantiles>,
    /// Transfers of a TCP flow with several.
    pub transfers: Option<TransferSummary>,
    /// Streams of a flow that has several.
    pub streams: Vec<crate::results::StreamSummary>,
    /// Frames of each of them with a playout time before the end; `None` for those without playout of frames.
    pub stream_frames: Vec<Option<u64>>,
    /// Paths of a flow that has several.
    pub multipath: Option<Box<crate::results::MultipathSummary>>,
}

/// The fate of one media frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRecord {
    /// When it was captured, as far as the receiver knows.
    pub captured: Timestamp,
    /// Whether that is by the sender's reports: without one, delays are relative to the fastest frame.
    pub is_from_capture: bool,
    /// When it was complete at the receiver; `None` if it never was.
    pub completed: Option<Timestamp>,
    /// When it was played; `None` if it was late or lost.
    pub played: Option<Timestamp>,
}

/// A duration in s, rounded once, so that 0.3 s is written as 0.3.
fn seconds(span: TimeDelta) -> f64 {
    span.as_nanos() as f64 / 1e9
}

/// An instant in s after the beginning of the run.
fn instant(at: Timestamp) -> f64 {
    at.as_nanos() as f64 / 1e9
}

#[cfg(test)]
mod tests;
