//! Properties of any link with any packets.

use super::*;

/// Any valid configuration.
fn any_config() -> impl Strategy<Value = LinkConfig> {
    let step = (1i64..200, prop_oneof![Just(0u64), 1u64..5_000]);
    let capacity = prop_oneof![
        Just(Capacity::Unlimited),
        (0u64..5_000).prop_map(|k| Capacity::Constant(DataRate::from_kbps(k))),
        (proptest::collection::vec(step, 1..6), any::<bool>()).prop_map(|(gaps, repeat)| {
            let mut at = 0;
            let mut steps = vec![];
            for (gap, kbps) in gaps {
                steps.push(Step { at: millis(at), rate: DataRate::from_kbps(kbps) });
                at += gap;
            }
            Capacity::Schedule(Schedule::new(steps, repeat.then_some(millis(at))).expect("sound"))
        }),
        proptest::collection::vec(0u32..300, 1..20).prop_map(|mut t| {
            t.push(301);
            t.sort_unstable();
            Capacity::Opportunities(Opportunities::new(t).expect("sound"))
        }),
    ];
    let limit = prop_oneof![
        Just(Limit::Unlimited),
        (1u64..50_000).prop_map(|b| Limit::Size(DataSize::from_bytes(b))),
        (1u32..40).prop_map(Limit::Packets),
        (1i64..500).prop_map(|t| Limit::Time(millis(t))),
    ];
    let loss = prop_oneof![
        Just(Loss::None),
        (0.0..1.0).prop_map(|share| Loss::Independent { share }),
        (0.01..0.3, 1.0..5.0).prop_map(|(s, r)| Loss::GilbertElliott(GilbertElliott::bursts(s, r))),
    ];
    let jitter = proptest::option::of(
        (1i64..50, any::<bool>())
            .prop_map(|(t, may_reorder)| Jitter { shape: JitterShape::Uniform { max: millis(t) }, may_reorder }),
    );
    let reordering =
        proptest::option::of((0.0..1.0, 0i64..100).prop_map(|(share, t)| Reordering { share, extra: millis(t) }));
    let discipline = prop_oneof![
        Just(Discipline::default()),
        limit.clone().prop_map(marks_above),
        (1i64..20, 1i64..200, any::<bool>()).prop_map(|(target, interval, ecn)| Discipline::CoDel(codel::Config {
            target: millis(target),
            interval: millis(interval),
            ecn
        })),
    ];
    (capacity, limit, discipline, (loss, any::<bool>()), jitter, reordering, 0i64..100, 0.0..0.5).prop_map(
        |(capacity, limit, discipline, (loss, entry), jitter, reordering, delay, duplication)| LinkConfig {
            capacity,
            delay: millis(delay),
            limit,
            discipline,
            loss,
            loss_position: if entry { LossPosition::Entry } else { LossPosition::Exit },
            jitter,
            reordering,
            duplication: if delay % 2 == 0 { 0.0 } else { duplication },
            ..LinkConfig::constant(DataRate::ZERO, TimeDelta::ZERO)
        },
    )
}

