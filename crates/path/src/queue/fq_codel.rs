//! FQ-CoDel (RFC 8290): a queue for each flow, served in turn by their bytes, each under CoDel. A flow that builds no
//! queue goes first.

use super::codel::{self, Controlled};
use super::discipline::{self, Definition, Setup};
use super::fifo::{Backlog, Room};
use super::parameter::parameters;
use super::queued::{Ledger, Queued};
use crate::stats::DropReason;
use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// Most packets dropped at once from the longest queue at overflow (RFC 8290, section 4.1).
const DROP_BATCH: usize = 64;

parameters! {
    /// Parameters of FQ-CoDel.
    pub struct Config {
        /// Acceptable persistent sojourn time in each queue (RFC 8290, section 5.2.2).
        target: TimeDelta = TimeDelta::from_millis(5), TimeDelta::from_micros(1) => TimeDelta::from_secs(10);
        /// Time for which sojourn times must exceed the target before a packet is dropped (RFC 8290, section 5.2.1).
        interval: TimeDelta = TimeDelta::from_millis(100), TimeDelta::from_micros(10) => TimeDelta::from_secs(100);
        /// Whether packets of ECN-capable flows are marked rather than dropped (RFC 8290, section 5.2.6).
        ecn: bool = true;
        /// Bytes that a queue may send in its turn (RFC 8290, section 5.2.4).
        quantum: f64 = 1_514.0, 256.0 => 1_000_000.0;
        /// Queues to which flows are assigned by their hash (RFC 8290, section 5.2.5).
        flows: f64 = 1_024.0, 1.0 => 65_536.0;
        /// Sojourn time above which packets of ECN-capable flows are marked, in addition to CoDel's marks; 0 marks none
        /// (RFC 8290, section 5.2.7).
        ce_threshold: TimeDelta = TimeDelta::ZERO, TimeDelta::ZERO => TimeDelta::from_secs(10);
    }
}

