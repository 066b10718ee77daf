//! The agents of an end's paths, and the addresses at which it can be reached.
//!
//! A path begins at a socket of this end. An interface that appears in mid-call is a further path ([`IcePaths::add_interface`]);
//! its addresses are announced to the other end, in-band or out of band. An end that receives addresses for which it has no
//! path adds one at its first socket; and so it does on an authentic check for a path that it does not have, which arrives first where its
//! NAT lets it in.

use super::agent::{AgentConfig, IceCounters, PathAgent, PathEvent, Selection, Stage, Transmit};
use super::candidate::{Candidate, CandidateKind, MAX_CANDIDATES, is_of_an_end};
use super::checks::PairMeasure;
use super::credentials::{Credentials, Hmac, Secret};
use super::gather::Gather;
use super::stun::{MAX_MESSAGE, transaction_of};
use is::Sha1HmacProvider as _;
use is::stun::StunMessage;
use std::collections::VecDeque;
use std::net::SocketAddr;
use weir_session::multipath::MAX_PATHS;
use weir_units::{TimeDelta, Timestamp};

/// A new interface's addresses wait this long for the servers' answers before they are announced to the other end: RTCP carries one
/// early message, and the next only with a regular report (calibrated).
const PATIENCE: TimeDelta = TimeDelta::from_millis(200);
/// STUN servers that are asked.
const MAX_SERVERS: usize = 4;
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

/// A path of this end.
#[derive(Debug)]
struct Slot {
    local: SocketAddr,
    agent: PathAgent,
    gathers: Vec<Gather>,
    reflexive: Vec<SocketAddr>,
    /// Whether its addresses are its own, not those of the first path's socket.
    is_own: bool,
    /// Latest time at which they are announced to the other end.
    tell_at: Option<Timestamp>,
}

impl Slot {
    fn is_gathering(&self) -> bool {
        self.gathers.iter().any(|g| !g.is_over())
    }
    /// Whether it is to be announced to the other end now.
    fn take_telling(&mut self, now: Timestamp) -> bool {
        let is_due = self.tell_at.is_some_and(|at| now >= at || !self.is_gathering());
        if is_due {
            self.tell_at = None;
        }
        is_due
    }
}

/// The agents of a call's paths.
#[derive(Debug)]
pub struct IcePaths {
    config: IceConfig,
    own: Credentials,
    theirs: Option<Credentials>,
    tie_breaker: u64,
    slots: Vec<Option<Slot>>,
    remote: Vec<Candidate>,
    out: VecDeque<Transmit>,
    events: VecDeque<IceEvent>,
    counters: IceCounters,
}

impl IcePaths {
    /// An end without paths.
    pub fn new(mut config: IceConfig) -> Self {
        config.servers.truncate(MAX_SERVERS);
        let own = Credentials::of(&mut config.secret);
        let tie_breaker = u64::from_be_bytes(config.secret.next());
        Self {
            config,
            own,
            theirs: None,
            tie_breaker,
            slots: Vec::new(),
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
        self.slots.iter().flatten().for_each(|s| sum += s.agent.counters());
        sum
    }
    /// Whether servers may still answer.
    pub fn is_gathering(&self) -> bool {
        self.slots.iter().flatten().any(Slot::is_gathering)
    }

    fn slot(&self, path: usize) -> Option<&Slot> {
        self.slots.get(path)?.as_ref()
    }

    /// This end has a socket at a further address: a path begins there, and the STUN servers are asked. Returns its number;
    /// `None` if the call has as many paths as are possible, or no end can be reached at the address.
    pub fn add_interface(&mut self, local: SocketAddr, now: Timestamp) -> Option<usize> {
        let path = self.add_slot(self.next_number()?, local, true, now)?;
        let servers = self.config.servers.clone();
        let secret = &mut self.config.secret;
        let fits = |s: &SocketAddr| s.is_ipv4() == local.is_ipv4();
        let gathers = servers.into_iter().filter(fits).map(|server| Gather::new(server, secret.next(), now)).collect();
        if let Some(Some(slot)) = self.slots.get_mut(path) {
            (slot.gathers, slot.tell_at) = (gathers, Some(now + PATIENCE));
        }
        self.drain(now);
        Some(path)
    }

    /// The address of a path's socket as it is seen from outside, as far as the caller knows.
    pub fn add_reflexive(&mut self, path: usize, at: SocketAddr) {
        if let Some(Some(slot)) = self.slots.get_mut(path)
            && is_of_an_end(at)
            && at != slot.local
            && !slot.reflexive.contains(&at)
            && slot.reflexive.len() < MAX_SERVERS
        {
            slot.reflexive.push(at);
            slot.agent.add_reflexive(at, slot.local);
        }
    }

    /// This end's socket of a path is gone, and the path with it.
    pub fn remove_interface(&mut self, path: usize) {
        if let Some(slot) = self.slots.get_mut(path).and_then(Option::take) {
            self.counters += slot.agent.counters();
            self.report(IceEvent::Candidates);
        }
    }

    /// The number of a further path: one that no path has had, so that the ends agree on what it names, while there are
    /// any.
    fn next_number(&self) -> Option<usize> {
        let unused = Some(self.slots.len()).filter(|n| *n < MAX_PATHS);
        unused.or_else(|| self.slots.iter().position(Option::is_none))
    }

    fn add_slot(&mut self, path: usize, local: SocketAddr, is_own: bool, now: Timestamp) -> Option<usize> {
        if path >= MAX_PATHS || !is_of_an_end(local) {
            return None;
        }
        let (config, controlling) = (self.config.agent, self.config.is_controlling);
        let mut agent = PathAgent::new(config, &self.own.of_path(path), controlling, self.tie_breaker, now);
        if !agent.add_host(local) {
            return None;
        }
        if let Some(theirs) = &self.theirs {
            agent.set_remote(&theirs.of_path(path));
        }
        let mut slot = Slot { local, agent, gathers: Vec::new(), reflexive: Vec::new(), is_own, tell_at: None };
        tell(&mut slot, path, &self.remote);
        if self.slots.len() <= path {
            self.slots.resize_with(path + 1, || None);
        }
        self.slots[path] = Some(slot);
        Some(path)
    }

    /// The other end's credentials and candidates, as it has described them. More candidates than an end can have are
    /// left out.
    pub fn set_remote(&mut self, theirs: &Credentials, candidates: &[Candidate], now: Timestamp) {
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
            slot.agent.set_remote(&theirs.of_path(path));
            tell(slot, path, &self.remote);
        }
        self.drain(now);
    }

