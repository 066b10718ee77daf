//! A node and its neighbours: parents that fail or answer, children that come and go.

use super::{Node, add};
use crate::overlay::datagram::Received;
use crate::overlay::downstream::Downstream;
use crate::overlay::upstream::State;
use core::net::SocketAddr;
use rand::RngExt;
use weir_units::Timestamp;
use weir_wire::rtcp::mprtcp::Block;
use weir_wire::rtcp::overlay::{Hop, HopKind, Lost, Message, Overlay, Place, Reason};
use weir_wire::rtcp::{Mprtcp, Nack, Packet, parse_compound};

/// Most packets of one request that are repeated; [`crate::nack`] requests no more.
const MAX_REPEATED: usize = 200;
/// Children beyond the degree that are accepted while they replace others.
const SLACK: usize = 2;

impl Node {
    /// An RTCP datagram has arrived.
    pub(super) fn on_rtcp(&mut self, received: &Received<'_>, now: Timestamp) {
        for packet in parse_compound(received.bytes) {
            match packet {
                Ok(Packet::App(app)) => match Overlay::from_app(&app) {
                    Some(overlay) => self.on_message(&overlay, received.from, now),
                    None => self.counters.malformed += 1,
                },
                Ok(Packet::Mprtcp(m)) => self.on_reports(&m, received.from, now),
                Ok(Packet::Nack(n)) => self.on_nack(&n, received.from, now),
                _ => self.counters.malformed += 1,
            }
        }
    }

    fn on_message(&mut self, overlay: &Overlay<'_>, from: SocketAddr, now: Timestamp) {
        if let Message::Hop(kind, hop) = overlay.message {
            return self.on_hop(kind, &hop, overlay.sender, from, now);
        }
        if from != self.config.focus || self.is_root() {
            self.counters.strangers += 1;
            return;
        }
        match overlay.message {
            Message::Challenge { nonce, cookie } => self.on_challenge(nonce, cookie, now),
            Message::Assign(assign) => self.on_assign(&assign, now),
            Message::Left { nonce } => self.on_left(nonce, now),
            Message::Check { nonce } => self.on_check(nonce),
            _ => self.counters.malformed += 1,
        }
    }

    fn on_hop(&mut self, kind: HopKind, hop: &Hop, sender: u32, from: SocketAddr, now: Timestamp) {
        if kind == HopKind::Attach {
            return self.on_attach(hop, sender, from, now);
        }
        // The ticket shows that the message is the other end's.
        if let Some(at) = self.downs.iter().position(|d| d.ticket == hop.ticket && d.address == from) {
            match kind {
                HopKind::Keepalive => self.downs[at].last_heard = now,
                HopKind::Detach => self.remove_child(at),
                _ => self.counters.malformed += 1,
            }
            return;
        }
        let Some(slot) = self.slots.get_mut(usize::from(hop.tree)) else {
            self.counters.strangers += 1;
            return;
        };
        let is_it = |place: &Place| place.ticket == hop.ticket && place.address == from;
        if let Some(up) = slot.current.as_mut().filter(|u| is_it(&u.place)) {
            up.last_heard = now;
            match kind {
                HopKind::Keepalive => {
                    up.starved = hop.code == 1;
                    // It is there and lacks packets, which it requests itself and will forward.
                    self.nacker.on_path_alive(now, hop.tree.into());
                }
                HopKind::Attached => {}
                HopKind::Detach | HopKind::Refused | HopKind::Attach => {
                    let parent = up.place.parent;
                    slot.current = None;
                    self.report_broken(parent, hop.tree, Lost::Parent, Reason::NotForwarding, now);
                }
            }
        } else if let Some(up) = slot.candidate.as_mut().filter(|u| is_it(&u.place)) {
            match kind {
                HopKind::Attached | HopKind::Keepalive => self.promote(hop.tree, now),
                HopKind::Refused | HopKind::Detach | HopKind::Attach => {
                    let parent = up.place.parent;
                    slot.candidate = None;
                    self.report_broken(parent, hop.tree, Lost::Parent, Reason::from_code(hop.code), now);
                }
            }
        } else {
            self.counters.strangers += 1;
        }
    }

    /// The candidate in a tree sends: it replaces the present parent.
    pub(super) fn promote(&mut self, tree: u8, now: Timestamp) {
        let slot = &mut self.slots[usize::from(tree)];
        let Some(mut up) = slot.candidate.take() else { return };
        (up.state, up.last_heard) = (State::Attached, now);
        self.revision += 1;
        let before = slot.current.replace(up);
        if let Some(before) = before {
            self.send_hop(HopKind::Detach, &before.place, 0, 0);
        }
    }

