//! RFC 4340, section 8.3.

use super::super::{End, EndReason, SendError, State};
use super::harness::{Link, Pair, Side, config};
use crate::option::DccpOption;
use crate::packet::{PacketType as T, ResetCode};
use crate::queue::Message;
use Side::{Client as C, Server as S};
use weir_units::{Ecn, TimeDelta};

#[test]
fn close_is_repeated_with_new_numbers() {
    let mut pair = Pair::open(config(), Link::default());
    let start = pair.now;
    pair.filter = |_| true;
    pair.client.close(start);
    pair.run(TimeDelta::from_secs(179));
    // Section 8.3: two round trips of 40 ms, backed off to at least one per 64 s.
    let at: Vec<_> = pair.sent(C, T::Close).iter().map(|s| s.at.saturating_since(start).as_millis()).collect();
    let expected: Vec<i64> = (0..).map(|k| 80 * ((1 << k) - 1)).take_while(|t| *t < 179_000).collect();
    assert!(
        at.len() >= 11 && at.iter().zip(&expected).all(|(a, e)| (a - e).abs() <= 12 << at.len().min(11) || a >= e),
        "{at:?}"
    );
    assert_eq!((at[0], at[1], at[2]), (0, 80, 240));
    assert!(pair.sent(C, T::Close).windows(2).all(|w| w[1].sequence == w[0].sequence + 1));
    assert_eq!(pair.client.state(), State::Closing);
    pair.run(TimeDelta::from_secs(2));
    assert_eq!(pair.client.end(), Some(End { reason: EndReason::TimedOut }));
    assert_eq!(pair.sent(C, T::Reset)[0].packet().reset, Some((ResetCode::ABORTED, [0; 3])));
}

#[test]
fn close_req_is_repeated_and_only_servers_send_it() {
    let mut pair = Pair::open(config(), Link::default());
    let now = pair.now;
    pair.filter = |s| s.packet_type == T::Close;
    pair.server().close(now);
    pair.run(TimeDelta::from_secs(10));
    assert_eq!(pair.states(), (State::Closing, State::CloseReq));
    assert!(pair.sent(S, T::CloseReq).len() >= 5 && pair.sent(C, T::Close).len() >= 5);
    pair.filter = |_| false;
    pair.run(TimeDelta::from_secs(20));
    assert_eq!(pair.states(), (State::TimeWait, State::Closed));

    // A server answers one by a Sync and otherwise ignores it.
    let mut pair = Pair::open(config(), Link::default());
    let (seq, ack) = (pair.client.sequences.gss.add(1), pair.server().sequences.gss);
    let bytes = pair.forge(C, T::CloseReq, seq, Some(ack));
    pair.deliver(S, &bytes, 0, Ecn::NotEct);
    assert_eq!(pair.types(), [(S, T::Sync)]);
    assert_eq!((pair.log[0].ack, pair.server().state()), (Some(seq.get()), State::Open));
}

#[test]
fn both_clients_way_and_servers_way_meet() {
    // The Closes of both ends cross: by section 8.3 a server may close by Close as well. Both send a Reset.
    let mut pair = Pair::open(config(), Link::default());
    pair.client.close(pair.now);
    pair.flush();
    let (seq, ack) = (pair.server().sequences.gss.add(1), pair.client.sequences.gss);
    let bytes = pair.forge(S, T::Close, seq, Some(ack));
    pair.deliver(C, &bytes, 0, Ecn::NotEct);
    assert_eq!(pair.sent(C, T::Reset)[0].packet().reset, Some((ResetCode::CLOSED, [0; 3])));
    assert_eq!((pair.client.state(), pair.client.end()), (State::Closed, Some(End { reason: EndReason::Closed })));
}

#[test]
fn time_wait_answers_by_resets_at_a_bounded_rate_and_ends() {
    let mut pair = Pair::open(config(), Link::default());
    pair.client.close(pair.now);
    pair.run(TimeDelta::from_millis(100));
    assert_eq!(pair.client.state(), State::TimeWait);
    pair.log.clear();
    let (seq, ack) = (pair.server().sequences.gss, pair.client.sequences.gss);
    for i in 1..=50 {
        let bytes = pair.forge(S, T::Ack, seq.add(i), Some(ack));
        pair.deliver(C, &bytes, 0, Ecn::NotEct);
    }
    // Section 8.3.1: numbers of the packet, code 3; none for a Reset.
    assert_eq!(pair.types(), [(C, T::Reset); 8]);
    assert_eq!(pair.log[0].packet().reset, Some((ResetCode::NO_CONNECTION, [0; 3])));
    assert_eq!((pair.log[0].sequence, pair.log[0].ack), (ack.next().get(), Some(seq.add(1).get())));
    assert_eq!(pair.client.counters().rate_limited, 42);
    pair.run(TimeDelta::from_secs(2));
    let bytes = pair.forge(S, T::Reset, seq.add(60), Some(ack));
    pair.log.clear();
    pair.deliver(C, &bytes, 0, Ecn::NotEct);
    assert!(pair.log.is_empty());
    pair.run(TimeDelta::from_secs(237));
    assert_eq!(pair.client.state(), State::TimeWait);
    pair.run(TimeDelta::from_secs(1));
    assert_eq!(pair.client.state(), State::Closed);
}

