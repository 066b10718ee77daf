//! Nodes without a focus, and what strangers can make them hold.

use super::network::{RATE, address, rtp};
use proptest::prelude::*;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_cc::Registry;
use weir_session::overlay::{HopControl, NodeConfig, Peer, PeerConfig, Received};
use weir_units::{Ecn, Timestamp};
use weir_wire::rtcp::overlay::{Hop, HopKind, Message, Overlay};
use weir_wire::rtcp::overlay_peers::{Addresses, Kin, NodePath, PeerMessage, Peers};
use weir_wire::rtcp::{App, Packet, parse_compound};

const TREES: u8 = 2;

fn config(degree: u16, seed: u64) -> NodeConfig {
    let control = HopControl::new(Arc::new(Registry::builtin()), "gcc", &[]).expect("built in");
    NodeConfig { seed, ..NodeConfig::new(address(0), degree, RATE, control) }
}

fn peers(contacts: &[SocketAddr], secret: u8) -> PeerConfig {
    PeerConfig { trees: TREES, contacts: contacts.to_vec(), secret: [secret; 32] }
}

fn root(share: u16) -> Peer {
    Peer::root(config(0, 1), &peers(&[], 1), share, Timestamp::ZERO)
}

fn give(peer: &mut Peer, from: SocketAddr, bytes: &[u8], now: Timestamp) {
    peer.handle_datagram(&Received { from, bytes, payload: 0, ecn: Ecn::NotEct }, now);
}

fn say(peer: &mut Peer, from: SocketAddr, sender: u32, message: PeerMessage, now: Timestamp) {
    let mut bytes = vec![];
    Peers { sender, message }.write_into(&mut bytes);
    give(peer, from, &bytes, now);
}

/// All that it sends, by address.
fn sent(peer: &mut Peer, now: Timestamp) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut all = vec![];
    loop {
        let mut out = vec![];
        let Some(outgoing) = peer.poll_transmit(now, &mut out) else { return all };
        all.push((outgoing.to, out));
    }
}

fn message(bytes: &[u8]) -> Option<PeerMessage> {
    match parse_compound(bytes).next() {
        Some(Ok(Packet::App(app))) => Peers::from_app(&app).map(|p| p.message),
        _ => None,
    }
}

/// Asks for a place with a valid cookie; returns the answers.
fn seek(peer: &mut Peer, from: SocketAddr, sender: u32, degree: u8, now: Timestamp) -> Vec<PeerMessage> {
    say(peer, from, sender, PeerMessage::Seek { nonce: 5, cookie: 0, tree: 0, degree }, now);
    let cookie = sent(peer, now).iter().find_map(|(_, bytes)| match message(bytes) {
        Some(PeerMessage::Cookie { nonce: 5, cookie }) => Some(cookie),
        _ => None,
    });
    let cookie = cookie.expect("a stranger gets a cookie first");
    say(peer, from, sender, PeerMessage::Seek { nonce: 5, cookie, tree: 0, degree }, now);
    sent(peer, now).iter().filter_map(|(_, bytes)| message(bytes)).collect()
}

#[test]
fn requests_without_a_cookie_cost_a_node_nothing() {
    let mut peer = root(3);
    for n in 1..=10_000u32 {
        let seek = PeerMessage::Seek { nonce: n.into(), cookie: 77, tree: 0, degree: 9 };
        say(&mut peer, address(n as usize), n, seek, Timestamp::ZERO);
    }
    let c = peer.peer_counters();
    assert_eq!((c.challenged, c.offered), (10_000, 0));
    assert!(c.dropped_messages > 9_000, "answers are bounded: {c:?}");
    assert!(sent(&mut peer, Timestamp::ZERO).len() <= 256);
}

#[test]
fn places_are_held_for_few_and_not_for_long() {
    let mut peer = root(100);
    // One host with many ports, then many hosts.
    let port = |n: u16| SocketAddr::new(address(1).ip(), 6_000 + n);
    for n in 1..=40 {
        seek(&mut peer, port(n), n.into(), 0, Timestamp::ZERO);
    }
    assert_eq!((peer.peer_counters().offered, peer.peer_counters().referred), (4, 36));
    for n in 100..200u32 {
        seek(&mut peer, address(n as usize), n, 0, Timestamp::from_millis(500));
    }
    assert_eq!(peer.peer_counters().offered, 32);
    seek(&mut peer, address(300), 300, 0, Timestamp::from_millis(1_600));
    assert_eq!(peer.peer_counters().offered, 33);
    assert_eq!(peer.node().children(), 0, "an offer is no child");
}

