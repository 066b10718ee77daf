//! The queues of a radio link: one for each station and direction under the link's discipline, so that stations do not
//! share a queue. The radio decides which one is served.

use super::queued::{Ledger, Queued};
use super::{AnyQueue, Discipline, Queue, Setup};
use crate::members::Members;
use crate::random::Random;
use crate::stats::DropReason;
use weir_units::Timestamp;

/// Queues of stations.
#[derive(Clone, Debug)]
pub(crate) struct Stations<P> {
    queues: Vec<AnyQueue<P>>,
    members: Members,
    /// Whether each station has queues of its own; one queue otherwise.
    separate: bool,
}

impl<P> Stations<P> {
    /// Empty queues: one, or if `separate`, two for each station.
    pub(crate) fn new(discipline: &Discipline, setup: &Setup, separate: bool) -> Self {
        let members = setup.members.clone();
        let count = if separate { 2 * (members.stations() + 1) } else { 1 };
        let mut random = setup.random.clone();
        let mut queue = |i: usize| {
            // The only queue draws as that of a link without a radio.
            let own = if i == 0 { setup.random.clone() } else { Random::new(random.bits()) };
            discipline.queue(Setup { random: own, ..setup.clone() })
        };
        Self { queues: (0..count).map(&mut queue).collect(), members, separate }
    }

    /// The queue of a flow: that of its station and direction.
    pub(crate) fn index(&self, flow: u32) -> usize {
        if !self.separate {
            return 0;
        }
        let member = self.members.get(flow);
        2 * usize::from(member.station) + usize::from(!member.to_station)
    }

    /// Number of queues.
    pub(crate) fn len(&self) -> usize {
        self.queues.len()
    }

    /// Whether packets wait in a queue.
    pub(crate) fn has_packets(&self, index: usize) -> bool {
        self.queues[index].packets() > 0
    }

    /// Takes the next packet of a queue.
    pub(crate) fn take(&mut self, index: usize, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        while self.has_packets(index) {
            if let Some(packet) = self.queues[index].dequeue(now, ledger) {
                return Some(packet);
            }
        }
        None
    }
}

impl<P> Queue<P> for Stations<P> {
    fn admit(&mut self, now: Timestamp, packet: &mut Queued<P>, ledger: &mut Ledger<P>) -> Result<(), DropReason> {
        let index = self.index(packet.flow());
        self.queues[index].admit(now, packet, ledger)
    }
    fn put(&mut self, packet: Queued<P>) {
        let index = self.index(packet.flow());
        self.queues[index].put(packet);
    }
    fn dequeue(&mut self, now: Timestamp, ledger: &mut Ledger<P>) -> Option<Queued<P>> {
        let index = self.queues.iter().position(|q| q.packets() > 0)?;
        self.queues[index].dequeue(now, ledger)
    }
    fn head_arrival(&self) -> Option<Timestamp> {
        self.queues.iter().find_map(Queue::head_arrival)
    }
    fn packets(&self) -> usize {
        self.queues.iter().map(Queue::packets).sum()
    }
    fn bytes(&self) -> u64 {
        self.queues.iter().map(Queue::bytes).sum()
    }
    fn next_drop(&self) -> Option<Timestamp> {
        self.queues.iter().filter_map(Queue::next_drop).min()
    }
}
