//! Arrival times of packets, from which per-packet feedback is built.
//!
//! Reports over RFC 8888 overlap by one interval, so that a lost report loses no information; TWCC reports each packet
//! once, as in practice.

use weir_units::cold_path;
use weir_units::{Ecn, Timestamp};

const MIN_SLOTS: usize = 1 << 6;
/// Most packets covered by one report; RFC 8888 limits a block to 16,384 reports.
const MAX_SLOTS: usize = 1 << 14;

/// One arrival, in 16 bytes: every call has a ring of them.
#[derive(Clone, Copy, Debug)]
struct Slot {
    arrival: Timestamp,
    /// The low bits of its sequence number: the slot is valid for that number only.
    low: u32,
    /// `None` if the slot is empty.
    ecn: Option<Ecn>,
}

impl Slot {
    const EMPTY: Self = Self { arrival: Timestamp::ZERO, low: 0, ecn: None };

    fn is_of(&self, sequence: u64) -> bool {
        self.ecn.is_some() && self.low == sequence as u32
    }
}

/// Arrivals since the last report and some before it, in a ring that grows with the reporting interval up to a bound.
#[derive(Clone, Debug)]
pub struct ArrivalLog {
    slots: Box<[Slot]>,
    /// First sequence number of the next report.
    begin: u64,
    /// Sequence number after the highest one seen.
    end: u64,
    /// First sequence number that was new in the last report.
    last_begin: u64,
    news: u32,
    /// Whether each report also covers the previous one's packets, so that a lost report loses nothing (RFC 8888,
    /// section 3).
    overlap: bool,
}

impl ArrivalLog {
    /// An empty log. With `overlap`, each report covers the packets of the previous one again.
    pub fn new(overlap: bool) -> Self {
        let slots = vec![Slot::EMPTY; MIN_SLOTS].into_boxed_slice();
        Self { slots, begin: 0, end: 0, last_begin: 0, news: 0, overlap }
    }

    fn index(&self, sequence: u64) -> usize {
        sequence as usize & (self.slots.len() - 1)
    }

    /// Records an arrival. For duplicates, the first arrival counts, and a CE mark on any copy (RFC 8888, section 3.1).
    #[inline]
    pub fn on_packet(&mut self, sequence: u64, arrival: Timestamp, ecn: Ecn) {
        if self.end == 0 {
            (self.begin, self.end, self.last_begin) = (sequence, sequence, sequence);
        }
        let i = self.index(sequence);
        if sequence < self.end && self.slots[i].is_of(sequence) {
            cold_path();
            // A copy is reported again only for a mark that its report did not have.
            if ecn == Ecn::Ce && self.slots[i].ecn != Some(Ecn::Ce) {
                self.slots[i].ecn = Some(ecn);
                self.begin = self.begin.min(sequence);
            }
            return;
        }
        if sequence >= self.end {
            while sequence - self.begin.min(self.last_begin) >= self.slots.len() as u64 {
                if self.slots.len() == MAX_SLOTS {
                    self.begin = self.begin.max(sequence + 1 - MAX_SLOTS as u64);
                    self.last_begin = self.last_begin.max(self.begin);
                    break;
                }
                self.grow();
            }
            self.end = sequence + 1;
        } else if sequence < self.begin {
            cold_path();
            // It was reported missing: the next report starts early enough to include it, if the ring still covers it.
            if self.end - sequence > self.slots.len() as u64 {
                return;
            }
            self.begin = sequence;
        }
        let i = self.index(sequence);
        let slot = &mut self.slots[i];
        *slot = Slot { arrival, low: sequence as u32, ecn: Some(ecn) };
        self.news += 1;
    }

    #[cold]
    fn grow(&mut self) {
        // Each slot goes to one of two that no other can go to.
        let mut wider = vec![Slot::EMPTY; self.slots.len() * 2].into_boxed_slice();
        for s in self.slots.iter().filter(|s| s.ecn.is_some()) {
            wider[s.low as usize & (self.slots.len() * 2 - 1)] = *s;
        }
        self.slots = wider;
    }

    /// Packets that have arrived since the last report.
    pub fn news(&self) -> u32 {
        self.news
    }

    /// The range that a report would cover now.
    pub fn range(&self) -> core::ops::Range<u64> {
        self.begin..self.end
    }

    /// When a packet of the range arrived, and its ECN field.
    pub fn arrival(&self, sequence: u64) -> Option<(Timestamp, Ecn)> {
        let s = &self.slots[self.index(sequence)];
        s.ecn.filter(|_| s.is_of(sequence)).map(|ecn| (s.arrival, ecn))
    }

    /// A report up to `upto` (exclusive) has been made. Returns whether it covered any packet.
    pub fn on_reported(&mut self, upto: u64) -> bool {
        let covered = upto > self.begin;
        if self.overlap {
            self.begin = self.last_begin.min(upto);
            self.last_begin = upto;
        } else {
            self.begin = upto;
            self.last_begin = upto;
        }
        self.news = if upto == self.end { 0 } else { 1 };
        covered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_late_packet_pulls_the_next_report_back() {
        let mut log = ArrivalLog::new(false);
        for n in [10, 11, 13] {
            log.on_packet(n, at(n as i64), Ecn::Ect0);
        }
        assert_eq!(log.range(), 10..14);
        assert_eq!(log.arrival(12), None);
        log.on_reported(14);
        assert_eq!((log.range(), log.news()), (14..14, 0));
        log.on_packet(12, at(20), Ecn::Ce);
        assert_eq!((log.range(), log.news()), (12..14, 1));
        assert_eq!(log.arrival(12), Some((at(20), Ecn::Ce)));
    }

    #[test]
    fn overlapping_reports_cover_each_packet_twice() {
        let mut log = ArrivalLog::new(true);
        let mut seen = [0; 40];
        for n in 0..40u64 {
            log.on_packet(n, at(0), Ecn::NotEct);
            if n % 10 == 9 {
                log.range().for_each(|s| seen[s as usize] += 1);
                log.on_reported(n + 1);
            }
        }
        assert!(seen[..30].iter().all(|&n| n == 2) && seen[30..].iter().all(|&n| n == 1));
    }

    #[test]
    fn duplicates_keep_the_first_time_and_any_mark() {
        let mut log = ArrivalLog::new(false);
        log.on_packet(5, at(1), Ecn::Ect0);
        log.on_packet(5, at(9), Ecn::Ce);
        assert_eq!((log.arrival(5), log.news()), (Some((at(1), Ecn::Ce)), 1));
    }

    proptest! {
        #[test]
        fn memory_and_range_stay_bounded(
            steps in proptest::collection::vec((-200i64..3_000, any::<bool>()), 1..300), overlap: bool,
        ) {
            let mut log = ArrivalLog::new(overlap);
            let mut high = 100_000i64;
            log.on_packet(high as u64, at(0), Ecn::NotEct);
            for (step, report) in steps {
                let n = (high + step) as u64;
                high = high.max(n as i64);
                log.on_packet(n, at(1), Ecn::NotEct);
                let r = log.range();
                prop_assert!(r.end - r.start <= MAX_SLOTS as u64 && log.slots.len() <= MAX_SLOTS);
                prop_assert_eq!(r.end, high as u64 + 1);
                if step >= 0 { prop_assert!(log.arrival(n).is_some()); }
                if report { log.on_reported(r.end); }
            }
        }
    }
}
