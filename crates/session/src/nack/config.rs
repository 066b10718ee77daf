//! When lost packets are requested, and what became of them.

use weir_units::TimeDelta;

/// When a receiver requests lost packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NackConfig {
    /// Number of later packets after which a packet is lost rather than reordered, until packets are seen to be reordered: then the time
    /// by which they are late counts. Default: 3, the threshold of TCP's fast retransmission (RFC 5681, section 3.2).
    pub reorder_packets: u16,
    /// Time after which a missing packet is lost rather than reordered, likewise. Default: 10 ms.
    pub reorder_time: TimeDelta,
    /// Longest wait for repair packets before a packet is requested. Default: 100 ms.
    pub repair_patience: TimeDelta,
    /// Time allowed for a response beyond the round trip, for both ends' queues. Default: 10 ms.
    pub slack: TimeDelta,
    /// Most requests for one packet. Default: 10, libwebrtc's `kMaxNackRetries`.
    pub max_requests: u8,
    /// Over several paths: silence after which a path is not waited for. Default: 100 ms, three frames of video at 30 a
    /// second (calibrated).
    pub path_idle: TimeDelta,
    /// Most packets missing at a time; beyond that the oldest are given up. Default: 1,000, libwebrtc's
    /// `kMaxNackPackets`.
    pub max_packets: usize,
    /// Whether receiver reports count retransmissions as packets of the media stream, so that they report the residual
    /// loss. In libwebrtc, as of 2013, they did, since packets were retransmitted in the media stream itself with their
    /// old numbers. Default: false, since a retransmission stream has its own reports (RFC 4588, section 4).
    pub count_retransmissions: bool,
}

impl Default for NackConfig {
    fn default() -> Self {
        Self {
            reorder_packets: 3,
            reorder_time: TimeDelta::from_millis(10),
            repair_patience: TimeDelta::from_millis(100),
            slack: TimeDelta::from_millis(10),
            max_requests: 10,
            path_idle: TimeDelta::from_millis(100),
            max_packets: 1_000,
            count_retransmissions: false,
        }
    }
}

/// Outcome of missing packets at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NackCounters {
    /// Generic NACK messages sent.
    pub nacks: u64,
    /// Packets requested, repetitions included.
    pub requested: u64,
    /// Packets that were missing.
    pub missing: u64,
    /// Missing packets that arrived without a retransmission: reordered, not lost.
    pub reordered: u64,
    /// Missing packets recovered by repair packets.
    pub repaired: u64,
    /// Missing packets recovered by a retransmission in time.
    pub recovered: u64,
    /// Missing packets given up: too late for playout, requested too often, or too many at a time.
    pub given_up: u64,
    /// Retransmissions received.
    pub retransmissions: u64,
    /// Their RTP bytes: headers and payload.
    pub bytes: u64,
    /// Retransmissions received too late for playout.
    pub late: u64,
    /// Retransmissions of packets that had already arrived.
    pub duplicates: u64,
    /// Retransmissions that do not parse, or of packets not requested.
    pub malformed: u64,
}

impl NackCounters {
    /// Retransmissions that had no use.
    pub const fn useless(&self) -> u64 {
        self.late + self.duplicates
    }
}
