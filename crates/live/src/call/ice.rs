//! ICE in a call on sockets: its messages share the sockets with media, a path uses the pair that its agent selects, and
//! paths come and go with this end's interfaces and the other end's consent.
//!
//! A path of the call has the number of its agent, on which both ends agree by the names in checks. It carries media once
//! a check of this end was answered there.

use crate::call::end::LiveEnd;
use crate::call::ice_state::{IceSummary, LiveIce, Watched};
use crate::call::path_sockets::{PathAddress, bind, current_address, use_own_interface};
use crate::call::routes::{Peer, Route};
use crate::clock::Clock;
use crate::ice::{IceEvent, Relay, RelayState, Selection, Stage};
use crate::sdp::IceDescription;
use crate::udp::UdpPort;
use std::net::{IpAddr, SocketAddr};
use weir_session::{Handover, PathConfig};
use weir_units::{Ecn, PathId, TimeDelta, Timestamp};

/// Interval at which interfaces are looked at.
const LOOK: TimeDelta = TimeDelta::from_millis(250);
/// Time for the servers of relays at the end of a call (calibrated: a round trip and one more for a newer nonce).
const LEAVE: TimeDelta = TimeDelta::from_millis(300);
/// Sockets of a call, the last ones of interfaces that are gone included.
const MAX_PORTS: usize = 32;

impl LiveEnd {
    /// Paths are those that ICE finds. The ports are those of `begins`, in their order, each with its address as seen from
    /// outside; of the further ones that are not there yet, paths are added once they are.
    pub(super) fn set_ice(
        &mut self,
        mut ice: LiveIce,
        begins: Vec<(PathAddress, Option<SocketAddr>)>,
        mut relays: Vec<Relay>,
        theirs: &IceDescription,
        now: Timestamp,
    ) {
        ice.locals = self.ports.iter().filter_map(|p| p.local_addr().ok()).collect();
        let mut unused = ice.locals.clone().into_iter();
        for (n, (at, seen)) in begins.into_iter().enumerate() {
            let local = if n == 0 || current_address(&at).is_some() { unused.next() } else { None };
            let path = local.and_then(|local| {
                let (lent, others): (Vec<_>, Vec<_>) = relays.drain(..).partition(|r| r.local() == local);
                relays = others;
                let path = if lent.is_empty() {
                    ice.paths.add_interface(local, now)?
                } else {
                    ice.paths.add_interface_with(local, lent, now)?
                };
                if let Some(seen) = seen {
                    ice.paths.add_reflexive(path, seen);
                }
                Some((local.ip(), path))
            });
            ice.watched.push(Watched { at, now: path, last: None });
        }
        ice.paths.set_remote(&theirs.credentials, &theirs.candidates, now);
        ice.announced = ice.paths.offers();
        self.ice = Some(Box::new(ice));
    }

    /// Runs ICE's timers, sends its messages and follows its paths. Returns when it is next due; `None` without ICE.
    pub(super) fn turn_ice(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut ice = self.ice.take()?;
        if now >= ice.next_look {
            ice.next_look = now + LOOK;
            self.look_at_interfaces(&mut ice, now);
        }
        ice.paths.handle_timeout(now);
        self.follow_events(&mut ice, now);
        // An interface that appears before there is a path to announce it by is announced once there is one.
        if ice.is_untold && ice.is_any_open() {
            ice.is_untold = false;
            let (offers, restarts) = (ice.paths.offers(), ice.paths.restarts());
            if offers != ice.announced || restarts != ice.announced_restarts {
                let mut rtcp = self.carrier.endpoint_mut().rtcp();
                rtcp.set_ice_restarts(restarts);
                rtcp.offer_addresses(&offers);
                ice.events.offers += 1;
                (ice.announced, ice.announced_restarts) = (offers, restarts);
            }
        }
        self.send_messages(&mut ice);
        let next = ice.paths.poll_timeout().into_iter().chain([ice.next_look]).min();
        self.ice = Some(ice);
        next
    }

    /// Follows what a message of ICE has changed. Media on a pair may arrive right after the check that opens it, so that this is
    /// not left to the next turn.
    pub(super) fn follow_ice(&mut self, now: Timestamp) {
        if let Some(mut ice) = self.ice.take() {
            self.follow_events(&mut ice, now);
            self.ice = Some(ice);
        }
    }

