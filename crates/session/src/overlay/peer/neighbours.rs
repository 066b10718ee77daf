//! A node's knowledge of its neighbours, and its part when one of them seeks a parent, leaves or fails.

use super::offers::Offers;
use super::seek::Seek;
use crate::overlay::config::PeerConfig;
use crate::overlay::credentials::{Secret, TicketKey};
use crate::overlay::forest::{MAX_TREES, ROOT};
use crate::overlay::node::Node;
use core::net::SocketAddr;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::{BTreeSet, VecDeque};
use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtcp::overlay::{Broken, Lost, Place};
use weir_wire::rtcp::overlay_peers::{Addresses, Kin, MAX_PATH, NodePath, PeerMessage, Peers};

/// Addresses of members that a node begins with.
const MAX_CONTACTS: usize = 8;
/// Most messages that wait to be sent.
const MAX_MESSAGES: usize = 256;
/// Interval at which a parent shows its children where they are. Own choice, as those below.
const KIN: TimeDelta = TimeDelta::from_millis(500);
/// The same when its own place has changed.
const KIN_SOON: TimeDelta = TimeDelta::from_millis(50);
/// A cookie is valid for this long, and for as long again.
const COOKIE_PERIOD: TimeDelta = TimeDelta::from_secs(16);
/// Least wait before a search in which nobody was left begins again; up to twice as long.
const SEARCH_AGAIN: TimeDelta = TimeDelta::from_millis(300);

/// Counts of what neighbours have done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PeerCounters {
    /// Searches for a parent, the first ones included.
    pub searches: u64,
    /// Requests for a parent sent.
    pub asked: u64,
    /// Places offered.
    pub offered: u64,
    /// Seekers referred to others.
    pub referred: u64,
    /// Requests without a valid cookie, which were answered with one.
    pub challenged: u64,
    /// Leaves asked to find another parent, for a node that forwards.
    pub displaced: u64,
    /// Hops ended since the path that the parent showed had this node, or was too long.
    pub cycles: u64,
    /// Messages from others than those asked and parents, or that fit nothing.
    pub strangers: u64,
    /// Datagrams that do not parse.
    pub malformed: u64,
    /// Messages dropped, since too many waited.
    pub dropped_messages: u64,
}

/// A node's place in one tree.
#[derive(Clone, Debug)]
struct Slot {
    /// The parent that sends, and one that is to replace it.
    held: Option<Place>,
    trial: Option<Place>,
    /// The nodes above.
    path: Option<NodePath>,
    relatives: Addresses,
    seek: Option<Seek>,
}

/// Places that the node is to be given.
pub(super) struct Assignment {
    pub nonce: u64,
    pub serial: u32,
    pub forwards: Option<u8>,
    pub degree: u16,
    pub places: Vec<Place>,
}

pub(super) struct Neighbours {
    secret: Secret,
    key: [u8; 16],
    tickets: TicketKey,
    id: u32,
    nonce: u64,
    /// The nonce with which the node joined; none before it has.
    joined: Option<u64>,
    is_root: bool,
    leaving: bool,
    forwards: Option<u8>,
    degree: u16,
    contacts: Vec<SocketAddr>,
    slots: Vec<Slot>,
    offers: Offers,
    serial: u32,
    changed: bool,
    /// The node's revision when its hops were last looked at.
    followed: Option<u64>,
    next_kin: Timestamp,
    last_kin: Timestamp,
    out: VecDeque<(SocketAddr, PeerMessage)>,
    rng: Pcg64Mcg,
    pub counters: PeerCounters,
}

