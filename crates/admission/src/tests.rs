use super::*;
use core::net::{IpAddr, Ipv4Addr};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir_units::{TimeDelta, Timestamp};

const QUIET: TimeDelta = TimeDelta::from_secs(2);

fn limits(strangers: usize, proven: usize, per_source: usize, kept: usize) -> Limits {
    Limits { strangers, usual: 1, proven, per_source, kept, quiet: QUIET }
}

fn source(n: u32) -> Source {
    Source::from(IpAddr::V4(Ipv4Addr::from_bits(0x7f00_0000 + n)))
}

fn ms(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}

/// Connections of attackers without end, `per_second` of them, from `addresses`; returns for how long a newcomer with an
/// address of its own keeps its place, and the time at which it lost it at the latest.
fn tenure(addresses: u32, places: usize, per_second: i64) -> i64 {
    let mut doors = Doors::new(limits(places, 4, 4, 1));
    let flood =
        |doors: &mut Doors<u32>, i: i64| doors.enter(ms(i * 1_000 / per_second), source(i as u32 % addresses), 0).1;
    for i in 0..2 * per_second {
        flood(&mut doors, i);
    }
    doors.enter(ms(2_000), source(60_000), 7);
    let lost = (2 * per_second..12 * per_second).find(|i| flood(&mut doors, *i) == Some(7));
    lost.map_or(i64::MAX, |i| i * 1_000 / per_second - 2_000)
}

#[test]
fn a_newcomer_outlasts_a_storm_from_fewer_addresses_than_places() {
    for addresses in [1, 8, 17, 200, 255] {
        assert_eq!(tenure(addresses, 256, 1_000), i64::MAX, "{addresses}");
    }
    // From more addresses than places it has the time in which all places change hands: 256 at 1,000 a second.
    assert_eq!(tenure(50_000, 256, 1_000), 255);
}

#[test]
fn a_newcomer_behind_the_attackers_address_has_the_time_of_all_places() {
    let mut doors = Doors::new(limits(256, 4, 4, 1));
    for i in 0..1_000 {
        doors.enter(ms(i), source(1), 0);
    }
    doors.enter(ms(1_000), source(1), 7);
    let lost = (1_000..2_000).find(|i| doors.enter(ms(*i), source(1), 0).1 == Some(7));
    assert_eq!(lost, Some(1_255));
}

#[test]
fn a_browsers_connections_count_as_one() {
    let mut doors = Doors::new(Limits { usual: 6, ..limits(64, 4, 4, 1) });
    // Seven of one source, which give way first however new they are, and others that are older.
    (0..57).for_each(|i| {
        doors.enter(ms(i), source(100 + i as u32), 0);
    });
    (0..7).for_each(|i| {
        doors.enter(ms(100 + i), source(1), 7);
    });
    assert_eq!(doors.enter(ms(200), source(2), 0).1, Some(7));
    // The six that are left are like all others: the oldest gives way.
    assert_eq!(doors.enter(ms(201), source(3), 0).1, Some(0));
}

#[test]
fn who_gets_on_outlasts_who_does_not() {
    let mut doors = Doors::new(limits(2, 4, 4, 1));
    let (first, _) = doors.enter(ms(0), source(1), 1);
    doors.enter(ms(10), source(1), 2);
    doors.progress(ms(20), first);
    assert_eq!(doors.enter(ms(30), source(2), 3).1, Some(2));
}

#[test]
fn proven_places_are_out_of_reach_for_strangers() {
    let mut doors = Doors::new(limits(2, 2, 2, 1));
    let (one, _) = doors.enter(ms(0), source(1), 1);
    assert_eq!(doors.prove(ms(1), one), Proof::Admitted(None));
    for i in 0..1_000 {
        assert_ne!(doors.enter(ms(100 * i), source(2), 0).1, Some(1), "however long it is idle");
    }
    assert_eq!((doors.strangers(), doors.proven()), (2, 1));
    assert_eq!(doors.prove(ms(2), one), Proof::Admitted(None), "once is enough");
    assert_eq!((doors.leave(one), doors.leave(one)), (Some(1), None));
}

