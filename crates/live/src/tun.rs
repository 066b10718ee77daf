//! TUN devices: the entry and exit of a namespace's IP packets.

use crate::netns::{Namespace, SetupError};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};
use tun_rs::{DeviceBuilder, SyncDevice};

/// Name of the device in each namespace.
pub const DEVICE: &str = "weir0";
/// Largest IP packet that passes.
pub const MTU: u16 = 1_500;

/// An end of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Sources of flows: 10.0.0.0/16.
    Left,
    /// Destinations of flows: 10.1.0.0/16.
    Right,
}

impl Side {
    /// The other end.
    pub const fn other(self) -> Self {
        match self {
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
    pub(crate) const fn index(self) -> usize {
        self as usize
    }
    /// The IPv4 address of a host, numbered from 0: 10.0.x.y on the left and 10.1.x.y on the right, x.y being the
    /// number plus one.
    pub const fn ipv4(self, host: u16) -> Ipv4Addr {
        let [x, y] = host.wrapping_add(1).to_be_bytes();
        Ipv4Addr::new(10, self as u8, x, y)
    }
    /// Its IPv6 address, likewise: fd77:6569:72::0:n and fd77:6569:72::1:n.
    pub const fn ipv6(self, host: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd77, 0x6569, 0x72, 0, 0, 0, self as u16, host.wrapping_add(1))
    }
}

/// A TUN device in a namespace. 500 packets sent by programs (the kernel's default, which a user namespace cannot
/// easily change) wait in the kernel to be read; further ones are lost, and counted as overruns.
pub struct Tun {
    device: SyncDevice,
}

impl Tun {
    /// Creates the device of one side, with the addresses of `hosts` hosts, of which the first is the programs'
    /// default. Everything of both sides is routed to it.
    ///
    /// Errors: the privilege or the driver that is missing.
    pub fn new(namespace: &Namespace, side: Side, hosts: u16) -> Result<Self, SetupError> {
        let device = namespace.run(move || -> io::Result<SyncDevice> {
            // One prefix over both sides: no route is needed besides the address.
            let device = DeviceBuilder::new()
                .name(DEVICE)
                .ipv4(side.ipv4(0), 8u8, None)
                .ipv6(side.ipv6(0), 64u8)
                .mtu(MTU)
                .build_sync()?;
            for host in 1..hosts {
                device.add_address_v4(side.ipv4(host), 8u8)?;
                device.add_address_v6(side.ipv6(host), 64u8)?;
            }
            device.set_nonblocking(true)?;
            Ok(device)
        })?;
        match device {
            Ok(device) => Ok(Self { device }),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Err(SetupError::NoTun { source }),
            Err(e) => Err(SetupError::new("cannot make a TUN device", e)),
        }
    }

    /// Reads one packet; `None` if none waits.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.device.recv(buffer) {
            Ok(n) => Ok(Some(n)),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Writes one packet.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        self.device.send(packet).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Packets dropped by the kernel because the device's queue was full, by its own counter.
pub(crate) fn overruns(namespace: &Namespace) -> Option<u64> {
    let table = namespace.run(|| std::fs::read_to_string("/proc/thread-self/net/dev")).ok()?.ok()?;
    parse_overruns(&table)
}

/// The `drop` column of the transmit half of /proc/net/dev.
fn parse_overruns(table: &str) -> Option<u64> {
    let line = table.lines().find_map(|l| l.trim_start().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_follow_those_of_captures() {
        assert_eq!(Side::Left.ipv4(0), Ipv4Addr::new(10, 0, 0, 1));
        assert_eq!(Side::Right.ipv4(299), Ipv4Addr::new(10, 1, 1, 44));
        assert_eq!(Side::Right.ipv6(4).to_string(), "fd77:6569:72::1:5");
        assert_eq!(Side::Left.ipv6(4).to_string(), "fd77:6569:72::5");
        assert_eq!(Side::Left.other(), Side::Right);
    }

    #[test]
    fn overruns_are_the_transmit_drops() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes packets\n    lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
                     \x20weir0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        assert_eq!(parse_overruns(table), Some(12));
        assert_eq!(parse_overruns("nothing"), None);
    }
}
