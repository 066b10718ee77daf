//! Overlays of distribution trees: nodes join, fail and leave.

mod hostile;
mod network;
mod peers;

use network::Network;
use weir_units::{TimeDelta, Timestamp};

const fn ms(ms: i64) -> TimeDelta {
    TimeDelta::from_millis(ms)
}

/// An overlay of this many nodes that joined at once, each of which can feed six children, after three seconds.
fn joined_network(nodes: usize, trees: u8, loss: f64, seed: u64) -> Network {
    let mut network = Network::new(trees, u16::from(trees) * 3, loss, seed);
    (0..nodes).for_each(|_| {
        network.join(6);
    });
    network.run(ms(3_000));
    network
}

#[test]
fn nodes_that_join_at_once_receive_everything_within_a_second() {
    let mut network = joined_network(60, 5, 0.0, 1);
    network.check_trees(5);
    let worst = network.present().map(|m| m.node.join_time().expect("it has joined")).max();
    assert!(worst > Some(ms(50)) && worst < Some(ms(600)), "{worst:?}");
    network.run(ms(1_000));
    let (from, to) = (Timestamp::from_millis(1_000), Timestamp::from_millis(3_500));
    let sent = network.sent_between(from, to);
    assert_eq!(sent.len(), 250);
    for member in network.present() {
        assert!(sent.iter().all(|s| member.arrived.contains_key(s)));
        assert!(member.node.is_connected());
    }
    // Each relay sends about what it receives.
    let most = network.present().map(|m| m.node.children()).max();
    assert!(most <= Some(6 + 2), "{most:?}");
    let counters = network.focus.counters();
    assert_eq!((counters.joined, counters.failed, counters.strangers, counters.malformed), (60, 0, 0, 0));
}

#[test]
fn streams_are_whole_within_two_seconds_after_a_fifth_has_vanished() {
    let mut network = joined_network(80, 5, 0.0, 2);
    for member in network.members.iter_mut().skip(1).step_by(5) {
        member.gone = true;
    }
    assert_eq!(network.present().count(), 64);
    let at = network.now;
    network.run(ms(5_000));
    network.check_trees(5);
    let during = network.sent_between(at, at + ms(2_000));
    let after = network.sent_between(at + ms(2_000), at + ms(4_000));
    let before = network.sent_between(at - ms(2_000), at);
    let (mut missed, mut delayed) = (0, 0);
    for member in network.present() {
        // From two seconds after on nothing is missed or late; before, what was missed has been repeated.
        for s in &after {
            let delay = member.arrived.get(s).map(|a| *a - network.sent[s]);
            assert!(delay.is_some_and(|d| d < ms(400)), "{s} after {delay:?}");
        }
        missed += during.union(&before).filter(|s| !member.arrived.contains_key(s)).count();
        delayed +=
            during.iter().filter(|s| member.arrived.get(s).is_some_and(|a| *a - network.sent[s] > ms(300))).count();
    }
    // Of 64 x 400 packets.
    assert!(missed <= 25, "{missed}");
    assert!(delayed > 100, "parents were missed: {delayed}");
    let counters = network.focus.counters();
    assert_eq!((counters.joined, counters.failed), (80, 16));
}

#[test]
fn a_node_leaves_without_loss_to_those_below() {
    let mut network = joined_network(40, 4, 0.0, 3);
    let parents: Vec<usize> =
        (1..network.members.len()).filter(|i| network.members[*i].node.children() > 2).take(4).collect();
    assert_eq!(parents.len(), 4);
    let at = network.now;
    for index in &parents {
        network.act(*index, |node, now| node.leave(now));
    }
    network.run(ms(3_000));
    for index in &parents {
        assert!(network.members[*index].node.has_left());
        network.members[*index].gone = true;
    }
    network.check_trees(4);
    let sent = network.sent_between(at - ms(500), at + ms(2_500));
    for member in network.present() {
        assert!(sent.iter().all(|s| member.arrived.contains_key(s)), "node {} lacks none", member.node.id());
        assert_eq!(member.node.counters().lost_parents, 0);
    }
    assert_eq!((network.focus.counters().left, network.focus.counters().failed), (4, 0));
}

#[test]
fn random_loss_is_repaired_by_other_parents() {
    let mut network = joined_network(40, 5, 0.02, 4);
    network.run(ms(4_000));
    let sent = network.sent_between(Timestamp::from_millis(3_000), Timestamp::from_millis(6_000));
    let missed: usize = network.present().map(|m| sent.iter().filter(|s| !m.arrived.contains_key(s)).count()).sum();
    let repaired: u64 = network.present().map(|m| m.node.counters().repaired).sum();
    // Of 40 x 300 packets 2 % were lost at each of about three hops.
    assert!(missed < 12, "{missed}");
    assert!((100..4_000).contains(&repaired), "{repaired}");
    // Control messages are lost too.
    assert_eq!(network.focus.forest().len(), 41);
}

#[test]
fn a_node_that_was_cut_off_joins_again() {
    let mut network = joined_network(20, 3, 0.0, 5);
    network.members[7].gone = true;
    network.run(ms(4_000));
    assert_eq!(network.focus.forest().len(), 20);
    network.members[7].gone = false;
    network.act(7, |node, now| node.handle_timeout(now));
    network.run(ms(8_000));
    assert_eq!(network.focus.forest().len(), 21);
    network.check_trees(3);
    let sent = network.sent_between(network.now - ms(1_500), network.now - ms(500));
    assert!(sent.iter().all(|s| network.members[7].arrived.contains_key(s)));
}

#[test]
fn frames_can_be_divided_instead_of_packets() {
    let mut network = Network::new(3, 9, 0.0, 6);
    // Two packets a frame.
    network.config = |c| c.division = weir_session::overlay::Division::Frames { ticks: 1_800 };
    network.remake_root();
    (0..20).for_each(|_| {
        network.join(4);
    });
    network.run(ms(1_000));
    let repaired = |n: &Network| n.present().map(|m| m.node.counters().repaired).sum::<u64>();
    let before = repaired(&network);
    network.run(ms(2_000));
    network.check_trees(3);
    let sent = network.sent_between(Timestamp::from_millis(1_000), Timestamp::from_millis(2_500));
    assert!(network.present().all(|m| sent.iter().all(|s| m.arrived.contains_key(s))));
    assert_eq!(repaired(&network), before);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut network = joined_network(30, 4, 0.01, seed);
        network.members[3].gone = true;
        network.run(ms(2_000));
        let counters: Vec<_> = network.members.iter().map(|m| (m.node.counters(), m.arrived.clone())).collect();
        (counters, network.focus.counters())
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
