//! Attacks on ICE by strangers, by whoever copies checks on the way, and by a server that lies: state stays bounded, each
//! kind has its counter, and the call keeps its rate.

use crate::world::World;
use crate::{DELAYS, call, kind};
use std::net::SocketAddr;
use weir_live::ice::stun::{HEADER, answer, binding_request, is_binding_request};
use weir_live::ice::{AgentConfig, IceEvent};
use weir_units::{TimeDelta, Timestamp};

/// Datagrams of an attacker in each millisecond.
const EACH: usize = 20;
const DURATION: TimeDelta = TimeDelta::from_secs(5);

fn stranger(n: usize) -> SocketAddr {
    SocketAddr::from(([198, 18, (n / 200 % 200) as u8, 1 + (n % 200) as u8], 1_024 + (n % 60_000) as u16))
}

/// Media packets received in the time of an attack: `datagrams` gives what is sent to both ends.
fn received(mut datagrams: impl FnMut(&World, usize) -> Option<(SocketAddr, Vec<u8>)>) -> (World, u64) {
    let mut world = call(Some(kind("full cone")));
    world.tap.clear();
    world.run_until(world.now + TimeDelta::from_secs(3));
    let targets = [0, 1].map(|n| world.ends[1 - n].routes[0].expect("a route").1);
    let (begin, before) = (world.now, world.ends[1].received[0]);
    let mut n = 0;
    while world.now < begin + DURATION {
        for _ in 0..EACH {
            for to in targets {
                if let Some((from, bytes)) = datagrams(&world, n) {
                    world.launch(from, to, bytes, 0);
                }
                n += 1;
            }
        }
        world.run_until(world.now + TimeDelta::from_millis(1));
    }
    let count = world.ends[1].received[0] - before;
    (world, count)
}

fn keeps_its_rate(name: &str, world: &World, count: u64, calm: u64) {
    let counters = [0, 1].map(|n| world.ends[n].ice.counters());
    println!("{name}: {count} media packets, {calm} without; {counters:?}");
    assert!(count * 100 >= calm * 95 && count * 95 <= calm * 100, "{name}: {count} beside {calm}");
    for end in &world.ends {
        assert!(!end.events.iter().any(|(_, e)| matches!(e, IceEvent::Lost { .. })), "{name}: {:?}", end.events);
        assert!(end.ice.path_count() <= 8 && end.ice.measures(0).len() <= 32);
    }
}

/// A check of the other end, as somebody on the way has seen it, for the target of number `n`.
fn seen(world: &World, n: usize) -> Option<Vec<u8>> {
    let to_first = n.is_multiple_of(2);
    let is_for = |to: &SocketAddr| (*to == SocketAddr::from(([192, 0, 2, 1], 5_000))) == to_first;
    world
        .tap
        .iter()
        .rfind(|(_, to, bytes)| is_for(to) && is_binding_request(bytes) && bytes.len() > HEADER)
        .map(|t| t.2.clone())
}

#[test]
fn a_call_keeps_its_rate_under_floods_forgeries_and_copies() {
    let (_, calm) = received(|_, _| None);
    let garbage = |n: usize| {
        let mut bytes = binding_request([n as u8; 12]).to_vec();
        bytes.extend((0..40).map(|i| (n * 31 + i * 7) as u8));
        bytes[3] = 40;
        bytes
    };
    let (world, count) = received(|_, n| Some((stranger(n), garbage(n))));
    keeps_its_rate("malformed", &world, count, calm);
    assert!(world.ends.iter().all(|e| e.ice.counters().malformed > 90_000));

    // The names of both ends, which whoever is on the way knows, and no password.
    let forged = |world: &World, n: usize| {
        let mut bytes = seen(world, n)?;
        let at = bytes.len() - 20;
        bytes[at] ^= 1;
        bytes[8..12].copy_from_slice(&(n as u32).to_be_bytes());
        Some((stranger(n), bytes))
    };
    let (world, count) = received(forged);
    keeps_its_rate("forged", &world, count, calm);
    assert!(world.ends.iter().all(|e| e.ice.counters().unauthentic > 90_000));

    let (world, count) = received(|world, n| Some((stranger(n), seen(world, n)?)));
    keeps_its_rate("copied", &world, count, calm);
    for end in &world.ends {
        let c = end.ice.counters();
        assert!(c.replayed + c.too_often + c.too_many > 90_000, "{c:?}");
        // Checks that copies provoke go to few addresses.
        assert!(end.ice.measures(0).len() <= 2 + 16, "{:?}", end.ice.measures(0).len());
    }

    // Copies from the true source: they are answered, at a rate that leaves room for true ones.
    let again = |world: &World, n: usize| {
        let from = world.ends[n % 2].routes[0].map(|r| r.1)?;
        Some((from, seen(world, n)?))
    };
    let (world, count) = received(again);
    keeps_its_rate("repeated", &world, count, calm);
    assert!(world.ends.iter().all(|e| e.ice.counters().repeated > 50_000 && e.ice.counters().too_often == 0));

    // Answers that nobody waits for.
    let unasked = |_: &World, n: usize| {
        Some((stranger(n), answer(&binding_request([n as u8; 12]), stranger(n)).expect("a request")))
    };
    let (world, count) = received(unasked);
    keeps_its_rate("unasked answers", &world, count, calm);
}

#[test]
fn absurd_attributes_change_nothing() {
    let absurd = |_: &World, n: usize| {
        // Lengths up to, at and beyond the end, attributes in any order, up to the longest datagram.
        let mut bytes = binding_request([n as u8; 12]).to_vec();
        let names = [0x0006u16, 0x0008, 0x0009, 0x0020, 0x0024, 0x0025, 0x8029, 0x802a, 0x8028, 0xc057, 0x0013];
        for i in 0..1 + n % 40 {
            let length = [0u16, 1, 3, 4, 8, 20, 64, 65_535][(n / 3 + i) % 8];
            bytes.extend(names[(n + i) % names.len()].to_be_bytes());
            bytes.extend(length.to_be_bytes());
            bytes.extend(std::iter::repeat_n(0xff, usize::from(length.min(64)).next_multiple_of(4)));
        }
        let length = (bytes.len() - HEADER) as u16;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes[0] = [0, 1, 0, 1][n % 4];
        bytes[1] = [1, 1, 0x11, 0x11][n / 4 % 4];
        Some((stranger(n), bytes))
    };
    let (_, calm) = received(|_, _| None);
    let (world, count) = received(absurd);
    keeps_its_rate("absurd", &world, count, calm);
}

#[test]
fn a_server_that_lies_costs_its_candidate_and_no_more() {
    // It sends the checks of the other end to a victim.
    let victim: SocketAddr = "198.18.9.9:9".parse().expect("an address");
    let mut world = World::with_server(Some(kind("full cone")), DELAYS, AgentConfig::default(), 3, Some(victim));
    world.run_until(Timestamp::from_secs(8));
    // The end at the public address reaches the other one by the source of its checks.
    assert!(world.ends[1].received[0] > 100, "{:?}", world.ends[1].events);
    let to_victim = world.tap.iter().filter(|t| t.1 == victim).count();
    println!("{to_victim} checks to the victim");
    assert!((1..=20).contains(&to_victim), "{to_victim}");
}
