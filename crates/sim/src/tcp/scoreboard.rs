//! Data reported by SACK, and loss detection from it (RFC 6675, sections 3 and 4).

use crate::tcp_segment::SackBlock;

/// Segments' worth of later data that must have arrived for a hole to be lost.
pub(crate) const DUP_THRESH: usize = 3;
/// Most ranges kept; a hundred times as many as a window in this crate's tests shows, so only forged SACKs reach it.
const MAX_RANGES: usize = 8_192;

/// The received data above the cumulative acknowledgement, as disjoint ranges in order.
#[derive(Clone, Default, Debug)]
pub(crate) struct Scoreboard {
    ranges: Vec<SackBlock>,
    sacked: u64,
}

impl Scoreboard {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }
    /// Bytes in all ranges.
    #[inline]
    pub(crate) fn sacked(&self) -> u64 {
        self.sacked
    }
    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
        self.sacked = 0;
    }
    /// The end of the highest range.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.ranges.last().map(|r| r.end)
    }

    /// The receiver has everything below `una`. Returns whether it has reneged: a range that reaches down to `una`
    /// would have been acknowledged with it.
    pub(crate) fn advance(&mut self, una: u64) -> bool {
        let done = self.ranges.partition_point(|r| r.end <= una);
        if done > 0 {
            self.sacked -= self.ranges.drain(..done).map(|r| r.end - r.start).sum::<u64>();
        }
        self.ranges.first().is_some_and(|r| r.start <= una)
    }

    /// Adds a block; returns how many bytes of it are new. Only data in `una..high` has been sent and can be missing.
    pub(crate) fn add(&mut self, block: SackBlock, una: u64, high: u64) -> u64 {
        // A receiver does not report data that starts at `una`, so such a block (a D-SACK of RFC 2883) is not new.
        if block.start <= una || block.end > high || block.start >= block.end {
            return 0;
        }
        // Ranges touched by the block are merged.
        let first = self.ranges.partition_point(|r| r.end < block.start);
        let last = first + self.ranges[first..].partition_point(|r| r.start <= block.end);
        let touched = &self.ranges[first..last];
        let (Some(head), Some(tail)) = (touched.first(), touched.last()) else {
            if self.ranges.len() == MAX_RANGES {
                return 0;
            }
            self.ranges.insert(first, block);
            self.sacked += block.end - block.start;
            return block.end - block.start;
        };
        let merged = SackBlock { start: head.start.min(block.start), end: tail.end.max(block.end) };
        let before: u64 = touched.iter().map(|r| r.end - r.start).sum();
        self.ranges[first] = merged;
        self.ranges.drain(first + 1..last);
        let news = merged.end - merged.start - before;
        self.sacked += news;
        news
    }

    /// Holes that begin below this are lost (IsLost): above them are three ranges, or more than two segments' bytes.
    pub(crate) fn lost_below(&self, mss: u64) -> u64 {
        let mut bytes = 0;
        for (above, r) in self.ranges.iter().rev().enumerate() {
            bytes += r.end - r.start;
            if above + 1 >= DUP_THRESH || bytes > (DUP_THRESH as u64 - 1) * mss {
                return r.start;
            }
        }
        0
    }

    /// Bytes of `from..to` not in any range.
    pub(crate) fn missing(&self, from: u64, to: u64) -> u64 {
        if from >= to {
            return 0;
        }
        let first = self.ranges.partition_point(|r| r.end <= from);
        let held: u64 =
            self.ranges[first..].iter().take_while(|r| r.start < to).map(|r| r.end.min(to) - r.start.max(from)).sum();
        to - from - held
    }

    /// The first hole from `from` and below `to`: its first such byte, up to its end or `to`.
    pub(crate) fn hole(&self, from: u64, to: u64) -> Option<SackBlock> {
        let k = self.ranges.partition_point(|r| r.end <= from);
        let (start, next) = match self.ranges.get(k) {
            Some(r) if r.start <= from => (r.end, self.ranges.get(k + 1)),
            next => (from, next),
        };
        let end = next.map_or(to, |r| r.start.min(to));
        (start < end).then_some(SackBlock { start, end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(start: u64, end: u64) -> SackBlock {
        SackBlock { start, end }
    }
    fn board(blocks: &[(u64, u64)]) -> Scoreboard {
        let mut b = Scoreboard::default();
        for &(start, end) in blocks {
            b.add(block(start, end), 0, 1_000);
        }
        b
    }

    #[test]
    fn three_ranges_or_more_than_two_segments_make_a_loss() {
        assert_eq!(board(&[]).lost_below(10), 0);
        assert_eq!(board(&[(20, 30), (40, 50)]).lost_below(10), 0);
        assert_eq!(board(&[(20, 30), (40, 50), (60, 61)]).lost_below(10), 20);
        assert_eq!(board(&[(20, 40)]).lost_below(10), 0);
        assert_eq!(board(&[(20, 41)]).lost_below(10), 20);
        assert_eq!(board(&[(20, 30), (40, 50), (60, 70), (80, 90)]).lost_below(10), 40);
    }

    #[test]
    fn a_receiver_that_breaks_its_word_is_seen() {
        let mut b = board(&[(20, 30)]);
        assert!(!b.advance(10));
        assert!(b.advance(20));
        assert!(!b.advance(30));
        assert!(b.is_empty() && b.sacked() == 0);
    }

    #[test]
    fn impossible_blocks_are_ignored() {
        let mut b = Scoreboard::default();
        for (start, end) in [(0, 10), (5, 5), (9, 3), (50, 101), (u64::MAX - 1, u64::MAX)] {
            assert_eq!(b.add(block(start, end), 0, 100), 0);
        }
        assert!(b.is_empty());
    }

    proptest! {
        #[test]
        fn agrees_with_a_list_of_bytes(
            blocks in prop::collection::vec((1u64..120, 1u64..30), 0..40), una in 0u64..150, from in 0u64..150, to in 0u64..150,
        ) {
            let (mut b, mut bytes) = (Scoreboard::default(), [false; 200]);
            for (start, len) in blocks {
                let news = (start..start + len).filter(|&k| !std::mem::replace(&mut bytes[k as usize], true)).count();
                prop_assert_eq!(b.add(block(start, start + len), 0, 200), news as u64);
            }
            b.advance(una);
            // A range is removed once it is acknowledged completely.
            let reach = (una..).take_while(|&k| bytes.get(k as usize) == Some(&true)).count() as u64;
            let low = if una > 0 && reach > 0 && bytes[una as usize - 1] {
                (0..una).rev().take_while(|&k| bytes[k as usize]).last().unwrap_or(una)
            } else {
                una
            };
            let held: Vec<bool> = (0..200u64).map(|k| k >= low && bytes[k as usize]).collect();
            prop_assert_eq!(b.sacked(), held.iter().filter(|&&h| h).count() as u64);
            prop_assert_eq!(b.missing(from, to), (from..to).filter(|&k| !held[k as usize]).count() as u64);
            let start = (from..to).find(|&k| !held[k as usize]);
            let end = start.map(|s| (s..to).find(|&k| held[k as usize]).unwrap_or(to));
            prop_assert_eq!(b.hole(from, to).map(|h| (h.start, h.end)), start.zip(end));
            let lost = b.lost_below(5);
            for s in (una..200).filter(|&s| !held[s as usize]) {
                let above = &held[s as usize..];
                let ranges = (1..above.len()).filter(|&k| above[k] && !above[k - 1]).count();
                prop_assert_eq!(s < lost, ranges >= 3 || above.iter().filter(|&&h| h).count() > 10, "{}", s);
            }
        }
    }
}
