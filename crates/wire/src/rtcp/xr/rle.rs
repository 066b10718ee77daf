//! Run-length encoded traces: one bit per packet of a range (RFC 3611, section 4.1).

use crate::read::{be16, be32};
use crate::{Entry, List};

/// Greatest range of one block: 65,534 or more must not be reported (section 4.1).
pub const MAX_RANGE: u16 = 65_533;
/// Bytes of a block without its chunks, block header included.
pub const RLE_HEADER: usize = 12;
/// The longest run in a chunk.
pub const MAX_RUN: u16 = 0x3fff;
/// Packets of a bit vector chunk.
const VECTOR: u16 = 15;

/// A trace of one bit per packet: the content of the Loss, Duplicate, Post-repair Loss and Discard RLE blocks.
///
/// The bit's meaning depends on the block: see [`Block`](super::Block).
///
/// ```
/// use weir_wire::rtcp::xr::{Block, Blocks, RleBlock, Xr};
/// let (received, mut chunks) = ([true, true, false, true], vec![]);
/// let trace = RleBlock::encode(7, 65_534, 0, received, 1_000, &mut chunks);
/// assert!(trace.packets().eq([(65_534, true), (65_535, true), (0, false), (1, true)]));
/// let mut out = vec![];
/// Xr { ssrc: 1, blocks: Blocks::Own(&[Block::LossRle(trace)]) }.write_into(&mut out);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RleBlock<'a> {
    /// The source of the packets.
    pub ssrc: u32,
    /// The first sequence number of the range.
    pub begin: u16,
    /// The one after the last, so that an empty range has `begin == end`.
    pub end: u16,
    /// Thinning, 0 to 15: only sequence numbers that are multiples of 2^thinning are reported.
    pub thinning: u8,
    /// The chunks, excluding a null chunk that fills the last word: parsing removes it and writing adds it.
    pub chunks: List<'a, Chunk>,
}

/// Sixteen bits that describe several packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk(u16);

/// The meaning of a [`Chunk`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkKind {
    /// The same bit for 0 to 16,383 packets. The RFC forbids 0.
    Run {
        /// The bit.
        bit: bool,
        /// Number of packets.
        length: u16,
    },
    /// Fifteen bits, the first packet's being the most significant.
    Vector(u16),
    /// The end.
    Null,
}

impl Chunk {
    /// The chunk that ends a block.
    pub const NULL: Self = Self(0);

    /// The same bit for 1 to [`MAX_RUN`] packets; `None` for other lengths.
    pub const fn run(bit: bool, length: u16) -> Option<Self> {
        if length == 0 || length > MAX_RUN { None } else { Some(Self((bit as u16) << 14 | length)) }
    }
    /// Fifteen bits, the first packet's on top; the sixteenth is ignored.
    pub const fn vector(bits: u16) -> Self {
        Self(0x8000 | bits)
    }
    /// The bits in a packet.
    pub const fn bits(self) -> u16 {
        self.0
    }
    /// From the bits in a packet.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
    /// Its meaning.
    pub const fn kind(self) -> ChunkKind {
        match self.0 {
            0 => ChunkKind::Null,
            bits if bits & 0x8000 != 0 => ChunkKind::Vector(bits & 0x7fff),
            bits => ChunkKind::Run { bit: bits & 0x4000 != 0, length: bits & MAX_RUN },
        }
    }
}

impl Entry for Chunk {
    const SIZE: usize = 2;
    #[inline]
    fn read(bytes: &[u8]) -> Self {
        Self(be16(bytes, 0))
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0.to_be_bytes());
    }
}

/// Distance from `begin` to the first multiple of 2^`thinning` at or after it. Sequence numbers wrap at a multiple.
const fn to_next(begin: u16, thinning: u8) -> u16 {
    let step = 1u16 << (thinning & 0xf);
    begin.wrapping_neg() & (step - 1)
}

/// Number of multiples of 2^`thinning` in a range.
pub(super) const fn reported(begin: u16, end: u16, thinning: u8) -> u16 {
    let (range, first) = (end.wrapping_sub(begin), to_next(begin, thinning));
    if first >= range { 0 } else { ((range - 1 - first) >> (thinning & 0xf)) + 1 }
}

/// The multiples of 2^`thinning` in a range.
pub(super) fn sequences(begin: u16, end: u16, thinning: u8) -> impl Iterator<Item = u16> {
    let (first, step) = (begin.wrapping_add(to_next(begin, thinning)), 1u16 << (thinning & 0xf));
    (0..reported(begin, end, thinning)).map(move |i| first.wrapping_add(i.wrapping_mul(step)))
}

impl<'a> RleBlock<'a> {
    /// The trace in a block's content; `None` if it is too short.
    pub(super) fn from_body(type_specific: u8, body: &'a [u8]) -> Option<Self> {
        let (head, mut chunks) = body.split_at_checked(RLE_HEADER - 4)?;
        if let [rest @ .., 0, 0] = chunks {
            chunks = rest;
        }
        Some(Self {
            ssrc: be32(head, 0),
            begin: be16(head, 4),
            end: be16(head, 6),
            thinning: type_specific & 0xf,
            chunks: List::from_wire(chunks),
        })
    }
    pub(super) fn write_body(&self, out: &mut Vec<u8>) {
        self.ssrc.write_into(out);
        out.extend_from_slice(&self.begin.to_be_bytes());
        out.extend_from_slice(&self.end.to_be_bytes());
        self.chunks.write_into(out);
    }

