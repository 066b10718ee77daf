//! Replay protection of RTP over several paths.
//!
//! A scheduler may send a packet on each path. The copies have one index (RFC 3711, section 3.3.1), so that one replay
//! list (section 3.3.2) would refuse all but the first. Here each path has a list of its own: the path of a packet is in
//! its header, which is authenticated.

use weir_units::PathId;

/// Indices distinguished on a path, counted back from the highest.
const WINDOW: u64 = 2_048;
const WORDS: usize = (WINDOW / 64) as usize;

/// Received indices of one source on one path.
#[derive(Clone)]
struct Window {
    highest: u64,
    seen: [u64; WORDS],
}

/// Received indices of the sources of a call, by path.
#[derive(Default)]
pub(super) struct ReplayLists {
    /// Highest index of each source on any path.
    sources: Vec<(u32, u64)>,
    windows: Vec<((u32, PathId), Box<Window>)>,
}

/// The index nearest to the highest one with these lower bits (RFC 3711, section 3.3.1).
fn index_of(highest: u64, sequence: u16) -> u64 {
    let ahead = i64::from(sequence.wrapping_sub(highest as u16) as i16);
    let index = highest.saturating_add_signed(ahead);
    if highest as i64 + ahead < 0 { u64::from(sequence) } else { index }
}

impl ReplayLists {
    fn index(&self, ssrc: u32, sequence: u16) -> u64 {
        let known = self.sources.iter().find(|s| s.0 == ssrc);
        known.map_or(u64::from(sequence), |(_, highest)| index_of(*highest, sequence))
    }

    /// Whether a packet has not been received on the path, as far as is known. It is not authenticated yet.
    pub(super) fn is_new(&self, path: PathId, ssrc: u32, sequence: u16) -> bool {
        let index = self.index(ssrc, sequence);
        let Some((_, w)) = self.windows.iter().find(|w| w.0 == (ssrc, path)) else { return true };
        index > w.highest || (w.highest - index < WINDOW && w.seen[word(index)] & bit(index) == 0)
    }

    /// An authentic packet was received.
    pub(super) fn insert(&mut self, path: PathId, ssrc: u32, sequence: u16) {
        let index = self.index(ssrc, sequence);
        match self.sources.iter_mut().find(|s| s.0 == ssrc) {
            Some(s) => s.1 = s.1.max(index),
            None => self.sources.push((ssrc, index)),
        }
        let place = self.windows.iter().position(|w| w.0 == (ssrc, path)).unwrap_or_else(|| {
            self.windows.push(((ssrc, path), Box::new(Window { highest: index, seen: [0; WORDS] })));
            self.windows.len() - 1
        });
        let w = &mut self.windows[place].1;
        if index > w.highest {
            if index - w.highest >= WINDOW {
                w.seen.fill(0);
            } else {
                (w.highest + 1..=index).for_each(|i| w.seen[word(i)] &= !bit(i));
            }
            w.highest = index;
        }
        w.seen[word(index)] |= bit(index);
    }

    /// Forgets all sources.
    pub(super) fn clear(&mut self) {
        (self.sources, self.windows) = (Vec::new(), Vec::new());
    }
}

fn word(index: u64) -> usize {
    (index % WINDOW / 64) as usize
}
fn bit(index: u64) -> u64 {
    1 << (index % 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PathId = PathId::FIRST;
    const B: PathId = PathId::new(1);

    #[test]
    fn each_path_takes_a_packet_once() {
        let mut lists = ReplayLists::default();
        for n in 0..200_000u64 {
            let sequence = (65_000 + n) as u16;
            for path in [A, B] {
                assert!(lists.is_new(path, 7, sequence), "{n}");
                lists.insert(path, 7, sequence);
                assert!(!lists.is_new(path, 7, sequence), "{n}");
            }
            // One of late, one too old to know, and one of a second ago that never arrived.
            assert!(!lists.is_new(A, 7, sequence.wrapping_sub(100)) || n < 100);
            assert!(!lists.is_new(B, 7, sequence.wrapping_sub(3_000)) || n < 3_000);
        }
        assert!(lists.is_new(A, 8, 5), "another source");
    }

    #[test]
    fn a_path_that_was_silent_for_long_goes_on() {
        let mut lists = ReplayLists::default();
        lists.insert(B, 7, 10);
        for n in 0..150_000u64 {
            lists.insert(A, 7, n as u16);
        }
        let next = 150_000u64 as u16;
        assert!(lists.is_new(B, 7, next));
        lists.insert(B, 7, next);
        assert!(!lists.is_new(B, 7, next) && lists.is_new(B, 7, next.wrapping_sub(1)));
        assert!(!lists.is_new(B, 7, 10), "its index is below the window");
    }

    #[test]
    fn late_packets_are_new_once() {
        let mut lists = ReplayLists::default();
        lists.insert(A, 7, 3);
        for late in [1, 2, 0, 65_535] {
            assert!(lists.is_new(A, 7, late), "{late}");
            lists.insert(A, 7, late);
            assert!(!lists.is_new(A, 7, late), "{late}");
        }
    }
}
