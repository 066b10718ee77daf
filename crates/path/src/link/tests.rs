mod random;

use super::*;
use crate::queue::{codel, drop_tail};
use crate::{
    Discipline, EcnFaults, GilbertElliott, Jitter, JitterShape, Limit, Loss, Opportunities, Reordering, Schedule, Step,
    TokenBucket, Variation,
};
use proptest::prelude::*;
use weir_units::{Ecn, Gain};

const KB: DataSize = DataSize::from_bytes(1_000);
fn ms(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}
fn millis(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}
/// 2 Mbit/s, so that 1,000 bytes take 4 ms, and 50 ms of propagation.
fn config() -> LinkConfig {
    LinkConfig::constant(DataRate::from_mbps(2), millis(50))
}
fn link(change: impl FnOnce(&mut LinkConfig)) -> Link<u32> {
    let mut c = config();
    change(&mut c);
    Link::new(&c, 1).expect("sound")
}
fn packet(size: DataSize, ecn: Ecn, item: u32) -> Packet<u32> {
    Packet { item, size, ecn, flow: item % 3 }
}
fn marks_above(ecn_threshold: Limit) -> Discipline {
    Discipline::DropTail(drop_tail::Config { ecn_threshold })
}
fn taken(link: &mut Link<u32>, at: Timestamp, n: u32) -> usize {
    (0..n).filter(|&i| link.push(at, packet(KB, Ecn::Ect0, i)) == Verdict::Queued).count()
}
fn drain(link: &mut Link<u32>) -> Vec<Departure<u32>> {
    let mut all = vec![];
    while let Some(at) = link.next_event() {
        all.extend(std::iter::from_fn(|| link.pop(at)));
    }
    all
}
fn delivered(d: &[Departure<u32>]) -> Vec<Delivery<u32>> {
    let keep = |d: &Departure<u32>| if let Departure::Delivered(d) = d { Some(*d) } else { None };
    d.iter().filter_map(keep).collect()
}

#[test]
fn a_full_queue_holds_its_bytes_and_the_packet_in_transmission() {
    let mut link = link(|c| c.limit = Limit::Size(DataSize::from_bytes(75_000)));
    assert_eq!(taken(&mut link, ms(0), 100), 76);
    assert_eq!(link.queue_size(ms(0)).as_bytes(), 75_000);
    assert_eq!(link.queue_packets(ms(0)), 75);
    assert_eq!(link.queue_delay(ms(0)), millis(304));
    for i in 0..76 {
        let at = link.next_event().expect("not empty");
        assert_eq!(at, ms(54 + 4 * i));
        let Some(Departure::Delivered(d)) = link.pop(at) else { panic!("due") };
        assert_eq!((i64::from(d.item), d.at, d.queued_for), (i, at, millis(4 * i)));
        assert_eq!(link.pop(at), None);
    }
    assert_eq!((link.next_event(), link.pop(ms(9_999)), link.packets_inside()), (None, None, 0));
    assert_eq!(link.stats().dropped_queue.packets, 24);
}

#[test]
fn every_kind_of_limit_counts_what_waits() {
    assert_eq!(taken(&mut link(|c| c.limit = Limit::Packets(10)), ms(0), 100), 11);
    // 100 ms at 2 Mbit/s make 25,000 bytes.
    assert_eq!(taken(&mut link(|c| c.limit = Limit::Time(millis(100))), ms(0), 100), 26);
    assert_eq!(taken(&mut link(|_| {}), ms(0), 100), 100);
    // A place is free as soon as the previous packet begins its transmission.
    let mut l = link(|c| c.limit = Limit::Packets(1));
    assert_eq!(taken(&mut l, ms(0), 3), 2);
    assert_eq!(taken(&mut l, ms(3), 1), 0);
    assert_eq!(taken(&mut l, ms(4), 2), 1);
}

#[test]
fn a_time_limit_follows_the_capacity_and_outlives_an_outage() {
    let steps = [(0, 2_000), (1_000, 500), (2_000, 0)];
    let steps = steps.map(|(t, r)| Step { at: millis(t), rate: DataRate::from_kbps(r) });
    let schedule = Schedule::new(steps.to_vec(), None).expect("sound");
    let limit = Limit::Time(millis(160));
    let fresh = || link(|c| (c.capacity, c.limit) = (Capacity::Schedule(schedule.clone()), limit));
    // 160 ms hold 40 packets at 2 Mbit/s, and 10 at 0.5 Mbit/s and in the outage after it.
    assert_eq!(taken(&mut fresh(), ms(0), 100), 41);
    assert_eq!(taken(&mut fresh(), ms(1_500), 100), 11);
    let mut dead = fresh();
    assert_eq!(taken(&mut dead, ms(2_500), 100), 11);
    assert_eq!((dead.next_event(), dead.queue_delay(ms(2_500))), (None, TimeDelta::MAX));
    assert_eq!(dead.pop(ms(1 << 40)), None);
    assert_eq!(dead.packets_inside(), 11);
}

