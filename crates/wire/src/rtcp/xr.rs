//! Extended reports (RFC 3611).
//!
//! Blocks of an unknown type, or with a length or flags that their specification does not allow, are kept as bytes in
//! [`Block::Other`]. A new type needs a variant of [`Block`], one arm in parsing and one in writing.

mod burst;
mod delay;
mod discard;
mod metric;
mod rle;
mod statistics;

pub use burst::{BurstGapDiscard, BurstGapLoss};
pub use delay::{DelayMetrics, DelayVariation, MeasurementInformation};
pub use discard::{BytesDiscarded, DiscardCount, DiscardReason};
pub use metric::{IntervalMetric, Measured};
pub use rle::{Chunk, ChunkKind, MAX_RANGE, MAX_RUN, RLE_HEADER, RleBlock};
pub use statistics::{HopSummary, JitterSummary, ReceiptTimes, StatisticsSummary, VoipMetrics};

use super::{MAX_PACKET, RawPacket, XR, frame};
use crate::ntp::NtpTime;
use crate::read::{Reader, be32};
use crate::{Entry, Error, List};
use core::fmt;
use metric::Fixed;

/// Block type of the loss run lengths (section 4.1).
pub const LOSS_RLE: u8 = 1;
/// Block type of the duplicate run lengths (section 4.2).
pub const DUPLICATE_RLE: u8 = 2;
/// Block type of the receipt times (section 4.3).
pub const RECEIPT_TIMES: u8 = 3;
/// Block type of the receiver reference time (section 4.4).
pub const RRTR: u8 = 4;
/// Block type of the delay since the last RRTR (section 4.5).
pub const DLRR: u8 = 5;
/// Block type of the statistics summary (section 4.6).
pub const STATISTICS_SUMMARY: u8 = 6;
/// Block type of the voice metrics (section 4.7).
pub const VOIP_METRICS: u8 = 7;
/// Block type of the loss run lengths after repair (RFC 5725).
pub const POST_REPAIR_LOSS_RLE: u8 = 10;
/// Block type of the measurement information (RFC 6776).
pub const MEASUREMENT_INFORMATION: u8 = 14;
/// Block type of the packet delay variation (RFC 6798).
pub const DELAY_VARIATION: u8 = 15;
/// Block type of the delay metrics (RFC 6843).
pub const DELAY: u8 = 16;
/// Block type of the bursts of losses (RFC 6958).
pub const BURST_GAP_LOSS: u8 = 20;
/// Block type of the bursts of discards (RFC 7003, erratum 3735).
pub const BURST_GAP_DISCARD: u8 = 21;
/// Block type of the discard count (RFC 7002).
pub const DISCARD_COUNT: u8 = 24;
/// Block type of the discard run lengths (RFC 7097).
pub const DISCARD_RLE: u8 = 25;
/// Block type of the bytes discarded (RFC 7243).
pub const BYTES_DISCARDED: u8 = 26;

/// Extended report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Xr<'a> {
    /// SSRC of the sender.
    pub ssrc: u32,
    /// Its content.
    pub blocks: Blocks<'a>,
}

