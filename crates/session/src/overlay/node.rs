//! A node of an overlay: it receives all trees, and relays one of them.

mod hops;
mod media;
mod membership;

use super::allowance::Allowance;
use super::config::{NodeConfig, RootIdentity};
use super::credentials::TicketKey;
use super::datagram::{Outgoing, Received};
use super::downstream::{Downstream, HopCounters};
use super::forest::ROOT;
use super::store::PacketStore;
use super::upstream::Upstream;
use crate::identity::FeedbackSsrcs;
use crate::nack::{NackCounters, Nacker};
use core::net::SocketAddr;
use media::MediaClock;
pub use media::{Delivered, SendError};
use membership::Membership;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::VecDeque;
use weir_units::{DataRate, TimeDelta, Timestamp};
use weir_wire::ntp::NtpTime;
use weir_wire::rtcp::overlay::{Broken, Lost, Message, Overlay, Reason};
use weir_wire::{DatagramKind, kind_of};

/// Most control messages that wait to be sent.
const MAX_MESSAGES: usize = 1_024;
/// Most packets that wait for the application.
const MAX_DELIVERED: usize = 4_096;

/// Counters of a node: packets received, and those refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeCounters {
    /// RTP packets received for the first time.
    pub packets: u64,
    /// Their RTP bytes.
    pub bytes: u64,
    /// Of these, packets that another tree's parent has repeated.
    pub repaired: u64,
    /// Of these, packets that arrived after their playout.
    pub late: u64,
    /// Packets that had already arrived.
    pub duplicates: u64,
    /// Packets older than those kept, or whose number is too far from the last.
    pub out_of_range: u64,
    /// Packets that the application has not taken in time.
    pub not_taken: u64,
    /// Parents lost, for any reason.
    pub lost_parents: u64,
    /// Children that were silent for too long.
    pub lost_children: u64,
    /// Children refused.
    pub refused: u64,
    /// Datagrams that do not parse, or that no node sends.
    pub malformed: u64,
    /// Packets and messages from others than parents, children and the focus, or with a wrong ticket or nonce.
    pub strangers: u64,
    /// Control messages dropped, since too many waited.
    pub dropped_messages: u64,
}

/// A node's parent in one tree.
#[derive(Default)]
struct Slot {
    /// The parent that sends.
    current: Option<Box<Upstream>>,
    /// One that is to replace it.
    candidate: Option<Box<Upstream>>,
    /// When the focus was last asked for a parent.
    asked: Option<Timestamp>,
    /// When the first packet arrived, and the last.
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

/// A node of an overlay, sans-IO. It is driven as an [`Endpoint`](crate::Endpoint) is: after datagrams and timeouts
/// [`Self::poll_transmit`] is called until it returns `None`, and then [`Self::poll_timeout`].
///
/// Received packets of all trees are joined by their RTP sequence numbers, which no relay changes; each hop numbers its
/// packets by the subflow number of Multipath RTP (draft-ietf-avtcore-mprtp-03), of which feedback and the hop's controller
/// know. A lost packet is requested from the parents in turn (generic NACK, RFC 4585), each of which receives all trees
/// too.
pub struct Node {
    config: NodeConfig,
    membership: Membership,
    nonce: u64,
    id: u32,
    token: u64,
    key: Option<TicketKey>,
    serial: u32,
    forwards: Option<u8>,
    degree: u16,
    slots: Vec<Slot>,
    downs: Vec<Downstream>,
    allowance: Allowance,
    /// The child that may send first.
    next_down: usize,
    store: PacketStore,
    nacker: Nacker,
    clock: MediaClock,
    delivered: VecDeque<Delivered>,
    messages: VecDeque<(SocketAddr, Message<'static>)>,
    /// The tree whose parent was asked last for lost packets.
    asked: usize,
    started: Timestamp,
    /// When the first packet had arrived in each tree.
    complete: Option<Timestamp>,
    rng: Pcg64Mcg,
    counters: NodeCounters,
    /// Counters of hops that have ended.
    past: HopCounters,
    /// Parents and children that came and went.
    revision: u64,
}

impl Node {
    /// A node that joins at `now`.
    pub fn new(config: NodeConfig, now: Timestamp) -> Self {
        Self::with(config, Membership::joining(now), now)
    }

    /// The root: the node of the source, which forwards in all trees and receives nothing.
    pub fn root(config: NodeConfig, identity: &RootIdentity, now: Timestamp) -> Self {
        let mut node = Self::with(config, Membership::Root, now);
        (node.token, node.key) = (identity.token, Some(TicketKey::new(&identity.key)));
        node.slots.resize_with(identity.trees.into(), Slot::default);
        node.degree = identity.share;
        node.set_allowance(now);
        node
    }

