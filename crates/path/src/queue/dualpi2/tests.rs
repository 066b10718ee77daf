//! DualPI2 compared with RFC 9332's pseudocode by hand.

use super::discipline::Queue as _;
use super::*;
use crate::impairment::Draw;
use crate::random::Random;
use crate::{Capacity, Limit};
use weir_units::{DataRate, DataSize, Ecn};

fn us(t: i64) -> Timestamp {
    Timestamp::from_nanos(1_000 * t)
}
fn ms(t: i64) -> Timestamp {
    us(1_000 * t)
}

struct Bench {
    queue: Queue<u32>,
    ledger: Ledger<u32>,
    pushed: u32,
}

impl Bench {
    fn new(config: Config) -> Self {
        Self::with_limit(config, Limit::Unlimited)
    }
    fn with_limit(config: Config, limit: Limit) -> Self {
        let room = Room::new(limit, Capacity::Constant(DataRate::from_mbps(8)));
        let queue = config.queue(Setup { room, random: Random::new(1), members: crate::Members::default() });
        Self { queue, ledger: Ledger::default(), pushed: 0 }
    }
    /// Passes packets of 1,500 bytes, numbered in their order; returns how many were accepted.
    fn fill(&mut self, at: Timestamp, packets: u32, ecn: Ecn) -> usize {
        let accepted = (0..packets).filter(|_| {
            let item = self.pushed;
            self.pushed += 1;
            let mut p = Queued { item, arrived: at, bytes: 1_500, flow: 0, ecn, draw: Draw::default() };
            let verdict = self.queue.admit(at, &mut p, &mut self.ledger);
            verdict.map(|()| self.queue.put(p)).is_ok()
        });
        accepted.count()
    }
    fn send(&mut self, at: Timestamp) -> Option<(u32, Ecn)> {
        self.queue.dequeue(at, &mut self.ledger).map(|p| (p.item, p.ecn))
    }
    /// Sends all at one time: how many of them are sent with a mark, and how many dropped.
    fn empty(&mut self, at: Timestamp) -> (usize, usize) {
        let marked = std::iter::from_fn(|| self.send(at)).filter(|&(_, ecn)| ecn == Ecn::Ce).count();
        let dropped = std::mem::take(&mut self.ledger.discarded);
        assert!(dropped.iter().all(|d| (d.at, d.reason) == (at, DropReason::Aqm)));
        (marked, dropped.len())
    }
}

fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-12, "{got} is not {expected}");
}

#[test]
fn the_ramp_rises_from_its_least_delay() {
    let b = Bench::new(Config::default());
    let got = [0, 799, 800, 900, 1_000, 1_100, 1_199, 1_200, 9_000].map(|t| b.queue.ramp(TimeDelta::from_micros(t)));
    for (got, expected) in got.into_iter().zip([0.0, 0.0, 0.0, 0.25, 0.5, 0.75, 0.9975, 1.0, 1.0]) {
        near(got, expected);
    }
    let step = Config { min_th: TimeDelta::from_millis(1), range: TimeDelta::ZERO, ..Config::default() };
    let b = Bench::new(step);
    let got = [0, 999, 1_000, 1_001].map(|t| b.queue.ramp(TimeDelta::from_micros(t)));
    assert_eq!(got, [0.0, 0.0, 1.0, 1.0]);
}

#[test]
fn l4s_packets_are_marked_evenly_by_their_own_delay() {
    let mut b = Bench::new(Config::default());
    b.fill(us(0), 20, Ecn::Ect1);
    let sent: Vec<_> = (0..20).map(|_| b.send(us(900)).expect("queued")).collect();
    // A quarter: the sum exceeds 1 at the fifth packet, and at each fourth after it. The last two leave no more than
    // one packet behind, so that the ramp does not apply.
    let marked: Vec<u32> = sent.iter().filter(|(_, ecn)| *ecn == Ecn::Ce).map(|p| p.0).collect();
    assert_eq!(marked, [4, 8, 12, 16]);
    assert_eq!(b.ledger.stats.marked.packets, 4);
    // A step marks all but the first, at which the sum is 1 but not above it.
    let mut b = Bench::new(Config { min_th: TimeDelta::from_millis(1), range: TimeDelta::ZERO, ..Config::default() });
    b.fill(us(0), 20, Ecn::Ect1);
    assert_eq!(b.empty(us(999)), (0, 0));
    b.fill(us(999), 20, Ecn::Ect1);
    assert_eq!(b.empty(us(1_999)), (17, 0));
}

