//! The basis of most disciplines: packets in order of arrival, and their limit.

use super::queued::Queued;
use crate::capacity::Capacity;
use crate::limit::Limit;
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, Timestamp};

/// An amount of queued data.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Backlog {
    /// Packets.
    pub packets: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// Packets in order of arrival, and their total size.
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
    /// Appends a packet.
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
    /// Arrival of the packet at the head.
    #[inline]
    pub fn head_arrival(&self) -> Option<Timestamp> {
        self.packets.front().map(|p| p.arrived)
    }
    /// Bytes of the packet at the head.
    #[inline]
    pub fn head_bytes(&self) -> Option<u32> {
        self.packets.front().map(|p| p.bytes)
    }
    /// Number of packets and their bytes.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len(), bytes: self.bytes }
    }
    /// Number of packets.
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

/// Implements the accessors of [`Queue`](super::Queue) for a queue whose packets are all in one [`Fifo`]: its field
/// `fifo`, or the one named.
macro_rules! held_in_fifo {
    () => {
        held_in_fifo!(fifo);
    };
    ($($field:ident).+) => {
        #[inline]
        fn head_arrival(&self) -> Option<Timestamp> {
            self.$($field).+.head_arrival()
        }
        #[inline]
        fn packets(&self) -> usize {
            self.$($field).+.packets()
        }
        #[inline]
        fn bytes(&self) -> u64 {
            self.$($field).+.bytes()
        }
    };
}
pub(super) use held_in_fifo;

/// The queue limit of a link. Amounts of time are converted by the link's capacity.
#[derive(Clone, PartialEq, Debug)]
pub struct Room {
    limit: Limit,
    capacity: Capacity,
}

impl Room {
    /// A `limit` for a link of this capacity.
    pub const fn new(limit: Limit, capacity: Capacity) -> Self {
        Self { limit, capacity }
    }

    /// A part of this room; at least one packet.
    #[must_use]
    pub fn part(&self, share: f64) -> Self {
        let limit = match self.limit {
            Limit::Unlimited => Limit::Unlimited,
            Limit::Size(s) => Limit::Size(DataSize::from_bytes((s.as_bytes() as f64 * share) as u64)),
            Limit::Packets(n) => Limit::Packets(((f64::from(n) * share) as u32).max(1)),
            Limit::Time(t) => Limit::Time(t.mul_f64(share)),
        };
        Self { limit, capacity: self.capacity.clone() }
    }

    /// The link's capacity at a time, or in an outage the last one above zero.
    pub fn capacity_at(&self, at: Timestamp) -> DataRate {
        self.capacity.above_zero_at(at)
    }

    /// Whether a packet that arrives at `now` would exceed the link's limit.
    #[inline]
    pub fn is_exceeded<P>(&self, now: Timestamp, waiting: &Fifo<P>, packet: &Queued<P>) -> bool {
        self.exceeds(self.limit, now, waiting, packet)
    }

    /// As [`Self::is_exceeded`], for a queue of several parts.
    #[inline]
    pub fn is_exceeded_behind<P>(&self, now: Timestamp, waiting: Backlog, packet: &Queued<P>) -> bool {
        self.exceeds_behind(self.limit, now, waiting, packet)
    }

    /// Whether the queued packets plus one that arrives at `now` would exceed `limit`.
    #[inline]
    pub fn exceeds<P>(&self, limit: Limit, now: Timestamp, waiting: &Fifo<P>, packet: &Queued<P>) -> bool {
        self.exceeds_behind(limit, now, waiting.backlog(), packet)
    }

    #[inline]
    fn exceeds_behind<P>(&self, limit: Limit, now: Timestamp, waiting: Backlog, packet: &Queued<P>) -> bool {
        let after = waiting.bytes + u64::from(packet.bytes);
        match limit {
            Limit::Unlimited => false,
            Limit::Size(s) => after > s.as_bytes(),
            Limit::Packets(n) => waiting.packets >= n as usize,
            Limit::Time(t) => waiting.packets > 0 && after > self.capacity.above_zero_at(now).size_in(t).as_bytes(),
        }
    }
}