    fn with(config: NodeConfig, membership: Membership, now: Timestamp) -> Self {
        let mut rng = Pcg64Mcg::seed_from_u64(config.seed);
        Self {
            nonce: rng.random(),
            id: ROOT,
            token: 0,
            key: None,
            serial: 0,
            forwards: None,
            degree: 0,
            slots: Vec::new(),
            downs: Vec::new(),
            allowance: Allowance::new(now),
            next_down: 0,
            store: PacketStore::new(config.history),
            nacker: Nacker::new(config.nack, config.rate, now),
            clock: MediaClock::default(),
            delivered: VecDeque::new(),
            messages: VecDeque::new(),
            asked: 0,
            started: now,
            complete: None,
            rng,
            counters: NodeCounters::default(),
            past: HopCounters::default(),
            revision: 0,
            membership,
            config,
        }
    }

    /// Rate of a tree.
    fn tree_rate(&self) -> DataRate {
        DataRate::from_bps(self.config.rate.as_bps() / (self.slots.len() as u64).max(1))
    }
    /// The number of children may have changed.
    fn set_allowance(&mut self, now: Timestamp) {
        let trees = if self.is_root() { self.slots.len() as u32 } else { 1 };
        self.allowance.set(u32::from(self.degree) * trees, self.tree_rate(), now);
    }

    fn is_root(&self) -> bool {
        self.membership == Membership::Root
    }

    /// The node's number; 0 for the root, and until the focus has given it one.
    pub fn id(&self) -> u32 {
        self.id
    }
    /// The tree in which it forwards; `None` for the root, which does in all, and for a node that forwards nothing.
    pub fn forwards(&self) -> Option<u8> {
        self.forwards
    }
    /// Its number of children in all trees.
    pub fn children(&self) -> usize {
        self.downs.len()
    }
    /// The number and address of its parent in a tree, if that parent has answered.
    pub fn parent(&self, tree: u8) -> Option<(u32, SocketAddr)> {
        let up = self.slots.get(usize::from(tree))?.current.as_ref()?;
        Some((up.place.parent, up.place.address))
    }
    /// Whether its parent in this tree is there and does not lack the tree itself.
    pub(super) fn is_fed(&self, tree: u8) -> bool {
        let slot = self.slots.get(usize::from(tree));
        slot.and_then(|s| s.current.as_ref()).is_some_and(|u| !u.starved)
    }
    /// Numbers and addresses of its children in a tree.
    pub(super) fn children_in(&self, tree: u8) -> impl Iterator<Item = (u32, SocketAddr)> {
        self.downs.iter().filter(move |d| d.tree == tree).map(|d| (d.child, d.address))
    }
    /// Changes whenever a parent or a child comes or goes.
    pub(super) fn revision(&self) -> u64 {
        self.revision
    }
    /// Whether it has a parent in each tree, none of which lacks the tree itself.
    pub fn is_connected(&self) -> bool {
        !self.slots.is_empty() && self.slots.iter().all(|s| s.current.as_ref().is_some_and(|u| !u.starved))
    }
    /// Time from joining until a packet had arrived in each tree.
    pub fn join_time(&self) -> Option<TimeDelta> {
        self.complete.map(|at| at.saturating_since(self.started))
    }
    /// When the last packet of a tree arrived.
    pub fn last_packet(&self, tree: u8) -> Option<Timestamp> {
        self.slots.get(usize::from(tree))?.last
    }
    /// Whether it has left, or its farewell has not been answered in time.
    pub fn has_left(&self) -> bool {
        self.membership == Membership::Left
    }
    /// Returns the counters of packets received.
    pub fn counters(&self) -> NodeCounters {
        self.counters
    }
    /// Missing packets, and the results of requesting them.
    pub fn nack_counters(&self) -> NackCounters {
        self.nacker.counters
    }
    /// Returns the sum of the counters of its hops to children, past ones included.
    pub fn hop_counters(&self) -> HopCounters {
        let all = self.downs.iter().map(|d| d.counters);
        all.fold(self.past, add)
    }
    /// The children, with the tree and the target of the hop's controller.
    pub fn hops(&self) -> impl Iterator<Item = (u32, u8, DataRate)> {
        self.downs.iter().map(|d| (d.child, d.tree, d.target()))
    }

