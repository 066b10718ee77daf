//! Relays: ends that cannot reach each other otherwise, ends that are not to be seen, and servers that lie.

use crate::turn::{Lie, TurnServer};
use crate::world::{Announced, World};
use crate::{DELAYS, SEEDS, kind, range};
use std::net::SocketAddr;
use weir_live::ice::{FromServer, IceEvent, Relay, RelayState};
use weir_units::{TimeDelta, Timestamp};

/// Times of media on the second path in milliseconds, and how many ends have a relay's address in its pair.
fn by_relay(a: &str, b: &str) -> (Vec<Option<i64>>, Vec<usize>) {
    let of = |seed| {
        let mut world = World::with_relays(Some(kind(b)), DELAYS, seed, Lie::None, false);
        world.run_until(Timestamp::from_millis(6_000 + seed as i64 * 137 % 1_000));
        let found = world.second_path(kind(a), Announced::InBand);
        world.run_until(world.now + TimeDelta::from_secs(3));
        let relay = world.turn.at.ip();
        let used = world.ends.iter().filter(|e| e.ice.selection(1).is_some_and(|s| s.local.ip() == relay)).count();
        (found.media.map(|t| t.as_millis()), used)
    };
    (1..=SEEDS).map(of).unzip()
}

#[test]
fn ends_that_cannot_meet_otherwise_meet_by_a_relay() {
    println!("the new interface's NAT | the other end's | media by a relay | ends at a relay");
    for (a, b) in [("port restricted", "symmetric"), ("symmetric", "port restricted"), ("symmetric", "symmetric")] {
        let (times, used) = by_relay(a, b);
        println!("{a} | {b} | {} | {used:?}", range(&times));
        assert!(times.iter().all(|t| t.is_some_and(|t| t < 3_000)), "{a}, {b}: {times:?}");
        assert!(used.iter().all(|n| *n >= 1), "{a}, {b}: {used:?}");
    }
    // Ends that can meet do, with the same addresses of relays at hand.
    let (times, used) = by_relay("port restricted", "port restricted");
    assert!(times.iter().all(Option::is_some) && used.iter().all(|n| *n == 0), "{times:?} {used:?}");
}

#[test]
fn an_end_behind_relays_alone_shows_no_other_address() {
    let mut world = World::with_relays(None, DELAYS, 3, Lie::None, true);
    let relay = world.turn.at.ip();
    for end in &world.ends {
        let candidates = end.ice.candidates();
        assert!(!candidates.is_empty() && candidates.iter().all(|c| c.address.ip() == relay), "{candidates:?}");
        assert!(end.ice.offers().iter().all(|at| at.ip() == relay));
    }
    world.run_until(Timestamp::from_secs(6));
    assert!(world.ends[1].received[0] > 100, "{:?}", world.ends[1].events);
    for end in &world.ends {
        let s = end.ice.selection(0).expect("a pair");
        assert_eq!((s.local.ip(), s.remote.ip()), (relay, relay), "{s:?}");
    }
    assert!(world.tap.iter().all(|(from, to, _)| from.ip() == relay || to.ip() == relay), "only to the server");
    assert!(world.turn.by_channel * 10 > world.turn.passed * 9, "{} of {}", world.turn.by_channel, world.turn.passed);
    // A check that comes to the socket itself is not answered.
    let check = world.tap.iter().rev().find(|t| t.2.len() > 60).expect("one").2.clone();
    let before = world.tap.len();
    world.launch("198.18.0.1:9".parse().expect("an address"), "192.0.2.1:5000".parse().expect("an address"), check, 0);
    world.run_until(world.now + TimeDelta::from_millis(200));
    assert!(!world.tap.iter().any(|(_, to, _)| to.ip().to_string() == "198.18.0.1"), "{before}");
}

/// Media packets in ten seconds of a call that has another pair, and the world then.
fn beside(lie: Lie) -> (u64, World) {
    let mut world = World::with_relays(Some(kind("full cone")), DELAYS, 3, lie, false);
    world.run_until(Timestamp::from_secs(5));
    let before = world.ends[1].received[0];
    world.run_until(world.now + TimeDelta::from_secs(10));
    (world.ends[1].received[0] - before, world)
}

