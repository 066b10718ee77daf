//! Source packets that a sender keeps, to combine any of them when it learns that it should.
//!
//! An [`Encoder`](crate::Encoder) makes repair packets as source packets come. A policy that decides later (at the end of a frame, or when
//! packets are reported lost) names the packets instead.

use std::collections::VecDeque;

use crate::buffers::Buffers;
use crate::rlc::DENSEST;
use crate::{Code, Combination, Coverage, Repair, RlcField, Symbol, reed_solomon};

/// The newest source packets of a stream.
#[derive(Debug)]
pub struct SourceHistory {
    packets: VecDeque<Kept>,
    /// Most packets kept.
    limit: usize,
    /// Most bytes of buffers held.
    bytes: usize,
    key: u16,
    pool: Buffers,
    coefficients: Vec<u8>,
    symbol: Vec<u8>,
}

#[derive(Debug)]
struct Kept {
    sequence: u64,
    bytes: Vec<u8>,
    zeros: u32,
}

impl SourceHistory {
    /// Keeps at most so many packets, within so many bytes of memory; the newest is always kept.
    pub fn new(limit: usize, bytes: usize) -> Self {
        Self {
            packets: VecDeque::new(),
            limit: limit.max(1),
            bytes,
            key: 0,
            pool: Buffers::default(),
            coefficients: Vec::new(),
            symbol: Vec::new(),
        }
    }

    /// Adds the next source packet. Sequence numbers rise; others are ignored.
    pub fn push(&mut self, sequence: u64, symbol: Symbol<'_>) {
        if self.packets.back().is_some_and(|last| sequence <= last.sequence) {
            return;
        }
        let mut bytes = self.pool.take(symbol.bytes.len());
        bytes.extend_from_slice(symbol.bytes);
        self.packets.push_back(Kept { sequence, bytes, zeros: symbol.zeros });
        while self.packets.len() > 1 && (self.packets.len() > self.limit || self.pool.held() > self.bytes) {
            let Some(old) = self.packets.pop_front() else { return };
            self.pool.put(old.bytes, usize::MAX);
            self.pool.trim(self.bytes);
        }
    }

    /// Forgets all packets.
    pub fn clear(&mut self) {
        while let Some(old) = self.packets.pop_front() {
            self.pool.put(old.bytes, self.bytes);
        }
    }

    /// Packets kept.
    pub fn len(&self) -> usize {
        self.packets.len()
    }
    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    /// Bytes of memory for packets.
    pub const fn held_bytes(&self) -> usize {
        self.pool.held()
    }

