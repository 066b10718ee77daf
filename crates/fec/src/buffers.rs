//! Reusable buffers.

/// Free buffers, and the total capacity of those in use and free.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    rest: Vec<Vec<u8>>,
    held: usize,
}

impl Buffers {
    /// Capacity grows in steps, so that packets of many lengths find a suitable buffer.
    const STEP: usize = 256;

    /// Bytes of memory in all buffers, in use or free.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }
    /// An empty buffer with room for `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = Vec::new();
        self.grow(&mut buffer, len);
        buffer
    }
    /// A buffer of `len` bytes with unspecified contents.
    pub(crate) fn take_filled(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = self.rest.pop().unwrap_or_default();
        self.grow(&mut buffer, len);
        buffer.resize(len, 0);
        buffer
    }
    /// Grows a buffer of this pool to `len` bytes.
    pub(crate) fn grow(&mut self, buffer: &mut Vec<u8>, len: usize) {
        if buffer.capacity() == 0
            && let Some(rested) = self.rest.pop()
        {
            *buffer = rested;
            buffer.clear();
        }
        if buffer.capacity() < len {
            self.held -= buffer.capacity();
            buffer.reserve_exact(len.next_multiple_of(Self::STEP).saturating_sub(buffer.len()));
            self.held += buffer.capacity();
        }
    }
    /// Returns a buffer, or frees it if more than `limit` bytes are held.
    pub(crate) fn put(&mut self, buffer: Vec<u8>, limit: usize) {
        if buffer.capacity() == 0 {
            return;
        }
        if self.held > limit {
            self.held -= buffer.capacity();
        } else {
            self.rest.push(buffer);
        }
    }
    /// Frees unused buffers until at most `limit` bytes are held or none is left.
    pub(crate) fn trim(&mut self, limit: usize) {
        while self.held > limit
            && let Some(buffer) = self.rest.pop()
        {
            self.held -= buffer.capacity();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_it_holds() {
        let mut pool = Buffers::default();
        let (a, mut b) = (pool.take(100), pool.take(1_200));
        assert_eq!(pool.held(), 256 + 1_280);
        pool.grow(&mut b, 1_281);
        assert_eq!(pool.held(), 256 + 1_536);
        pool.put(a, usize::MAX);
        assert_eq!(pool.held(), 256 + 1_536);
        assert_eq!(pool.take(10).capacity(), 256);
        pool.put(b, 1_000);
        assert_eq!(pool.held(), 256);
    }
}
