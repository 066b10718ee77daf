//! The segments between the cumulative acknowledgement and the last byte sent, in order of their bytes and of their last
//! transmission.

use std::collections::VecDeque;
use weir_units::Timestamp;

/// Fate of the last transmission of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    InFlight,
    /// Marked as lost and not retransmitted since (Segment.lost).
    Lost,
    /// Selectively acknowledged.
    Delivered,
}

/// A segment (RFC 8985, section 5.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
    /// When it was last sent (Segment.xmit_ts).
    pub(super) sent: Timestamp,
    pub(super) state: State,
    /// Whether it was ever retransmitted.
    pub(super) is_retransmitted: bool,
    /// Numbers of its neighbours in the order of transmission, while it is in flight.
    previous: u64,
    next: u64,
}

/// No segment.
const NONE: u64 = u64::MAX;

/// The segments, numbered in the order of their bytes. A list through those in flight has the order of their last
/// transmissions (RFC 8985, section 6.2, step 5), so that an acknowledgement passes only those that may be lost.
#[derive(Clone, Debug)]
pub(super) struct Segments {
    /// In order of their bytes, without gaps.
    all: VecDeque<Segment>,
    /// Number of the first in `all`.
    first: u64,
    /// The ends of the list.
    oldest: u64,
    newest: u64,
    in_flight: u64,
    sacked: usize,
    lost: usize,
    /// No segment below this number is lost.
    lost_from: u64,
}

impl Default for Segments {
    fn default() -> Self {
        Self {
            all: VecDeque::new(),
            first: 0,
            oldest: NONE,
            newest: NONE,
            in_flight: 0,
            sacked: 0,
            lost: 0,
            lost_from: 0,
        }
    }
}

