//! An end's relays: datagrams that go through them, and their addresses as candidates.

use super::agent::{Selection, Stage, Transmit};
use super::paths::IcePaths;
use super::relay::Relay;
use std::net::SocketAddr;
use weir_units::Timestamp;

impl IcePaths {
    /// The relays of all paths, each with its path.
    pub fn relays(&self) -> impl Iterator<Item = (usize, &Relay)> {
        self.slots
            .iter()
            .enumerate()
            .flat_map(|(path, s)| s.iter().flat_map(move |s| s.relays.iter().map(move |r| (path, r))))
    }
    /// The socket of an address of this end, which may be one of a relay.
    pub fn socket_of(&self, local: SocketAddr) -> SocketAddr {
        self.relays().find(|(_, r)| r.relayed() == Some(local)).map_or(local, |(_, r)| r.local())
    }

    /// The datagram that sends these bytes from an address of this end, which may be one of a relay. `None` if the relay
    /// cannot pass them on, or not yet.
    pub fn wrap(&mut self, now: Timestamp, from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Option<Transmit> {
        let mut relays = self.slots.iter_mut().flatten().flat_map(|s| s.relays.iter_mut());
        match relays.find(|r| r.relayed() == Some(from)) {
            None => Some(Transmit { from, to, bytes: bytes.to_vec() }),
            Some(relay) => {
                let (from, server) = (relay.local(), relay.server());
                relay.wrap(now, to, bytes).map(|bytes| Transmit { from, to: server, bytes })
            }
        }
    }

    /// The call is over: returns the allocations to their servers.
    pub fn close(&mut self, now: Timestamp) {
        self.slots.iter_mut().flatten().flat_map(|s| s.relays.iter_mut()).for_each(|r| r.close(now));
        self.drain(now);
    }

    /// Gives the addresses of a path's new allocations to the agents that are at its socket.
    pub(super) fn add_allocated(&mut self, path: usize, now: Timestamp) {
        let Some(slot) = &mut self.slots[path] else { return };
        let (socket, new) = (slot.local, slot.new_allocations());
        for at in new {
            if let Some(slot) = &mut self.slots[path] {
                slot.tell_at.get_or_insert(now);
            }
            self.slots.iter_mut().flatten().filter(|s| s.local == socket).for_each(|s| s.add_relayed(at));
        }
    }

    /// Media will go this way.
    pub(super) fn prefer(&mut self, selection: Selection, now: Timestamp) {
        let mut relays = self.slots.iter_mut().flatten().flat_map(|s| s.relays.iter_mut());
        let relay = relays.find(|r| r.relayed() == Some(selection.local) && selection.stage >= Stage::Valid);
        if let Some(relay) = relay {
            relay.prefer(selection.remote, now);
        }
    }
}
