//! What the receiver had to throw away: bytes (RFC 7243).

use super::{Fixed, IntervalMetric};
use crate::Entry;
use crate::read::be32;

/// Bytes of RTP payload that came too early or too late to be used (RFC 7243, section 3).
///
/// A block that says to be sampled, which the RFC forbids, or of the reserved kind stays in
/// [`Block::Other`](super::Block::Other).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BytesDiscarded {
    /// The source of the packets.
    pub ssrc: u32,
    /// Over which time; never [`IntervalMetric::Sampled`].
    pub interval: IntervalMetric,
    /// Whether they came too early rather than too late.
    pub early: bool,
    /// Payload bytes, padding and header extensions not counted.
    pub bytes: u32,
}

impl Fixed for BytesDiscarded {
    const TYPE: u8 = super::BYTES_DISCARDED;
    const BODY: usize = 8;
    fn read(type_specific: u8, body: &[u8]) -> Option<Self> {
        let interval = IntervalMetric::from_bits(type_specific >> 6)?;
        if interval == IntervalMetric::Sampled {
            return None;
        }
        Some(Self { ssrc: be32(body, 0), interval, early: type_specific & 0x20 != 0, bytes: be32(body, 4) })
    }
    fn type_specific(&self) -> u8 {
        self.interval.bits() << 6 | u8::from(self.early) << 5
    }
    fn write_body(&self, out: &mut Vec<u8>) {
        self.ssrc.write_into(out);
        self.bytes.write_into(out);
    }
}
