//! XOR of packets of unequal lengths.

use crate::buffers::Buffers;
use crate::{Coverage, Symbol, kernel};

/// A repair symbol being computed.
///
/// Its bytes are aligned to a cache line: a store across two lines takes twice as long, and there is one for each 64
/// bytes of every packet.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    /// The packets added.
    pub(crate) coverage: Coverage,
    /// Number of packets added.
    pub(crate) count: usize,
    buffer: Vec<u8>,
    /// Offset of the bytes in the buffer.
    start: usize,
    len: usize,
}

/// Size of a cache line.
const LINE: usize = 64;

impl Sum {
    /// Adds a packet. The first one sets the base.
    #[inline(always)]
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
    /// Adds a packet longer than all earlier ones.
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
    /// Completes the sum and leaves an empty one; returns its coverage, buffer, offset in the buffer, and the number of
    /// zeros that follow.
    #[inline]
    pub(crate) fn finish(&mut self) -> (Coverage, Vec<u8>, usize, u32) {
        // At most the longest packet's zeros, which fit.
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

/// `sum ^= bytes`, the shorter extended by zeros.
pub(crate) fn add(sum: &mut Vec<u8>, bytes: &[u8], pool: &mut Buffers) {
    let common = sum.len().min(bytes.len());
    kernel::xor_into(&mut sum[..common], &bytes[..common]);
    if bytes.len() > common {
        pool.grow(sum, bytes.len());
        sum.extend_from_slice(&bytes[common..]);
    }
}

/// Packets summed at once.
const AT_ONCE: usize = 16;

/// `sum ^=` all of `packets`, none of which is longer, so that the sum is read and written once for many packets.
pub(crate) fn add_all<'a>(sum: &mut [u8], packets: impl Iterator<Item = &'a [u8]>) {
    let mut list = [&[][..]; AT_ONCE];
    let mut count = 0;
    for packet in packets {
        list[count] = packet;
        count += 1;
        if count == AT_ONCE {
            kernel::xor_all(sum, &list);
            count = 0;
        }
    }
    kernel::xor_all(sum, &list[..count]);
}

/// The parity symbol of packets that are all available: `into` becomes its bytes; returns the number of zeros that
/// follow.
///
/// An [`Encoder`](crate::Encoder) computes the same incrementally, reading and writing the sum for each packet.
///
/// ```
/// use weir_fec::{Symbol, parity};
/// let mut sum = Vec::new();
/// let zeros = parity(&[Symbol::new(&[1, 2, 3]), Symbol { bytes: &[1], zeros: 9 }], &mut sum);
/// assert_eq!((sum.as_slice(), zeros), (&[0, 2, 3][..], 7));
/// ```
pub fn parity(packets: &[Symbol<'_>], into: &mut Vec<u8>) -> u32 {
    let len = packets.iter().map(|p| p.bytes.len()).max().unwrap_or(0);
    let total = packets.iter().map(Symbol::len).max().unwrap_or(0);
    into.clear();
    into.resize(len, 0);
    add_all(into, packets.iter().map(|p| p.bytes));
    // At most the longest packet's own zeros.
    (total - len) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_once_is_one_after_the_other() {
        let data: Vec<Vec<u8>> =
            (0..40_usize).map(|i| (0..i * 37 % 300).map(|x| (x * i + 3) as u8).collect()).collect();
        let mut pool = Buffers::default();
        for count in 0..=data.len() {
            let packets: Vec<Symbol<'_>> =
                data[..count].iter().map(|bytes| Symbol { bytes, zeros: count as u32 }).collect();
            let (mut at_once, mut expected) = (vec![9; 5], Vec::new());
            let zeros = parity(&packets, &mut at_once);
            packets.iter().for_each(|p| add(&mut expected, p.bytes, &mut pool));
            assert_eq!(at_once, expected);
            assert_eq!(zeros, count as u32);
        }
    }
}
