//! Output of an encoder and input of a repair window.

use crate::{Combination, Coverage, Symbol};

/// How a repair symbol was computed from the covered packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// Their XOR. The shape is for packet headers that signal it; a repair window ignores it.
    Parity(Shape),
    /// A row of a Reed-Solomon code, whose encoding symbols 0 to `sources - 1` are the covered packets in the order of
    /// their sequence numbers (RFC 6865).
    ReedSolomon {
        /// k: source packets of the block, equal to the number covered.
        sources: u8,
        /// m: repair packets of the block, if known; only used to reject rows out of range.
        repairs: u8,
        /// The repair symbol's number from 0; its encoding symbol ID is `sources + row`.
        row: u8,
    },
    /// A combination of the covered packets by coefficients in the order of their sequence numbers (RFC 8681).
    Rlc(Combination),
}

impl Code {
    /// Parity over any packets, as known to a receiver from a mask.
    pub const PARITY: Self = Self::Parity(Shape::Group);
}

/// The part of a parity scheme covered by a repair packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Consecutive packets.
    Group,
    /// A row of a two-dimensional block.
    Row,
    /// A column: packets at intervals of `columns`, if all sequence numbers of the block were protected.
    Column {
        /// L.
        columns: u8,
    },
}

/// A repair packet's contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repair<'a> {
    /// The packets that it protects.
    pub coverage: Coverage,
    /// The code.
    pub code: Code,
    /// The repair symbol, as long as the longest covered packet.
    pub symbol: Symbol<'a>,
}

/// A recovered source packet.
///
/// It is as long as the longest packet of its block: a format that protects packets of several lengths also protects
/// their lengths (the length recovery fields of RFC 5109 and RFC 8627; the length of an ADU in RFC 6865) and truncates
/// it accordingly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Recovered<'a> {
    /// The packet's sequence number.
    pub sequence: u64,
    /// Its contents, extended by zeros to the longest packet of its block.
    pub symbol: Symbol<'a>,
}
