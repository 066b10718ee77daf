//! Restarts (RFC 8445, section 9): an end gets other credentials, and its paths agents of their own with them, at the same
//! sockets or at others. Each path keeps its pair, and consent there, until a check was answered after the restart.
//!
//! The end that restarts first describes itself with [`IcePaths::credentials`] and its candidates; the other one sees that the
//! credentials are not those it knows ([`IcePaths::is_restart`]), restarts too, and answers with its own.

use super::agent::PathAgent;
use super::credentials::Credentials;
use super::gather::Gather;
use super::paths::IcePaths;
use super::relay::Relay;
use std::net::SocketAddr;
use weir_units::{TimeDelta, Timestamp};

/// A restart without a pair is given up after this time, and what was before stays (RFC 8445, section 9, demands that; the time
/// is calibrated: a description there and back, and the checks of 32 pairs).
const PATIENCE: TimeDelta = TimeDelta::from_secs(30);

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
            slot.next = Some((at, agent));
        }
        self.drain(now);
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
