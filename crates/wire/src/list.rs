use core::fmt;
use core::marker::PhantomData;

/// An entry of fixed size in a list inside a packet.
pub trait Entry: Copy {
    /// Bytes on the wire.
    const SIZE: usize;
    /// The entry in exactly [`Entry::SIZE`] bytes; every bit pattern is valid.
    fn read(bytes: &[u8]) -> Self;
    /// Appends the entry to `out`.
    fn write_into(&self, out: &mut Vec<u8>);
}

/// A list of entries: bytes of a received packet, parsed on access, or a slice to be written.
#[derive(Clone, Copy)]
pub struct List<'a, T>(Source<'a, T>);

#[derive(Clone, Copy)]
enum Source<'a, T> {
    Wire(&'a [u8], PhantomData<T>),
    Own(&'a [T]),
}

impl<'a, T: Entry> List<'a, T> {
    /// No entries.
    pub const EMPTY: Self = Self(Source::Own(&[]));

    /// The list in `bytes`; an incomplete last entry is ignored.
    pub(crate) const fn from_wire(bytes: &'a [u8]) -> Self {
        Self(Source::Wire(bytes, PhantomData))
    }
    /// Number of entries.
    pub const fn len(&self) -> usize {
        match self.0 {
            Source::Wire(b, _) => b.len() / T::SIZE,
            Source::Own(o) => o.len(),
        }
    }
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The entries in wire order.
    pub fn iter(&self) -> Entries<'a, T> {
        Entries(self.0)
    }
    /// Appends the entries.
    pub(crate) fn write_into(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|e| e.write_into(out));
    }
    /// Appends at most `most` entries, the limit of a count field.
    pub(crate) fn write_up_to(&self, most: usize, out: &mut Vec<u8>) {
        self.iter().take(most).for_each(|e| e.write_into(out));
    }
}

impl<T: Entry> Default for List<'_, T> {
    fn default() -> Self {
        Self::EMPTY
    }
}
impl<'a, T: Entry> From<&'a [T]> for List<'a, T> {
    fn from(own: &'a [T]) -> Self {
        Self(Source::Own(own))
    }
}
impl<'a, T: Entry, const N: usize> From<&'a [T; N]> for List<'a, T> {
    fn from(own: &'a [T; N]) -> Self {
        Self(Source::Own(own))
    }
}
impl<'a, T: Entry> From<&'a Vec<T>> for List<'a, T> {
    fn from(own: &'a Vec<T>) -> Self {
        Self(Source::Own(own))
    }
}
impl<'a, T: Entry> IntoIterator for List<'a, T> {
    type Item = T;
    type IntoIter = Entries<'a, T>;
    fn into_iter(self) -> Entries<'a, T> {
        self.iter()
    }
}
impl<T: Entry + PartialEq> PartialEq for List<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}
impl<T: Entry + Eq> Eq for List<'_, T> {}
impl<T: Entry + fmt::Debug> fmt::Debug for List<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// Iterator over a [`List`].
#[derive(Clone, Copy)]
pub struct Entries<'a, T>(Source<'a, T>);

impl<T: Entry> Iterator for Entries<'_, T> {
    type Item = T;
    #[inline]
    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Source::Wire(bytes, _) => {
                let (head, tail) = bytes.split_at_checked(T::SIZE)?;
                *bytes = tail;
                Some(T::read(head))
            }
            Source::Own(own) => {
                let (head, tail) = own.split_first()?;
                *own = tail;
                Some(*head)
            }
        }
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        let n = List(self.0).len();
        (n, Some(n))
    }
}
impl<T: Entry> ExactSizeIterator for Entries<'_, T> {}
impl<T: Entry + fmt::Debug> fmt::Debug for Entries<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

impl Entry for u32 {
    const SIZE: usize = 4;
    #[inline]
    fn read(bytes: &[u8]) -> Self {
        crate::read::be32(bytes, 0)
    }
    fn write_into(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_be_bytes());
    }
}