#[test]
fn the_base_probability_follows_the_delay_and_its_change() {
    let mut b = Bench::new(Config::default());
    b.fill(ms(0), 100, Ecn::NotEct);
    // The head has waited for 16, 32 and 48 ms at the updates. 0.16 * (0.016 - 0.015) + 3.2 * 0.016 = 0.05136, then
    // 0.16 * 0.017 + 3.2 * 0.016 = 0.05392 and 0.16 * 0.033 + 0.0512 = 0.05648 more.
    for (t, base) in [(15, 0.0), (16, 0.051_36), (32, 0.105_28), (48, 0.161_76)] {
        b.queue.catch_up(ms(t));
        near(b.queue.base, base);
        near(b.queue.coupled(), 2.0 * base);
        near(b.queue.classic(), base * base);
    }
    // Without packets, 3.2 * 0.048 less at once, and 0.16 * 0.015 less at each update.
    while b.send(ms(48)).is_some() {}
    b.queue.catch_up(ms(64));
    near(b.queue.base, 0.161_76 - 0.153_6 - 0.002_4);
    b.queue.catch_up(ms(96));
    near(b.queue.base, 0.161_76 - 0.153_6 - 3.0 * 0.002_4);
    b.queue.catch_up(ms(112));
    assert_eq!(b.queue.base, 0.0);
}

#[test]
fn the_greater_delay_of_both_queues_counts() {
    let mut b = Bench::new(Config::default());
    b.fill(ms(6), 1, Ecn::NotEct);
    b.fill(ms(10), 1, Ecn::Ect1);
    b.queue.catch_up(ms(16));
    near(b.queue.base, 0.16 * (0.010 - 0.015) + 3.2 * 0.010);
    let mut b = Bench::new(Config::default());
    b.fill(ms(0), 1, Ecn::Ect1);
    b.queue.catch_up(ms(16));
    near(b.queue.base, 0.051_36);
}

/// Marks and drops of 1,000 packets at a base probability.
fn at_base(base: f64, ecn: Ecn) -> (usize, usize) {
    let mut b = Bench::new(Config::default());
    b.fill(ms(0), 1_000, ecn);
    b.queue.base = base;
    b.empty(ms(0))
}

#[test]
fn the_classic_queue_drops_and_marks_with_the_square_of_the_coupled_probability() {
    // 0.2^2 = 0.04 and 2 * 0.2 = 0.4 of 1,000; sums that reach a whole number do so up to rounding.
    let (marked, dropped) = at_base(0.2, Ecn::NotEct);
    assert!(marked == 0 && (39..=40).contains(&dropped), "{dropped}");
    let (marked, dropped) = at_base(0.2, Ecn::Ect0);
    assert!(dropped == 0 && (39..=40).contains(&marked), "{marked}");
    let (marked, dropped) = at_base(0.2, Ecn::Ect1);
    assert!(dropped == 0 && (399..=400).contains(&marked), "{marked}");
    for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1] {
        assert_eq!(at_base(0.0, ecn), (0, 0), "{ecn:?}");
    }
}

#[test]
fn overload_drops_packets_of_any_kind() {
    // p_CL is 1 and p_C 1/4 at a base probability of 1/2.
    for ecn in [Ecn::NotEct, Ecn::Ect0] {
        let (marked, dropped) = at_base(0.5, ecn);
        assert!(marked == 0 && (249..=250).contains(&dropped), "{ecn:?}: {marked} {dropped}");
    }
    let (marked, dropped) = at_base(0.5, Ecn::Ect1);
    assert!((249..=250).contains(&dropped) && (749..=751).contains(&marked), "{marked} {dropped}");
    // Just below, capable packets are still marked only: 0.49^2 = 0.2401.
    let (marked, dropped) = at_base(0.49, Ecn::Ect0);
    assert!((240..=241).contains(&marked) && dropped == 0, "{marked} {dropped}");
    let (marked, dropped) = at_base(0.49, Ecn::Ect1);
    assert!((979..=980).contains(&marked) && dropped == 0, "{marked} {dropped}");
}

#[test]
fn packets_are_classified_by_the_last_bit_of_their_ecn_field() {
    for (ecn, l4s) in [(Ecn::NotEct, false), (Ecn::Ect0, false), (Ecn::Ect1, true), (Ecn::Ce, true)] {
        let mut b = Bench::new(Config::default());
        b.fill(ms(0), 1, ecn);
        assert_eq!(
            (b.queue.l4s.fifo.packets(), b.queue.classic.fifo.packets()),
            (l4s.into(), (!l4s).into()),
            "{ecn:?}"
        );
    }
}

