//! The main loop.

use super::{Life, LinkEntry, Outcome, Side, Simulator};
use crate::agent::Agent;
use crate::ids::{AgentId, LinkId};
use crate::observer::{Observer, Place};
use crate::slab::Head;
use std::ops::ControlFlow;
use weir_path::{self as path, Delivery, Departure, Verdict};
use weir_units::cold_path;
use weir_units::{Ecn, TimeDelta, Timestamp};

/// Events at one time after which a run is stuck: far more than ten thousand agents make that start together, and still
/// without a noticeable wait.
const MAX_EVENTS_AT_ONCE: u64 = 1 << 22;
/// Interval, in events, of checking whether a run is stuck.
const LOOK_EVERY: u64 = 1 << 12;
/// Most packets that an agent may send after one event.
const MAX_BURST: u32 = 1 << 20;

impl<A: Agent, O: Observer> Simulator<A, O> {
    /// Runs until `end`, inclusive.
    pub fn run_until(&mut self, end: Timestamp) -> Outcome {
        self.run_until_with(end, u64::MAX, |_| ControlFlow::Continue(()))
    }

    /// Runs until `end`, and every `every` events calls `hook` with the simulated time; it may stop the run.
    pub fn run_until_with(
        &mut self,
        end: Timestamp,
        every: u64,
        hook: impl FnMut(Timestamp) -> ControlFlow<()>,
    ) -> Outcome {
        // Sources without a timeout are at `Timestamp::MAX`.
        let end = end.min(Timestamp::MAX - TimeDelta::from_nanos(1));
        if self.lookahead().is_some() {
            self.run_both(end, every, hook)
        } else {
            self.run_list(Side::Near, end, every, hook)
        }
    }

    /// Runs the events of one side until `end`.
    pub(super) fn run_list(
        &mut self,
        side: Side,
        end: Timestamp,
        every: u64,
        mut hook: impl FnMut(Timestamp) -> ControlFlow<()>,
    ) -> Outcome {
        let every = every.max(1);
        let mut ask_at = self.events.saturating_add(every);
        let mut instant_began = self.events;
        self.look_at = ask_at.min(self.events + LOOK_EVERY);
        self.stuck = false;
        loop {
            let timers = &self.timers[side.index()];
            let (link, agent) = (timers.links.first(), timers.agents.first());
            let key = link.min(agent);
            if key.at() > end {
                break;
            }
            if key.at() > self.now {
                self.now = key.at();
                self.rank = 0;
                instant_began = self.events;
            }
            self.events += 1;
            if link < agent {
                self.on_link(key.index());
            } else {
                self.on_agent(key.index());
            }
            if self.events >= self.look_at {
                if self.stuck || self.events - instant_began >= MAX_EVENTS_AT_ONCE {
                    return Outcome::Stuck;
                }
                if self.events >= ask_at {
                    ask_at = self.events.saturating_add(every);
                    if hook(self.now).is_break() {
                        return Outcome::Cancelled;
                    }
                }
                self.look_at = ask_at.min(self.events + LOOK_EVERY);
            }
        }
        self.now = self.now.max(end);
        Outcome::Reached
    }

    /// A packet may have reached the end of a link.
    fn on_link(&mut self, index: usize) {
        loop {
            let entry = &mut self.links[index];
            match entry.link.pop(self.now) {
                Some(Departure::Delivered(d)) if entry.duplicates => self.forward_all(index, d),
                Some(Departure::Delivered(d)) => self.forward(index, d),
                Some(Departure::Dropped(d)) => self.lose(d.item, Place::Link(LinkId(index as u32), d.reason)),
                None => {}
            }
            match self.links[index].link.next_event() {
                Some(at) if at <= self.now => {}
                Some(at) => {
                    let order = self.next_order(at);
                    let entry = &mut self.links[index];
                    entry.looked = (self.now, self.rank);
                    return self.timers[entry.side.index()].links.set(index, at, order);
                }
                None => {
                    self.rank += 1;
                    let entry = &mut self.links[index];
                    entry.looked = (self.now, self.rank);
                    return self.timers[entry.side.index()].links.clear(index);
                }
            }
        }
    }

    /// Packets have reached the end of a link that makes copies: a copy follows at once, in the same slot.
    #[cold]
    fn forward_all(&mut self, index: usize, mut d: Delivery<u32>) {
        loop {
            let mut next = self.links[index].link.pop(self.now);
            if let Some(Departure::Delivered(second)) = &mut next
                && second.item == d.item
            {
                second.item = self.packets.copy(d.item);
                self.duplicated += 1;
            }
            self.forward(index, d);
            match next {
                Some(Departure::Delivered(following)) => d = following,
                Some(Departure::Dropped(d)) => return self.lose(d.item, Place::Link(LinkId(index as u32), d.reason)),
                None => return,
            }
        }
    }

    /// A packet has reached the end of a link.
    #[inline]
    fn forward(&mut self, index: usize, d: Delivery<u32>) {
        let head = self.packets.head_mut(d.item);
        head.hop += 1;
        let (from, next) = (head.from, head.next_hop());
        let packet = self.packets.packet_mut(d.item);
        if packet.ecn != d.ecn {
            packet.ecn = d.ecn;
            if d.ecn == Ecn::Ce {
                cold_path();
                self.observer.on_marked(self.now, LinkId(index as u32), from, packet);
            }
        }
        self.observer.on_forwarded(self.now, LinkId(index as u32), from, packet, d.queued_for);
        match next {
            Some(hop) => {
                self.enter(self.routes[hop], path::Packet { item: d.item, size: d.size, ecn: d.ecn, flow: from.0 });
            }
            None => self.arrive(d.item),
        }
    }