/// Any valid configuration, also with what few links have.
fn any_rich_config() -> impl Strategy<Value = LinkConfig> {
    let bucket = || {
        let any = (1_000u64..5_000_000, 1u64..50_000).prop_map(|(rate, burst)| TokenBucket {
            rate: DataRate::from_bps(rate),
            burst: DataSize::from_bytes(burst),
        });
        proptest::option::weighted(0.3, any)
    };
    let any_discipline = proptest::sample::select(Discipline::all());
    let faults = (0.0..1.0, 0.0..1.0, 0.0..1.0, any::<bool>()).prop_map(|(mark, erase, bleach, entry)| EcnFaults {
        mark,
        erase,
        bleach,
        position: if entry { LossPosition::Entry } else { LossPosition::Exit },
    });
    let delays = proptest::option::weighted(0.3, (proptest::collection::vec(0i64..100, 1..4), any::<bool>()));
    let losses = proptest::option::weighted(0.3, proptest::collection::vec(0.0..1.0, 1..4));
    (any_config(), any_discipline, bucket(), bucket(), proptest::option::of(faults), delays, losses).prop_map(
        |(mut c, discipline, policer, shaper, ecn, delays, losses)| {
            (c.discipline, c.policer, c.shaper, c.ecn) = (discipline, policer, shaper, ecn);
            let delay = delays.map(|(list, repeat)| {
                c.delay = list.iter().copied().min().map_or(c.delay, millis);
                let period = repeat.then_some(millis(200 * list.len() as i64));
                Steps::new((0..).zip(list).map(|(i, ms)| (millis(200 * i), millis(ms))).collect(), period)
                    .expect("sound")
            });
            let loss = losses.map(|list| {
                let steps = (0..).zip(list).map(|(i, share)| (millis(100 * i), Loss::Independent { share }));
                Steps::new(steps.collect(), None).expect("sound")
            });
            c.variation = Variation { loss, delay, jitter: None };
            c
        },
    )
}

/// Packets of some size, some microseconds apart, many at the same time.
fn any_packets() -> impl Strategy<Value = Vec<(i64, u64)>> {
    let gap = prop_oneof![3 => Just(0i64), 3 => 0i64..10_000, 1 => 0i64..1_000_000];
    proptest::collection::vec((gap, 0u64..3_000), 1..200)
}

