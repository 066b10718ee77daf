/// Sequence numbers distinguished, counted back from the highest.
const WINDOW: u64 = 8_192;
const WORDS: usize = (WINDOW / 64) as usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    New,
    Again,
    /// Too old to know whether it has already arrived.
    Old,
}

/// Set of the latest sequence numbers that have arrived.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    seen: Box<[u64; WORDS]>,
    /// The lowest expected number, and the highest received.
    range: Option<(u64, u64)>,
}

impl Default for Arrivals {
    fn default() -> Self {
        Self { seen: Box::new([0; WORDS]), range: None }
    }
}

impl Arrivals {
    #[inline]
    fn bit(sequence: u64) -> (usize, u64) {
        ((sequence % WINDOW / 64) as usize, 1 << (sequence % 64))
    }

    #[inline]
    fn has(&self, sequence: u64) -> bool {
        let (word, bit) = Self::bit(sequence);
        self.seen[word] & bit != 0
    }

    fn clear(&mut self, sequence: u64) {
        let (word, bit) = Self::bit(sequence);
        self.seen[word] &= !bit;
    }

    /// Records an arrival.
    #[inline]
    pub(super) fn insert(&mut self, sequence: u64) -> Arrival {
        let (lowest, highest) = self.range.unwrap_or((sequence, sequence));
        if sequence > highest {
            if sequence - highest >= WINDOW {
                self.seen.fill(0);
            } else {
                for s in highest + 1..=sequence {
                    self.clear(s);
                }
            }
            self.range = Some((lowest, sequence));
        } else if highest - sequence >= WINDOW {
            return Arrival::Old;
        } else if self.has(sequence) {
            return Arrival::Again;
        } else {
            self.range = Some((lowest.min(sequence), highest));
        }
        let (word, bit) = Self::bit(sequence);
        self.seen[word] |= bit;
        Arrival::New
    }

    /// Whether this number would be new.
    pub(super) fn is_new(&self, sequence: u64) -> bool {
        self.range.is_none_or(|(_, high)| sequence > high || (high - sequence < WINDOW && !self.has(sequence)))
    }

    /// Whether no number as high has arrived.
    pub(super) fn is_highest(&self, sequence: u64) -> bool {
        self.range.is_none_or(|(_, high)| sequence > high)
    }

    /// Whether no lower number has arrived.
    pub(super) fn is_lowest(&self, sequence: u64) -> bool {
        self.range.is_some_and(|(low, _)| sequence == low)
    }

    /// Whether this number is the very first, or the one before it has arrived.
    pub(super) fn follows_a_packet(&self, sequence: u64) -> bool {
        self.range.is_some_and(|(low, high)| {
            sequence == low
                || sequence
                    .checked_sub(1)
                    .is_some_and(|before| before <= high && high - before < WINDOW && self.has(before))
        })
    }

    /// Count of numbers from the lowest to the highest.
    pub(super) fn expected(&self) -> u64 {
        self.range.map_or(0, |(low, high)| high - low + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn agrees_with_a_set(steps in proptest::collection::vec((0u64..40, 0u64..20_000), 1..300)) {
            let (mut a, mut set, mut base) = (Arrivals::default(), BTreeSet::new(), 100_000u64);
            for (forward, back) in steps {
                base += forward * forward * forward / 8;
                let s = base.saturating_sub(if forward % 2 == 0 { back % 64 } else { back });
                let high = set.last().copied().unwrap_or(s);
                let expected = match () {
                    () if s + WINDOW <= high => Arrival::Old,
                    () if set.contains(&s) => Arrival::Again,
                    () => Arrival::New,
                };
                prop_assert_eq!(a.is_new(s), expected == Arrival::New);
                prop_assert_eq!(a.insert(s), expected);
                if expected == Arrival::New {
                    set.insert(s);
                }
                prop_assert_eq!(a.expected(), set.last().unwrap() - set.first().unwrap() + 1);
            }
        }
    }
}
