//! FlexFEC: XOR parity over one or more streams (RFC 8627).
//!
//! A repair packet's CSRC list has the streams, and its FEC header states for each which packets it protects: by a mask
//! of 15, 46 or 110 bits (section 4.2.2.1) or by columns and rows (section 4.2.2.2). A third variant carries a packet
//! again unchanged (section 4.2.2.3).
//!
//! The k bit has this RFC's meaning, 1 if more of the mask follows. In its drafts the meaning is reversed and the SSRCs are in
//! the FEC header; that is another format: [`super::flexfec03`].

use super::octets::Sink;
use super::parity::{FLAGS, Recovery};
use super::{Coverage, Mask, Octets, Pattern};
use crate::read::Reader;
use crate::rtp::{MAX_CSRCS, PacketView};
use crate::{Entries, Error};

/// Bytes of the FEC header before its blocks, in the two variants that have blocks.
pub const HEADER: usize = 8;
/// Range of the longest mask in packets, from the base.
pub const LONGEST_MASK: u32 = 110;

const RETRANSMISSION: u16 = 0x8000;
const FIXED: u16 = 0x4000;
/// Set in a 16 or 32-bit part of the mask if another part follows, after shifting.
const MORE: u16 = 0x8000;

/// The kind of a repair packet's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packet<'a> {
    /// The parity of some packets (R = 0).
    Repair(Repair<'a>),
    /// A source packet, unchanged from its RTP header on (R = 1, F = 0).
    Retransmission(Octets<'a>),
}

/// Parity of some packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair<'a> {
    /// The fields XORed over the protected packets.
    pub recovery: Recovery,
    /// Protected packets, by stream, in the order of the RTP header's CSRC list.
    pub blocks: Blocks<'a>,
    /// The XOR of everything after the fixed headers.
    pub payload: Octets<'a>,
}

/// The packets of one stream protected by a repair packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The stream, which the RTP header carries as a CSRC.
    pub ssrc: u32,
    /// The lowest protected sequence number (SN base).
    pub base: u16,
    /// The packets relative to the base.
    pub shape: Shape,
}

/// How a block describes its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A flexible mask, of up to [`LONGEST_MASK`] packets (F = 0).
    Mask(Mask),
    /// L and D (F = 1; section 4.2.2.2, figure 14). With `rows` 0 or 1 the next `columns` packets, else every
    /// `columns`-th packet, `rows` of them. 0 rows means that no column parity follows, 1 that it does.
    Grid {
        /// L, 1 to 255.
        columns: u8,
        /// D.
        rows: u8,
    },
}

impl Shape {
    /// The grid of `count` packets at intervals of `step`, for one-dimensional parity; `None` if there are none, or two
    /// or more at one position. Adjacent packets form a row with `rows` 0: two-dimensional parity has 1 there, so that
    /// its columns are awaited.
    pub const fn every(step: u8, count: u8) -> Option<Self> {
        match (step, count) {
            (_, 0) | (0, 2..) => None,
            // D = 1 would mean a row.
            (_, 1) => Some(Self::Grid { columns: 1, rows: 0 }),
            (1, columns) => Some(Self::Grid { columns, rows: 0 }),
            (columns, rows) => Some(Self::Grid { columns, rows }),
        }
    }
}

impl Block {
    /// The block with a mask of `sequences`; `None` if there are none, or one is not among the 110 from `base`.
    pub fn masked(ssrc: u32, base: u16, sequences: impl IntoIterator<Item = u16>) -> Option<Self> {
        let block = Self { ssrc, base, shape: Shape::Mask(Mask::covering(base, sequences)?) };
        block.is_sound().then_some(block)
    }
    /// The packets.
    pub const fn coverage(&self) -> Coverage {
        let pattern = match self.shape {
            Shape::Mask(mask) => Pattern::Mask(mask),
            Shape::Grid { columns, rows: 0 | 1 } => Pattern::Every { step: 1, count: columns },
            Shape::Grid { columns, rows } => Pattern::Every { step: columns, count: rows },
        };
        Coverage { base: self.base, pattern }
    }
    const fn is_sound(&self) -> bool {
        match self.shape {
            Shape::Mask(mask) => !mask.is_empty() && mask.span() <= LONGEST_MASK,
            Shape::Grid { columns, .. } => columns > 0,
        }
    }
    const fn is_grid(&self) -> bool {
        matches!(self.shape, Shape::Grid { .. })
    }

