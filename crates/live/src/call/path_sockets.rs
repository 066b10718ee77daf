//! The sockets of a call's paths, each at an address of this host.
//!
//! On a host with several uplinks, a socket at an address does not by itself use the link of that address: routes are
//! chosen by destination. A path's socket is therefore bound to the interface that has the address as well, which Linux
//! 5.7 and later allow any user.

use crate::call::CallError;
use crate::call::lent::Lent;
use crate::udp::UdpConfig;
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, setsockopt, socket, sockopt};
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::str::FromStr;
use weir_units::{PathId, Timestamp};

/// Longest name of an interface in bytes (Linux's IFNAMSIZ without the end).
const MAX_NAME: usize = 15;

/// The interfaces of an end's paths.
#[derive(Debug, Default)]
pub(super) struct Roaming {
    /// Paths that begin at an interface, with its name.
    pub(super) watched: Vec<(PathId, String)>,
    pub(super) udp: UdpConfig,
    pub(super) next: Timestamp,
}

/// Where a path of this end begins.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum PathAddress {
    /// At this address. It need not be there yet if it is an IPv4 address: the path is used once it is.
    Ip(IpAddr),
    /// At the first address of this interface, IPv4 before IPv6.
    Interface(String),
}

impl FromStr for PathAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(ip) = text.parse() {
            return Ok(Self::Ip(ip));
        }
        let fits = |b: u8| b.is_ascii_graphic() && b != b'/' && b != b':';
        if text.is_empty() || text.len() > MAX_NAME || !text.bytes().all(fits) {
            return Err(format!("{text:?}: expected an IP address, or the name of an interface such as eth0"));
        }
        Ok(Self::Interface(text.into()))
    }
}

impl PathAddress {
    /// Its IP address now.
    ///
    /// # Errors
    /// There is no such interface, or it has no address.
    pub fn resolve(&self) -> Result<IpAddr, CallError> {
        match self {
            Self::Ip(ip) => Ok(*ip),
            Self::Interface(name) => interface_address(name)
                .ok_or_else(|| CallError::NoInterface { name: name.clone(), known: known_names() }),
        }
    }
}

impl std::fmt::Display for PathAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Interface(name) => f.write_str(name),
        }
    }
}

/// A path of this end, with its socket.
#[derive(Debug)]
pub(super) struct BoundPath {
    pub(super) socket: UdpSocket,
    pub(super) address: SocketAddr,
    /// As a STUN server has seen it.
    pub(super) reflexive: Option<SocketAddr>,
    pub(super) lent: Lent,
    begins: PathAddress,
}

impl BoundPath {
    pub(super) fn new(begins: &PathAddress, port: u16) -> Result<Self, CallError> {
        let (socket, address) = bind(begins, port)?;
        Ok(Self { socket, address, reflexive: None, lent: Lent::none(), begins: begins.clone() })
    }
    /// The same socket for a call, and where it begins.
    pub(super) fn share(&self) -> Result<(UdpSocket, PathAddress), CallError> {
        let socket = self.socket.try_clone().map_err(CallError::socket("sharing a socket"))?;
        Ok((socket, self.begins.clone()))
    }
    pub(super) fn into_parts(self) -> ((UdpSocket, PathAddress), Lent) {
        ((self.socket, self.begins), self.lent)
    }
}

/// Interfaces and their addresses, in the system's order.
fn interfaces() -> Vec<(String, IpAddr)> {
    let ip = |a: &nix::ifaddrs::InterfaceAddress| {
        let at = a.address.as_ref()?;
        let v4 = at.as_sockaddr_in().map(|s| IpAddr::V4(s.ip()));
        v4.or_else(|| at.as_sockaddr_in6().map(|s| IpAddr::V6(s.ip())))
    };
    getifaddrs().into_iter().flatten().filter_map(|a| Some((a.interface_name.clone(), ip(&a)?))).collect()
}

/// Whether it is an address of this host, reached without a link.
pub(super) fn is_own(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    ip.is_loopback() || interfaces().iter().any(|(_, own)| *own == ip)
}

/// The first address of an interface, IPv4 before IPv6.
pub(super) fn interface_address(name: &str) -> Option<IpAddr> {
    let of_it = || interfaces().into_iter().filter(|(n, _)| n == name).map(|(_, ip)| ip);
    of_it().find(IpAddr::is_ipv4).or_else(|| of_it().find(|ip| !is_link_local(ip)))
}

