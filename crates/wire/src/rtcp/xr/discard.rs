//! Data discarded by the receiver: packets (RFC 7002) and bytes (RFC 7243).

use super::metric::{Fixed, IntervalMetric, Measured, put};
use crate::read::be32;

/// Packets discarded for one reason (RFC 7002, section 3).
///
/// The interval covered is that of the [`MeasurementInformation`](super::MeasurementInformation) in the same compound
/// packet; without one this must be ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiscardCount {
    /// The source of the packets.
    pub ssrc: u32,
    /// The interval covered; never [`IntervalMetric::Sampled`].
    pub interval: IntervalMetric,
    /// Why they were discarded.
    pub reason: DiscardReason,
    /// Their number.
    pub count: Measured,
}

/// Why packets were discarded: the Discard Type (RFC 7002, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DiscardReason {
    /// A duplicate.
    Duplicate,
    /// Too early to be kept until played.
    Early,
    /// Too late to be played.
    Late,
}

impl Fixed for DiscardCount {
    const TYPE: u8 = super::DISCARD_COUNT;
    const BODY: usize = 8;
    fn read(type_specific: u8, body: &[u8]) -> Option<Self> {
        let reason = match type_specific >> 4 & 3 {
            0 => DiscardReason::Duplicate,
            1 => DiscardReason::Early,
            2 => DiscardReason::Late,
            _ => return None,
        };
        Some(Self {
            ssrc: be32(body, 0),
            interval: IntervalMetric::over_time(type_specific)?,
            reason,
            count: Measured::read::<32>(be32(body, 4).into()),
        })
    }
    fn type_specific(&self) -> u8 {
        let reason = match self.reason {
            DiscardReason::Duplicate => 0,
            DiscardReason::Early => 1,
            DiscardReason::Late => 2,
        };
        self.interval.octet() | reason << 4
    }
    fn write_body(&self, out: &mut Vec<u8>) {
        put(out, [self.ssrc, self.count.bits::<32>() as u32]);
    }
}

/// RTP payload bytes received too early or too late to be used (RFC 7243, section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BytesDiscarded {
    /// The source of the packets.
    pub ssrc: u32,
    /// The interval covered; never [`IntervalMetric::Sampled`].
    pub interval: IntervalMetric,
    /// Whether they came too early rather than too late.
    pub early: bool,
    /// Payload bytes, excluding padding and header extensions.
    pub bytes: u32,
}

impl Fixed for BytesDiscarded {
    const TYPE: u8 = super::BYTES_DISCARDED;
    const BODY: usize = 8;
    fn read(type_specific: u8, body: &[u8]) -> Option<Self> {
        Some(Self {
            ssrc: be32(body, 0),
            interval: IntervalMetric::over_time(type_specific)?,
            early: type_specific & 0x20 != 0,
            bytes: be32(body, 4),
        })
    }
    fn type_specific(&self) -> u8 {
        self.interval.octet() | u8::from(self.early) << 5
    }
    fn write_body(&self, out: &mut Vec<u8>) {
        put(out, [self.ssrc, self.bytes]);
    }
}
