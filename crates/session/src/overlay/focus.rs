//! The focus: it knows all nodes, and gives each its places in the trees.

mod members;

use super::config::{FocusConfig, RootIdentity};
use super::credentials::{Secret, TicketKey};
use super::datagram::Outgoing;
use super::forest::{Forest, ROOT};
use core::net::SocketAddr;
use members::{Due, Members};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use weir_units::{TimeDelta, Timestamp};
use weir_wire::List;
use weir_wire::rtcp::overlay::{Assign, Broken, Join, Lost, Message, Overlay, Place, Reason};
use weir_wire::rtcp::{Packet, parse_compound};

/// Most messages other than assignments that wait to be sent.
const MAX_MESSAGES: usize = 4_096;
/// A cookie is valid for this long, and for as long again.
const COOKIE_PERIOD: TimeDelta = TimeDelta::from_secs(16);
/// Interval at which placing goes on if there is too much to do at once.
const CONTINUE_AFTER: TimeDelta = TimeDelta::from_millis(1);

/// Counters of the focus: nodes, places, and requests refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FocusCounters {
    /// Nodes that have joined.
    pub joined: u64,
    /// Nodes that have left.
    pub left: u64,
    /// Nodes that did not answer, and were removed.
    pub failed: u64,
    /// Places given.
    pub placements: u64,
    /// Leaves moved to make room for a node that forwards.
    pub displaced: u64,
    /// Nodes that forward in another tree than at first.
    pub switched: u64,
    /// Attempts to place a node for which there was no place.
    pub unplaced: u64,
    /// Requests to join that were refused since there are too many nodes.
    pub full: u64,
    /// Requests without a valid cookie, which were answered with one.
    pub challenged: u64,
    /// Reports about hops that are not or no longer there.
    pub stale: u64,
    /// Messages with a wrong token, or from unknown nodes.
    pub strangers: u64,
    /// Datagrams that do not parse, or are none for a focus.
    pub malformed: u64,
    /// Messages not sent since too many waited.
    pub dropped_messages: u64,
}

/// A place wanted: rank (nodes that forward in the tree first), node, tree.
type Wanted = (u16, u32, u8);

/// The focus of an overlay, sans-IO, driven as a [`Node`](super::Node) is.
///
/// Nodes ask it for places, and report hops that have failed. It answers with a parent in each tree. Requests are
/// collected for [`FocusConfig::round`]; of two nodes, the one that forwards is placed first. A node of which others say
/// that it is silent gets no more children until it has answered.
pub struct Focus {
    config: FocusConfig,
    secret: Secret,
    forest: Forest,
    members: Members,
    /// Places wanted, and the parent to avoid.
    wanted: BTreeMap<Wanted, Option<u32>>,
    /// Those for which there was no place.
    waiting: BTreeMap<Wanted, Option<u32>>,
    /// Whether there may be places again.
    freed: bool,
    next_round: Option<Timestamp>,
    /// Nodes whose assignment has changed.
    changed: BTreeSet<u32>,
    messages: VecDeque<(SocketAddr, Message<'static>)>,
    places: Vec<Place>,
    orphans: Vec<(u32, u8)>,
    counters: FocusCounters,
}

impl Focus {
    /// A focus without nodes.
    pub fn new(config: FocusConfig) -> Self {
        Self {
            secret: Secret::new(&config.secret),
            forest: Forest::new(config.trees, config.root_degree),
            members: Members::default(),
            wanted: BTreeMap::new(),
            waiting: BTreeMap::new(),
            freed: false,
            next_round: None,
            changed: BTreeSet::new(),
            messages: VecDeque::new(),
            places: Vec::new(),
            orphans: Vec::new(),
            counters: FocusCounters::default(),
            config,
        }
    }

    /// With what the root's node is made.
    pub fn root(&self) -> RootIdentity {
        RootIdentity {
            trees: self.forest.trees(),
            share: self.forest.root_share(),
            token: self.secret.token(ROOT, 0),
            key: self.secret.key(ROOT),
        }
    }

    /// The trees.
    pub fn forest(&self) -> &Forest {
        &self.forest
    }
    /// Returns its counters.
    pub fn counters(&self) -> FocusCounters {
        self.counters
    }

    /// A datagram has arrived.
    pub fn handle_datagram(&mut self, from: SocketAddr, bytes: &[u8], now: Timestamp) {
        for packet in parse_compound(bytes) {
            let overlay = match packet {
                Ok(Packet::App(app)) => Overlay::from_app(&app),
                _ => None,
            };
            match overlay {
                Some(overlay) => self.on_message(&overlay, from, now),
                None => self.counters.malformed += 1,
            }
        }
    }

