//! The agents of an end's paths, and the addresses at which it can be reached.
//!
//! A path begins at a socket of this end. An interface that appears in mid-call is a further path ([`IcePaths::add_interface`]);
//! its addresses are announced to the other end, in-band or out of band. An end that receives addresses for which it has no
//! path adds one at its first socket; and so it does on an authentic check for a path that it does not have, which arrives first where its
//! NAT lets it in.

use super::agent::{AgentConfig, IceCounters, PathAgent, PathEvent, Selection, Stage, Transmit};
use super::candidate::{Candidate, CandidateKind, MAX_CANDIDATES, is_of_an_end};
use super::checks::PairMeasure;
use super::credentials::{Credentials, Secret};
use super::gather::Gather;
use super::relay::{Relay, RelayServer};
use super::slot::Slot;
use std::collections::VecDeque;
use std::net::SocketAddr;
use weir_session::multipath::MAX_PATHS;
use weir_units::{TimeDelta, Timestamp};

/// A new interface's addresses wait this long for the servers' answers before they are announced to the other end: RTCP carries one
/// early message, and the next only with a regular report (calibrated).
const PATIENCE: TimeDelta = TimeDelta::from_millis(200);
/// STUN servers that are asked, and TURN servers.
const MAX_SERVERS: usize = 4;
const MAX_RELAYS: usize = 2;
/// Priority of the first address that is offered in-band: that of a host's (RFC 8445, section 5.1.2.1).
const OFFERED_PRIORITY: u32 = 126 << 24 | 65_535 << 8 | 255;

/// An end's part in ICE.
#[derive(Clone, Debug)]
pub struct IceConfig {
    /// Its randomness.
    pub secret: Secret,
    /// Whether it nominates: the end that offers the call (RFC 8445, section 6.1.1).
    pub is_controlling: bool,
    /// STUN servers that are asked for each interface's address; more than four are left out.
    pub servers: Vec<SocketAddr>,
    /// TURN servers that are asked for a relayed address of each interface; more than two are left out.
    pub relays: Vec<RelayServer>,
    /// Whether this end is reached by relays alone, so that the other one sees none of its addresses.
    pub relay_only: bool,
    /// Times of the agents.
    pub agent: AgentConfig,
}

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IceEvent {
    /// A path is to use this pair, or it is more certain than before.
    Selected {
        /// The path.
        path: usize,
        /// Its pair.
        selection: Selection,
    },
    /// The other end no longer answers on a path.
    Lost {
        /// The path.
        path: usize,
    },
    /// This end's candidates have changed, and are to be announced to the other end.
    Candidates,
}

/// The agents of a call's paths.
#[derive(Debug)]
pub struct IcePaths {
    pub(super) config: IceConfig,
    pub(super) own: Credentials,
    /// Those before a restart that is not over, and when it is given up.
    pub(super) restart: Option<(Credentials, Timestamp)>,
    theirs: Option<Credentials>,
    pub(super) tie_breaker: u64,
    pub(super) slots: Vec<Option<Slot>>,
    /// Restarts of each path, those of paths that are gone included.
    pub(super) restarts: [u16; MAX_PATHS],
    /// Restarts of the other end that were followed.
    pub(super) followed: u64,
    pub(super) remote: Vec<Candidate>,
    out: VecDeque<Transmit>,
    events: VecDeque<IceEvent>,
    pub(super) counters: IceCounters,
}

impl IcePaths {
    /// An end without paths.
    pub fn new(mut config: IceConfig) -> Self {
        config.servers.truncate(MAX_SERVERS);
        config.relays.truncate(MAX_RELAYS);
        let own = Credentials::of(&mut config.secret);
        let tie_breaker = u64::from_be_bytes(config.secret.next());
        Self {
            config,
            own,
            restart: None,
            theirs: None,
            tie_breaker,
            slots: Vec::new(),
            restarts: [0; MAX_PATHS],
            followed: 0,
            remote: Vec::new(),
            out: VecDeque::new(),
            events: VecDeque::new(),
            counters: IceCounters::default(),
        }
    }

