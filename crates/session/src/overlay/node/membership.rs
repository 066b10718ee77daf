//! A node and its focus: joining, places, leaving.

use super::{Node, Slot};
use crate::overlay::credentials::TicketKey;
use crate::overlay::forest::MAX_TREES;
use crate::overlay::upstream::Upstream;
use rand::RngExt;
use weir_units::{TimeDelta, Timestamp};
use weir_wire::rtcp::overlay::{Assign, HopKind, Join, Message, Place};

/// A node's membership.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Membership {
    /// The focus is asked at this time, after this wait, with this cookie.
    Joining(Timestamp, TimeDelta, u64),
    /// It has a number, and shows the focus at this time that it is there.
    Member(Timestamp),
    /// It forwards until the first time at most, and informs the focus at the second that it leaves.
    Leaving(Timestamp, Timestamp),
    /// It has left.
    Left,
    /// It is the root, and shows the focus nothing.
    Root,
}

impl Membership {
    pub(super) fn joining(now: Timestamp) -> Self {
        Self::Joining(now, TimeDelta::ZERO, 0)
    }
    pub(super) fn timeout(self) -> Timestamp {
        match self {
            Self::Joining(at, ..) | Self::Member(at) => at,
            Self::Leaving(until, at) => until.min(at),
            Self::Left | Self::Root => Timestamp::MAX,
        }
    }
}

impl Node {
    pub(super) fn on_membership_timeout(&mut self, now: Timestamp) {
        let timing = self.config.timing;
        match self.membership {
            Membership::Joining(at, wait, cookie) if at <= now => {
                let wait = (wait * 2).clamp(timing.focus_retry, timing.max_retry);
                self.membership = Membership::Joining(now + wait, wait, cookie);
                let join = Join { nonce: self.nonce, cookie, degree: self.config.degree };
                self.queue_message(self.config.focus, Message::Join(join));
            }
            Membership::Member(at) if at <= now => {
                self.membership = Membership::Member(now + timing.report);
                self.queue_message(self.config.focus, Message::Checked { token: self.token });
            }
            Membership::Leaving(until, _) if until <= now || self.downs.is_empty() => self.depart(),
            Membership::Leaving(until, at) if at <= now => {
                self.membership = Membership::Leaving(until, now + timing.focus_retry);
                self.queue_message(self.config.focus, Message::Leave { token: self.token });
            }
            _ => {}
        }
    }

    /// Leaves: the node forwards until its children have other parents, but not for long.
    pub fn leave(&mut self, now: Timestamp) {
        match self.membership {
            Membership::Member(_) => {
                self.membership = Membership::Leaving(now + self.config.timing.linger, now);
                self.on_membership_timeout_of_leaver(now);
            }
            Membership::Joining(..) => self.membership = Membership::Left,
            _ => {}
        }
    }

    /// A node without children informs the focus as well.
    fn on_membership_timeout_of_leaver(&mut self, now: Timestamp) {
        self.queue_message(self.config.focus, Message::Leave { token: self.token });
        if let Membership::Leaving(until, _) = self.membership {
            self.membership = Membership::Leaving(until, now + self.config.timing.focus_retry);
        }
    }

    /// Ends all hops.
    fn depart(&mut self) {
        for tree in 0..self.trees() {
            self.drop_parent(tree);
        }
        self.drop_children(|_| true);
        self.membership = Membership::Left;
    }

    /// The focus requires a cookie.
    pub(super) fn on_challenge(&mut self, nonce: u64, cookie: u64, now: Timestamp) {
        match self.membership {
            Membership::Joining(_, wait, old) if nonce == self.nonce && old != cookie => {
                self.membership = Membership::Joining(now, wait, cookie);
                self.on_membership_timeout(now);
            }
            Membership::Joining(..) if nonce == self.nonce => {}
            _ => self.counters.strangers += 1,
        }
    }

