use weir_units::DataSize;

/// Why a packet was not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DropReason {
    /// The queue was full.
    Queue,
    /// The queue discipline chose it, with room left: active queue management.
    Aqm,
    /// The loss model took it.
    RandomLoss,
}

/// What a link does to a packet that it does not pass on as it came.
///
/// Neither this nor [`DropReason`] is `non_exhaustive`: whoever counts them matches every one, so that the compiler
/// names each place where a further one has to be counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// It is dropped.
    Dropped(DropReason),
    /// It gets the CE mark.
    Marked,
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
    #[inline]
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
    /// Dropped by active queue management; those that had waited are counted when the link gives them back.
    pub dropped_aqm: Count,
    /// Taken by the loss model; counted when the packet leaves the link.
    pub dropped_random: Count,
    /// Marked CE by this link; packets that came with the mark are not counted.
    pub marked: Count,
    /// Extra copies made.
    pub duplicated: Count,
}

impl LinkStats {
    #[inline]
    pub(crate) fn count(&mut self, action: Action, bytes: u32) {
        match action {
            Action::Dropped(DropReason::Queue) => self.dropped_queue.add(bytes),
            Action::Dropped(DropReason::Aqm) => self.dropped_aqm.add(bytes),
            Action::Dropped(DropReason::RandomLoss) => self.dropped_random.add(bytes),
            Action::Marked => self.marked.add(bytes),
        }
    }
    /// Packets and bytes that did not get through, for whatever reason.
    pub fn dropped(&self) -> Count {
        let parts = [self.dropped_queue, self.dropped_aqm, self.dropped_random];
        Count { packets: parts.iter().map(|c| c.packets).sum(), size: parts.iter().map(|c| c.size).sum() }
    }
}
