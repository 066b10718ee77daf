//! Congestion cues: what a controller can learn of its path, and where each cue comes from.
//!
//! The classes are those of V. Singh's dissertation, section 3.4 and figure 3.2: a cue is measured on
//! the media path or off it, and signalled in band (with the media or its RTCP) or out of band.

use weir_units::{DataRate, DataSize, Ecn, RemoteTimestamp, TimeDelta, Timestamp};

/// Where a cue was measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// By the receiver or a device that the media passes.
    OnPath,
    /// By a third party: a coverage map, an overlay, another path.
    OffPath,
}

/// How a cue was signalled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channel {
    /// In RTP header extensions or RTCP.
    InBand,
    /// In signalling or a connection of its own.
    OutOfBand,
}

/// One observation of the path. A controller ignores the cues that it does not use.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Cue<'a> {
    /// What became of each packet, from TWCC or RFC 8888 feedback in one normal form.
    TransportFeedback(TransportFeedback<'a>),
    /// A receiver report block (RFC 3550, section 6.4.1).
    ReportBlock(ReportBlock),
    /// A rate that the receiver asks the sender not to exceed (REMB, TMMBR).
    ReceiverEstimate(ReceiverEstimate),
    /// The aggregated signal of NADA's receiver (RFC 8698, section 5.1.2 and 6.4).
    NadaReport(NadaReport),
    /// What became of each media packet of a reporting interval, from RTCP XR run lengths and delays.
    IntervalReport(IntervalReport<'a>),
    /// What the receiver plays next and how long until then (NADU).
    NextDataUnit(NextDataUnit),
    /// What a device on the path, such as a base station, says of its link.
    CapacityNotice(CapacityNotice),
    /// What the transport under the session allows now, such as DCCP's congestion control.
    TransportRate(TransportRate),
    /// That transport's queue has refused packets.
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
            Self::TransportRate(r) => r.now,
            Self::SendRejected(r) => r.now,
        }
    }
}

/// What became of one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketResult {
    /// Transport-wide sequence number, unwrapped.
    pub sequence: u64,
    /// When it left, by this end's clock.
    pub departure: Timestamp,
    /// When it arrived, by the receiver's clock; `None` where it is reported lost.
    pub arrival: Option<RemoteTimestamp>,
    /// Bytes as counted by [`SentPacket::size`].
    pub size: DataSize,
    /// The ECN field on arrival.
    pub ecn: Ecn,
    /// The probe cluster that it belonged to, 0 for none.
    pub probe: u32,
    /// Whether an earlier report had called this packet lost; its arrival then takes the loss back.
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
    /// Round-trip time sample from the latest packet that this feedback newly reports received:
    /// without the receiver's holding time where the format tells it (RFC 8888), with it otherwise (TWCC).
    pub rtt: Option<TimeDelta>,
}

/// A receiver report block and the round-trip time drawn from it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ReportBlock {
    /// When the report reached this end.
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
    /// From LSR and DLSR, where the block holds them.
    pub rtt: Option<TimeDelta>,
}

impl ReportBlock {
    /// The share lost, from 0 to 1; what is not a number counts as none.
    pub(crate) fn loss(&self) -> f64 {
        if self.fraction_lost > 0.0 { self.fraction_lost.min(1.0) } else { 0.0 }
    }
}

/// Which message carried a receiver's estimate.
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
    /// When it reached this end.
    pub now: Timestamp,
    /// The rate asked for.
    pub rate: DataRate,
    /// The message that carried it.
    pub kind: EstimateKind,
}

/// NADA's mode of rate update as the receiver recommends it (RFC 8698, section 4.2).
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
    /// When it reached this end.
    pub now: Timestamp,
    /// rmode.
    pub mode: NadaMode,
    /// x_curr, the aggregated congestion signal.
    pub aggregate_delay: TimeDelta,
    /// r_recv, the measured receiving rate.
    pub receive_rate: DataRate,
    /// Round-trip time as the sender's session measured it last.
    pub rtt: Option<TimeDelta>,
}

/// What became of a media packet at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It came, and in time.
    Received,
    /// It did not come (loss RLE, RFC 3611, section 4.1).
    Lost,
    /// It came and was thrown away, too late for its playout (discard RLE, RFC 7097).
    Discarded,
}

/// One media packet of a reporting interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IntervalPacket {
    /// Sequence number as in [`SentPacket::sequence`].
    pub sequence: u64,
    /// When it left, by this end's clock.
    pub departure: Timestamp,
    /// Bytes as counted by [`SentPacket::size`].
    pub size: DataSize,
    /// What became of it, before repair.
    pub fate: Fate,
    /// Whether repair brought it back in time (post-repair loss RLE, RFC 5725).
    pub repaired: bool,
}

/// One-way delay over a reporting interval, as the receiver estimates it without synchronised clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OneWayDelay {
    /// The least.
    pub min: TimeDelta,
    /// The mean.
    pub mean: TimeDelta,
    /// That of the last packet.
    pub last: TimeDelta,
}

