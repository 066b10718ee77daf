//! What most disciplines are built of: packets in order of arrival, and the room for them.

use super::queued::Queued;
use crate::capacity::Capacity;
use crate::limit::Limit;
use std::collections::VecDeque;
use weir_units::Timestamp;

/// Packets in order of arrival, and how many bytes they have.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    packets: VecDeque<Queued<P>>,
    bytes: u64,
}

impl<P> Default for Fifo<P> {
    fn default() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<P> Fifo<P> {
    /// Puts a packet behind all others.
    #[inline]
    pub fn push(&mut self, packet: Queued<P>) {
        self.bytes += u64::from(packet.bytes);
        self.packets.push_back(packet);
    }
    /// Takes the packet at the head.
    #[inline]
    pub fn pop(&mut self) -> Option<Queued<P>> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }
    /// When the packet at the head arrived.
    #[inline]
    pub fn head_arrival(&self) -> Option<Timestamp> {
        self.packets.front().map(|p| p.arrived)
    }
    /// How many packets there are.
    #[inline]
    pub fn packets(&self) -> usize {
        self.packets.len()
    }
    /// Their bytes.
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// What waits in a queue whose packets are all in its field `fifo`, for its `impl` of [`Queue`](super::Queue).
macro_rules! held_in_fifo {
    () => {
        #[inline]
        fn head_arrival(&self) -> Option<Timestamp> {
            self.fifo.head_arrival()
        }
        #[inline]
        fn packets(&self) -> usize {
            self.fifo.packets()
        }
        #[inline]
        fn bytes(&self) -> u64 {
            self.fifo.bytes()
        }
    };
}
pub(super) use held_in_fifo;

/// How much may wait in front of a link. Amounts of time are counted at the link's capacity.
#[derive(Clone, PartialEq, Debug)]
pub struct Room {
    limit: Limit,
    capacity: Capacity,
}

impl Room {
    /// As much as `limit`, in front of a link of this capacity.
    pub const fn new(limit: Limit, capacity: Capacity) -> Self {
        Self { limit, capacity }
    }

    /// Whether a packet that arrives at `now` would exceed the limit of the link.
    #[inline]
    pub fn is_exceeded<P>(&self, now: Timestamp, waiting: &Fifo<P>, packet: &Queued<P>) -> bool {
        self.exceeds(self.limit, now, waiting, packet)
    }

    /// Whether what waits, and with it a packet that arrives at `now`, would be more than `limit`.
    #[inline]
    pub fn exceeds<P>(&self, limit: Limit, now: Timestamp, waiting: &Fifo<P>, packet: &Queued<P>) -> bool {
        let after = waiting.bytes + u64::from(packet.bytes);
        match limit {
            Limit::Unlimited => false,
            Limit::Size(s) => after > s.as_bytes(),
            Limit::Packets(n) => waiting.packets() >= n as usize,
            Limit::Time(t) => {
                !waiting.packets.is_empty() && after > self.capacity.above_zero_at(now).size_in(t).as_bytes()
            }
        }
    }
}
