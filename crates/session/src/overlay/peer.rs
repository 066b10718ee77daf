//! A node without a focus: its neighbours give it its places, and repair the trees when one of them leaves or fails.
//!
//! A [`Node`] takes its places from a focus. Here that focus is inside: what the node tells it stays in this file, and the places
//! come from other nodes ([`weir_wire::rtcp::overlay_peers`]). Hops, their tickets and the media are those of an overlay with a focus.
//!
//! - *Joining.* A node knows some members' addresses. In each tree it asks one for a place. Whoever forwards in that tree, is connected
//!   to the root and has room offers to be the parent; others refer to their parent, or to children that forward in it. A node
//!   that is full and feeds a leaf takes a seeker that forwards instead, and asks the leaf to find another parent while it is still fed.
//! - *Repair.* A parent shows each child twice a second which nodes are above it, and addresses of relatives: its own parent, and
//!   children that forward. A node whose parent is silent, or says that it leaves, asks these, then its parents in other trees, then
//!   the addresses from which it joined. Those below it do nothing: their parent is there.
//! - *Cycles.* A node refuses a seeker that is above it. Two subtrees that lose their parents at once could still be put below each
//!   other: the path that a parent shows then has the node's own number, which ends the hop.
//!
//! A stranger can make a node hold nothing before it has shown that it receives at its address (a cookie); then an entry in a
//! list of 32, four an address, for a second; a child of its own only with a ticket for this address, and at most twice as many as the
//! uplink feeds. A stranger that claims to forward can displace leaves, which costs each a search and no packets.

mod neighbours;
mod offers;
mod seek;

use super::config::{NodeConfig, PeerConfig, RootIdentity};
use super::datagram::{Outgoing, Received};
use super::node::Node;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use neighbours::Neighbours;
pub use neighbours::PeerCounters;
use weir_units::{Ecn, Timestamp};
use weir_wire::List;
use weir_wire::rtcp::overlay::{Assign, Message, Overlay};
use weir_wire::rtcp::overlay_peers::{PEERS_NAME, Peers};
use weir_wire::rtcp::{APP, Packet, parse_compound};

/// The address of the focus inside; no datagram comes from it.
const INSIDE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A node of an overlay without a focus, sans-IO, driven as a [`Node`] is.
pub struct Peer {
    node: Node,
    neighbours: Neighbours,
}

impl Peer {
    /// A node that joins at `now`; [`NodeConfig::focus`] is not used.
    pub fn new(config: NodeConfig, peers: &PeerConfig, now: Timestamp) -> Self {
        let neighbours = Neighbours::new(peers, config.degree, config.seed, false, now);
        Self { node: Node::new(NodeConfig { focus: INSIDE, ..config }, now), neighbours }
    }

    /// The root, which can have this many children in each tree.
    pub fn root(config: NodeConfig, peers: &PeerConfig, share: u16, now: Timestamp) -> Self {
        let neighbours = Neighbours::new(peers, share, config.seed, true, now);
        let identity = RootIdentity { trees: neighbours.trees(), share, token: 0, key: neighbours.key() };
        Self { node: Node::root(NodeConfig { focus: INSIDE, ..config }, &identity, now), neighbours }
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }
    /// The same, to send and to take packets.
    pub fn node_mut(&mut self) -> &mut Node {
        &mut self.node
    }
    /// Counters of what neighbours have done.
    pub fn peer_counters(&self) -> PeerCounters {
        self.neighbours.counters
    }
    /// Hops from the root in a tree, as its parent says; `None` without one.
    pub fn depth(&self, tree: u8) -> Option<u16> {
        self.neighbours.depth(tree)
    }

    /// Leaves: it forwards until its children have other parents, but not for long.
    pub fn leave(&mut self, now: Timestamp) {
        self.node.leave(now);
        self.neighbours.leave(&self.node, now);
    }

    /// A datagram has arrived.
    pub fn handle_datagram(&mut self, received: &Received<'_>, now: Timestamp) {
        if received.from == INSIDE {
            self.neighbours.counters.strangers += 1;
            return;
        }
        let bytes = received.bytes;
        if bytes.get(1) != Some(&APP) || bytes.get(8..12) != Some(&PEERS_NAME[..]) {
            self.node.handle_datagram(received, now);
        } else {
            for packet in parse_compound(bytes) {
                let peers = match packet {
                    Ok(Packet::App(app)) => Peers::from_app(&app),
                    _ => None,
                };
                match peers {
                    Some(p) => self.neighbours.on_message(&p, received.from, &self.node, now),
                    None => self.neighbours.counters.malformed += 1,
                }
            }
        }
        self.settle(now);
    }

    /// The time of [`Self::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.node.handle_timeout(now);
        self.neighbours.handle_timeout(&self.node, now);
        self.settle(now);
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        self.node.poll_timeout(now).into_iter().chain(self.neighbours.poll_timeout()).min()
    }

    /// Writes the next datagram into `out`, which is empty.
    pub fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Outgoing> {
        loop {
            if let Some((to, message)) = self.neighbours.pop() {
                Peers { sender: self.neighbours.id(), message }.write_into(out);
                return Some(Outgoing::rtcp(to, out));
            }
            let outgoing = self.node.poll_transmit(now, out)?;
            if outgoing.to != INSIDE {
                return Some(outgoing);
            }
            for packet in parse_compound(out) {
                if let Ok(Packet::App(app)) = packet
                    && let Some(Overlay { message, .. }) = Overlay::from_app(&app)
                {
                    self.on_inside(&message, now);
                }
            }
            out.clear();
            self.settle(now);
        }
    }

    /// The node tells its focus something.
    fn on_inside(&mut self, message: &Message<'_>, now: Timestamp) {
        match message {
            Message::Join(join) => self.neighbours.on_joining(join.nonce, now),
            Message::Broken(broken) => self.neighbours.on_broken(broken, &self.node, now),
            Message::Leave { .. } => self.neighbours.leave(&self.node, now),
            _ => {}
        }
    }

    /// Gives the node its places if they have changed.
    fn settle(&mut self, now: Timestamp) {
        self.neighbours.follow(&self.node, now);
        let Some(given) = self.neighbours.take_assignment() else { return };
        let assign = Assign {
            nonce: given.nonce,
            token: 1,
            key: self.neighbours.key(),
            serial: given.serial,
            node: self.neighbours.id(),
            trees: self.neighbours.trees(),
            forwards: given.forwards,
            degree: given.degree,
            places: List::from(&given.places[..]),
        };
        let mut bytes = Vec::new();
        Overlay { sender: 0, message: Message::Assign(assign) }.write_into(&mut bytes);
        let received = Received { from: INSIDE, bytes: &bytes, payload: 0, ecn: Ecn::NotEct };
        self.node.handle_datagram(&received, now);
    }
}
