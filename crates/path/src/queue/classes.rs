//! Common part of disciplines by class: a drop-tail queue for each class, with a part of the link's room.

use super::discipline::Setup;
use super::fifo::{Backlog, Fifo, Room};
use super::queued::Queued;
use crate::dscp::Class;
use crate::members::Members;
use crate::stats::DropReason;
use weir_units::Timestamp;

/// Number of classes.
pub(super) const CLASSES: usize = Class::ALL.len();

/// A drop-tail queue for each class.
#[derive(Clone, Debug)]
pub(super) struct ClassQueues<P> {
    members: Members,
    /// The link's room, and each class's part of it.
    room: Room,
    rooms: [Room; CLASSES],
    fifos: [Fifo<P>; CLASSES],
    waiting: Backlog,
}

impl<P> ClassQueues<P> {
    /// Empty queues; `shares` are the classes' parts of the link's room.
    pub(super) fn new(setup: Setup, shares: [f64; CLASSES]) -> Self {
        Self {
            rooms: shares.map(|share| setup.room.part(share)),
            room: setup.room,
            members: setup.members,
            fifos: std::array::from_fn(|_| Fifo::default()),
            waiting: Backlog::default(),
        }
    }

    /// A packet's class.
    pub(super) fn class(&self, packet: &Queued<P>) -> usize {
        self.members.get(packet.flow()).dscp.class().index()
    }

    /// The link's room.
    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// Whether a packet fits. Errors: its class, or all of them, have no room.
    pub(super) fn admit(&self, now: Timestamp, packet: &Queued<P>) -> Result<(), DropReason> {
        let class = self.class(packet);
        let full = self.rooms[class].is_exceeded(now, &self.fifos[class], packet);
        if full || self.room.is_exceeded_behind(now, self.waiting, packet) { Err(DropReason::Queue) } else { Ok(()) }
    }

    /// Queues a packet in its class, and returns whether it is the only one there.
    pub(super) fn put(&mut self, packet: Queued<P>) -> (usize, bool) {
        let class = self.class(&packet);
        self.waiting.packets += 1;
        self.waiting.bytes += u64::from(packet.bytes());
        self.fifos[class].push(packet);
        (class, self.fifos[class].packets() == 1)
    }

    /// Takes the first packet of a class.
    pub(super) fn pop(&mut self, class: usize) -> Option<Queued<P>> {
        let packet = self.fifos[class].pop()?;
        self.waiting.packets -= 1;
        self.waiting.bytes -= u64::from(packet.bytes());
        Some(packet)
    }

    /// Bytes of the first packet of a class.
    pub(super) fn head_bytes(&self, class: usize) -> Option<u32> {
        self.fifos[class].head_bytes()
    }

    /// The first class with packets.
    pub(super) fn first(&self) -> Option<usize> {
        self.fifos.iter().position(|f| f.packets() > 0)
    }

    /// Arrival of the first packet of the first class with packets.
    pub(super) fn head_arrival(&self) -> Option<Timestamp> {
        self.fifos.iter().find_map(Fifo::head_arrival)
    }

    /// All that is queued.
    pub(super) fn waiting(&self) -> Backlog {
        self.waiting
    }
}