    /// This end's credentials, for its description.
    pub fn credentials(&self) -> &Credentials {
        &self.own
    }
    pub(super) const fn theirs(&self) -> Option<&Credentials> {
        self.theirs.as_ref()
    }
    /// Whether it nominates.
    pub fn set_controlling(&mut self, is_controlling: bool) {
        self.config.is_controlling = is_controlling;
    }
    /// The number of paths, those that are gone included.
    pub fn path_count(&self) -> usize {
        self.slots.len()
    }
    /// The socket at which a path begins.
    pub fn local(&self, path: usize) -> Option<SocketAddr> {
        Some(self.slot(path)?.local)
    }
    /// The pair that a path uses.
    pub fn selection(&self, path: usize) -> Option<Selection> {
        self.slot(path)?.agent.selection()
    }
    /// The measurements by the checks of a path's pairs.
    pub fn measures(&self, path: usize) -> &[PairMeasure] {
        self.slot(path).map_or(&[], |s| s.agent.measures())
    }
    /// Messages received on all paths.
    pub fn counters(&self) -> IceCounters {
        let mut sum = self.counters;
        self.slots.iter().flatten().for_each(|s| sum += s.counters());
        sum
    }
    /// Whether servers may still answer.
    pub fn is_gathering(&self) -> bool {
        self.slots.iter().flatten().any(Slot::is_gathering)
    }

    pub(super) fn slot(&self, path: usize) -> Option<&Slot> {
        self.slots.get(path)?.as_ref()
    }

    /// This end has a socket at a further address: a path begins there, and the STUN servers are asked. Returns its number;
    /// `None` if the call has as many paths as are possible, or no end can be reached at the address.
    pub fn add_interface(&mut self, local: SocketAddr, now: Timestamp) -> Option<usize> {
        let path = self.add_slot(self.next_number()?, local, true, now)?;
        self.add_asked(path, self.new_relays(local, now), now);
        Some(path)
    }

    /// Likewise, and servers were asked for relayed addresses of the socket before.
    pub fn add_interface_with(&mut self, local: SocketAddr, relays: Vec<Relay>, now: Timestamp) -> Option<usize> {
        let path = self.add_slot(self.next_number()?, local, true, now)?;
        self.add_asked(path, relays, now);
        Some(path)
    }

    pub(super) fn new_relays(&self, local: SocketAddr, now: Timestamp) -> Vec<Relay> {
        let fits = |r: &&RelayServer| r.address.is_ipv4() == local.is_ipv4();
        self.config.relays.iter().filter(fits).map(|server| Relay::new(local, server, now)).collect()
    }

    pub(super) fn add_asked(&mut self, path: usize, relays: Vec<Relay>, now: Timestamp) {
        let Some(local) = self.local(path) else { return };
        let servers = if self.config.relay_only { Vec::new() } else { self.config.servers.clone() };
        let secret = &mut self.config.secret;
        let fits = |s: &SocketAddr| s.is_ipv4() == local.is_ipv4();
        let gathers = servers.into_iter().filter(fits).map(|server| Gather::new(server, secret.next(), now)).collect();
        if let Some(Some(slot)) = self.slots.get_mut(path) {
            (slot.gathers, slot.tell_at) = (gathers, Some(now + PATIENCE));
            slot.relays = relays;
        }
        self.drain(now);
    }

    /// The address of a path's socket as it is seen from outside, as far as the caller knows.
    pub fn add_reflexive(&mut self, path: usize, at: SocketAddr) {
        if let Some(Some(slot)) = self.slots.get_mut(path)
            && is_of_an_end(at)
            && at != slot.local
            && !slot.reflexive.contains(&at)
            && !self.config.relay_only
            && slot.reflexive.len() < MAX_SERVERS
        {
            slot.reflexive.push(at);
            slot.agent.add_reflexive(at, slot.local);
        }
    }

    /// This end's socket of a path is gone, and the path with it.
    pub fn remove_interface(&mut self, path: usize) {
        if let Some(slot) = self.slots.get_mut(path).and_then(Option::take) {
            self.counters += slot.counters();
            self.report(IceEvent::Candidates);
        }
    }

    /// The number of a further path: one that no path has had, so that the ends agree on what it names, while there are
    /// any.
    fn next_number(&self) -> Option<usize> {
        let unused = Some(self.slots.len()).filter(|n| *n < MAX_PATHS);
        unused.or_else(|| self.slots.iter().position(Option::is_none))
    }

