//! FQ-CoDel compared with RFC 8290's rules by hand.

use super::discipline::Queue as _;
use super::*;
use crate::impairment::Draw;
use crate::random::Random;
use crate::{Capacity, Limit};
use std::collections::BTreeSet;
use weir_units::{DataRate, DataSize, Ecn};

fn ms(t: i64) -> Timestamp {
    Timestamp::from_millis(t)
}

struct Bench {
    queue: Queue<u32>,
    ledger: Ledger<u32>,
    pushed: u32,
}

impl Bench {
    fn new(config: Config, limit: Limit) -> Self {
        let room = Room::new(limit, Capacity::Constant(DataRate::from_mbps(8)));
        let queue = config.queue(Setup { room, random: Random::new(1), members: crate::Members::default() });
        Self { queue, ledger: Ledger::default(), pushed: 0 }
    }
    fn unlimited() -> Self {
        Self::new(Config::default(), Limit::Unlimited)
    }
    /// Passes packets of a flow, numbered in their order; returns how many were accepted.
    fn fill(&mut self, at: i64, flow: u32, packets: u32, bytes: u32) -> usize {
        self.fill_capable(at, flow, packets, bytes, Ecn::NotEct)
    }
    fn fill_capable(&mut self, at: i64, flow: u32, packets: u32, bytes: u32, ecn: Ecn) -> usize {
        let accepted = (0..packets).filter(|_| {
            let item = self.pushed;
            self.pushed += 1;
            let mut p = Queued { item, arrived: ms(at), bytes, flow, ecn, draw: Draw::default() };
            let verdict = self.queue.admit(ms(at), &mut p, &mut self.ledger);
            verdict.map(|()| self.queue.put(p)).is_ok()
        });
        accepted.count()
    }
    fn send(&mut self, at: i64) -> Option<Queued<u32>> {
        self.queue.dequeue(ms(at), &mut self.ledger)
    }
    /// The flows of the next packets.
    fn flows(&mut self, at: i64, packets: usize) -> Vec<u32> {
        (0..packets).map(|_| self.send(at).expect("queued").flow).collect()
    }
    fn dropped(&mut self) -> Vec<(u32, DropReason)> {
        self.ledger.discarded.drain(..).map(|d| (d.item, d.reason)).collect()
    }
}

#[test]
fn flows_share_by_bytes() {
    let mut b = Bench::unlimited();
    b.fill(0, 1, 300, 1_514);
    b.fill(0, 2, 300, 757);
    b.fill(0, 3, 300, 1_514);
    // A quantum is one packet of flows 1 and 3, and two of flow 2.
    assert_eq!(b.flows(1, 8), [1, 2, 2, 3, 1, 2, 2, 3]);
    let sent = b.flows(1, 400);
    assert_eq!([1, 2, 3].map(|f| sent.iter().filter(|s| **s == f).count()), [100, 200, 100]);
    assert_eq!((b.queue.packets(), b.queue.bytes()), (900 - 408, 2 * 198 * 1_514 + 96 * 757));
}

#[test]
fn a_flow_that_builds_no_queue_goes_first() {
    let mut b = Bench::unlimited();
    b.fill(0, 1, 100, 1_514);
    b.fill(0, 2, 100, 1_514);
    assert_eq!(b.flows(1, 4), [1, 2, 1, 2]);
    b.fill(1, 3, 1, 200);
    assert_eq!(b.flows(1, 3), [3, 1, 2]);
    // Its queue passed through the list of old ones when it was found empty, so that it is a new one again only after
    // each of them had its turn.
    b.fill(2, 3, 1, 200);
    assert_eq!(b.flows(2, 3), [3, 1, 2]);
    b.fill(2, 3, 1, 200);
    b.fill(2, 3, 30, 1_514);
    assert_eq!(b.flows(2, 6), [3, 3, 1, 3, 2, 1]);
}

#[test]
fn a_flow_cannot_starve_others_by_becoming_empty() {
    let mut b = Bench::unlimited();
    b.fill(0, 1, 100, 1_514);
    assert_eq!(b.flows(0, 1), [1]);
    // A packet of flow 2 arrives whenever its queue is empty.
    let mut sent = vec![];
    for t in 0..40 {
        if b.queue.0.flows[b.queue.0.index(2)].controlled.fifo.packets() == 0 {
            b.fill(t, 2, 1, 1_514);
        }
        sent.extend(b.flows(t, 1));
    }
    assert_eq!(sent.iter().filter(|f| **f == 1).count(), 20, "{sent:?}");
}

#[test]
fn packets_of_any_size_are_sent_in_time() {
    let mut b = Bench::new(Config { quantum: 256.0, ..Config::default() }, Limit::Unlimited);
    b.fill(0, 1, 2, 1_000_000);
    b.fill(0, 2, 2, 100);
    assert_eq!(b.flows(0, 4), [1, 2, 2, 1]);
    assert_eq!((b.send(0).map(|p| p.item), b.queue.packets(), b.queue.head_arrival()), (None, 0, None));
}

