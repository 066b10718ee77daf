//! Attacks of strangers and of lying nodes.

use super::network::{Network, address, rtp};
use super::{joined_network, ms};
use proptest::prelude::*;
use std::sync::Arc;
use weir_cc::Registry;
use weir_session::overlay::{Focus, FocusConfig, HopControl, Node, NodeConfig, Received, SendError};
use weir_units::{DataRate, Ecn, Timestamp};
use weir_wire::rtcp::overlay::{Broken, Hop, HopKind, Join, Lost, Message, Overlay, Reason};
use weir_wire::rtcp::{App, Packet, parse_compound};

fn bytes(sender: u32, message: Message<'_>) -> Vec<u8> {
    let mut out = vec![];
    Overlay { sender, message }.write_into(&mut out);
    out
}

/// The focus's answers.
fn answers(focus: &mut Focus, now: Timestamp) -> Vec<Vec<u8>> {
    let mut all = vec![];
    loop {
        let mut out = vec![];
        match focus.poll_transmit(now, &mut out) {
            Some(_) => all.push(out),
            None => return all,
        }
    }
}

fn message(bytes: &[u8]) -> Overlay<'_> {
    match parse_compound(bytes).next() {
        Some(Ok(Packet::App(app))) => Overlay::from_app(&app).expect("an overlay's message"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn requests_without_a_cookie_cost_the_focus_nothing() {
    let mut focus = Focus::new(FocusConfig::new(5, address(0), 10, [1; 32]));
    for n in 0..10_000u64 {
        let join = Join { nonce: n, cookie: n ^ 77, degree: 9 };
        focus.handle_datagram(address(n as usize + 1), &bytes(0, Message::Join(join)), Timestamp::ZERO);
    }
    assert!(focus.forest().is_empty());
    assert_eq!(focus.counters().challenged, 10_000);
    assert!(focus.counters().dropped_messages > 0, "answers are bounded");
    assert_eq!(focus.poll_timeout(), None);
    // An answer is no larger than the request.
    let request = bytes(0, Message::Join(Join { nonce: 1, cookie: 0, degree: 1 })).len();
    assert!(answers(&mut focus, Timestamp::ZERO).iter().all(|a| a.len() <= request));
}

#[test]
fn nodes_beyond_the_limit_are_refused() {
    let config = FocusConfig { max_nodes: 3, ..FocusConfig::new(2, address(0), 10, [1; 32]) };
    let mut focus = Focus::new(config);
    for n in 1..=5 {
        let join = Join { nonce: n, cookie: 0, degree: 60_000 };
        let from = address(n as usize);
        focus.handle_datagram(from, &bytes(0, Message::Join(join)), Timestamp::ZERO);
        let all = answers(&mut focus, Timestamp::ZERO);
        let Message::Challenge { cookie, .. } = message(&all[0]).message else { panic!("a challenge") };
        // The same cookie from another address is of no use.
        let stolen = bytes(0, Message::Join(Join { cookie, ..join }));
        focus.handle_datagram(address(900), &stolen, Timestamp::ZERO);
        focus.handle_datagram(from, &stolen, Timestamp::ZERO);
        answers(&mut focus, Timestamp::ZERO);
    }
    assert_eq!((focus.forest().len(), focus.counters().joined, focus.counters().full), (4, 3, 2));
    assert_eq!(focus.forest().degree(1), 64, "a claimed degree is bounded");
}

#[test]
fn forged_reports_and_farewells_change_nothing() {
    let mut network = joined_network(20, 3, 0.0, 11);
    let before: Vec<_> =
        (1..=20).map(|n| (0..3).map(|t| network.focus.forest().parent(n, t)).collect::<Vec<_>>()).collect();
    let strangers = network.focus.counters().strangers;
    let broken = Broken { token: 1, peer: 2, tree: 0, lost: Lost::Child, reason: Reason::Silent };
    for sender in 1..31 {
        for message in [Message::Leave { token: 1 }, Message::Broken(broken), Message::Checked { token: 1 }] {
            let now = network.now;
            network.focus.handle_datagram(address(sender as usize), &bytes(sender, message), now);
        }
    }
    assert_eq!(network.focus.counters().strangers, strangers + 90);
    network.run(ms(2_000));
    let after: Vec<_> =
        (1..=20).map(|n| (0..3).map(|t| network.focus.forest().parent(n, t)).collect::<Vec<_>>()).collect();
    assert_eq!(after, before);
    assert_eq!(network.focus.counters().failed, 0);
}

#[test]
fn a_parent_sends_to_no_one_without_a_ticket() {
    let mut network = joined_network(20, 3, 0.0, 12);
    let index = (1..=20).find(|i| network.members[*i].node.children() > 0).expect("a relay");
    let tree = network.members[index].node.forwards().expect("it forwards");
    let count = network.members[index].node.children();
    let attach = |ticket, tree| bytes(9, Message::Hop(HopKind::Attach, Hop { ticket, tree, code: 1, number: 0 }));
    for ticket in 0..200 {
        for tree in [tree, tree + 1, 255] {
            let datagram = attach(ticket, tree);
            let received = Received { from: address(700), bytes: &datagram, payload: 0, ecn: Ecn::NotEct };
            network.act(index, |node, now| node.handle_datagram(&received, now));
        }
    }
    let node = &network.members[index].node;
    assert_eq!((node.children(), node.counters().refused), (count, 600));
    // Nor does a child leave because of a stranger's words.
    let detach = bytes(9, Message::Hop(HopKind::Detach, Hop { ticket: 5, tree, code: 0, number: 0 }));
    let received = Received { from: address(700), bytes: &detach, payload: 0, ecn: Ecn::NotEct };
    network.act(index, |node, now| node.handle_datagram(&received, now));
    assert_eq!(network.members[index].node.children(), count);
}

#[test]
fn packets_from_strangers_and_jumps_are_counted() {
    let mut network = joined_network(10, 3, 0.0, 13);
    let before = network.members[4].node.counters();
    let packet = rtp(1);
    let received = Received { from: address(700), bytes: &packet, payload: 1_000, ecn: Ecn::NotEct };
    network.act(4, |node, now| node.handle_datagram(&received, now));
    assert_eq!(network.members[4].node.counters().strangers, before.strangers + 1);
    // A parent's packet with a number far away.
    let (_, parent) = network.members[4].node.parent(0).expect("it has one");
    let far = rtp(30_000);
    let received = Received { from: parent, bytes: &far, payload: 1_000, ecn: Ecn::NotEct };
    network.act(4, |node, now| node.handle_datagram(&received, now));
    assert_eq!(network.members[4].node.counters().out_of_range, before.out_of_range + 1);
}

#[test]
fn only_the_root_sends_and_only_packets_with_a_subflow_number() {
    let mut network = Network::new(2, 4, 0.0, 14);
    network.join(3);
    let now = network.now;
    assert_eq!(network.members[1].node.send(&rtp(1), 0, now), Err(SendError::NotRoot));
    let root = &mut network.members[0].node;
    let mut plain = vec![];
    weir_wire::rtp::Header::default().write_into(&mut plain);
    assert_eq!(root.send(&plain, 0, now), Err(SendError::NoSubflowNumber));
    assert!(matches!(root.send(&[0x80; 3], 0, now), Err(SendError::Packet(_))));
    assert_eq!((root.send(&rtp(9), 0, now), root.send(&rtp(9), 0, now)), (Ok(()), Err(SendError::Repeated)));
}

fn kinds() -> impl Strategy<Value = (u8, Vec<u8>)> {
    (0u8..16, proptest::collection::vec(any::<u8>(), 0..120))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever arrives, from whomever: nothing panics, timers are in the future, and answers end.
    #[test]
    fn any_datagrams_are_survived(datagrams in proptest::collection::vec((kinds(), any::<bool>(), 0u32..4, 0i64..600), 1..40)) {
        let control = HopControl::new(Arc::new(Registry::builtin()), "gcc", &[]).expect("built in");
        let mut focus = Focus::new(FocusConfig::new(3, address(0), 6, [9; 32]));
        let config = NodeConfig::new(address(1), 5, DataRate::from_mbps(1), control);
        let mut node = Node::new(config.clone(), Timestamp::ZERO);
        let mut root = Node::root(config, &focus.root(), Timestamp::ZERO);
        let mut now = Timestamp::ZERO;
        for (((subtype, data), is_app, sender, step), k) in datagrams.into_iter().zip(0..) {
            now += ms(step);
            let mut datagram = vec![];
            if is_app {
                let whole = data.len() & !3;
                Packet::App(App { subtype, ssrc: sender, name: *b"OVLY", data: &data[..whole] }).write_into(&mut datagram);
            } else {
                datagram.extend_from_slice(&rtp(k * 7));
                datagram.extend_from_slice(&data);
            }
            let from = address(sender as usize);
            let received = Received { from, bytes: &datagram, payload: 0, ecn: Ecn::NotEct };
            for end in [&mut node, &mut root] {
                end.handle_datagram(&received, now);
                end.handle_timeout(now);
                let mut count = 0;
                let mut out = vec![];
                while end.poll_transmit(now, &mut out).is_some() {
                    out.clear();
                    count += 1;
                    prop_assert!(count < 1_000);
                }
                prop_assert!(end.poll_timeout(now).is_none_or(|at| at > now));
                prop_assert_eq!(end.children(), 0);
            }
            focus.handle_datagram(from, &datagram, now);
            focus.handle_timeout(now);
            prop_assert!(answers(&mut focus, now).len() < 10);
            prop_assert!(focus.forest().is_empty());
            prop_assert!(focus.poll_timeout().is_none_or(|at| at > now));
        }
    }
}