/// The address at which a path begins, if the host has it now.
pub(super) fn current_address(at: &PathAddress) -> Option<IpAddr> {
    match at {
        PathAddress::Ip(ip) => is_own(*ip).then_some(*ip),
        PathAddress::Interface(name) => interface_address(name),
    }
}

/// A bound socket and its address.
///
/// # Errors
/// There is no such interface or address, or the port is in use.
pub(super) fn bind(at: &PathAddress, port: u16) -> Result<(UdpSocket, SocketAddr), CallError> {
    let ip = at.resolve()?;
    let address = SocketAddr::new(ip, port);
    let fails = |source| CallError::Socket { what: format!("binding a UDP socket to {address}"), source };
    let socket = match UdpSocket::bind(address) {
        Err(e) if e.kind() == std::io::ErrorKind::AddrNotAvailable && ip.is_ipv4() => {
            bind_ahead(address).map_err(fails)?
        }
        other => other.map_err(fails)?,
    };
    let local = socket.local_addr().map_err(CallError::socket("asking for a socket's address"))?;
    Ok((socket, local))
}

/// A socket at an address that the host may have later.
fn bind_ahead(address: SocketAddr) -> std::io::Result<UdpSocket> {
    let SocketAddr::V4(address) = address else { return Err(std::io::ErrorKind::AddrNotAvailable.into()) };
    let socket = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&socket, sockopt::IpFreebind, &true)?;
    nix::sys::socket::bind(socket.as_raw_fd(), &SockaddrIn::from(address))?;
    Ok(socket.into())
}

fn is_link_local(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(v6) if v6.is_unicast_link_local())
}

fn known_names() -> String {
    let mut names: Vec<String> = interfaces().into_iter().map(|(name, _)| name).collect();
    names.dedup();
    names.join(", ")
}

/// Restricts a path's socket to the interface that has its address, unless the other end is on this host. Without the
/// privilege, which kernels before 5.7 demand, routes alone decide.
pub(super) fn use_own_interface(socket: &UdpSocket, remote: SocketAddr) {
    let Ok(local) = socket.local_addr() else { return };
    if local.ip().is_loopback() || local.ip().is_unspecified() || is_own(remote.ip()) {
        return;
    }
    if let Some((name, _)) = interfaces().into_iter().find(|(_, ip)| *ip == local.ip()) {
        let _ = setsockopt(socket, sockopt::BindToDevice, &OsString::from(name));
    }
}

/// Restricts a socket likewise where the system would reach a server by another interface, before the other end is known.
pub(super) fn use_own_route(socket: &UdpSocket, server: SocketAddr) {
    let Ok(local) = socket.local_addr() else { return };
    let any: IpAddr = if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    // Connecting sends nothing.
    let usual = UdpSocket::bind((any, 0)).and_then(|probe| {
        probe.connect(server)?;
        probe.local_addr()
    });
    if !usual.is_ok_and(|at| at.ip() == local.ip()) {
        use_own_interface(socket, server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_at_an_address_or_an_interface() {
        assert_eq!("10.0.0.2".parse(), Ok(PathAddress::Ip([10, 0, 0, 2].into())));
        assert_eq!("eth0".parse(), Ok(PathAddress::Interface("eth0".into())));
        for bad in ["", "a name", "eth0/../x", "0123456789abcdef", "10.0.0.2:80"] {
            assert!(bad.parse::<PathAddress>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_interface_gives_its_address() {
        let (_, at) = bind(&PathAddress::Interface("lo".into()), 0).expect("the loopback device");
        assert!(at.ip().is_loopback() && at.port() != 0);
        let missing = bind(&PathAddress::Interface("none7".into()), 0).expect_err("there is none");
        assert!(missing.to_string().contains("none7") && missing.to_string().contains("lo"), "{missing}");
    }

    #[test]
    fn an_address_need_not_be_there_yet() {
        // An address for documentation (RFC 5737).
        let (_, at) = bind(&PathAddress::Ip([192, 0, 2, 77].into()), 0).expect("bound ahead");
        assert_eq!(at.ip(), IpAddr::from([192, 0, 2, 77]));
        assert!(!is_own(at.ip()) && is_own([127, 0, 0, 1].into()));
    }
}
