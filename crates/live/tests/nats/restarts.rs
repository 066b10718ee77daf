//! Restarts of ICE in mid-call: media go on meanwhile, and follow the end that has moved.

use crate::world::{Announced, World};
use crate::{call, kind};
use std::net::SocketAddr;
use weir_live::ice::{IceEvent, Stage};
use weir_units::TimeDelta;

const DELAY: TimeDelta = TimeDelta::from_millis(50);

fn lost(world: &World) -> bool {
    world.ends.iter().flat_map(|e| &e.events).any(|(_, e)| matches!(e, IceEvent::Lost { .. }))
}

/// A call, and media packets in the next six seconds with what is done at their begin.
fn during(done: impl FnOnce(&mut World)) -> (World, u64) {
    let mut world = call(Some(kind("restricted")));
    let (begin, before) = (world.now, world.ends[1].received[0]);
    done(&mut world);
    world.run_until(begin + TimeDelta::from_secs(6));
    let count = world.ends[1].received[0] - before;
    (world, count)
}

fn moved(world: &mut World) -> SocketAddr {
    world.add_socket(0, "10.0.0.7:6000", Some(kind("port restricted")))
}

#[test]
fn media_go_on_during_a_restart() {
    let (_, calm) = during(|_| {});
    let (mut world, count) = during(|world| {
        let before = world.ends.each_ref().map(|e| e.ice.credentials().clone());
        world.restart(None, DELAY);
        for (end, before) in world.ends.iter().zip(&before) {
            assert_ne!(end.ice.credentials().fragment(), before.fragment());
            assert_ne!(end.ice.credentials().password(), before.password());
        }
    });
    println!("restart at the same address: {count} media packets, {calm} without");
    assert!(count * 100 >= calm * 98, "{count} beside {calm}");
    world.run_until(world.now + TimeDelta::from_secs(40));
    assert!(world.ends.iter().all(|e| !e.ice.is_restarting()) && !lost(&world));
    // Checks go on by the new passwords: pairs answer.
    let counters = world.ends.each_ref().map(|e| e.ice.counters());
    world.run_until(world.now + TimeDelta::from_secs(5));
    for (end, before) in world.ends.iter().zip(counters) {
        let now = end.ice.counters();
        assert!(now.answers >= before.answers + 4 && now.unauthentic == before.unauthentic, "{now:?}");
    }
}

#[test]
fn media_follow_an_end_that_moves() {
    let (_, calm) = during(|_| {});
    // The address before is there until the restart is over.
    let (world, count) = during(|world| {
        let at = moved(world);
        world.restart(Some(at), DELAY);
    });
    println!("moved with the address before: {count} media packets, {calm} without");
    assert!(count * 100 >= calm * 97 && !lost(&world), "{count} beside {calm}");
    let at = world.ends[0].ice.selection(0).expect("a pair").local;
    assert_eq!(at.to_string(), "10.0.0.7:6000");
    assert!(world.ends[1].ice.selection(0).expect("a pair").remote.ip().to_string().starts_with("203.0.113."));

    // It is gone at once: media come back with the first check that is answered.
    let mut world = call(Some(kind("restricted")));
    let (begin, at) = (world.now, moved(&mut world));
    world.dead.push("192.0.2.1:5000".parse().expect("an address"));
    world.restart(Some(at), DELAY);
    world.run_until(begin + TimeDelta::from_secs(1));
    let before = world.ends[1].received[0];
    world.run_until(begin + TimeDelta::from_secs(3));
    let selected = world.ends[0]
        .events
        .iter()
        .find(|(t, e)| *t > begin && matches!(e, IceEvent::Selected { selection, .. } if selection.local == at));
    println!("moved without it: a pair after {}", selected.expect("a pair").0 - begin);
    assert!(selected.is_some_and(|s| s.0 - begin < TimeDelta::from_millis(600)));
    assert!(world.ends[1].received[0] > before + 50 && !lost(&world));
}

