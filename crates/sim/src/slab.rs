//! Storage of packets in the network.

use crate::ids::AgentId;
use crate::packet::Packet;

/// A packet's remaining route.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) from: AgentId,
    pub(crate) to: AgentId,
    /// Index, in the simulator's routes, of its current or next link; and one past the last.
    pub(crate) hop: u32,
    pub(crate) end: u32,
}

impl Head {
    #[inline]
    pub(crate) fn next_hop(&self) -> Option<usize> {
        (self.hop < self.end).then_some(self.hop as usize)
    }
}

/// Packets in the network, with a list of free slots; the slot used last is reused first, while it is in the cache.
///
/// Routes are stored apart from packets: a hop needs a packet's route but not the packet, so thousands of routes stay
/// in the cache.
#[derive(Debug)]
pub(crate) struct Slab {
    heads: Vec<Head>,
    packets: Vec<Packet>,
    /// The slot that is taken next: there is always one, since agents are asked for packets more often than they have
    /// any.
    spare: u32,
    free: Vec<u32>,
}

impl Default for Slab {
    fn default() -> Self {
        let mut slab = Self { heads: Vec::new(), packets: Vec::new(), spare: 0, free: Vec::new() };
        slab.spare = slab.enlarge();
        slab
    }
}

impl Slab {
    /// The slot that [`Self::occupy`] takes next.
    #[inline]
    pub(crate) fn vacant(&mut self) -> (u32, &mut Packet) {
        (self.spare, &mut self.packets[self.spare as usize])
    }
    #[cold]
    fn enlarge(&mut self) -> u32 {
        let slot = u32::try_from(self.packets.len()).expect("fewer than 2^32 packets are under way");
        let (from, to) = (AgentId(0), AgentId(0));
        self.heads.push(Head { from, to, hop: 0, end: 0 });
        self.packets.push(Packet::blank());
        slot
    }
    /// Takes the slot returned by [`Self::vacant`].
    #[inline]
    pub(crate) fn occupy(&mut self, head: Head) {
        self.heads[self.spare as usize] = head;
        self.spare = match self.free.pop() {
            Some(slot) => slot,
            None => self.enlarge(),
        };
    }
    /// Copies a packet into another slot.
    pub(crate) fn copy(&mut self, slot: u32) -> u32 {
        let (copy, _) = self.vacant();
        self.occupy(self.heads[slot as usize]);
        let (low, high) = (slot.min(copy) as usize, slot.max(copy) as usize);
        let (left, right) = self.packets.split_at_mut(high);
        let (a, b) = (&mut left[low], &mut right[0]);
        let (from, to) = if slot < copy { (a, b) } else { (b, a) };
        to.clone_from(from);
        to.is_copy = true;
        copy
    }
    #[inline]
    pub(crate) fn release(&mut self, slot: u32) {
        self.free.push(slot);
    }
    #[inline]
    pub(crate) fn head(&self, slot: u32) -> &Head {
        &self.heads[slot as usize]
    }
    #[inline]
    pub(crate) fn head_mut(&mut self, slot: u32) -> &mut Head {
        &mut self.heads[slot as usize]
    }
    #[inline]
    pub(crate) fn packet(&self, slot: u32) -> &Packet {
        &self.packets[slot as usize]
    }
    #[inline]
    pub(crate) fn packet_mut(&mut self, slot: u32) -> &mut Packet {
        &mut self.packets[slot as usize]
    }
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }
    pub(crate) fn in_use(&self) -> usize {
        self.packets.len() - self.free.len() - 1
    }
}
