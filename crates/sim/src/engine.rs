//! The event engine.

use crate::agent::{Agent, AgentId, LinkId};
use crate::observer::{Observer, Place};
use crate::slab::Slab;
use crate::timers::Timers;
use std::ops::ControlFlow;
use weir_path::{ConfigError, Delivery, Departure, Link, LinkConfig, Verdict};
use weir_units::{TimeDelta, Timestamp};

/// Events at one instant after which a run counts as stuck: far above what ten thousand agents that start
/// together make, far below a wait that a person would notice.
const MAX_EVENTS_AT_ONCE: u64 = 1 << 22;
/// Events between two looks at whether a run is stuck.
const LOOK_EVERY: u64 = 1 << 12;
/// Packets that an agent may send after one stimulus.
const MAX_BURST: u32 = 1 << 20;

/// How a run came to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Outcome {
    /// The time asked for has been reached.
    Reached,
    /// The hook has stopped the run; it can go on from here.
    Cancelled,
    /// Time stands still: agents go on exchanging packets, or one goes on sending, at a single instant.
    Stuck,
}

/// What an agent is to the engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Waiting,
    Running,
    Stopped,
}

#[derive(Debug)]
struct LinkSeat {
    link: Link<u32>,
    /// Whether the link makes copies, or lets packets overtake each other, which takes more care.
    duplicates: bool,
    overtakes: bool,
}

#[derive(Debug)]
struct Seat<A> {
    agent: A,
    life: Life,
    silent: bool,
    /// Where its packets go, and where their way begins in `Simulator::routes`.
    peer: AgentId,
    route: u32,
    hops: u32,
    /// `Timestamp::MAX` for never.
    stop: Timestamp,
    /// What the agent last said that it waits for, `Timestamp::MAX` for nothing; the timer may be set earlier.
    wish: Timestamp,
}

/// Totals of a run. Every packet sent or duplicated is delivered, dropped or still inside.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Events handled: departures from links and agents' timers.
    pub events: u64,
    /// Packets that agents have sent.
    pub sent: u64,
    /// Copies that links have made.
    pub duplicated: u64,
    /// Packets that agents have received.
    pub delivered: u64,
    /// Packets lost at links, or on arrival at an agent that was not there.
    pub dropped: u64,
    /// Packets under way.
    pub inside: u64,
}

/// Agents joined by links, in simulated time.
///
/// Time advances from event to event: a packet leaves a link, or an agent's timer comes. Equal times are taken
/// in a fixed order, so a run is a pure function of what was added, in order, and of the seed. A packet costs one
/// event for each hop, and nothing is allocated for it once the run has warmed up.
///
/// `A` is the type of every agent (an enum where there are several kinds), `O` what watches.
pub struct Simulator<A, O = ()> {
    now: Timestamp,
    seed: u64,
    order: u64,
    events: u64,
    sent: u64,
    duplicated: u64,
    delivered: u64,
    dropped: u64,
    stuck: bool,
    /// At so many events the run looks whether to go on.
    look_at: u64,
    links: Vec<LinkSeat>,
    link_timers: Timers,
    seats: Vec<Seat<A>>,
    agent_timers: Timers,
    routes: Vec<LinkId>,
    packets: Slab,
    observer: O,
}

impl<A: Agent> Simulator<A> {
    /// A simulator that nobody watches, at time zero; `seed` fixes every random draw of its links.
    pub fn new(seed: u64) -> Self {
        Self::with_observer(seed, ())
    }
}

impl<A: Agent, O: Observer> Simulator<A, O> {
    /// A simulator that `observer` watches.
    pub fn with_observer(seed: u64, observer: O) -> Self {
        Self {
            now: Timestamp::ZERO,
            seed,
            order: 0,
            events: 0,
            sent: 0,
            duplicated: 0,
            delivered: 0,
            dropped: 0,
            stuck: false,
            look_at: 0,
            links: Vec::new(),
            link_timers: Timers::default(),
            seats: Vec::new(),
            agent_timers: Timers::default(),
            routes: Vec::new(),
            packets: Slab::default(),
            observer,
        }
    }

