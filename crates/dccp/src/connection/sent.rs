//! The fate of sent packets, by Ack Vectors, for [`Counters`](super::Counters). Congestion control keeps its own state.

use crate::ack_vector::{AckRun, AckState};
use std::collections::VecDeque;
use weir_units::Seq48;

/// Maximum unresolved packets; earlier ones are dropped.
const MAX_TRACKED: usize = 4_096;
/// A packet is lost once this many later ones were received: TCP's three duplicates (RFC 4341, section 5).
const NUM_DUPACKS: usize = 3;

const DATA: u8 = 1;
const CAME: u8 = 2;
const MARKED: u8 = 4;

/// News in acknowledgements.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Fate {
    /// Data packets lost.
    pub(super) lost: u64,
    /// Data packets marked.
    pub(super) marked: u64,
}

/// The packets from the oldest with an unknown fate.
#[derive(Clone, Debug, Default)]
pub(super) struct SentLog {
    oldest: Seq48,
    packets: VecDeque<u8>,
    came: usize,
}

impl SentLog {
    /// A packet was sent.
    pub(super) fn on_sent(&mut self, sequence: Seq48, data: bool) {
        if self.packets.is_empty() {
            self.oldest = sequence;
        }
        if self.packets.len() >= MAX_TRACKED {
            self.pop();
        }
        self.packets.push_back(if data { DATA } else { 0 });
    }
    fn pop(&mut self) -> Option<u8> {
        let p = self.packets.pop_front()?;
        self.oldest = self.oldest.next();
        self.came -= usize::from(p & CAME != 0);
        Some(p)
    }
    /// Processes the runs of an acknowledgement.
    pub(super) fn on_runs(&mut self, runs: impl Iterator<Item = AckRun>) -> Fate {
        let mut fate = Fate::default();
        for run in runs {
            let (newest, oldest) = (run.newest.since(self.oldest), run.oldest().since(self.oldest));
            if newest < 0 {
                break;
            }
            if !run.state.came() {
                continue;
            }
            for at in oldest.max(0)..=newest {
                let Some(p) = self.packets.get_mut(at as usize) else { break };
                if run.state == AckState::Marked && *p & (MARKED | DATA) == DATA {
                    *p |= MARKED;
                    fate.marked += 1;
                }
                self.came += usize::from(*p & CAME == 0);
                *p |= CAME;
            }
        }
        while let Some(&p) = self.packets.front() {
            if p & CAME == 0 {
                if self.came < NUM_DUPACKS {
                    break;
                }
                fate.lost += u64::from(p & DATA);
            }
            self.pop();
        }
        fate
    }
    /// Releases memory used by a burst.
    pub(super) fn shrink(&mut self) {
        self.packets.shrink_to(256);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack_vector::runs;

    #[test]
    fn losses_and_marks_are_counted_once() {
        let mut log = SentLog::default();
        let n = Seq48::new;
        for i in 0..10 {
            log.on_sent(n(100 + i), i != 4);
        }
        // 100 was received, 101 is missing, 102 marked: two after the hole are too few.
        assert_eq!(log.on_runs(runs(n(102), &[0x40, 0xc0, 0x00])), Fate { lost: 0, marked: 1 });
        assert_eq!(log.on_runs(runs(n(102), &[0x40, 0xc0, 0x00])), Fate::default());
        // 104, which carries no data, is missing as well; 103, 105 and 106 were received, so 101 is lost.
        let vector = [0x01, 0xc0, 0x00, 0x40, 0xc0, 0x00];
        assert_eq!(log.on_runs(runs(n(106), &vector)), Fate { lost: 1, marked: 0 });
        assert_eq!(log.on_runs(runs(n(109), &[0x04, 0xc0])), Fate::default());
        assert!(log.packets.is_empty());
        // Vectors of packets never sent change nothing.
        assert_eq!(log.on_runs(runs(n(1 << 40), &[0x3f; 253])), Fate::default());
    }

    #[test]
    fn memory_is_bounded() {
        let mut log = SentLog::default();
        (0..100_000).for_each(|i| log.on_sent(Seq48::new(i), true));
        assert_eq!(log.packets.len(), MAX_TRACKED);
        assert_eq!(log.oldest, Seq48::new(100_000 - MAX_TRACKED as u64));
    }
}
