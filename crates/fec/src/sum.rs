//! The exclusive or of packets of unequal lengths.

use crate::buffers::Buffers;
use crate::{Coverage, Symbol, kernel};

/// A repair symbol in the making.
///
/// Its bytes begin at a cache line, since a store across two of them takes twice as long, and there is one for each 64
/// bytes of every packet.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    /// What went in.
    pub(crate) coverage: Coverage,
    /// Packets that went in.
    pub(crate) count: usize,
    buffer: Vec<u8>,
    /// Where the bytes begin in the buffer.
    start: usize,
    len: usize,
}

/// Bytes of a cache line.
const LINE: usize = 64;

impl Sum {
    /// Adds a packet. The first one sets the base.
    #[inline]
    pub(crate) fn add(&mut self, sequence: u64, symbol: Symbol<'_>, pool: &mut Buffers) {
        if self.count == 0 {
            self.coverage = Coverage::new(sequence);
        }
        self.count += 1;
        self.coverage.insert(sequence);
        self.len = self.len.max(symbol.len());
        let here = self.buffer.len() - self.start;
        if symbol.bytes.len() <= here {
            kernel::xor_into(&mut self.buffer[self.start..], symbol.bytes);
        } else {
            self.lengthen(symbol.bytes, pool);
        }
    }
    /// Adds a packet that is longer than all before.
    #[inline(never)]
    fn lengthen(&mut self, bytes: &[u8], pool: &mut Buffers) {
        if self.buffer.capacity() < self.start + bytes.len() {
            let mut buffer = pool.take(bytes.len() + LINE - 1);
            let start = buffer.as_ptr().align_offset(LINE).min(LINE - 1);
            buffer.resize(start, 0);
            buffer.extend_from_slice(&self.buffer[self.start..]);
            pool.put(std::mem::replace(&mut self.buffer, buffer), usize::MAX);
            self.start = start;
        }
        let here = self.buffer.len() - self.start;
        kernel::xor_into(&mut self.buffer[self.start..], &bytes[..here]);
        self.buffer.extend_from_slice(&bytes[here..]);
    }
    /// Ends the sum, leaving an empty one: its coverage, buffer, start in that, and zeros behind.
    #[inline]
    pub(crate) fn finish(&mut self) -> (Coverage, Vec<u8>, usize, u32) {
        // The longest packet's zeros fit, and these are no more.
        let zeros = (self.len + self.start - self.buffer.len()) as u32;
        let (buffer, start) = (std::mem::take(&mut self.buffer), self.start);
        self.count = 0;
        self.len = 0;
        self.start = 0;
        (self.coverage, buffer, start, zeros)
    }
    /// Drops the sum.
    pub(crate) fn forget(&mut self, pool: &mut Buffers) {
        let (_, buffer, ..) = self.finish();
        pool.put(buffer, usize::MAX);
    }
}

/// `sum ^= bytes`, the shorter followed by zeros.
pub(crate) fn add(sum: &mut Vec<u8>, bytes: &[u8], pool: &mut Buffers) {
    let common = sum.len().min(bytes.len());
    kernel::xor_into(&mut sum[..common], &bytes[..common]);
    if bytes.len() > common {
        pool.grow(sum, bytes.len());
        sum.extend_from_slice(&bytes[common..]);
    }
}
