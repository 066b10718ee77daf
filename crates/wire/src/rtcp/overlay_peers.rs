//! Control messages between the nodes of an overlay that has no focus, in APP packets with name "OVPR".
//!
//! The messages are Weir's own, as those of [`super::overlay`], whose hops they lead to. A node that wants a parent in a tree
//! *seeks* one at addresses that it knows; whoever is asked *offers* to be it, or *refers* to others. A parent shows its children
//! by *kin* where they are and whom else to ask if it fails. The subtype is the message, the SSRC its sender's number. All fields are
//! big-endian:
//!
//! ```text
//!  subtype  message  from, to         data after the name
//!     0     Seek     seeker, any      nonce (64) cookie (64) tree (8) degree (8) zero (16)
//!     1     Cookie   any, seeker      nonce (64) cookie (64)
//!     2     Offer    parent, seeker   nonce (64) ticket (64) parent (32) tree (8) trees (8) zero (16)
//!     3     Refer    any, seeker      nonce (64) tree (8) trees (8) zero (16), then up to 4 addresses
//!     4     Kin      parent, child    ticket (64) tree (8) leaving (8) numbers (8) zero (8), then that many numbers (32), up to 16,
//!                                     then up to 4 addresses
//! ```
//!
//! An address: 128 bits (IPv4 as an IPv4-mapped address), port (16), zero (16). Before a seeker has repeated its cookie nothing is sent
//! to it that is larger than what it sent.

use super::{APP, App, frame};
use crate::read::{be16, be32};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Name of the APP packets.
pub const PEERS_NAME: [u8; 4] = *b"OVPR";
/// Most addresses in a message.
pub const MAX_ADDRESSES: usize = 4;
/// Most numbers in [`Kin::path`], and so the deepest node.
pub const MAX_PATH: usize = 16;
/// Bytes of an address.
const ADDRESS: usize = 20;

/// A list of fixed room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Few<T, const N: usize> {
    items: [T; N],
    count: usize,
}

/// Addresses in a message.
pub type Addresses = Few<SocketAddr, MAX_ADDRESSES>;
/// Numbers of nodes from the root on.
pub type NodePath = Few<u32, MAX_PATH>;

impl<T: Copy + PartialEq, const N: usize> Few<T, N> {
    const fn filled(with: T) -> Self {
        Self { items: [with; N], count: 0 }
    }
    /// Adds an item if it is not there yet and there is room; returns whether it is there now.
    pub fn add(&mut self, item: T) -> bool {
        if self.contains(item) {
            return true;
        }
        let Some(place) = self.items.get_mut(self.count) else { return false };
        *place = item;
        self.count += 1;
        true
    }
    /// Whether it has this item.
    pub fn contains(&self, item: T) -> bool {
        self.as_slice().contains(&item)
    }
    /// The items in order.
    pub fn as_slice(&self) -> &[T] {
        self.items.get(..self.count).unwrap_or_default()
    }
}

impl Addresses {
    /// None.
    pub const fn none() -> Self {
        Self::filled(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0))
    }
    fn read(data: &[u8]) -> Option<Self> {
        if !data.len().is_multiple_of(ADDRESS) || data.len() / ADDRESS > MAX_ADDRESSES {
            return None;
        }
        let mut list = Self::none();
        for b in data.chunks_exact(ADDRESS) {
            let octets: [u8; 16] = *b.first_chunk()?;
            list.add(SocketAddr::new(IpAddr::V6(Ipv6Addr::from(octets)).to_canonical(), be16(b, 16)));
        }
        Some(list)
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        for address in self.as_slice() {
            let octets = match address.ip() {
                IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
                IpAddr::V6(a) => a.octets(),
            };
            out.extend_from_slice(&octets);
            out.extend_from_slice(&address.port().to_be_bytes());
            out.extend_from_slice(&[0; 2]);
        }
    }
}

impl NodePath {
    /// None.
    pub const fn empty() -> Self {
        Self::filled(0)
    }
}

/// A message and its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peers {
    /// The sender's number.
    pub sender: u32,
    /// The message.
    pub message: PeerMessage,
}

