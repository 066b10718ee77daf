//! Second paths through NATs of four kinds, in memory.

mod world;

use weir_live::ice::AgentConfig;
use weir_path::NatConfig;
use weir_units::{TimeDelta, Timestamp};
use world::{Delays, Told, World};

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

#[test]
fn a_second_path_comes_up_through_two_port_restricted_nats() {
    let mut world = call(Some(kind("port restricted")));
    let found = world.second_path(kind("port restricted"), Told::InBand);
    println!("{found:?}");
    for end in &world.ends {
        println!("{:?} {:?}", end.events, end.ice.counters());
    }
    assert!(found.media.is_some_and(|t| (120..1_000).contains(&t.as_millis())), "{found:?}");
    let before = world.ends[1].received[1];
    world.run_until(world.now + TimeDelta::from_secs(3));
    assert!(world.ends[1].received[1] > before + 50, "{:?}", world.ends[1].received);
    assert!(world.ends.iter().all(|e| e.refused_paths == 0));
}
