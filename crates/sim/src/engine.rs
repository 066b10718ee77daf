//! The event engine: agents, links and routes. The main loop is in `run.rs`.

mod access;
#[cfg(test)]
mod any_network;
mod run;
mod sides;
#[cfg(test)]
mod tests;

use crate::agent::Agent;
use crate::ids::{AgentId, LinkId};
use crate::observer::Observer;
use crate::route::Route;
use crate::seed::mix;
use crate::slab::Slab;
use crate::timers::{Key, Timers};
use access::Access;
pub use sides::Side;
use sides::Sides;
use weir_path::{ConfigError, Link, LinkConfig};
use weir_units::{PathId, Timestamp};

/// Why a run returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Outcome {
    /// The end time has been reached.
    Reached,
    /// The hook has stopped the run, which can be continued.
    Cancelled,
    /// Time does not advance: packets are exchanged or sent without end at a single time.
    Stuck,
}

/// Lifecycle of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Life {
    Waiting,
    Running,
    Stopped,
}

#[derive(Debug)]
struct LinkEntry {
    link: Link<u32>,
    /// Whether the link makes copies, or may have an event before those announced; these need additional handling.
    duplicates: bool,
    may_bring_forward: bool,
    /// Of its exit, where it has its events.
    side: Side,
    /// When its next event was last looked for there, and the rank that it got.
    looked: (Timestamp, u64),
}

/// The event lists of one side.
#[derive(Clone, Default, Debug)]
struct SourceTimers {
    links: Timers,
    agents: Timers,
}

impl SourceTimers {
    /// The earliest event.
    #[inline]
    fn first(&self) -> Key {
        self.links.first().min(self.agents.first())
    }
}

/// Destination of packets, and the position of their links in `Simulator::routes`.
#[derive(Clone, Copy, Debug)]
struct RouteEntry {
    to: AgentId,
    first: u32,
    end: u32,
}

impl RouteEntry {
    /// For packets without a route: they are lost when sent.
    const fn none(from: AgentId) -> Self {
        Self { to: from, first: 0, end: 0 }
    }
}

#[derive(Debug)]
struct AgentEntry<A> {
    agent: A,
    life: Life,
    silent: bool,
    side: Side,
    /// The route of [`PathId::FIRST`].
    route: RouteEntry,
    /// Routes of further paths, in order. Boxed, so that an entry fits into a cache line.
    further: Box<[RouteEntry]>,
    /// `Timestamp::MAX` for never.
    stop: Timestamp,
    /// The timeout last requested by the agent, `Timestamp::MAX` for none; the timer may be set earlier.
    timeout: Timestamp,
}

impl<A> AgentEntry<A> {
    /// The route of packets on `path`.
    #[inline]
    fn route(&self, path: PathId, from: AgentId) -> RouteEntry {
        match path.index().checked_sub(1) {
            None => self.route,
            Some(n) => self.further.get(n).copied().unwrap_or(RouteEntry::none(from)),
        }
    }
}

/// Totals of a run. Every packet sent or duplicated is delivered, dropped or still in the network.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Totals {
    /// Events handled: departures from links and agents' timers.
    pub events: u64,
    /// Packets sent by agents.
    pub sent: u64,
    /// Copies made by links.
    pub duplicated: u64,
    /// Packets received by agents.
    pub delivered: u64,
    /// Packets lost at links, or on arrival at an agent that is not running.
    pub dropped: u64,
    /// Packets in the network.
    pub inside: u64,
}

/// Agents connected by links, in simulated time.
///
/// Time advances from event to event: a packet leaves a link, or an agent's timer expires. Events at the same time have
/// a fixed order, so a run is a pure function of what was added, in order, and of the seed. A packet costs one event
/// per hop, without allocation in steady state.
///
/// `A` is the type of all agents (an enum if there are several kinds), `O` the observer.
pub struct Simulator<A, O = ()> {
    now: Timestamp,
    seed: u64,
    order: u64,
    /// Events set since the time has advanced, up to a bound, where there are two sides.
    rank: u64,
    events: u64,
    sent: u64,
    duplicated: u64,
    delivered: u64,
    dropped: u64,
    stuck: bool,
    /// Event count at which to check next whether to continue.
    look_at: u64,
    links: Vec<LinkEntry>,
    agents: Vec<AgentEntry<A>>,
    /// By side.
    timers: [SourceTimers; 2],
    sides: Sides,
    routes: Vec<LinkId>,
    access: Access,
    packets: Slab,
    observer: O,
}

impl<A: Agent> Simulator<A> {
    /// A simulator without an observer, at time zero; `seed` determines all random numbers of its links.
    pub fn new(seed: u64) -> Self {
        Self::with_observer(seed, ())
    }
}

impl<A: Agent, O: Observer> Simulator<A, O> {
    /// A simulator with an `observer`.
    pub fn with_observer(seed: u64, observer: O) -> Self {
        Self {
            now: Timestamp::ZERO,
            seed,
            order: 0,
            rank: 0,
            events: 0,
            sent: 0,
            duplicated: 0,
            delivered: 0,
            dropped: 0,
            stuck: false,
            look_at: 0,
            links: Vec::new(),
            agents: Vec::new(),
            timers: Default::default(),
            sides: Sides::default(),
            routes: Vec::new(),
            access: Access::default(),
            packets: Slab::default(),
            observer,
        }
    }

