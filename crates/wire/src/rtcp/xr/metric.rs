//! What the metric blocks have in common.

use super::RawBlock;

/// Over which time a metric was taken: the Interval Metric flag (RFC 6792; RFC 7002, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntervalMetric {
    /// At one instant.
    Sampled,
    /// Since the last report.
    Interval,
    /// Since the session began.
    Cumulative,
}

impl IntervalMetric {
    /// From the flag's two bits; 0 is reserved and gives `None`.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 3 {
            1 => Some(Self::Sampled),
            2 => Some(Self::Interval),
            3 => Some(Self::Cumulative),
            _ => None,
        }
    }
    /// The flag's two bits.
    pub const fn bits(self) -> u8 {
        match self {
            Self::Sampled => 1,
            Self::Interval => 2,
            Self::Cumulative => 3,
        }
    }
    /// From the upper two bits of the octet that each type defines for itself.
    pub(super) const fn from_octet(type_specific: u8) -> Option<Self> {
        Self::from_bits(type_specific >> 6)
    }
    /// As [`IntervalMetric::from_octet`] for a metric that cannot be sampled.
    pub(super) fn over_time(type_specific: u8) -> Option<Self> {
        Self::from_octet(type_specific).filter(|i| *i != Self::Sampled)
    }
    /// The upper two bits of that octet.
    pub(super) const fn octet(self) -> u8 {
        self.bits() << 6
    }
}

/// A count whose field keeps its two largest values for what it cannot tell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Measured {
    /// The count. Those that the field cannot hold are written as [`Measured::OverRange`].
    Value(u64),
    /// More than the field can hold.
    OverRange,
    /// Not known.
    #[default]
    Unavailable,
}

impl Measured {
    /// The count, where it is known.
    pub const fn value(self) -> Option<u64> {
        match self {
            Self::Value(n) => Some(n),
            _ => None,
        }
    }
    /// From a field of `WIDTH` bits.
    pub(super) const fn read<const WIDTH: u32>(bits: u64) -> Self {
        let most = u64::MAX >> (64 - WIDTH);
        match most - (bits & most) {
            0 => Self::Unavailable,
            1 => Self::OverRange,
            _ => Self::Value(bits & most),
        }
    }
    /// The bits of a field of `WIDTH` bits.
    pub(super) const fn bits<const WIDTH: u32>(self) -> u64 {
        let most = u64::MAX >> (64 - WIDTH);
        match self {
            Self::Value(n) if n < most - 1 => n,
            Self::Value(_) | Self::OverRange => most - 1,
            Self::Unavailable => most,
        }
    }
}

/// A block whose content has one length.
pub(super) trait Fixed: Sized {
    /// Block type.
    const TYPE: u8;
    /// Bytes of its content.
    const BODY: usize;
    /// The block from exactly [`Fixed::BODY`] bytes; `None` where its specification wants it ignored.
    fn read(type_specific: u8, body: &[u8]) -> Option<Self>;
    /// The octet that the type defines for itself.
    fn type_specific(&self) -> u8;
    /// Appends exactly [`Fixed::BODY`] bytes.
    fn write_body(&self, out: &mut Vec<u8>);

    /// The block in `raw`, where it is one.
    fn from_raw(raw: &RawBlock<'_>) -> Option<Self> {
        (raw.block_type == Self::TYPE && raw.body.len() == Self::BODY)
            .then(|| Self::read(raw.type_specific, raw.body))
            .flatten()
    }
}

/// Appends words.
pub(super) fn put<const N: usize>(out: &mut Vec<u8>, words: [u32; N]) {
    words.iter().for_each(|w| out.extend_from_slice(&w.to_be_bytes()));
}

/// Two fields of 16 bits side by side.
pub(super) const fn pair(first: u16, second: u16) -> u32 {
    (first as u32) << 16 | second as u32
}
