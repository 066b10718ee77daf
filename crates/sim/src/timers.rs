//! The event list: one pending time per source, in a tournament tree.

use weir_units::Timestamp;

/// Bits of a key that identify the source; the other 40 of its lower half order equal times. After 2^40 events the
/// order restarts, which is equally deterministic.
const INDEX_BITS: u32 = 24;
/// Most sources in a list.
pub(crate) const MAX_SOURCES: usize = 1 << INDEX_BITS;
/// The key of a source without a timeout: after everything else.
const IDLE: u128 = (Timestamp::MAX.as_nanos() as u128) << 64 | u64::MAX as u128;

/// A pending event: time, then the order in which it was set, then the source.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key(u128);

impl Key {
    #[cfg(test)]
    pub(crate) const IDLE: Self = Self(IDLE);

    /// `Timestamp::MAX` for never.
    #[inline]
    pub(crate) fn at(self) -> Timestamp {
        Timestamp::from_nanos((self.0 >> 64) as i64)
    }
    #[inline]
    pub(crate) fn index(self) -> usize {
        (self.0 as usize) & (MAX_SOURCES - 1)
    }
}

/// The earliest of many sources, each with at most one pending time.
///
/// A complete binary tree whose inner nodes hold the smaller key of their two children. Setting a source walks from its
/// leaf to the root without a data-dependent branch, and the addresses of the walk do not depend on each other, so it
/// is cheap for two sources as well as for twenty thousand; no stale entries remain in the list, which therefore never
/// grows.
#[derive(Clone, Default, Debug)]
pub(crate) struct Timers {
    /// Node 1 is the root, nodes `leaves..` are the sources; empty, or `2 * leaves` long.
    tree: Vec<u128>,
    leaves: usize,
}

impl Timers {
    /// Makes room for sources up to `count`.
    pub(crate) fn grow(&mut self, count: usize) {
        assert!(count <= MAX_SOURCES, "at most {MAX_SOURCES} sources of one kind");
        let leaves = count.next_power_of_two().max(2);
        if leaves == self.leaves {
            return;
        }
        let mut tree = vec![IDLE; 2 * leaves];
        tree[leaves..leaves + self.leaves].copy_from_slice(&self.tree[self.leaves..]);
        for k in (1..leaves).rev() {
            tree[k] = tree[2 * k].min(tree[2 * k + 1]);
        }
        (self.tree, self.leaves) = (tree, leaves);
    }

    /// Sets the time of a source; of equal times the smaller `order` comes first.
    #[inline]
    pub(crate) fn set(&mut self, index: usize, at: Timestamp, order: u64) {
        let at = at.as_nanos().max(0) as u64;
        let tie = (order << INDEX_BITS) | index as u64;
        self.put(index, (u128::from(at) << 64) | u128::from(tie));
    }

    /// Removes a source.
    pub(crate) fn clear(&mut self, index: usize) {
        if self.tree[self.leaves + index] != IDLE {
            self.put(index, IDLE);
        }
    }

    /// The time a source is set to, `Timestamp::MAX` for none.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Timestamp {
        Key(self.tree[self.leaves + index]).at()
    }

    /// The earliest event; at `Timestamp::MAX` if there is none.
    #[inline]
    pub(crate) fn first(&self) -> Key {
        Key(self.tree.get(1).copied().unwrap_or(IDLE))
    }

    #[inline]
    fn put(&mut self, index: usize, key: u128) {
        let mut k = self.leaves + index;
        let mut least = key;
        let tree = &mut self.tree[..];
        tree[k] = key;
        while k > 1 {
            least = least.min(tree[k ^ 1]);
            k >>= 1;
            tree[k] = least;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn equal_times_come_in_the_order_they_were_set() {
        let mut t = Timers::default();
        t.grow(3);
        for (order, index) in [2usize, 0, 1].into_iter().enumerate() {
            t.set(index, Timestamp::from_millis(5), order as u64);
        }
        let mut seen = vec![];
        while t.first() != Key::IDLE {
            seen.push(t.first().index());
            t.clear(t.first().index());
        }
        assert_eq!(seen, [2, 0, 1]);
    }

    proptest! {
        #[test]
        fn agrees_with_a_sorted_map(ops in prop::collection::vec((0usize..40, prop::option::of(0i64..1_000)), 1..300)) {
            let mut t = Timers::default();
            let mut model: BTreeMap<usize, (i64, u64)> = BTreeMap::new();
            let mut size = 0;
            for (order, (index, at)) in ops.into_iter().enumerate() {
                size = size.max(index + 1);
                t.grow(size);
                match at {
                    Some(at) => {
                        t.set(index, Timestamp::from_nanos(at), order as u64);
                        model.insert(index, (at, order as u64));
                    }
                    None => {
                        t.clear(index);
                        model.remove(&index);
                    }
                }
                let want = model.iter().map(|(&i, &(at, order))| (at, order, i)).min();
                let first = t.first();
                prop_assert_eq!(want.map(|w| (w.0, w.2)), (first != Key::IDLE).then(|| (first.at().as_nanos(), first.index())));
                prop_assert_eq!(t.get(index), at.map_or(Timestamp::MAX, Timestamp::from_nanos));
            }
        }
    }
}