    fn write_into(&self, sink: &mut Sink<'_>) {
        sink.bytes(&self.base.to_be_bytes());
        match self.shape {
            Shape::Grid { columns, rows } => sink.bytes(&[columns, rows]),
            Shape::Mask(mask) => {
                // The base is the most significant bit of the mask, after the k bit.
                let (bits, span) = (mask.bits(), mask.span());
                let more = |from: u32| if span > from { MORE } else { 0 };
                let first = (bits as u16 & 0x7fff).reverse_bits() >> 1;
                sink.bytes(&(first | more(15)).to_be_bytes());
                if span > 15 {
                    let second = ((bits >> 15) as u32 & 0x7fff_ffff).reverse_bits() >> 1;
                    sink.bytes(&(second | u32::from(more(46)) << 16).to_be_bytes());
                }
                if span > 46 {
                    sink.bytes(&((bits >> 46) as u64).reverse_bits().to_be_bytes());
                }
            }
        }
    }

    fn read(ssrc: u32, grid: bool, r: &mut Reader<'_>) -> Result<Self, Error> {
        let base = r.u16("FlexFEC SN base")?;
        let offset = r.offset();
        let first = r.u16("FlexFEC mask or L and D")?;
        if grid {
            let [columns, rows] = first.to_be_bytes();
            if columns == 0 {
                return Err(Error::Value { field: "FlexFEC L", offset, value: 0, expected: "1 to 255" });
            }
            return Ok(Self { ssrc, base, shape: Shape::Grid { columns, rows } });
        }
        let mut bits = u128::from((first << 1).reverse_bits());
        if first & MORE != 0 {
            let second = r.u32("FlexFEC mask, bits 15 to 45")?;
            bits |= u128::from((second << 1).reverse_bits()) << 15;
            if second >> 31 != 0 {
                bits |= u128::from(r.u64("FlexFEC mask, bits 46 to 109")?.reverse_bits()) << 46;
            }
        }
        match bits {
            0 => Err(Error::Value { field: "FlexFEC mask", offset, value: 0, expected: "a bit set" }),
            _ => Ok(Self { ssrc, base, shape: Shape::Mask(Mask::from_bits(bits)) }),
        }
    }
}

impl<'a> Packet<'a> {
    /// Parses an RTP payload whose header has these CSRCs.
    ///
    /// # Errors
    /// If the FEC header is cut off, its variant is the reserved one (R = 1, F = 1) or its shape is (L = 0, which
    /// section 4.2.2.2 says to ignore), a block protects no packet, a repair packet has no stream, or a retransmitted
    /// packet's header is invalid.
    pub fn parse(csrcs: Entries<'a, u32>, payload: Octets<'a>) -> Result<Self, Error> {
        let mut r = Reader::new(payload.bytes, 0);
        let flags = r.u16("FlexFEC flags")?;
        match (flags & RETRANSMISSION != 0, flags & FIXED != 0) {
            (true, true) => {
                let expected = "0 to 2, 3 being reserved";
                return Err(Error::Value { field: "FlexFEC R and F", offset: 0, value: 3, expected });
            }
            // The bits form version 2, so that the source packet is unchanged.
            (true, false) => return PacketView::parse_header(payload.bytes).map(|_| Self::Retransmission(payload)),
            (false, _) => {}
        }
        let (length, timestamp) = (r.u16("FlexFEC length recovery")?, r.u32("FlexFEC TS recovery")?);
        if csrcs.len() == 0 {
            return Err(Error::Value { field: "FlexFEC CSRC count", offset: 0, value: 0, expected: "1 to 15" });
        }
        let blocks = WireBlocks { csrcs, grid: flags & FIXED != 0, bytes: r.rest() };
        for ssrc in csrcs {
            Block::read(ssrc, blocks.grid, &mut r)?;
        }
        Ok(Self::Repair(Repair {
            recovery: Recovery { flags: flags & FLAGS, timestamp, length },
            blocks: Blocks::Wire(blocks),
            payload: Octets { bytes: r.rest(), zeros: payload.zeros },
        }))
    }
    /// Parses the payload of a whole RTP packet, of which the last `zeros` bytes are carried as a length only.
    ///
    /// # Errors
    /// As for [`Packet::parse`].
    pub fn of(packet: &PacketView<'a>, zeros: u32) -> Result<Self, Error> {
        Self::parse(packet.csrcs(), Octets { bytes: packet.payload(), zeros })
    }
}

