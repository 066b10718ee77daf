//! Restarts (RFC 8445, section 9): an end gets other credentials, and its paths agents of their own with them, at the same
//! sockets or at others. Each path keeps its pair, and consent there, until a check was answered after the restart.
//!
//! The end that restarts first describes itself with [`IcePaths::credentials`] and its candidates; the other one sees that the
//! credentials are not those it knows ([`IcePaths::is_restart`]), restarts too, and answers with its own.
//!
//! A path alone restarts without a description ([`IcePaths::restart_path`]): both ends count its restarts, and its credentials
//! follow from those of the descriptions and the number. The other end learns the number from an authentic check by them, or
//! in-band; the greater of two counts.

use super::agent::PathAgent;
use super::candidate::{Candidate, CandidateKind};
use super::credentials::Credentials;
use super::gather::Gather;
use super::paths::{IceEvent, IcePaths};
use super::relay::{Relay, RelayState};
use super::slot::Slot;
use std::net::SocketAddr;
use weir_session::multipath::MAX_PATHS;
use weir_units::{TimeDelta, Timestamp};

/// A restart without a pair is given up after this time, and what was before stays (RFC 8445, section 9, demands that; the time
/// is calibrated: a description there and back, and the checks of 32 pairs).
const PATIENCE: TimeDelta = TimeDelta::from_secs(30);

/// Least time between two restarts of the other end on a path that are followed, so that each costs it more than this end: an
/// interface has another address less often (calibrated: below the interval at which interfaces are looked at).
const LEAST_BETWEEN: TimeDelta = TimeDelta::from_millis(200);

impl IcePaths {
    /// Whether these are credentials of the other end after a restart.
    pub fn is_restart(&self, theirs: &Credentials) -> bool {
        self.theirs().is_some_and(|known| known != theirs)
    }
    /// Whether a restart is not over.
    pub const fn is_restarting(&self) -> bool {
        self.restart.is_some()
    }

    /// Restarts all paths; those that are named here continue at other sockets. Servers are asked about those. A restart that is
    /// not over yet is continued: nothing happens.
    pub fn restart(&mut self, moved: &[(usize, SocketAddr)], now: Timestamp) {
        if self.restart.is_some() {
            return;
        }
        let own = Credentials::of(&mut self.config.secret);
        let before = std::mem::replace(&mut self.own, own);
        self.restart = Some((before, now + PATIENCE));
        for path in 0..self.slots.len() {
            let credentials = self.own.of_path(path);
            let config = &mut self.config;
            let Some(slot) = &mut self.slots[path] else { continue };
            let at = moved.iter().find(|m| m.0 == path).map_or(slot.local, |m| m.1);
            let mut agent = PathAgent::new(config.agent, &credentials, config.is_controlling, self.tie_breaker, now);
            if !config.relay_only && !agent.add_host(at) {
                continue;
            }
            if at == slot.local {
                slot.reflexive.iter().for_each(|seen| agent.add_reflexive(*seen, at));
                slot.relays.iter().filter_map(Relay::relayed).for_each(|relayed| agent.add_relayed(relayed, at));
            } else {
                slot.reflexive.clear();
                let fits = |s: &SocketAddr| s.is_ipv4() == at.is_ipv4();
                let servers = config.servers.iter().filter(|s| fits(s) && !config.relay_only).copied();
                let secret = &mut config.secret;
                slot.gathers = servers.map(|server| Gather::new(server, secret.next(), now)).collect();
                let relays = config.relays.iter().filter(|r| fits(&r.address));
                slot.relays.extend(relays.map(|server| Relay::new(at, server, now)));
            }
            (slot.next, slot.pending) = (Some((at, agent)), None);
        }
        self.restarts = [0; MAX_PATHS];
        self.drain(now);
    }

    /// How often each path was restarted.
    pub const fn restarts(&self) -> [u16; MAX_PATHS] {
        self.restarts
    }

    /// Restarts a path at this socket, which replaces the one before: its pairs have failed, or its interface has another address
    /// or is there again. Servers are asked as for a new interface. Returns whether it was restarted: not while all paths are. If the
    /// other end has restarted it before, that restart goes on, without the pair before.
    pub fn restart_path(&mut self, path: usize, at: SocketAddr, now: Timestamp) -> bool {
        if let Some(Some(slot)) = self.slots.get_mut(path)
            && slot.pending.is_some()
            && slot.newest_local() == at
        {
            slot.promote();
            return false;
        }
        let Some(known) = self.restarts.get(path) else { return false };
        let known = self.slot(path).map_or(0, Slot::newest_restarts).max(*known);
        let Some(restarts) = known.checked_add(1) else { return false };
        self.restart_as(path, at, restarts, false, now)
    }

