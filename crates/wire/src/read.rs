use crate::Error;
use weir_units::cold_path;

/// Takes big-endian fields from the front of a slice, and reports the offset if it ends early.
#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// A reader of `bytes`, which start at `offset` of the datagram.
    pub(crate) const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { bytes, offset }
    }
    /// Offset of the next field in the datagram.
    pub(crate) const fn offset(&self) -> usize {
        self.offset
    }
    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len()
    }
    /// The remaining bytes.
    pub(crate) const fn rest(self) -> &'a [u8] {
        self.bytes
    }
    #[inline]
    pub(crate) fn take(&mut self, field: &'static str, needed: usize) -> Result<&'a [u8], Error> {
        match self.bytes.split_at_checked(needed) {
            Some((head, tail)) => {
                self.bytes = tail;
                self.offset += needed;
                Ok(head)
            }
            None => {
                cold_path();
                Err(Error::Truncated { field, offset: self.offset, needed, available: self.bytes.len() })
            }
        }
    }
    #[inline]
    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], Error> {
        match self.bytes.split_first_chunk::<N>() {
            Some((head, tail)) => {
                self.bytes = tail;
                self.offset += N;
                Ok(*head)
            }
            None => {
                cold_path();
                Err(Error::Truncated { field, offset: self.offset, needed: N, available: self.bytes.len() })
            }
        }
    }
    #[inline]
    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, Error> {
        self.array::<1>(field).map(|[b]| b)
    }
    #[inline]
    pub(crate) fn u16(&mut self, field: &'static str) -> Result<u16, Error> {
        self.array(field).map(u16::from_be_bytes)
    }
    #[inline]
    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, Error> {
        self.array(field).map(u32::from_be_bytes)
    }
    #[inline]
    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, Error> {
        self.array(field).map(u64::from_be_bytes)
    }
}

/// The big-endian number at `at`, or zero past the end, for slices of a checked length.
#[inline]
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u16::from_be_bytes(*b))
}

/// As [`be16`], 32 bits wide.
#[inline]
pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u32::from_be_bytes(*b))
}
