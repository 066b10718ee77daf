//! Datagrams that can be verified, and statistics of those received.

use serde::Serialize;
use weir_units::Ecn;

/// First bytes of each datagram.
const MAGIC: [u8; 4] = *b"WDC1";
/// Bytes of magic, length, number and checksum: the shortest datagram.
pub const MIN_DATAGRAM: usize = 24;
/// Datagrams that may be reordered or duplicated and still be distinguished.
const WINDOW: u64 = 1 << 16;

fn mixed(h: u64, word: u64) -> u64 {
    (h ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

fn checksum(number: u64, datagram: &[u8]) -> u64 {
    let body = &datagram[MIN_DATAGRAM..];
    let mut h = mixed(datagram.len() as u64, number);
    let mut words = body.chunks_exact(8);
    for w in words.by_ref() {
        h = mixed(h, w.iter().fold(0, |n, &b| n << 8 | u64::from(b)));
    }
    let rest = words.remainder().iter().fold(1, |n, &b| n << 8 | u64::from(b));
    mixed(mixed(h, rest), 0)
}

/// Writes datagram `number` over the whole of a buffer of at least [`MIN_DATAGRAM`] bytes.
pub fn write_datagram(number: u64, datagram: &mut [u8]) {
    let length = datagram.len();
    let mut word = number;
    for chunk in datagram[MIN_DATAGRAM..].chunks_mut(8) {
        word = mixed(word, number);
        chunk.copy_from_slice(&word.to_be_bytes()[..chunk.len()]);
    }
    datagram[..4].copy_from_slice(&MAGIC);
    datagram[4..8].copy_from_slice(&(length as u32).to_be_bytes());
    datagram[8..16].copy_from_slice(&number.to_be_bytes());
    let sum = checksum(number, datagram);
    datagram[16..24].copy_from_slice(&sum.to_be_bytes());
}

/// The number of an intact datagram; `None` if it is damaged or none of these.
pub fn read_datagram(datagram: &[u8]) -> Option<u64> {
    let header = datagram.first_chunk::<MIN_DATAGRAM>()?;
    let word = |at: usize| header[at..at + 8].iter().fold(0u64, |n, &b| n << 8 | u64::from(b));
    let (length, number, sum) = (word(4) >> 32, word(8), word(16));
    // One more has to be a number as well.
    let whole = header[..4] == MAGIC
        && number < u64::MAX
        && length == datagram.len() as u64
        && sum == checksum(number, datagram);
    whole.then_some(number)
}

/// Counters of such datagrams received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tally {
    /// Datagrams received intact, each once.
    pub datagrams: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Datagrams missing, by the numbers of later ones.
    pub lost: u64,
    /// Datagrams received after a later one.
    pub late: u64,
    /// Datagrams received again.
    pub duplicates: u64,
    /// Datagrams with a wrong checksum, length or magic.
    pub damaged: u64,
    /// Datagrams received with an ECN congestion mark.
    pub marked: u64,
}

/// Verifies and counts.
#[derive(Clone, Debug)]
pub struct Checker {
    tally: Tally,
    /// One after the newest.
    next: u64,
    /// A bit for each of the newest [`WINDOW`] datagrams: whether it was received.
    came: Vec<u64>,
}

impl Default for Checker {
    fn default() -> Self {
        Self { tally: Tally::default(), next: 0, came: vec![0; (WINDOW / 64) as usize] }
    }
}

impl Checker {
    /// A datagram has arrived.
    pub fn take(&mut self, datagram: &[u8], ecn: Ecn) {
        self.tally.marked += u64::from(ecn == Ecn::Ce);
        let Some(n) = read_datagram(datagram) else {
            self.tally.damaged += 1;
            return;
        };
        let slot = |n: u64| ((n % WINDOW / 64) as usize, 1u64 << (n % 64));
        if n >= self.next {
            // Those between are lost until they are received.
            let gap = n - self.next;
            self.tally.lost += gap;
            for missing in self.next.max(n.saturating_sub(WINDOW))..n {
                let (word, bit) = slot(missing);
                self.came[word] &= !bit;
            }
            self.next = n + 1;
        } else {
            let (word, bit) = slot(n);
            let is_known = self.next - n <= WINDOW;
            if !is_known || self.came[word] & bit != 0 {
                self.tally.duplicates += 1;
                return;
            }
            self.tally.lost -= 1;
            self.tally.late += 1;
        }
        let (word, bit) = slot(n);
        self.came[word] |= bit;
        self.tally.datagrams += 1;
        self.tally.bytes += datagram.len() as u64;
    }

    /// The counters so far.
    pub fn tally(&self) -> Tally {
        self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(n: u64, length: usize) -> Vec<u8> {
        let mut d = vec![0; length];
        write_datagram(n, &mut d);
        d
    }

    #[test]
    fn every_changed_bit_is_seen() {
        for length in [24, 25, 31, 32, 100] {
            let whole = datagram(77, length);
            assert_eq!(read_datagram(&whole), Some(77));
            for bit in 0..length * 8 {
                let mut d = whole.clone();
                d[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(read_datagram(&d), None, "bit {bit} of {length} bytes");
            }
            assert_eq!(read_datagram(&whole[..length - 1]), None);
        }
        assert_eq!(read_datagram(&[]), None);
    }

    #[test]
    fn lost_late_and_duplicate_datagrams_are_distinguished() {
        let mut c = Checker::default();
        for n in [0, 1, 4, 3, 3, 1, 5] {
            c.take(&datagram(n, 40), Ecn::NotEct);
        }
        c.take(b"something else", Ecn::Ce);
        let t = c.tally();
        assert_eq!((t.datagrams, t.lost, t.late, t.duplicates, t.damaged, t.marked), (5, 1, 1, 2, 1, 1));
        assert_eq!(t.bytes, 200);
        // A jump beyond everything remembered; older datagrams count as received.
        c.take(&datagram(WINDOW * 3 + 7, 40), Ecn::NotEct);
        c.take(&datagram(2, 40), Ecn::NotEct);
        c.take(&datagram(WINDOW * 2 + 8, 40), Ecn::NotEct);
        let t = c.tally();
        assert_eq!((t.datagrams, t.duplicates, t.late), (7, 3, 2));
        assert_eq!(t.lost, 1 + WINDOW * 3 + 7 - 6 - 1);
        c.take(&datagram(u64::MAX - 1, 40), Ecn::NotEct);
        c.take(&datagram(u64::MAX - 1, 40), Ecn::NotEct);
        c.take(&datagram(u64::MAX, 40), Ecn::NotEct);
        let t = c.tally();
        assert_eq!((t.datagrams, t.duplicates, t.damaged), (8, 4, 2));
    }
}