    fn on_message(&mut self, overlay: &Overlay<'_>, from: SocketAddr, now: Timestamp) {
        let node = overlay.sender;
        match overlay.message {
            Message::Join(join) => self.on_join(&join, from, now),
            Message::Assigned { token, serial } => {
                if self.is_from(node, token, from) {
                    self.members.on_assigned(node, serial);
                }
            }
            Message::Broken(broken) => {
                if self.is_from(node, broken.token, from) {
                    match broken.lost {
                        Lost::Parent => self.on_parent_lost(node, &broken, now),
                        Lost::Child => self.on_child_lost(node, &broken, now),
                    }
                }
            }
            Message::Leave { token } => {
                if node != ROOT && self.is_from(node, token, from) {
                    self.counters.left += 1;
                    self.remove(node, now);
                }
            }
            Message::Checked { token } => {
                if self.is_from(node, token, from) {
                    self.on_checked(node, now);
                }
            }
            _ => self.counters.malformed += 1,
        }
    }

    /// Whether a message is from the node that it names. One that was removed learns that it has to join again.
    fn is_from(&mut self, node: u32, token: u64, from: SocketAddr) -> bool {
        let known = match self.members.get(node) {
            Some(m) => m.token == token && m.address == from,
            None if node == ROOT => token == self.secret.token(ROOT, 0),
            None => {
                self.send(from, Message::Left { nonce: token });
                false
            }
        };
        self.counters.strangers += u64::from(!known);
        known
    }

    fn on_join(&mut self, join: &Join, from: SocketAddr, now: Timestamp) {
        let period = now.as_nanos() / COOKIE_PERIOD.as_nanos();
        let is_cookie = |p: i64| self.secret.cookie(from, join.nonce, p) == join.cookie;
        if !is_cookie(period) && !is_cookie(period - 1) {
            self.counters.challenged += 1;
            let cookie = self.secret.cookie(from, join.nonce, period);
            return self.send(from, Message::Challenge { nonce: join.nonce, cookie });
        }
        if let Some(node) = self.members.at(from) {
            if self.members.get(node).is_some_and(|m| m.nonce == join.nonce) {
                self.changed.insert(node);
                return;
            }
            // It has restarted.
            self.counters.failed += 1;
            self.remove(node, now);
        }
        if self.members.len() >= self.config.max_nodes {
            self.counters.full += 1;
            return self.send(from, Message::Left { nonce: join.nonce });
        }
        let degree = join.degree.min(self.config.max_degree);
        let secret = &self.secret;
        let node = self.members.add(from, join.nonce, |node| secret.token(node, join.nonce));
        self.forest.add(node, degree);
        self.counters.joined += 1;
        self.freed |= degree > 0;
        for tree in 0..self.forest.trees() {
            self.want(node, tree, None, now);
        }
    }

    /// A node has lost its parent.
    fn on_parent_lost(&mut self, node: u32, broken: &Broken, now: Timestamp) {
        let (tree, peer) = (broken.tree, broken.peer);
        if tree >= self.forest.trees() || node == ROOT {
            self.counters.stale += 1;
            return;
        }
        match self.forest.parent(node, tree) {
            // It knows of no parent: its assignment was lost.
            Some(parent) if peer == node => {
                self.detach(node, tree);
                self.want(node, tree, Some(parent), now);
            }
            Some(parent) if parent == peer => {
                self.detach(node, tree);
                match broken.reason {
                    Reason::Silent => self.suspect(peer, now),
                    Reason::Lossy => self.forest.reduce_degree(peer),
                    _ => self.assign(peer),
                }
                self.want(node, tree, Some(peer), now);
            }
            // It has another parent already, of which it may not know.
            Some(_) => {
                self.counters.stale += 1;
                self.assign(node);
            }
            None => {
                let avoid = Some(peer).filter(|p| *p != node);
                self.want(node, tree, avoid, now);
            }
        }
    }

    /// A node has lost a child, which is asked whether it is there.
    fn on_child_lost(&mut self, node: u32, broken: &Broken, now: Timestamp) {
        let (tree, child) = (broken.tree, broken.peer);
        if child == ROOT || self.forest.parent(child, tree) != Some(node) {
            self.counters.stale += 1;
            return;
        }
        self.detach(child, tree);
        self.suspect(child, now);
    }

    /// A node is there.
    fn on_checked(&mut self, node: u32, now: Timestamp) {
        self.members.on_checked(node);
        self.forest.set_closed(node, false);
        self.freed = true;
        for tree in (0..self.forest.trees()).filter(|_| node != ROOT) {
            if self.forest.parent(node, tree).is_none() {
                self.want(node, tree, None, now);
            }
        }
    }

    /// A node may have failed: it gets no more children until it has answered.
    fn suspect(&mut self, node: u32, now: Timestamp) {
        if !self.members.is_checked(node)
            && let Some(m) = self.members.get(node)
        {
            let (to, nonce) = (m.address, m.nonce);
            self.forest.set_closed(node, true);
            self.members.expect(node, Due::Check, 1, now + self.config.retry);
            self.send(to, Message::Check { nonce });
        }
    }

    fn detach(&mut self, node: u32, tree: u8) {
        self.forest.detach(node, tree);
        self.freed = true;
        self.assign(node);
    }

    /// Removes a node; its children get other parents.
    fn remove(&mut self, node: u32, now: Timestamp) {
        if let Some(m) = self.members.remove(node) {
            self.send(m.address, Message::Left { nonce: m.nonce });
        }
        self.changed.remove(&node);
        self.freed = true;
        let mut orphans = core::mem::take(&mut self.orphans);
        self.forest.remove(node, &mut orphans);
        for (orphan, tree) in orphans.drain(..) {
            self.want(orphan, tree, None, now);
        }
        self.orphans = orphans;
    }