    /// The other end has offered these addresses in-band, the preferred ones first.
    pub fn on_offered(&mut self, addresses: &[SocketAddr], now: Timestamp) {
        let is_known = |at: &SocketAddr| {
            self.remote.iter().any(|c| c.address == *at)
                || self.slots.iter().flatten().any(|s| s.agent.is_announced(*at))
        };
        let new = addresses.iter().zip(0..).filter(|(at, _)| !is_known(at) && is_of_an_end(**at));
        let new: Vec<Candidate> = new
            .take(MAX_CANDIDATES)
            .map(|(&address, n)| Candidate {
                address,
                kind: CandidateKind::Host,
                priority: OFFERED_PRIORITY - (n << 8),
                path: None,
            })
            .collect();
        if new.is_empty() {
            return;
        }
        let waits = |s: &Slot| s.agent.selection().is_none_or(|s| s.stage < Stage::Valid);
        if !self.slots.iter().flatten().any(waits) {
            let Some(first) = self.slots.iter().flatten().next().map(|s| s.local) else { return };
            if self.next_number().and_then(|path| self.add_slot(path, first, false, now)).is_none() {
                return;
            }
        }
        for slot in self.slots.iter_mut().flatten().filter(|s| waits(s)) {
            new.iter().for_each(|c| _ = slot.agent.add_remote(c));
        }
        self.drain(now);
    }

    /// This end's candidates, for its description.
    pub fn candidates(&self) -> Vec<Candidate> {
        let own = self.slots.iter().zip(0u8..).filter_map(|(s, path)| Some((s.as_ref().filter(|s| s.is_own)?, path)));
        let of = |(s, path): (&Slot, u8)| {
            let host = Candidate::new(s.local, CandidateKind::Host, path);
            let seen = s.reflexive.iter().filter_map(|at| Candidate::new(*at, CandidateKind::ServerReflexive, path));
            host.into_iter().chain(seen).collect::<Vec<_>>()
        };
        own.flat_map(of).take(MAX_CANDIDATES).collect()
    }

    /// This end's addresses for an offer in-band: those of paths that have no pair yet first.
    pub fn offers(&self) -> Vec<SocketAddr> {
        let mut all: Vec<&Slot> = self.slots.iter().flatten().filter(|s| s.is_own).collect();
        all.sort_by_key(|s| s.agent.selection().is_some());
        all.into_iter().flat_map(|s| std::iter::once(s.local).chain(s.reflexive.iter().copied())).collect()
    }

