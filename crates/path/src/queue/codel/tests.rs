//! CoDel compared with RFC 8289's pseudocode by hand.

use super::discipline::Queue as _;
use super::*;
use crate::impairment::Draw;
use crate::random::Random;
use crate::{Capacity, Limit};
use weir_units::{DataRate, Ecn};

fn ms(t: i64) -> Timestamp {
    Timestamp::from_millis(t)
}

/// A queue served at a packet per millisecond, and its drops and marks.
struct Bench {
    queue: Queue<()>,
    ledger: Ledger<()>,
    now: i64,
}

impl Bench {
    fn new(config: Config) -> Self {
        let room = Room::new(Limit::Unlimited, Capacity::Constant(DataRate::from_mbps(8)));
        Self {
            queue: config.queue(Setup { room, random: Random::new(1), members: crate::Members::default() }),
            ledger: Ledger::default(),
            now: 0,
        }
    }
    fn fill(&mut self, packets: u32, ecn: Ecn) {
        for _ in 0..packets {
            let mut p = Queued { item: (), arrived: ms(self.now), bytes: 1_000, flow: 0, ecn, draw: Draw::default() };
            assert_eq!(self.queue.admit(ms(self.now), &mut p, &mut self.ledger), Ok(()));
            self.queue.put(p);
        }
    }
    /// Sends a packet every millisecond up to `end`; returns the times of drops and marks.
    fn send_until(&mut self, end: i64) -> (Vec<i64>, Vec<i64>) {
        let (mut dropped, mut marked) = (vec![], vec![]);
        while self.now <= end {
            let sent = self.queue.dequeue(ms(self.now), &mut self.ledger);
            if sent.is_some_and(|p| p.ecn() == Ecn::Ce) {
                marked.push(self.now);
            }
            for d in self.ledger.discarded.drain(..) {
                assert_eq!((d.at, d.reason), (ms(self.now), DropReason::Aqm));
                dropped.push(self.now);
            }
            self.now += 1;
        }
        (dropped, marked)
    }
}

/// Above the target of 5 ms from 5 ms on, and so for an interval at 105 ms: the first drop. The second is an interval
/// later; the k-th follows its predecessor by 100 ms / sqrt(k - 1): 70.711, 57.735, 50, 44.721, 40.825, 37.796, 35.355
/// ms from 205 ms make 275.711, 333.446, 383.446, 428.167, 468.992, 506.788, 542.143 ms, each rounded up to the next
/// packet.
const BY_HAND: [i64; 9] = [105, 205, 276, 334, 384, 429, 469, 507, 543];

#[test]
fn drops_follow_the_control_law() {
    let mut b = Bench::new(Config::default());
    b.fill(5_000, Ecn::NotEct);
    assert_eq!(b.send_until(560), (BY_HAND.to_vec(), vec![]));
}

#[test]
fn capable_packets_are_marked_when_others_would_be_dropped() {
    for (ecn, enabled) in [(Ecn::Ect0, true), (Ecn::Ect1, true), (Ecn::Ect0, false)] {
        let mut b = Bench::new(Config { ecn: enabled, ..Config::default() });
        b.fill(5_000, ecn);
        let (dropped, marked) = b.send_until(560);
        let (expected, none) = if enabled { (&marked, &dropped) } else { (&dropped, &marked) };
        assert_eq!((expected.as_slice(), none.len()), (BY_HAND.as_slice(), 0));
        assert_eq!(b.ledger.stats.marked.packets, marked.len() as u64);
    }
}

#[test]
fn target_and_interval_scale_the_law() {
    let (target, interval) = (TimeDelta::from_millis(20), TimeDelta::from_millis(400));
    let mut b = Bench::new(Config { target, interval, ecn: true });
    b.fill(5_000, Ecn::NotEct);
    // 20 + 400, + 400, + 400 / sqrt(2), + 400 / sqrt(3), + 200: 1,102.843, 1,333.783 and 1,533.783 ms.
    assert_eq!(b.send_until(1_540).0, [420, 820, 1_103, 1_334, 1_534]);
}

#[test]
fn a_queue_that_rises_again_soon_is_dropped_from_at_its_last_rate() {
    for (refill, expected) in [
        // Nine drops less the first: resumes at 8, after 100 / sqrt(8), / sqrt(9), / sqrt(10): 840.355, 873.689,
        // 905.311 ms.
        (700, vec![805, 841, 874, 906]),
        // 16 intervals after the time of the next drop, at 575.477 ms, and later: from the beginning.
        (2_080, vec![2_185, 2_285]),
    ] {
        let mut b = Bench::new(Config::default());
        b.fill(570, Ecn::NotEct);
        assert_eq!(b.send_until(refill - 1).0, BY_HAND);
        b.fill(5_000, Ecn::NotEct);
        assert_eq!(b.send_until(refill + 210).0, expected);
    }
}

#[test]
fn a_queue_of_one_packet_is_let_be() {
    let mut b = Bench::new(Config::default());
    // Each packet waits for 150 ms, far above the target, but only one is behind it: dropping would idle the link.
    b.fill(2, Ecn::NotEct);
    for _ in 0..20 {
        b.now += 150;
        assert!(b.queue.dequeue(ms(b.now), &mut b.ledger).is_some());
        b.fill(1, Ecn::NotEct);
    }
    assert!(b.ledger.discarded.is_empty());
    // With one more, the rule applies.
    b.fill(1, Ecn::NotEct);
    for _ in 0..20 {
        b.now += 150;
        assert!(b.queue.dequeue(ms(b.now), &mut b.ledger).is_some());
        b.fill(2, Ecn::NotEct);
    }
    assert!(b.ledger.discarded.len() > 5, "{}", b.ledger.discarded.len());
}

#[test]
fn one_short_wait_begins_the_interval_again() {
    let mut b = Bench::new(Config::default());
    b.fill(100, Ecn::NotEct);
    // Up to 99 ms the queue empties: no packet has waited for an interval above the target.
    assert_eq!(b.send_until(99), (vec![], vec![]));
    b.fill(3_000, Ecn::NotEct);
    // 100 + 5 + 100.
    assert_eq!(b.send_until(206).0, [205]);
}

#[test]
fn a_drop_is_foreseen() {
    let mut b = Bench::new(Config::default());
    assert_eq!(b.queue.next_drop(), Some(ms(100)), "an interval from now on at the earliest");
    b.fill(5_000, Ecn::NotEct);
    b.send_until(5);
    assert_eq!(b.queue.next_drop(), Some(ms(105)));
    b.send_until(105);
    assert_eq!(b.queue.next_drop(), Some(ms(205)));
    b.send_until(205);
    assert_eq!(b.queue.next_drop(), Some(Timestamp::from_nanos(275_710_678)));
}