    /// Asks the candidate in a tree to send, or gives it up.
    pub(super) fn try_candidate(&mut self, tree: u8, now: Timestamp) {
        let timing = self.config.timing;
        let others = self.slots.iter().any(|s| s.current.is_some());
        let next = self.store.highest().map(|h| (h + 1) as u16).filter(|_| !others);
        let slot = &mut self.slots[usize::from(tree)];
        let Some(up) = &mut slot.candidate else { return };
        let State::Attaching(tries, at) = up.state else { return };
        if at > now {
            return;
        }
        let place = up.place;
        if tries >= timing.attach_tries {
            slot.candidate = None;
            self.report_broken(place.parent, tree, Lost::Parent, Reason::Silent, now);
            return;
        }
        up.state = State::Attaching(tries + 1, now + timing.attach_retry);
        // Other parents can repeat what was missed; without any, this one sends it.
        self.send_hop(HopKind::Attach, &place, u8::from(next.is_some()), next.unwrap_or(0));
    }

    pub(super) fn send_hop(&mut self, kind: HopKind, place: &Place, code: u8, number: u16) {
        let hop = Hop { ticket: place.ticket, tree: place.tree, code, number };
        self.queue_message(place.address, Message::Hop(kind, hop));
    }

    pub(super) fn on_parents_timeout(&mut self, now: Timestamp) {
        let timing = self.config.timing;
        for tree in 0..self.trees() {
            self.try_candidate(tree, now);
            let slot = &mut self.slots[usize::from(tree)];
            let Some(up) = &mut slot.current else {
                if self.is_member() && self.lacks_parent(tree) && self.request_at(tree) <= now {
                    // No one is blamed.
                    self.report_broken(self.id, tree, Lost::Parent, Reason::Silent, now);
                }
                continue;
            };
            let place = up.place;
            let lossy = up.take_loss().is_some_and(|loss| loss * 100.0 > f64::from(timing.max_loss_percent));
            if up.is_silent(&timing, now) || (lossy && slot.candidate.is_none()) {
                let reason = if lossy { Reason::Lossy } else { Reason::Silent };
                if !lossy {
                    slot.current = None;
                    self.send_hop(HopKind::Detach, &place, 0, 0);
                }
                if self.is_member() {
                    self.report_broken(place.parent, tree, Lost::Parent, reason, now);
                }
            } else if up.wants_keepalive(&timing, now) {
                up.last_sent = now;
                self.send_hop(HopKind::Keepalive, &place, 0, 0);
            }
        }
    }

    fn is_member(&self) -> bool {
        matches!(self.membership, super::Membership::Member(_))
    }
    fn lacks_parent(&self, tree: u8) -> bool {
        let slot = &self.slots[usize::from(tree)];
        slot.current.is_none() && slot.candidate.is_none()
    }
    /// When the focus is asked again for a parent in a tree.
    fn request_at(&self, tree: u8) -> Timestamp {
        self.slots[usize::from(tree)].asked.map_or(Timestamp::ZERO, |at| at + self.config.timing.focus_retry * 2)
    }
    /// When the focus is asked next for a parent.
    pub(super) fn next_request(&self) -> Timestamp {
        if !self.is_member() {
            return Timestamp::MAX;
        }
        let lacking = (0..self.trees()).filter(|t| self.lacks_parent(*t));
        lacking.map(|t| self.request_at(t)).min().unwrap_or(Timestamp::MAX)
    }

