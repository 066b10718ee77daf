//! Weighted round robin by deficit (Shreedhar and Varghese, "Efficient fair queueing using deficit round robin", SIGCOMM
//! 1995): a queue for each class of code points; in its turn a class sends as many bytes as its quantum, and what a packet
//! leaves of it is kept for the next turn. Each class with packets gets its weight's share of the capacity at least.

use super::classes::{CLASSES, ClassQueues};
use super::discipline::{self, Definition, Setup};
use super::parameter::parameters;
use super::queued::{Ledger, Queued};
use crate::stats::DropReason;
use std::collections::VecDeque;
use weir_units::Timestamp;

/// Bytes of a turn at weight 1: a full packet, so that each turn sends at least one (section 4.2 of the paper).
const QUANTUM: f64 = 1_514.0;

parameters! {
    /// Parameters of weighted round robin.
    pub struct Config {
        /// Weight of EF, VA and CS5 to CS7. Chosen here, as the others.
        ef_weight: f64 = 4.0, 1.0 => 1_000.0;
        /// Weight of AF3x, AF4x, CS3 and CS4.
        af_weight: f64 = 4.0, 1.0 => 1_000.0;
        /// Weight of the default and all other code points.
        df_weight: f64 = 2.0, 1.0 => 1_000.0;
        /// Weight of LE and CS1.
        le_weight: f64 = 1.0, 1.0 => 1_000.0;
        /// Part of the queue's room for EF, VA and CS5 to CS7. Chosen here: a quarter for each class.
        ef_room: f64 = 0.25, 0.0 => 1.0;
        /// Part of the queue's room for AF3x, AF4x, CS3 and CS4.
        af_room: f64 = 0.25, 0.0 => 1.0;
        /// Part of the queue's room for the default and all other code points.
        df_room: f64 = 0.25, 0.0 => 1.0;
        /// Part of the queue's room for LE and CS1.
        le_room: f64 = 0.25, 0.0 => 1.0;
    }
}

impl Definition for Config {
    const NAME: &'static str = "weighted-round-robin";
    const SUMMARY: &'static str = "a queue for each class of DSCPs, served in turn by weight";
    const SOURCE: &'static str = "Shreedhar and Varghese 1995, RFC 2597, RFC 8837";
    type Queue<P> = Queue<P>;
    fn queue<P>(&self, setup: Setup) -> Queue<P> {
        let rooms = [self.ef_room, self.af_room, self.df_room, self.le_room];
        let weights = [self.ef_weight, self.af_weight, self.df_weight, self.le_weight];
        Queue(Box::new(State {
            classes: ClassQueues::new(setup, rooms),
            quanta: weights.map(|w| (w * QUANTUM) as u64),
            deficits: [0; CLASSES],
            active: VecDeque::with_capacity(CLASSES),
            in_turn: false,
        }))
    }
}

/// A queue under weighted round robin.
// Boxed, so that links under other disciplines are not larger because of this one.
#[derive(Clone, Debug)]
pub struct Queue<P>(Box<State<P>>);

#[derive(Clone, Debug)]
struct State<P> {
    classes: ClassQueues<P>,
    quanta: [u64; CLASSES],
    /// Bytes that each class may still send.
    deficits: [u64; CLASSES],
    /// Classes with packets, in the order of their turns.
    active: VecDeque<usize>,
    /// Whether the first of them has its turn.
    in_turn: bool,
}

impl<P> State<P> {
    fn dequeue(&mut self) -> Option<Queued<P>> {
        loop {
            let class = *self.active.front()?;
            if !self.in_turn {
                (self.in_turn, self.deficits[class]) = (true, self.deficits[class] + self.quanta[class]);
            }
            let bytes = self.classes.head_bytes(class).map(u64::from)?;
            if bytes > self.deficits[class] {
                // A packet larger than a quantum waits for as many turns as it needs; alone it needs none.
                if self.active.len() == 1 {
                    self.deficits[class] = bytes;
                    continue;
                }
                self.in_turn = false;
                self.active.rotate_left(1);
                continue;
            }
            self.deficits[class] -= bytes;
            let packet = self.classes.pop(class);
            if self.classes.head_bytes(class).is_none() {
                // An empty class keeps nothing.
                self.deficits[class] = 0;
                self.active.pop_front();
                self.in_turn = false;
            }
            return packet;
        }
    }
}

impl<P> discipline::Queue<P> for Queue<P> {
    #[inline(never)]
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, _: &mut Ledger<P>) -> Result<(), DropReason> {
        self.0.classes.admit(now, packet)
    }
    #[inline(never)]
    fn put(&mut self, packet: Queued<P>) {
        let (class, is_first) = self.0.classes.put(packet);
        if is_first {
            self.0.active.push_back(class);
        }
    }
    // Out of line, so that it does not burden links under drop tail.
    #[inline(never)]
    fn dequeue(&mut self, _: Timestamp, _: &mut Ledger<P>) -> Option<Queued<P>> {
        self.0.dequeue()
    }
    fn head_arrival(&self) -> Option<Timestamp> {
        self.0.classes.head_arrival()
    }
    fn packets(&self) -> usize {
        self.0.classes.waiting().packets
    }
    fn bytes(&self) -> u64 {
        self.0.classes.waiting().bytes
    }
}

#[cfg(test)]
mod tests;