impl Definition for Config {
    const NAME: &'static str = "fq-codel";
    const SUMMARY: &'static str = "a queue for each flow, served in turn, each under CoDel";
    const SOURCE: &'static str = "RFC 8290";
    type Queue<P> = Queue<P>;
    fn queue<P>(&self, mut setup: Setup) -> Queue<P> {
        let Self { target, interval, ecn, .. } = *self;
        Queue(Box::new(State {
            config: *self,
            codel: codel::Config { target, interval, ecn },
            room: setup.room,
            salt: (setup.random.uniform() * (1u64 << 53) as f64) as u64,
            flows: (0..self.flows as usize).map(|_| FlowQueue::default()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            waiting: Backlog::default(),
            above_target: 0,
            now: Timestamp::ZERO,
        }))
    }
}

/// The queue of the flows with one hash.
#[derive(Clone, Debug)]
struct FlowQueue<P> {
    controlled: Controlled<P>,
    /// Bytes that it may still send in this turn.
    credits: i64,
    /// Whether it is in one of the lists.
    is_active: bool,
}

impl<P> Default for FlowQueue<P> {
    fn default() -> Self {
        Self { controlled: Controlled::default(), credits: 0, is_active: false }
    }
}

/// A queue under FQ-CoDel.
// Boxed, so that links under other disciplines are not larger because of this one.
#[derive(Clone, Debug)]
pub struct Queue<P>(Box<State<P>>);

#[derive(Clone, Debug)]
struct State<P> {
    config: Config,
    codel: codel::Config,
    room: Room,
    /// Makes the flows that share a queue differ between seeds (section 4.1).
    salt: u64,
    flows: Vec<FlowQueue<P>>,
    /// Queues with packets, and some that have just become empty: those that have not built a backlog, and the others
    /// (section 4).
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    /// All that is queued.
    waiting: Backlog,
    /// Queues in which CoDel may drop within an interval.
    above_target: usize,
    /// Time of the last call.
    now: Timestamp,
}

impl<P> State<P> {
    /// The queue of a flow.
    fn index(&self, flow: u32) -> usize {
        // The finaliser of splitmix64.
        let mut hash = (u64::from(flow) ^ self.salt).wrapping_add(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        hash ^= hash >> 31;
        (hash % self.flows.len() as u64) as usize
    }

    /// Drops packets from the heads of the longest queues until the arriving packet fits. Errors: it would be the
    /// longest queue alone.
    fn make_room(&mut self, now: Timestamp, packet: &Queued<P>, ledger: &mut Ledger<P>) -> Result<(), DropReason> {
        let own = self.index(packet.flow());
        while self.room.is_exceeded_behind(now, self.waiting, packet) {
            let arriving = |i: usize| if i == own { u64::from(packet.bytes()) } else { 0 };
            let active = self.new.iter().chain(&self.old).map(|&i| i as usize).chain([own]);
            let bytes = |i: usize| self.flows[i].controlled.fifo.bytes() + arriving(i);
            let longest = active.max_by_key(|&i| bytes(i)).unwrap_or(own);
            let fifo = &mut self.flows[longest].controlled.fifo;
            let packets = fifo.packets() + usize::from(longest == own);
            for _ in 0..(packets / 2).clamp(1, DROP_BATCH) {
                let Some(dropped) = fifo.pop() else { return Err(DropReason::Queue) };
                self.waiting.packets -= 1;
                self.waiting.bytes -= u64::from(dropped.bytes());
                ledger.discard(now, DropReason::Queue, dropped);
            }
        }
        Ok(())
    }

    fn put(&mut self, packet: Queued<P>) {
        let index = self.index(packet.flow());
        let flow = &mut self.flows[index];
        if !flow.is_active {
            (flow.is_active, flow.credits) = (true, self.config.quantum as i64);
            self.new.push_back(index as u32);
        }
        self.waiting.packets += 1;
        self.waiting.bytes += u64::from(packet.bytes());
        flow.controlled.push(packet);
    }

    /// The scheduler (section 4.2).
    fn dequeue(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.credits <= 0 {
                flow.credits += self.config.quantum as i64;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (before, was_above) = (flow.controlled.fifo.backlog(), flow.controlled.next_drop().is_some());
            let sent = flow.controlled.dequeue(&self.codel, now, ledger);
            let after = flow.controlled.fifo.backlog();
            self.waiting.packets -= before.packets - after.packets;
            self.waiting.bytes -= before.bytes - after.bytes;
            self.above_target += usize::from(flow.controlled.next_drop().is_some());
            self.above_target -= usize::from(was_above);
            if let Some(mut packet) = sent {
                flow.credits -= i64::from(packet.bytes());
                let threshold = self.config.ce_threshold;
                if threshold > TimeDelta::ZERO && now - packet.arrived() > threshold {
                    ledger.mark(&mut packet);
                }
                return Some(packet);
            }
            // An empty new queue passes through the other list once, so that it cannot come back ahead of those there.
            list.pop_front();
            if is_new {
                self.old.push_back(index);
            } else {
                flow.is_active = false;
            }
        }
    }
}

impl<P> discipline::Queue<P> for Queue<P> {
    #[inline(never)]
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, ledger: &mut Ledger<P>) -> Result<(), DropReason> {
        self.0.now = now;
        self.0.make_room(now, packet, ledger)
    }

    #[inline(never)]
    fn put(&mut self, packet: Queued<P>) {
        self.0.put(packet);
    }

    // Out of line, so that it does not burden links under drop tail.
    #[inline(never)]
    fn dequeue(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        self.0.now = now;
        self.0.dequeue(now, ledger)
    }

    fn head_arrival(&self) -> Option<Timestamp> {
        if self.0.waiting.packets == 0 {
            return None;
        }
        // Empty queues ahead are removed at the next dequeue, so that few are seen twice.
        let mut active = self.0.new.iter().chain(&self.0.old);
        active.find_map(|&i| self.0.flows[i as usize].controlled.fifo.head_arrival())
    }
    fn packets(&self) -> usize {
        self.0.waiting.packets
    }
    fn bytes(&self) -> u64 {
        self.0.waiting.bytes
    }

    fn next_drop(&self) -> Option<Timestamp> {
        // The first sojourn time above the target starts an interval.
        Some(if self.0.above_target > 0 { self.0.now } else { self.0.now + self.0.config.interval })
    }
}

#[cfg(test)]
mod tests;