    /// Number of packets in the range after thinning.
    pub const fn reported(&self) -> u16 {
        reported(self.begin, self.end, self.thinning)
    }

    /// Sequence number and bit of every reported packet, in order.
    ///
    /// Bits beyond the range are ignored, and the trace ends early if chunks are missing or at a null chunk, so there
    /// are at most [`RleBlock::reported`] of them. That may be many: a report of 1,500 bytes can hold 90 blocks of
    /// 65,000 packets each, so iterate only for own sources and ranges as long as what was sent.
    pub fn packets(&self) -> impl Iterator<Item = (u16, bool)> + use<'a> {
        // The loop ends with the chunks at the latest, and every second iteration yields a packet.
        let mut chunks = self.chunks.iter();
        let mut current = Bits::Vector { bits: 0, left: 0 };
        let bits = core::iter::from_fn(move || {
            loop {
                if let Some(bit) = current.next() {
                    return Some(bit);
                }
                current = match chunks.next()?.kind() {
                    ChunkKind::Null => return None,
                    ChunkKind::Run { bit, length } => Bits::Run { bit, left: length },
                    ChunkKind::Vector(bits) => Bits::Vector { bits, left: VECTOR },
                };
            }
        });
        sequences(self.begin, self.end, self.thinning).zip(bits)
    }

    /// Makes a trace of `bits`, one for each sequence number from `begin` (including those that thinning drops), in the
    /// fewest chunks.
    ///
    /// The block including its header has at most `max_size` bytes (`max-size` of RFC 3611, section 5.1): bits beyond
    /// that or beyond [`MAX_RANGE`] are left out, and [`RleBlock::end`] shows where. Below 16 bytes the trace is empty.
    /// `chunks` is cleared and receives the chunks.
    pub fn encode(
        ssrc: u32,
        begin: u16,
        thinning: u8,
        bits: impl IntoIterator<Item = bool>,
        max_size: usize,
        chunks: &'a mut Vec<Chunk>,
    ) -> Self {
        chunks.clear();
        let thinning = thinning & 0xf;
        // Chunks are written in pairs.
        let most = max_size.saturating_sub(RLE_HEADER) / 4 * 2;
        let mask = (1u16 << thinning) - 1;
        let mut encoder = Encoder { chunks, most, run: 0, bits: 0 };
        let mut end = begin;
        for bit in bits.into_iter().take(MAX_RANGE.into()) {
            if end & mask == 0 && !encoder.push(bit) {
                break;
            }
            end = end.wrapping_add(1);
        }
        encoder.flush();
        let chunks = &*chunks;
        Self { ssrc, begin, end: if most == 0 { begin } else { end }, thinning, chunks: chunks.into() }
    }
}

/// The remaining bits of a chunk.
enum Bits {
    Run { bit: bool, left: u16 },
    Vector { bits: u16, left: u16 },
}

impl Bits {
    #[inline]
    fn next(&mut self) -> Option<bool> {
        match self {
            Self::Run { left: 0, .. } | Self::Vector { left: 0, .. } => None,
            Self::Run { bit, left } => {
                *left -= 1;
                Some(*bit)
            }
            Self::Vector { bits, left } => {
                *left -= 1;
                Some(*bits >> *left & 1 != 0)
            }
        }
    }
}

/// Takes the chunk that covers the most packets each time: since every chunk may also be cut at its front, no other
/// choice needs fewer.
struct Encoder<'c> {
    chunks: &'c mut Vec<Chunk>,
    most: usize,
    /// Packets not yet in a chunk; 15 and more are all equal.
    run: u16,
    /// Their bits, the latest lowest. In a run all are equal, so only the lowest counts.
    bits: u16,
}

impl Encoder<'_> {
    /// Takes a bit; `false` if there is no room.
    fn push(&mut self, bit: bool) -> bool {
        let alike = self.run > 0 && self.is_run() && (self.bits & 1 != 0) == bit;
        let full = if alike { self.run == MAX_RUN } else { self.run >= VECTOR };
        if full {
            self.flush();
        }
        if self.run == 0 && self.chunks.len() >= self.most {
            return false;
        }
        self.bits = self.bits << 1 | u16::from(bit);
        self.run += 1;
        true
    }
    /// Whether all pending bits are equal.
    const fn is_run(&self) -> bool {
        let all = if self.run >= VECTOR { 0x7fff } else { (1 << self.run) - 1 };
        let bits = self.bits & all;
        bits == 0 || bits == all
    }
    fn flush(&mut self) {
        if self.run > 0 {
            // A vector is used only if bits differ, so that the remainder is a run.
            let chunk = if self.is_run() { Chunk::run(self.bits & 1 != 0, self.run) } else { None };
            let left = VECTOR.saturating_sub(self.run);
            self.chunks.push(chunk.unwrap_or(Chunk::vector(self.bits << left)));
        }
        (self.run, self.bits) = (0, 0);
    }
}

#[cfg(test)]
mod tests;
