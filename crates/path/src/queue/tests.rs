//! Properties of every discipline in the list, without a link.

use super::*;
use crate::impairment::Draw;
use crate::random::Random;
use crate::{Capacity, DropReason, Dscp, Limit, Member, Members};
use proptest::prelude::*;
use std::collections::BTreeSet;
use weir_units::{DataRate, DataSize, Ecn, TimeDelta};

/// A packet that arrives some time after the previous one.
#[derive(Clone, Debug)]
struct Arrival {
    gap: TimeDelta,
    bytes: u32,
    ecn: Ecn,
    flow: u32,
    /// Number of dequeues just before it arrives.
    dequeues: u32,
}

fn any_arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let gap = prop_oneof![3 => Just(0i64), 3 => 0i64..20_000, 1 => 0i64..1_000_000];
    let dequeues = prop_oneof![3 => Just(0u32), 2 => 1u32..4];
    let arrival = (gap, 0u32..3_000, 0u8..4, 0u32..3, dequeues).prop_map(|(gap, bytes, ecn, flow, dequeues)| Arrival {
        gap: TimeDelta::from_micros(gap),
        bytes,
        ecn: Ecn::from_bits(ecn),
        flow,
        dequeues,
    });
    prop::collection::vec(arrival, 1..400)
}

/// Flows 0 and 1 of different classes, and others.
fn classes() -> Members {
    let of = |name| Member { dscp: Dscp::by_name(name).expect("a name"), ..Member::default() };
    Members::new(vec![of("EF"), of("LE")])
}

/// Outcome of a packet.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Waiting,
    Sent { at: Timestamp, ecn: Ecn },
    Dropped { at: Timestamp, reason: DropReason },
}

/// Passes packets through a queue, with checks at every step.
fn run(discipline: Discipline, limit: Limit, arrivals: &[Arrival], seed: u64) -> Result<Vec<Fate>, TestCaseError> {
    let room = Room::new(limit, Capacity::Constant(DataRate::from_mbps(2)));
    let mut queue: AnyQueue<usize> = discipline.queue(Setup { room, random: Random::new(seed), members: classes() });
    let mut ledger = Ledger::default();
    let mut fates: Vec<Fate> = Vec::new();
    let mut now = Timestamp::ZERO;
    let foresees = queue.next_drop().is_some();
    for (item, a) in arrivals.iter().enumerate() {
        now += a.gap;
        for _ in 0..a.dequeues {
            let (earliest, waited) = (queue.next_drop(), queue.head_arrival());
            let sent = queue.dequeue(now, &mut ledger);
            prop_assert!(waited.is_some() || sent.is_none(), "nothing waited");
            if let Some(p) = sent {
                prop_assert_eq!(fates[p.item], Fate::Waiting);
                let given = &arrivals[p.item];
                prop_assert!(p.ecn == given.ecn || (given.ecn.is_capable() && p.ecn == Ecn::Ce), "{:?}", p.ecn);
                prop_assert_eq!((p.bytes, p.flow), (given.bytes, given.flow));
                fates[p.item] = Fate::Sent { at: now, ecn: p.ecn };
            } else if waited.is_some() {
                prop_assert!(!ledger.discarded.is_empty(), "a packet that waited is neither sent nor dropped");
            }
            let foreseen = earliest.is_some_and(|at| at <= now);
            prop_assert!(foreseen || ledger.discarded.is_empty(), "a drop that was not foreseen");
            settle(&mut ledger, &mut fates)?;
        }
        let mut packet = Queued { item, arrived: now, bytes: a.bytes, flow: a.flow, ecn: a.ecn, draw: Draw::default() };
        fates.push(Fate::Waiting);
        match queue.admit(now, &mut packet, &mut ledger) {
            Ok(()) => queue.put(packet),
            Err(reason) => fates[item] = Fate::Dropped { at: now, reason },
        }
        settle(&mut ledger, &mut fates)?;
        prop_assert_eq!(queue.next_drop().is_some(), foresees);
        // Each packet has left, was dropped with a reason, or is queued.
        let waiting: Vec<_> = (0..=item).filter(|&i| fates[i] == Fate::Waiting).collect();
        prop_assert_eq!(queue.packets(), waiting.len());
        prop_assert_eq!(queue.bytes(), waiting.iter().map(|&i| u64::from(arrivals[i].bytes)).sum::<u64>());
        prop_assert_eq!(queue.head_arrival().is_some(), !waiting.is_empty());
        if let Limit::Packets(n) = limit {
            prop_assert!(waiting.len() <= n as usize);
        }
        if let Limit::Size(s) = limit {
            prop_assert!(queue.bytes() <= s.as_bytes());
        }
    }
    // After enough dequeues all packets have left.
    for turn in 0.. {
        now += TimeDelta::from_millis(1);
        match queue.dequeue(now, &mut ledger) {
            Some(p) => fates[p.item] = Fate::Sent { at: now, ecn: p.ecn },
            None if queue.packets() == 0 => break,
            None => {}
        }
        prop_assert!(turn <= arrivals.len(), "packets stay for good");
        settle(&mut ledger, &mut fates)?;
    }
    settle(&mut ledger, &mut fates)?;
    prop_assert!(!fates.contains(&Fate::Waiting));
    let marked = |(f, a): (&Fate, &Arrival)| matches!(f, Fate::Sent { ecn, .. } if *ecn != a.ecn);
    let marks = fates.iter().zip(arrivals).filter(|&p| marked(p)).count() as u64;
    prop_assert!(ledger.stats.marked.packets >= marks);
    Ok(fates)
}