    /// An agent's timer has expired; it may have been set for an earlier request of the agent, or for its start or
    /// stop.
    fn on_agent(&mut self, index: usize) {
        let entry = &mut self.agents[index];
        let side = entry.side.index();
        if self.now >= entry.stop {
            entry.life = Life::Stopped;
            self.timers[side].agents.clear(index);
            return;
        }
        match entry.life {
            Life::Waiting => {
                entry.life = Life::Running;
                self.observer.on_timeout(self.now, AgentId(index as u32));
                entry.agent.on_start(self.now);
                self.pump(index);
            }
            Life::Running if entry.timeout <= self.now => {
                self.observer.on_timeout(self.now, AgentId(index as u32));
                entry.agent.on_timeout(self.now);
                self.pump(index);
            }
            Life::Running => self.arm_agent_timer(index),
            Life::Stopped => self.timers[side].agents.clear(index),
        }
    }

    /// A packet has reached its destination.
    #[inline]
    fn arrive(&mut self, slot: u32) {
        let Head { from, to, .. } = *self.packets.head(slot);
        let entry = &mut self.agents[to.index()];
        if entry.life != Life::Running {
            cold_path();
            return self.lose(slot, Place::Agent(to));
        }
        self.delivered += 1;
        let packet = self.packets.packet(slot);
        self.observer.on_delivered(self.now, to, from, packet);
        entry.agent.on_packet(self.now, packet);
        let has_nothing = entry.silent
            || entry.agent.is_settled() && self.timers[entry.side.index()].agents.get(to.index()) > self.now;
        self.packets.release(slot);
        if !has_nothing {
            self.pump(to.index());
        }
    }

    /// Sends all packets of an agent, and sets its timer.
    #[inline]
    pub(super) fn pump(&mut self, index: usize) {
        for burst in 0.. {
            let entry = &mut self.agents[index];
            let (slot, packet) = self.packets.vacant();
            packet.reset(self.now);
            if !entry.agent.poll_transmit(self.now, packet) {
                break;
            }
            if burst == MAX_BURST {
                cold_path();
                (self.stuck, self.look_at) = (true, 0);
                break;
            }
            let from = AgentId(index as u32);
            let (size, ecn, route) = (packet.size, packet.ecn, entry.route(packet.path, from));
            self.sent += 1;
            self.observer.on_sent(self.now, from, packet);
            let head = Head { from, to: route.to, hop: route.first, end: route.end };
            self.packets.occupy(head);
            match head.next_hop() {
                Some(hop) => self.enter(self.routes[hop], path::Packet { item: slot, size, ecn, flow: from.0 }),
                None => self.send_addressed(slot),
            }
            if self.agents[index].agent.is_settled() {
                break;
            }
        }
        self.rearm(index);
    }

    /// Passes a packet to a link.
    // Not a call, as the next two: each event passes through them.
    #[inline(always)]
    pub(super) fn enter(&mut self, id: LinkId, packet: path::Packet<u32>) {
        let LinkEntry { link, may_bring_forward, side, looked, .. } = &mut self.links[id.index()];
        let slot = packet.item;
        match link.push(self.now, packet) {
            Verdict::Queued => {
                self.observer.on_enqueued(self.now, id, self.packets.head(slot).from, self.packets.packet(slot));
                // Behind another packet it arrives later, unless packets are reordered or dropped from the queue.
                let armed = self.timers[side.index()].links.get(id.index());
                if (armed == Timestamp::MAX || *may_bring_forward)
                    && let Some(at) = link.next_event()
                    && at < armed
                {
                    let (side, looked) = (*side, *looked);
                    let order = self.order_from(at, looked);
                    self.timers[side.index()].links.set(id.index(), at, order);
                }
            }
            Verdict::Dropped(reason, slot) => {
                cold_path();
                self.lose(slot, Place::Link(id, reason));
            }
        }
    }

    pub(super) fn lose(&mut self, slot: u32, place: Place) {
        self.dropped += 1;
        let from = self.packets.head(slot).from;
        self.observer.on_dropped(self.now, place, from, self.packets.packet(slot));
        self.packets.release(slot);
    }

    /// Updates an agent's timer to its request. A timer that is too early is kept, and is updated when it expires.
    #[inline(always)]
    pub(super) fn rearm(&mut self, index: usize) {
        let entry = &mut self.agents[index];
        entry.timeout = entry.agent.poll_timeout().unwrap_or(Timestamp::MAX);
        self.arm_agent_timer(index);
    }

    #[inline(always)]
    fn arm_agent_timer(&mut self, index: usize) {
        let entry = &self.agents[index];
        let timers = &mut self.timers[entry.side.index()].agents;
        let (at, armed) = (entry.timeout.min(entry.stop), timers.get(index));
        if armed > self.now && armed <= at {
            return;
        }
        if at < Timestamp::MAX {
            self.set_agent_timer(index, at.max(self.now));
        } else {
            timers.clear(index);
        }
    }

    // Not a call: each event passes through it.
    #[inline(always)]
    pub(super) fn set_agent_timer(&mut self, index: usize, at: Timestamp) {
        let order = self.next_order(at);
        self.timers[self.agents[index].side.index()].agents.set(index, at, order);
    }
}
