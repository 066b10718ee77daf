//! The nodes that a focus knows, and what it expects of them.

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};
use weir_units::Timestamp;

/// An answer that is expected of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Due {
    /// That it has received its assignment.
    Assigned,
    /// That it shows that it is there.
    Check,
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub address: SocketAddr,
    pub nonce: u64,
    pub token: u64,
    /// Number of its present assignment.
    pub serial: u32,
    /// Until when each answer is expected, and how often it was requested.
    assigned: Option<(Timestamp, u8)>,
    check: Option<(Timestamp, u8)>,
}

impl Member {
    fn expected(&mut self, due: Due) -> &mut Option<(Timestamp, u8)> {
        match due {
            Due::Assigned => &mut self.assigned,
            Due::Check => &mut self.check,
        }
    }
}

/// All nodes by number and by address.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    members: BTreeMap<u32, Member>,
    by_address: BTreeMap<SocketAddr, u32>,
    timers: BTreeSet<(Timestamp, u32, Due)>,
    /// The number given last. Numbers are not used again.
    last: u32,
}

impl Members {
    pub(super) fn len(&self) -> usize {
        self.members.len()
    }
    pub(super) fn get(&self, node: u32) -> Option<&Member> {
        self.members.get(&node)
    }
    pub(super) fn at(&self, address: SocketAddr) -> Option<u32> {
        self.by_address.get(&address).copied()
    }

    /// Adds a node, with the token of its number; returns the number.
    pub(super) fn add(&mut self, address: SocketAddr, nonce: u64, token: impl FnOnce(u32) -> u64) -> u32 {
        self.last += 1;
        let member = Member { address, nonce, token: token(self.last), serial: 0, assigned: None, check: None };
        self.members.insert(self.last, member);
        self.by_address.insert(address, self.last);
        self.last
    }

    pub(super) fn remove(&mut self, node: u32) -> Option<Member> {
        self.stop(node, Due::Assigned);
        self.stop(node, Due::Check);
        let member = self.members.remove(&node)?;
        self.by_address.remove(&member.address);
        Some(member)
    }

    /// A node's assignment has changed; returns whether there is such a node.
    pub(super) fn renew(&mut self, node: u32) -> bool {
        self.stop(node, Due::Assigned);
        let Some(m) = self.members.get_mut(&node) else { return false };
        m.serial += 1;
        true
    }

    /// An answer is expected until `at`, after this many requests.
    pub(super) fn expect(&mut self, node: u32, due: Due, tries: u8, at: Timestamp) {
        self.stop(node, due);
        if let Some(m) = self.members.get_mut(&node) {
            *m.expected(due) = Some((at, tries));
            self.timers.insert((at, node, due));
        }
    }

    fn stop(&mut self, node: u32, due: Due) {
        if let Some((at, _)) = self.members.get_mut(&node).and_then(|m| m.expected(due).take()) {
            self.timers.remove(&(at, node, due));
        }
    }

    /// A node has received the assignment with this number.
    pub(super) fn on_assigned(&mut self, node: u32, serial: u32) {
        if self.members.get(&node).is_some_and(|m| m.serial == serial) {
            self.stop(node, Due::Assigned);
        }
    }
    /// A node is there.
    pub(super) fn on_checked(&mut self, node: u32) {
        self.stop(node, Due::Check);
    }
    /// Whether a node has been asked whether it is there.
    pub(super) fn is_checked(&self, node: u32) -> bool {
        self.members.get(&node).is_some_and(|m| m.check.is_some())
    }
    /// Whether the receipt of an assignment is expected.
    pub(super) fn is_expected(&self, node: u32) -> bool {
        self.members.get(&node).is_some_and(|m| m.assigned.is_some())
    }

    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.timers.first().map(|(at, ..)| *at)
    }
    /// An answer that has not come in time, and how often it was requested.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Option<(u32, Due, u8)> {
        let &(at, node, due) = self.timers.first().filter(|(at, ..)| *at <= now)?;
        self.timers.remove(&(at, node, due));
        let tries = self.members.get_mut(&node).and_then(|m| m.expected(due).take()).map_or(0, |(_, tries)| tries);
        Some((node, due, tries))
    }
}
