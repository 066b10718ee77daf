//! Where packets are kept while they travel.

use crate::agent::AgentId;
use crate::packet::Packet;

/// A packet and its way.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) packet: Packet,
    pub(crate) from: AgentId,
    pub(crate) to: AgentId,
    /// Index of the link it is on, or enters next, and one past the last, in the simulator's routes.
    pub(crate) hop: u32,
    pub(crate) end: u32,
}

impl Entry {
    #[inline]
    pub(crate) fn next_hop(&self) -> Option<usize> {
        (self.hop < self.end).then_some(self.hop as usize)
    }
}

/// Packets under way, with a list of free places; the place used last is used next, while it is in the cache.
#[derive(Default, Debug)]
pub(crate) struct Slab {
    entries: Vec<Entry>,
    free: Vec<u32>,
}

impl Slab {
    /// The place that [`Self::occupy`] takes next.
    #[inline]
    pub(crate) fn vacant(&mut self) -> (u32, &mut Entry) {
        let slot = match self.free.last() {
            Some(&slot) => slot,
            None => self.enlarge(),
        };
        (slot, &mut self.entries[slot as usize])
    }
    #[cold]
    fn enlarge(&mut self) -> u32 {
        let slot = u32::try_from(self.entries.len()).expect("fewer than 2^32 packets are under way");
        let (from, to) = (AgentId(0), AgentId(0));
        self.entries.push(Entry { packet: Packet::blank(), from, to, hop: 0, end: 0 });
        self.free.push(slot);
        slot
    }
    /// Takes the place that [`Self::vacant`] gave.
    #[inline]
    pub(crate) fn occupy(&mut self) {
        self.free.pop();
    }
    /// Another place with the same packet.
    pub(crate) fn copy(&mut self, slot: u32) -> u32 {
        let (copy, _) = self.vacant();
        self.occupy();
        let (low, high) = (slot.min(copy) as usize, slot.max(copy) as usize);
        let (left, right) = self.entries.split_at_mut(high);
        let (a, b) = (&mut left[low], &mut right[0]);
        let (from, to) = if slot < copy { (a, b) } else { (b, a) };
        (to.from, to.to, to.hop, to.end) = (from.from, from.to, from.hop, from.end);
        to.packet.clone_from(&from.packet);
        copy
    }
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &Entry {
        &self.entries[slot as usize]
    }
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: u32) -> &mut Entry {
        &mut self.entries[slot as usize]
    }
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
    pub(crate) fn in_use(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}
