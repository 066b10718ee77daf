//! Opening, data and closing between two well-behaved ends.

use super::super::{End, EndReason, State};
use super::harness::{Link, Pair, Side, config};
use crate::packet::PacketType as T;
use Side::{Client as C, Server as S};
use weir_units::TimeDelta;

#[test]
fn a_handshake_takes_two_round_trips_for_both_to_know() {
    let mut pair = Pair::new(config(), Link::default());
    pair.run(TimeDelta::from_millis(70));
    assert_eq!(pair.states(), (State::PartOpen, State::Open));
    pair.run(TimeDelta::from_millis(30));
    assert_eq!(pair.states(), (State::Open, State::Open));
    // Section 8.1's figure.
    assert_eq!(pair.types(), [(C, T::Request), (S, T::Response), (C, T::Ack), (S, T::Ack)]);
    let at = |i: usize| pair.log[i].at.saturating_since(pair.log[0].at).as_millis();
    assert_eq!((at(1), at(2), at(3)), (20, 40, 60));
    assert_eq!(pair.client.rtt().map(TimeDelta::as_millis), Some(40));
    assert_eq!(pair.server().rtt().map(TimeDelta::as_millis), Some(40));
    // Nothing more is sent, however long there is no data.
    pair.run(TimeDelta::from_secs(1_000));
    assert_eq!((pair.log.len(), pair.states()), (4, (State::Open, State::Open)));
    pair.send(S, b"hello");
    pair.run(TimeDelta::from_millis(100));
    assert_eq!(pair.received[&C], [b"hello"]);
}

#[test]
fn a_client_without_data_opens_though_packets_are_lost() {
    for seed in 0..20 {
        let mut pair = Pair::new(config(), Link { loss: 0.4, seed, ..Link::default() });
        pair.run(TimeDelta::from_secs(150));
        assert_eq!(pair.states(), (State::Open, State::Open), "{seed}");
        let acks = pair.sent(C, T::Ack).len() + pair.sent(S, T::Ack).len();
        assert!(acks <= 24, "{seed}: {acks}");
    }
}

#[test]
fn data_flow_both_ways_in_order() {
    let mut pair = Pair::open(config(), Link::default());
    for i in 0..500u32 {
        pair.send(C, &i.to_be_bytes());
        pair.send(S, &(i * 3).to_be_bytes());
        pair.run(TimeDelta::from_millis(2));
    }
    pair.run(TimeDelta::from_secs(2));
    let expected = |k: u32| (0..500u32).map(|i| (i * k).to_be_bytes().to_vec()).collect::<Vec<_>>();
    assert_eq!(pair.received[&S], expected(1));
    assert_eq!(pair.received[&C], expected(3));
    let c = pair.client.counters();
    assert_eq!((c.data_sent, c.data_bytes_sent, c.data_received), (501, 2_005, 500));
    assert_eq!((c.sequence_invalid, c.unexpected, c.bad_options), (0, 0, 0));
}

#[test]
fn a_client_closes() {
    let mut pair = Pair::open(config(), Link::default());
    pair.client.close(pair.now);
    pair.run(TimeDelta::from_millis(60));
    assert_eq!(pair.types(), [(C, T::Close), (S, T::Reset)]);
    assert_eq!(pair.states(), (State::TimeWait, State::Closed));
    let closed = Some(End { reason: EndReason::Closed });
    assert_eq!((pair.client.end(), pair.server().end()), (closed, closed));
    pair.run(TimeDelta::from_secs(241));
    assert_eq!(pair.states(), (State::Closed, State::Closed));
}

#[test]
fn a_server_asks_the_client_to_close() {
    let mut pair = Pair::open(config(), Link::default());
    let now = pair.now;
    pair.server().close(now);
    pair.run(TimeDelta::from_millis(80));
    assert_eq!(pair.types(), [(S, T::CloseReq), (C, T::Close), (S, T::Reset)]);
    assert_eq!(pair.states(), (State::TimeWait, State::Closed));
}

#[test]
fn both_close_at_once() {
    let mut pair = Pair::open(config(), Link::default());
    let now = pair.now;
    pair.client.close(now);
    pair.server().close(now);
    pair.run(TimeDelta::from_secs(1));
    // The client's Close crosses the server's CloseReq; either way the client holds TIMEWAIT.
    assert_eq!(pair.states(), (State::TimeWait, State::Closed));
    assert_eq!(pair.sent(S, T::Reset).len(), 1);
}

