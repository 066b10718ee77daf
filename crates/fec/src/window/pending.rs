//! Repair packets that wait for source packets, and how they give lost ones back.

use weir_units::Timestamp;

use super::sources::Sources;
use crate::buffers::Buffers;
use crate::sum;
use crate::{Code, Coverage, Repair};

/// A repair packet that waits.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) code: Code,
    pub(super) bytes: Vec<u8>,
    pub(super) zeros: u32,
}

impl Row {
    const fn len(&self) -> usize {
        self.bytes.len().saturating_add(self.zeros as usize)
    }
    /// Adds packets of the set that are at hand; false if one is longer than this.
    fn add(&mut self, set: &Coverage, sources: &Sources, pool: &mut Buffers) -> bool {
        let len = self.len();
        for source in set.iter().filter_map(|sequence| sources.get(sequence)) {
            if source.len() > len {
                return false;
            }
            sum::add(&mut self.bytes, source.bytes, pool);
        }
        self.zeros = (len - self.bytes.len()) as u32;
        true
    }
}

/// Repair packets over the same source packets by the same code: one if it is parity.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) coverage: Coverage,
    /// Arrival of the first.
    pub(super) at: Timestamp,
    pub(super) rows: Vec<Row>,
}

impl Block {
    /// Whether a repair packet belongs here.
    pub(super) fn is_of(&self, repair: &Repair<'_>) -> bool {
        let parity = |code| matches!(code, Code::Parity(_));
        self.coverage == repair.coverage && self.rows.iter().all(|row| parity(row.code) == parity(repair.code))
    }
    /// Whether the repair packet is here already.
    pub(super) fn has(&self, code: Code) -> bool {
        self.rows.iter().any(|known| match (known.code, code) {
            (Code::Parity(_), Code::Parity(_)) => true,
            (Code::ReedSolomon { row: a, .. }, Code::ReedSolomon { row: b, .. }) => a == b,
            _ => false,
        })
    }
    /// Whether there are enough repair packets for what is unknown.
    pub(super) fn can_solve(&self, unknown: &Coverage) -> bool {
        unknown.len() <= self.rows.len()
    }
    /// Turns the first rows into the unknown packets, in order of their sequence numbers. Returns how many, or `None`
    /// if a row contradicts a packet at hand.
    pub(super) fn solve(&mut self, unknown: &Coverage, sources: &Sources, pool: &mut Buffers) -> Option<usize> {
        let known = self.coverage.without(unknown.mask());
        match self.rows.first_mut()? {
            row @ Row { code: Code::Parity(_), .. } => row.add(&known, sources, pool).then_some(1),
            _ => None,
        }
    }
}
