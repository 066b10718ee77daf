//! Common parts of the metric blocks.

use super::RawBlock;

/// The interval covered by a metric: the Interval Metric flag (RFC 6792; RFC 7002, section 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntervalMetric {
    /// A single time.
    Sampled,
    /// Since the last report.
    Interval,
    /// Since the session began.
    Cumulative,
}

impl IntervalMetric {
    /// From the flag's two bits; `None` for 0, which is reserved.
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
    /// From the upper two bits of the type-specific octet.
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

/// A count whose field has its two largest values reserved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Measured {
    /// The count. Counts out of range are written as [`Measured::OverRange`].
    Value(u64),
    /// Above the field's range.
    OverRange,
    /// Unknown.
    #[default]
    Unavailable,
}

impl Measured {
    /// The count, if known.
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

/// A block of fixed length.
pub(super) trait Fixed: Sized {
    /// Block type.
    const TYPE: u8;
    /// Bytes of its content.
    const BODY: usize;
    /// The block in exactly [`Fixed::BODY`] bytes; `None` if its specification says to ignore it.
    fn read(type_specific: u8, body: &[u8]) -> Option<Self>;
    /// The type-specific octet.
    fn type_specific(&self) -> u8;
    /// Appends exactly [`Fixed::BODY`] bytes.
    fn write_body(&self, out: &mut Vec<u8>);

    /// The block in `raw`, if it is one.
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