    /// The focus has removed this node, or refuses it.
    pub(super) fn on_left(&mut self, nonce: u64, now: Timestamp) {
        if nonce != self.nonce && (nonce != self.token || self.token == 0) {
            self.counters.strangers += 1;
            return;
        }
        match self.membership {
            // It is there: it joins again, as another node. Its hops serve until then.
            Membership::Member(_) => {
                self.nonce = self.rng.random();
                self.membership = Membership::joining(now);
                self.on_membership_timeout(now);
            }
            Membership::Leaving(until, _) => {
                // The focus knows; the children may still depend on it.
                self.membership = Membership::Leaving(until, until);
                if self.downs.is_empty() {
                    self.depart();
                }
            }
            _ => {}
        }
    }

    pub(super) fn on_check(&mut self, nonce: u64) {
        match self.membership {
            Membership::Member(_) if nonce == self.nonce => {
                self.queue_message(self.config.focus, Message::Checked { token: self.token });
            }
            _ => self.counters.strangers += u64::from(nonce != self.nonce),
        }
    }

    /// The node's places.
    pub(super) fn on_assign(&mut self, a: &Assign<'_>, now: Timestamp) {
        let expected = matches!(self.membership, Membership::Joining(..) | Membership::Member(_));
        let valid = a.nonce == self.nonce && (1..=MAX_TREES).contains(&a.trees) && a.node != super::ROOT;
        if !expected || !valid {
            self.counters.strangers += u64::from(!valid);
            return;
        }
        let is_new = a.node != self.id || a.trees != self.trees();
        if is_new {
            // Tickets are those of the node's number: the hops of an earlier one are of no use.
            (0..self.trees()).for_each(|tree| self.drop_parent(tree));
            self.drop_children(|_| true);
            if a.trees != self.trees() {
                self.slots.clear();
                self.slots.resize_with(a.trees.into(), Slot::default);
            }
        } else if a.serial <= self.serial {
            self.queue_message(self.config.focus, Message::Assigned { token: self.token, serial: a.serial });
            return;
        }
        if !matches!(self.membership, Membership::Member(_)) {
            self.membership = Membership::Member(now + self.config.timing.report);
        }
        (self.id, self.token, self.serial) = (a.node, a.token, a.serial);
        self.key = Some(TicketKey::new(&a.key));
        self.degree = a.degree.min(self.config.degree);
        self.set_allowance(now);
        let forwards = a.forwards.filter(|t| *t < a.trees);
        if forwards != self.forwards {
            self.forwards = forwards;
            self.drop_children(|tree| Some(tree) != forwards);
        }
        for tree in 0..a.trees {
            self.on_place(tree, a.places.iter().find(|p| p.tree == tree), now);
        }
        self.queue_message(self.config.focus, Message::Assigned { token: self.token, serial: a.serial });
    }

    /// The focus's place for this node in a tree.
    fn on_place(&mut self, tree: u8, place: Option<Place>, now: Timestamp) {
        let slot = &mut self.slots[usize::from(tree)];
        slot.asked = Some(now);
        let Some(place) = place else { return self.drop_parent(tree) };
        if slot.current.as_ref().is_some_and(|u| u.place == place) {
            slot.candidate = None;
        } else if slot.candidate.as_ref().is_none_or(|u| u.place != place) {
            let ssrcs = [self.id, self.config.ssrc];
            let path = self.config.control.receive_path(tree, self.config.clock_rate, ssrcs, now);
            slot.candidate = Some(Box::new(Upstream::new(place, path, now)));
            self.try_candidate(tree, now);
        }
    }

    /// Ends the hops from parents in a tree.
    fn drop_parent(&mut self, tree: u8) {
        let slot = &mut self.slots[usize::from(tree)];
        let ups = [slot.current.take(), slot.candidate.take()];
        for up in ups.into_iter().flatten() {
            self.send_hop(HopKind::Detach, &up.place, 0, 0);
        }
    }
}