    /// Takes a datagram that has arrived at a socket of this end. Returns `false` if it is no STUN, and is to be read by
    /// others.
    pub fn handle_datagram(&mut self, now: Timestamp, local: SocketAddr, from: SocketAddr, bytes: &[u8]) -> bool {
        let Some(id) = transaction_of(bytes) else { return false };
        for slot in self.slots.iter_mut().flatten().filter(|s| s.local == local) {
            let found = slot.gathers.iter_mut().position(|g| g.handle_datagram(from, bytes));
            if let Some(found) = found {
                let mapped = slot.gathers[found].mapped().filter(|at| *at != local && !slot.reflexive.contains(at));
                if let Some(at) = mapped {
                    slot.reflexive.push(at);
                    slot.agent.add_reflexive(at, local);
                    slot.tell_at.get_or_insert(now);
                }
                self.drain(now);
                return true;
            }
        }
        let parsed = if bytes.len() <= MAX_MESSAGE { StunMessage::parse(bytes).ok() } else { None };
        let Some(message) = parsed else {
            self.counters.malformed += 1;
            return true;
        };
        let path = if message.is_binding_request() {
            self.path_of_request(&message, local, now)
        } else {
            let awaits = |s: &Option<Slot>| s.as_ref().is_some_and(|s| s.agent.awaits(id, local, from));
            let found = self.slots.iter().position(awaits);
            self.counters.unexpected += u64::from(found.is_none());
            found
        };
        if let Some(Some(slot)) = path.and_then(|path| self.slots.get_mut(path)) {
            slot.agent.handle_message(now, (id, message), local, from);
        }
        self.drain(now);
        true
    }

    /// The path of a check, which is added if there was none of this number and the check is authentic.
    fn path_of_request(&mut self, message: &StunMessage<'_>, local: SocketAddr, now: Timestamp) -> Option<usize> {
        let named = message.split_username().and_then(|(name, _)| self.own.path_of(name));
        let Some(path) = named.filter(|path| *path < MAX_PATHS) else {
            self.counters.unauthentic += 1;
            return None;
        };
        if self.slot(path).is_some_and(|s| s.local == local) {
            return Some(path);
        }
        let is_first_socket = self.slots.iter().flatten().next().is_some_and(|s| s.local == local);
        let hmac = |key: &[u8], payloads: &[&[u8]]| Hmac.sha1_hmac(key, payloads);
        if path < self.slots.len() || !is_first_socket || !message.verify(self.own.password().as_bytes(), hmac) {
            self.counters.unauthentic += 1;
            return None;
        }
        self.add_slot(path, local, false, now)
    }

    fn report(&mut self, event: IceEvent) {
        // Each reports a state that can be read again.
        if !self.events.contains(&event) {
            self.events.push_back(event);
        }
    }

    fn drain(&mut self, now: Timestamp) {
        for path in 0..self.slots.len() {
            let Some(slot) = &mut self.slots[path] else { continue };
            let is_told = slot.take_telling(now);
            while let Some(t) = slot.agent.poll_transmit() {
                self.out.push_back(t);
            }
            while let Some(event) = slot.agent.poll_event() {
                self.events.push_back(match event {
                    PathEvent::Selected(selection) => IceEvent::Selected { path, selection },
                    PathEvent::Lost => IceEvent::Lost { path },
                });
            }
            if is_told {
                self.report(IceEvent::Candidates);
            }
        }
    }

    /// Timers that are due.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        for slot in self.slots.iter_mut().flatten() {
            if slot.agent.poll_timeout() <= now {
                slot.agent.handle_timeout(now);
            }
            for gather in &mut slot.gathers {
                if let Some(request) = gather.poll_transmit(now) {
                    let (from, to) = (slot.local, gather.server());
                    self.out.push_back(Transmit { from, to, bytes: request.to_vec() });
                }
            }
        }
        self.drain(now);
    }

    /// When [`Self::handle_timeout`] is due; `None` if nothing is.
    pub fn poll_timeout(&mut self) -> Option<Timestamp> {
        let of = |s: &mut Slot| {
            let gathers = s.gathers.iter().filter_map(Gather::poll_timeout).min();
            gathers.into_iter().chain(s.tell_at).fold(s.agent.poll_timeout(), Timestamp::min)
        };
        self.slots.iter_mut().flatten().map(of).min()
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

/// Gives a path the other end's candidates of its number. If there are none, a path with a socket of its own gets the first
/// path's.
fn tell(slot: &mut Slot, path: usize, remote: &[Candidate]) {
    let of = |n: usize| remote.iter().filter(move |c| c.path.map_or(0, usize::from) == n);
    let number = if of(path).next().is_some() || !slot.is_own { path } else { 0 };
    of(number).for_each(|c| _ = slot.agent.add_remote(c));
}

/// Whether a datagram is an authentic check for the end with these credentials, on any path.
pub fn is_check_for(own: &Credentials, datagram: &[u8]) -> bool {
    let is_short = datagram.len() <= MAX_MESSAGE && transaction_of(datagram).is_some();
    let message = if is_short { StunMessage::parse(datagram).ok() } else { None };
    let hmac = |key: &[u8], payloads: &[&[u8]]| Hmac.sha1_hmac(key, payloads);
    message.is_some_and(|m| {
        let is_named = m.split_username().is_some_and(|(name, _)| own.path_of(name).is_some());
        m.is_binding_request() && is_named && m.verify(own.password().as_bytes(), hmac)
    })
}