    /// A node is to be placed in a tree.
    fn want(&mut self, node: u32, tree: u8, avoid: Option<u32>, now: Timestamp) {
        let forwards = self.forest.forwards(node) == Some(tree);
        let rank = if forwards { u16::MAX - 1 - self.forest.degree(node) } else { u16::MAX };
        self.waiting.remove(&(rank, node, tree));
        self.wanted.insert((rank, node, tree), avoid);
        self.next_round.get_or_insert(now + self.config.round);
    }

    /// Places nodes.
    fn run_round(&mut self, now: Timestamp) {
        self.next_round = None;
        if core::mem::take(&mut self.freed) {
            self.wanted.append(&mut self.waiting);
        }
        for _ in 0..self.config.placements.max(1) {
            let Some((wanted, avoid)) = self.wanted.pop_first() else { return };
            self.place(wanted, avoid, now);
        }
        if !self.wanted.is_empty() {
            self.next_round = Some(now + CONTINUE_AFTER);
        }
    }

    fn place(&mut self, wanted: Wanted, avoid: Option<u32>, now: Timestamp) {
        let (_, node, tree) = wanted;
        if self.members.get(node).is_none() || self.forest.parent(node, tree).is_some() {
            return;
        }
        let mut orphans = core::mem::take(&mut self.orphans);
        let placed = self.forest.place(node, tree, avoid, &mut orphans);
        for (orphan, tree) in orphans.drain(..) {
            self.assign(orphan);
            self.want(orphan, tree, None, now);
        }
        self.orphans = orphans;
        let Some(placed) = placed else {
            self.counters.unplaced += 1;
            self.waiting.insert(wanted, None);
            return;
        };
        self.counters.placements += 1;
        self.counters.displaced += u64::from(placed.displaced.is_some());
        self.counters.switched += u64::from(placed.switched.is_some());
        for other in [Some(node), placed.displaced, placed.switched].into_iter().flatten() {
            self.assign(other);
        }
    }

    /// A node's assignment has changed.
    fn assign(&mut self, node: u32) {
        if self.members.renew(node) {
            self.changed.insert(node);
        }
    }

    fn send(&mut self, to: SocketAddr, message: Message<'static>) {
        if self.messages.len() < MAX_MESSAGES {
            self.messages.push_back((to, message));
        } else {
            self.counters.dropped_messages += 1;
        }
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Timestamp> {
        self.next_round.into_iter().chain(self.members.next_due()).min()
    }

    /// The time of [`Self::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        while let Some((node, due, tries)) = self.members.take_due(now) {
            let most = match due {
                Due::Assigned => self.config.assign_tries,
                Due::Check => self.config.check_tries,
            };
            let Some(m) = self.members.get(node).filter(|_| tries < most) else {
                self.counters.failed += 1;
                self.remove(node, now);
                continue;
            };
            let (to, nonce) = (m.address, m.nonce);
            match due {
                Due::Assigned => {
                    self.changed.insert(node);
                }
                Due::Check => self.send(to, Message::Check { nonce }),
            }
            self.members.expect(node, due, tries + 1, now + self.config.retry);
        }
        if self.next_round.is_some_and(|at| at <= now) {
            self.run_round(now);
        }
    }

    /// Writes the next datagram into `out`, which is empty.
    pub fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Outgoing> {
        if let Some((to, message)) = self.messages.pop_front() {
            Overlay { sender: ROOT, message }.write_into(out);
            return Some(Outgoing::rtcp(to, out));
        }
        loop {
            let node = self.changed.pop_first()?;
            if let Some(to) = self.write_assign(node, now, out) {
                return Some(Outgoing::rtcp(to, out));
            }
        }
    }

    fn write_assign(&mut self, node: u32, now: Timestamp, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let m = self.members.get(node)?;
        let (address, mut places) = (m.address, core::mem::take(&mut self.places));
        places.clear();
        for tree in 0..self.forest.trees() {
            let Some(parent) = self.forest.parent(node, tree) else { continue };
            let at = if parent == ROOT { Some(self.config.root) } else { self.members.get(parent).map(|p| p.address) };
            let Some(at) = at else { continue };
            let ticket = TicketKey::new(&self.secret.key(parent)).ticket(node, tree, address);
            places.push(Place { tree, parent, ticket, address: at });
        }
        let assign = Assign {
            nonce: m.nonce,
            token: m.token,
            key: self.secret.key(node),
            serial: m.serial,
            node,
            trees: self.forest.trees(),
            forwards: self.forest.forwards(node),
            degree: self.forest.degree(node),
            places: List::from(&places[..]),
        };
        Overlay { sender: ROOT, message: Message::Assign(assign) }.write_into(out);
        self.places = places;
        if !self.members.is_expected(node) {
            self.members.expect(node, Due::Assigned, 1, now + self.config.retry);
        }
        Some(address)
    }
}
