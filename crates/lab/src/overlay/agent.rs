//! The agents of an overlay: its focus, its root with the source, and its nodes.

use super::meter::Meter;
use super::source::Source;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use weir_session::overlay::{Focus, Node, Outgoing, Peer, Received};
use weir_sim::{AgentId, Body, Packet};
use weir_units::{DataSize, Timestamp};

/// UDP and IPv4 headers.
const HEADERS: DataSize = DataSize::from_bytes(28);
/// The address of the first agent; the others follow.
const FIRST_ADDRESS: u32 = 0x0a00_0000;
const PORT: u16 = 5_004;
/// An agent's address.
pub(super) fn address(agent: AgentId) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::from(FIRST_ADDRESS + agent.index() as u32)), PORT)
}

/// The agent at an address; one that does not exist if it is none's.
pub(super) fn agent(address: SocketAddr) -> AgentId {
    let index = match address.ip() {
        IpAddr::V4(ip) => u32::from(ip).wrapping_sub(FIRST_ADDRESS),
        IpAddr::V6(_) => u32::MAX,
    };
    AgentId::from_index(index)
}

/// Any agent.
pub(super) enum Agent {
    Focus(Box<FocusEnd>),
    Root(Box<RootEnd>),
    Node(Box<NodeEnd>),
}

pub(super) struct FocusEnd {
    pub id: AgentId,
    pub focus: Focus,
}

/// A node with or without a focus.
pub(super) enum Member {
    Focused(Box<Node>),
    Alone(Box<Peer>),
}

impl Member {
    pub(super) fn node(&self) -> &Node {
        match self {
            Self::Focused(node) => node,
            Self::Alone(peer) => peer.node(),
        }
    }
    pub(super) fn node_mut(&mut self) -> &mut Node {
        match self {
            Self::Focused(node) => node,
            Self::Alone(peer) => peer.node_mut(),
        }
    }
    pub(super) fn peer(&self) -> Option<&Peer> {
        if let Self::Alone(peer) = self { Some(peer) } else { None }
    }
    fn leave(&mut self, now: Timestamp) {
        match self {
            Self::Focused(node) => node.leave(now),
            Self::Alone(peer) => peer.leave(now),
        }
    }
    fn handle_datagram(&mut self, received: &Received<'_>, now: Timestamp) {
        match self {
            Self::Focused(node) => node.handle_datagram(received, now),
            Self::Alone(peer) => peer.handle_datagram(received, now),
        }
    }
    fn handle_timeout(&mut self, now: Timestamp) {
        match self {
            Self::Focused(node) => node.handle_timeout(now),
            Self::Alone(peer) => peer.handle_timeout(now),
        }
    }
    fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Focused(node) => node.poll_timeout(now),
            Self::Alone(peer) => peer.poll_timeout(now),
        }
    }
    fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Outgoing> {
        match self {
            Self::Focused(node) => node.poll_transmit(now, out),
            Self::Alone(peer) => peer.poll_transmit(now, out),
        }
    }
}

pub(super) struct RootEnd {
    pub id: AgentId,
    pub now: Timestamp,
    pub node: Member,
    pub source: Source,
}

pub(super) struct NodeEnd {
    pub id: AgentId,
    /// When it joins.
    pub start: Timestamp,
    pub now: Timestamp,
    pub node: Member,
    pub meter: Meter,
}

impl NodeEnd {
    pub(super) fn leave(&mut self, now: Timestamp) {
        self.node.leave(now);
    }

    /// When a packet of each tree had arrived.
    pub(super) fn joined_at(&self) -> Option<Timestamp> {
        self.node.node().join_time().map(|time| self.start + time)
    }

    /// Notes what has arrived, and whether the node has all its parents.
    fn observe(&mut self, now: Timestamp) {
        self.now = now;
        while let Some(packet) = self.node.node_mut().poll_delivered() {
            self.meter.on_packet(packet.sequence as u16, now);
        }
        self.meter.on_connection(self.node.node().is_connected(), now);
    }
}

impl Agent {
    pub(super) fn node(&self) -> Option<&NodeEnd> {
        if let Self::Node(node) = self { Some(node) } else { None }
    }
    pub(super) fn root(&self) -> Option<&RootEnd> {
        if let Self::Root(root) = self { Some(root) } else { None }
    }
    pub(super) fn focus(&self) -> Option<&Focus> {
        if let Self::Focus(focus) = self { Some(&focus.focus) } else { None }
    }
}

fn fill(packet: &mut Packet, from: AgentId, out: &Outgoing) {
    packet.size = out.size + HEADERS;
    packet.payload = out.payload;
    packet.ecn = out.ecn;
    packet.body = Body::Addressed { from, to: agent(out.to) };
}

impl weir_sim::Agent for Agent {
    fn on_start(&mut self, now: Timestamp) {
        self.on_timeout(now);
    }

    fn on_packet(&mut self, now: Timestamp, packet: &Packet) {
        let Body::Addressed { from, .. } = packet.body else { return };
        let from = address(from);
        let received = Received { from, bytes: &packet.bytes, payload: packet.payload, ecn: packet.ecn };
        match self {
            Self::Focus(f) => f.focus.handle_datagram(from, &packet.bytes, now),
            Self::Root(r) => {
                r.now = now;
                r.node.handle_datagram(&received, now);
            }
            Self::Node(n) => {
                n.node.handle_datagram(&received, now);
                n.observe(now);
            }
        }
    }

    fn on_timeout(&mut self, now: Timestamp) {
        match self {
            Self::Focus(f) => f.focus.handle_timeout(now),
            Self::Root(r) => {
                r.now = now;
                r.source.run(r.node.node_mut(), now);
                r.node.handle_timeout(now);
            }
            Self::Node(n) => {
                n.node.handle_timeout(now);
                n.observe(now);
            }
        }
    }

    fn poll_timeout(&mut self) -> Option<Timestamp> {
        match self {
            Self::Focus(f) => f.focus.poll_timeout(),
            Self::Root(r) => {
                let next = r.source.next();
                Some(r.node.poll_timeout(r.now).map_or(next, |at| at.min(next)))
            }
            Self::Node(n) => n.node.poll_timeout(n.now),
        }
    }

    fn poll_transmit(&mut self, now: Timestamp, packet: &mut Packet) -> bool {
        let (id, out) = match self {
            Self::Focus(f) => (f.id, f.focus.poll_transmit(now, &mut packet.bytes)),
            Self::Root(r) => (r.id, r.node.poll_transmit(now, &mut packet.bytes)),
            Self::Node(n) => (n.id, n.node.poll_transmit(now, &mut packet.bytes)),
        };
        out.inspect(|out| fill(packet, id, out)).is_some()
    }
}
