//! The structs of the ABI. Each begins with its size; all members are plain numbers, of which every value is valid to read.

use std::ffi::c_char;

/// Configuration of a controller, beside its name and parameters.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// sizeof(weir_setup).
    pub size: u32,
    /// Clock rate of RTP timestamps in Hz, for the jitter in receiver reports; 0 for 90,000.
    pub rtp_clock_hz: u32,
    /// Lower bound of the media rate.
    pub floor_bps: u64,
    /// Upper bound of the media rate.
    pub ceiling_bps: u64,
    /// Media rate before the first feedback.
    pub start_bps: u64,
    /// Time of creation. No event is earlier.
    pub now_ns: i64,
    /// Seed of controllers that use random numbers.
    pub seed: u64,
    /// NTP time (64 bits, as in sender reports) at 0 of the caller's clock, so that round-trip times can be taken from
    /// receiver reports; 0 if the caller sends no sender reports.
    pub ntp_zero: u64,
}

/// The packet is padding.
pub const WEIR_SENT_PADDING: u32 = 1;
/// The packet is repair: forward error correction.
pub const WEIR_SENT_REPAIR: u32 = 2;
/// The packet is a retransmission on a stream of its own (RFC 4588).
pub const WEIR_SENT_RETRANSMISSION: u32 = 4;
/// The member transport_number is set. Without it for all packets, a packet's transport-wide number is the lower 16 bits
/// of its number.
pub const WEIR_SENT_HAS_TRANSPORT_NUMBER: u32 = 8;
/// The members ssrc and rtp_sequence are set, which RFC 8888 feedback needs.
pub const WEIR_SENT_HAS_RTP: u32 = 16;

/// A packet that has just been sent.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SentPacket {
    /// sizeof(weir_sent_packet).
    pub size: u32,
    /// WEIR_SENT_ flags.
    pub flags: u32,
    /// When it was sent.
    pub now_ns: i64,
    /// RTP header, extensions and payload, without UDP and IP: 1 to 65,535.
    pub bytes: u32,
    /// The probe cluster that it belongs to, 0 for none.
    pub probe: u32,
    /// Bytes of RTP still queued behind it.
    pub queued_bytes: u64,
    /// Its RTP stream.
    pub ssrc: u32,
    /// Its RTP sequence number.
    pub rtp_sequence: u16,
    /// Its transport-wide sequence number.
    pub transport_number: u16,
}

/// One packet's entry in feedback.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PacketReport {
    /// The packet's number, as weir_controller_sent gave it.
    pub number: u64,
    /// Arrival by the receiver's clock, which need not agree with the caller's. Ignored if the packet was lost.
    pub arrival_ns: i64,
    /// 1 if received, 0 if reported lost.
    pub received: u8,
    /// The ECN field on arrival (RFC 3168): 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE.
    pub ecn: u8,
    /// 0.
    pub reserved: [u8; 6],
}

/// A receiver report block (RFC 3550, section 6.4.1).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ReportBlock {
    /// sizeof(weir_report_block).
    pub size: u32,
    /// Packets expected since the last report.
    pub expected: u32,
    /// When it was received.
    pub now_ns: i64,
    /// Share of packets lost since the last report, 0 to 1.
    pub fraction_lost: f64,
    /// Packets lost since the start.
    pub cumulative_lost: i64,
    /// Extended highest sequence number received.
    pub highest_sequence: u64,
    /// Interarrival jitter.
    pub jitter_ns: i64,
    /// Round-trip time; negative if unknown.
    pub rtt_ns: i64,
}

/// REMB: rate_bps.
pub const WEIR_CUE_REMB: u32 = 1;
/// TMMBR (RFC 5104): rate_bps.
pub const WEIR_CUE_TMMBR: u32 = 2;
/// NADA's receiver-side report (RFC 8698): rate_bps is r_recv, delay_ns x_curr, count rmode (0 or 1).
pub const WEIR_CUE_NADA: u32 = 3;
/// The packet that the receiver plays next (NADU): number, and delay_ns until then, negative if unknown.
pub const WEIR_CUE_NEXT_DATA_UNIT: u32 = 4;
/// Capacity announced by a device on the path: rate_bps.
pub const WEIR_CUE_CAPACITY: u32 = 5;
/// Rate that the transport below allows (DCCP): rate_bps, smoothed_bps, rtt_ns.
pub const WEIR_CUE_TRANSPORT_RATE: u32 = 6;
/// The transport's queue has refused packets of a frame: count.
pub const WEIR_CUE_SEND_REJECTED: u32 = 7;

