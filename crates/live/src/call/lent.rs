//! Addresses that TURN servers lend to a socket, from before a call is described until it begins.

use crate::clock::Clock;
use crate::ice::{FromServer, Relay, RelayState};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use weir_units::Timestamp;

/// The relays of one socket, before a call has them.
#[derive(Debug)]
pub(super) struct Lent {
    relays: Vec<Relay>,
    clock: Clock,
}

impl Lent {
    pub(super) fn new(relays: Vec<Relay>, clock: Clock) -> Self {
        Self { relays, clock }
    }
    pub(super) fn none() -> Self {
        Self { relays: Vec::new(), clock: Clock::starting_now() }
    }
    /// The addresses that servers have lent.
    pub(super) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.relays.iter().filter_map(Relay::relayed)
    }
    /// Permits hosts to send to the relays.
    pub(super) fn permit(&mut self, hosts: impl Iterator<Item = IpAddr>) {
        let now = self.clock.now();
        for host in hosts {
            self.relays.iter_mut().for_each(|r| r.permit(host, now));
        }
    }
    /// Runs timers, and sends what is due.
    pub(super) fn turn(&mut self, socket: &UdpSocket) {
        let now = self.clock.now();
        for relay in &mut self.relays {
            relay.handle_timeout(now);
            while let Some(bytes) = relay.poll_transmit() {
                // A server that cannot be reached does not answer.
                let _ = socket.send_to(&bytes, relay.server());
            }
        }
    }
    /// Takes a datagram, if it is from a server.
    pub(super) fn take(&mut self, from: SocketAddr, bytes: &[u8]) -> FromServer {
        let now = self.clock.now();
        let relay = self.relays.iter_mut().find(|r| r.server() == from);
        relay.map_or(FromServer::Other, |r| r.handle_datagram(now, bytes))
    }
    pub(super) fn is_server(&self, from: SocketAddr) -> bool {
        self.relays.iter().any(|r| r.server() == from)
    }
    pub(super) fn is_asking(&self) -> bool {
        self.relays.iter().any(|r| r.state() == RelayState::Asking)
    }
    /// For a call whose clock shows this time.
    pub(super) fn into_relays(mut self, now: Timestamp) -> Vec<Relay> {
        let behind = self.clock.now() - now;
        self.relays.iter_mut().for_each(|r| r.set_clock(behind));
        self.relays
    }
}