#[test]
fn a_quiet_proven_place_gives_way_and_one_in_use_does_not() {
    let mut doors = Doors::new(limits(4, 2, 2, 2));
    let mut proven = |at, from, item| {
        let (ticket, _) = doors.enter(ms(at), source(from), item);
        (ticket, doors.prove(ms(at), ticket))
    };
    proven(0, 1, 1);
    proven(100, 1, 2);
    let (third, answer) = proven(200, 2, 3);
    assert_eq!(answer, Proof::Waits, "both are in use, and their source has no more than is kept for it");
    assert!(doors.is_stranger(third));
    // The first has been quiet for two seconds.
    assert_eq!(doors.prove(ms(2_000), third), Proof::Admitted(Some(1)));
    assert!(!doors.is_stranger(third));
}

#[test]
fn places_in_use_beyond_the_kept_share_give_way_to_who_has_fewer() {
    let mut doors = Doors::new(limits(4, 4, 4, 2));
    let mut proven = |from, item| {
        let (ticket, _) = doors.enter(ms(item), source(from), item);
        doors.prove(ms(item), ticket)
    };
    (1..=4).for_each(|i| assert_eq!(proven(1, i), Proof::Admitted(None)));
    assert_eq!(proven(2, 5), Proof::Admitted(Some(1)));
    assert_eq!(proven(3, 6), Proof::Admitted(Some(2)));
    // Two of the first source are left, which are kept for it.
    assert_eq!(proven(4, 7), Proof::Waits);
}

#[test]
fn a_source_has_a_bound_of_its_own() {
    let mut doors = Doors::new(limits(4, 8, 2, 2));
    let mut proven = |at, item| {
        let (ticket, _) = doors.enter(ms(at), source(1), item);
        doors.prove(ms(at), ticket)
    };
    assert_eq!(
        [proven(0, 1), proven(1, 2), proven(2, 3)],
        [Proof::Admitted(None), Proof::Admitted(None), Proof::Waits]
    );
    assert_eq!(proven(2_001, 4), Proof::Admitted(Some(1)), "its own quiet one gives way");
}

#[test]
fn a_network_of_ipv6_is_one_source() {
    let of = |text: &str| Source::from(text.parse::<IpAddr>().expect("an address"));
    assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff:ffff:ffff:ffff"));
    assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
}

#[test]
fn a_hall_closes_who_gives_way_and_a_guest_leaves_by_itself() {
    let (hall, closed) = (Hall::new(limits(1, 1, 1, 1)), Arc::new(AtomicUsize::new(0)));
    let enter = |n| {
        let closed = Arc::clone(&closed);
        hall.enter(ms(n), source(1), move || {
            closed.fetch_add(1, Ordering::Relaxed);
        })
    };
    let count = || closed.load(Ordering::Relaxed);
    let first = enter(0);
    first.progress(ms(0));
    let second = enter(1);
    assert_eq!(count(), 1);
    drop(first);
    second.prove(ms(2));
    let third = enter(3);
    assert_eq!(count(), 1, "{hall:?}");
    third.prove(ms(4_000));
    assert_eq!(count(), 2, "the second was quiet");
    drop((second, third));
    drop(enter(5));
    hall.shed();
    assert_eq!(count(), 2, "nobody is there");
    let _guest = enter(6);
    hall.shed();
    assert_eq!(count(), 3);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Enter(u32),
    Prove(usize),
    Progress(usize),
    Leave(usize),
    Shed,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..6_u32).prop_map(Step::Enter),
        3 => (0..40_usize).prop_map(Step::Prove),
        2 => (0..40_usize).prop_map(Step::Progress),
        1 => (0..40_usize).prop_map(Step::Leave),
        1 => Just(Step::Shed),
    ]
}

/// A place as the test knows it.
#[derive(Clone, Copy, Debug)]
struct Known {
    from: u32,
    moved: i64,
    is_proven: bool,
}

