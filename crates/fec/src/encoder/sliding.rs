//! The encoding window of a sliding-window code (RFC 8681, section 3.3).

use std::collections::VecDeque;

use super::Packet;
use crate::buffers::Buffers;
use crate::{Combination, Coverage, RlcField, Symbol, reed_solomon};

/// The source packets of which the next repair packet is made, oldest first, and its key.
#[derive(Debug, Default)]
pub(super) struct Window {
    packets: VecDeque<(u64, Packet)>,
    /// Repair packets made of the open group.
    pub(super) made: usize,
    key: u16,
    coefficients: Vec<u8>,
}

/// A repair symbol, and how it was made.
pub(super) struct Combined {
    pub(super) coverage: Coverage,
    pub(super) combination: Combination,
    pub(super) buffer: Vec<u8>,
    pub(super) zeros: u32,
}

impl Window {
    /// Adds a source packet. The oldest ones leave: those beyond `size`, and those too far back for a [`Coverage`].
    pub(super) fn push(&mut self, sequence: u64, symbol: Symbol<'_>, size: usize, pool: &mut Buffers) {
        let mut bytes = pool.take(symbol.bytes.len());
        bytes.extend_from_slice(symbol.bytes);
        self.packets.push_back((sequence, Packet { bytes, zeros: symbol.zeros }));
        while let Some((first, _)) = self.packets.front()
            && (self.packets.len() > size || sequence - first >= Coverage::SPAN)
        {
            self.drop_first(pool);
        }
    }
    /// The next repair symbol; `None` if the window is empty.
    pub(super) fn combine(&mut self, density: u8, field: RlcField, pool: &mut Buffers) -> Option<Combined> {
        let &(first, _) = self.packets.front()?;
        let mut coverage = Coverage::new(first);
        let (mut len, mut total) = (0, 0);
        for (sequence, packet) in &self.packets {
            coverage.insert(*sequence);
            len = len.max(packet.bytes.len());
            total = total.max(packet.bytes.len() + packet.zeros as usize);
        }
        // Over GF(2) without zeros the key is not read, and zero (section 5.1.3).
        let has_key = field != RlcField::Gf2 || density < crate::rlc::DENSEST;
        let combination = Combination { key: if has_key { self.key } else { 0 }, density, field };
        self.key = self.key.wrapping_add(1);
        self.coefficients.resize(self.packets.len(), 0);
        combination.coefficients(&mut self.coefficients);
        let mut output = [pool.take_filled(len)];
        let sources = self.packets.iter().map(|(_, packet)| packet.bytes.as_slice());
        reed_solomon::combine(&self.coefficients, sources, &mut output);
        let [buffer] = output;
        // At most the longest packet's own zeros.
        Some(Combined { coverage, combination, buffer, zeros: (total - len) as u32 })
    }
    fn drop_first(&mut self, pool: &mut Buffers) {
        if let Some((_, packet)) = self.packets.pop_front() {
            pool.put(packet.bytes, usize::MAX);
        }
    }
    /// Empties the window.
    pub(super) fn forget(&mut self, pool: &mut Buffers) {
        while !self.packets.is_empty() {
            self.drop_first(pool);
        }
        self.made = 0;
    }
}
