//! Second paths through NATs of four kinds, in memory.

mod attacks;
mod relays;
mod restarts;
mod turn;
mod world;

use weir_live::ice::{AgentConfig, IceEvent};
use weir_path::NatConfig;
use weir_units::{TimeDelta, Timestamp};
use world::{Announced, Delays, World};

const DELAYS: Delays = Delays { ends: TimeDelta::from_millis(30), server: TimeDelta::from_millis(10) };

fn kind(name: &str) -> NatConfig {
    NatConfig::KINDS.iter().find(|k| k.0 == name).expect("a kind").1
}

fn call(other: Option<NatConfig>) -> World {
    let mut world = World::new(other, DELAYS, AgentConfig::default(), 3);
    world.run_until(Timestamp::from_secs(8));
    assert!(world.ends[1].received[0] > 100, "{:?}", world.ends[1].events);
    world
}

/// Whether ends behind NATs of these kinds can reach each other without a relay: a NAT that assigns a port to each
/// destination fails where the other end's filter has to know it before.
fn can_meet(a: &str, b: &str) -> bool {
    let [one, other] = [(a, b), (b, a)].map(|(x, y)| x == "symmetric" && (y == "symmetric" || y == "port restricted"));
    !one && !other
}

/// Times of media on the second path in milliseconds, by the other end's seed.
fn times(a: NatConfig, b: NatConfig, way: Announced) -> Vec<Option<i64>> {
    let of = |seed| {
        let mut world = World::new(Some(b), DELAYS, AgentConfig::default(), seed);
        world.run_until(Timestamp::from_millis(6_000 + seed as i64 * 137 % 1_000));
        let found = world.second_path(a, way);
        assert!(world.ends.iter().all(|e| e.refused_paths == 0));
        found.media.map(|t| t.as_millis())
    };
    (1..=SEEDS).map(of).collect()
}

/// Calls of each pair of kinds.
const SEEDS: u64 = 5;

fn range(times: &[Option<i64>]) -> String {
    let all: Vec<i64> = times.iter().copied().flatten().collect();
    match (all.iter().min(), all.iter().max()) {
        (Some(least), Some(most)) => format!("{} ({least} to {most})", all.iter().sum::<i64>() / all.len() as i64),
        _ => "none".into(),
    }
}

#[test]
fn a_second_path_is_found_between_kinds_that_can_meet_and_sooner_in_band() {
    let exchanges = |n, ms| Announced::OutOfBand { exchanges: n, delay: TimeDelta::from_millis(ms) };
    let ways = [Announced::InBand, exchanges(1, 50), exchanges(2, 50), exchanges(1, 250)];
    println!(
        "the new interface's NAT | the other end's | in-band | 1 exchange, 50 ms | 2 exchanges, 50 ms | 1, 250 ms"
    );
    for (a, new) in NatConfig::KINDS {
        for (b, other) in NatConfig::KINDS {
            let all = ways.map(|way| times(new, other, way));
            println!("{a} | {b} | {}", all.iter().map(|t| range(t)).collect::<Vec<_>>().join(" | "));
            for times in &all {
                assert!(times.iter().all(|t| t.is_some() == can_meet(a, b)), "{a}, {b}: {times:?}");
            }
            if can_meet(a, b) {
                let [in_band, once, _, slow] = all.each_ref().map(|t| t.iter().flatten().sum::<i64>());
                assert!(in_band < slow, "{a}, {b}: {all:?}");
                assert!(all.iter().flatten().flatten().all(|t| (90..2_500).contains(t)), "{a}, {b}: {all:?}, {once}");
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_times() {
    let run = || times(kind("restricted"), kind("port restricted"), Announced::InBand);
    assert_eq!(run(), run());
}

#[test]
fn a_dead_path_is_lost_measured_and_found_again() {
    let mut world = call(Some(kind("restricted")));
    let found = world.second_path(kind("full cone"), Announced::InBand);
    assert!(found.media.is_some(), "{found:?}");
    world.run_until(world.now + TimeDelta::from_secs(10));
    let measured = |world: &World| {
        let selected = world.ends[0].ice.selection(1).expect("a pair");
        *world.ends[0].ice.measures(1).iter().find(|m| m.remote == selected.remote).expect("measured")
    };
    let m = measured(&world);
    assert_eq!(m.rtt, Some(DELAYS.ends * 2), "{m:?}");
    assert!(m.answered >= 9 && m.loss() == Some(0.0), "{m:?}");
    let died = world.now;
    world.dead.push("10.0.0.7:6000".parse().unwrap());
    world.run_until(died + TimeDelta::from_secs(10));
    for end in &world.ends {
        let lost = end.events.iter().find(|(at, e)| *at > died && matches!(e, IceEvent::Lost { path: 1 }));
        let after = lost.expect("lost").0 - died;
        assert!((4_000..=5_100).contains(&after.as_millis()), "{after}");
        assert!(end.ice.selection(1).is_none() && end.ice.selection(0).is_some());
    }
    let before = world.ends[1].received;
    world.run_until(world.now + TimeDelta::from_secs(2));
    assert_eq!(world.ends[1].received[1], before[1], "nothing without consent");
    assert!(world.ends[1].received[0] > before[0] + 50);
    world.dead.clear();
    world.run_until(world.now + TimeDelta::from_secs(70));
    assert!(world.ends[1].received[1] > before[1] + 100, "{:?} {:?}", world.ends[0].events, world.ends[1].received);
}