/// One report block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Block<'a> {
    /// Receiver reference time: the time of the report by its sender's clock.
    Rrtr(NtpTime),
    /// Delay since the last receiver reference time of each receiver.
    Dlrr(List<'a, DlrrEntry>),
    /// Packets received: 1 is received, 0 is lost (RFC 3611, section 4.1).
    LossRle(RleBlock<'a>),
    /// Packets duplicated: 0 is duplicated, 1 is not duplicated, or lost (RFC 3611, section 4.2).
    DuplicateRle(RleBlock<'a>),
    /// Packets present after repair: 1 is received or repaired, 0 is finally lost (RFC 5725, section 3).
    PostRepairLossRle(RleBlock<'a>),
    /// Packets discarded (RFC 7097, section 3): 1 is discarded for the reason given by `early`, 0 is not.
    DiscardRle {
        /// The E flag: whether they arrived too early rather than too late.
        early: bool,
        /// The packets. The RFC does not state the meaning of the bits; "marked" packets in a block are those
        /// discarded.
        trace: RleBlock<'a>,
    },
    /// Payload bytes discarded (RFC 7243).
    BytesDiscarded(BytesDiscarded),
    /// When packets were received (RFC 3611, section 4.3).
    ReceiptTimes(ReceiptTimes<'a>),
    /// Losses, duplicates, jitter and hops (RFC 3611, section 4.6).
    StatisticsSummary(StatisticsSummary),
    /// Voice quality metrics (RFC 3611, section 4.7).
    VoipMetrics(VoipMetrics),
    /// Packets and time covered by the metric blocks (RFC 6776).
    MeasurementInformation(MeasurementInformation),
    /// Packet delay variation (RFC 6798).
    DelayVariation(DelayVariation),
    /// Round-trip and end system delay (RFC 6843).
    Delay(DelayMetrics),
    /// Bursts of losses (RFC 6958).
    BurstGapLoss(BurstGapLoss),
    /// Bursts of discards (RFC 7003).
    BurstGapDiscard(BurstGapDiscard),
    /// Packets discarded (RFC 7002).
    DiscardCount(DiscardCount),
    /// Any other block.
    Other(RawBlock<'a>),
}

/// A block framed by its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawBlock<'a> {
    /// Block type.
    pub block_type: u8,
    /// The type-specific octet.
    pub type_specific: u8,
    /// The bytes after the block header, in whole words; zeros fill the last one.
    pub body: &'a [u8],
}

/// Echo of one receiver's reference time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DlrrEntry {
    /// The receiver.
    pub ssrc: u32,
    /// Middle 32 bits of its last reference time, 0 for none yet.
    pub last_rr: u32,
    /// Time since it was received, in units of 2^-16 s.
    pub delay_since_last_rr: u32,
}

impl Entry for DlrrEntry {
    const SIZE: usize = 12;
    fn read(b: &[u8]) -> Self {
        Self { ssrc: be32(b, 0), last_rr: be32(b, 4), delay_since_last_rr: be32(b, 8) }
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        [self.ssrc, self.last_rr, self.delay_since_last_rr].iter().for_each(|w| w.write_into(out));
    }
}

impl<'a> Block<'a> {
    fn from_raw(raw: RawBlock<'a>) -> Self {
        Self::parsed(&raw).unwrap_or(Self::Other(raw))
    }
    fn parsed(raw: &RawBlock<'a>) -> Option<Self> {
        let RawBlock { block_type, type_specific, body } = *raw;
        let trace = || RleBlock::from_body(type_specific, body);
        match block_type {
            LOSS_RLE => trace().map(Self::LossRle),
            DUPLICATE_RLE => trace().map(Self::DuplicateRle),
            RECEIPT_TIMES => ReceiptTimes::from_body(type_specific, body).map(Self::ReceiptTimes),
            RRTR if body.len() == 8 => {
                Some(Self::Rrtr(NtpTime::from_bits(u64::from(be32(body, 0)) << 32 | u64::from(be32(body, 4)))))
            }
            DLRR if body.len().is_multiple_of(DlrrEntry::SIZE) => Some(Self::Dlrr(List::from_wire(body))),
            STATISTICS_SUMMARY => Fixed::from_raw(raw).map(Self::StatisticsSummary),
            VOIP_METRICS => Fixed::from_raw(raw).map(Self::VoipMetrics),
            POST_REPAIR_LOSS_RLE => trace().map(Self::PostRepairLossRle),
            MEASUREMENT_INFORMATION => Fixed::from_raw(raw).map(Self::MeasurementInformation),
            DELAY_VARIATION => Fixed::from_raw(raw).map(Self::DelayVariation),
            DELAY => Fixed::from_raw(raw).map(Self::Delay),
            BURST_GAP_LOSS => Fixed::from_raw(raw).map(Self::BurstGapLoss),
            BURST_GAP_DISCARD => Fixed::from_raw(raw).map(Self::BurstGapDiscard),
            DISCARD_COUNT => Fixed::from_raw(raw).map(Self::DiscardCount),
            DISCARD_RLE => trace().map(|trace| Self::DiscardRle { early: type_specific & 0x10 != 0, trace }),
            BYTES_DISCARDED => Fixed::from_raw(raw).map(Self::BytesDiscarded),
            _ => None,
        }
    }
    /// Appends the block.
    fn write_into(&self, out: &mut Vec<u8>) {
        let rle = |out: &mut Vec<u8>, block_type, flags, trace: &RleBlock<'_>| {
            framed(out, block_type, flags | trace.thinning & 0xf, |out| trace.write_body(out));
        };
        fn fixed<T: Fixed>(out: &mut Vec<u8>, block: &T) {
            framed(out, T::TYPE, block.type_specific(), |out| block.write_body(out));
        }
        match self {
            Self::LossRle(trace) => rle(out, LOSS_RLE, 0, trace),
            Self::DuplicateRle(trace) => rle(out, DUPLICATE_RLE, 0, trace),
            Self::Rrtr(ntp) => framed(out, RRTR, 0, |out| out.extend_from_slice(&ntp.bits().to_be_bytes())),
            Self::Dlrr(entries) => framed(out, DLRR, 0, |out| entries.write_into(out)),
            Self::PostRepairLossRle(trace) => rle(out, POST_REPAIR_LOSS_RLE, 0, trace),
            Self::DiscardRle { early, trace } => rle(out, DISCARD_RLE, u8::from(*early) << 4, trace),
            Self::BytesDiscarded(block) => fixed(out, block),
            Self::ReceiptTimes(block) => {
                framed(out, RECEIPT_TIMES, block.thinning & 0xf, |out| block.write_body(out));
            }
            Self::StatisticsSummary(block) => fixed(out, block),
            Self::VoipMetrics(block) => fixed(out, block),
            Self::MeasurementInformation(block) => fixed(out, block),
            Self::DelayVariation(block) => fixed(out, block),
            Self::Delay(block) => fixed(out, block),
            Self::BurstGapLoss(block) => fixed(out, block),
            Self::BurstGapDiscard(block) => fixed(out, block),
            Self::DiscardCount(block) => fixed(out, block),
            Self::Other(raw) => {
                framed(out, raw.block_type, raw.type_specific, |out| out.extend_from_slice(raw.body));
            }
        }
    }
}

/// Appends a block with the content appended by `body`, and fills its last word with zeros.
fn framed(out: &mut Vec<u8>, block_type: u8, type_specific: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[block_type, type_specific, 0, 0]);
    body(out);
    out.resize(start + (out.len() - start).next_multiple_of(4), 0);
    let words = ((out.len() - start) / 4 - 1) as u16;
    out[start + 2..start + 4].copy_from_slice(&words.to_be_bytes());
}

/// The blocks of a report: its bytes, or a slice to be written.
#[derive(Clone, Copy)]
pub enum Blocks<'a> {
    /// Bytes validated by [`Xr::parse`].
    Wire(&'a [u8]),
    /// Blocks to write.
    Own(&'a [Block<'a>]),
}

