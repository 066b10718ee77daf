//! Datagrams that arrive at an end: answers of servers, those that relays pass on, and checks, each for its path.

use super::credentials::{Credentials, Hmac};
use super::paths::IcePaths;
use super::relay::FromServer;
use super::stun::{MAX_MESSAGE, transaction_of};
use is::Sha1HmacProvider as _;
use is::stun::StunMessage;
use std::net::SocketAddr;
use weir_session::multipath::MAX_PATHS;
use weir_units::Timestamp;

/// A datagram that has arrived, after ICE has looked at it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// A message of ICE or a server's, which is dealt with.
    Taken,
    /// Neither: it is to be read by others.
    Other,
    /// Likewise, and it has come through a relay.
    Relayed {
        /// The relay's address of this end.
        local: SocketAddr,
        /// The other end's, as the relay sees it.
        from: SocketAddr,
        /// The datagram.
        bytes: Vec<u8>,
    },
}

impl IcePaths {
    /// Takes a datagram that has arrived at a socket of this end.
    pub fn handle_datagram(&mut self, now: Timestamp, local: SocketAddr, from: SocketAddr, bytes: &[u8]) -> Arrival {
        if self.is_answer_of_stun(now, local, from, bytes) {
            return Arrival::Taken;
        }
        let mut relays = self.slots.iter_mut().flatten().flat_map(|s| s.relays.iter_mut());
        if let Some(relay) = relays.find(|r| r.local() == local && r.server() == from) {
            let at = relay.relayed();
            match (relay.handle_datagram(now, bytes), at) {
                (FromServer::Data { from, bytes }, Some(local)) => {
                    return match self.take(now, local, from, &bytes) {
                        true => Arrival::Taken,
                        false => Arrival::Relayed { local, from, bytes },
                    };
                }
                (FromServer::Other, _) => {}
                _ => {
                    self.drain(now);
                    return Arrival::Taken;
                }
            }
        }
        if self.take(now, local, from, bytes) { Arrival::Taken } else { Arrival::Other }
    }

    fn is_answer_of_stun(&mut self, now: Timestamp, local: SocketAddr, from: SocketAddr, bytes: &[u8]) -> bool {
        for slot in self.slots.iter_mut().flatten().filter(|s| s.newest_local() == local) {
            let found = slot.gathers.iter_mut().position(|g| g.handle_datagram(from, bytes));
            if let Some(found) = found {
                let mapped = slot.gathers[found].mapped().filter(|at| *at != local && !slot.reflexive.contains(at));
                if let Some(at) = mapped {
                    slot.reflexive.push(at);
                    slot.newest().add_reflexive(at, local);
                    slot.tell_at.get_or_insert(now);
                }
                self.drain(now);
                return true;
            }
        }
        false
    }

    /// Takes a message of ICE that has come to an address of this end, of the host or of a relay. Returns `false` if it is
    /// none.
    fn take(&mut self, now: Timestamp, local: SocketAddr, from: SocketAddr, bytes: &[u8]) -> bool {
        let Some(id) = transaction_of(bytes) else { return false };
        let parsed = if bytes.len() <= MAX_MESSAGE { StunMessage::parse(bytes).ok() } else { None };
        let Some(message) = parsed else {
            self.counters.malformed += 1;
            return true;
        };
        let found = if message.is_binding_request() {
            self.path_of_request(&message, local, now)
        } else {
            let agents = self.slots.iter().enumerate().flat_map(|(path, s)| s.iter().map(move |s| (path, s)));
            let agents = agents.flat_map(|(path, s)| s.agents().zip([false, true]).map(move |(a, new)| (path, new, a)));
            let found = agents.filter(|(_, _, a)| a.awaits(id, local, from)).map(|(path, new, _)| (path, new)).next();
            self.counters.unexpected += u64::from(found.is_none());
            found
        };
        if let Some((path, is_new)) = found
            && let Some(Some(slot)) = self.slots.get_mut(path)
        {
            let agent = if is_new { slot.newest() } else { &mut slot.agent };
            agent.handle_message(now, (id, message), local, from);
        }
        self.drain(now);
        true
    }

    /// The path of a check, which is added if there was none of this number and the check is authentic; and whether it is
    /// for the agent after a restart.
    fn path_of_request(
        &mut self,
        message: &StunMessage<'_>,
        local: SocketAddr,
        now: Timestamp,
    ) -> Option<(usize, bool)> {
        let name = message.split_username().map(|(name, _)| name);
        let before = name.and_then(|name| self.restart.as_ref()?.0.path_of(name));
        let is_before = |(path, restarts): &(usize, u16)| {
            self.slot(*path).is_some_and(|s| s.next.is_some() && s.restarts == *restarts && s.is_at(local))
        };
        if let Some((path, _)) = before.filter(is_before) {
            return Some((path, false));
        }
        let named = name.and_then(|name| self.own.path_of(name));
        let Some((path, restarts)) = named.filter(|(path, _)| *path < MAX_PATHS) else {
            self.counters.unauthentic += 1;
            return None;
        };
        let is_authentic = || {
            let hmac = |key: &[u8], payloads: &[&[u8]]| Hmac.sha1_hmac(key, payloads);
            message.verify(self.own.of_restart(path, restarts).password().as_bytes(), hmac)
        };
        if let Some(slot) = self.slot(path).filter(|s| s.is_at(local)) {
            let newest = if self.restart.is_some() { 0 } else { slot.newest_restarts() };
            if restarts == newest || slot.pending.is_some() && restarts == slot.restarts {
                return Some((path, restarts == newest));
            }
            if restarts > newest && is_authentic() {
                let is_followed = self.follow_restart(path, restarts, now);
                self.counters.too_often += u64::from(!is_followed);
                return is_followed.then_some((path, true));
            }
            self.counters.unauthentic += 1;
            return None;
        }
        let is_first_socket = self.slots.iter().flatten().next().is_some_and(|s| s.is_at(local));
        if path < self.slots.len() || !is_first_socket || !is_authentic() {
            self.counters.unauthentic += 1;
            return None;
        }
        self.restarts[path] = restarts;
        self.add_slot(path, self.socket_of(local), false, now).map(|path| (path, true))
    }
}

/// Whether a datagram is an authentic check for the end with these credentials, on any path.
pub fn is_check_for(own: &Credentials, datagram: &[u8]) -> bool {
    let is_short = datagram.len() <= MAX_MESSAGE && transaction_of(datagram).is_some();
    let message = if is_short { StunMessage::parse(datagram).ok() } else { None };
    let hmac = |key: &[u8], payloads: &[&[u8]]| Hmac.sha1_hmac(key, payloads);
    message.is_some_and(|m| {
        let is_named = m.split_username().is_some_and(|(name, _)| own.path_of(name).is_some_and(|n| n.1 == 0));
        m.is_binding_request() && is_named && m.verify(own.password().as_bytes(), hmac)
    })
}
