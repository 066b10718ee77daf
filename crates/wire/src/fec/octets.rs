use crate::Error;

/// Bytes, followed by `zeros` zero bytes carried as a length only.
///
/// Two are equal if their content is, regardless of how much of it is present as bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Octets<'a> {
    /// The bytes present.
    pub bytes: &'a [u8],
    /// Number of zeros that follow.
    pub zeros: u32,
}

impl<'a> Octets<'a> {
    /// Bytes alone.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, zeros: 0 }
    }
    /// The length in bytes, including the zeros.
    pub const fn len(&self) -> usize {
        self.bytes.len().saturating_add(self.zeros as usize)
    }
    /// Whether the length is zero.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The octet at `index`; `None` past the end.
    pub fn get(&self, index: usize) -> Option<u8> {
        match self.bytes.get(index) {
            None if index < self.len() => Some(0),
            byte => byte.copied(),
        }
    }
    /// The first `n` octets and the rest; `None` if there are fewer.
    pub fn split_at(&self, n: usize) -> Option<(Self, Self)> {
        match self.bytes.split_at_checked(n) {
            Some((head, tail)) => Some((Self::new(head), Self { bytes: tail, zeros: self.zeros })),
            None => {
                // At least all bytes, so that the zeros in front fit into a u32.
                let before = n - self.bytes.len();
                let behind = (self.zeros as usize).checked_sub(before)?;
                let (before, behind) = (before as u32, behind as u32);
                Some((Self { bytes: self.bytes, zeros: before }, Self { bytes: &[], zeros: behind }))
            }
        }
    }
    /// At most `len` octets from `start`; fewer if they end before.
    pub fn slice(&self, start: usize, len: usize) -> Self {
        let (_, rest) = self.split_at(start.min(self.len())).unwrap_or_default();
        rest.split_at(len.min(rest.len())).unwrap_or_default().0
    }
    /// Appends everything to `out`, including the zeros.
    pub fn write_out(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.bytes);
        out.resize(out.len() + self.zeros as usize, 0);
    }
    /// The first `N` octets and the rest; `None` if there are fewer.
    pub(super) fn prefix<const N: usize>(&self) -> Option<([u8; N], Self)> {
        let (head, rest) = self.split_at(N)?;
        let mut prefix = [0; N];
        prefix[..head.bytes.len()].copy_from_slice(head.bytes);
        Some((prefix, rest))
    }
    /// As [`Octets::split_at`], for a field at `offset` of the input.
    pub(super) fn take(&self, field: &'static str, offset: usize, needed: usize) -> Result<(Self, Self), Error> {
        self.split_at(needed).ok_or(Error::Truncated { field, offset, needed, available: self.len() })
    }
    /// An error if an octet is not zero; the first octet is at `offset` of the input.
    pub(super) fn expect_zeros(&self, field: &'static str, offset: usize) -> Result<(), Error> {
        match self.bytes.iter().position(|b| *b != 0) {
            None => Ok(()),
            Some(i) => Err(Error::Value {
                field,
                offset: offset + i,
                value: self.bytes[i].into(),
                expected: "0 behind the end",
            }),
        }
    }
}

impl<'a> From<&'a [u8]> for Octets<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::new(bytes)
    }
}

impl PartialEq for Octets<'_> {
    fn eq(&self, other: &Self) -> bool {
        let common = self.bytes.len().min(other.bytes.len());
        let (a, b) = (self.bytes.split_at(common), other.bytes.split_at(common));
        self.len() == other.len() && a.0 == b.0 && a.1.iter().chain(b.1).all(|byte| *byte == 0)
    }
}
impl Eq for Octets<'_> {}

/// Appends octets, and holds zeros back until something follows them.
pub(super) struct Sink<'a> {
    out: &'a mut Vec<u8>,
    zeros: u32,
}

impl<'a> Sink<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        Self { out, zeros: 0 }
    }
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.out.resize(self.out.len() + self.zeros as usize, 0);
            self.zeros = 0;
            self.out.extend_from_slice(bytes);
        }
    }
    pub(super) fn octets(&mut self, octets: Octets<'_>) {
        self.bytes(octets.bytes);
        self.zeros = self.zeros.saturating_add(octets.zeros);
    }
    /// The number of zeros held back at the end.
    pub(super) fn finish(self) -> u32 {
        self.zeros
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Results are the same as with the zeros as bytes.
        #[test]
        fn zeros_are_bytes(bytes in proptest::collection::vec(0u8..3, 0..20), zeros in 0u32..20, at in 0usize..45, len in 0usize..45) {
            let octets = Octets { bytes: &bytes, zeros };
            let mut all = vec![];
            octets.write_out(&mut all);
            prop_assert_eq!(octets.len(), all.len());
            prop_assert_eq!(octets.get(at), all.get(at).copied());
            let want = all.split_at_checked(at).map(|(a, b)| (Octets::new(a), Octets::new(b)));
            prop_assert_eq!(octets.split_at(at), want);
            let from = at.min(all.len());
            prop_assert_eq!(octets.slice(at, len), Octets::new(&all[from..(from + len).min(all.len())]));
            prop_assert_eq!(octets.prefix::<8>().map(|p| p.0.to_vec()), all.get(..8).map(<[u8]>::to_vec));
            let zero = octets.slice(at, usize::MAX).expect_zeros("tail", at);
            let first = all.iter().skip(at).position(|b| *b != 0).map(|i| at + i);
            prop_assert_eq!(zero.err().map(|e| match e { Error::Value { offset, .. } => offset, _ => 0 }), first);
        }

        #[test]
        fn a_sink_keeps_order(parts in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..4), 0u32..4), 0..6)) {
            let (mut out, mut want) = (vec![9], vec![9]);
            let mut sink = Sink::new(&mut out);
            for (bytes, zeros) in &parts {
                let octets = Octets { bytes, zeros: *zeros };
                sink.octets(octets);
                octets.write_out(&mut want);
            }
            let zeros = sink.finish();
            prop_assert_eq!(Octets { bytes: &out, zeros }, Octets::new(&want));
        }
    }

    #[test]
    fn content_decides_equality() {
        assert_eq!(Octets { bytes: &[1, 0], zeros: 1 }, Octets { bytes: &[1], zeros: 2 });
        assert_ne!(Octets { bytes: &[1], zeros: 1 }, Octets::new(&[1]));
        assert_ne!(Octets { bytes: &[1], zeros: 1 }, Octets::new(&[1, 2]));
    }
}
