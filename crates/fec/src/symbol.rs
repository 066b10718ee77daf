//! The unit on which codes operate.

/// A packet as used by a code: `bytes`, followed by `zeros` zero bytes carried as a length only.
///
/// Symbols of one block may differ in length; a code extends shorter ones by zeros (RFC 5109, section 8.1; RFC 8627,
/// section 6.2; RFC 6363, section 4.4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Symbol<'a> {
    /// The bytes present.
    pub bytes: &'a [u8],
    /// Number of zeros that follow.
    pub zeros: u32,
}

impl<'a> Symbol<'a> {
    /// A symbol of bytes only.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, zeros: 0 }
    }
    /// Its length in bytes, including the zeros.
    pub const fn len(&self) -> usize {
        self.bytes.len().saturating_add(self.zeros as usize)
    }
    /// Whether its length is zero.
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
