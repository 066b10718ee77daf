//! ICMP errors about sent datagrams, from the socket's error queue.

use super::canonical;
use nix::libc::{SO_EE_ORIGIN_LOCAL, sock_extended_err};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;
use weir_units::DataSize;

/// Bytes kept of the refused datagram: more than any header that identifies it.
const QUOTED: usize = 64;
/// Room for the system's description and the address of the reporting host.
const CONTROL: usize = 256;

/// A datagram that was not delivered, as reported by ICMP or by this host itself.
#[derive(Clone, Debug)]
pub struct PathError {
    /// Its destination; the port is 0 if this host refused it.
    pub to: SocketAddr,
    /// The reason as a system error: `ConnectionRefused` if no socket listens on the port, `HostUnreachable` and so on.
    pub kind: ErrorKind,
    /// Bytes of an IP packet that would pass, if it was too long.
    pub mtu: Option<DataSize>,
    /// Whether this host refused it, and not the network.
    pub is_local: bool,
    quoted: [u8; QUOTED],
    length: usize,
}

impl PathError {
    /// The first bytes of the datagram, as far as they were reported: its UDP payload.
    pub fn quoted(&self) -> &[u8] {
        &self.quoted[..self.length]
    }
}

/// Makes the system keep errors of a socket.
pub(super) fn enable(socket: &UdpSocket) -> io::Result<()> {
    let v6 = socket.local_addr()?.is_ipv6();
    let v4_done = setsockopt(socket, sockopt::Ipv4RecvErr, &true);
    if v6 {
        setsockopt(socket, sockopt::Ipv6RecvErr, &true)?
    } else {
        v4_done?
    }
    Ok(())
}

/// Whether a failure to send or receive is the reported error of an earlier datagram.
pub(super) fn is_reported_by_icmp(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable)
        || e.raw_os_error() == Some(nix::libc::EPROTO)
}

fn address(a: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = a.as_sockaddr_in().map(|a| SocketAddr::V4(SocketAddrV4::from(*a)));
    v4.or_else(|| a.as_sockaddr_in6().map(|a| SocketAddr::V6(SocketAddrV6::from(*a)))).map(canonical)
}

/// The oldest error kept by the system. One that cannot be parsed is ignored.
pub(super) fn poll(socket: &UdpSocket) -> Option<PathError> {
    loop {
        let mut quoted = [0; QUOTED];
        let mut control = Vec::with_capacity(CONTROL);
        let mut slices = [IoSliceMut::new(&mut quoted)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        // No pending error is the usual failure; after any other there is nothing to read either.
        let reported =
            recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slices, Some(spare(&mut control)), flags).ok()?;
        let to = reported.address.as_ref().and_then(address);
        let length = reported.bytes.min(QUOTED);
        let reason = reported.cmsgs().ok().and_then(|mut all| {
            all.find_map(|c| match c {
                ControlMessageOwned::Ipv4RecvErr(e, _) | ControlMessageOwned::Ipv6RecvErr(e, _) => Some(e),
                _ => None,
            })
        });
        if let (Some(to), Some(reason)) = (to, reason) {
            return Some(path_error(to, &reason, quoted, length));
        }
    }
}

fn spare(control: &mut Vec<u8>) -> &mut [u8] {
    control.resize(CONTROL, 0);
    control
}

fn path_error(to: SocketAddr, e: &sock_extended_err, quoted: [u8; QUOTED], length: usize) -> PathError {
    let error = io::Error::from_raw_os_error(i32::try_from(e.ee_errno).unwrap_or(0));
    let too_long = error.raw_os_error() == Some(nix::libc::EMSGSIZE);
    // A router older than RFC 1191 reports 0.
    let mtu = (too_long && e.ee_info > 0).then(|| DataSize::from_bytes(e.ee_info.into()));
    let is_local = e.ee_origin == SO_EE_ORIGIN_LOCAL;
    let ip: IpAddr = to.ip();
    PathError { to: SocketAddr::new(ip, to.port()), kind: error.kind(), mtu, is_local, quoted, length }
}