#[test]
fn capable_packets_above_the_threshold_are_marked() {
    let mut l = link(|c| c.discipline = marks_above(Limit::Packets(3)));
    let fields = [Ecn::Ect0, Ecn::Ect1, Ecn::NotEct, Ecn::Ce, Ecn::Ect0, Ecn::NotEct, Ecn::Ce, Ecn::Ect1];
    for (i, ecn) in fields.into_iter().enumerate() {
        assert_eq!(l.push(ms(0), packet(KB, ecn, i as u32)), Verdict::Queued);
    }
    // The first is in transmission and the next three make the queue of three; later ones are marked.
    let got: Vec<_> = delivered(&drain(&mut l)).iter().map(|d| d.ecn).collect();
    assert_eq!(got[..4], fields[..4]);
    assert_eq!(got[4..], [Ecn::Ce, Ecn::NotEct, Ecn::Ce, Ecn::Ce]);
    assert_eq!(l.stats().marked.packets, 2);
}

#[test]
fn a_loss_at_the_exit_takes_capacity_and_one_at_the_entry_does_not() {
    for (position, last_at) in [(LossPosition::Exit, ms(54 + 4 * 999)), (LossPosition::Entry, ms(54 + 4 * 499))] {
        let mut l = link(|c| {
            c.loss = Loss::Independent { share: 0.5 };
            c.loss_position = position;
        });
        let queued = taken(&mut l, ms(0), 1_000);
        let out = drain(&mut l);
        let arrived = delivered(&out);
        assert!((400..600).contains(&arrived.len()));
        assert_eq!(l.stats().dropped_random.packets + arrived.len() as u64, 1_000);
        assert_eq!(queued == 1_000, position == LossPosition::Exit);
        let last = arrived.last().expect("some").at;
        assert!((last - last_at).abs() < millis(400), "{last:?}");
    }
}

#[test]
fn jitter_in_order_holds_packets_behind_each_other() {
    let shape = JitterShape::Uniform { max: millis(40) };
    for may_reorder in [false, true] {
        let mut l = link(|c| c.jitter = Some(Jitter { shape, may_reorder }));
        taken(&mut l, ms(0), 500);
        let out = delivered(&drain(&mut l));
        assert_eq!(out.len(), 500);
        assert!(out.windows(2).all(|w| w[0].at <= w[1].at));
        let overtaken = out.windows(2).filter(|w| w[0].item > w[1].item).count();
        if may_reorder {
            assert!(overtaken > 100);
            assert!(out.iter().all(|d| (0..40).contains(&(d.at - ms(54 + 4 * i64::from(d.item))).as_millis())));
        } else {
            assert_eq!(overtaken, 0);
            // Held packets arrive at the link's own spacing, not all at once.
            assert!(out.windows(2).all(|w| w[1].at - w[0].at >= millis(4)));
        }
    }
}

#[test]
fn an_overtaking_packet_is_announced_in_time() {
    // The first packet is 500 ms late; the second waits for its transmission and arrives long before.
    let mut l = link(|c| c.reordering = Some(Reordering { share: 0.5, extra: millis(500) }));
    taken(&mut l, ms(0), 64);
    let out = delivered(&drain(&mut l));
    let late = out.iter().filter(|d| d.at == ms(554 + 4 * i64::from(d.item))).count();
    assert_eq!(out.len() - late, out.iter().filter(|d| d.at == ms(54 + 4 * i64::from(d.item))).count());
    assert!((16..48).contains(&late));
    assert!(out.windows(2).all(|w| w[0].at <= w[1].at));
}