    /// Adds a link, which carries packets one way; its randomness comes from the seed and its own number.
    ///
    /// Errors: what [`LinkConfig`] refuses.
    pub fn add_link(&mut self, config: &LinkConfig) -> Result<LinkId, ConfigError> {
        let id = self.links.len();
        let link = Link::new(config, mix(self.seed, id as u64))?;
        let overtakes = config.reordering.is_some() || config.jitter.is_some_and(|j| j.may_reorder);
        self.links.push(LinkSeat { link, duplicates: config.duplication > 0.0, overtakes });
        self.link_timers.grow(id + 1);
        Ok(LinkId(id as u32))
    }

    /// Adds an agent that starts at `start` and is connected to nothing yet.
    pub fn add_agent(&mut self, agent: A, start: Timestamp) -> AgentId {
        let id = AgentId(self.seats.len() as u32);
        let start = start.max(self.now);
        self.seats.push(Seat {
            silent: agent.is_silent(),
            agent,
            life: Life::Waiting,
            peer: id,
            route: 0,
            hops: 0,
            stop: Timestamp::MAX,
            wish: Timestamp::MAX,
        });
        self.agent_timers.grow(self.seats.len());
        self.set_agent_timer(id.index(), start);
        id
    }

    /// Stops an agent at `stop`: from then on it sends nothing, and packets that come for it are lost.
    pub fn stop_agent(&mut self, id: AgentId, stop: Timestamp) {
        let seat = &mut self.seats[id.index()];
        seat.stop = stop;
        if seat.life == Life::Running {
            self.rearm(id.index());
        }
    }

    /// Sends what `from` sends over `links`, in this order, to `to`; packets under way are not turned.
    ///
    /// Panics where `links` is empty or something is not of this simulator.
    pub fn set_route(&mut self, from: AgentId, links: &[LinkId], to: AgentId) {
        assert!(!links.is_empty(), "a route has at least one link");
        assert!(links.iter().all(|l| l.index() < self.links.len()), "a route's links belong to the simulator");
        assert!(to.index() < self.seats.len(), "a route's end belongs to the simulator");
        let route = self.routes.len() as u32;
        self.routes.extend_from_slice(links);
        let seat = &mut self.seats[from.index()];
        (seat.peer, seat.route, seat.hops) = (to, route, links.len() as u32);
    }

    /// Joins two agents: what `a` sends goes over `forward` to `b`, what `b` sends over `reverse` to `a`.
    pub fn connect(&mut self, a: AgentId, b: AgentId, route: &crate::Route) {
        self.set_route(a, &route.forward, b);
        self.set_route(b, &route.reverse, a);
    }

