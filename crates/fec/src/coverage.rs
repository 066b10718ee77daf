//! Sets of packets that a repair packet protects.

/// A set of packets: sequence numbers from `base`, at most [`Coverage::SPAN`] of them.
///
/// It can hold the masks of RFC 5109 (16 or 48 bits) and of RFC 8627 (15, 46 or 110 bits), and the rows and columns of
/// RFC 6015 and RFC 8627 up to this span.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    base: u64,
    mask: [u64; 4],
}

impl Coverage {
    /// Greatest span of sequence numbers in a set.
    pub const SPAN: u64 = 256;

    /// The empty set with this base.
    pub const fn new(base: u64) -> Self {
        Self { base, mask: [0; 4] }
    }
    /// The set with bit `i % 64` of `mask[i / 64]` for sequence number `base + i`.
    pub const fn from_mask(base: u64, mask: [u64; 4]) -> Self {
        Self { base, mask }
    }
    /// `count` packets at intervals of `stride`; those beyond the span are left out.
    pub fn every(base: u64, stride: u64, count: u64) -> Self {
        let mut set = Self::new(base);
        if stride == 1 {
            let count = count.min(Self::SPAN).min((u64::MAX - base).saturating_add(1));
            for (word, start) in set.mask.iter_mut().zip((0..).step_by(64)) {
                let bits = count.saturating_sub(start);
                *word = if bits < 64 { (1 << bits) - 1 } else { u64::MAX };
            }
            return set;
        }
        for i in 0..count.min(Self::SPAN) {
            if !set.insert(base.saturating_add(i.saturating_mul(stride))) {
                break;
            }
        }
        set
    }

    /// The sequence number of bit 0. No packet of the set is below it; it need not be in the set.
    pub const fn base(&self) -> u64 {
        self.base
    }
    /// The bits, laid out as in [`Coverage::from_mask`].
    pub const fn mask(&self) -> [u64; 4] {
        self.mask
    }
    /// Adds a packet; returns `false` if it is outside the span.
    pub const fn insert(&mut self, sequence: u64) -> bool {
        match self.bit(sequence) {
            Some((word, bit)) => {
                self.mask[word] |= bit;
                true
            }
            None => false,
        }
    }
    /// Whether a packet is in the set.
    pub const fn contains(&self, sequence: u64) -> bool {
        match self.bit(sequence) {
            Some((word, bit)) => self.mask[word] & bit != 0,
            None => false,
        }
    }
    /// Number of packets in the set, 0 to 256.
    pub const fn len(&self) -> usize {
        (self.mask[0].count_ones() + self.mask[1].count_ones() + self.mask[2].count_ones() + self.mask[3].count_ones())
            as usize
    }
    /// Whether the set is empty.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The lowest sequence number in the set.
    pub fn first(&self) -> Option<u64> {
        let word = self.mask.iter().position(|&w| w != 0)?;
        Some(self.base.saturating_add(word as u64 * 64 + u64::from(self.mask[word].trailing_zeros())))
    }
    /// The highest sequence number in the set.
    pub fn last(&self) -> Option<u64> {
        let word = self.mask.iter().rposition(|&w| w != 0)?;
        Some(self.base.saturating_add(word as u64 * 64 + 63 - u64::from(self.mask[word].leading_zeros())))
    }
    /// The packets by sequence number, which is the order of a block code's encoding symbols.
    pub fn iter(&self) -> impl Iterator<Item = u64> + use<> {
        let Self { base, mask } = *self;
        mask.into_iter()
            .zip(0_u64..)
            .flat_map(move |(word, i)| Bits(word).map(move |bit| base.saturating_add(i * 64 + bit)))
    }
    /// The intersection with a mask of the same base.
    pub(crate) const fn and(&self, other: [u64; 4]) -> Self {
        let m = self.mask;
        Self::from_mask(self.base, [m[0] & other[0], m[1] & other[1], m[2] & other[2], m[3] & other[3]])
    }
    /// The packets of this set that are not in a mask of the same base.
    pub(crate) const fn without(&self, other: [u64; 4]) -> Self {
        self.and([!other[0], !other[1], !other[2], !other[3]])
    }

    const fn bit(&self, sequence: u64) -> Option<(usize, u64)> {
        match sequence.checked_sub(self.base) {
            Some(offset) if offset < Self::SPAN => Some(((offset / 64) as usize, 1 << (offset % 64))),
            _ => None,
        }
    }
}

impl core::fmt::Debug for Coverage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The positions of a word's set bits, lowest first.
struct Bits(u64);

impl Iterator for Bits {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        if self.0 == 0 {
            return None;
        }
        let bit = u64::from(self.0.trailing_zeros());
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_what_was_put_in() {
        let mut set = Coverage::new(1_000);
        for s in [1_000, 1_063, 1_064, 1_255] {
            assert!(set.insert(s));
        }
        assert!(!set.insert(999) && !set.insert(1_256));
        assert_eq!(set.iter().collect::<Vec<_>>(), [1_000, 1_063, 1_064, 1_255]);
        assert_eq!((set.len(), set.first(), set.last()), (4, Some(1_000), Some(1_255)));
        assert!(set.contains(1_063) && !set.contains(1_062) && !set.contains(0) && !set.contains(u64::MAX));
        assert_eq!(
            (Coverage::new(7).first(), Coverage::new(7).last(), Coverage::new(7).is_empty()),
            (None, None, true)
        );
    }

    #[test]
    fn packets_in_sequence_are_those_inserted_one_by_one() {
        for base in [0, 70, u64::MAX - 130, u64::MAX - 1, u64::MAX] {
            for count in [0, 1, 63, 64, 65, 127, 128, 200, 255, 256, 300] {
                let mut expected = Coverage::new(base);
                let last = base.saturating_add(count.min(Coverage::SPAN)).saturating_sub(1);
                if count > 0 {
                    (base..=last.max(base)).for_each(|s| assert!(expected.insert(s)));
                    // No number follows the last one.
                    if base.checked_add(count).is_none() {
                        expected.insert(u64::MAX);
                    }
                }
                let set = Coverage::every(base, 1, count);
                assert_eq!(set, expected, "{count} from {base} on");
                assert_eq!((set.first(), set.last()), ((count > 0).then_some(base), expected.iter().last()));
            }
        }
    }

    #[test]
    fn columns_stride() {
        // RFC 6015, section 4.2: a repair packet protects SN base + i * offset.
        assert_eq!(Coverage::every(10, 5, 4).iter().collect::<Vec<_>>(), [10, 15, 20, 25]);
        assert_eq!(Coverage::every(0, 200, 4).iter().collect::<Vec<_>>(), [0, 200]);
        assert_eq!(Coverage::every(u64::MAX - 1, 1, 300).len(), 2);
    }
}