#[test]
fn all_that_waits_leaves_before_the_end() {
    let mut pair = Pair::open(config(), Link::default());
    for i in 0..200u32 {
        pair.send(C, &i.to_be_bytes());
    }
    pair.client.close(pair.now);
    pair.run(TimeDelta::from_secs(5));
    assert_eq!(pair.received[&S].len(), 200);
    assert_eq!(pair.states(), (State::TimeWait, State::Closed));
}

#[test]
fn a_bad_link_only_slows_it_all_down() {
    for seed in 0..20 {
        let link =
            Link { loss: 0.2, repeats: 0.1, jitter: TimeDelta::from_millis(15), marks: 0.1, seed, ..Link::default() };
        let mut pair = Pair::new(config(), link);
        for i in 0..300u32 {
            pair.client.send(pair.now, &crate::queue::Message { bytes: &i.to_be_bytes(), ..Default::default() }).ok();
        }
        pair.flush();
        pair.run(TimeDelta::from_secs(60));
        pair.client.close(pair.now);
        pair.run(TimeDelta::from_secs(60));
        let received = &pair.received[&S];
        assert!(received.len() > 200 && received.len() <= 300, "{seed}: {}", received.len());
        let mut once: Vec<_> = received.clone();
        once.sort();
        once.dedup();
        assert_eq!(once.len(), received.len(), "{seed}: none came twice");
        assert_eq!(pair.states(), (State::TimeWait, State::Closed), "{seed}");
        assert!(pair.client.counters().data_received == 0 && pair.server().counters().duplicates > 0);
    }
}

#[test]
fn ccid_2_carries_data_over_a_bad_link() {
    use super::super::{Ccids, Config};
    let link = Link { loss: 0.02, marks: 0.01, ..Link::default() };
    let mut pair = Pair::open(Config { ccids: Ccids::both(2), ..config() }, link);
    assert_eq!(pair.client.ccids(), Some((2, 2)));
    for i in 0..1_500u32 {
        let now = pair.now;
        pair.client.send(now, &crate::queue::Message { bytes: &i.to_be_bytes(), ..Default::default() }).ok();
        pair.run(TimeDelta::from_millis(12));
    }
    pair.run(TimeDelta::from_secs(5));
    let lost = pair.log.iter().filter(|s| s.packet_type.is_data()).count() - pair.received[&S].len();
    let c = pair.client.counters();
    assert!(pair.received[&S].len() > 1_400, "{}", pair.received[&S].len());
    // In bursts the jitter sometimes puts a packet behind three later ones, which counts as a loss.
    assert!((c.data_lost as i64 - lost as i64).abs() <= 8, "{} of {lost}", c.data_lost);
    assert!((5..=60).contains(&c.data_marked), "{}", c.data_marked);
    assert_eq!((c.sequence_invalid, c.unexpected, c.bad_options), (0, 0, 0));
    pair.client.close(pair.now);
    pair.run(TimeDelta::from_secs(5));
    assert_eq!(pair.states(), (State::TimeWait, State::Closed));
}

#[test]
fn quiet_connections_stay_quiet() {
    use super::super::{Ccids, Config};
    let all: Vec<u8> = config().registry.specs().iter().map(|s| s.number).collect();
    assert!(all.len() >= 5);
    for ccid in all {
        let link = Link { loss: 0.05, marks: 0.02, ..Link::default() };
        let mut pair = Pair::open(Config { ccids: Ccids::both(ccid), ..config() }, link);
        for i in 0..500u32 {
            for side in [C, S] {
                let now = pair.now;
                let message = crate::queue::Message { bytes: &i.to_be_bytes(), ..Default::default() };
                pair.end(side).send(now, &message).ok();
            }
            pair.run(TimeDelta::from_millis(15));
        }
        pair.run(TimeDelta::from_secs(30));
        assert!(pair.client.queue().is_empty() && pair.server().queue().is_empty(), "{ccid}");
        let heard = [C, S].map(|side| pair.received[&side].len());
        assert!(heard.iter().all(|n| (400..=500).contains(n)), "{ccid}: {heard:?}");
        // Acknowledgements are not acknowledged endlessly.
        pair.log.clear();
        pair.run(TimeDelta::from_secs(600));
        assert!(pair.log.len() <= 2, "{ccid}: {:?}", pair.types());
        // And wakes up again.
        let before = pair.received[&S].len();
        pair.link.loss = 0.0;
        pair.send(C, b"awake");
        pair.run(TimeDelta::from_secs(2));
        assert_eq!(pair.received[&S].len(), before + 1, "{ccid}");
    }
}
