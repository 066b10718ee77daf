use crate::stats::DropReason;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};
use weir_units::cold_path;
use weir_units::{Ecn, TimeDelta, Timestamp};

/// A packet in transmission or in propagation.
#[derive(Clone, Debug)]
pub(crate) struct InFlight<P> {
    pub(crate) item: P,
    pub(crate) at: Timestamp,
    pub(crate) queued_for: TimeDelta,
    pub(crate) bytes: u32,
    pub(crate) ecn: Ecn,
    pub(crate) lost: Option<DropReason>,
}

/// Packets in propagation, in order of arrival; at the same time in the order of sending.
#[derive(Clone, Debug)]
pub(crate) enum Flight<P> {
    /// No packet overtakes another.
    InOrder(VecDeque<InFlight<P>>),
    /// Packets may overtake each other.
    Sorted { heap: BinaryHeap<Reverse<Ordered<P>>>, count: u64 },
}

#[derive(Clone, Debug)]
pub(crate) struct Ordered<P> {
    count: u64,
    packet: InFlight<P>,
}

impl<P> Ordered<P> {
    fn key(&self) -> (Timestamp, u64) {
        (self.packet.at, self.count)
    }
}
impl<P> PartialEq for Ordered<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<P> Eq for Ordered<P> {}
impl<P> PartialOrd for Ordered<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> Ord for Ordered<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl<P> Flight<P> {
    pub(crate) fn new(sorted: bool) -> Self {
        if sorted { Self::Sorted { heap: BinaryHeap::new(), count: 0 } } else { Self::InOrder(VecDeque::new()) }
    }

    #[inline]
    pub(crate) fn push(&mut self, packet: InFlight<P>) {
        match self {
            Self::InOrder(q) => q.push_back(packet),
            Self::Sorted { heap, count } => {
                cold_path();
                *count += 1;
                heap.push(Reverse(Ordered { count: *count, packet }));
            }
        }
    }

    /// When the next packet arrives.
    #[inline]
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        match self {
            Self::InOrder(q) => q.front().map(|p| p.at),
            Self::Sorted { heap, .. } => {
                cold_path();
                heap.peek().map(|o| o.0.packet.at)
            }
        }
    }

    /// The next packet, if it has arrived by `now`.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<InFlight<P>> {
        if self.next_at()? > now {
            return None;
        }
        match self {
            Self::InOrder(q) => q.pop_front(),
            Self::Sorted { heap, .. } => heap.pop().map(|o| o.0.packet),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::InOrder(q) => q.len(),
            Self::Sorted { heap, .. } => heap.len(),
        }
    }
}
