//! Control messages of an overlay of distribution trees, in APP packets with name "OVLY".
//!
//! The messages are Weir's own: the papers that distribute conferences over such trees (V. Singh's dissertation,
//! chapter 6, references 66 and 97) specify no format. A *focus* gives each node its place: a parent in every tree. Nodes
//! exchange the messages of a *hop*, which carries one tree from a parent to a child.
//!
//! The subtype is the message, the SSRC its sender's number in the overlay (0 before it has one; the focus's is 0). All
//! fields are big-endian:
//!
//! ```text
//!  subtype  message     from, to       data after the name
//!     0     Join        node, focus    nonce (64) cookie (64) degree (16) zero (16)
//!     1     Challenge   focus, node    nonce (64) cookie (64)
//!     2     Assign      focus, node    nonce (64) token (64) key (128) serial (32) node (32)
//!                                      trees (8) forwards (8) degree (16), then places of 32 bytes
//!     3     Assigned    node, focus    token (64) serial (32)
//!     4     Broken      node, focus    token (64) peer (32) tree (8) lost (8) reason (8) zero (8)
//!     5     Leave       node, focus    token (64)
//!     6     Left        focus, node    nonce (64)
//!     7     Check       focus, node    nonce (64)
//!     8     Checked     node, focus    token (64)
//!     9     Attach      child, parent  ticket (64) tree (8) code (8) number (16)
//!    10     Attached    parent, child  the same
//!    11     Refused     parent, child  the same
//!    12     Detach      either         the same
//!    13     Keepalive   either         the same
//! ```
//!
//! A place: tree (8), zero (8), port (16), parent (32), ticket (64), address (128, IPv4 as an IPv4-mapped address).

use super::{APP, App, frame};
use crate::read::{Reader, be16, be32};
use crate::{Entry, List};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Name of the APP packets.
pub const OVERLAY_NAME: [u8; 4] = *b"OVLY";
/// Value of [`Assign::forwards`] on the wire for a node that forwards nothing.
const NO_TREE: u8 = 0xff;

/// A message and its sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overlay<'a> {
    /// The sender's number; 0 for the focus, and for a node without one.
    pub sender: u32,
    /// The message.
    pub message: Message<'a>,
}

/// A control message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Message<'a> {
    /// A node asks for a place in each tree.
    Join(Join),
    /// The focus asks the node to repeat its request with a cookie, which shows that it receives at its address.
    Challenge {
        /// The request's nonce.
        nonce: u64,
        /// The cookie to repeat.
        cookie: u64,
    },
    /// A node's places.
    Assign(Assign<'a>),
    /// A node has received its places.
    Assigned {
        /// The node's token.
        token: u64,
        /// [`Assign::serial`].
        serial: u32,
    },
    /// A hop has failed.
    Broken(Broken),
    /// A node leaves once its children have other parents.
    Leave {
        /// The node's token.
        token: u64,
    },
    /// The focus has removed a node.
    Left {
        /// The node's nonce.
        nonce: u64,
    },
    /// The focus asks whether a node is there.
    Check {
        /// The node's nonce.
        nonce: u64,
    },
    /// A node is there.
    Checked {
        /// The node's token.
        token: u64,
    },
    /// A message of a hop.
    Hop(HopKind, Hop),
}

/// A request for a place in each tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Join {
    /// The node's random number, by which it recognises the focus's messages.
    pub nonce: u64,
    /// The focus's cookie, or 0.
    pub cookie: u64,
    /// Most children that the node can feed.
    pub degree: u16,
}

/// A node's places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Assign<'a> {
    /// The node's nonce.
    pub nonce: u64,
    /// By which the focus recognises the node's messages.
    pub token: u64,
    /// Key of the tickets of the node's children.
    pub key: [u8; 16],
    /// Number of the assignment, which increases with each change: the node ignores older ones.
    pub serial: u32,
    /// The node's number.
    pub node: u32,
    /// Number of trees.
    pub trees: u8,
    /// The tree in which the node forwards, if any.
    pub forwards: Option<u8>,
    /// Children that the node may have.
    pub degree: u16,
    /// Its places, one a tree in which it has a parent.
    pub places: List<'a, Place>,
}

/// A node's place in one tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// The tree.
    pub tree: u8,
    /// The parent's number.
    pub parent: u32,
    /// Requirements of a parent for its child.
    pub ticket: u64,
    /// The parent's address.
    pub address: SocketAddr,
}