#[test]
fn a_server_that_lies_costs_its_address_and_no_more() {
    let victim: SocketAddr = "198.18.9.9:9".parse().expect("an address");
    let (calm, _) = beside(Lie::None);
    // The state of the relay, datagrams to the server in 15 s at most.
    let lies = [
        (Lie::Silence, RelayState::Asking, 14),
        (Lie::Realms, RelayState::Failed, 40),
        (Lie::Nonces, RelayState::Failed, 40),
        (Lie::Lifetime(0), RelayState::Failed, 40),
        (Lie::Lifetime(1), RelayState::Failed, 60),
        (Lie::Lifetime(u32::MAX), RelayState::Ready, 400),
        (Lie::Unprotected, RelayState::Asking, 14),
        (Lie::Refusal, RelayState::Ready, 40),
        (Lie::Victim(victim), RelayState::Ready, 400),
        (Lie::Victim("0.0.0.0:1".parse().expect("an address")), RelayState::Failed, 40),
        (Lie::Strangers(50), RelayState::Ready, 400),
        (Lie::Requests(50), RelayState::Ready, 400),
    ];
    for (lie, state, most) in lies {
        let (count, world) = beside(lie);
        let relays: Vec<_> =
            world.ends.iter().flat_map(|e| e.ice.relays().map(|(_, r)| (r.state(), r.counters()))).collect();
        println!(
            "{lie:?}: {count} media packets, {calm} without a lie; {} datagrams to the server; {relays:?}",
            world.turn.asked
        );
        assert!(count * 100 >= calm * 98 && count * 98 <= calm * 100, "{lie:?}: {count} beside {calm}");
        assert!(relays.iter().all(|r| r.0 == state), "{lie:?}: {relays:?}");
        assert!(world.turn.asked <= most * 2, "{lie:?}: {}", world.turn.asked);
        for end in &world.ends {
            assert!(!end.events.iter().any(|(_, e)| matches!(e, IceEvent::Lost { .. })), "{lie:?}: {:?}", end.events);
            assert!(end.ice.measures(0).len() <= 32);
        }
        let unexpected: u64 = relays.iter().map(|r| r.1.unexpected).sum();
        assert!(!matches!(lie, Lie::Strangers(_) | Lie::Requests(_)) || unexpected > 100, "{lie:?}: {relays:?}");
    }
}

#[test]
fn an_allocation_is_kept_for_hours_and_given_back() {
    let mut server = TurnServer::new(Lie::None);
    let client: SocketAddr = "192.0.2.1:5000".parse().expect("an address");
    let peer: SocketAddr = "203.0.113.9:6000".parse().expect("an address");
    let mut now = Timestamp::ZERO;
    let mut relay = Relay::new(client, &server.account(), now);
    let turn = |relay: &mut Relay, server: &mut TurnServer, now: Timestamp| {
        relay.handle_timeout(now);
        while let Some(bytes) = relay.poll_transmit() {
            for (_, to, bytes) in server.on_client(now, client, &bytes) {
                if to == client {
                    relay.handle_datagram(now, &bytes);
                }
            }
        }
    };
    for second in 0..3 * 3_600 {
        for _ in 0..4 {
            turn(&mut relay, &mut server, now);
            now += TimeDelta::from_millis(250);
        }
        if second == 2 {
            let at = relay.relayed().expect("lent");
            assert!(server.on_peer(now, at, peer, b"early").is_none(), "no permission yet");
            assert_eq!(relay.wrap(now, peer, b"first"), None, "it waits for the permission");
        }
        if second == 4 {
            assert_eq!(server.passed, 1, "it was sent with the permission");
            relay.prefer(peer, now);
        }
        if second > 6 && second % 60 == 0 {
            let at = relay.relayed().expect("lent");
            assert_eq!((server.allocations(now), server.permissions(now)), (1, 1), "after {second} s");
            let (_, _, bytes) = server.on_peer(now, at, peer, b"media").expect("permitted");
            assert_eq!(relay.handle_datagram(now, &bytes), FromServer::Data { from: peer, bytes: b"media".to_vec() });
            let wrapped = relay.wrap(now, peer, b"back").expect("permitted");
            assert_eq!(wrapped.len(), 8, "by a channel");
            assert_eq!(server.on_client(now, client, &wrapped)[0].1, peer);
        }
    }
    println!("{} messages in three hours", server.asked);
    assert!(server.asked < 1_000);
    relay.close(now);
    for _ in 0..8 {
        turn(&mut relay, &mut server, now);
        now += TimeDelta::from_millis(60);
    }
    assert_eq!((server.allocations(now), relay.state()), (0, RelayState::Returned));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    /// No datagram of a server makes a relay panic or send without bound.
    #[test]
    fn no_datagram_of_a_server_panics(
        datagrams in proptest::collection::vec((0u8..5, proptest::collection::vec(proptest::num::u8::ANY, 0..120)), 1..40)
    ) {
        let mut server = TurnServer::new(Lie::None);
        let client: SocketAddr = "192.0.2.1:5000".parse().expect("an address");
        let mut now = Timestamp::ZERO;
        let mut relay = Relay::new(client, &server.account(), now);
        let (mut last, mut sent) = (Vec::new(), 0);
        for (kind, noise) in datagrams {
            now += TimeDelta::from_millis(60);
            relay.handle_timeout(now);
            relay.permit([203, 0, 113, 9].into(), now);
            while let Some(bytes) = relay.poll_transmit() {
                sent += 1;
                last = bytes.clone();
                if kind < 3 {
                    for (_, _, bytes) in server.on_client(now, client, &bytes) {
                        relay.handle_datagram(now, &bytes);
                    }
                }
            }
            let mut bytes = last.clone();
            // An answer to the last request with a body of noise, or noise.
            if kind == 3 && bytes.len() >= 20 {
                bytes.truncate(20);
                bytes[0] = 1;
                let whole = noise.len() / 4 * 4;
                bytes[2..4].copy_from_slice(&(whole as u16).to_be_bytes());
                bytes.extend(&noise[..whole]);
            } else {
                bytes = noise;
            }
            relay.handle_datagram(now, &bytes);
        }
        assert!(sent < 400);
    }
}
