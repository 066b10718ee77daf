//! The exclusive or of packets of unequal lengths.

use crate::buffers::Buffers;
use crate::{Coverage, Symbol, kernel};

/// A repair symbol in the making.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    /// What went in.
    pub(crate) coverage: Coverage,
    /// Packets that went in.
    pub(crate) count: usize,
    bytes: Vec<u8>,
    len: usize,
}

impl Sum {
    pub(crate) const fn symbol(&self) -> Symbol<'_> {
        // Both are lengths of symbols that went in, so that their difference fits.
        Symbol { bytes: self.bytes.as_slice(), zeros: (self.len - self.bytes.len()) as u32 }
    }
    /// Adds a packet. The first one sets the base.
    pub(crate) fn add(&mut self, sequence: u64, symbol: Symbol<'_>, pool: &mut Buffers) {
        if self.count == 0 {
            self.coverage = Coverage::new(sequence);
        }
        self.coverage.insert(sequence);
        self.count += 1;
        self.len = self.len.max(symbol.len());
        add(&mut self.bytes, symbol.bytes, pool);
    }
    /// The sum itself, leaving an empty one.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
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