    /// A datagram has arrived.
    pub fn handle_datagram(&mut self, received: &Received<'_>, now: Timestamp) {
        match kind_of(received.bytes) {
            Some(DatagramKind::Rtp) => self.on_rtp(received, now),
            Some(DatagramKind::Rtcp) => self.on_rtcp(received, now),
            None => self.counters.malformed += 1,
        }
    }

    /// The time of [`Self::poll_timeout`] has come.
    pub fn handle_timeout(&mut self, now: Timestamp) {
        self.on_membership_timeout(now);
        self.on_parents_timeout(now);
        self.on_children_timeout(now);
    }

    /// When to call [`Self::handle_timeout`] next.
    pub fn poll_timeout(&mut self, now: Timestamp) -> Option<Timestamp> {
        let mut at = self.membership.timeout();
        if self.membership != Membership::Left {
            let timing = &self.config.timing;
            for slot in &self.slots {
                for up in slot.current.iter().chain(&slot.candidate) {
                    at = at.min(up.poll_timeout(timing));
                }
            }
            at = at.min(self.next_request());
            for down in &mut self.downs {
                at = at.min(down.poll_timeout(timing, now));
            }
            crate::timers::earliest(&mut at, self.nacker.poll_timeout());
        }
        (at < Timestamp::MAX).then_some(at)
    }

    /// Writes the next datagram into `out`, which is empty.
    pub fn poll_transmit(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<Outgoing> {
        if let Some((to, message)) = self.messages.pop_front() {
            Overlay { sender: self.id, message }.write_into(out);
            return Some(Outgoing::rtcp(to, out));
        }
        if let Some(to) = self.poll_feedback(now, out) {
            return Some(Outgoing::rtcp(to, out));
        }
        if let Some(to) = self.poll_nack(now, out) {
            return Some(Outgoing::rtcp(to, out));
        }
        self.poll_packet(now, out)
    }

    /// Feedback on a hop from a parent.
    fn poll_feedback(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<SocketAddr> {
        let ssrcs = [self.id, self.config.ssrc];
        let ups = self.slots.iter_mut().flat_map(|s| s.current.iter_mut().chain(&mut s.candidate));
        let up = ups.into_iter().find(|u| u.is_feedback_due(now))?;
        let zero = NtpTime::from_bits(u64::from(self.config.ntp_epoch) << 32);
        up.write_feedback(ssrcs, zero, now, out);
        Some(up.place.address)
    }

    /// A request for lost packets, to each parent in turn.
    fn poll_nack(&mut self, now: Timestamp, out: &mut Vec<u8>) -> Option<SocketAddr> {
        if !self.nacker.is_due(now) || !self.nacker.prepare(now) {
            return None;
        }
        let trees = self.slots.len();
        let order = (1..=trees).map(|k| (self.asked + k) % trees);
        let feeds = |t: &usize| self.slots[*t].current.as_ref().is_some_and(|u| !u.starved);
        let attached = |t: &usize| self.slots[*t].current.is_some();
        let tree = order.clone().find(feeds).or_else(|| order.clone().find(attached))?;
        self.asked = tree;
        let up = self.slots[tree].current.as_mut()?;
        up.last_sent = now;
        self.nacker.write(FeedbackSsrcs { sender: self.id, media: self.config.ssrc }, now, out);
        Some(up.place.address)
    }

    fn queue_message(&mut self, to: SocketAddr, message: Message<'static>) {
        if self.messages.len() < MAX_MESSAGES {
            self.messages.push_back((to, message));
        } else {
            self.counters.dropped_messages += 1;
        }
    }

    /// Reports a failed hop to the focus.
    fn report_broken(&mut self, peer: u32, tree: u8, lost: Lost, reason: Reason, now: Timestamp) {
        match lost {
            Lost::Parent => {
                self.counters.lost_parents += u64::from(peer != self.id);
                self.slots[usize::from(tree)].asked = Some(now);
            }
            Lost::Child => self.counters.lost_children += 1,
        }
        let broken = Broken { token: self.token, peer, tree, lost, reason };
        self.queue_message(self.config.focus, Message::Broken(broken));
    }
}

fn add(a: HopCounters, b: HopCounters) -> HopCounters {
    HopCounters {
        packets: a.packets + b.packets,
        bytes: a.bytes + b.bytes,
        repeated: a.repeated + b.repeated,
        unavailable: a.unavailable + b.unavailable,
        declined: a.declined + b.declined,
        dropped: a.dropped + b.dropped,
    }
}