/// Records what the queue has dropped.
fn settle(ledger: &mut Ledger<usize>, fates: &mut [Fate]) -> Result<(), TestCaseError> {
    while let Some(d) = ledger.discarded.pop_front() {
        prop_assert_eq!(fates[d.item], Fate::Waiting, "dropped twice, or after it was sent");
        fates[d.item] = Fate::Dropped { at: d.at, reason: d.reason };
    }
    Ok(())
}

/// Valid values of a parameter, including the ends of its range.
fn any_value(p: &Parameter) -> BoxedStrategy<Value> {
    match (p.default, p.range) {
        (_, Some((Value::Time(least), Value::Time(greatest)))) => {
            let few = least.as_nanos()..=greatest.as_nanos().min(least.as_nanos().saturating_mul(10_000));
            prop_oneof![2 => few, 1 => Just(least.as_nanos()), 1 => Just(greatest.as_nanos())]
                .prop_map(|ns| Value::Time(TimeDelta::from_nanos(ns)))
                .boxed()
        }
        (_, Some((Value::Number(least), Value::Number(greatest)))) => {
            (least..=greatest).prop_map(Value::Number).boxed()
        }
        (Value::Switch(_), _) => any::<bool>().prop_map(Value::Switch).boxed(),
        (Value::Amount(_), _) => any_limit().prop_map(Value::Amount).boxed(),
        (default, _) => Just(default).boxed(),
    }
}

fn any_limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unlimited),
        (1u64..50_000).prop_map(|b| Limit::Size(DataSize::from_bytes(b))),
        (1u32..40).prop_map(Limit::Packets),
        (1i64..500).prop_map(|t| Limit::Time(TimeDelta::from_millis(t))),
    ]
}

/// Any discipline of the list with any parameters.
fn any_discipline() -> impl Strategy<Value = Discipline> {
    prop::sample::select(Discipline::all()).prop_flat_map(|discipline| {
        let values: Vec<_> = discipline.parameters().iter().map(any_value).collect();
        (values, any::<bool>()).prop_map(move |(values, by_default)| {
            let mut d = discipline;
            for (p, value) in d.parameters().iter().zip(values).filter(|_| !by_default) {
                d.set(p.name, value).expect("allowed");
            }
            d
        })
    })
}