impl Segments {
    /// Bytes in flight: sent, neither acknowledged nor marked as lost since.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }
    /// Number of segments selectively acknowledged.
    pub(super) fn sacked(&self) -> usize {
        self.sacked
    }
    /// Number of segments marked as lost and not yet retransmitted.
    pub(super) fn lost(&self) -> usize {
        self.lost
    }
    pub(super) fn clear(&mut self) {
        *self = Self { all: std::mem::take(&mut self.all), ..Self::default() };
        self.all.clear();
    }
    pub(super) fn last(&self) -> Option<&Segment> {
        self.all.back()
    }
    /// The numbers of all segments.
    pub(super) fn numbers(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.all.len() as u64
    }
    pub(super) fn get(&self, number: u64) -> Option<&Segment> {
        self.all.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
    fn get_mut(&mut self, number: u64) -> Option<&mut Segment> {
        self.all.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
    /// The number of the first segment that ends above `seq`.
    pub(super) fn above(&self, seq: u64) -> u64 {
        self.first + self.all.partition_point(|s| s.end <= seq) as u64
    }

    /// The bytes of `start..end` were sent: new ones after the last segment, or a segment again.
    pub(super) fn on_sent(&mut self, now: Timestamp, start: u64, end: u64) {
        if self.all.back().is_none_or(|last| last.end <= start) {
            let number = self.first + self.all.len() as u64;
            let (previous, next) = (NONE, NONE);
            let is_retransmitted = false;
            let segment = Segment { start, end, sent: now, state: State::Lost, is_retransmitted, previous, next };
            self.all.push_back(segment);
            self.lost += 1;
            self.put_in_flight(number, now);
            return;
        }
        let mut number = self.above(start);
        while self.get(number).is_some_and(|s| s.start < end) {
            if self.get(number).is_some_and(|s| s.state != State::Delivered) {
                if self.get(number).is_some_and(|s| s.state == State::InFlight) {
                    self.unlink(number, State::Lost);
                }
                self.put_in_flight(number, now);
                if let Some(s) = self.get_mut(number) {
                    s.is_retransmitted = true;
                }
            }
            number += 1;
        }
    }

    /// Appends a segment that is not in flight to the list.
    fn put_in_flight(&mut self, number: u64, now: Timestamp) {
        let newest = self.newest;
        let Some(s) = self.get_mut(number) else { return };
        (s.sent, s.state, s.previous, s.next) = (now, State::InFlight, newest, NONE);
        self.in_flight += self.get(number).map_or(0, |s| s.end - s.start);
        self.lost -= 1;
        match self.get_mut(newest) {
            Some(s) => s.next = number,
            None => self.oldest = number,
        }
        self.newest = number;
    }

    /// Takes a segment in flight out of the list.
    fn unlink(&mut self, number: u64, state: State) {
        let Some(s) = self.get_mut(number) else { return };
        let (previous, next, size) = (s.previous, s.next, s.end - s.start);
        s.state = state;
        match self.get_mut(previous) {
            Some(p) => p.next = next,
            None => self.oldest = next,
        }
        match self.get_mut(next) {
            Some(n) => n.previous = previous,
            None => self.newest = previous,
        }
        self.in_flight -= size;
        match state {
            State::Lost => {
                self.lost += 1;
                self.lost_from = self.lost_from.min(number);
            }
            State::Delivered => self.sacked += 1,
            State::InFlight => {}
        }
    }

    /// The segment in flight that was sent first, and the one sent after `number`.
    pub(super) fn oldest(&self) -> Option<u64> {
        Some(self.oldest).filter(|&n| n != NONE)
    }
    pub(super) fn sent_after(&self, number: u64) -> Option<u64> {
        self.get(number).map(|s| s.next).filter(|&n| n != NONE)
    }

    /// Marks a segment as lost, if it is in flight.
    pub(super) fn lose(&mut self, number: u64) {
        if self.get(number).is_some_and(|s| s.state == State::InFlight) {
            self.unlink(number, State::Lost);
        }
    }
    /// Marks a segment as selectively acknowledged; returns it as it was, unless it already had been.
    pub(super) fn deliver(&mut self, number: u64) -> Option<Segment> {
        let segment = *self.get(number).filter(|s| s.state != State::Delivered)?;
        if segment.state == State::InFlight {
            self.unlink(number, State::Delivered);
        } else {
            self.lost -= 1;
            self.sacked += 1;
            if let Some(s) = self.get_mut(number) {
                s.state = State::Delivered;
            }
        }
        Some(segment)
    }
    /// The receiver has reneged on a segment: it is lost.
    pub(super) fn renege(&mut self, number: u64) {
        let Some(s) = self.get_mut(number).filter(|s| s.state == State::Delivered) else { return };
        s.state = State::Lost;
        self.sacked -= 1;
        self.lost += 1;
        self.lost_from = self.lost_from.min(number);
    }

    /// Removes the first segment if it ends at or below `una`, and returns it as it was. One that `una` cuts loses the
    /// acknowledged bytes.
    pub(super) fn acknowledge(&mut self, una: u64) -> Option<Segment> {
        let segment = *self.all.front()?;
        if segment.end > una {
            if segment.start < una {
                if segment.state == State::InFlight {
                    self.in_flight -= una - segment.start;
                }
                self.all[0].start = una;
            }
            return None;
        }
        match segment.state {
            State::InFlight => self.unlink(self.first, State::InFlight),
            State::Lost => self.lost -= 1,
            State::Delivered => self.sacked -= 1,
        }
        self.all.pop_front();
        self.first += 1;
        Some(segment)
    }

    /// The first segment marked as lost.
    pub(super) fn first_lost(&mut self) -> Option<&Segment> {
        if self.lost == 0 {
            self.lost_from = self.numbers().end;
            return None;
        }
        let from = self.lost_from.max(self.first);
        let skipped = self.all.iter().skip((from - self.first) as usize).take_while(|s| s.state != State::Lost).count();
        self.lost_from = from + skipped as u64;
        self.get(self.lost_from)
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        let sum = |state: State| self.all.iter().filter(move |s| s.state == state);
        assert_eq!(self.in_flight, sum(State::InFlight).map(|s| s.end - s.start).sum::<u64>());
        assert_eq!((self.sacked, self.lost), (sum(State::Delivered).count(), sum(State::Lost).count()));
        assert!(self.all.iter().zip(self.all.iter().skip(1)).all(|(a, b)| a.end == b.start && a.start < a.end));
        let (mut number, mut times, mut previous) = (self.oldest, vec![], NONE);
        while let Some(s) = self.get(number) {
            assert_eq!((s.state, s.previous), (State::InFlight, previous));
            times.push(s.sent);
            (previous, number) = (number, s.next);
        }
        assert_eq!((number, previous), (NONE, self.newest));
        assert!(times.is_sorted());
        assert_eq!(times.len(), sum(State::InFlight).count());
    }
}
