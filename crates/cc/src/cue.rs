//! Congestion cues: what a controller can learn about its path, and where each cue originates.
//!
//! The classes are those of V. Singh's dissertation, section 3.4 and figure 3.2: a cue is measured on
//! the media path or off it, and signalled in band (with the media or its RTCP) or out of band.

use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Where a cue was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// By the receiver or a device on the media path.
    OnPath,
    /// By a third party: a coverage map, an overlay, another path.
    OffPath,
}

/// How a cue was signalled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// In RTP header extensions or RTCP.
    InBand,
    /// In signalling or a separate connection.
    OutOfBand,
}

/// One observation of the path. A controller ignores cues that it does not use.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Cue<'a> {
    /// The fate of each packet, from TWCC or RFC 8888 feedback in one form.
    TransportFeedback(TransportFeedback<'a>),
    /// A receiver report block (RFC 3550, section 6.4.1).
    ReportBlock(ReportBlock),
    /// A rate that the receiver asks the sender not to exceed (REMB, TMMBR).
    ReceiverEstimate(ReceiverEstimate),
    /// The aggregated signal of NADA's receiver (RFC 8698, section 5.1.2 and 6.4).
    NadaReport(NadaReport),
    /// The fate of each media packet of a reporting interval, from RTCP XR run lengths and delays.
    IntervalReport(IntervalReport<'a>),
    /// The data unit that the receiver plays next, and the time until then (NADU).
    NextDataUnit(NextDataUnit),
    /// Capacity announced by a device on the path, such as a base station.
    CapacityNotice(CapacityNotice),
    /// Capacity expected along the way, from a map of network coverage.
    CapacityForecast(CapacityForecast<'a>),
    /// The rate that the transport under the session allows, such as DCCP's congestion control.
    TransportRate(TransportRate),
    /// That transport's send queue has refused packets.
    SendRejected(SendRejected),
}

impl Cue<'_> {
    /// Where this kind of cue is measured.
    pub const fn origin(&self) -> Origin {
        match self {
            Self::TransportFeedback(_)
            | Self::ReportBlock(_)
            | Self::ReceiverEstimate(_)
            | Self::NadaReport(_)
            | Self::IntervalReport(_)
            | Self::NextDataUnit(_)
            | Self::CapacityNotice(_)
            | Self::TransportRate(_)
            | Self::SendRejected(_) => Origin::OnPath,
            Self::CapacityForecast(_) => Origin::OffPath,
        }
    }
    /// How this kind of cue is signalled.
    pub const fn channel(&self) -> Channel {
        match self {
            Self::TransportFeedback(_)
            | Self::ReportBlock(_)
            | Self::ReceiverEstimate(_)
            | Self::NadaReport(_)
            | Self::IntervalReport(_)
            | Self::NextDataUnit(_) => Channel::InBand,
            Self::CapacityForecast(f) => f.channel,
            Self::CapacityNotice(_) | Self::TransportRate(_) | Self::SendRejected(_) => Channel::OutOfBand,
        }
    }
    /// When the cue reached this end.
    pub const fn now(&self) -> Timestamp {
        match self {
            Self::TransportFeedback(f) => f.now,
            Self::ReportBlock(r) => r.now,
            Self::ReceiverEstimate(e) => e.now,
            Self::NadaReport(n) => n.now,
            Self::IntervalReport(i) => i.now,
            Self::NextDataUnit(n) => n.now,
            Self::CapacityNotice(n) => n.now,
            Self::CapacityForecast(f) => f.now,
            Self::TransportRate(r) => r.now,
            Self::SendRejected(r) => r.now,
        }
    }
}

/// The fate of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketResult {
    /// Transport-wide sequence number, unwrapped.
    pub sequence: u64,
    /// When it was sent, by this end's clock.
    pub departure: Timestamp,
    /// When it arrived, by the receiver's clock; `None` if reported lost.
    pub arrival: Option<RemoteTimestamp>,
    /// Bytes as counted by [`SentPacket::size`].
    pub size: DataSize,
    /// The ECN field on arrival.
    pub ecn: Ecn,
    /// Its probe cluster, 0 for none.
    pub probe: u32,
    /// Whether an earlier report had it as lost; its arrival then revokes the loss.
    pub was_lost: bool,
}