proptest! {
    /// For any link no packet is created or lost uncounted, time never goes back, every event is announced, and the
    /// loop ends.
    #[test]
    fn every_packet_is_accounted_for(c in any_rich_config(), packets in any_packets(), seed: u64) {
        let mut l = Link::new(&c, seed).expect("sound");
        let (mut now, mut dropped, mut out) = (Timestamp::ZERO, 0u64, vec![]);
        let mut pushed = vec![];
        for (i, &(gap, size)) in packets.iter().enumerate() {
            let arrival = now.max(Timestamp::ZERO) + TimeDelta::from_micros(gap);
            while let Some(at) = l.next_event().filter(|&at| at <= arrival) {
                prop_assert!(at >= now, "an event in the past");
                now = at;
                out.extend(std::iter::from_fn(|| l.pop(at)));
            }
            // Nothing remains unannounced.
            prop_assert_eq!(l.pop(arrival), None);
            now = arrival;
            pushed.push(arrival);
            let verdict = l.push(now, packet(DataSize::from_bytes(size), Ecn::Ect0, i as u32));
            dropped += u64::from(verdict != Verdict::Queued);
            let s = l.stats();
            let inside = l.packets_inside() as u64;
            prop_assert_eq!(s.offered.packets + s.duplicated.packets, s.delivered.packets + s.dropped().packets + inside);
            if let Limit::Size(limit) = c.limit {
                prop_assert!(l.queue_size(now) <= limit);
            }
            if let Limit::Packets(limit) = c.limit {
                prop_assert!(l.queue_packets(now) <= limit as usize);
            }
        }
        let mut turns = 0;
        while let Some(at) = l.next_event() {
            prop_assert!(at >= now, "an event in the past");
            now = at;
            out.extend(std::iter::from_fn(|| l.pop(at)));
            turns += 1;
            prop_assert!(turns < 2_000, "no end");
        }
        let s = l.stats();
        let held = packets.len() as u64 + s.duplicated.packets - out.len() as u64 - dropped;
        prop_assert_eq!(held, l.packets_inside() as u64);
        prop_assert!(held == 0 || c.capacity.rate_at(Timestamp::MAX).as_bps() == 0 || matches!(c.capacity, Capacity::Schedule(_)));
        let arrivals = delivered(&out);
        prop_assert!(arrivals.windows(2).all(|w| w[0].at <= w[1].at));
        for d in &arrivals {
            let least = pushed[d.item as usize] + d.queued_for + c.delay;
            prop_assert!(d.at >= least && !d.queued_for.is_negative());
        }
        let held_back = c.reordering.is_some_and(|r| r.share > 0.0 && r.extra > TimeDelta::ZERO);
        let is_kept = c.jitter.map_or(c.variation.delay.is_none(), |j| !j.may_reorder);
        if is_kept && !held_back && !matches!(c.discipline.name(), "fq-codel" | "dualpi2") {
            prop_assert!(arrivals.windows(2).all(|w| w[0].item <= w[1].item), "overtaken");
        }
    }

    /// A link computed packet by packet, with the whole list available, is the oracle for drops, times and marks.
    #[test]
    fn agrees_with_a_list(packets in any_packets(), limit in 1u64..20_000, threshold in 1u64..20_000, kbps in 1u64..5_000) {
        let rate = DataRate::from_kbps(kbps);
        let mut c = LinkConfig::constant(rate, millis(7));
        c.limit = Limit::Size(DataSize::from_bytes(limit));
        c.discipline = marks_above(Limit::Size(DataSize::from_bytes(threshold)));
        let mut l = Link::new(&c, 0).expect("sound");
        let (mut now, mut free_at, mut list, mut expected) = (Timestamp::ZERO, Timestamp::ZERO, vec![], vec![]);
        for (i, &(gap, bytes)) in packets.iter().enumerate() {
            now += TimeDelta::from_micros(gap);
            let queue: u64 = list.iter().filter(|&&(start, _)| start > now).map(|&(_, b)| b).sum();
            let fits = queue + bytes <= limit;
            if fits {
                let start = now.max(free_at);
                free_at = start + rate.time_for(DataSize::from_bytes(bytes)).expect("positive");
                list.push((start, bytes));
                let ecn = if queue + bytes > threshold { Ecn::Ce } else { Ecn::Ect1 };
                expected.push((i as u32, free_at + c.delay, start - now, ecn));
            }
            let verdict = l.push(now, packet(DataSize::from_bytes(bytes), Ecn::Ect1, i as u32));
            prop_assert_eq!(verdict == Verdict::Queued, fits);
        }
        let got: Vec<_> = delivered(&drain(&mut l)).iter().map(|d| (d.item, d.at, d.queued_for, d.ecn)).collect();
        prop_assert_eq!(got, expected);
    }

    /// A queue that is never empty is served at the capacity (work conservation), and `queue_delay` predicts the next
    /// packet's delay.
    #[test]
    fn a_backlog_leaves_at_the_capacity(sizes in proptest::collection::vec(1u64..2_000, 2..100), c in any_config()) {
        let mut plain = config();
        plain.capacity = c.capacity;
        let mut l = Link::new(&plain, 0).expect("sound");
        let mut predicted = vec![];
        for (i, &bytes) in sizes.iter().enumerate() {
            predicted.push(l.queue_delay(ms(0)));
            prop_assert_eq!(l.push(ms(0), packet(DataSize::from_bytes(bytes), Ecn::NotEct, i as u32)), Verdict::Queued);
        }
        let out = delivered(&drain(&mut l));
        for d in &out {
            let slack = d.queued_for - predicted[d.item as usize];
            // Each time is rounded up to a nanosecond, which has a factor of 5,000 where the rate then falls by that.
            prop_assert!(!slack.is_negative() && slack.as_nanos() <= 5_000 * sizes.len() as i64, "{slack:?}");
        }
        if let (Capacity::Constant(rate), Some(last)) = (&plain.capacity, out.last()) {
            let total = DataSize::from_bytes(sizes.iter().sum());
            let measured = DataRate::from_size_over(total, last.at - ms(50)).expect("took time");
            let ratio = measured.ratio(*rate * Gain::ONE).expect("not zero");
            prop_assert!((0.999..=1.000_001).contains(&ratio), "{ratio}");
        }
    }
}