impl Entry for Place {
    const SIZE: usize = 32;
    fn read(b: &[u8]) -> Self {
        let mut octets = [0; 16];
        octets.iter_mut().zip(b.get(16..).unwrap_or_default()).for_each(|(to, from)| *to = *from);
        Self {
            tree: b.first().copied().unwrap_or(0),
            parent: be32(b, 4),
            ticket: u64::from(be32(b, 8)) << 32 | u64::from(be32(b, 12)),
            address: SocketAddr::new(IpAddr::V6(Ipv6Addr::from(octets)).to_canonical(), be16(b, 2)),
        }
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        let octets = match self.address.ip() {
            IpAddr::V4(a) => a.to_ipv6_mapped().octets(),
            IpAddr::V6(a) => a.octets(),
        };
        out.extend_from_slice(&[self.tree, 0]);
        out.extend_from_slice(&self.address.port().to_be_bytes());
        out.extend_from_slice(&self.parent.to_be_bytes());
        out.extend_from_slice(&self.ticket.to_be_bytes());
        out.extend_from_slice(&octets);
    }
}

/// A failed hop, as reported by one of its ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Broken {
    /// The reporting node's token.
    pub token: u64,
    /// The other end of the hop.
    pub peer: u32,
    /// The hop's tree.
    pub tree: u8,
    /// The end that was lost.
    pub lost: Lost,
    /// Why.
    pub reason: Reason,
}

/// The end of a hop that was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The reporting node has lost its parent.
    Parent,
    /// It has lost a child.
    Child,
}

/// Why a hop has failed, or was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Reason {
    /// Nothing has arrived for too long.
    Silent,
    /// The parent has as many children as it may have.
    Full,
    /// The ticket is not valid there.
    Ticket,
    /// The parent does not forward in this tree.
    NotForwarding,
    /// Too many packets are lost on the hop.
    Lossy,
    /// Another reason.
    Other(u8),
}

impl Reason {
    /// The code on the wire.
    pub const fn code(self) -> u8 {
        match self {
            Self::Silent => 0,
            Self::Full => 1,
            Self::Ticket => 2,
            Self::NotForwarding => 3,
            Self::Lossy => 4,
            Self::Other(code) => code,
        }
    }
    /// The reason of this code.
    pub const fn from_code(code: u8) -> Self {
        match code {
            0 => Self::Silent,
            1 => Self::Full,
            2 => Self::Ticket,
            3 => Self::NotForwarding,
            4 => Self::Lossy,
            other => Self::Other(other),
        }
    }
}

/// The messages of a hop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HopKind {
    /// The child asks for the tree's packets from [`Hop::number`] on, if its code is 1, or from the next packet on.
    Attach,
    /// The parent sends them.
    Attached,
    /// The parent does not, for the [`Reason`] with this code.
    Refused,
    /// The hop ends.
    Detach,
    /// The sender is there and has had nothing else to send. The code is 1 if the parent itself lacks the tree.
    Keepalive,
}

/// The content of a hop's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// The child's ticket ([`Place::ticket`]), by which both ends recognise the other's messages.
    pub ticket: u64,
    /// The tree.
    pub tree: u8,
    /// A detail of the message.
    pub code: u8,
    /// An RTP sequence number, or 0.
    pub number: u16,
}

const HOP_KINDS: [HopKind; 5] =
    [HopKind::Attach, HopKind::Attached, HopKind::Refused, HopKind::Detach, HopKind::Keepalive];
/// Subtype of the first of them.
const FIRST_HOP: u8 = 9;

impl<'a> Overlay<'a> {
    /// The message in an APP packet; `None` if name, subtype or length differ.
    pub fn from_app(app: &App<'a>) -> Option<Self> {
        if app.name != OVERLAY_NAME {
            return None;
        }
        let message = Message::read(app.subtype, app.data)?;
        Some(Self { sender: app.ssrc, message })
    }
    /// Appends the packet.
    pub fn write_into(&self, out: &mut Vec<u8>) {
        frame(out, self.message.subtype(), APP, |out| {
            out.extend_from_slice(&self.sender.to_be_bytes());
            out.extend_from_slice(&OVERLAY_NAME);
            self.message.write_into(out);
        });
    }
}