#[test]
fn only_packets_held_back_leave_the_order_that_jitter_keeps() {
    let shape = JitterShape::Uniform { max: millis(40) };
    let jitter = Some(Jitter { shape, may_reorder: false });
    let extra = millis(60_000);
    let plain = {
        let mut l = link(|c| c.jitter = jitter);
        taken(&mut l, ms(0), 500);
        delivered(&drain(&mut l))
    };
    for share in [0.0, 0.2, 1.0] {
        let mut l = link(|c| (c.jitter, c.reordering) = (jitter, Some(Reordering { share, extra })));
        taken(&mut l, ms(0), 500);
        let out = delivered(&drain(&mut l));
        assert!(out.windows(2).all(|w| w[0].at <= w[1].at));
        // All else is over after 2.1 s.
        let (in_order, late): (Vec<_>, Vec<_>) = out.iter().partition(|d| d.at < ms(60_000));
        assert_eq!(in_order.len() + late.len(), plain.len());
        assert!((late.len() as f64 / 500.0 - share).abs() < 0.06, "{}", late.len());
        // Both keep the order and the spacing of their own kind, and those held back are late by their extra delay.
        for kind in [&in_order, &late] {
            assert!(
                kind.windows(2).all(|w: &[&Delivery<u32>]| w[0].item < w[1].item && w[1].at - w[0].at >= millis(4))
            );
        }
        assert!(late.iter().all(|d| (0..=40).contains(&(d.at - ms(60_054 + 4 * i64::from(d.item))).as_millis())));
    }
}

#[test]
fn a_copy_arrives_right_behind() {
    let mut l = link(|c| c.duplication = 1.0);
    taken(&mut l, ms(0), 3);
    let out: Vec<_> = delivered(&drain(&mut l)).iter().map(|d| (d.item, d.at)).collect();
    assert_eq!(out, [0, 0, 1, 1, 2, 2].map(|i| (i, ms(54 + 4 * i64::from(i)))));
    assert_eq!((l.stats().duplicated.packets, l.stats().delivered.packets), (3, 6));
}

/// A token bucket of 1 Mbit/s, where 1,000 bytes take 8 ms.
fn bucket(burst: u64) -> Option<TokenBucket> {
    Some(TokenBucket { rate: DataRate::from_mbps(1), burst: DataSize::from_bytes(burst) })
}

#[test]
fn a_policer_drops_what_exceeds_its_bucket_before_the_queue() {
    let mut l = link(|c| c.policer = bucket(10_000));
    assert_eq!(taken(&mut l, ms(0), 30), 10);
    assert_eq!(l.push(ms(7), packet(KB, Ecn::Ect0, 30)), Verdict::Dropped(DropReason::Policer, 30));
    assert_eq!((taken(&mut l, ms(8), 3), taken(&mut l, ms(80), 30)), (1, 9));
    let stats = l.stats();
    assert_eq!((stats.dropped_policer.packets, stats.dropped().packets, stats.offered.packets), (44, 44, 64));
    assert_eq!(delivered(&drain(&mut l)).len(), 20);
}

#[test]
fn a_shaper_delays_what_exceeds_its_bucket() {
    let mut l = link(|c| c.shaper = bucket(10_000));
    assert_eq!(taken(&mut l, ms(0), 40), 40);
    assert_eq!(l.queue_delay(ms(0)), millis(240));
    let out = delivered(&drain(&mut l));
    // At 2 Mbit/s a packet takes 4 ms, in which the bucket gets half of its tokens back: the 20th and the 21st overdraw
    // it, by 500 bytes and by 1,000. The others wait 8 ms for one another.
    let at = |i: i64| if i <= 20 { 54 + 4 * i } else { 54 + 88 + 8 * (i - 21) };
    assert_eq!(out.iter().map(|d| d.at).collect::<Vec<_>>(), (0..40).map(|i| ms(at(i))).collect::<Vec<_>>());
    assert_eq!(out[39].queued_for, millis(232));
    // Full again after a pause.
    assert_eq!(taken(&mut l, ms(1_000), 2), 2);
    assert_eq!(delivered(&drain(&mut l)).iter().map(|d| d.at).collect::<Vec<_>>(), [ms(1_054), ms(1_058)]);
    // Without a capacity of its own the link has the rate of the shaper, which also converts a queue of time.
    let mut l = link(|c| {
        (c.capacity, c.shaper) = (Capacity::Unlimited, bucket(1_000));
        c.limit = Limit::Time(millis(80));
    });
    assert_eq!(taken(&mut l, ms(0), 40), 12);
    let at: Vec<_> = delivered(&drain(&mut l)).iter().map(|d| d.at).collect();
    assert_eq!(at, [50, 50, 58, 66, 74, 82, 90, 98, 106, 114, 122, 130].map(ms));
}