/// A compound RTCP packet with run lengths: the packets from the one after the last such report's last to the
/// highest received, in send order. Receiver-report numbers of the same packet come before, as [`Cue::ReportBlock`].
#[derive(Clone, Copy, Debug)]
pub struct IntervalReport<'a> {
    /// When the report reached this end.
    pub now: Timestamp,
    /// The packets of the interval in send order; may be empty. Padding and repair are not among them.
    pub packets: &'a [IntervalPacket],
    /// One-way delay, where the report tells it.
    pub one_way_delay: Option<OneWayDelay>,
    /// Round-trip time as the sender's session measured it last.
    pub rtt: Option<TimeDelta>,
}

/// The receiver's buffer as NADU tells it (3GPP TS 26.234, next application data unit).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NextDataUnit {
    /// When it reached this end.
    pub now: Timestamp,
    /// Sequence number, as in [`SentPacket::sequence`], of the packet that is decoded next.
    pub next_sequence: u64,
    /// Time from the report until that packet is played; `None` where the receiver cannot tell.
    pub playout_delay: Option<TimeDelta>,
}

/// A notice of a device on the path that knows its link (V. Singh's dissertation, section 7.1): a base station tells the
/// end beside it. It is measured on the path and signalled out of band, by the device itself rather than the other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapacityNotice {
    /// When it reached this end.
    pub now: Timestamp,
    /// What the link can carry of this flow: at a media sender the way out, at a media receiver the way in.
    pub rate: DataRate,
}

/// What the transport under the session allows now, where it has congestion control of its own (DCCP; S. Jero, 2013, section
/// 3.2.2). It is measured on the path and signalled by this end's own transport, out of band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransportRate {
    /// When it was read.
    pub now: Timestamp,
    /// The rate at which data may leave now: of what the transport carries for this session, RTP headers included.
    pub rate: DataRate,
    /// The same, smoothed for an application to follow.
    pub smoothed: DataRate,
    /// Round-trip time as the transport measures it; `None` where it has not yet.
    pub rtt: Option<TimeDelta>,
}

/// The transport's send queue has refused packets of the frame that was handed over just now: one event a frame, however
/// many packets of it went (S. Jero, 2013, section 3.2.2). They are lost. Signalled by this end's own transport, out of band.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SendRejected {
    /// When the frame had been handed over.
    pub now: Timestamp,
    /// Packets of it that were refused, at least 1.
    pub packets: u32,
}

/// A packet that has just left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentPacket {
    /// When it left.
    pub now: Timestamp,
    /// Transport-wide sequence number, unwrapped, one higher than the packet before.
    pub sequence: u64,
    /// RTP header, extensions and payload in bytes, without UDP and IP.
    pub size: DataSize,
    /// Whether it is padding rather than media or repair.
    pub is_padding: bool,
    /// Whether it is a repair packet: forward error correction.
    pub is_repair: bool,
    /// Whether it is a media packet that is sent again, on a stream of its own (RFC 4588).
    pub is_retransmission: bool,
    /// The probe cluster that it belongs to, 0 for none.
    pub probe: u32,
    /// Bytes that wait in the RTP queue behind it.
    pub queued: DataSize,
    /// Bytes in flight, this packet included.
    pub bytes_in_flight: DataSize,
}

impl SentPacket {
    /// A media packet that nothing waits behind: no padding, repair, retransmission or probe, and no other packet in flight.
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

/// The state of the RTP queue between encoder and pacer, given when a frame enters it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueState {
    /// When the frame entered.
    pub now: Timestamp,
    /// Bytes of the frame that entered.
    pub added: DataSize,
    /// Bytes in the queue, the frame included.
    pub queued: DataSize,
    /// Age of the oldest packet in the queue.
    pub oldest_age: TimeDelta,
}

/// A media packet that has just arrived, for receiver halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedPacket {
    /// Arrival by this (the receiving) end's clock.
    pub now: Timestamp,
    /// Departure by the sender's clock, from the absolute send time extension, unwrapped.
    pub departure: Option<RemoteTimestamp>,
    /// RTP header, extensions and payload in bytes, without UDP and IP.
    pub size: DataSize,
    /// Of these the media payload, which is what a media rate counts.
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

/// How a frame fared at playout, for receiver halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FramePlayout {
    /// When it was known: the frame's playout deadline.
    pub now: Timestamp,
    /// RTP timestamp of the frame.
    pub rtp_timestamp: u32,
    /// Whether all of it was there in time.
    pub complete: bool,
    /// Packets of it that came too late and were thrown away.
    pub discarded: u32,
    /// How long its last packet waited for playout; zero where the frame is not complete.
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
        assert!(out_of_band.iter().all(|cue| of(cue) == (Origin::OnPath, Channel::OutOfBand, now)));
    }
}