    /// The simulated time.
    pub const fn now(&self) -> Timestamp {
        self.now
    }
    /// Totals so far.
    pub fn totals(&self) -> Totals {
        Totals {
            events: self.events,
            sent: self.sent,
            duplicated: self.duplicated,
            delivered: self.delivered,
            dropped: self.dropped,
            inside: self.packets.in_use() as u64,
        }
    }
    /// How many agents there are.
    pub fn agent_count(&self) -> usize {
        self.seats.len()
    }
    /// How many links there are.
    pub fn link_count(&self) -> usize {
        self.links.len()
    }
    /// An agent.
    pub fn agent(&self, id: AgentId) -> &A {
        &self.seats[id.index()].agent
    }
    /// All agents, in the order in which they were added.
    pub fn agents(&self) -> impl Iterator<Item = (AgentId, &A)> {
        self.seats.iter().enumerate().map(|(k, s)| (AgentId(k as u32), &s.agent))
    }
    /// Changes an agent from outside at the present instant; whatever it then wants to send is sent.
    pub fn with_agent<R>(&mut self, id: AgentId, change: impl FnOnce(&mut A, Timestamp) -> R) -> R {
        let seat = &mut self.seats[id.index()];
        let r = change(&mut seat.agent, self.now);
        if seat.life == Life::Running {
            self.pump(id.index());
        }
        r
    }
    /// A link; asking for its queue takes `&mut` because the queue moves with time.
    pub fn link(&mut self, id: LinkId) -> &mut Link<u32> {
        &mut self.links[id.index()].link
    }
    /// What watches.
    pub const fn observer(&self) -> &O {
        &self.observer
    }
    /// What watches, to be changed.
    pub const fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }
    /// Ends the simulation and gives back what watched.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Runs until `end`, its own events included.
    pub fn run_until(&mut self, end: Timestamp) -> Outcome {
        self.run_until_with(end, u64::MAX, |_| ControlFlow::Continue(()))
    }

    /// Runs until `end`, and every `every` events tells `hook` the simulated time, which may stop the run.
    pub fn run_until_with(
        &mut self,
        end: Timestamp,
        every: u64,
        mut hook: impl FnMut(Timestamp) -> ControlFlow<()>,
    ) -> Outcome {
        let every = every.max(1);
        let mut ask_at = self.events.saturating_add(every);
        let mut instant_began = self.events;
        self.look_at = ask_at.min(self.events + LOOK_EVERY);
        self.stuck = false;
        // Sources that wait for nothing stand at `Timestamp::MAX`.
        let end = end.min(Timestamp::MAX - TimeDelta::from_nanos(1));
        loop {
            let (link, agent) = (self.link_timers.first(), self.agent_timers.first());
            let key = link.min(agent);
            if key.at() > end {
                break;
            }
            if key.at() > self.now {
                self.now = key.at();
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

    /// Something may be at the far end of a link.
    fn on_link(&mut self, index: usize) {
        loop {
            let seat = &mut self.links[index];
            match seat.link.pop(self.now) {
                Some(Departure::Delivered(d)) if seat.duplicates => self.forward_all(index, d),
                Some(Departure::Delivered(d)) => self.forward(index, d),
                Some(Departure::Dropped(d)) => self.lose(d.item, Place::Link(LinkId(index as u32), d.reason)),
                None => {}
            }
            match self.links[index].link.next_event() {
                Some(at) if at <= self.now => {}
                Some(at) => return self.set_link_timer(index, at),
                None => return self.link_timers.clear(index),
            }
        }
    }

    /// Packets have come to the far end of a link that makes copies: a copy comes right behind, with the same place.
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

    /// A packet has come to the far end of a link.
    #[inline]
    fn forward(&mut self, index: usize, d: Delivery<u32>) {
        let entry = self.packets.get_mut(d.item);
        entry.packet.ecn = d.ecn;
        entry.hop += 1;
        self.observer.on_forwarded(self.now, LinkId(index as u32), entry.from, &entry.packet, d.queued_for);
        match entry.next_hop() {
            Some(hop) => {
                let link = self.routes[hop];
                self.enter(d.item, link);
            }
            None => self.arrive(d.item),
        }
    }

    /// An agent's timer has come; it may have been set for an earlier wish of the agent, or for its start or stop.
    fn on_agent(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        if self.now >= seat.stop {
            seat.life = Life::Stopped;
            self.agent_timers.clear(index);
            return;
        }
        match seat.life {
            Life::Waiting => {
                seat.life = Life::Running;
                seat.agent.on_start(self.now);
                self.pump(index);
            }
            Life::Running if seat.wish <= self.now => {
                seat.agent.on_timeout(self.now);
                self.pump(index);
            }
            Life::Running => self.set_timer_to_wish(index),
            Life::Stopped => self.agent_timers.clear(index),
        }
    }

    /// A packet has come to the end of its way.
    #[inline]
    fn arrive(&mut self, slot: u32) {
        let entry = self.packets.get(slot);
        let to = entry.to;
        let seat = &mut self.seats[to.index()];
        if seat.life != Life::Running {
            return self.lose(slot, Place::Agent(to));
        }
        self.delivered += 1;
        self.observer.on_delivered(self.now, to, entry.from, &entry.packet);
        seat.agent.on_packet(self.now, &entry.packet);
        let silent = seat.silent;
        self.packets.release(slot);
        if !silent {
            self.pump(to.index());
        }
    }

    /// Lets an agent send all it wants, and sets its timer.
    #[inline]
    fn pump(&mut self, index: usize) {
        for burst in 0.. {
            let seat = &mut self.seats[index];
            let (slot, entry) = self.packets.vacant();
            entry.packet.reset(self.now);
            if !seat.agent.poll_transmit(self.now, &mut entry.packet) {
                break;
            }
            if burst == MAX_BURST {
                (self.stuck, self.look_at) = (true, 0);
                break;
            }
            entry.from = AgentId(index as u32);
            entry.to = seat.peer;
            (entry.hop, entry.end) = (seat.route, seat.route + seat.hops);
            self.packets.occupy();
            self.sent += 1;
            self.observer.on_sent(self.now, AgentId(index as u32), &self.packets.get(slot).packet);
            match self.packets.get(slot).next_hop() {
                Some(hop) => {
                    let link = self.routes[hop];
                    self.enter(slot, link);
                }
                None => self.lose(slot, Place::Agent(AgentId(index as u32))),
            }
        }
        self.rearm(index);
    }

    /// Gives a packet to a link.
    #[inline]
    fn enter(&mut self, slot: u32, id: LinkId) {
        let entry = self.packets.get(slot);
        let LinkSeat { link, overtakes, .. } = &mut self.links[id.index()];
        match link.push(self.now, entry.packet.size, entry.packet.ecn, slot) {
            Verdict::Queued => {
                self.observer.on_enqueued(self.now, id, entry.from, &entry.packet);
                // Behind another packet it comes later, unless packets overtake.
                let armed = self.link_timers.get(id.index());
                if (armed == Timestamp::MAX || *overtakes)
                    && let Some(at) = link.next_event()
                    && at < armed
                {
                    self.set_link_timer(id.index(), at);
                }
            }
            Verdict::Dropped(reason, slot) => self.lose(slot, Place::Link(id, reason)),
        }
    }

    fn lose(&mut self, slot: u32, place: Place) {
        self.dropped += 1;
        let entry = self.packets.get(slot);
        self.observer.on_dropped(self.now, place, entry.from, &entry.packet);
        self.packets.release(slot);
    }

    /// Brings an agent's timer in line with its wish. A timer that is only too early stays: it asks again when it comes.
    #[inline]
    fn rearm(&mut self, index: usize) {
        let seat = &mut self.seats[index];
        seat.wish = seat.agent.poll_timeout().unwrap_or(Timestamp::MAX);
        self.set_timer_to_wish(index);
    }

    #[inline]
    fn set_timer_to_wish(&mut self, index: usize) {
        let seat = &self.seats[index];
        let (at, armed) = (seat.wish.min(seat.stop), self.agent_timers.get(index));
        if armed > self.now && armed <= at {
            return;
        }
        if at < Timestamp::MAX {
            self.set_agent_timer(index, at.max(self.now));
        } else {
            self.agent_timers.clear(index);
        }
    }

    #[inline]
    fn set_agent_timer(&mut self, index: usize, at: Timestamp) {
        self.order += 1;
        self.agent_timers.set(index, at, self.order);
    }

    #[inline]
    fn set_link_timer(&mut self, index: usize, at: Timestamp) {
        self.order += 1;
        self.link_timers.set(index, at, self.order);
    }
}

/// A seed for part `k` of something seeded by `seed`: the output function of SplitMix64 (Steele et al., 2014).
pub fn mix(seed: u64, k: u64) -> u64 {
    let mut z = seed.wrapping_add(k.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests;
