//! A path of this end: its socket, its agent, and the servers that are asked for addresses of the socket.

use super::agent::PathAgent;
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
    pub(super) const fn new(local: SocketAddr, agent: PathAgent, is_own: bool) -> Self {
        Self {
            local,
            agent,
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
        self.agent.is_host(local) || self.relayed.contains(&local)
    }
    /// Addresses of its relays at which its agent is not yet.
    pub(super) fn new_allocations(&self) -> Vec<SocketAddr> {
        self.relays.iter().filter_map(Relay::relayed).filter(|at| !self.relayed.contains(at)).collect()
    }
    pub(super) fn add_relayed(&mut self, at: SocketAddr) {
        if !self.relayed.contains(&at) {
            self.relayed.push(at);
            self.agent.add_relayed(at, self.local);
        }
    }

    /// The addresses of its socket for the other end.
    pub(super) fn candidates(&self, path: u8, relay_only: bool) -> Vec<Candidate> {
        let host = Candidate::new(self.local, CandidateKind::Host, path);
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
        of(number).for_each(|c| _ = self.agent.add_remote(c));
    }
}