impl<'a> Blocks<'a> {
    /// The blocks in wire order.
    pub fn iter(&self) -> impl Iterator<Item = Block<'a>> + use<'a> {
        let (wire, own) = match *self {
            Self::Wire(bytes) => (bytes, &[][..]),
            Self::Own(own) => (&[][..], own),
        };
        let mut r = Reader::new(wire, 0);
        let read = core::iter::from_fn(move || read_block(&mut r).ok().map(Block::from_raw));
        read.chain(own.iter().copied())
    }
}

impl Default for Blocks<'_> {
    fn default() -> Self {
        Self::Own(&[])
    }
}
impl PartialEq for Blocks<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl Eq for Blocks<'_> {}
impl fmt::Debug for Blocks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> Xr<'a> {
    /// Parses a report and checks that every block is complete.
    pub fn parse(raw: &RawPacket<'a>) -> Result<Self, Error> {
        let mut r = raw.reader();
        let ssrc = r.u32("XR SSRC")?;
        let blocks = Blocks::Wire(r.rest());
        while !r.is_empty() {
            read_block(&mut r)?;
        }
        Ok(Self { ssrc, blocks })
    }
    /// Appends the report; blocks beyond the range of the length field are left out.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, 0, XR, |out| {
            self.ssrc.write_into(out);
            let start = out.len();
            for block in self.blocks.iter() {
                let before = out.len();
                block.write_into(out);
                if out.len() - start > MAX_PACKET - 8 {
                    out.truncate(before);
                    break;
                }
            }
        });
    }
}

fn read_block<'a>(r: &mut Reader<'a>) -> Result<RawBlock<'a>, Error> {
    let (block_type, type_specific) = (r.u8("XR block type")?, r.u8("XR type-specific octet")?);
    let words = r.u16("XR block length")?;
    Ok(RawBlock { block_type, type_specific, body: r.take("XR block", usize::from(words) * 4)? })
}

#[cfg(test)]
mod tests;
