use weir_units::DataSize;

/// Why a packet was not delivered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DropReason {
    /// The queue was full.
    Queue,
    /// Dropped by the queue discipline below the limit: active queue management.
    Aqm,
    /// Dropped by the loss model.
    RandomLoss,
    /// Dropped by the policer.
    Policer,
}

/// An action of a link on a packet, other than forwarding it unchanged.
///
/// Neither this nor [`DropReason`] is `non_exhaustive`: counters match every variant, so that the compiler finds each
/// place where a new one must be counted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    /// The packet is dropped.
    Dropped(DropReason),
    /// The packet is marked CE.
    Marked,
    /// The packet is marked CE without a reason: see [`crate::EcnFaults::mark`].
    MarkedFalsely,
    /// The packet's CE becomes ECT(0): see [`crate::EcnFaults::erase`].
    MarkErased,
    /// The packet's codepoint becomes Not-ECT: see [`crate::EcnFaults::bleach`].
    Bleached,
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

/// Counters of a link since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LinkStats {
    /// Passed to the link.
    pub offered: Count,
    /// Delivered, duplicates included.
    pub delivered: Count,
    /// Dropped by a full queue.
    pub dropped_queue: Count,
    /// Dropped by active queue management; dropped queued packets are counted when the link returns them.
    pub dropped_aqm: Count,
    /// Dropped by the loss model; counted when the packet leaves the link.
    pub dropped_random: Count,
    /// Dropped by the policer.
    pub dropped_policer: Count,
    /// Marked CE by this link's queue; packets that arrived with the mark are not counted.
    pub marked: Count,
    /// Marked CE without a reason.
    pub marked_falsely: Count,
    /// Changed from CE to ECT(0).
    pub marks_erased: Count,
    /// Changed from any codepoint to Not-ECT.
    pub bleached: Count,
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
            Action::Dropped(DropReason::Policer) => self.dropped_policer.add(bytes),
            Action::Marked => self.marked.add(bytes),
            Action::MarkedFalsely => self.marked_falsely.add(bytes),
            Action::MarkErased => self.marks_erased.add(bytes),
            Action::Bleached => self.bleached.add(bytes),
        }
    }
    /// Packets and bytes not delivered, for any reason.
    pub fn dropped(&self) -> Count {
        let parts = [self.dropped_queue, self.dropped_aqm, self.dropped_random, self.dropped_policer];
        Count { packets: parts.iter().map(|c| c.packets).sum(), size: parts.iter().map(|c| c.size).sum() }
    }
}
