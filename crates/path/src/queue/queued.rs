//! A queued packet, and the ledger of what a discipline does to packets.

use crate::impairment::Draw;
use crate::stats::{Action, DropReason, LinkStats};
use std::collections::VecDeque;
use weir_units::{Ecn, Timestamp};

/// A packet in a queue.
#[derive(Clone, Debug)]
pub struct Queued<P> {
    pub(crate) item: P,
    pub(crate) arrived: Timestamp,
    pub(crate) bytes: u32,
    pub(crate) flow: u32,
    pub(crate) ecn: Ecn,
    pub(crate) draw: Draw,
}

impl<P> Queued<P> {
    /// When it arrived at the link, the start of its sojourn time.
    #[inline]
    pub const fn arrived(&self) -> Timestamp {
        self.arrived
    }
    /// Its size in bytes.
    #[inline]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }
    /// Its flow: see [`crate::Packet::flow`].
    #[inline]
    pub const fn flow(&self) -> u32 {
        self.flow
    }
    /// Its ECN field.
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        self.ecn
    }
}

/// A packet dropped by a discipline, until the link's caller takes it.
#[derive(Clone, Debug)]
pub(crate) struct Discarded<P> {
    pub(crate) item: P,
    pub(crate) at: Timestamp,
    pub(crate) bytes: u32,
    pub(crate) reason: DropReason,
}

/// The only way for a discipline to drop and mark packets, so that every action is counted.
#[derive(Clone, Debug)]
pub struct Ledger<P> {
    pub(crate) stats: LinkStats,
    pub(crate) discarded: VecDeque<Discarded<P>>,
}

impl<P> Default for Ledger<P> {
    fn default() -> Self {
        Self { stats: LinkStats::default(), discarded: VecDeque::new() }
    }
}

impl<P> Ledger<P> {
    /// Marks a packet of an ECN-capable flow CE, and returns whether the packet now carries the mark (RFC 3168,
    /// section 5). A packet that arrived with the mark is not counted.
    #[inline]
    pub fn mark(&mut self, packet: &mut Queued<P>) -> bool {
        if !packet.ecn.is_capable() {
            return false;
        }
        if packet.ecn != Ecn::Ce {
            packet.ecn = Ecn::Ce;
            self.stats.count(Action::Marked, packet.bytes);
        }
        true
    }

    /// Drops a queued packet at `now`.
    pub fn discard(&mut self, now: Timestamp, reason: DropReason, packet: Queued<P>) {
        let Queued { item, bytes, .. } = packet;
        self.discarded.push_back(Discarded { item, at: now, bytes, reason });
    }
}
