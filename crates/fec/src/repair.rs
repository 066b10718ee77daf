//! What leaves an encoder and enters a repair window.

use crate::{Coverage, Symbol};

/// How a repair symbol was made of the covered packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// Their exclusive or. The shape is for packet headers that tell it; a repair window does not look at it.
    Parity(Shape),
    /// A row of a Reed-Solomon code, whose encoding symbols 0 to `sources - 1` are the covered packets in the order of
    /// their sequence numbers (RFC 6865).
    ReedSolomon {
        /// k: source packets of the block, as many as are covered.
        sources: u8,
        /// m: repair packets of the block, where known: what does not fit is refused, it decides nothing else.
        repairs: u8,
        /// The repair symbol's number from 0; its encoding symbol id is `sources + row`.
        row: u8,
    },
}

impl Code {
    /// Parity over whatever is covered, as a receiver that got a mask knows it.
    pub const PARITY: Self = Self::Parity(Shape::Group);
}

/// What of a parity scheme a repair packet is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Packets that follow one another.
    Group,
    /// A row of a two-dimensional block.
    Row,
    /// A column: packets `columns` apart, where all sequence numbers of the block were protected.
    Column {
        /// L.
        columns: u8,
    },
}

/// A repair packet's contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair<'a> {
    /// What it protects.
    pub coverage: Coverage,
    /// How.
    pub code: Code,
    /// The repair symbol: as long as the longest covered packet.
    pub symbol: Symbol<'a>,
}

/// A source packet that was lost and found again.
///
/// It is as long as the longest packet of its block: what protects packets of several lengths protects their lengths
/// too (the length recovery fields of RFC 5109 and RFC 8627; the length of an ADU in RFC 6865) and cuts this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovered<'a> {
    /// The packet's number.
    pub sequence: u64,
    /// Its contents, and zeros up to the longest packet of its block.
    pub symbol: Symbol<'a>,
}
