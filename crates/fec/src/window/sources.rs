//! Available packets, and a record of earlier ones.

use std::collections::VecDeque;

use weir_units::{TimeDelta, Timestamp};

use crate::{Coverage, Symbol};

/// Origin of an available packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    Received,
    Recovered,
}

/// State of a sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Knowledge {
    /// Not received or recovered so far.
    Unseen,
    /// Available.
    Here(Origin),
    /// It was received, and its bytes have been dropped.
    Gone,
    /// Too old to know.
    Forgotten,
}

#[derive(Debug, Default)]
struct Slot {
    sequence: u64,
    bytes: Vec<u8>,
    zeros: u32,
    at: Timestamp,
    origin: Option<Origin>,
}

/// Bits for 64 sequence numbers, from `64 * number`.
#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    number: u64,
    /// Received or recovered.
    seen: u64,
    /// Stored in a slot.
    here: u64,
    /// Known to be finally lost.
    lost: u64,
}

/// A ring of packets by sequence number, and a longer one of bits for them.
///
/// A slot or chunk belongs to the highest sequence number that has requested it, so that lower ones are known to be old
/// and never count as unseen.
#[derive(Debug)]
pub(crate) struct Sources {
    slots: Vec<Slot>,
    chunks: Vec<Chunk>,
    /// One entry per stored packet in order of storing; those whose slot has been reused since do not count.
    order: VecDeque<(Timestamp, u64)>,
    packets: usize,
    highest: Option<u64>,
}

impl Sources {
    /// Ratio of packets remembered to packets kept.
    const MEMORY: usize = 4;

    pub(crate) fn new(packets: usize) -> Self {
        let slots = packets.clamp(64, 1 << 16).next_power_of_two();
        Self {
            slots: std::iter::repeat_with(Slot::default).take(slots).collect(),
            chunks: vec![Chunk::default(); slots * Self::MEMORY / 64],
            order: VecDeque::new(),
            packets: packets.clamp(1, 1 << 16),
            highest: None,
        }
    }

    pub(crate) const fn highest(&self) -> Option<u64> {
        self.highest
    }
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
    pub(crate) fn is_full(&self) -> bool {
        self.order.len() >= self.packets
    }
    const fn slot(&self, sequence: u64) -> usize {
        sequence as usize & (self.slots.len() - 1)
    }
    const fn chunk(&self, number: u64) -> usize {
        number as usize & (self.chunks.len() - 1)
    }

    pub(crate) fn knowledge(&self, sequence: u64) -> Knowledge {
        let chunk = self.chunks[self.chunk(sequence / 64)];
        let bit = 1_u64 << (sequence % 64);
        if chunk.number > sequence / 64 {
            Knowledge::Forgotten
        } else if chunk.number < sequence / 64 || chunk.seen & bit == 0 {
            Knowledge::Unseen
        } else if chunk.here & bit == 0 {
            Knowledge::Gone
        } else {
            self.slots[self.slot(sequence)].origin.map_or(Knowledge::Gone, Knowledge::Here)
        }
    }
    /// The packets of a set that are not available, and those of them that were never received: (unknown, missing).
    pub(crate) fn gaps(&self, set: &Coverage) -> (Coverage, Coverage) {
        let (first, shift) = (set.base() / 64, set.base() % 64);
        let bits = |i: u64| {
            let number = first.wrapping_add(i);
            let chunk = self.chunks[self.chunk(number)];
            match chunk.number.cmp(&number) {
                std::cmp::Ordering::Less => (0, 0),
                std::cmp::Ordering::Equal => (chunk.here, chunk.seen),
                std::cmp::Ordering::Greater => (0, u64::MAX),
            }
        };
        let (mut here, mut seen) = ([0; 4], [0; 4]);
        let mut low = bits(0);
        for i in 0..4 {
            let high = bits(i as u64 + 1);
            let join = |l: u64, h: u64| if shift == 0 { l } else { l >> shift | h << (64 - shift) };
            here[i] = join(low.0, high.0);
            seen[i] = join(low.1, high.1);
            low = high;
        }
        (set.without(here), set.without(seen))
    }

    /// The bits for a sequence number, unless they belong to a higher one.
    fn claim(&mut self, sequence: u64) -> Option<(&mut Chunk, u64)> {
        let (number, i) = (sequence / 64, self.chunk(sequence / 64));
        let chunk = &mut self.chunks[i];
        if chunk.number > number {
            return None;
        }
        if chunk.number < number {
            *chunk = Chunk { number, ..Chunk::default() };
        }
        Some((chunk, 1 << (sequence % 64)))
    }
    /// Records that a packet was received.
    pub(crate) fn see(&mut self, sequence: u64) {
        self.highest = self.highest.max(Some(sequence));
        if let Some((chunk, bit)) = self.claim(sequence) {
            chunk.seen |= bit;
        }
    }
    /// Records that a packet was finally lost; returns whether that is new.
    pub(crate) fn give_up(&mut self, sequence: u64) -> bool {
        self.claim(sequence).is_some_and(|(chunk, bit)| {
            let news = (chunk.lost | chunk.seen) & bit == 0;
            chunk.lost |= bit;
            news
        })
    }

