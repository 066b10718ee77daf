//! The paths of a call: the socket and the other end's address of each.
//!
//! Packets that arrive on a path from another address than its own show that the other end has moved, or that a stranger
//! sends copies of the call's packets. The path follows them once the new address has answered a challenge.
//!
//! On sockets path N joins both ends' N-th addresses, as their descriptions list them; an end with fewer uses its
//! first again. A path is directed to another address only after a challenge was answered there
//! (`session::endpoint::address_check`), whether packets arrive from it or the other end offers it.

use std::net::SocketAddr;
use weir_units::{PathId, TimeDelta, Timestamp};
use weir_wire::rtcp::mprtcp::Block;
use weir_wire::rtcp::{Packet, parse_compound};
use weir_wire::rtp::PacketView;
use weir_wire::rtp::mprtp::SubflowNumber;

/// Time between two challenges to one address, and how many it gets (calibrated: the first ones of a path that is added
/// to a session).
const CHALLENGE_INTERVAL: TimeDelta = TimeDelta::from_millis(500);
const CHALLENGES: u32 = 5;
/// Another address replaces one that has not answered for this time, so that a stranger cannot keep the path.
const PATIENCE: TimeDelta = TimeDelta::from_secs(1);

/// The other end's address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// As it was signalled; datagrams from elsewhere are not of this call.
    At(SocketAddr),
    /// As signalled until a packet of the call arrives from elsewhere, as through a NAT (symmetric RTP, RFC 4961). With
    /// SRTP only authentic packets count; without it, any host may take over the call.
    Follow(SocketAddr),
}

impl Peer {
    /// The destination address.
    pub const fn addr(self) -> SocketAddr {
        match self {
            Self::At(a) | Self::Follow(a) => a,
        }
    }
}

/// Socket and addresses of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    /// The index of its socket.
    pub(super) port: usize,
    pub(super) peer: Peer,
    candidate: Option<Candidate>,
}

/// An address from which packets of a path arrive, and that has not answered yet.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    address: SocketAddr,
    since: Timestamp,
    next: Timestamp,
    sent: u32,
}

/// The paths of a call, by their numbers; at least one.
#[derive(Debug)]
pub(super) struct Routes(Vec<Route>);

impl Route {
    pub(super) const fn new(port: usize, peer: Peer) -> Self {
        Self { port, peer, candidate: None }
    }
}

impl Routes {
    pub(super) fn new(peer: Peer) -> Self {
        Self(vec![Route::new(0, peer)])
    }
    pub(super) fn push(&mut self, port: usize, peer: Peer) {
        self.0.push(Route::new(port, peer));
    }
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = &Route> {
        self.0.iter()
    }
    pub(super) fn first(&self) -> &Route {
        &self.0[0]
    }
    pub(super) fn get(&self, path: PathId) -> Option<&Route> {
        self.0.get(path.index())
    }
    /// Gives a path another route. Numbers below it that have none get the first path's.
    pub(super) fn set(&mut self, path: usize, route: Route) {
        while self.0.len() <= path {
            self.0.push(self.0[0]);
        }
        self.0[path] = route;
    }
    /// The first path of a socket.
    pub(super) fn of_port(&self, port: usize) -> Option<PathId> {
        let found = self.0.iter().rposition(|r| r.port == port)?;
        u8::try_from(found).ok().map(PathId::new)
    }
    /// Directs a path to an address.
    pub(super) fn follow(&mut self, path: PathId, address: SocketAddr) {
        if let Some(r) = self.0.get_mut(path.index()) {
            (r.peer, r.candidate) = (Peer::Follow(address), None);
        }
    }

    /// The path that a datagram has taken, if its source is the path's, and otherwise the socket's first path: `None` if
    /// no path of the socket accepts other sources.
    pub(super) fn of_datagram(&self, port: usize, from: SocketAddr) -> Option<(PathId, bool)> {
        let mut other = None;
        for (r, n) in self.0.iter().zip(0u8..).filter(|(r, _)| r.port == port) {
            if r.peer.addr() == from {
                return Some((PathId::new(n), true));
            }
            if matches!(r.peer, Peer::Follow(_)) {
                other = other.or(Some((PathId::new(n), false)));
            }
        }
        other
    }