#[test]
fn a_ticket_is_for_one_address_and_a_cookie_too() {
    let (mut peer, now) = (root(3), Timestamp::ZERO);
    let answers = seek(&mut peer, address(1), 9, 0, now);
    let [PeerMessage::Offer { ticket, tree: 0, trees: TREES, .. }] = answers[..] else { panic!("{answers:?}") };
    let attach = |from: SocketAddr, peer: &mut Peer| {
        let mut bytes = vec![];
        let hop = Hop { ticket, tree: 0, code: 0, number: 0 };
        Overlay { sender: 9, message: Message::Hop(HopKind::Attach, hop) }.write_into(&mut bytes);
        give(peer, from, &bytes, now);
        peer.node().children()
    };
    assert_eq!(attach(address(2), &mut peer), 0);
    assert_eq!(attach(address(1), &mut peer), 1);
}

#[test]
fn a_node_that_forwards_takes_the_place_of_a_leaf() {
    let (mut peer, now) = (root(1), Timestamp::ZERO);
    let join = |peer: &mut Peer, n: u32, degree| {
        let answers = seek(peer, address(n as usize), n, degree, now);
        let Some(PeerMessage::Offer { ticket, .. }) = answers.first().copied() else { return false };
        let mut bytes = vec![];
        let hop = Hop { ticket, tree: 0, code: 0, number: 0 };
        Overlay { sender: n, message: Message::Hop(HopKind::Attach, hop) }.write_into(&mut bytes);
        give(peer, address(n as usize), &bytes, now);
        true
    };
    assert!(join(&mut peer, 1, 0), "there is room");
    assert!(!join(&mut peer, 2, 0), "a leaf gets no leaf's place");
    assert!(join(&mut peer, 3, 4));
    assert_eq!((peer.node().children(), peer.peer_counters().displaced), (2, 1));
    assert!(!join(&mut peer, 4, 4), "there is no leaf left that stays");
    // The leaf is asked to find another parent, and referred to the one that came.
    let at = Timestamp::from_millis(100);
    peer.handle_timeout(at);
    let kin: Vec<(SocketAddr, Kin)> = sent(&mut peer, at)
        .iter()
        .filter_map(|(to, bytes)| match message(bytes)? {
            PeerMessage::Kin(kin) => Some((*to, kin)),
            _ => None,
        })
        .collect();
    let of =
        |n: usize| kin.iter().find(|k| k.0 == address(n)).map(|k| (k.1.leaving, k.1.relatives.as_slice().to_vec()));
    assert_eq!(of(1), Some((true, vec![address(3)])));
    assert_eq!(of(3), Some((false, vec![])));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn no_message_breaks_a_node(
        steps in prop::collection::vec((0u8..8, any::<u64>(), any::<u64>(), 0u8..4, 1usize..6, 0i64..400), 0..120)
    ) {
        let mut peer = Peer::new(config(4, 2), &peers(&[address(1), address(2)], 3), Timestamp::ZERO);
        let mut now = Timestamp::ZERO;
        let mut last = (0, 0);
        for (kind, a, b, tree, from, ms) in steps {
            now += weir_units::TimeDelta::from_millis(ms);
            let (from, n) = (address(from), a as u32);
            let mut path = NodePath::empty();
            let mut addresses = Addresses::none();
            (0..b % 17).for_each(|k| _ = path.add((b >> k) as u32));
            (0..a % 5).for_each(|k| _ = addresses.add(address(k as usize + 1)));
            let nonce = if b % 2 == 0 { last.0 } else { a };
            let ticket = if b % 3 == 0 { last.1 } else { b };
            match kind {
                0 => say(&mut peer, from, n, PeerMessage::Seek { nonce, cookie: b, tree, degree: n as u8 }, now),
                1 => say(&mut peer, from, n, PeerMessage::Cookie { nonce, cookie: b }, now),
                2 => say(&mut peer, from, n, PeerMessage::Offer { nonce, ticket, parent: n, tree, trees: TREES }, now),
                3 => say(&mut peer, from, n, PeerMessage::Refer { nonce, tree, trees: TREES, addresses }, now),
                4 => {
                    let kin = Kin { ticket, tree, leaving: a % 2 == 0, path, relatives: addresses };
                    say(&mut peer, from, n, PeerMessage::Kin(kin), now);
                }
                5 => give(&mut peer, from, &rtp(a as u16), now),
                6 => {
                    let mut bytes = vec![];
                    App { subtype: tree, ssrc: n, name: *b"OVPR", data: &b.to_be_bytes() }.write_into(&mut bytes);
                    give(&mut peer, from, &bytes, now);
                }
                _ => peer.handle_timeout(now),
            }
            for (_, bytes) in sent(&mut peer, now) {
                if let Some(PeerMessage::Seek { nonce, .. }) = message(&bytes) {
                    last = (nonce, b);
                }
            }
            prop_assert!(peer.node().children() <= 20);
            prop_assert!(peer.depth(0).is_none_or(|d| d <= 17));
        }
    }
}