    fn follow_events(&mut self, ice: &mut LiveIce, now: Timestamp) {
        while let Some(event) = ice.paths.poll_event() {
            match event {
                IceEvent::Selected { path, selection } => {
                    let socket = ice.paths.socket_of(selection.local);
                    let Some(port) = ice.locals.iter().rposition(|l| *l == socket) else { continue };
                    self.open_path(ice, path, port, selection, now);
                }
                IceEvent::Lost { path } => {
                    ice.events.lost += 1;
                    self.close_path(ice, path);
                    // Consent that has ended is asked for under other credentials (RFC 7675, section 5.1).
                    if let Some(local) = ice.paths.local(path) {
                        ice.events.restarts += u64::from(ice.paths.restart_path(path, local, now));
                    }
                }
                IceEvent::Candidates => ice.is_untold = true,
            }
        }
    }

    /// The other end's addresses were offered in-band.
    pub(super) fn on_ice_offers(&mut self, now: Timestamp) {
        let remote = self.carrier.endpoint().remote();
        let (offered, restarts) = (remote.offered_addresses().to_vec(), remote.ice_restarts());
        if let Some(ice) = &mut self.ice {
            // First the agents, to which the addresses are then given.
            for (path, count) in restarts.into_iter().enumerate() {
                ice.paths.follow_restart(path, count, now);
            }
            ice.paths.on_offered(&offered, now);
        }
    }

    /// A path is to use this socket and address; the session gets it if it does not have it.
    fn open_path(&mut self, ice: &mut LiveIce, path: usize, port: usize, selection: Selection, now: Timestamp) {
        let Selection { local, remote, stage } = selection;
        // A single path's first packets would go to whoever sends a copy of a check.
        if path == 0 && stage < Stage::Valid {
            return;
        }
        ice.open.resize(ice.open.len().max(path + 1), None);
        ice.added.resize(ice.added.len().max(path + 1), false);
        ice.events.opened += u64::from(ice.open[path].is_none());
        ice.open[path] = Some((local, remote));
        self.routes.set(path, Route::new(port, Peer::At(remote)));
        let endpoint = self.carrier.endpoint_mut();
        for number in 0..=path {
            let id = PathId::new(number as u8);
            if ice.added[number] || number < path && endpoint.path(id).is_some() {
                continue;
            }
            let Some(config) = (ice.new_path)(number, now) else { return };
            if endpoint.add_path(PathConfig { number: Some(id), ..config }, now).is_err() {
                return;
            }
            ice.added[number] = number == path;
            if number != path {
                // It only keeps the number for a path that the other end may have.
                let _ = endpoint.remove_path(id, Handover::BreakBeforeMake);
            }
        }
        if stage >= Stage::Valid
            && let Some(mut opened) = endpoint.path_mut(PathId::new(path as u8))
        {
            // A check of this end was answered: no challenge has to be.
            opened.open();
        }
    }

    fn close_path(&mut self, ice: &mut LiveIce, path: usize) {
        if let Some(open) = ice.open.get_mut(path) {
            *open = None;
        }
        let removed = self.carrier.endpoint_mut().remove_path(PathId::new(path as u8), Handover::BreakBeforeMake);
        // The last one stays with the session, and nothing is sent on it.
        if removed.is_ok()
            && let Some(added) = ice.added.get_mut(path)
        {
            *added = false;
        }
    }

