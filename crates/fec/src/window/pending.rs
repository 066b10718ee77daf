//! Repair packets waiting for source packets, and recovery from them.

use weir_units::Timestamp;

use super::sources::Sources;
use crate::buffers::Buffers;
use crate::{Code, Coverage, Repair};
use crate::{reed_solomon, sum};

/// A waiting repair packet.
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
    /// Adds available packets of the set; returns `false` if one cannot belong to it.
    fn add(&mut self, set: &Coverage, sources: &Sources, pool: &mut Buffers) -> bool {
        let len = self.len();
        let mut longest = self.bytes.len();
        for sequence in set.iter() {
            let Some(bytes) = sources.within(sequence, len) else { return false };
            longest = longest.max(bytes.len());
        }
        pool.grow(&mut self.bytes, longest);
        self.bytes.resize(longest, 0);
        sum::add_all(&mut self.bytes, set.iter().filter_map(|sequence| sources.within(sequence, len)));
        self.zeros = (len - self.bytes.len()) as u32;
        true
    }
}

/// Repair packets over the same source packets by the same code; a single one for parity.
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
    /// Whether the repair packet is already here.
    pub(super) fn has(&self, code: Code) -> bool {
        self.rows.iter().any(|known| match (known.code, code) {
            (Code::Parity(_), Code::Parity(_)) => true,
            (Code::ReedSolomon { row: a, .. }, Code::ReedSolomon { row: b, .. }) => a == b,
            _ => false,
        })
    }
    /// Whether there are enough repair packets for the unknown ones.
    pub(super) fn can_solve(&self, unknown: &Coverage) -> bool {
        unknown.len() <= self.rows.len()
    }
    /// Converts the first rows to the unknown packets, in order of their sequence numbers. Returns their number, or
    /// `None` if a row contradicts an available packet or another row.
    pub(super) fn solve(
        &mut self,
        unknown: &Coverage,
        sources: &Sources,
        pool: &mut Buffers,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        match self.rows.first()?.code {
            Code::Parity(_) => {
                let known = self.coverage.without(unknown.mask());
                self.rows[0].add(&known, sources, pool).then_some(1)
            }
            Code::ReedSolomon { sources: k, .. } => self.interpolate(k, unknown, sources, pool, scratch),
            // In no block.
            Code::Rlc(_) => None,
        }
    }

    fn interpolate(
        &mut self,
        k: u8,
        unknown: &Coverage,
        sources: &Sources,
        pool: &mut Buffers,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        let wanted = unknown.len();
        let total = self.rows[0].len();
        let rows = &self.rows[..wanted];
        let mut len = rows.iter().map(|row| row.bytes.len()).max().unwrap_or(0);
        let known = || self.coverage.iter().zip(0_u8..).filter(|(sequence, _)| !unknown.contains(*sequence));
        for (sequence, _) in known() {
            len = len.max(sources.within(sequence, total)?.len());
        }
        if rows.iter().any(|row| row.len() != total) {
            return None;
        }
        let Scratch { known: known_ids, wanted: wanted_ids, coefficients, outputs } = scratch;
        known_ids.clear();
        known_ids.extend(known().map(|(_, id)| id));
        for row in rows {
            let Code::ReedSolomon { row, .. } = row.code else { return None };
            known_ids.push(k.checked_add(row)?);
        }
        wanted_ids.clear();
        wanted_ids.extend(self.coverage.iter().zip(0_u8..).filter(|(s, _)| unknown.contains(*s)).map(|(_, id)| id));
        coefficients.clear();
        reed_solomon::interpolate(known_ids, wanted_ids, coefficients);
        outputs.extend(std::iter::repeat_with(|| pool.take_filled(len)).take(wanted));
        let symbols = known().map(|(sequence, _)| sources.within(sequence, total).unwrap_or_default());
        let symbols = symbols.chain(rows.iter().map(|row| row.bytes.as_slice()));
        reed_solomon::combine(coefficients, symbols, outputs);
        for (row, output) in self.rows.iter_mut().zip(outputs.drain(..)) {
            pool.put(std::mem::replace(&mut row.bytes, output), usize::MAX);
            row.zeros = (total - len) as u32;
        }
        Some(wanted)
    }
}

/// Memory for a decoding, empty or of no meaning between calls.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    known: Vec<u8>,
    wanted: Vec<u8>,
    coefficients: Vec<u8>,
    outputs: Vec<Vec<u8>>,
}