    /// The other end has restarted a path this often. The path continues with the pair before until there is another one.
    pub fn follow_restart(&mut self, path: usize, restarts: u16, now: Timestamp) -> bool {
        let is_due = |s: &&Slot| {
            restarts > s.newest_restarts() && s.followed_at.is_none_or(|at| now.saturating_since(at) >= LEAST_BETWEEN)
        };
        let Some(local) = self.slot(path).filter(is_due).map(|s| s.local) else { return false };
        let followed = self.restart_as(path, local, restarts, true, now);
        if let Some(Some(slot)) = self.slots.get_mut(path) {
            slot.followed_at = Some(now);
        }
        self.followed += u64::from(followed);
        followed
    }
    /// Restarts of the other end that this one has followed.
    pub const fn followed(&self) -> u64 {
        self.followed
    }

    fn restart_as(&mut self, path: usize, at: SocketAddr, restarts: u16, keeps: bool, now: Timestamp) -> bool {
        if self.restart.is_some() {
            return false;
        }
        let is_there = self.slot(path).is_some();
        if !is_there {
            self.restarts[path] = restarts;
            if self.add_slot(path, at, true, now).is_none() {
                return false;
            }
            self.add_asked(path, self.new_relays(at, now), now);
            return true;
        }
        let Some(mut agent) = self.new_agent(path, restarts, at, now) else { return false };
        let fresh = self.new_relays(at, now);
        let shared: Vec<_> = self.relays().filter(|(_, r)| r.local() == at).filter_map(|(_, r)| r.relayed()).collect();
        let Some(Some(slot)) = self.slots.get_mut(path) else { return false };
        self.restarts[path] = restarts.max(self.restarts[path]);
        let before = slot.newest_selection();
        let is_moved = slot.local != at;
        let mut relayed = shared;
        if is_moved {
            slot.relays.clear();
        }
        if slot.is_own {
            // A relay that has failed is asked again, and one that is there stays.
            slot.relays.retain(|r| matches!(r.state(), RelayState::Ready | RelayState::Asking));
            let missing = fresh.into_iter().filter(|r| !slot.relays.iter().any(|known| known.server() == r.server()));
            let missing: Vec<_> = missing.collect();
            slot.relays.extend(missing);
            relayed.retain(|at| slot.relays.iter().any(|r| r.relayed() == Some(*at)));
        }
        relayed.iter().for_each(|relayed| agent.add_relayed(*relayed, at));
        slot.set_relayed(relayed);
        if keeps && slot.agent.selection().is_some() {
            (slot.next, slot.pending) = (Some((at, agent)), Some((restarts, now + PATIENCE)));
        } else {
            slot.replace(at, agent, restarts);
        }
        slot.tell(path, &self.remote);
        if let Some(before) = before {
            // An address that the other end has not named: as its NAT shows it.
            let known = Candidate::new(before.remote, CandidateKind::ServerReflexive, 0);
            known.iter().for_each(|c| _ = slot.newest().add_remote(c));
        }
        if slot.is_own {
            slot.reflexive.clear();
            let relays = std::mem::take(&mut slot.relays);
            self.add_asked(path, relays, now);
        } else if !keeps {
            self.report(IceEvent::Candidates);
        }
        self.drain(now);
        true
    }

    /// Gives up restarts of single paths that have no pair in time.
    pub(super) fn end_path_restarts(&mut self, now: Timestamp) {
        for slot in self.slots.iter_mut().flatten().filter(|s| s.pending.is_some_and(|p| now >= p.1)) {
            (slot.next, slot.pending) = (None, None);
        }
    }

    /// Ends a restart that has its pairs, or that has none in time.
    pub(super) fn end_restart(&mut self, now: Timestamp) {
        let Some((before, until)) = &self.restart else { return };
        let is_pending = |s: &super::slot::Slot| s.next.is_some();
        let (has_some, all) =
            (self.slots.iter().flatten().any(|s| !is_pending(s)), !self.slots.iter().flatten().any(is_pending));
        if all {
            self.restart = None;
        } else if now >= *until {
            if !has_some {
                self.own = before.clone();
            }
            self.restart = None;
            self.slots.iter_mut().flatten().for_each(|s| s.next = None);
        }
    }
}