    /// An agent of a path at a socket, after this many restarts. `None` if no end can be reached there.
    pub(super) fn new_agent(&self, path: usize, restarts: u16, local: SocketAddr, now: Timestamp) -> Option<PathAgent> {
        let (config, controlling) = (self.config.agent, self.config.is_controlling);
        let own = self.own.of_restart(path, restarts);
        let mut agent = PathAgent::new(config, &own, controlling, self.tie_breaker, now);
        if !self.config.relay_only && !agent.add_host(local) {
            return None;
        }
        if let Some(theirs) = &self.theirs {
            agent.set_remote(&theirs.of_restart(path, restarts));
        }
        Some(agent)
    }

    pub(super) fn add_slot(&mut self, path: usize, local: SocketAddr, is_own: bool, now: Timestamp) -> Option<usize> {
        if path >= MAX_PATHS || !is_of_an_end(local) {
            return None;
        }
        let agent = self.new_agent(path, self.restarts[path], local, now)?;
        let mut slot = Slot::new(local, agent, is_own);
        slot.restarts = self.restarts[path];
        if !is_own {
            // It uses the relays of the socket that it shares.
            let shared = self.relays().filter(|(_, r)| r.local() == local).filter_map(|(_, r)| r.relayed());
            shared.for_each(|at| slot.add_relayed(at));
        }
        slot.tell(path, &self.remote);
        if self.slots.len() <= path {
            self.slots.resize_with(path + 1, || None);
        }
        self.slots[path] = Some(slot);
        Some(path)
    }

    /// The other end's credentials and candidates, as it has described them. More candidates than an end can have are
    /// left out.
    pub fn set_remote(&mut self, theirs: &Credentials, candidates: &[Candidate], now: Timestamp) {
        if self.restart.is_some() && self.theirs.as_ref().is_some_and(|t| t != theirs) {
            self.remote.clear();
        }
        self.theirs = Some(theirs.clone());
        for candidate in candidates {
            let is_known = self.remote.iter().any(|c| c.address == candidate.address);
            if !is_known && self.remote.len() < MAX_CANDIDATES {
                self.remote.push(*candidate);
            }
        }
        let described = self.remote.iter().filter_map(|c| c.path).max().map_or(1, |n| usize::from(n) + 1);
        while self.slots.len() < described.min(MAX_PATHS) {
            let Some(first) = self.slots.iter().flatten().next().map(|s| s.local) else { break };
            if self.add_slot(self.slots.len(), first, false, now).is_none() {
                break;
            }
        }
        for (path, slot) in self.slots.iter_mut().enumerate() {
            let Some(slot) = slot else { continue };
            let restarts = if self.restart.is_some() { 0 } else { slot.newest_restarts() };
            slot.newest().set_remote(&theirs.of_restart(path, restarts));
            slot.tell(path, &self.remote);
        }
        self.drain(now);
    }

    /// The other end has offered these addresses in-band, the preferred ones first.
    pub fn on_offered(&mut self, addresses: &[SocketAddr], now: Timestamp) {
        let is_known = |at: &SocketAddr| {
            self.remote.iter().any(|c| c.address == *at)
                || self.slots.iter().flatten().flat_map(Slot::agents).any(|a| a.is_announced(*at))
        };
        let usable = addresses.iter().zip(0..).filter(|(at, _)| is_of_an_end(**at));
        let candidate = |(&address, n): (&SocketAddr, u32)| Candidate {
            address,
            kind: CandidateKind::Host,
            priority: OFFERED_PRIORITY - (n << 8),
            path: None,
        };
        let all: Vec<Candidate> = usable.take(MAX_CANDIDATES).map(candidate).collect();
        let new: Vec<Candidate> = all.iter().filter(|c| !is_known(&c.address)).copied().collect();
        let waits = |s: &Slot| s.newest_selection().is_none_or(|s| s.stage < Stage::Valid);
        if !new.is_empty() && !self.slots.iter().flatten().any(waits) {
            let Some(first) = self.slots.iter().flatten().next().map(|s| s.local) else { return };
            if self.next_number().and_then(|path| self.add_slot(path, first, false, now)).is_none() {
                return;
            }
        }
        for slot in self.slots.iter_mut().flatten().filter(|s| waits(s)) {
            // The agent after a restart knows nothing that was offered before.
            let given = if slot.newest_restarts() > 0 { &all } else { &new };
            let agent = slot.newest();
            given.iter().for_each(|c| _ = agent.add_remote(c));
        }
        self.drain(now);
    }

