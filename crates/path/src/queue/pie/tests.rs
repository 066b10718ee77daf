//! PIE compared with RFC 8033's pseudocode by hand.

use super::discipline::Queue as _;
use super::*;
use crate::impairment::Draw;
use crate::{Capacity, Limit};
use weir_units::{DataRate, Ecn};

fn ms(t: i64) -> Timestamp {
    Timestamp::from_millis(t)
}

fn queue(config: Config) -> (Queue<()>, Ledger<()>) {
    let room = Room::new(Limit::Unlimited, Capacity::Constant(DataRate::from_mbps(8)));
    (config.queue(Setup { room, random: Random::new(1), members: crate::Members::default() }), Ledger::default())
}

/// Passes a packet of 1,000 bytes to the queue.
fn enqueue(q: &mut Queue<()>, at: i64, ecn: Ecn, ledger: &mut Ledger<()>) -> Result<(), DropReason> {
    let mut packet = Queued { item: (), arrived: ms(at), bytes: 1_000, flow: 0, ecn, draw: Draw::default() };
    q.admit(ms(at), &mut packet, ledger)?;
    q.put(packet);
    Ok(())
}

#[test]
fn the_probability_follows_the_delay_and_its_change() {
    let (mut q, mut ledger) = queue(Config::default());
    for _ in 0..1_000 {
        assert!(enqueue(&mut q, 0, Ecn::NotEct, &mut ledger).is_ok());
    }
    // The delay of the packet at the head equals the time: 0, 20, 40, 60, 80 ms; an update precedes each except the
    // first. (1/8 (0 - 0.015) + 5/4 * 0) / 2048 is below zero, and limited. (1/8 (0.020 - 0.015) + 5/4 * 0.020) /
    // 2048 = 1.2512e-5, then / 128: 2.19727e-4 more, / 32: 9.57031e-4, / 8: 4.14063e-3.
    let mut seen = vec![];
    q.config.t_update = TimeDelta::from_millis(20);
    q.next_update = ms(20);
    for t in [0, 20, 40, 60, 80, 100] {
        assert!(q.dequeue(ms(t), &mut ledger).is_some());
        seen.push(q.probability);
    }
    let expected = [0.0, 0.0, 1.251_22e-5, 2.322_39e-4, 1.189_270e-3, 5.329_895e-3];
    for (got, want) in seen.iter().zip(expected) {
        assert!((got - want).abs() <= 1e-5 * want, "{seen:?}");
    }
    // Nothing is random yet: a burst of 150 ms is allowed, reduced by 20 ms at each update.
    assert_eq!(q.burst_allowance, TimeDelta::from_millis(50));
}

#[test]
fn without_delay_the_probability_decays() {
    let (mut q, _) = queue(Config::default());
    q.probability = 0.5;
    // (0.5 - 0.125 * 0.015) * 0.98, twice.
    q.catch_up(ms(15));
    assert!((q.probability - 0.488_162_5).abs() < 1e-12, "{}", q.probability);
    q.catch_up(ms(30));
    assert!((q.probability - 0.476_561_75).abs() < 1e-12, "{}", q.probability);
    q.catch_up(ms(15_000));
    assert_eq!(q.probability, 0.0);
}

#[test]
fn a_pause_of_a_century_is_over_at_once() {
    let (mut q, mut ledger) = queue(Config::default());
    assert!(enqueue(&mut q, 0, Ecn::NotEct, &mut ledger).is_ok());
    q.probability = 1.0;
    let century = Timestamp::from_secs(100 * 365 * 86_400);
    assert!(q.dequeue(century, &mut ledger).is_some());
    assert!(q.next_update > century && q.next_update <= century + q.config.t_update);
    assert_eq!((q.next_update - Timestamp::ZERO).as_nanos() % q.config.t_update.as_nanos(), 0);
    q.catch_up(Timestamp::MAX);
    assert_eq!(q.next_update, Timestamp::MAX, "the end of time comes");
}

#[test]
fn a_share_of_packets_is_chosen_and_capable_ones_are_marked_while_it_is_small() {
    let run = |probability: f64, ecn| {
        let (mut q, mut ledger) = queue(Config { max_burst: TimeDelta::ZERO, ..Config::default() });
        (q.probability, q.delay, q.delay_before) = (0.0, TimeDelta::from_millis(30), TimeDelta::from_millis(30));
        for _ in 0..3 {
            assert!(enqueue(&mut q, 0, ecn, &mut ledger).is_ok(), "two packets of 1,024 bytes always pass");
        }
        (q.probability, q.burst_allowance) = (probability, TimeDelta::ZERO);
        let refused = (0..20_000).filter(|_| enqueue(&mut q, 0, ecn, &mut ledger).is_err()).count();
        (refused as f64 / 20_000.0, ledger.stats.marked.packets as f64 / 20_000.0)
    };
    // Four standard errors of a share of 20,000.
    let near = |share: f64, p: f64| (share - p).abs() < 4.0 * (p * (1.0 - p) / 20_000.0).sqrt();
    let (dropped, marked) = run(0.05, Ecn::NotEct);
    assert!(near(dropped, 0.05) && marked == 0.0, "{dropped} {marked}");
    let (dropped, marked) = run(0.05, Ecn::Ect0);
    assert!(near(marked, 0.05) && dropped == 0.0, "{dropped} {marked}");
    let (dropped, marked) = run(0.15, Ecn::Ect0);
    assert!(near(dropped, 0.15) && marked == 0.0, "above mark_ecnth: {dropped} {marked}");
}

#[test]
fn a_burst_and_a_low_delay_pass() {
    let (mut q, mut ledger) = queue(Config::default());
    q.probability = 1.0;
    (q.delay, q.delay_before) = (TimeDelta::from_millis(30), TimeDelta::from_millis(30));
    for _ in 0..100 {
        assert!(enqueue(&mut q, 0, Ecn::NotEct, &mut ledger).is_ok(), "within the burst allowance");
    }
    q.burst_allowance = TimeDelta::ZERO;
    assert_eq!(enqueue(&mut q, 1, Ecn::NotEct, &mut ledger), Err(DropReason::Aqm), "chosen for certain");
    (q.probability, q.delay_before) = (0.19, TimeDelta::from_millis(7));
    for _ in 0..100 {
        assert!(enqueue(&mut q, 1, Ecn::NotEct, &mut ledger).is_ok(), "half the target");
    }
}
