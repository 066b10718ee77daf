//! Restarts of ICE in mid-call: media go on meanwhile, and follow the end that has moved.

use crate::world::World;
use crate::{call, kind};
use std::net::SocketAddr;
use weir_live::ice::IceEvent;
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
