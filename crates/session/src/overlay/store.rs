//! The packets that a node has received: to recognise duplicates, to forward and to repeat them.

/// A packet as received.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    /// Sequence number plus one, 0 if empty: the entry is valid for that number only.
    tag: u64,
    /// Its first bytes, or all of them.
    pub bytes: Vec<u8>,
    /// Payload bytes after them, carried as a length only.
    pub payload: u32,
    /// The tree of the packet, which is not that of the hop if it was repeated.
    pub tree: u8,
}

impl Stored {
    /// Bytes of the whole packet.
    pub(super) fn size(&self) -> u64 {
        self.bytes.len() as u64 + u64::from(self.payload)
    }
}

/// The last packets by their sequence numbers, in a ring whose buffers are reused.
#[derive(Clone, Debug)]
pub(super) struct PacketStore {
    slots: Vec<Stored>,
    /// The highest number.
    highest: Option<u64>,
}

/// Result of inserting a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Inserted {
    /// It was not there, and is now.
    New,
    /// It is there already.
    Duplicate,
    /// It is older than the packets kept.
    Old,
}

impl PacketStore {
    /// A store of this many packets, 16 to 65,536, rounded up to a power of two.
    pub(super) fn new(packets: usize) -> Self {
        let slots = packets.clamp(16, 1 << 16).next_power_of_two();
        Self { slots: vec![Stored::default(); slots], highest: None }
    }

    fn index(&self, sequence: u64) -> usize {
        sequence as usize & (self.slots.len() - 1)
    }

    pub(super) fn highest(&self) -> Option<u64> {
        self.highest
    }

    /// The first number that can be kept.
    pub(super) fn oldest(&self) -> u64 {
        self.highest.map_or(0, |h| (h + 1).saturating_sub(self.slots.len() as u64))
    }

    pub(super) fn insert(&mut self, sequence: u64, bytes: &[u8], payload: u32, tree: u8) -> Inserted {
        if sequence < self.oldest() {
            return Inserted::Old;
        }
        let i = self.index(sequence);
        let slot = &mut self.slots[i];
        if slot.tag == sequence + 1 {
            return Inserted::Duplicate;
        }
        slot.tag = sequence + 1;
        slot.bytes.clear();
        slot.bytes.extend_from_slice(bytes);
        (slot.payload, slot.tree) = (payload, tree);
        self.highest = self.highest.max(Some(sequence));
        Inserted::New
    }

    pub(super) fn get(&self, sequence: u64) -> Option<&Stored> {
        let slot = &self.slots[self.index(sequence)];
        (slot.tag == sequence + 1).then_some(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_packets_and_knows_duplicates() {
        let mut store = PacketStore::new(10);
        assert_eq!(store.insert(65_540, b"a", 7, 2), Inserted::New);
        assert_eq!(store.insert(65_540, b"b", 0, 0), Inserted::Duplicate);
        let kept = store.get(65_540).expect("kept");
        assert_eq!((&kept.bytes[..], kept.payload, kept.tree, kept.size()), (&b"a"[..], 7, 2, 8));
        // 16 are kept.
        assert_eq!(store.insert(65_555, b"c", 0, 0), Inserted::New);
        assert!(store.get(65_540).is_some());
        assert_eq!(store.insert(65_556, b"d", 0, 0), Inserted::New);
        assert!(store.get(65_540).is_none());
        assert_eq!((store.insert(65_540, b"a", 0, 0), store.oldest()), (Inserted::Old, 65_541));
        assert_eq!(store.highest(), Some(65_556));
    }
}