    /// Adds a link, which carries packets in one direction; its random numbers follow from the seed and its index.
    ///
    /// Errors: as for [`LinkConfig`].
    pub fn add_link(&mut self, config: &LinkConfig) -> Result<LinkId, ConfigError> {
        let id = self.links.len();
        let link = Link::new(config, mix(self.seed, id as u64))?;
        let may_bring_forward = link.may_bring_forward();
        let duplicates = config.duplication > 0.0;
        let (side, looked) = (Side::Near, (Timestamp::ZERO, 0));
        self.links.push(LinkEntry { link, duplicates, may_bring_forward, side, looked });
        self.near().links.grow(id + 1);
        Ok(LinkId(id as u32))
    }

    /// Adds an agent that starts at `start`, not yet connected.
    pub fn add_agent(&mut self, agent: A, start: Timestamp) -> AgentId {
        let id = AgentId(self.agents.len() as u32);
        let start = start.max(self.now);
        self.agents.push(AgentEntry {
            silent: agent.is_silent(),
            agent,
            life: Life::Waiting,
            side: Side::Near,
            route: RouteEntry::none(id),
            further: Box::default(),
            stop: Timestamp::MAX,
            timeout: Timestamp::MAX,
        });
        let count = self.agents.len();
        self.near().agents.grow(count);
        self.set_agent_timer(id.index(), start);
        id
    }

    /// Stops an agent at `stop`: from then on it sends nothing, and packets for it are lost.
    pub fn stop_agent(&mut self, id: AgentId, stop: Timestamp) {
        let entry = &mut self.agents[id.index()];
        entry.stop = stop;
        if entry.life == Life::Running {
            self.rearm(id.index());
        }
    }

    /// Routes packets of `from` on [`PathId::FIRST`], the default path, over `links` in this order to `to`. Packets in
    /// the network keep their route.
    ///
    /// Panics if `links` is empty or anything does not belong to this simulator.
    pub fn set_route(&mut self, from: AgentId, links: &[LinkId], to: AgentId) {
        self.set_path_route(from, PathId::FIRST, links, to);
    }

    /// Routes packets of `from` on `path` ([`Packet::path`](crate::Packet::path)) over `links` in this order to `to`.
    /// An agent has one route per path; packets on a path without a route are lost.
    ///
    /// Panics as for [`Self::set_route`].
    pub fn set_path_route(&mut self, from: AgentId, path: PathId, links: &[LinkId], to: AgentId) {
        assert!(!links.is_empty(), "a route has at least one link");
        assert!(links.iter().all(|l| l.index() < self.links.len()), "a route's links belong to the simulator");
        assert!(to.index() < self.agents.len(), "a route's end belongs to the simulator");
        let first = self.routes.len() as u32;
        self.routes.extend_from_slice(links);
        let route = RouteEntry { to, first, end: self.routes.len() as u32 };
        let entry = &mut self.agents[from.index()];
        match path.index().checked_sub(1) {
            None => entry.route = route,
            Some(n) => {
                let mut further = core::mem::take(&mut entry.further).into_vec();
                further.resize(further.len().max(n + 1), RouteEntry::none(from));
                further[n] = route;
                entry.further = further.into_boxed_slice();
            }
        }
    }

    /// Connects two agents: packets from `a` go over `forward` to `b`, packets from `b` over `reverse` to `a`.
    pub fn connect(&mut self, a: AgentId, b: AgentId, route: &Route) {
        self.connect_path(a, b, PathId::FIRST, route);
    }

    /// Connects two agents on one of several paths, as [`Self::connect`] on the first.
    pub fn connect_path(&mut self, a: AgentId, b: AgentId, path: PathId, route: &Route) {
        self.set_path_route(a, path, &route.forward, b);
        self.set_path_route(b, path, &route.reverse, a);
    }

    /// The simulated time.
    pub const fn now(&self) -> Timestamp {
        self.now
    }
    /// When the next event is due, if any; a run in real time sleeps until then. [`Self::with_agent`] may make it
    /// earlier.
    pub fn next_event(&self) -> Option<Timestamp> {
        let [near, far] = &self.timers;
        let at = near.first().min(far.first()).at();
        (at < Timestamp::MAX).then_some(at)
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
    /// Number of agents.
    pub fn agent_count(&self) -> usize {
        self.agents.len()
    }
    /// Number of links.
    pub fn link_count(&self) -> usize {
        self.links.len()
    }
    /// An agent.
    pub fn agent(&self, id: AgentId) -> &A {
        &self.agents[id.index()].agent
    }
    /// All agents in the order of addition.
    pub fn agents(&self) -> impl Iterator<Item = (AgentId, &A)> {
        self.agents.iter().enumerate().map(|(k, s)| (AgentId(k as u32), &s.agent))
    }
    /// Modifies an agent from outside at the current time; packets that it then has to send are sent.
    pub fn with_agent<R>(&mut self, id: AgentId, change: impl FnOnce(&mut A, Timestamp) -> R) -> R {
        let entry = &mut self.agents[id.index()];
        let r = change(&mut entry.agent, self.now);
        if entry.life == Life::Running {
            self.pump(id.index());
        }
        r
    }
    /// A link, mutably, since reading its queue advances it to the current time.
    pub fn link(&mut self, id: LinkId) -> &mut Link<u32> {
        &mut self.links[id.index()].link
    }
    /// The observer.
    pub const fn observer(&self) -> &O {
        &self.observer
    }
    /// The observer, mutably.
    pub const fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }
    /// Ends the simulation and returns the observer.
    pub fn into_observer(self) -> O {
        self.observer
    }
}