/// Per-packet feedback. Every packet is reported at most once as lost and at most once as received.
#[derive(Clone, Copy, Debug)]
pub struct TransportFeedback<'a> {
    /// When the feedback reached this end.
    pub now: Timestamp,
    /// Packets newly resolved by this feedback, in send order; may be empty.
    pub packets: &'a [PacketResult],
    /// Bytes sent and not yet resolved, after this feedback.
    pub bytes_in_flight: DataSize,
    /// Round-trip time sample from the latest packet newly reported received. It excludes the receiver's holding time
    /// where the format reports it (RFC 8888) and includes it otherwise (TWCC).
    pub rtt: Option<TimeDelta>,
}

/// A receiver report block and the round-trip time derived from it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReportBlock {
    /// When the report was received.
    pub now: Timestamp,
    /// Share of packets lost since the last report, 0 to 1.
    pub fraction_lost: f64,
    /// Packets lost since the start; negative where duplicates outnumber losses.
    pub cumulative_lost: i64,
    /// Extended highest sequence number received.
    pub highest_sequence: u64,
    /// Packets expected since the last report.
    pub expected: u64,
    /// Interarrival jitter.
    pub jitter: TimeDelta,
    /// From LSR and DLSR, if present in the block.
    pub rtt: Option<TimeDelta>,
}

impl ReportBlock {
    /// The share lost, limited to 0 to 1; NaN counts as 0.
    pub(crate) fn loss(&self) -> f64 {
        if self.fraction_lost > 0.0 { self.fraction_lost.min(1.0) } else { 0.0 }
    }
}

/// The message that carried a receiver's estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EstimateKind {
    /// draft-alvestrand-rmcat-remb-03.
    Remb,
    /// RFC 5104, section 4.2.1.
    Tmmbr,
}

/// A rate that the receiver asks the sender not to exceed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverEstimate {
    /// When it was received.
    pub now: Timestamp,
    /// The rate requested.
    pub rate: DataRate,
    /// The message that carried it.
    pub kind: EstimateKind,
}

/// More than any rate.
const NO_REQUEST: DataRate = DataRate::from_bps(u64::MAX);

impl ReceiverEstimate {
    /// Whoever had asked for a rate has left: there is no request until the next one.
    pub const fn withdrawn(now: Timestamp, kind: EstimateKind) -> Self {
        Self { now, rate: NO_REQUEST, kind }
    }
    /// Whether it is [`Self::withdrawn`]: no bound. Controllers whose rate is the receiver's alone keep the last one.
    pub const fn is_withdrawn(&self) -> bool {
        self.rate.as_bps() == NO_REQUEST.as_bps()
    }
}

/// NADA's mode of rate update as recommended by the receiver (RFC 8698, section 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NadaMode {
    /// rmode = 0.
    AcceleratedRampUp,
    /// rmode = 1.
    GradualUpdate,
}

/// NADA's report of the receiver-side variant (RFC 8698, section 5.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NadaReport {
    /// When it was received.
    pub now: Timestamp,
    /// rmode.
    pub mode: NadaMode,
    /// x_curr, the aggregated congestion signal.
    pub aggregate_delay: TimeDelta,
    /// r_recv, the measured receiving rate.
    pub receive_rate: DataRate,
    /// Round-trip time last measured by the sender's session.
    pub rtt: Option<TimeDelta>,
}

/// The fate of a media packet at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// Received in time.
    Received,
    /// Not received (loss RLE, RFC 3611, section 4.1).
    Lost,
    /// Received too late for playout and discarded (discard RLE, RFC 7097).
    Discarded,
}

/// One media packet of a reporting interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntervalPacket {
    /// Sequence number as in [`SentPacket::sequence`].
    pub sequence: u64,
    /// When it was sent, by this end's clock.
    pub departure: Timestamp,
    /// Bytes as counted by [`SentPacket::size`].
    pub size: DataSize,
    /// Its fate before repair.
    pub fate: Fate,
    /// Whether repair recovered it in time (post-repair loss RLE, RFC 5725).
    pub repaired: bool,
}

