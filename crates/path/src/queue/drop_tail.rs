//! Drop tail: first in, first out; packets that arrive at a full queue are dropped.

use super::discipline::{self, Definition, Setup};
use super::fifo::{Fifo, Room, held_in_fifo};
use super::parameter::parameters;
use super::queued::{Ledger, Queued};
use crate::limit::Limit;
use crate::stats::DropReason;
use weir_units::Timestamp;

parameters! {
    /// Parameters of drop tail.
    pub struct Config {
        /// ECN-capable packets are marked CE if the queue including this packet would exceed this threshold; none if it
        /// is unlimited.
        ecn_threshold: Limit = Limit::Unlimited;
    }
}

impl Definition for Config {
    const NAME: &'static str = "drop-tail";
    const SUMMARY: &'static str = "first in, first out; drops arriving packets when it is full";
    const SOURCE: &'static str = "RFC 7567, section 2";
    type Queue<P> = Queue<P>;
    fn queue<P>(&self, setup: Setup) -> Queue<P> {
        Queue { ecn_threshold: self.ecn_threshold, room: setup.room, fifo: Fifo::default() }
    }
}

/// A drop-tail queue.
#[derive(Clone, Debug)]
pub struct Queue<P> {
    ecn_threshold: Limit,
    room: Room,
    fifo: Fifo<P>,
}

// Most links have this discipline: its steps are part of the link's, however many others there are.
impl<P> discipline::Queue<P> for Queue<P> {
    #[inline(always)]
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, ledger: &mut Ledger<P>) -> Result<(), DropReason> {
        if self.room.is_exceeded(now, &self.fifo, packet) {
            return Err(DropReason::Queue);
        }
        if self.room.exceeds(self.ecn_threshold, now, &self.fifo, packet) {
            ledger.mark(packet);
        }
        Ok(())
    }
    #[inline(always)]
    fn put(&mut self, packet: Queued<P>) {
        self.fifo.push(packet);
    }
    fn may_be_passed_by(&self) -> bool {
        true
    }
    #[inline(always)]
    fn dequeue(&mut self, _: Timestamp, _: &mut Ledger<P>) -> Option<Queued<P>> {
        self.fifo.pop()
    }
    held_in_fifo!();
}
