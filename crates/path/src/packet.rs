//! Packets on their way into a link, and their fates.

use crate::stats::DropReason;
use weir_units::{DataSize, Ecn, TimeDelta, Timestamp};

/// A packet for a link, and its properties used by the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<P> {
    /// The packet, which the link returns unchanged.
    pub item: P,
    /// Size on the wire. Sizes above 4 GiB count as 4 GiB.
    pub size: DataSize,
    /// Its ECN field, which the link may mark.
    pub ecn: Ecn,
    /// The flow to which it belongs, for disciplines that distinguish flows; a number unique to the flow.
    pub flow: u32,
}

/// Result of passing a packet to a link.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum Verdict<P> {
    /// The link has accepted it and will return it by [`crate::Link::pop`].
    Queued,
    /// Dropped at once; the packet is returned.
    Dropped(DropReason, P),
}

/// A packet at the end of the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivery<P> {
    /// The packet.
    pub item: P,
    /// When it arrived.
    pub at: Timestamp,
    /// Its size.
    pub size: DataSize,
    /// Its ECN field, possibly marked by the link.
    pub ecn: Ecn,
    /// Its waiting time until transmission.
    pub queued_for: TimeDelta,
}

/// A packet lost inside the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dropped<P> {
    /// The packet.
    pub item: P,
    /// When it would have arrived, or was removed from the queue.
    pub at: Timestamp,
    /// Its size.
    pub size: DataSize,
    /// The reason.
    pub reason: DropReason,
}

/// A packet that leaves the link, delivered or lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Departure<P> {
    /// It arrives.
    Delivered(Delivery<P>),
    /// It is lost.
    Dropped(Dropped<P>),
}
