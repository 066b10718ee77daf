use weir_units::DataSize;

/// Why a packet was not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum DropReason {
    /// The queue was full.
    Queue,
    /// The loss model took it.
    RandomLoss,
}

/// Packets and their bytes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Their bytes.
    pub size: DataSize,
}

impl Count {
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.size += DataSize::from_bytes(u64::from(bytes));
    }
}

/// What has happened to the packets of a link since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkStats {
    /// Given to the link.
    pub offered: Count,
    /// Given back as delivered, duplicates included.
    pub delivered: Count,
    /// Dropped by a full queue.
    pub dropped_queue: Count,
    /// Taken by the loss model; counted when the packet leaves the link.
    pub dropped_random: Count,
    /// Marked CE by this link; packets that came with the mark are not counted.
    pub marked: Count,
    /// Extra copies made.
    pub duplicated: Count,
}

impl LinkStats {
    pub(crate) fn count_drop(&mut self, reason: DropReason, bytes: u32) {
        match reason {
            DropReason::Queue => self.dropped_queue.add(bytes),
            DropReason::RandomLoss => self.dropped_random.add(bytes),
        }
    }
    /// Packets and bytes that did not get through, for whatever reason.
    pub fn dropped(&self) -> Count {
        let (a, b) = (self.dropped_queue, self.dropped_random);
        Count { packets: a.packets + b.packets, size: a.size + b.size }
    }
}