/// One-way delay over a reporting interval, as estimated by the receiver without synchronised clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OneWayDelay {
    /// Minimum.
    pub min: TimeDelta,
    /// Mean.
    pub mean: TimeDelta,
    /// Delay of the last packet.
    pub last: TimeDelta,
}

/// A compound RTCP packet with run lengths. It covers the packets after the previous such report up to the highest
/// received, in send order. The receiver report of the same compound precedes it as [`Cue::ReportBlock`].
#[derive(Clone, Copy, Debug)]
pub struct IntervalReport<'a> {
    /// When the report was received.
    pub now: Timestamp,
    /// The packets of the interval in send order, without padding and repair; may be empty.
    pub packets: &'a [IntervalPacket],
    /// One-way delay, if reported.
    pub one_way_delay: Option<OneWayDelay>,
    /// Round-trip time last measured by the sender's session.
    pub rtt: Option<TimeDelta>,
}

/// The receiver's buffer as reported by NADU (3GPP TS 26.234, next application data unit).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextDataUnit {
    /// When it was received.
    pub now: Timestamp,
    /// Sequence number, as in [`SentPacket::sequence`], of the next packet to be decoded.
    pub next_sequence: u64,
    /// Time from the report until that packet is played; `None` if the receiver does not know it.
    pub playout_delay: Option<TimeDelta>,
}

/// A notice from a device on the path that knows its link's capacity (V. Singh's dissertation, section 7.1), such as a
/// base station to the end beside it. It is measured on the path and signalled out of band, by the device itself rather
/// than the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapacityNotice {
    /// When it was received.
    pub now: Timestamp,
    /// The link's capacity for this flow: towards the network at a media sender, from it at a media receiver.
    pub rate: DataRate,
}

/// Capacity expected over time, from a map of network coverage (V. Singh's dissertation, section 7.2). It is measured off
/// the path, by others who were where an end is going, and signalled by the map itself, out of band, or by the other end
/// that has asked the map, in band. It replaces the forecast before.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CapacityForecast<'a> {
    /// When it was received, from which its segments count.
    pub now: Timestamp,
    /// Consecutive stretches of time; empty withdraws the forecast.
    pub segments: &'a [ForecastSegment],
    /// How it came here.
    pub channel: Channel,
}

/// A stretch of time with one expected capacity. Nothing is known between segments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForecastSegment {
    /// Its begin, from the forecast's reception.
    pub from: TimeDelta,
    /// Its end, likewise.
    pub to: TimeDelta,
    /// Lower quartile of the capacity.
    pub low: DataRate,
    /// Median of the capacity.
    pub median: DataRate,
    /// How far the map trusts it, 0 to 1.
    pub confidence: f64,
}

/// The rate that the transport under the session allows, where it has congestion control of its own (DCCP; S. Jero,
/// 2013, section 3.2.2). It is measured on the path and signalled by this end's own transport, out of band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransportRate {
    /// When it was read.
    pub now: Timestamp,
    /// The rate at which data may be sent now, counting what the transport carries for this session, RTP headers
    /// included.
    pub rate: DataRate,
    /// The same, smoothed for the application.
    pub smoothed: DataRate,
    /// Round-trip time measured by the transport; `None` before the first sample.
    pub rtt: Option<TimeDelta>,
}

/// The transport's send queue has refused packets of the frame just handed over: one event per frame, for any number of
/// its packets (S. Jero, 2013, section 3.2.2). The packets are lost. Signalled by this end's own transport, out of
/// band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendRejected {
    /// When the frame had been handed over.
    pub now: Timestamp,
    /// Number of its packets refused, at least 1.
    pub packets: u32,
}

/// A packet that has just been sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentPacket {
    /// When it was sent.
    pub now: Timestamp,
    /// Transport-wide sequence number, unwrapped, one higher than the packet before.
    pub sequence: u64,
    /// RTP header, extensions and payload in bytes, without UDP and IP.
    pub size: DataSize,
    /// Whether it is padding rather than media or repair.
    pub is_padding: bool,
    /// Whether it is a repair packet: forward error correction.
    pub is_repair: bool,
    /// Whether it is a retransmission, on a stream of its own (RFC 4588).
    pub is_retransmission: bool,
    /// Its probe cluster, 0 for none.
    pub probe: u32,
    /// Bytes still queued in the RTP queue behind it.
    pub queued: DataSize,
    /// Bytes in flight, this packet included.
    pub bytes_in_flight: DataSize,
}