/// A message between nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PeerMessage {
    /// A node wants a parent.
    Seek {
        /// Its random number, by which it recognises the answers.
        nonce: u64,
        /// The other's cookie, or 0.
        cookie: u64,
        /// The tree.
        tree: u8,
        /// Children that the seeker can have in this tree; 0 for one that does not forward in it.
        degree: u8,
    },
    /// The seeker has to repeat its request with this cookie, which shows that it receives at its address.
    Cookie {
        /// The request's nonce.
        nonce: u64,
        /// The cookie.
        cookie: u64,
    },
    /// The sender will be the parent.
    Offer {
        /// The request's nonce.
        nonce: u64,
        /// By which it knows its child.
        ticket: u64,
        /// Its number.
        parent: u32,
        /// The tree.
        tree: u8,
        /// Number of trees.
        trees: u8,
    },
    /// Others may be.
    Refer {
        /// The request's nonce.
        nonce: u64,
        /// The tree.
        tree: u8,
        /// Number of trees.
        trees: u8,
        /// Their addresses.
        addresses: Addresses,
    },
    /// Where a child is in a tree, and whom to ask if the parent fails.
    Kin(Kin),
}

/// A parent's news to a child.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kin {
    /// The child's ticket.
    pub ticket: u64,
    /// The tree.
    pub tree: u8,
    /// Whether the parent leaves: the child has to find another.
    pub leaving: bool,
    /// The nodes above the child, from the root's child to the parent; empty below the root.
    pub path: NodePath,
    /// Addresses to ask, the parent's own parent first.
    pub relatives: Addresses,
}

impl Peers {
    /// The message in an APP packet; `None` if name, subtype, length or a count differ.
    pub fn from_app(app: &App<'_>) -> Option<Self> {
        if app.name != PEERS_NAME {
            return None;
        }
        Some(Self { sender: app.ssrc, message: PeerMessage::read(app.subtype, app.data)? })
    }
    /// Appends the packet.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, self.message.subtype(), APP, |out| {
            out.extend_from_slice(&self.sender.to_be_bytes());
            out.extend_from_slice(&PEERS_NAME);
            self.message.write_into(out);
        });
    }
}

fn wide(b: &[u8], at: usize) -> u64 {
    u64::from(be32(b, at)) << 32 | u64::from(be32(b, at + 4))
}

impl PeerMessage {
    const fn subtype(&self) -> u8 {
        match self {
            Self::Seek { .. } => 0,
            Self::Cookie { .. } => 1,
            Self::Offer { .. } => 2,
            Self::Refer { .. } => 3,
            Self::Kin(_) => 4,
        }
    }

    fn read(subtype: u8, data: &[u8]) -> Option<Self> {
        let byte = |at: usize| data.get(at).copied().unwrap_or(0);
        let nonce = wide(data, 0);
        Some(match (subtype, data.len()) {
            (0, 20) => Self::Seek { nonce, cookie: wide(data, 8), tree: byte(16), degree: byte(17) },
            (1, 16) => Self::Cookie { nonce, cookie: wide(data, 8) },
            (2, 24) => {
                Self::Offer { nonce, ticket: wide(data, 8), parent: be32(data, 16), tree: byte(20), trees: byte(21) }
            }
            (3, 12..) => {
                let addresses = Addresses::read(data.get(12..)?)?;
                Self::Refer { nonce, tree: byte(8), trees: byte(9), addresses }
            }
            (4, 12..) => {
                let count = usize::from(byte(10));
                let (numbers, rest) = data.get(12..)?.split_at_checked(count * 4)?;
                let mut path = NodePath::empty();
                for b in numbers.chunks_exact(4) {
                    // A number that is there twice is no path.
                    if path.contains(be32(b, 0)) || !path.add(be32(b, 0)) {
                        return None;
                    }
                }
                let relatives = Addresses::read(rest)?;
                Self::Kin(Kin { ticket: nonce, tree: byte(8), leaving: byte(9) == 1, path, relatives })
            }
            _ => return None,
        })
    }

