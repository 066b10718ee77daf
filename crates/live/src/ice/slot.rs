//! A path of this end: its socket, its agent, and the servers that are asked for addresses of the socket.

use super::agent::{IceCounters, PathAgent, PathEvent, Selection, Stage, Transmit};
use super::candidate::{Candidate, CandidateKind};
use super::gather::Gather;
use super::relay::{Relay, RelayState};
use std::net::SocketAddr;
use weir_units::Timestamp;

/// A path of this end.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) local: SocketAddr,
    pub(super) agent: PathAgent,
    /// Where the path will be after a restart, and its agent there. Until that one has a pair, the other is in use.
    pub(super) next: Option<(SocketAddr, PathAgent)>,
    /// Restarts before the agent, and before the one after it if that is of a restart of this path alone, which is given up at
    /// the time.
    pub(super) restarts: u16,
    pub(super) pending: Option<(u16, Timestamp)>,
    /// When the other end's last restart was followed.
    pub(super) followed_at: Option<Timestamp>,
    /// Messages of agents before restarts.
    retired: IceCounters,
    pub(super) gathers: Vec<Gather>,
    pub(super) reflexive: Vec<SocketAddr>,
    /// Allocations for the socket; none of a path that shares another one's.
    pub(super) relays: Vec<Relay>,
    /// Addresses of relays at which its agent is.
    relayed: Vec<SocketAddr>,
    /// Whether its addresses are its own, not those of the first path's socket.
    pub(super) is_own: bool,
    /// Latest time at which they are announced to the other end.
    pub(super) tell_at: Option<Timestamp>,
}

impl Slot {
    pub(super) fn new(local: SocketAddr, agent: PathAgent, is_own: bool) -> Self {
        Self {
            local,
            agent,
            next: None,
            restarts: 0,
            pending: None,
            followed_at: None,
            retired: IceCounters::default(),
            gathers: Vec::new(),
            reflexive: Vec::new(),
            relays: Vec::new(),
            relayed: Vec::new(),
            is_own,
            tell_at: None,
        }
    }

    pub(super) fn is_gathering(&self) -> bool {
        self.gathers.iter().any(|g| !g.is_over()) || self.relays.iter().any(|r| r.state() == RelayState::Asking)
    }
    /// Whether it is to be announced to the other end now.
    pub(super) fn take_telling(&mut self, now: Timestamp) -> bool {
        let is_due = self.tell_at.is_some_and(|at| now >= at || !self.is_gathering());
        if is_due {
            self.tell_at = None;
        }
        is_due
    }
    /// Whether its agent is at this address.
    pub(super) fn is_at(&self, local: SocketAddr) -> bool {
        self.agents().any(|a| a.is_host(local)) || self.relayed.contains(&local)
    }
    pub(super) fn agents(&self) -> impl Iterator<Item = &PathAgent> {
        std::iter::once(&self.agent).chain(self.next.iter().map(|n| &n.1))
    }
    pub(super) fn agents_mut(&mut self) -> impl Iterator<Item = &mut PathAgent> {
        std::iter::once(&mut self.agent).chain(self.next.iter_mut().map(|n| &mut n.1))
    }
    /// The agent that is in use after a restart, if there is one.
    pub(super) fn newest(&mut self) -> &mut PathAgent {
        self.next.as_mut().map_or(&mut self.agent, |n| &mut n.1)
    }
    /// The pair that it uses.
    pub(super) fn newest_selection(&self) -> Option<Selection> {
        self.next.as_ref().map_or(&self.agent, |n| &n.1).selection()
    }
    /// The socket that is in use after it.
    pub(super) fn newest_local(&self) -> SocketAddr {
        self.next.as_ref().map_or(self.local, |n| n.0)
    }
    /// Messages received.
    pub(super) fn counters(&self) -> IceCounters {
        let mut sum = self.retired;
        self.agents().for_each(|a| sum += a.counters());
        sum
    }
    pub(super) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.agents_mut().find_map(PathAgent::poll_transmit)
    }
    /// The next event. A restart is over once a check was answered after it.
    pub(super) fn poll_event(&mut self) -> Option<PathEvent> {
        if let Some(event) = self.agent.poll_event() {
            return Some(event);
        }
        while let Some(event) = self.next.as_mut()?.1.poll_event() {
            if matches!(event, PathEvent::Selected(s) if s.stage >= Stage::Valid) {
                let (local, agent) = self.next.take()?;
                let restarts = self.pending.take().map_or(0, |p| p.0);
                self.replace(local, agent, restarts);
                self.relays.retain(|r| r.local() == local);
                self.relayed = self.relays.iter().filter_map(Relay::relayed).collect();
                return Some(event);
            }
        }
        None
    }
    /// The path is by this agent from now on.
    pub(super) fn replace(&mut self, local: SocketAddr, agent: PathAgent, restarts: u16) {
        self.retired += self.counters_of_agents();
        (self.local, self.agent, self.next, self.restarts, self.pending) = (local, agent, None, restarts, None);
    }
    /// The agent after a restart of the path alone is the only one from now on.
    pub(super) fn promote(&mut self) {
        if let (Some((local, agent)), Some((restarts, _))) = (self.next.take(), self.pending.take()) {
            self.replace(local, agent, restarts);
        }
    }
    /// Restarts before the newest agent.
    pub(super) fn newest_restarts(&self) -> u16 {
        self.pending.map_or(self.restarts, |p| p.0)
    }
    fn counters_of_agents(&self) -> IceCounters {
        let mut sum = IceCounters::default();
        self.agents().for_each(|a| sum += a.counters());
        sum
    }
    /// The addresses of its relays that its agent is at.
    pub(super) fn set_relayed(&mut self, at: Vec<SocketAddr>) {
        self.relayed = at;
    }
    /// Addresses of its relays at which its agent is not yet.
    pub(super) fn new_allocations(&self) -> Vec<SocketAddr> {
        self.relays.iter().filter_map(Relay::relayed).filter(|at| !self.relayed.contains(at)).collect()
    }
    pub(super) fn add_relayed(&mut self, at: SocketAddr) {
        if !self.relayed.contains(&at) {
            self.relayed.push(at);
            let local = self.local;
            self.agents_mut().for_each(|a| a.add_relayed(at, local));
        }
    }

    /// The addresses of its socket for the other end.
    pub(super) fn candidates(&self, path: u8, relay_only: bool) -> Vec<Candidate> {
        let host = Candidate::new(self.newest_local(), CandidateKind::Host, path);
        let seen = self.reflexive.iter().filter_map(|at| Candidate::new(*at, CandidateKind::ServerReflexive, path));
        let direct = host.into_iter().chain(seen).filter(|_| !relay_only);
        let relayed = self.relays.iter().filter_map(Relay::relayed);
        direct.chain(relayed.filter_map(|at| Candidate::new(at, CandidateKind::Relayed, path))).collect()
    }

    /// Gives the agent the other end's candidates of this path's number. If there are none, a path with a socket of its own gets
    /// the first path's.
    pub(super) fn tell(&mut self, path: usize, remote: &[Candidate]) {
        let of = |n: usize| remote.iter().filter(move |c| c.path.map_or(0, usize::from) == n);
        let number = if of(path).next().is_some() || !self.is_own { path } else { 0 };
        let agent = self.newest();
        of(number).for_each(|c| _ = agent.add_remote(c));
    }
}