proptest! {
    /// Bounds hold; who gives way is where the rule says; nothing is lost or given back twice.
    #[test]
    fn the_rule_holds(
        bounds in (1..6_usize, 1..6_usize, 1..4_usize, 0..3_usize),
        steps in prop::collection::vec((step(), 0..1_500_i64), 1..120),
    ) {
        let (strangers, proven, per_source, kept) = bounds;
        let mut doors = Doors::new(limits(strangers, proven, per_source, kept));
        let (mut known, mut tickets, mut now) = (BTreeMap::<usize, Known>::new(), Vec::new(), 0);
        for (step, wait) in steps {
            now += wait;
            let count = |known: &BTreeMap<usize, Known>, from: u32, proven: bool| {
                known.values().filter(|k| k.from == from && k.is_proven == proven).count()
            };
            match step {
                Step::Enter(from) => {
                    let id = tickets.len();
                    let (ticket, gone) = doors.enter(ms(now), source(from), id);
                    tickets.push(ticket);
                    if let Some(gone) = gone {
                        let of = known[&gone];
                        prop_assert!(!of.is_proven);
                        let held = |k: &Known| count(&known, k.from, false) + usize::from(k.from == from);
                        let strangers = || known.values().filter(|k| !k.is_proven);
                        let most = strangers().map(held).max().unwrap_or(0);
                        prop_assert_eq!(held(&of), most, "of the source with most places");
                        let peers = strangers().filter(|k| held(k) == most);
                        prop_assert_eq!(peers.map(|k| k.moved).min(), Some(of.moved), "the longest idle");
                        known.remove(&gone);
                    }
                    known.insert(id, Known { from, moved: now, is_proven: false });
                }
                Step::Prove(n) if !tickets.is_empty() => {
                    let id = n % tickets.len();
                    let before = known.clone();
                    match doors.prove(ms(now), tickets[id]) {
                        Proof::Admitted(gone) => {
                            if let Some(gone) = gone {
                                let of = before[&gone];
                                prop_assert!(of.is_proven);
                                let in_use = ms(now).saturating_since(ms(of.moved)) < QUIET;
                                prop_assert!(!in_use || count(&before, of.from, true) > kept, "a kept place in use");
                                known.remove(&gone);
                            }
                            if let Some(k) = known.get_mut(&id) {
                                (k.moved, k.is_proven) = (now, true);
                            }
                        }
                        Proof::Waits => {
                            let k = known.get_mut(&id).expect("it has a place");
                            prop_assert!(!k.is_proven);
                            k.moved = now;
                        }
                    }
                }
                Step::Progress(n) if !tickets.is_empty() => {
                    let id = n % tickets.len();
                    doors.progress(ms(now), tickets[id]);
                    if let Some(k) = known.get_mut(&id) {
                        k.moved = now;
                    }
                }
                Step::Leave(n) if !tickets.is_empty() => {
                    let id = n % tickets.len();
                    prop_assert_eq!(doors.leave(tickets[id]).is_some(), known.remove(&id).is_some());
                }
                Step::Shed => {
                    let gone = doors.shed();
                    prop_assert_eq!(gone.is_some(), known.values().any(|k| !k.is_proven));
                    if let Some(gone) = gone {
                        prop_assert!(known.remove(&gone).is_some_and(|k| !k.is_proven));
                    }
                }
                _ => {}
            }
            let proven_now = known.values().filter(|k| k.is_proven).count();
            prop_assert_eq!((doors.strangers(), doors.proven()), (known.len() - proven_now, proven_now));
            prop_assert!(doors.strangers() <= strangers && doors.proven() <= proven);
            prop_assert!((0..6).all(|from| count(&known, from, true) <= per_source));
            let there: Vec<usize> = doors.iter().map(|(_, id)| *id).collect();
            prop_assert_eq!(there, known.keys().copied().collect::<Vec<_>>());
            for (id, ticket) in tickets.iter().enumerate() {
                let stranger = known.get(&id).map(|k| !k.is_proven);
                prop_assert_eq!(doors.is_stranger(*ticket), stranger.unwrap_or(false));
                prop_assert_eq!(doors.get_mut(*ticket).copied(), stranger.map(|_| id));
            }
        }
    }
}