    /// A datagram of the call has arrived on a path of several from an address that is not the path's. Returns whether
    /// a challenge is due there.
    pub(super) fn on_moved(&mut self, path: PathId, port: usize, from: SocketAddr, now: Timestamp) -> bool {
        let route = self.0.get_mut(path.index());
        let Some(r) = route.filter(|r| r.port == port && matches!(r.peer, Peer::Follow(_))) else { return false };
        let fresh = Candidate { address: from, since: now, next: now, sent: 0 };
        let c = r.candidate.get_or_insert(fresh);
        if c.address != from {
            if now.saturating_since(c.since) < PATIENCE {
                return false;
            }
            *c = fresh;
        }
        if now < c.next {
            return false;
        }
        if c.sent >= CHALLENGES {
            // It may be tried again after a pause, as a new one.
            c.next = now + CHALLENGE_INTERVAL * i64::from(CHALLENGES);
            c.sent = 0;
            return false;
        }
        (c.sent, c.next) = (c.sent + 1, now + CHALLENGE_INTERVAL);
        true
    }

    /// Whether a path is being checked at this address.
    pub(super) fn is_candidate(&self, path: PathId, from: SocketAddr) -> bool {
        self.get(path).is_some_and(|r| r.candidate.is_some_and(|c| c.address == from))
    }
}

/// The path that a packet names: RTP by its subflow number, in the element with this identifier, and multipath RTCP by
/// its first block.
pub(super) fn named_path(bytes: &[u8], subflow_id: u8) -> Option<PathId> {
    let subflow = match weir_wire::kind_of(bytes)? {
        weir_wire::DatagramKind::Rtp => {
            let view = PacketView::parse_header(bytes).ok()?;
            SubflowNumber::from_data(view.extension(subflow_id)?)?.subflow
        }
        weir_wire::DatagramKind::Rtcp => match parse_compound(bytes).next()?.ok()? {
            Packet::Mprtcp(m) => m.blocks.iter().find_map(|b| match b {
                Block::Reports(r) => Some(r.subflow),
                _ => None,
            })?,
            _ => return None,
        },
    };
    u8::try_from(subflow).ok().map(PathId::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PathId = PathId::FIRST;
    const B: PathId = PathId::new(1);

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], port))
    }
    fn ms(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_datagram_is_of_the_path_of_its_socket_and_source() {
        let mut routes = Routes::new(Peer::At(at(1)));
        routes.push(1, Peer::Follow(at(2)));
        routes.push(1, Peer::Follow(at(3)));
        assert_eq!(routes.of_datagram(0, at(1)), Some((A, true)));
        assert_eq!(routes.of_datagram(0, at(2)), None, "a signalled address is kept");
        assert_eq!(routes.of_datagram(1, at(3)), Some((PathId::new(2), true)));
        assert_eq!(routes.of_datagram(1, at(4)), Some((B, false)));
        assert_eq!(routes.of_datagram(2, at(1)), None);
    }

    #[test]
    fn an_address_is_challenged_a_few_times_and_kept_a_second() {
        let mut routes = Routes::new(Peer::Follow(at(1)));
        routes.push(1, Peer::Follow(at(2)));
        assert!(!routes.on_moved(B, 0, at(9), ms(0)), "another socket");
        assert!(!routes.on_moved(PathId::new(7), 1, at(9), ms(0)));
        let due: Vec<i64> = (0..6_000).step_by(10).filter(|t| routes.on_moved(B, 1, at(9), ms(*t))).collect();
        assert_eq!(due, [0, 500, 1_000, 1_500, 2_000, 5_000, 5_500]);
        assert!(routes.is_candidate(B, at(9)) && !routes.is_candidate(B, at(8)));
        assert!(routes.on_moved(B, 1, at(8), ms(6_000)));
        assert!(!routes.on_moved(B, 1, at(7), ms(6_900)), "the one before may still answer");
        assert!(routes.on_moved(B, 1, at(7), ms(7_000)));
        routes.follow(B, at(7));
        assert_eq!(routes.of_datagram(1, at(7)), Some((B, true)));
        assert!(!routes.is_candidate(B, at(7)));
        assert_eq!(routes.first().peer.addr(), at(1));
    }
}
