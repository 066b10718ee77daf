/// A set of packets by their offsets from a base sequence number, 0 to 127.
///
/// The formats here have shorter ranges: ULPFEC 48 packets (RFC 5109, section 7.4), FlexFEC 110 (RFC 8627,
/// section 4.2.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mask(u128);

impl Mask {
    /// No packet.
    pub const EMPTY: Self = Self(0);

    /// The packets whose bits are set, with the base as the least significant bit. On the wire the order is reversed.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }
    /// The bits as in [`Mask::from_bits`].
    pub const fn bits(self) -> u128 {
        self.0
    }
    /// The mask of these sequence numbers relative to `base`; `None` if one is 128 or more away.
    pub fn covering(base: u16, sequences: impl IntoIterator<Item = u16>) -> Option<Self> {
        let bit = |s: u16| 1u128.checked_shl(s.wrapping_sub(base).into());
        sequences.into_iter().try_fold(0, |mask, s| Some(mask | bit(s)?)).map(Self)
    }
    /// The mask with the packet at `offset` added; offsets of 128 or more are ignored.
    pub const fn with(self, offset: u8) -> Self {
        if offset < 128 { Self(self.0 | 1 << offset) } else { self }
    }
    /// Whether the packet at `offset` is in the set.
    pub const fn contains(self, offset: u16) -> bool {
        offset < 128 && self.0 >> offset & 1 != 0
    }
    /// Number of packets.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }
    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// Number of bits from the base to the last packet, inclusive.
    pub const fn span(self) -> u32 {
        128 - self.0.leading_zeros()
    }
}

impl core::fmt::Debug for Mask {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_set().entries((0..128u16).filter(|i| self.contains(*i))).finish()
    }
}

/// Set of packets of one stream that a repair packet protects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Coverage {
    /// The sequence number from which offsets count. The RFCs require the lowest protected one; Chromium (156) sends
    /// masks with earlier bases.
    pub base: u16,
    /// The packets from there on.
    pub pattern: Pattern,
}

/// The packets of a [`Coverage`] relative to its base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pattern {
    /// Those in a mask.
    Mask(Mask),
    /// `count` packets, from the base at intervals of `step`.
    Every {
        /// Distance between packets.
        step: u8,
        /// Number of packets.
        count: u8,
    },
}

impl Coverage {
    /// The protected sequence numbers in order from the base, at most 255.
    pub const fn sequences(&self) -> Sequences {
        Sequences(*self)
    }
    /// Number of packets protected.
    pub const fn len(&self) -> usize {
        match self.pattern {
            Pattern::Mask(mask) => mask.len(),
            Pattern::Every { count, .. } => count as usize,
        }
    }
    /// Whether none is protected.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether the packet `sequence` is protected.
    pub const fn contains(&self, sequence: u16) -> bool {
        let distance = sequence.wrapping_sub(self.base);
        match self.pattern {
            Pattern::Mask(mask) => mask.contains(distance),
            Pattern::Every { step: 0, count } => count > 0 && distance == 0,
            Pattern::Every { step, count } => {
                distance.is_multiple_of(step as u16) && distance / (step as u16) < count as u16
            }
        }
    }
}

/// Iterator over the sequence numbers of a [`Coverage`].
#[derive(Clone, Copy, Debug)]
pub struct Sequences(Coverage);

impl Iterator for Sequences {
    type Item = u16;
    #[inline]
    fn next(&mut self) -> Option<u16> {
        let base = self.0.base;
        match &mut self.0.pattern {
            Pattern::Mask(Mask(0)) | Pattern::Every { count: 0, .. } => None,
            Pattern::Mask(Mask(bits)) => {
                let offset = bits.trailing_zeros();
                *bits &= *bits - 1;
                Some(base.wrapping_add(offset as u16))
            }
            Pattern::Every { step, count } => {
                *count -= 1;
                self.0.base = base.wrapping_add(u16::from(*step));
                Some(base)
            }
        }
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len(), Some(self.0.len()))
    }
}
impl ExactSizeIterator for Sequences {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn masks_count_from_the_base_across_the_wrap() {
        let mask = Mask::covering(65_534, [65_534, 1, 109]).unwrap();
        assert_eq!((mask.bits(), mask.len(), mask.span()), (1 | 1 << 3 | 1 << 111, 3, 112));
        assert_eq!(mask, Mask::EMPTY.with(0).with(3).with(111).with(128));
        assert_eq!(format!("{mask:?}"), "{0, 3, 111}");
        assert_eq!(Mask::covering(65_534, [126]), None);
        assert_eq!(Mask::covering(65_534, [65_533]), None);
        assert_eq!(Mask::EMPTY.span(), 0);
        let coverage = Coverage { base: 65_534, pattern: Pattern::Mask(mask) };
        assert_eq!(coverage.sequences().collect::<Vec<_>>(), [65_534, 1, 109]);
    }

    #[test]
    fn steps_wrap() {
        let every = Coverage { base: 65_530, pattern: Pattern::Every { step: 4, count: 3 } };
        assert_eq!(every.sequences().collect::<Vec<_>>(), [65_530, 65_534, 2]);
        let most = Coverage { base: 0, pattern: Pattern::Every { step: 255, count: 255 } };
        assert_eq!((most.sequences().count(), most.sequences().last()), (255, Some(254 * 255)));
    }

    proptest! {
        #[test]
        fn listed_values_are_contained(base: u16, bits: u128, step in 1u8.., count: u8) {
            for pattern in [Pattern::Mask(Mask::from_bits(bits)), Pattern::Every { step, count }] {
                let c = Coverage { base, pattern };
                let listed: Vec<u16> = c.sequences().collect();
                prop_assert_eq!(listed.len(), c.len());
                prop_assert_eq!(c.sequences().len(), c.len());
                let contained = (0..=u16::MAX).map(|i| base.wrapping_add(i)).filter(|s| c.contains(*s));
                prop_assert!(contained.eq(listed.iter().copied()));
            }
        }
    }
}