    fn write_into(&self, out: &mut Vec<u8>) {
        let mut wide = |value: u64| out.extend_from_slice(&value.to_be_bytes());
        match self {
            Self::Seek { nonce, cookie, tree, degree } => {
                wide(*nonce);
                wide(*cookie);
                out.extend_from_slice(&[*tree, *degree, 0, 0]);
            }
            Self::Cookie { nonce, cookie } => {
                wide(*nonce);
                wide(*cookie);
            }
            Self::Offer { nonce, ticket, parent, tree, trees } => {
                wide(*nonce);
                wide(*ticket);
                out.extend_from_slice(&parent.to_be_bytes());
                out.extend_from_slice(&[*tree, *trees, 0, 0]);
            }
            Self::Refer { nonce, tree, trees, addresses } => {
                wide(*nonce);
                out.extend_from_slice(&[*tree, *trees, 0, 0]);
                addresses.write_into(out);
            }
            Self::Kin(kin) => {
                wide(kin.ticket);
                let path = kin.path.as_slice();
                out.extend_from_slice(&[kin.tree, u8::from(kin.leaving), path.len() as u8, 0]);
                path.iter().for_each(|n| out.extend_from_slice(&n.to_be_bytes()));
                kin.relatives.write_into(out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtcp::{Packet, parse_compound};
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Option<Peers> {
        match parse_compound(bytes).next()?.ok()? {
            Packet::App(app) => Peers::from_app(&app),
            _ => None,
        }
    }

    fn addresses(count: usize) -> Addresses {
        let mut list = Addresses::none();
        let all = ["192.0.2.1:5000", "[2001:db8::1]:6000", "192.0.2.2:1", "192.0.2.3:65535"];
        all.iter().take(count).for_each(|a| _ = list.add(a.parse().expect("an address")));
        list
    }

    #[test]
    fn messages_are_read_as_written() {
        let mut path = NodePath::empty();
        (1..=16).for_each(|n| assert!(path.add(n << 24 | n)));
        assert!(!path.add(99));
        for message in [
            PeerMessage::Seek { nonce: 1 << 63 | 5, cookie: 7, tree: 3, degree: 9 },
            PeerMessage::Cookie { nonce: 8, cookie: u64::MAX },
            PeerMessage::Offer { nonce: 8, ticket: 1, parent: 0xdead_beef, tree: 2, trees: 5 },
            PeerMessage::Refer { nonce: 8, tree: 1, trees: 5, addresses: addresses(0) },
            PeerMessage::Refer { nonce: 8, tree: 1, trees: 5, addresses: addresses(4) },
            PeerMessage::Kin(Kin { ticket: 3, tree: 1, leaving: true, path, relatives: addresses(2) }),
            PeerMessage::Kin(Kin {
                ticket: 3,
                tree: 1,
                leaving: false,
                path: NodePath::empty(),
                relatives: addresses(0),
            }),
        ] {
            let mut bytes = Vec::new();
            let whole = Peers { sender: 77, message };
            whole.write_into(&mut bytes);
            assert_eq!(read(&bytes), Some(whole));
            // Neither more nor less.
            bytes.extend([0; 4]);
            let words = u16::from_be_bytes([bytes[2], bytes[3]]) + 1;
            bytes[2..4].copy_from_slice(&words.to_be_bytes());
            assert_eq!(read(&bytes), None);
        }
    }

    #[test]
    fn no_answer_to_a_stranger_is_larger_than_its_request() {
        let size = |message| {
            let mut bytes = Vec::new();
            Peers { sender: 1, message }.write_into(&mut bytes);
            bytes.len()
        };
        let seek = size(PeerMessage::Seek { nonce: 1, cookie: 0, tree: 0, degree: 0 });
        assert_eq!((seek, size(PeerMessage::Cookie { nonce: 1, cookie: 2 })), (32, 28));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(subtype in 0u8..32, data in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(message) = PeerMessage::read(subtype, &data) {
                let mut out = Vec::new();
                message.write_into(&mut out);
                prop_assert_eq!(PeerMessage::read(subtype, &out), Some(message));
            }
        }
    }
}