impl<'a> Message<'a> {
    fn read(subtype: u8, data: &'a [u8]) -> Option<Self> {
        let mut r = Reader::new(data, 0);
        let wide = |r: &mut Reader<'a>| r.u64("overlay message").ok();
        let size = match subtype {
            0 => 20,
            1 => 16,
            2 => return Assign::read(data).map(Self::Assign),
            3 | 9..=13 => 12,
            4 => 16,
            5..=8 => 8,
            _ => return None,
        };
        if data.len() != size {
            return None;
        }
        let first = wide(&mut r)?;
        Some(match subtype {
            0 => Self::Join(Join { nonce: first, cookie: wide(&mut r)?, degree: r.u16("degree").ok()? }),
            1 => Self::Challenge { nonce: first, cookie: wide(&mut r)? },
            3 => Self::Assigned { token: first, serial: r.u32("serial").ok()? },
            4 => {
                let (peer, tree) = (r.u32("peer").ok()?, r.u8("tree").ok()?);
                let lost = match r.u8("lost end").ok()? {
                    0 => Lost::Parent,
                    1 => Lost::Child,
                    _ => return None,
                };
                Self::Broken(Broken { token: first, peer, tree, lost, reason: Reason::from_code(r.u8("reason").ok()?) })
            }
            5 => Self::Leave { token: first },
            6 => Self::Left { nonce: first },
            7 => Self::Check { nonce: first },
            8 => Self::Checked { token: first },
            _ => {
                let kind = *HOP_KINDS.get(usize::from(subtype.checked_sub(FIRST_HOP)?))?;
                let (tree, code, number) = (r.u8("tree").ok()?, r.u8("code").ok()?, r.u16("number").ok()?);
                Self::Hop(kind, Hop { ticket: first, tree, code, number })
            }
        })
    }

    const fn subtype(&self) -> u8 {
        match self {
            Self::Join(_) => 0,
            Self::Challenge { .. } => 1,
            Self::Assign(_) => 2,
            Self::Assigned { .. } => 3,
            Self::Broken(_) => 4,
            Self::Leave { .. } => 5,
            Self::Left { .. } => 6,
            Self::Check { .. } => 7,
            Self::Checked { .. } => 8,
            Self::Hop(kind, _) => FIRST_HOP + *kind as u8,
        }
    }

    fn write_into(&self, out: &mut Vec<u8>) {
        let mut wide = |value: u64| out.extend_from_slice(&value.to_be_bytes());
        match *self {
            Self::Join(j) => {
                wide(j.nonce);
                wide(j.cookie);
                out.extend_from_slice(&j.degree.to_be_bytes());
            }
            Self::Challenge { nonce, cookie } => {
                wide(nonce);
                wide(cookie);
            }
            Self::Assign(a) => a.write_into(out),
            Self::Assigned { token, serial } => {
                wide(token);
                out.extend_from_slice(&serial.to_be_bytes());
            }
            Self::Broken(b) => {
                wide(b.token);
                out.extend_from_slice(&b.peer.to_be_bytes());
                let lost = match b.lost {
                    Lost::Parent => 0,
                    Lost::Child => 1,
                };
                out.extend_from_slice(&[b.tree, lost, b.reason.code(), 0]);
            }
            Self::Leave { token } | Self::Checked { token } => wide(token),
            Self::Left { nonce } | Self::Check { nonce } => wide(nonce),
            Self::Hop(_, hop) => {
                wide(hop.ticket);
                out.extend_from_slice(&[hop.tree, hop.code]);
                out.extend_from_slice(&hop.number.to_be_bytes());
            }
        }
    }
}

impl<'a> Assign<'a> {
    /// Bytes before the places.
    const FIXED: usize = 44;

    fn read(data: &'a [u8]) -> Option<Self> {
        let (fixed, places) = data.split_at_checked(Self::FIXED)?;
        if !places.len().is_multiple_of(Place::SIZE) {
            return None;
        }
        let mut r = Reader::new(fixed, 0);
        let (nonce, token) = (r.u64("nonce").ok()?, r.u64("token").ok()?);
        let key = *r.take("key", 16).ok()?.first_chunk()?;
        let (serial, node) = (r.u32("serial").ok()?, r.u32("node").ok()?);
        let (trees, forwards) = (r.u8("trees").ok()?, r.u8("forwards").ok()?);
        Some(Self {
            nonce,
            token,
            key,
            serial,
            node,
            trees,
            forwards: (forwards != NO_TREE).then_some(forwards),
            degree: r.u16("degree").ok()?,
            places: List::from_wire(places),
        })
    }

    fn write_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.nonce.to_be_bytes());
        out.extend_from_slice(&self.token.to_be_bytes());
        out.extend_from_slice(&self.key);
        out.extend_from_slice(&self.serial.to_be_bytes());
        out.extend_from_slice(&self.node.to_be_bytes());
        out.extend_from_slice(&[self.trees, self.forwards.unwrap_or(NO_TREE)]);
        out.extend_from_slice(&self.degree.to_be_bytes());
        // A datagram holds no more: one place for each number of a tree.
        self.places.write_up_to(255, out);
    }
}

#[cfg(test)]
mod tests;