proptest! {
    /// Every packet leaves, is dropped with a reason or is queued, for any discipline and parameters; and runs are
    /// repeatable.
    #[test]
    fn every_packet_is_accounted_for(
        discipline in any_discipline(), limit in any_limit(), arrivals in any_arrivals(), seed: u64,
    ) {
        let first = run(discipline, limit, &arrivals, seed)?;
        prop_assert_eq!(first, run(discipline, limit, &arrivals, seed)?);
    }

    /// Packets of one flow and one kind keep their order: a dual queue lets those with ECT(1) or CE go first.
    #[test]
    fn no_packet_overtakes_another_of_its_flow(
        discipline in any_discipline(), limit in any_limit(), arrivals in any_arrivals(),
    ) {
        let fates = run(discipline, limit, &arrivals, 1)?;
        for (flow, l4s) in (0..3).flat_map(|flow| [(flow, 0), (flow, 1)]) {
            let sent = fates.iter().zip(&arrivals).filter(|(_, a)| (a.flow, a.ecn.bits() % 2) == (flow, l4s));
            let times: Vec<_> = sent.filter_map(|(f, _)| if let Fate::Sent { at, .. } = f { Some(at) } else { None }).collect();
            prop_assert!(times.is_sorted(), "{times:?}");
        }
    }
}

#[test]
fn each_discipline_is_found_by_its_name_with_its_parameters() {
    let all = Discipline::all();
    let names: BTreeSet<_> = all.iter().map(Discipline::name).collect();
    assert_eq!(names.len(), all.len(), "{names:?}");
    assert!(names.contains("drop-tail") && names.contains("codel"));
    assert_eq!(Discipline::default().name(), "drop-tail");
    assert_eq!(Discipline::by_name("no such discipline"), None);
    for d in all {
        assert_eq!(Discipline::by_name(d.name()), Some(d));
        assert!(d.name().chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{}", d.name());
        assert!(!d.summary().is_empty() && !d.source().is_empty());
        assert_eq!(d.check(), Ok(()));
        for p in d.parameters() {
            assert!(p.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{}", p.name);
            assert_eq!(d.get(p.name), Some(p.default), "{}", p.name);
            assert!(p.allows(p.default) && !p.doc.is_empty(), "{}", p.name);
            for end in p.range.map(|(a, b)| [a, b]).into_iter().flatten() {
                assert!(p.allows(end), "{} may not be {end}", p.name);
            }
        }
    }
}

#[test]
fn errors_of_parameters_name_the_value_and_the_way_out() {
    let mut codel = Discipline::by_name("codel").expect("there");
    let mut error = |name, value| codel.set(name, value).expect_err("refused").to_string();
    let ms = |t| Value::Time(TimeDelta::from_millis(t));
    assert_eq!(error("tarket", ms(5)), "link: queue is tarket: expected target, interval, ecn");
    assert_eq!(error("target", ms(0)), "link: target is 0 ms: expected a time between 0.001 ms and 10000 ms");
    assert_eq!(error("target", Value::Number(5.0)), "link: target is 5: expected a time between 0.001 ms and 10000 ms");
    assert_eq!(error("ecn", ms(5)), "link: ecn is 5 ms: expected true or false");
    let nan = Parameter {
        default: Value::Number(1.0),
        range: Some((Value::Number(0.0), Value::Number(2.0))),
        name: "p",
        doc: String::new(),
    };
    assert!(nan.allows(Value::Number(2.0)) && !nan.allows(Value::Number(f64::NAN)) && !nan.allows(Value::Number(2.1)));
    let mut drop_tail = Discipline::default();
    assert!(drop_tail.set("ecn_threshold", Value::Amount(Limit::Packets(0))).is_err());
    let config = codel::Config { target: TimeDelta::ZERO, ..codel::Config::default() };
    assert!(Discipline::CoDel(config).check().is_err());
}
