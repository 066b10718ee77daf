//! Interfaces whose addresses change during a call, and addresses that the other end offers.
//!
//! A path that begins at an interface by name gets another socket when the interface has another address, as after a
//! change of Wi-Fi networks. Its end offers its addresses in-band then (draft-ietf-avtcore-mprtp-03, section 8.1.4), in
//! the order of paths; the other end challenges an offered address before it directs the path there.

use crate::call::end::LiveEnd;
use crate::call::path_sockets::{PathAddress, bind, interface_address, use_own_interface};
use crate::udp::{UdpConfig, UdpPort};
use std::net::SocketAddr;
use weir_units::{Ecn, PathId, TimeDelta, Timestamp};

/// Interval at which interfaces are looked at.
const LOOK: TimeDelta = TimeDelta::from_secs(1);

impl LiveEnd {
    /// Keeps a path at its interface: it gets another socket when the interface has another address. Without effect on
    /// a path that begins at an address.
    pub fn watch_interface(&mut self, path: PathId, at: &PathAddress, udp: UdpConfig) {
        if let PathAddress::Interface(name) = at {
            self.roaming.watched.push((path, name.clone()));
            self.roaming.udp = udp;
        }
    }

    /// Looks at the interfaces, if it is time. Returns when it is next; `None` if none is watched.
    pub(super) fn roam(&mut self, now: Timestamp) -> Option<Timestamp> {
        if self.roaming.watched.is_empty() {
            return None;
        }
        if now >= self.roaming.next {
            self.roaming.next = now + LOOK;
            let moved =
                self.roaming.watched.iter().filter_map(|(path, name)| self.moved(*path, name)).collect::<Vec<_>>();
            for (index, port) in &mut moved.into_iter() {
                self.retired = self.retired + self.ports[index].counters();
                self.ports[index] = port;
                self.counters.rebound += 1;
            }
            self.offer_own_addresses();
        }
        Some(self.roaming.next)
    }

    /// A new socket for a path, with the index of the old one, if its interface has another address.
    fn moved(&self, path: PathId, name: &str) -> Option<(usize, UdpPort)> {
        let route = self.routes.get(path)?;
        let ip = interface_address(name)?;
        if self.ports[route.port].local_addr().is_ok_and(|at| at.ip() == ip) {
            return None;
        }
        let (socket, _) = bind(&PathAddress::Ip(ip), 0).ok()?;
        use_own_interface(&socket, route.peer.addr());
        Some((route.port, UdpPort::new(socket, self.roaming.udp).ok()?))
    }

    /// Offers this end's addresses, by path, if they are not those offered last.
    fn offer_own_addresses(&mut self) {
        let own: Option<Vec<SocketAddr>> = self.routes.iter().map(|r| self.ports[r.port].local_addr().ok()).collect();
        if let Some(own) = own.filter(|own| *own != self.offered) {
            // The first ones are in the descriptions.
            if !self.offered.is_empty() {
                self.carrier.endpoint_mut().rtcp().offer_addresses(&own);
            }
            self.offered = own;
        }
    }

    /// The other end has offered its addresses: those that are not its paths' are challenged.
    pub(super) fn on_offers(&mut self, now: Timestamp) {
        if self.routes.len() < 2 {
            return;
        }
        let offered = self.carrier.endpoint().remote().offered_addresses().to_vec();
        for (&address, number) in offered.iter().zip(0u8..) {
            let path = PathId::new(number);
            let Some(route) = self.routes.get(path) else { break };
            let (port, peer) = (route.port, route.peer.addr());
            let fits = self.ports[port].local_addr().is_ok_and(|own| own.is_ipv4() == address.is_ipv4());
            if address != peer && fits && self.routes.on_moved(path, port, address, now) {
                self.challenge(path, port, address, now);
            }
        }
    }

    /// Sends a challenge to an address that may become a path's.
    pub(super) fn challenge(&mut self, path: PathId, port: usize, to: SocketAddr, now: Timestamp) {
        if self.carrier.endpoint_mut().path_mut(path).is_some_and(|mut p| p.challenge_address(now, &mut self.out)) {
            send_protected(&mut self.ports[port], self.srtp.as_mut(), to, &self.out);
            self.counters.challenges += 1;
        }
    }
}

/// Sends one RTCP packet, protected if the call is; it waits for the next flush. One that cannot be protected is left out.
fn send_protected(port: &mut UdpPort, srtp: Option<&mut crate::srtp::SrtpSession>, to: SocketAddr, bytes: &[u8]) {
    match srtp.map(|s| s.protect(bytes)) {
        None => port.send(to, Ecn::NotEct, bytes),
        Some(Ok(protected)) => port.send(to, Ecn::NotEct, &protected),
        Some(Err(_)) => {}
    }
}
