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

/// Packets that are summed at once.
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

/// The parity symbol of packets that are all at hand: `into` becomes its bytes; returns the zeros behind.
///
/// An [`Encoder`](crate::Encoder) makes the same as packets come, and reads and writes the sum for each of them.
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
    // No more than the longest packet's own zeros.
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