#[test]
fn ecn_faults_before_the_queue_decide_what_it_can_mark() {
    let run = |mark, bleach, position| {
        let mut l = link(|c| {
            c.discipline = marks_above(Limit::Packets(1));
            c.ecn = Some(EcnFaults { mark, erase: 0.0, bleach, position });
        });
        for i in 0..5 {
            assert_eq!(l.push(ms(0), packet(KB, Ecn::Ect1, i)), Verdict::Queued);
        }
        let ecn: Vec<_> = delivered(&drain(&mut l)).iter().map(|d| d.ecn).collect();
        (ecn, [l.stats().marked, l.stats().marked_falsely, l.stats().bleached].map(|c| c.packets))
    };
    assert_eq!(run(0.0, 1.0, LossPosition::Entry), (vec![Ecn::NotEct; 5], [0, 0, 5]));
    assert_eq!(run(0.0, 1.0, LossPosition::Exit), (vec![Ecn::NotEct; 5], [3, 0, 5]));
    assert_eq!(run(1.0, 0.0, LossPosition::Entry), (vec![Ecn::Ce; 5], [0, 5, 0]));
    assert_eq!(run(1.0, 0.0, LossPosition::Exit), (vec![Ecn::Ce; 5], [3, 2, 0]));
}

#[test]
fn packets_overtake_others_where_the_delay_decreases() {
    let delay = Steps::new(vec![(millis(0), millis(50)), (millis(20), millis(10))], Some(millis(40))).expect("sound");
    let mut l = link(|c| c.variation.delay = Some(delay));
    taken(&mut l, ms(0), 12);
    let out: Vec<_> = delivered(&drain(&mut l)).iter().map(|d| (d.item, d.at)).collect();
    // Transmissions end at 4, 8, ... 48 ms: 50 ms until 20 ms and from 40 ms on, else 10 ms.
    let mut expected: Vec<_> =
        (0..12).map(|i| (i, ms(4 * i64::from(i) + if (4..9).contains(&i) { 14 } else { 54 }))).collect();
    expected.sort_by_key(|&(i, at)| (at, i));
    assert_eq!(out, expected);
    assert_eq!(out[0].0, 4);
}

#[test]
fn recorded_opportunities_carry_the_packets() {
    let trace = Opportunities::new(vec![5, 10, 20]).expect("sound");
    let mut l = link(|c| c.capacity = Capacity::Opportunities(trace));
    assert_eq!(taken(&mut l, ms(0), 3), 3);
    // All three wait until the first opportunity; it carries one and a half of the next.
    assert_eq!(l.queue_packets(ms(4)), 3);
    assert_eq!(l.queue_packets(ms(5)), 1);
    assert_eq!(l.queue_delay(ms(5)), millis(15));
    assert_eq!(l.next_event(), Some(ms(55)));
    let at: Vec<_> = delivered(&drain(&mut l)).iter().map(|d| (d.at, d.queued_for)).collect();
    assert_eq!(at, [(ms(55), millis(5)), (ms(60), millis(5)), (ms(60), millis(10))]);
}

#[test]
fn time_that_goes_back_changes_nothing() {
    let mut l = link(|_| {});
    taken(&mut l, ms(10), 1);
    assert_eq!(l.push(ms(3), packet(KB, Ecn::NotEct, 9)), Verdict::Queued);
    let out: Vec<_> = delivered(&drain(&mut l)).iter().map(|d| (d.at, d.queued_for)).collect();
    assert_eq!(out, [(ms(64), millis(0)), (ms(68), millis(4))]);
    assert_eq!(l.push(Timestamp::from_nanos(i64::MIN), packet(KB, Ecn::NotEct, 9)), Verdict::Queued);
}

#[test]
fn equal_seeds_give_equal_links() {
    let run = |seed| {
        let mut c = config();
        c.loss = Loss::GilbertElliott(GilbertElliott::bursts(0.1, 3.0));
        c.jitter = Some(Jitter { shape: JitterShape::Normal { deviation: millis(5), bound: 3.0 }, may_reorder: true });
        c.duplication = 0.1;
        let mut l = Link::new(&c, seed).expect("sound");
        taken(&mut l, ms(0), 300);
        drain(&mut l)
    };
    assert_eq!(run(5), run(5));
    assert_ne!(run(5), run(6));
}