impl SentPacket {
    /// A media packet with an empty queue behind it and nothing else in flight: no padding, repair, retransmission or
    /// probe.
    pub const fn media(now: Timestamp, sequence: u64, size: DataSize) -> Self {
        Self {
            now,
            sequence,
            size,
            is_padding: false,
            is_repair: false,
            is_retransmission: false,
            probe: 0,
            queued: DataSize::ZERO,
            bytes_in_flight: DataSize::ZERO,
        }
    }
}

/// The state of the RTP queue between encoder and pacer when a frame enters it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueState {
    /// When the frame entered.
    pub now: Timestamp,
    /// Bytes of that frame.
    pub added: DataSize,
    /// Bytes in the queue, the frame included.
    pub queued: DataSize,
    /// Age of the oldest packet in the queue.
    pub oldest_age: TimeDelta,
}

/// A media packet that has just been received, for receiver halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedPacket {
    /// Arrival by this (the receiving) end's clock.
    pub now: Timestamp,
    /// Departure by the sender's clock, from the absolute send time extension, unwrapped.
    pub departure: Option<RemoteTimestamp>,
    /// RTP header, extensions and payload in bytes, without UDP and IP.
    pub size: DataSize,
    /// Bytes of media payload among them, which a media rate counts.
    pub payload: DataSize,
    /// RTP sequence number, unwrapped.
    pub sequence: u64,
    /// RTP timestamp as it stands in the packet.
    pub rtp_timestamp: u32,
    /// RTP marker bit: the last packet of a frame.
    pub marker: bool,
    /// The ECN field on arrival.
    pub ecn: Ecn,
}

/// A frame's outcome at playout, for receiver halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FramePlayout {
    /// When the outcome was known: the frame's playout deadline.
    pub now: Timestamp,
    /// RTP timestamp of the frame.
    pub rtp_timestamp: u32,
    /// Whether it was complete in time.
    pub complete: bool,
    /// Its packets that arrived too late and were discarded.
    pub discarded: u32,
    /// How long its last packet was buffered before playout; zero if the frame is incomplete.
    pub buffered: TimeDelta,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cues_are_sorted_as_in_figure_3_2() {
        let now = Timestamp::from_millis(7);
        let rate = DataRate::ZERO;
        let in_band = [
            Cue::TransportFeedback(TransportFeedback { now, packets: &[], bytes_in_flight: DataSize::ZERO, rtt: None }),
            Cue::ReportBlock(ReportBlock { now, ..crate::testing::REPORT }),
            Cue::ReceiverEstimate(ReceiverEstimate { now, rate, kind: EstimateKind::Remb }),
            Cue::NadaReport(NadaReport {
                now,
                mode: NadaMode::GradualUpdate,
                aggregate_delay: TimeDelta::ZERO,
                receive_rate: rate,
                rtt: None,
            }),
            Cue::IntervalReport(IntervalReport { now, packets: &[], one_way_delay: None, rtt: None }),
            Cue::NextDataUnit(NextDataUnit { now, next_sequence: 0, playout_delay: None }),
        ];
        let out_of_band = [
            Cue::CapacityNotice(CapacityNotice { now, rate }),
            Cue::TransportRate(TransportRate { now, rate, smoothed: rate, rtt: None }),
            Cue::SendRejected(SendRejected { now, packets: 1 }),
        ];
        let of = |cue: &Cue<'_>| (cue.origin(), cue.channel(), cue.now());
        assert!(in_band.iter().all(|cue| of(cue) == (Origin::OnPath, Channel::InBand, now)));
        for channel in [Channel::InBand, Channel::OutOfBand] {
            let forecast = Cue::CapacityForecast(CapacityForecast { now, segments: &[], channel });
            assert_eq!(of(&forecast), (Origin::OffPath, channel, now));
        }
        assert!(out_of_band.iter().all(|cue| of(cue) == (Origin::OnPath, Channel::OutOfBand, now)));
    }
}