#[test]
fn l4s_packets_go_first_without_starving_the_others() {
    let mut b = Bench::new(Config::default());
    b.fill(ms(0), 200, Ecn::NotEct);
    b.fill(ms(0), 200, Ecn::Ect1);
    // The credit begins at 1,500 / 16 - 1,500 * 15 / 16 and grows by 1,500 / 16 with each L4S packet: 15 of them bring
    // it above 0, and a classic one takes it back.
    let sent: Vec<u32> = (0..160).map(|_| b.send(ms(1)).expect("queued").0).collect();
    let classic: Vec<usize> = (0..160).filter(|&i| sent[i] < 200).collect();
    assert_eq!(classic, (0..10).map(|i| 16 * i + 15).collect::<Vec<_>>());
    // Alone, either gets the whole link and changes no credit.
    for ecn in [Ecn::NotEct, Ecn::Ect1] {
        let mut b = Bench::new(Config::default());
        b.fill(ms(0), 50, ecn);
        assert!((0..50).all(|_| b.send(ms(1)).is_some()));
        assert_eq!((b.queue.credit, b.queue.packets()), (-1_312.5, 0));
    }
    // A weight of 1/2 serves them in turn.
    let mut b = Bench::new(Config { classic_weight: 0.5, ..Config::default() });
    b.fill(ms(0), 10, Ecn::NotEct);
    b.fill(ms(0), 10, Ecn::Ect1);
    let sent: Vec<bool> = (0..20).map(|_| b.send(ms(1)).expect("queued").0 >= 10).collect();
    assert_eq!(sent, (0..20).map(|i| i % 2 == 0).collect::<Vec<_>>());
}

#[test]
fn an_idle_link_resets_the_round_robin() {
    let mut b = Bench::new(Config::default());
    b.queue.credit = 1.0;
    b.fill(ms(1), 1, Ecn::NotEct);
    assert!(b.send(ms(2)).is_some());
    assert_eq!(b.queue.credit, 1.0, "it has waited: the link was busy");
    b.fill(ms(3), 1, Ecn::NotEct);
    assert!(b.send(ms(3)).is_some());
    assert_eq!(b.queue.credit, -1_312.5);
}

#[test]
fn a_time_shifted_fifo_lets_classic_packets_wait_longer_by_the_shift() {
    let tshift = TimeDelta::from_millis(50);
    let mut b = Bench::new(Config { tshift, alpha: 0.0, beta: 0.0, ..Config::default() });
    b.fill(ms(0), 2, Ecn::NotEct);
    b.fill(ms(50), 1, Ecn::Ect1);
    b.fill(ms(51), 1, Ecn::Ect1);
    let order: Vec<u32> = (0..4).map(|_| b.send(ms(60)).expect("queued").0).collect();
    assert_eq!(order, [2, 0, 1, 3], "behind by 50 ms and by 51 ms");
}

#[test]
fn both_queues_share_the_limit() {
    let mut b = Bench::with_limit(Config::default(), Limit::Size(DataSize::from_bytes(15_000)));
    assert_eq!(b.fill(ms(0), 6, Ecn::NotEct), 6);
    assert_eq!(b.fill(ms(0), 6, Ecn::Ect1), 4);
    assert_eq!((b.queue.packets(), b.queue.bytes()), (10, 15_000));
    let mut b = Bench::with_limit(Config::default(), Limit::Packets(3));
    assert_eq!((b.fill(ms(0), 2, Ecn::Ect1), b.fill(ms(0), 2, Ecn::Ect0)), (2, 1));
}

#[test]
fn late_updates_equal_those_in_time() {
    for ecn in [Ecn::NotEct, Ecn::Ect1] {
        for packets in [0, 5] {
            let fresh = || {
                let mut b = Bench::new(Config { alpha: 0.001, beta: 0.01, ..Config::default() });
                b.fill(ms(5), packets, ecn);
                (b.queue.base, b.queue.delay_before) = (0.3, TimeDelta::from_millis(4));
                b
            };
            let (mut often, mut once) = (fresh(), fresh());
            (1..=1_000).for_each(|t| often.queue.catch_up(ms(t)));
            once.queue.catch_up(ms(1_000));
            near(often.queue.base, once.queue.base);
            assert_eq!(often.queue.next_update, once.queue.next_update);
            assert_eq!(often.queue.delay_before, once.queue.delay_before);
        }
    }
}

#[test]
fn a_pause_of_a_century_is_over_at_once() {
    let century = Timestamp::from_secs(100 * 365 * 86_400);
    for (packets, base) in [(0, 0.0), (1, 1.0)] {
        for end in [century, Timestamp::MAX] {
            let mut b = Bench::new(Config::default());
            b.fill(ms(0), packets, Ecn::Ect0);
            b.queue.base = 0.5;
            b.queue.catch_up(end);
            assert_eq!(b.queue.base, base);
            assert!(b.queue.next_update >= end);
        }
    }
}

#[test]
fn a_drop_is_foreseen() {
    let mut b = Bench::new(Config::default());
    assert_eq!(b.queue.next_drop(), Some(ms(16)), "not before the first update");
    b.fill(ms(1), 50, Ecn::NotEct);
    b.fill(ms(1), 50, Ecn::Ect1);
    assert!(b.send(ms(2)).is_some());
    assert_eq!(b.queue.next_drop(), Some(ms(16)));
    assert!(b.send(ms(20)).is_some());
    assert_eq!(b.queue.next_drop(), Some(ms(20)), "at any time from now on");
    // The L queue alone drops only in overload.
    b.queue.classic = Part::default();
    assert_eq!(b.queue.next_drop(), Some(ms(32)));
    b.queue.base = 0.5;
    assert_eq!(b.queue.next_drop(), Some(ms(20)));
}
