//! Buffers that are used again.

/// Buffers at rest, and the capacity of all that were handed out or rest here.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    rest: Vec<Vec<u8>>,
    held: usize,
}

impl Buffers {
    /// Capacity grows in steps, so that packets of many lengths find a buffer that fits.
    const STEP: usize = 256;

    /// Bytes of memory in all buffers, in use or not.
    pub(crate) const fn held(&self) -> usize {
        self.held
    }
    /// An empty buffer with room for `len` bytes.
    pub(crate) fn take(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = Vec::new();
        self.grow(&mut buffer, len);
        buffer
    }
    /// A buffer of `len` bytes of no meaning.
    pub(crate) fn take_filled(&mut self, len: usize) -> Vec<u8> {
        let mut buffer = self.rest.pop().unwrap_or_default();
        self.grow(&mut buffer, len);
        buffer.resize(len, 0);
        buffer
    }
    /// Gives a buffer of this pool room for `len` bytes.
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
    /// Lets a buffer rest, or frees it where more than `limit` bytes are held.
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
    /// Frees resting buffers until no more than `limit` bytes are held or none rests.
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