    /// Adds paths at interfaces that have appeared, stops those at interfaces that are gone, and restarts those whose interface is
    /// there again or has another address.
    fn look_at_interfaces(&mut self, ice: &mut LiveIce, now: Timestamp) {
        for n in 0..ice.watched.len() {
            let Watched { at, now: known, .. } = &ice.watched[n];
            let (ip, known) = (current_address(at), *known);
            if ip == known.map(|k| k.0) {
                continue;
            }
            if let Some((_, path)) = known {
                ice.events.disappeared += 1;
                ice.watched[n].last = ice.paths.local(path).map(|local| (local, path));
                ice.watched[n].now = None;
                if ip.is_none() {
                    ice.paths.remove_interface(path);
                }
                self.close_path(ice, path);
            }
            let Some(ip) = ip else { continue };
            let Some(local) = self.bind_again(ice, n, ip) else { continue };
            ice.events.appeared += 1;
            let path = match ice.watched[n].last {
                None => ice.paths.add_interface(local, now),
                Some((before, path)) => {
                    // Paths that share its socket have moved with it.
                    let is_moved = |p: &usize| *p == path || ice.paths.local(*p) == Some(before);
                    let moved: Vec<usize> = (0..ice.paths.path_count()).filter(is_moved).collect();
                    for path in moved {
                        self.close_path(ice, path);
                        ice.events.restarts += u64::from(ice.paths.restart_path(path, local, now));
                    }
                    Some(path)
                }
            };
            ice.watched[n].now = path.map(|path| (ip, path));
        }
    }

    /// A socket at an interface's address, in place of its last one. `None` if there is none to be had.
    fn bind_again(&mut self, ice: &mut LiveIce, watched: usize, ip: IpAddr) -> Option<SocketAddr> {
        let before = ice.watched[watched].last.and_then(|(local, _)| ice.locals.iter().rposition(|l| *l == local));
        if before.is_none() && self.ports.len() >= MAX_PORTS {
            return None;
        }
        let (socket, local) = bind(&PathAddress::Ip(ip), 0).ok()?;
        use_own_interface(&socket, self.routes.first().peer.addr());
        let port = UdpPort::new(socket, ice.udp).ok()?;
        match before {
            Some(index) => {
                self.retired = self.retired + self.ports[index].counters();
                (self.ports[index], ice.locals[index]) = (port, local);
            }
            None => {
                self.ports.push(port);
                ice.locals.push(local);
            }
        }
        Some(local)
    }

    /// Sends a datagram of a path through its relay. Returns `false` if the path has none.
    pub(super) fn send_by_relay(
        &mut self,
        path: PathId,
        to: SocketAddr,
        ecn: Ecn,
        bytes: &[u8],
        now: Timestamp,
    ) -> bool {
        let Some(ice) = &mut self.ice else { return false };
        let Some(local) = ice.relay(path) else { return false };
        let wrapped = ice.paths.wrap(now, local, to, bytes);
        let port = wrapped.as_ref().and_then(|t| ice.locals.iter().rposition(|l| *l == t.from));
        if let (Some(t), Some(port)) = (wrapped, port) {
            self.ports[port].send(t.to, ecn, &t.bytes);
        }
        true
    }

    /// Tells the servers of relays that the call is over, and gives them a moment to ask for a newer nonce (RFC 8656, section 7).
    pub(super) fn leave_relays(&mut self, clock: &Clock) {
        let Some(mut ice) = self.ice.take() else { return };
        if ice.paths.relays().next().is_some() {
            ice.paths.close(clock.now());
            let until = clock.now() + LEAVE;
            while clock.now() < until && ice.paths.relays().any(|(_, r)| r.state() == RelayState::Ready) {
                self.send_messages(&mut ice);
                let _ = UdpPort::wait_any(&self.ports, std::time::Duration::from_millis(10), None);
                for port in 0..self.ports.len() {
                    for index in 0..self.ports[port].receive().unwrap_or(0) {
                        if let Some(d) = self.ports[port].datagram(index) {
                            ice.handle_datagram(clock.now(), port, d.from, d.bytes);
                        }
                    }
                }
                ice.paths.handle_timeout(clock.now());
            }
        }
        self.ice = Some(ice);
    }

    fn send_messages(&mut self, ice: &mut LiveIce) {
        while let Some(t) = ice.paths.poll_transmit() {
            if let Some(port) = ice.locals.iter().rposition(|l| *l == t.from) {
                self.ports[port].send(t.to, Ecn::NotEct, &t.bytes);
            }
        }
        self.ports.iter_mut().for_each(UdpPort::flush);
    }

    /// The state of ICE; `None` without.
    pub(super) fn ice_summary(&self) -> Option<IceSummary> {
        self.ice.as_ref().map(|ice| ice.summary())
    }
}
