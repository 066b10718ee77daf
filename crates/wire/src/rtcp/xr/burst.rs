//! Bursts of losses (RFC 6958) and of discards (RFC 7003).
//!
//! Both cover the interval of the [`MeasurementInformation`](super::MeasurementInformation) in the same compound
//! packet; without one they must be ignored.

use super::metric::{Fixed, IntervalMetric, Measured, put};
use crate::read::be32;

/// Bursts of lost packets (RFC 6958, section 3).
///
/// The RFC's text gives the number of bursts 16 bits, its figure and block length 12: the latter are followed, since
/// only they are consistent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BurstGapLoss {
    /// The source of the packets.
    pub ssrc: u32,
    /// The interval covered; never [`IntervalMetric::Sampled`].
    pub interval: IntervalMetric,
    /// The C flag: a [`BurstGapDiscard`] is in the same compound packet. Without it, this must be ignored.
    pub combined: bool,
    /// Gmin: consecutive packets that must be received around a lost one for it to be part of a gap.
    pub threshold: u8,
    /// Total duration of bursts in ms, 24 bits.
    pub duration: Measured,
    /// Packets lost in bursts, 24 bits.
    pub lost: Measured,
    /// Packets expected in bursts, 24 bits.
    pub expected: Measured,
    /// Number of bursts, 12 bits.
    pub bursts: Measured,
    /// The sum of the squares of the bursts' durations, in ms^2, 36 bits.
    pub squared_duration: Measured,
}

impl Fixed for BurstGapLoss {
    const TYPE: u8 = super::BURST_GAP_LOSS;
    const BODY: usize = 20;
    fn read(type_specific: u8, body: &[u8]) -> Option<Self> {
        let word = |at| u64::from(be32(body, at));
        let (head, middle, end) = (word(4), word(8) << 32 | word(12), word(16));
        Some(Self {
            ssrc: be32(body, 0),
            interval: IntervalMetric::over_time(type_specific)?,
            combined: type_specific & 0x20 != 0,
            threshold: (head >> 24) as u8,
            duration: Measured::read::<24>(head),
            lost: Measured::read::<24>(middle >> 40),
            expected: Measured::read::<24>(middle >> 16),
            bursts: Measured::read::<12>(middle >> 4),
            squared_duration: Measured::read::<36>(middle << 32 | end),
        })
    }
    fn type_specific(&self) -> u8 {
        self.interval.octet() | u8::from(self.combined) << 5
    }
    fn write_body(&self, out: &mut Vec<u8>) {
        let squared = self.squared_duration.bits::<36>();
        let middle = self.lost.bits::<24>() << 40
            | self.expected.bits::<24>() << 16
            | self.bursts.bits::<12>() << 4
            | squared >> 32;
        let head = u32::from(self.threshold) << 24 | self.duration.bits::<24>() as u32;
        put(out, [self.ssrc, head, (middle >> 32) as u32, middle as u32, squared as u32]);
    }
}

/// Bursts of discarded packets (RFC 7003, section 3).
///
/// The RFC's text has block type 20, already used by RFC 6958; erratum 3735 and the registry make it 21.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BurstGapDiscard {
    /// The source of the packets.
    pub ssrc: u32,
    /// The interval covered; never [`IntervalMetric::Sampled`].
    pub interval: IntervalMetric,
    /// Gmin: consecutive packets that must not be discarded around a discarded one for it to be part of a gap.
    pub threshold: u8,
    /// Packets discarded in bursts, 24 bits.
    pub discarded: Measured,
    /// Packets expected in bursts, 24 bits.
    pub expected: Measured,
}

impl Fixed for BurstGapDiscard {
    const TYPE: u8 = super::BURST_GAP_DISCARD;
    const BODY: usize = 12;
    fn read(type_specific: u8, body: &[u8]) -> Option<Self> {
        Some(Self {
            ssrc: be32(body, 0),
            interval: IntervalMetric::over_time(type_specific)?,
            threshold: (be32(body, 4) >> 24) as u8,
            discarded: Measured::read::<24>(be32(body, 4).into()),
            expected: Measured::read::<24>((be32(body, 8) >> 8).into()),
        })
    }
    fn type_specific(&self) -> u8 {
        self.interval.octet()
    }
    fn write_body(&self, out: &mut Vec<u8>) {
        let head = u32::from(self.threshold) << 24 | self.discarded.bits::<24>() as u32;
        put(out, [self.ssrc, head, (self.expected.bits::<24>() as u32) << 8]);
    }
}
