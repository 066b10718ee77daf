//! Offers of a node to those who seek a place, and its knowledge of its children.

use core::net::SocketAddr;
use std::collections::{BTreeMap, BTreeSet};
use weir_units::{TimeDelta, Timestamp};

/// Most offers that wait for their child, and most of one address: others there are refused until one is over.
const MAX_OFFERS: usize = 32;
const MAX_AN_ADDRESS: usize = 4;
/// How long an offer holds a place. Own choice: several round trips.
const HOLD: TimeDelta = TimeDelta::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct Offer {
    child: u32,
    tree: u8,
    degree: u8,
    to: SocketAddr,
    until: Timestamp,
}

/// Offers, and children by tree and number with how many they can feed themselves.
#[derive(Clone, Debug, Default)]
pub(super) struct Offers {
    offers: Vec<Offer>,
    children: BTreeMap<(u8, u32), u8>,
    /// Children that were asked to find another parent.
    moving: BTreeSet<(u8, u32)>,
}

impl Offers {
    /// Holds a place; whether there is room for the offer.
    pub(super) fn offer(&mut self, child: u32, tree: u8, degree: u8, to: SocketAddr, now: Timestamp) -> bool {
        self.offers.retain(|o| o.until > now && (o.child, o.tree) != (child, tree));
        let same = self.offers.iter().filter(|o| o.to.ip() == to.ip()).count();
        if self.offers.len() >= MAX_OFFERS || same >= MAX_AN_ADDRESS {
            return false;
        }
        self.offers.push(Offer { child, tree, degree, to, until: now + HOLD });
        true
    }
    /// Places of a tree held for others than this child.
    pub(super) fn held(&self, tree: u8, child: u32, now: Timestamp) -> usize {
        self.offers.iter().filter(|o| o.tree == tree && o.child != child && o.until > now).count()
    }
    /// The children are these now: those with an offer are known by it, others count as leaves.
    pub(super) fn follow(&mut self, present: &BTreeSet<(u8, u32)>) {
        self.children.retain(|key, _| present.contains(key));
        self.moving.retain(|key| present.contains(key));
        for key in present {
            if self.children.contains_key(key) {
                continue;
            }
            let at = self.offers.iter().position(|o| (o.tree, o.child) == *key);
            let degree = at.map_or(0, |at| self.offers.swap_remove(at).degree);
            self.children.insert(*key, degree);
        }
    }
    /// Whether this child was there before.
    pub(super) fn knows(&self, key: (u8, u32)) -> bool {
        self.children.contains_key(&key)
    }
    /// Children of a tree that are not to move.
    pub(super) fn staying(&self, tree: u8) -> usize {
        self.of(tree).filter(|(child, _)| !self.is_moving(tree, *child)).count()
    }
    /// Leaves among them.
    pub(super) fn leaves(&self, tree: u8) -> usize {
        self.of(tree).filter(|(child, degree)| *degree == 0 && !self.is_moving(tree, *child)).count()
    }
    /// A leaf is to find another parent; whether there was one.
    pub(super) fn move_leaf(&mut self, tree: u8) -> bool {
        let leaf = self.of(tree).find(|(child, degree)| *degree == 0 && !self.is_moving(tree, *child));
        leaf.is_some_and(|(child, _)| self.moving.insert((tree, child)))
    }
    pub(super) fn is_moving(&self, tree: u8, child: u32) -> bool {
        self.moving.contains(&(tree, child))
    }
    /// Whether this child forwards in the tree.
    pub(super) fn forwards(&self, tree: u8, child: u32) -> bool {
        self.children.get(&(tree, child)).is_some_and(|degree| *degree > 0)
    }
    fn of(&self, tree: u8) -> impl Iterator<Item = (u32, u8)> {
        self.children.range((tree, 0)..=(tree, u32::MAX)).map(|((_, child), degree)| (*child, *degree))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(k: u8) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, k], 5_004))
    }

    #[test]
    fn offers_are_bounded_by_address_and_end() {
        let (mut o, at) = (Offers::default(), Timestamp::from_millis);
        assert_eq!((0..10).filter(|child| o.offer(*child, 0, 1, address(1), at(0))).count(), MAX_AN_ADDRESS);
        assert!(o.offer(0, 0, 1, address(1), at(1)), "the same child again takes no more room");
        assert_eq!((0..200).filter(|k| o.offer(100 + k, 0, 1, address(*k as u8), at(2))).count(), MAX_OFFERS - 4);
        assert_eq!((o.held(0, 0, at(500)), o.held(1, 0, at(500)), o.held(0, 0, at(1_002))), (31, 0, 0));
        assert!(o.offer(500, 0, 1, address(1), at(1_100)));
        assert_eq!(o.offers.len(), 1);
    }

    #[test]
    fn leaves_move_and_forwarders_do_not() {
        let mut o = Offers::default();
        o.offer(7, 2, 3, address(1), Timestamp::ZERO);
        o.follow(&BTreeSet::from([(2, 7), (2, 8), (1, 9)]));
        assert!(o.forwards(2, 7) && !o.forwards(2, 8));
        assert_eq!((o.leaves(2), o.staying(2), o.held(2, 0, Timestamp::ZERO)), (1, 2, 0));
        assert!(o.move_leaf(2) && o.is_moving(2, 8) && !o.move_leaf(2));
        assert_eq!((o.leaves(2), o.staying(2)), (0, 1));
        o.follow(&BTreeSet::from([(2, 7)]));
        assert!(!o.is_moving(2, 8));
    }
}