#[test]
fn abort_resets_at_once_and_notifies_the_other_end() {
    let mut pair = Pair::open(config(), Link::default());
    for _ in 0..100 {
        let now = pair.now;
        pair.client.send(now, &Message { bytes: b"lost", ..Message::default() }).expect("room");
    }
    pair.client.abort(pair.now);
    pair.run(TimeDelta::from_millis(100));
    assert_eq!(pair.types(), [(C, T::Reset)]);
    let code = (ResetCode::ABORTED, [0; 3]);
    assert_eq!(pair.client.end().map(|e| e.reason), Some(EndReason::Reset(code.0, code.1)));
    assert_eq!(pair.server().end().map(|e| e.reason), Some(EndReason::ResetByPeer(code.0, code.1)));
    assert_eq!(pair.states(), (State::Closed, State::TimeWait));
    assert!(pair.client.queue().is_empty());
}

#[test]
fn nothing_is_taken_after_close() {
    let mut pair = Pair::open(config(), Link::default());
    let now = pair.now;
    pair.filter = |s| s.packet_type == T::Close;
    pair.client.close(now);
    assert_eq!(pair.client.send(now, &Message { bytes: b"x", ..Message::default() }), Err(SendError::Closed));
    // Data still received is dropped: Drop Code 1. CLOSING sends no acknowledgements, so nothing reports it; nothing
    // waits either.
    pair.send(S, b"late");
    pair.run(TimeDelta::from_millis(50));
    assert_eq!(pair.client.counters().data_dropped, 1);
    assert!(!pair.received.contains_key(&C));
    pair.run(TimeDelta::from_secs(200));
    assert_eq!(pair.client.send(pair.now, &Message::default()), Err(SendError::Closed));
}

#[test]
fn queued_data_delays_a_close_by_at_most_the_give_up_time() {
    let mut pair = Pair::open(config(), Link::default());
    pair.filter = |s| s.from == S;
    for _ in 0..1_000 {
        let now = pair.now;
        pair.client.send(now, &Message { bytes: b"never acknowledged", ..Message::default() }).ok();
    }
    pair.client.close(pair.now);
    pair.run(TimeDelta::from_secs(5));
    assert_eq!(pair.client.state(), State::Open);
    pair.run(TimeDelta::from_secs(176));
    assert_eq!(pair.client.state(), State::Closing);
    pair.run(TimeDelta::from_secs(181));
    assert_eq!(pair.client.end(), Some(End { reason: EndReason::TimedOut }));
}

#[test]
fn an_application_that_stops_listening_stops_the_sender() {
    let mut pair = Pair::open(config(), Link::default());
    pair.server().stop_receiving();
    pair.send(C, b"one");
    pair.send(C, b"two");
    pair.run(TimeDelta::from_millis(100));
    let reported = pair.sent(S, T::Ack)[0].options().contains(&DccpOption::DataDropped(&[0x91]));
    assert!(reported, "{:?}", pair.sent(S, T::Ack)[0].options());
    assert!(pair.client.peer_has_stopped_receiving());
    assert_eq!(pair.client.send(pair.now, &Message { bytes: b"x", ..Message::default() }), Err(SendError::Closed));
    // The other direction continues.
    pair.send(S, b"hello");
    pair.run(TimeDelta::from_millis(100));
    assert_eq!(pair.received[&C], [b"hello"]);
}

#[test]
fn a_silent_connection_is_tested_and_given_up() {
    let config = super::super::Config { keep_alive: Some(TimeDelta::from_secs(30)), ..config() };
    let mut pair = Pair::open(config, Link::default());
    pair.run(TimeDelta::from_secs(300));
    let syncs = pair.sent(C, T::Sync).len() + pair.sent(S, T::Sync).len();
    assert!((9..=24).contains(&syncs), "{syncs}");
    assert_eq!(pair.states(), (State::Open, State::Open));
    pair.filter = |s| s.from == S;
    pair.run(TimeDelta::from_secs(240));
    assert_eq!(pair.client.end(), Some(End { reason: EndReason::TimedOut }));
}