    /// A child asks for a tree.
    fn on_attach(&mut self, hop: &Hop, child: u32, from: SocketAddr, now: Timestamp) {
        let Some(key) = &self.key else {
            self.counters.strangers += 1;
            return;
        };
        let forwards = (self.is_root() && hop.tree < self.trees()) || self.forwards == Some(hop.tree);
        let refused = if key.ticket(child, hop.tree, from) != hop.ticket {
            Some(Reason::Ticket)
        } else if !forwards || self.membership == super::Membership::Left {
            Some(Reason::NotForwarding)
        } else {
            None
        };
        let in_tree = self.downs.iter().filter(|d| d.tree == hop.tree).count();
        let known = self.downs.iter().position(|d| d.ticket == hop.ticket && d.tree == hop.tree);
        let full = known.is_none() && in_tree >= usize::from(self.degree) * 2 + SLACK;
        if let Some(reason) = refused.or(full.then_some(Reason::Full)) {
            self.counters.refused += 1;
            let answer = Hop { code: reason.code(), number: 0, ..*hop };
            return self.queue_message(from, Message::Hop(HopKind::Refused, answer));
        }
        let at = match known {
            Some(at) => at,
            None => {
                let Ok(path) = self.config.control.path(hop.tree, self.tree_rate(), self.rng.random(), now) else {
                    return;
                };
                self.downs.push(Downstream::new(child, from, hop.ticket, path, now));
                self.revision += 1;
                self.downs.len() - 1
            }
        };
        let down = &mut self.downs[at];
        down.last_heard = now;
        down.last_sent = now;
        if hop.code == 1
            && known.is_none()
            && let Some(highest) = self.store.highest()
        {
            let first = crate::sent::nearest(highest, hop.number).max(self.store.oldest());
            for sequence in first..=highest {
                if self.store.get(sequence).is_some_and(|p| p.tree == hop.tree) {
                    down.repeat(sequence, &self.store, &mut self.allowance, now);
                }
            }
        }
        let answer = Hop { code: 0, number: 0, ..*hop };
        self.queue_message(from, Message::Hop(HopKind::Attached, answer));
    }

    pub(super) fn remove_child(&mut self, at: usize) {
        self.revision += 1;
        let down = self.downs.remove(at);
        self.past = add(self.past, down.counters);
    }

    /// Ends the hops to children in these trees.
    pub(super) fn drop_children(&mut self, which: impl Fn(u8) -> bool) {
        let mut at = 0;
        while at < self.downs.len() {
            let Some(down) = self.downs.get(at).filter(|d| which(d.tree)) else {
                at += 1;
                continue;
            };
            let hop = Hop { ticket: down.ticket, tree: down.tree, code: 0, number: 0 };
            let to = down.address;
            self.queue_message(to, Message::Hop(HopKind::Detach, hop));
            self.remove_child(at);
        }
    }

    pub(super) fn on_children_timeout(&mut self, now: Timestamp) {
        let timing = self.config.timing;
        let mut at = 0;
        while at < self.downs.len() {
            let down = &mut self.downs[at];
            down.on_timeout(now);
            let (child, tree, to) = (down.child, down.tree, down.address);
            if down.is_silent(&timing, now) {
                self.remove_child(at);
                if self.is_member() || self.is_root() {
                    self.report_broken(child, tree, Lost::Child, Reason::Silent, now);
                }
                continue;
            }
            if down.wants_keepalive(&timing, now) {
                down.last_sent = now;
                let ticket = down.ticket;
                let up = self.slots[usize::from(tree)].current.as_ref();
                let starved = !self.is_root() && up.is_none_or(|u| u.starved);
                let hop = Hop { ticket, tree, code: u8::from(starved), number: 0 };
                self.queue_message(to, Message::Hop(HopKind::Keepalive, hop));
            }
            at += 1;
        }
        // A leaving node stays for its children alone.
        self.on_membership_timeout(now);
    }

    /// Reports of a child on its hop.
    fn on_reports(&mut self, m: &Mprtcp<'_>, from: SocketAddr, now: Timestamp) {
        for block in m.blocks.iter() {
            let Block::Reports(reports) = block else {
                self.counters.malformed += 1;
                continue;
            };
            let down = self.downs.iter_mut().find(|d| u16::from(d.tree) == reports.subflow && d.address == from);
            let Some(down) = down else {
                self.counters.strangers += 1;
                continue;
            };
            down.last_heard = now;
            for packet in reports.packets() {
                let known = packet.is_ok_and(|p| down.on_feedback(&p, now));
                self.counters.malformed += u64::from(!known);
            }
        }
    }

    /// A child requests packets, of any tree.
    fn on_nack(&mut self, nack: &Nack<'_>, from: SocketAddr, now: Timestamp) {
        let down = self.downs.iter_mut().find(|d| d.address == from);
        let (Some(down), Some(highest)) = (down, self.store.highest()) else {
            self.counters.strangers += 1;
            return;
        };
        down.last_heard = now;
        for sequence in nack.sequences().take(MAX_REPEATED) {
            down.repeat(crate::sent::nearest(highest, sequence), &self.store, &mut self.allowance, now);
        }
    }
}
