//! A packet that waits, and the account of what a discipline does to packets.

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
    /// When it came to the link. Its sojourn time counts from here.
    #[inline]
    pub const fn arrived(&self) -> Timestamp {
        self.arrived
    }
    /// Its size in bytes.
    #[inline]
    pub const fn bytes(&self) -> u32 {
        self.bytes
    }
    /// The flow that it belongs to: see [`crate::Packet::flow`].
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

/// A packet that a discipline has dropped, until the link's caller takes it.
#[derive(Clone, Debug)]
pub(crate) struct Discarded<P> {
    pub(crate) item: P,
    pub(crate) at: Timestamp,
    pub(crate) bytes: u32,
    pub(crate) reason: DropReason,
}

/// Where a discipline puts the packets that it drops, and by which it marks the others.
///
/// There is no other way to do either, so that everything a discipline does is counted.
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
    /// Sets the CE mark on a packet of an ECN-capable flow, and says whether the packet now carries it (RFC 3168,
    /// section 5). A packet that came with the mark is not counted.
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

    /// Drops a packet that the queue had taken in, at `now`.
    pub fn discard(&mut self, now: Timestamp, reason: DropReason, packet: Queued<P>) {
        let Queued { item, bytes, .. } = packet;
        self.discarded.push_back(Discarded { item, at: now, bytes, reason });
    }
}
