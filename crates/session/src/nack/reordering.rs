//! How long a missing packet may be merely late, by those that were.

use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// Missing packets whose fate is remembered.
const WINDOW: usize = 64;
/// Waiting is worth its delay to those that are lost if one in this many missing packets is late, at least so many of them
/// (calibrated: with fewer, more repair comes late than requests are saved).
const SHARE: usize = 4;
const LEAST: usize = 2;
/// Of late packets, the wait covers all but one in this many, and an eighth more, for what varies.
const UNCOVERED: usize = 16;
/// The longest wait: NetEQ's and TCP's reordering is below (RFC 8985 bounds RACK's window by a round trip).
const MOST: TimeDelta = TimeDelta::from_millis(200);
/// Packets that a retransmission has replaced, which may still come themselves.
const REPLACED: usize = 64;

/// The fates of the last missing packets.
#[derive(Debug, Default)]
pub(super) struct Reordering {
    /// By how much each was late; `None` if it was lost.
    fates: VecDeque<Option<TimeDelta>>,
    /// Sequence numbers, and since when they were missing.
    replaced: VecDeque<(u64, Timestamp)>,
    wait: TimeDelta,
}

impl Reordering {
    /// How long to wait for a missing packet; zero without reordering to speak of.
    pub(super) const fn wait(&self) -> TimeDelta {
        self.wait
    }

    /// A missing packet has come by itself.
    pub(super) fn on_late(&mut self, late: TimeDelta) {
        self.note(Some(late));
    }
    /// A retransmission of a packet missing since then has come.
    pub(super) fn on_replaced(&mut self, sequence: u64, since: Timestamp) {
        if self.replaced.len() == REPLACED {
            self.replaced.pop_front();
        }
        self.replaced.push_back((sequence, since));
        self.note(None);
    }
    /// A packet that is not missing has come: perhaps one that a retransmission has replaced.
    pub(super) fn on_known(&mut self, sequence: u64, now: Timestamp) {
        if let Some(place) = self.replaced.iter().position(|r| r.0 == sequence)
            && let Some((_, since)) = self.replaced.remove(place)
        {
            // It was not lost.
            if let Some(lost) = self.fates.iter().rposition(Option::is_none) {
                self.fates.remove(lost);
            }
            self.note(Some(now.saturating_since(since)));
        }
    }

    fn note(&mut self, late: Option<TimeDelta>) {
        if self.fates.len() == WINDOW {
            self.fates.pop_front();
        }
        self.fates.push_back(late);
        let mut late: Vec<TimeDelta> = self.fates.iter().copied().flatten().collect();
        let is_worth_it = late.len() >= LEAST && late.len() * SHARE >= self.fates.len();
        late.sort_unstable();
        let covered = late.iter().rev().nth(late.len() / UNCOVERED).filter(|_| is_worth_it);
        self.wait = covered.map_or(TimeDelta::ZERO, |late| (*late + *late / 8).min(MOST));
    }
}