#[test]
fn a_restart_without_an_answer_is_given_up() {
    let mut world = call(Some(kind("restricted")));
    let own = world.ends[0].ice.credentials().clone();
    world.ends[0].ice.restart(&[], world.now);
    assert_ne!(world.ends[0].ice.credentials(), &own);
    let before = world.ends[1].received[0];
    world.run_until(world.now + TimeDelta::from_secs(32));
    assert!(!world.ends[0].ice.is_restarting() && !lost(&world));
    assert_eq!(world.ends[0].ice.credentials(), &own, "those that the other end knows");
    assert!(world.ends[1].received[0] > before + 900);
    world.restart(None, DELAY);
    world.run_until(world.now + TimeDelta::from_secs(10));
    assert!(world.ends.iter().all(|e| !e.ice.is_restarting()) && !lost(&world));
}

/// The second of two paths moves to another address, behind a NAT of its own; the other end's NAT lets none of its checks in before
/// that end has sent something there, which it learns in-band by the first path.
#[test]
fn a_path_restarts_alone_and_the_other_end_learns_it_in_band() {
    let mut world = call(Some(kind("port restricted")));
    world.second_path(kind("port restricted"), Announced::InBand).media.expect("a second path");
    world.run_until(world.now + TimeDelta::from_secs(3));
    let (begin, before) = (world.now, world.ends[1].received);
    let own = world.ends[0].ice.credentials().clone();
    let at = world.add_socket(0, "10.0.0.8:6000", Some(kind("port restricted")));
    world.dead.push("10.0.0.7:6000".parse().expect("an address"));
    assert!(world.ends[0].ice.restart_path(1, at, begin));
    world.run_until(begin + TimeDelta::from_secs(4));
    let found = world.ends[0].events.iter().find(|(t, e)| {
        *t > begin && matches!(e, IceEvent::Selected { path: 1, selection } if selection.stage >= Stage::Valid)
    });
    println!("restarted path: a pair after {}", found.expect("a pair").0 - begin);
    assert!(found.is_some_and(|f| f.0 - begin < TimeDelta::from_secs(1)));
    assert_eq!(world.ends[0].ice.selection(1).expect("a pair").local, at);
    assert_eq!(world.ends.each_ref().map(|e| (e.ice.restarts()[1], e.ice.followed())), [(1, 0), (1, 1)]);
    assert_eq!((world.ends[0].ice.credentials(), lost(&world)), (&own, false), "those of other paths stay");
    let media = [0, 1].map(|path| world.ends[1].received[path] - before[path]);
    println!("media packets in 4 s: {media:?}");
    assert!(media[0] > 30 && media[1] > 30, "{media:?}");
}

/// No pair of a path answers at either end: both restart, and meet by the same number.
#[test]
fn both_ends_restart_a_path_that_has_failed() {
    let mut world = call(Some(kind("restricted")));
    let at = [0, 1].map(|n| world.ends[n].ice.local(0).expect("a socket"));
    world.dead.extend(at);
    world.run_until(world.now + TimeDelta::from_secs(7));
    assert!(world.ends.iter().all(|e| e.ice.selection(0).is_none()));
    let now = world.now;
    for (end, at) in world.ends.iter_mut().zip(at) {
        assert!(end.ice.restart_path(0, at, now));
    }
    world.dead.clear();
    let before = world.ends[1].received[0];
    world.run_until(now + TimeDelta::from_secs(3));
    for end in &world.ends {
        assert!(end.ice.selection(0).is_some_and(|s| s.stage == Stage::Nominated), "{:?}", end.events.last());
        assert_eq!((end.ice.restarts()[0], end.ice.followed()), (1, 0));
    }
    assert!(world.ends[1].received[0] > before + 30);
}

/// The other end restarts a path without end: few are followed, and the pair before carries media meanwhile.
#[test]
fn restarts_by_the_other_end_have_a_rate() {
    let mut world = call(Some(kind("restricted")));
    let (begin, before) = (world.now, world.ends[1].received[0]);
    for n in 1..=1_000 {
        let now = world.now;
        world.ends[1].ice.follow_restart(0, n, now);
        world.run_until(now + TimeDelta::from_millis(1));
    }
    let followed = world.ends[1].ice.followed();
    assert!((4..=6).contains(&followed), "{followed} in {}", world.now - begin);
    assert!(world.ends[1].received[0] > before + 20 && !lost(&world));
}