impl Neighbours {
    pub(super) fn new(config: &PeerConfig, degree: u16, seed: u64, is_root: bool, now: Timestamp) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(seed ^ 0x6b69_6e73);
        let trees = config.trees.clamp(1, MAX_TREES);
        // Also the number of a node that restarts is new.
        let id = if is_root { ROOT } else { rng.random_range(1..=u32::MAX) };
        let secret = Secret::new(&config.secret);
        let key = secret.key(id);
        let slot = Slot { held: None, trial: None, path: None, relatives: Addresses::none(), seek: None };
        Self {
            tickets: TicketKey::new(&key),
            secret,
            key,
            id,
            nonce: rng.random(),
            joined: None,
            is_root,
            leaving: false,
            forwards: (degree > 0 && !is_root).then(|| rng.random_range(0..trees)),
            degree,
            contacts: config.contacts.iter().copied().take(MAX_CONTACTS).collect(),
            slots: vec![slot; trees.into()],
            offers: Offers::default(),
            serial: 0,
            changed: false,
            followed: None,
            next_kin: now + KIN,
            last_kin: now,
            out: VecDeque::new(),
            rng,
            counters: PeerCounters::default(),
        }
    }
    pub(super) fn trees(&self) -> u8 {
        self.slots.len() as u8
    }
    pub(super) fn id(&self) -> u32 {
        self.id
    }
    pub(super) fn key(&self) -> [u8; 16] {
        self.key
    }
    pub(super) fn depth(&self, tree: u8) -> Option<u16> {
        let slot = self.slots.get(usize::from(tree)).filter(|s| s.held.is_some())?;
        slot.path.map(|p| p.as_slice().len() as u16 + 1)
    }
    pub(super) fn pop(&mut self) -> Option<(SocketAddr, PeerMessage)> {
        self.out.pop_front()
    }
    fn send(&mut self, to: SocketAddr, message: PeerMessage) {
        if self.out.len() < MAX_MESSAGES {
            self.out.push_back((to, message));
        } else {
            self.counters.dropped_messages += 1;
        }
    }

    /// The node has begun, or begins again: it is a member at once, without places.
    pub(super) fn on_joining(&mut self, nonce: u64, now: Timestamp) {
        (self.joined, self.changed) = (Some(nonce), true);
        for tree in 0..self.trees() {
            self.search(tree, None, now);
        }
    }

    /// A hop of the node has failed.
    pub(super) fn on_broken(&mut self, broken: &Broken, node: &Node, now: Timestamp) {
        let Some(slot) = self.slots.get_mut(usize::from(broken.tree)).filter(|_| broken.lost == Lost::Parent) else {
            return;
        };
        let is_it = |place: &Option<Place>| place.is_some_and(|p| p.parent == broken.peer);
        let failed = if is_it(&slot.trial) {
            slot.trial.take()
        } else if is_it(&slot.held) {
            slot.path = None;
            slot.held.take()
        } else if slot.seek.is_none() && slot.trial.is_none() && node.parent(broken.tree).is_none() {
            // The node lacks a parent and blames nobody.
            slot.held.take()
        } else {
            return;
        };
        self.search(broken.tree, failed.map(|p| p.address), now);
    }

    /// Begins a search for a parent, unless there is one that does not ask this address.
    fn search(&mut self, tree: u8, avoid: Option<SocketAddr>, now: Timestamp) {
        let at = usize::from(tree);
        if self.is_root || self.leaving || self.slots[at].trial.is_some() {
            return;
        }
        self.counters.searches += 1;
        let mut seek = Seek::avoiding(avoid);
        self.slots[at].relatives.as_slice().iter().for_each(|a| seek.add(*a));
        let others = self.slots.iter().enumerate().filter(|(t, _)| *t != at).filter_map(|(_, s)| s.held);
        others.for_each(|p| seek.add(p.address));
        self.contacts.iter().for_each(|a| seek.add(*a));
        self.slots[at].seek = Some(seek);
        self.ask(tree, now);
    }

    /// Asks whoever is next.
    fn ask(&mut self, tree: u8, now: Timestamp) {
        let wait = SEARCH_AGAIN.mul_f64(1.0 + self.rng.random::<f64>());
        let Some(seek) = &mut self.slots[usize::from(tree)].seek else { return };
        let asked = seek.next(now);
        if seek.is_exhausted() {
            seek.wait(now + wait);
        }
        if let Some(asked) = asked {
            self.counters.asked += 1;
            self.send_seek(asked.to, asked.cookie, tree);
        }
    }
    fn send_seek(&mut self, to: SocketAddr, cookie: u64, tree: u8) {
        let degree = if self.forwards == Some(tree) { self.degree.min(255) as u8 } else { 0 };
        self.send(to, PeerMessage::Seek { nonce: self.nonce, cookie, tree, degree });
    }

    pub(super) fn on_message(&mut self, peers: &Peers, from: SocketAddr, node: &Node, now: Timestamp) {
        let ours = |nonce: u64| nonce == self.nonce;
        match peers.message {
            PeerMessage::Seek { nonce, cookie, tree, degree } => {
                self.on_seek(peers.sender, from, nonce, cookie, (tree, degree), node, now);
            }
            PeerMessage::Cookie { nonce, cookie } if ours(nonce) => {
                for tree in 0..self.trees() {
                    let seek = self.slots[usize::from(tree)].seek.as_mut();
                    if let Some(asked) = seek.and_then(|s| s.on_cookie(from, cookie, now)) {
                        self.send_seek(asked.to, cookie, tree);
                    }
                }
            }
            PeerMessage::Offer { nonce, ticket, parent, tree, trees } if ours(nonce) && trees == self.trees() => {
                self.on_offer(Place { tree, parent, ticket, address: from });
            }
            PeerMessage::Refer { nonce, tree, trees, addresses } if ours(nonce) && trees == self.trees() => {
                let seek = self.slots.get_mut(usize::from(tree)).and_then(|s| s.seek.as_mut());
                let Some(seek) = seek else { return };
                if !seek.asks(from) {
                    self.counters.strangers += 1;
                    return;
                }
                seek.give_up_asked();
                seek.refer(addresses.as_slice());
                self.ask(tree, now);
            }
            PeerMessage::Kin(kin) => self.on_kin(&kin, from, now),
            _ => self.counters.strangers += 1,
        }
    }

    fn on_offer(&mut self, place: Place) {
        let slot = self.slots.get_mut(usize::from(place.tree));
        let Some(slot) = slot.filter(|s| s.seek.as_ref().is_some_and(|k| k.asks(place.address))) else {
            self.counters.strangers += 1;
            return;
        };
        if place.parent != self.id {
            (slot.seek, slot.trial) = (None, Some(place));
            self.changed = true;
        }
    }

    /// The parent shows where this node is.
    fn on_kin(&mut self, kin: &Kin, from: SocketAddr, now: Timestamp) {
        let (id, forwards) = (self.id, self.forwards == Some(kin.tree));
        let slot = self.slots.get_mut(usize::from(kin.tree));
        let is_it = |p: Place| p.ticket == kin.ticket && p.address == from;
        let Some(slot) = slot.filter(|s| s.held.or(s.trial).is_some_and(is_it)) else {
            self.counters.strangers += 1;
            return;
        };
        let before = slot.path.replace(kin.path);
        slot.relatives = kin.relatives;
        if kin.path.contains(id) {
            self.counters.cycles += 1;
            (slot.held, slot.path, self.changed) = (None, None, true);
            return self.search(kin.tree, Some(from), now);
        }
        if kin.leaving && slot.seek.is_none() {
            self.search(kin.tree, Some(from), now);
        }
        if forwards && before != Some(kin.path) {
            self.next_kin = self.next_kin.min((self.last_kin + KIN_SOON).max(now));
        }
    }

    /// Whether this node is connected to the root in a tree in which it forwards.
    fn feeds(&self, tree: u8, node: &Node) -> bool {
        let connected = || {
            let slot = &self.slots[usize::from(tree)];
            let room = slot.path.is_some_and(|p| p.as_slice().len() + 1 < MAX_PATH);
            room && slot.held.is_some() && node.is_fed(tree)
        };
        !self.leaving && (self.is_root || self.forwards == Some(tree) && connected())
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one request")]
    fn on_seek(
        &mut self,
        child: u32,
        from: SocketAddr,
        nonce: u64,
        cookie: u64,
        (tree, degree): (u8, u8),
        node: &Node,
        now: Timestamp,
    ) {
        if tree >= self.trees() || child == self.id || child == ROOT {
            self.counters.strangers += 1;
            return;
        }
        let period = now.as_nanos() / COOKIE_PERIOD.as_nanos();
        let is_cookie = |p: i64| self.secret.cookie(from, nonce, p) == cookie;
        if !is_cookie(period) && !is_cookie(period - 1) {
            self.counters.challenged += 1;
            let cookie = self.secret.cookie(from, nonce, period);
            return self.send(from, PeerMessage::Cookie { nonce, cookie });
        }
        let above = self.slots[usize::from(tree)].path.is_some_and(|p| p.contains(child));
        let feeds = self.feeds(tree, node);
        if feeds && !above {
            let held = self.offers.held(tree, child, now);
            let free = self.offers.staying(tree) + held < usize::from(self.degree);
            let displaces = degree > 0 && self.offers.leaves(tree) > held;
            if (free || displaces) && self.offers.offer(child, tree, degree, from, now) {
                self.counters.offered += 1;
                let ticket = self.tickets.ticket(child, tree, from);
                let (parent, trees) = (self.id, self.trees());
                return self.send(from, PeerMessage::Offer { nonce, ticket, parent, tree, trees });
            }
        }
        self.counters.referred += 1;
        let addresses = self.others(tree, from, node, feeds && !above);
        self.send(from, PeerMessage::Refer { nonce, tree, trees: self.trees(), addresses });
    }

    /// Addresses for whoever seeks a parent: children that forward, if this node feeds them, else its own parent.
    fn others(&mut self, tree: u8, not: SocketAddr, node: &Node, feeds: bool) -> Addresses {
        let mut list = Addresses::none();
        if feeds {
            let forwarding = |(child, _): &(u32, SocketAddr)| self.offers.forwards(tree, *child);
            let all: Vec<SocketAddr> = node.children_in(tree).filter(forwarding).map(|c| c.1).collect();
            let first = self.rng.random_range(0..all.len().max(1));
            let turned = all.iter().cycle().skip(first).take(all.len());
            turned.filter(|a| **a != not).take(3).for_each(|a| _ = list.add(*a));
        } else if let Some(place) = self.slots[usize::from(tree)].held.filter(|p| p.address != not) {
            list.add(place.address);
        }
        self.contacts.iter().filter(|a| **a != not).take(1).for_each(|a| _ = list.add(*a));
        list
    }

    /// The node leaves: its children are to find other parents.
    pub(super) fn leave(&mut self, node: &Node, now: Timestamp) {
        self.leaving = true;
        self.slots.iter_mut().for_each(|s| s.seek = None);
        self.show(node, now);
    }

    /// Shows each child where it is.
    fn show(&mut self, node: &Node, now: Timestamp) {
        (self.last_kin, self.next_kin) = (now, now + KIN);
        for tree in 0..self.trees() {
            let slot = &self.slots[usize::from(tree)];
            let above = if self.is_root { Some(NodePath::empty()) } else { slot.path.filter(|_| slot.held.is_some()) };
            let Some(mut path) = above else { continue };
            if !self.is_root && !path.add(self.id) {
                continue;
            }
            let own = slot.held.map(|p| p.address);
            let children: Vec<(u32, SocketAddr)> = node.children_in(tree).collect();
            for (child, to) in children {
                let mut relatives = Addresses::none();
                own.map(|a| relatives.add(a));
                let others = self.others(tree, to, node, true);
                others.as_slice().iter().for_each(|a| _ = relatives.add(*a));
                let leaving = self.leaving || self.offers.is_moving(tree, child);
                let ticket = self.tickets.ticket(child, tree, to);
                self.send(to, PeerMessage::Kin(Kin { ticket, tree, leaving, path, relatives }));
            }
        }
    }

    /// Follows what has become of the node's hops.
    pub(super) fn follow(&mut self, node: &Node, now: Timestamp) {
        if self.followed == Some(node.revision()) {
            return;
        }
        self.followed = Some(node.revision());
        for (tree, slot) in (0u8..).zip(&mut self.slots) {
            if let Some(trial) = slot.trial.filter(|t| node.parent(tree) == Some((t.parent, t.address))) {
                // Its path is not known yet.
                (slot.held, slot.trial, slot.path) = (Some(trial), None, None);
            }
        }
        let present: BTreeSet<(u8, u32)> = node.hops().map(|(child, tree, _)| (tree, child)).collect();
        let came = present.iter().any(|key| !self.offers.knows(*key));
        self.offers.follow(&present);
        if came {
            // A new child has to know its path before it can be asked for a place.
            self.next_kin = self.next_kin.min((self.last_kin + KIN_SOON).max(now));
        }
        for tree in 0..self.trees() {
            while self.offers.staying(tree) > usize::from(self.degree) && self.offers.move_leaf(tree) {
                self.counters.displaced += 1;
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, node: &Node, now: Timestamp) {
        for tree in 0..self.trees() {
            let seek = self.slots[usize::from(tree)].seek.as_ref();
            if seek.is_some_and(|s| s.begins_again(now)) {
                self.search(tree, None, now);
            } else if seek.and_then(Seek::poll_timeout).is_some_and(|at| at <= now) {
                self.ask(tree, now);
            }
        }
        if self.next_kin <= now {
            self.show(node, now);
        }
    }
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        let seeks = self.slots.iter().filter_map(|s| s.seek.as_ref()?.poll_timeout());
        seeks.chain([self.next_kin]).min()
    }

    /// The places that the node is to be given, if they have changed.
    pub(super) fn take_assignment(&mut self) -> Option<Assignment> {
        let nonce = self.joined.filter(|_| core::mem::take(&mut self.changed))?;
        self.serial += 1;
        let places = self.slots.iter().filter_map(|s| s.trial.or(s.held)).collect();
        Some(Assignment { nonce, serial: self.serial, forwards: self.forwards, degree: self.degree, places })
    }
}
