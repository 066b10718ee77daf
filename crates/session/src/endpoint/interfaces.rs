//! Addresses that an end offers in-band for further paths (draft-ietf-avtcore-mprtp-03, sections 8.1.4 and 9.3).

use super::{Endpoint, RemoteEnd, RtcpControl};
use crate::multipath::MAX_PATHS;
use core::net::{IpAddr, SocketAddr};
use weir_wire::rtcp::mprtcp::{Block, Interface, InterfaceAddress, Mprtcp, SubflowReports, Writer};
use weir_wire::rtcp::{App, Packet};

/// Most addresses that are kept of the other end's, and sent of this end's: as many as a call can have paths.
pub const MAX_OFFERED: usize = MAX_PATHS;
/// Regular compounds that carry this end's addresses after a change, since they may be lost (calibrated).
const REPEATS: u8 = 3;
/// Name of the APP packet in a subflow's reports that says how often an end has restarted ICE there: 32 bits.
const RESTARTS: [u8; 4] = *b"WICE";

/// Both ends' addresses.
#[derive(Clone, Debug, Default)]
pub(super) struct Interfaces {
    /// The other end's, in its order of preference.
    offered: Vec<SocketAddr>,
    own: Vec<SocketAddr>,
    /// Restarts of ICE by path: the other end's, and this end's.
    restarts: [u16; MAX_PATHS],
    own_restarts: [u16; MAX_PATHS],
    /// Compounds that are still to carry this end's.
    repeats: u8,
}

/// The address of a block, if media could be sent there at all: no name, which would have to be resolved, and no
/// group's, broadcast or unspecified address.
fn usable(interface: &Interface<'_>) -> Option<SocketAddr> {
    let ip = match interface.address() {
        InterfaceAddress::V4(ip) => IpAddr::V4(ip),
        InterfaceAddress::V6(ip) => IpAddr::V6(ip),
        InterfaceAddress::Name(_) => return None,
    };
    let is_broadcast = matches!(ip, IpAddr::V4(v4) if v4.is_broadcast());
    (!ip.is_multicast() && !ip.is_unspecified() && !is_broadcast).then(|| SocketAddr::new(ip, interface.port()))
}

/// How often the other end has restarted ICE on a path, if its reports say so.
fn restarts_in(reports: &SubflowReports<'_>) -> Option<(usize, u16)> {
    let found = reports.packets().find_map(|packet| match packet {
        Ok(Packet::App(app)) if app.name == RESTARTS => <[u8; 4]>::try_from(app.data).ok(),
        _ => None,
    });
    let count = u16::try_from(u32::from_be_bytes(found?)).ok()?;
    Some((usize::from(reports.subflow), count)).filter(|(path, _)| *path < MAX_PATHS)
}

impl<'a> RemoteEnd<'a> {
    /// How often the other end has restarted ICE on each path (RFC 8445, section 9), as it says in-band: at least as often as it
    /// said before.
    pub fn ice_restarts(&self) -> [u16; MAX_PATHS] {
        self.end.paths.as_ref().map_or([0; MAX_PATHS], |p| p.interfaces.restarts)
    }

    /// The addresses that the other end offers for further paths, at most [`MAX_OFFERED`], the preferred ones first.
    ///
    /// Nothing is sent to them by this. Anyone who can forge RTCP of the call can offer an address, so that the caller
    /// has to check that the other end answers there before it directs a path to it.
    pub fn offered_addresses(&self) -> &'a [SocketAddr] {
        self.end.paths.as_ref().map_or(&[], |p| &p.interfaces.offered)
    }
}

impl RtcpControl<'_> {
    /// Offers these addresses of this end for further paths, the preferred ones first, with the next three compounds,
    /// the first of them early where RFC 4585 allows it. They replace those offered before; beyond [`MAX_OFFERED`] they are left out. Offer them again whenever
    /// an interface appears or disappears.
    pub fn offer_addresses(&mut self, addresses: &[SocketAddr]) {
        let interfaces = &mut self.end.paths.get_or_insert_default().interfaces;
        interfaces.own.clear();
        interfaces.own.extend(addresses.iter().filter(|a| a.port() != 0).take(MAX_OFFERED));
        interfaces.repeats = REPEATS;
        self.end.early_wanted = true;
    }
    /// Says how often this end has restarted ICE on each path with the addresses that it offers next.
    pub fn set_ice_restarts(&mut self, restarts: [u16; MAX_PATHS]) {
        self.end.paths.get_or_insert_default().interfaces.own_restarts = restarts;
    }
}

impl Endpoint {
    /// A regular or early compound is written: appends this end's addresses if they are to be sent.
    pub(super) fn write_interfaces(&mut self, out: &mut Vec<u8>) {
        let Some(paths) = self.paths.as_mut().filter(|p| p.interfaces.repeats > 0) else { return };
        let interfaces = &mut paths.interfaces;
        interfaces.repeats -= 1;
        let mut writer = Writer::new(out, self.config.ssrc, self.config.remote_ssrc);
        for (path, count) in interfaces.own_restarts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let (ssrc, data) = (self.config.ssrc, u32::from(*count).to_be_bytes());
            writer.reports(path as u16, |out| App { subtype: 0, ssrc, name: RESTARTS, data: &data }.write_into(out));
        }
        for address in &interfaces.own {
            let ip = match address.ip() {
                IpAddr::V4(ip) => InterfaceAddress::V4(ip),
                IpAddr::V6(ip) => InterfaceAddress::V6(ip),
            };
            if let Some(interface) = Interface::new(address.port(), ip) {
                writer.interface(&interface);
            }
        }
        writer.finish();
    }

    /// Takes the addresses in a packet, which replace those offered before.
    pub(super) fn on_interfaces(&mut self, m: &Mprtcp<'_>) {
        self.on_restarts(m);
        let mut addresses = m.blocks.iter().filter_map(|b| if let Block::Interface(i) = b { Some(i) } else { None });
        let Some(first) = addresses.next() else { return };
        let is_theirs = m.sender_ssrc == self.config.remote_ssrc;
        let interfaces = &mut self.paths.get_or_insert_default().interfaces;
        let before = interfaces.offered.clone();
        if is_theirs {
            interfaces.offered.clear();
        }
        for interface in core::iter::once(first).chain(addresses) {
            self.counters.interfaces_offered += 1;
            let address = usable(&interface).filter(|_| is_theirs);
            let known = address.is_some_and(|a| interfaces.offered.contains(&a));
            match address.filter(|_| !known && interfaces.offered.len() < MAX_OFFERED) {
                Some(address) => interfaces.offered.push(address),
                None => self.counters.interfaces_refused += u64::from(!known),
            }
        }
        self.counters.offers += u64::from(interfaces.offered != before);
    }

    fn on_restarts(&mut self, m: &Mprtcp<'_>) {
        let is_theirs = m.sender_ssrc == self.config.remote_ssrc;
        let reports = m.blocks.iter().filter_map(|b| if let Block::Reports(r) = b { restarts_in(&r) } else { None });
        for (path, count) in reports.filter(|_| is_theirs) {
            let known = &mut self.paths.get_or_insert_default().interfaces.restarts[path];
            self.counters.offers += u64::from(count > *known);
            *known = count.max(*known);
        }
    }
}
