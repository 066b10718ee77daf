//! The two largest gaps in a sliding window.

use std::collections::VecDeque;
use weir_units::TimeDelta;

/// A gap, and how many were added before it.
#[derive(Clone, Copy, Debug)]
struct Gap {
    number: u64,
    length: TimeDelta,
}

/// Gaps, oldest first, of which the largest two are known at any time.
///
/// A gap counts as long as fewer than two later ones are at least as long. Both lists have falling lengths, so that
/// adding and removing take constant time on average.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    added: u64,
    removed: u64,
    /// Gaps longer than all later ones.
    longest: VecDeque<Gap>,
    /// Gaps with one later one at least as long.
    next: VecDeque<Gap>,
}

impl Gaps {
    /// Adds the newest.
    pub(super) fn push(&mut self, length: TimeDelta) {
        while self.next.pop_back_if(|g| g.length <= length).is_some() {}
        let kept = self.longest.iter().rposition(|g| g.length > length).map_or(0, |last| last + 1);
        for i in kept..self.longest.len() {
            self.next.push_back(self.longest[i]);
        }
        self.longest.truncate(kept);
        self.longest.push_back(Gap { number: self.added, length });
        self.added += 1;
    }

    /// Removes the oldest.
    pub(super) fn pop(&mut self) {
        for list in [&mut self.longest, &mut self.next] {
            list.pop_front_if(|g| g.number == self.removed);
        }
        self.removed += 1;
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        self.longest.clear();
        self.next.clear();
        self.removed = self.added;
    }

    /// The largest and the second largest; zero for what there is not.
    pub(super) fn largest(&self) -> (TimeDelta, TimeDelta) {
        let length = |g: Option<&Gap>| g.map_or(TimeDelta::ZERO, |g| g.length);
        (length(self.longest.front()), length(self.longest.get(1)).max(length(self.next.front())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_sorting(ops in prop::collection::vec(prop::option::weighted(0.6, 0i64..20), 1..200)) {
            let mut gaps = Gaps::default();
            let mut window = VecDeque::new();
            for op in ops {
                match op {
                    Some(length) => {
                        gaps.push(TimeDelta::from_nanos(length));
                        window.push_back(length);
                    }
                    None if window.pop_front().is_some() => gaps.pop(),
                    None => {}
                }
                let mut sorted: Vec<_> = window.iter().copied().chain([0, 0]).collect();
                sorted.sort_unstable_by(|a, b| b.cmp(a));
                let want = (TimeDelta::from_nanos(sorted[0]), TimeDelta::from_nanos(sorted[1]));
                prop_assert_eq!(gaps.largest(), want);
            }
        }
    }
}