#[test]
fn overflow_takes_half_of_the_longest_queue_from_its_head() {
    let mut b = Bench::new(Config::default(), Limit::Packets(20));
    b.fill(0, 1, 5, 1_500);
    b.fill(0, 2, 15, 1_000);
    assert_eq!(b.dropped(), []);
    // Flow 2 has twice the bytes: 7 of its 15 packets, numbers 5 to 11.
    assert_eq!(b.fill(1, 3, 1, 100), 1);
    assert_eq!(b.dropped(), (5..12).map(|i| (i, DropReason::Queue)).collect::<Vec<_>>());
    assert_eq!((b.queue.packets(), b.queue.bytes()), (14, 5 * 1_500 + 8 * 1_000 + 100));
    // A packet that would be the longest queue itself is refused.
    let mut b = Bench::new(Config::default(), Limit::Size(DataSize::from_bytes(3_000)));
    assert_eq!((b.fill(0, 1, 2, 1_000), b.fill(0, 2, 1, 2_900)), (2, 0));
    assert_eq!(b.dropped(), []);
    // The arriving packet counts: 64 of 201 are dropped at once at most.
    let mut b = Bench::new(Config::default(), Limit::Packets(200));
    assert_eq!(b.fill(0, 1, 201, 100), 201);
    assert_eq!((b.dropped().len(), b.queue.packets()), (64, 137));
}

#[test]
fn each_queue_is_under_codel() {
    let mut b = Bench::unlimited();
    b.fill(0, 1, 3_000, 1_514);
    let mut dropped = vec![];
    for t in 0..=560 {
        b.send(t);
        dropped.extend(b.dropped().iter().map(|&(_, reason)| (t, reason)));
    }
    // The times computed by hand in CoDel's own tests.
    assert_eq!(dropped, [105, 205, 276, 334, 384, 429, 469, 507, 543].map(|t| (t, DropReason::Aqm)));
    // A second flow that never waits for its target loses nothing.
    for t in 561..2_000 {
        if t % 10 == 0 {
            b.fill_capable(t, 2, 1, 200, Ecn::Ect0);
            let p = b.send(t).expect("queued");
            assert_eq!((p.flow, p.ecn), (2, Ecn::Ect0));
        }
        b.send(t);
    }
    assert!(b.dropped().iter().all(|&(item, _)| item < 3_000));
}

#[test]
fn capable_packets_are_marked() {
    let ce_threshold = TimeDelta::from_millis(1);
    for (config, ecn, expected) in [
        (Config::default(), Ecn::Ect0, (5, 0)),
        (Config { ecn: false, ..Config::default() }, Ecn::Ect0, (0, 5)),
        (Config { ce_threshold, ..Config::default() }, Ecn::Ect0, (399, 0)),
        (Config { ce_threshold, ..Config::default() }, Ecn::NotEct, (0, 5)),
    ] {
        let mut b = Bench::new(config, Limit::Unlimited);
        b.fill_capable(0, 1, 3_000, 1_514, ecn);
        let marked = (0..=400).filter(|&t| b.send(t).expect("queued").ecn == Ecn::Ce).count();
        assert_eq!((marked, b.dropped().len()), expected, "{config:?}");
    }
}

#[test]
fn flows_are_spread_over_the_queues_by_their_seed() {
    let indices = |seed, flows| {
        let room = Room::new(Limit::Unlimited, Capacity::Unlimited);
        let q: Queue<()> = Config { flows, ..Config::default() }.queue(Setup {
            room,
            random: Random::new(seed),
            members: crate::Members::default(),
        });
        (0..100).map(|flow| q.0.index(flow)).collect::<Vec<_>>()
    };
    // 100 of 1,024 without collision leave about 95.3 apart (section 5.3).
    let apart = indices(1, 1_024.0).into_iter().collect::<BTreeSet<_>>().len();
    assert!((90..=100).contains(&apart), "{apart}");
    assert_eq!(indices(1, 1_024.0), indices(1, 1_024.0));
    assert_ne!(indices(1, 1_024.0), indices(2, 1_024.0));
    assert!(indices(1, 1.0).iter().all(|i| *i == 0));
}

#[test]
fn with_one_queue_it_is_codel() {
    let mut b = Bench::new(Config { flows: 1.0, ..Config::default() }, Limit::Unlimited);
    b.fill(0, 1, 100, 1_514);
    b.fill(0, 2, 100, 1_514);
    assert_eq!(b.flows(0, 150), [vec![1; 100], vec![2; 50]].concat());
}

#[test]
fn a_drop_is_foreseen() {
    let mut b = Bench::unlimited();
    assert_eq!(b.queue.next_drop(), Some(ms(100)), "an interval from now on at the earliest");
    b.fill(0, 1, 500, 1_514);
    b.fill(0, 2, 500, 1_514);
    b.flows(4, 2);
    assert_eq!(b.queue.next_drop(), Some(ms(104)));
    b.flows(5, 1);
    assert_eq!(b.queue.next_drop(), Some(ms(5)), "one flow is above its target");
    // Both become empty.
    while b.send(5).is_some() {}
    assert_eq!((b.queue.0.above_target, b.queue.next_drop()), (0, Some(ms(105))));
    assert!(b.queue.0.new.is_empty() && b.queue.0.old.is_empty());
}