impl Repair<'_> {
    /// Appends the parity of the protected strings, and returns the number of zeros that follow.
    pub fn string_into(&self, out: &mut Vec<u8>) -> u32 {
        self.recovery.join_into(self.payload, out)
    }
    /// Appends the payload and returns the number of zeros that follow. The RTP header must have the blocks' SSRCs as
    /// its CSRCs. A mask takes the shortest form that fits.
    ///
    /// `None`, with nothing appended, if the format cannot express it: no block or more than 15, both masks and grids,
    /// a mask of no packet or with one 110 or more after the base, a grid without columns.
    #[must_use]
    pub fn write_into(&self, out: &mut Vec<u8>) -> Option<u32> {
        let grid = self.blocks.iter().next()?.is_grid();
        let sound = |b: Block| b.is_sound() && b.is_grid() == grid;
        if self.blocks.iter().nth(MAX_CSRCS).is_some() || !self.blocks.iter().all(sound) {
            return None;
        }
        let mut sink = Sink::new(out);
        let flags = self.recovery.flags & FLAGS | if grid { FIXED } else { 0 };
        sink.bytes(&flags.to_be_bytes());
        sink.bytes(&self.recovery.length.to_be_bytes());
        sink.bytes(&self.recovery.timestamp.to_be_bytes());
        self.blocks.iter().for_each(|b| b.write_into(&mut sink));
        sink.octets(self.payload);
        Some(sink.finish())
    }
}

/// The blocks of a [`Repair`]: bytes of a received one, or blocks to be written.
#[derive(Clone, Copy)]
pub enum Blocks<'a> {
    /// Blocks of a received packet, validated by [`Packet::parse`].
    Wire(WireBlocks<'a>),
    /// Blocks to write.
    Own(&'a [Block]),
}

/// Blocks inside a received packet.
#[derive(Clone, Copy, Debug)]
pub struct WireBlocks<'a> {
    csrcs: Entries<'a, u32>,
    grid: bool,
    bytes: &'a [u8],
}

impl<'a> Blocks<'a> {
    /// The blocks in the order of the CSRC list.
    pub fn iter(&self) -> BlockIter<'a> {
        BlockIter(*self)
    }
}
impl PartialEq for Blocks<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl Eq for Blocks<'_> {}
impl core::fmt::Debug for Blocks<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Iterator over [`Blocks`].
#[derive(Clone, Copy, Debug)]
pub struct BlockIter<'a>(Blocks<'a>);

impl Iterator for BlockIter<'_> {
    type Item = Block;
    fn next(&mut self) -> Option<Block> {
        match &mut self.0 {
            Blocks::Wire(wire) => {
                let mut r = Reader::new(wire.bytes, 0);
                let block = Block::read(wire.csrcs.next()?, wire.grid, &mut r).ok()?;
                wire.bytes = r.rest();
                Some(block)
            }
            Blocks::Own(own) => {
                let (first, rest) = own.split_first()?;
                *own = rest;
                Some(*first)
            }
        }
    }
}

#[cfg(test)]
mod tests;