    /// Whether any of these packets is kept.
    pub fn has_any(&self, wanted: &Coverage) -> bool {
        let Some(from) = wanted.first() else { return false };
        let start = self.packets.partition_point(|kept| kept.sequence < from);
        self.packets
            .range(start..)
            .take_while(|k| wanted.last().is_some_and(|last| k.sequence <= last))
            .any(|k| wanted.contains(k.sequence))
    }
    /// The next repair symbol of those packets of `wanted` that are kept, over GF(2^8) with all coefficients nonzero (RFC 8681, section
    /// 3.6), of 255 packets at most; each has another key. `None` if none is kept.
    pub fn combine(&mut self, wanted: &Coverage) -> Option<Repair<'_>> {
        let from = wanted.first()?;
        let start = self.packets.partition_point(|kept| kept.sequence < from);
        let covered =
            || self.packets.range(start..).take_while(|k| wanted.last().is_some_and(|last| k.sequence <= last));
        // As many as the sum takes.
        let covered = || covered().filter(|k| wanted.contains(k.sequence)).take(reed_solomon::MAX_BLOCK);
        let mut coverage = Coverage::new(covered().next()?.sequence);
        let (mut len, mut total) = (0, 0);
        for kept in covered() {
            coverage.insert(kept.sequence);
            len = len.max(kept.bytes.len());
            total = total.max(kept.bytes.len() + kept.zeros as usize);
        }
        let combination = Combination { key: self.key, density: DENSEST, field: RlcField::Gf256 };
        self.key = self.key.wrapping_add(1);
        self.coefficients.resize(coverage.len(), 0);
        combination.coefficients(&mut self.coefficients);
        let mut output = [std::mem::take(&mut self.symbol)];
        output[0].clear();
        output[0].resize(len, 0);
        reed_solomon::combine(&self.coefficients, covered().map(|kept| kept.bytes.as_slice()), &mut output);
        [self.symbol] = output;
        // At most the longest packet's own zeros.
        let zeros = (total - len) as u32;
        Some(Repair { coverage, code: Code::Rlc(combination), symbol: Symbol { bytes: &self.symbol, zeros } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RepairWindow, WindowLimits};
    use proptest::prelude::*;
    use weir_units::Timestamp;

    #[test]
    fn memory_is_bounded_by_packets_and_by_bytes() {
        let mut history = SourceHistory::new(10, 1 << 20);
        for sequence in 0..100 {
            history.push(sequence, Symbol::new(&[1; 700]));
        }
        assert_eq!((history.len(), history.held_bytes() <= 11 * 768), (10, true));
        let mut history = SourceHistory::new(1_000, 4_096);
        for sequence in 0..100 {
            history.push(sequence, Symbol::new(&vec![1; 500 + 10 * sequence as usize]));
            history.push(sequence, Symbol::new(&[1; 2_000]));
        }
        assert!(history.held_bytes() <= 4_096 + 1_536 && !history.is_empty(), "{}", history.held_bytes());
        history.clear();
        assert!(history.is_empty() && history.combine(&Coverage::every(90, 1, 20)).is_none());
    }

    #[test]
    fn packets_that_are_gone_are_left_out() {
        let mut history = SourceHistory::new(3, 1 << 20);
        for sequence in 10..20 {
            history.push(sequence, Symbol::new(&[sequence as u8]));
        }
        let repair = history.combine(&Coverage::every(5, 2, 8)).expect("17 and 19 are kept");
        assert_eq!(repair.coverage.iter().collect::<Vec<_>>(), [17, 19]);
        assert!(history.combine(&Coverage::every(5, 1, 3)).is_none());
    }

    proptest! {
        /// Any packets named in any order of loss come back whole from as many repair symbols as were lost.
        #[test]
        fn lost_packets_come_back_from_as_many_combinations(
            lengths in proptest::collection::vec((1usize..90, 0u32..40), 2..60),
            lost in proptest::collection::btree_set(0u64..60, 1..6),
            more in proptest::collection::btree_set(0u64..60, 0..20),
        ) {
            let mut history = SourceHistory::new(256, 1 << 20);
            let mut window = RepairWindow::new(WindowLimits::default());
            let now = Timestamp::from_millis(1);
            let count = lengths.len() as u64;
            let bytes = |s: u64| (0..lengths[s as usize].0).map(|i| (i as u64 * 7 + s * 31 + 1) as u8).collect::<Vec<_>>();
            let lost: Vec<u64> = lost.into_iter().filter(|s| *s < count - 1).collect();
            let mut wanted = Coverage::new(100);
            for s in lost.iter().copied().chain(more.into_iter().filter(|s| *s < count)) {
                wanted.insert(100 + s);
            }
            for s in 0..count {
                let own = bytes(s);
                let symbol = Symbol { bytes: &own, zeros: lengths[s as usize].1 };
                history.push(100 + s, symbol);
                if !lost.contains(&s) {
                    window.on_source(now, 100 + s, symbol);
                }
            }
            // One in 255 combinations is not independent.
            for _ in 0..lost.len() + 3 {
                if let Some(repair) = history.combine(&wanted) {
                    window.on_repair(now, repair);
                }
            }
            let mut back = std::collections::BTreeMap::new();
            while let Some(r) = window.poll_recovered() {
                back.insert(r.sequence - 100, r.symbol.bytes.to_vec());
            }
            prop_assert_eq!(back.keys().copied().collect::<Vec<_>>(), lost.clone());
            for s in lost {
                prop_assert_eq!(&back[&s][..lengths[s as usize].0], &bytes(s)[..]);
            }
        }
    }
}