/// A cue with few numbers. Which members count depends on its kind; the others are ignored.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Cue {
    /// sizeof(weir_cue).
    pub size: u32,
    /// A WEIR_CUE_ number.
    pub kind: u32,
    /// When it was received.
    pub now_ns: i64,
    /// A rate.
    pub rate_bps: u64,
    /// The rate, smoothed.
    pub smoothed_bps: u64,
    /// A delay.
    pub delay_ns: i64,
    /// Round-trip time; negative if unknown.
    pub rtt_ns: i64,
    /// A packet's number.
    pub number: u64,
    /// A count or mode.
    pub count: u32,
    /// 0.
    pub reserved: u32,
}

/// No congestion window.
pub const WEIR_NO_WINDOW: u64 = u64::MAX;
/// Nothing is discarded from the RTP queue.
pub const WEIR_NO_LIMIT: i64 = i64::MAX;
/// A pacing rate that sends packets at once.
pub const WEIR_UNPACED: u64 = u64::MAX;

/// No repair packets.
pub const WEIR_REPAIR_OFF: u32 = 0;
/// One parity packet for every repair_block media packets.
pub const WEIR_REPAIR_PARITY: u32 = 1;
/// None, but parity over up to repair_block of the last packets is kept for a change to WEIR_REPAIR_PARITY.
pub const WEIR_REPAIR_STANDBY: u32 = 2;
/// Reed-Solomon blocks (RFC 6865) of repair_block packets, of which repair_packets are repair.
pub const WEIR_REPAIR_REED_SOLOMON: u32 = 3;

/// A controller's wishes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// sizeof(weir_target).
    pub size: u32,
    /// Bytes of headers in each packet, down to IP, that media_bps covers beside the payload; 0 if it is the payload's
    /// rate alone.
    pub overhead_bytes: u32,
    /// Rate for the encoders.
    pub media_bps: u64,
    /// Rate at which a pacer should release packets, or WEIR_UNPACED.
    pub pacing_bps: u64,
    /// Rate up to which a pacer should fill with padding; 0 for none.
    pub padding_bps: u64,
    /// Bytes that may be in flight, or WEIR_NO_WINDOW.
    pub window_bytes: u64,
    /// Age at which the RTP queue should be discarded, or WEIR_NO_LIMIT.
    pub max_queue_age_ns: i64,
    /// A WEIR_REPAIR_ number.
    pub repair: u32,
    /// Packets of a repair block, 0 for none.
    pub repair_block: u16,
    /// Repair packets of a Reed-Solomon block.
    pub repair_packets: u16,
}

/// A periodic update of the rate.
pub const WEIR_TIMEOUT_RATE_UPDATE: u32 = 0;
/// Feedback is overdue.
pub const WEIR_TIMEOUT_FEEDBACK_MISSING: u32 = 1;
/// A probe is due or has expired.
pub const WEIR_TIMEOUT_PROBE: u32 = 2;

/// A short burst at a given rate that measures capacity. Its packets are sent with its number in the member probe.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// sizeof(weir_probe).
    pub size: u32,
    /// Number of the cluster, never 0.
    pub id: u32,
    /// Rate at which it is sent.
    pub rate_bps: u64,
    /// It ends once it has this many packets ...
    pub min_packets: u32,
    /// 0.
    pub reserved: u32,
    /// ... and this many bytes.
    pub min_bytes: u64,
}

/// Counters and measurements of a controller's history of sent packets.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Statistics {
    /// sizeof(weir_statistics).
    pub size: u32,
    /// 0.
    pub reserved: u32,
    /// Round-trip time of the latest report; negative before the first.
    pub rtt_ns: i64,
    /// Bytes sent and neither reported nor given up.
    pub bytes_in_flight: u64,
    /// Packets sent.
    pub sent: u64,
    /// Reports of packets that were not sent.
    pub unknown: u64,
    /// Reports of packets that are no longer kept.
    pub late: u64,
    /// Reports that repeat an earlier one.
    pub duplicate: u64,
    /// Packets that left the flight without a report.
    pub unreported: u64,
    /// RTCP messages that did not parse.
    pub malformed: u64,
}

/// Length of a metric's name with its end.
pub const WEIR_METRIC_NAME: usize = 48;

/// An internal value of a controller.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// Its name, with the unit as suffix (_ms, _bps, _bytes) or none; ends with 0.
    pub name: [c_char; WEIR_METRIC_NAME],
    /// Its value; NaN while there is none.
    pub value: f64,
}
