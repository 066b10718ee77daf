//! What codes work on.

/// A packet as a code sees it: `bytes`, then `zeros` bytes of zero that are not there.
///
/// Symbols of one block may differ in length; a code takes the shorter ones as if zeros followed
/// (RFC 5109, section 8.1; RFC 8627, section 6.2; RFC 6363, section 4.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symbol<'a> {
    /// The bytes that are there.
    pub bytes: &'a [u8],
    /// Bytes of zero behind them.
    pub zeros: u32,
}

impl<'a> Symbol<'a> {
    /// A symbol of bytes alone.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, zeros: 0 }
    }
    /// Its length in bytes, the zeros included.
    pub const fn len(&self) -> usize {
        self.bytes.len().saturating_add(self.zeros as usize)
    }
    /// Whether it has no bytes at all.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zeros_count() {
        let s = Symbol { bytes: &[1, 2], zeros: 1_198 };
        assert_eq!((s.len(), s.is_empty(), Symbol::new(&[]).is_empty()), (1_200, false, true));
    }
}