    /// This end's candidates, for its description.
    pub fn candidates(&self) -> Vec<Candidate> {
        let own = self.slots.iter().zip(0u8..).filter_map(|(s, path)| Some((s.as_ref().filter(|s| s.is_own)?, path)));
        own.flat_map(|(s, path)| s.candidates(path, self.config.relay_only)).take(MAX_CANDIDATES).collect()
    }

    /// This end's addresses for an offer in-band: those of paths that have no pair yet first.
    pub fn offers(&self) -> Vec<SocketAddr> {
        let mut all: Vec<&Slot> = self.slots.iter().flatten().filter(|s| s.is_own).collect();
        all.sort_by_key(|s| s.agent.selection().is_some());
        all.into_iter().flat_map(|s| s.candidates(0, self.config.relay_only)).map(|c| c.address).collect()
    }

    pub(super) fn report(&mut self, event: IceEvent) {
        // Each reports a state that can be read again.
        if !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    pub(super) fn drain(&mut self, now: Timestamp) {
        for path in 0..self.slots.len() {
            self.add_allocated(path, now);
            while let Some(t) = self.slots[path].as_mut().and_then(Slot::poll_transmit) {
                let wrapped = self.wrap(now, t.from, t.to, &t.bytes);
                self.out.extend(wrapped);
            }
            while let Some(event) = self.slots[path].as_mut().and_then(Slot::poll_event) {
                let event = match event {
                    PathEvent::Selected(selection) => {
                        self.prefer(selection, now);
                        IceEvent::Selected { path, selection }
                    }
                    PathEvent::Lost => IceEvent::Lost { path },
                };
                self.events.push_back(event);
            }
            let Some(slot) = &mut self.slots[path] else { continue };
            let is_told = slot.take_telling(now);
            for relay in &mut slot.relays {
                let (local, to) = (relay.local(), relay.server());
                self.out.extend(std::iter::from_fn(|| relay.poll_transmit()).map(|bytes| Transmit {
                    from: local,
                    to,
                    bytes,
                }));
            }
            if is_told {
                self.report(IceEvent::Candidates);
            }
        }
    }

    /// Timers that are due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        for slot in self.slots.iter_mut().flatten() {
            slot.relays.iter_mut().for_each(|r| r.handle_timeout(now));
            for agent in slot.agents_mut() {
                if agent.poll_timeout() <= now {
                    agent.handle_timeout(now);
                }
            }
            let local = slot.newest_local();
            for gather in &mut slot.gathers {
                if let Some(request) = gather.poll_transmit(now) {
                    let (from, to) = (local, gather.server());
                    self.out.push_back(Transmit { from, to, bytes: request.to_vec() });
                }
            }
        }
        self.end_restart(now);
        self.end_path_restarts(now);
        self.drain(now);
    }

    /// When [`Self::handle_timeout`] is due; `None` if nothing is.
    pub fn poll_timeout(&mut self) -> Option<Timestamp> {
        let of = |s: &mut Slot| {
            let gathers = s.gathers.iter().filter_map(Gather::poll_timeout).min();
            let relays = s.relays.iter().filter_map(Relay::poll_timeout).min();
            let agents = s.agents_mut().map(PathAgent::poll_timeout).min();
            gathers.into_iter().chain(relays).chain(s.tell_at).chain(agents).min().unwrap_or(Timestamp::MAX)
        };
        let pending = self.slots.iter().flatten().filter_map(|s| Some(s.pending?.1)).min();
        let given_up = self.restart.as_ref().map(|r| r.1).into_iter().chain(pending).min();
        self.slots.iter_mut().flatten().map(of).chain(given_up).min()
    }

    /// The next datagram to be sent.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.out.pop_front()
    }
    /// The next event.
    pub fn poll_event(&mut self) -> Option<IceEvent> {
        self.events.pop_front()
    }
}