    /// The packet, if available.
    pub(crate) fn get(&self, sequence: u64) -> Option<Symbol<'_>> {
        let slot = &self.slots[self.slot(sequence)];
        (slot.sequence == sequence && slot.origin.is_some()).then_some(Symbol { bytes: &slot.bytes, zeros: slot.zeros })
    }
    /// The bytes of an available packet as part of a block whose repair symbols have `len` bytes; `None` if it is
    /// longer. A recovered packet may have more zeros, from a block with a longer packet.
    pub(crate) fn within(&self, sequence: u64, len: usize) -> Option<&[u8]> {
        let slot = &self.slots[self.slot(sequence)];
        let symbol = Symbol { bytes: &slot.bytes, zeros: slot.zeros };
        if slot.sequence != sequence || slot.origin.is_none() {
            return Some(&[]);
        }
        if symbol.len() <= len {
            return Some(symbol.bytes);
        }
        let (inside, beyond) = symbol.bytes.split_at(len.min(symbol.bytes.len()));
        (slot.origin == Some(Origin::Recovered) && beyond.iter().all(|&b| b == 0)).then_some(inside)
    }
    /// Stores a packet. Returns a free buffer: that of the packet it replaced, or the given one if the slot has a newer
    /// packet.
    pub(crate) fn store(
        &mut self,
        at: Timestamp,
        sequence: u64,
        bytes: Vec<u8>,
        zeros: u32,
        origin: Origin,
    ) -> Option<Vec<u8>> {
        let i = self.slot(sequence);
        let old = &self.slots[i];
        let occupied = old.origin.is_some();
        let (old_sequence, same) = (old.sequence, occupied && old.sequence == sequence);
        if occupied && old_sequence > sequence {
            return Some(bytes);
        }
        let Some((chunk, bit)) = self.claim(sequence) else { return Some(bytes) };
        chunk.seen |= bit;
        chunk.here |= bit;
        if occupied && !same {
            self.leave(old_sequence);
        }
        let slot = &mut self.slots[i];
        if !same {
            slot.at = at;
            self.order.push_back((at, sequence));
        }
        slot.sequence = sequence;
        slot.zeros = zeros;
        slot.origin = Some(origin);
        let old = std::mem::replace(&mut slot.bytes, bytes);
        occupied.then_some(old)
    }
    /// Records that a packet's bytes were dropped.
    fn leave(&mut self, sequence: u64) {
        let i = self.chunk(sequence / 64);
        let chunk = &mut self.chunks[i];
        if chunk.number == sequence / 64 {
            chunk.here &= !(1 << (sequence % 64));
        }
    }
    /// Drops the packet stored first; returns its buffer, which is empty if its slot has been reused.
    pub(crate) fn evict(&mut self) -> Option<Vec<u8>> {
        let (at, sequence) = self.order.pop_front()?;
        let i = self.slot(sequence);
        let slot = &mut self.slots[i];
        if slot.origin.is_none() || slot.sequence != sequence || slot.at != at {
            return Some(Vec::new());
        }
        slot.origin = None;
        let bytes = std::mem::take(&mut slot.bytes);
        self.leave(sequence);
        Some(bytes)
    }
    /// As [`Sources::evict`], if the packet was stored at least `age` ago.
    pub(crate) fn expire(&mut self, now: Timestamp, age: TimeDelta) -> Option<Vec<u8>> {
        let &(at, _) = self.order.front()?;
        if now.saturating_since(at) < age { None } else { self.evict() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(sources: &mut Sources, sequence: u64) -> Option<Vec<u8>> {
        sources.see(sequence);
        sources.store(Timestamp::ZERO, sequence, vec![sequence as u8], 0, Origin::Received)
    }

    #[test]
    fn a_place_belongs_to_the_highest() {
        let mut sources = Sources::new(64);
        assert_eq!(store(&mut sources, 5), None);
        assert_eq!(store(&mut sources, 69), Some(vec![5]));
        assert_eq!((sources.knowledge(5), sources.get(5)), (Knowledge::Gone, None));
        assert_eq!(store(&mut sources, 5), Some(vec![5]));
        assert_eq!(sources.knowledge(69), Knowledge::Here(Origin::Received));
        assert_eq!(sources.knowledge(70), Knowledge::Unseen);
        // 256 bits are remembered: 5's chunk is reused for 256.
        store(&mut sources, 256);
        assert_eq!(sources.knowledge(5), Knowledge::Forgotten);
        assert_eq!(sources.knowledge(69), Knowledge::Here(Origin::Received));
        assert_eq!(sources.evict(), Some(Vec::new()));
        assert_eq!(sources.evict(), Some(vec![69]));
        assert_eq!(sources.knowledge(69), Knowledge::Gone);
    }

    #[test]
    fn gaps_agree_with_knowledge() {
        let mut sources = Sources::new(256);
        for s in [100, 101, 103, 163, 164, 165, 230, 290, 355] {
            store(&mut sources, s);
        }
        sources.evict();
        sources.evict();
        for base in [0, 64, 90, 100, 101, 127, 128, 200] {
            let set = Coverage::every(base, 1, 256);
            let (unknown, missing) = sources.gaps(&set);
            for s in set.iter() {
                let knowledge = sources.knowledge(s);
                assert_eq!(unknown.contains(s), !matches!(knowledge, Knowledge::Here(_)), "{s}");
                assert_eq!(missing.contains(s), knowledge == Knowledge::Unseen, "{s}");
            }
        }
        let (unknown, missing) = sources.gaps(&Coverage::every(100, 1, 3));
        assert_eq!(unknown.iter().collect::<Vec<_>>(), [100, 101, 102]);
        assert_eq!(missing.iter().collect::<Vec<_>>(), [102]);
    }

    #[test]
    fn a_loss_is_news_once() {
        let mut sources = Sources::new(64);
        store(&mut sources, 8);
        assert!(sources.give_up(9) && !sources.give_up(9) && !sources.give_up(8));
    }
}
