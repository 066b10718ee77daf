//! RED compared with the paper's pseudocode by hand.

use super::discipline::Queue as _;
use super::*;
use crate::Capacity;
use crate::impairment::Draw;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta};

fn ms(t: i64) -> Timestamp {
    Timestamp::from_millis(t)
}

/// A queue at 8 Mbit/s, so that 1,000 bytes take 1 ms.
fn queue(config: Config) -> (Queue<()>, Ledger<()>) {
    let room = Room::new(Limit::Unlimited, Capacity::Constant(DataRate::from_mbps(8)));
    (config.queue(Setup { room, random: Random::new(1), members: crate::Members::default() }), Ledger::default())
}

/// Passes a packet of 500 bytes to the queue.
fn enqueue(q: &mut Queue<()>, at: i64, ecn: Ecn, ledger: &mut Ledger<()>) -> Result<(), DropReason> {
    let mut packet = Queued { item: (), arrived: ms(at), bytes: 500, flow: 0, ecn, draw: Draw::default() };
    q.admit(ms(at), &mut packet, ledger)?;
    q.put(packet);
    Ok(())
}

/// Sets the average to a number of packets of 500 bytes.
fn set_average(q: &mut Queue<()>, packets: f64) {
    (q.packets, q.bytes) = (Average(packets), Average(500.0 * packets));
}

#[test]
fn the_average_follows_the_queue_and_decays_while_it_is_empty() {
    let (mut q, mut ledger) = queue(Config { w_q: 0.5, ..Config::default() });
    let mut seen = vec![];
    for _ in 0..4 {
        assert_eq!(enqueue(&mut q, 1, Ecn::NotEct, &mut ledger), Ok(()));
        seen.push((q.packets.0, q.bytes.0));
    }
    // Queues of 0, 1, 2 and 3 packets.
    assert_eq!(seen, [0.0, 0.5, 1.25, 2.125].map(|avg| (avg, 500.0 * avg)));
    // Empty from 9 ms on: 3 ms are as three packets of 1,000 bytes.
    for t in 6..=9 {
        assert!(q.dequeue(ms(t), &mut ledger).is_some());
    }
    assert_eq!(enqueue(&mut q, 12, Ecn::NotEct, &mut ledger), Ok(()));
    assert!((q.packets.0 - 2.125 / 8.0).abs() < 1e-12, "{}", q.packets.0);
}

/// Decisions on `n` arriving packets at a constant average.
fn choices(config: Config, average: f64, n: usize) -> Vec<Choice> {
    let (mut q, _) = queue(config);
    set_average(&mut q, average);
    (0..n).map(|_| q.choose(ms(0))).collect()
}
fn share(choices: &[Choice], of: Choice) -> f64 {
    choices.iter().filter(|c| **c == of).count() as f64 / choices.len() as f64
}

#[test]
fn packets_chosen_are_evenly_spread() {
    // p_b = 0.02 * (10 - 5) / (15 - 5) = 0.01. The distance to the next one chosen is uniform between 1 and 99.
    let all = choices(Config::default(), 10.0, 200_000);
    let chosen: Vec<usize> = (0..all.len()).filter(|&i| all[i] == Choice::Notify).collect();
    let gaps: Vec<usize> = chosen.windows(2).map(|w| w[1] - w[0]).collect();
    let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
    // Four standard errors of the mean of 4,000.
    assert!((mean - 50.0).abs() < 4.0 * 28.6 / (gaps.len() as f64).sqrt(), "{mean}");
    assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&99)));
    assert_eq!(share(&all, Choice::Drop), 0.0);
}

#[test]
fn the_average_decides_between_the_thresholds() {
    let all = |average, of| share(&choices(Config::default(), average, 200_000), of);
    assert_eq!((all(4.99, Choice::Pass), all(15.0, Choice::Drop), all(100.0, Choice::Drop)), (1.0, 1.0, 1.0));
    // Spread evenly between 1 and 1 / p_b - 1: 2 p_b of the packets, for p_b = 0.002 and 0.018.
    for (average, p_b) in [(6.0, 0.002), (14.0, 0.018)] {
        let got = all(average, Choice::Notify);
        assert!((got / (2.0 * p_b) - 1.0).abs() < 0.2, "{average}: {got}");
    }
    // Gentle: 0.02 + 0.98 * (18.52 - 15) / 15 = 0.25 at 18.52, where each distance between 1 and 3 is as likely, and all
    // packets from 30 on.
    let gentle = Config { gentle: true, ..Config::default() };
    let got = choices(gentle, 18.52, 20_000);
    assert_eq!(share(&got, Choice::Notify), 0.0);
    assert!(got.windows(4).all(|w| w.contains(&Choice::Drop)));
    assert!((share(&got, Choice::Drop) - 0.5).abs() < 0.02, "{}", share(&got, Choice::Drop));
    assert_eq!(share(&choices(gentle, 30.0, 100), Choice::Drop), 1.0);
}

#[test]
fn thresholds_may_have_any_unit() {
    // 5 packets of 500 bytes are 2,500 bytes, or 2.5 ms at 8 Mbit/s.
    let size = |b| Limit::Size(DataSize::from_bytes(b));
    let time = |us| Limit::Time(TimeDelta::from_micros(us));
    let expected = choices(Config::default(), 10.0, 1_000);
    for (min_th, max_th) in [(size(2_500), size(7_500)), (time(2_500), time(7_500)), (Limit::Packets(5), time(7_500))] {
        assert_eq!(choices(Config { min_th, max_th, ..Config::default() }, 10.0, 1_000), expected);
    }
    let all = choices(Config { min_th: Limit::Packets(15), max_th: Limit::Packets(5), ..Config::default() }, 6.0, 10);
    assert_eq!(share(&all, Choice::Drop), 1.0, "thresholds in the wrong order make one step");
    let none = Config { max_th: Limit::Unlimited, ..Config::default() };
    assert_eq!(share(&choices(none, 1e6, 1_000), Choice::Pass), 1.0);
}

#[test]
fn capable_packets_are_marked_below_the_upper_threshold_and_dropped_above() {
    for (ecn, enabled, average, refused, marked) in [
        (Ecn::Ect0, true, 14.9, 0, true),
        (Ecn::Ect1, true, 14.9, 0, true),
        (Ecn::NotEct, true, 14.9, 1, false),
        (Ecn::Ect0, false, 14.9, 1, false),
        (Ecn::Ect0, true, 16.0, 1, false),
    ] {
        let (mut q, mut ledger) = queue(Config { max_p: 1.0, ecn: enabled, ..Config::default() });
        set_average(&mut q, average);
        q.count = Some(1_000);
        // Almost certain at max_p = 1, and certain after so many.
        let verdict = enqueue(&mut q, 0, ecn, &mut ledger);
        assert_eq!(verdict.err(), (refused == 1).then_some(DropReason::Aqm), "{ecn:?} {enabled} {average}");
        assert_eq!(ledger.stats.marked.packets, u64::from(marked), "{ecn:?} {enabled} {average}");
    }
}
