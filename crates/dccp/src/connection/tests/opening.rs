//! RFC 4340, section 8.1.

use super::super::{Config, Connection, Datagram, End, EndReason, State};
use super::harness::{Link, Pair, Side, config};
use crate::data_dropped::DropCode;
use crate::option::DccpOption;
use crate::packet::{PacketType as T, ResetCode};
use crate::queue::Message;
use Side::{Client as C, Server as S};
use weir_units::{Ecn, Seq48, TimeDelta, Timestamp};

fn seconds(pair: &Pair, from: Side, packet_type: T) -> Vec<f64> {
    let start = Timestamp::from_secs(100);
    pair.sent(from, packet_type).iter().map(|s| s.at.saturating_since(start).as_millis() as f64 / 1e3).collect()
}

#[test]
fn requests_are_repeated_with_new_numbers_until_the_client_gives_up() {
    let mut pair = Pair::new(config(), Link { loss: 1.0, ..Link::default() });
    pair.run(TimeDelta::from_secs(400));
    // Section 8.1.1: after 1 s, then doubled each time, up to 64 s; given up after 180 s with a Reset that acknowledges
    // zero.
    assert_eq!(seconds(&pair, C, T::Request), [0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 127.0]);
    let requests = pair.sent(C, T::Request);
    assert!(requests.windows(2).all(|w| w[1].sequence == w[0].sequence + 1));
    let reset = pair.sent(C, T::Reset)[0];
    assert_eq!(reset.at.saturating_since(Timestamp::from_secs(100)), TimeDelta::from_secs(180));
    assert_eq!((reset.packet().reset, reset.ack), (Some((ResetCode::ABORTED, [0; 3])), Some(0)));
    assert_eq!(reset.sequence, requests[7].sequence + 1);
    assert_eq!(pair.client.end(), Some(End { reason: EndReason::TimedOut }));
    assert_eq!(pair.client.state(), State::Closed);
    assert_eq!(pair.client.poll_timeout(pair.now), None);
}

#[test]
fn each_request_gets_a_response_with_a_new_number() {
    let mut pair = Pair::new(config(), Link::default());
    pair.filter = |s| s.packet_type == T::Response;
    pair.run(TimeDelta::from_millis(3_500));
    assert_eq!(
        pair.types(),
        [(C, T::Request), (S, T::Response), (C, T::Request), (S, T::Response), (C, T::Request), (S, T::Response)]
    );
    let responses = pair.sent(S, T::Response);
    assert!(responses.windows(2).all(|w| w[1].sequence == w[0].sequence + 1));
    let (first, requests) = (responses[0].sequence, pair.sent(C, T::Request));
    assert!(responses.iter().zip(&requests).all(|(r, q)| r.ack == Some(q.sequence)));
    assert_eq!(pair.states(), (State::Request, State::Respond));
    // The third Response gets through, as if late.
    let late = responses[1].bytes.clone();
    pair.filter = |_| false;
    pair.deliver(C, &late, 0, Ecn::NotEct);
    pair.run(TimeDelta::from_millis(100));
    assert_eq!(pair.client.state(), State::Open);
    assert_eq!(pair.sent(C, T::Ack)[0].ack, Some(first + 1));
    assert_eq!(pair.server().state(), State::Open);
}

#[test]
fn a_server_waits_four_lifetimes_for_the_third_packet() {
    let mut pair = Pair::new(config(), Link::default());
    pair.filter = |s| s.packet_type == T::Response;
    pair.run(TimeDelta::from_millis(100));
    pair.filter = |_| true;
    pair.run(TimeDelta::from_secs(479));
    assert_eq!(pair.server().state(), State::Respond);
    pair.run(TimeDelta::from_secs(2));
    assert_eq!(pair.server().end(), Some(End { reason: EndReason::TimedOut }));
    assert_eq!(pair.sent(S, T::Reset)[0].packet().reset, Some((ResetCode::ABORTED, [0; 3])));
}

#[test]
fn partopen_repeats_its_ack_and_sends_data_only_with_one() {
    let mut pair = Pair::new(config(), Link::default());
    // Only the Response of the server passes.
    pair.filter = |s| s.from == S && s.packet_type != T::Response;
    pair.run(TimeDelta::from_millis(60));
    assert_eq!(pair.states(), (State::PartOpen, State::Open));
    pair.run(TimeDelta::from_millis(3_100));
    // Section 8.1.5: about 200 ms, backed off: 40 ms, then 0.2, 0.4, 0.8 and 1.6 s after the packet before.
    let at: Vec<_> = seconds(&pair, C, T::Ack).iter().map(|s| (s * 1e3).round() as i64).collect();
    assert_eq!(at, [40, 240, 640, 1_440, 3_040]);
    pair.send(C, b"data");
    pair.run(TimeDelta::from_millis(50));
    assert_eq!((pair.sent(C, T::DataAck).len(), pair.sent(C, T::Data).len()), (1, 0));
    assert_eq!(pair.received[&S], [b"data"]);
    // A Sync is answered and does not open; any other packet does.
    let (gss, gsr) = (pair.server().sequences.gss, pair.client.sequences.gss);
    let sync = pair.forge(S, T::Sync, gss.add(1), Some(gsr));
    pair.deliver(C, &sync, 0, Ecn::NotEct);
    assert_eq!((pair.client.state(), pair.sent(C, T::SyncAck).len()), (State::PartOpen, 1));
    let ack = pair.forge(S, T::Ack, gss.add(2), Some(gsr));
    pair.deliver(C, &ack, 0, Ecn::NotEct);
    assert_eq!(pair.client.state(), State::Open);
    pair.log.clear();
    pair.send(C, b"more");
    assert_eq!(pair.types(), [(C, T::Data)]);
}

#[test]
fn a_client_in_partopen_gives_up() {
    let mut pair = Pair::new(config(), Link::default());
    pair.filter = |s| s.from == S && s.packet_type != T::Response;
    pair.run(TimeDelta::from_secs(479));
    assert_eq!(pair.client.state(), State::PartOpen);
    pair.run(TimeDelta::from_secs(2));
    assert_eq!(pair.client.end(), Some(End { reason: EndReason::TimedOut }));
}

#[test]
fn init_cookies_come_back_on_all_packets_of_partopen() {
    let (client, server) = (config(), Config { local_port: 2_002, remote_port: 1_001, seed: 2, ..config() });
    let now = Timestamp::from_secs(1);
    let mut c = Connection::connect(client, now).expect("valid");
    let mut out = Vec::new();
    c.poll_transmit(now, &mut out).expect("a Request");
    fn datagram(bytes: &[u8]) -> Datagram<'_> {
        Datagram { bytes, payload: 0, ecn: Ecn::NotEct }
    }
    let mut s = Connection::accept(server, now, &datagram(&out), None).expect("a Request");
    s.set_init_cookies(&[b"first cookie", &[7; 253]]);
    s.poll_transmit(now, &mut out).expect("a Response");
    c.handle_datagram(now, &datagram(&out));
    let cookies = |bytes: &[u8]| {
        let packet = crate::packet::parse(bytes, 0).expect("a packet");
        let all: Vec<Vec<u8>> = packet
            .options
            .iter()
            .filter_map(|o| match o {
                Ok(DccpOption::InitCookie(d)) => Some(d.to_vec()),
                _ => None,
            })
            .collect();
        all
    };
    let expected = [b"first cookie".to_vec(), vec![7; 253]];
    c.poll_transmit(now, &mut out).expect("an Ack");
    assert_eq!(cookies(&out), expected);
    c.send(now, &Message { bytes: b"data", ..Message::default() }).expect("room");
    c.poll_transmit(now, &mut out).expect("data");
    assert_eq!(cookies(&out), expected);
    s.handle_datagram(now, &datagram(&out));
    assert_eq!(s.state(), State::Open);
    s.send(now, &Message { bytes: b"data", ..Message::default() }).expect("room");
    s.poll_transmit(now, &mut out).expect("data");
    assert!(cookies(&out).is_empty());
    c.handle_datagram(now, &datagram(&out));
    c.send(now, &Message { bytes: b"data", ..Message::default() }).expect("room");
    c.poll_transmit(now, &mut out).expect("data");
    assert!(cookies(&out).is_empty() && c.state() == State::Open);
}

#[test]
fn data_on_a_request_is_refused_and_reported() {
    let mut pair = Pair::new(config(), Link::default());
    let mut bytes = pair.forge(C, T::Request, Seq48::new(77), None);
    bytes.extend_from_slice(b"early data");
    pair.deliver(S, &bytes, 0, Ecn::NotEct);
    let response = pair.sent(S, T::Response)[0];
    let blocks = [0x80 | DropCode::PROTOCOL_CONSTRAINTS.bits() << 4];
    assert!(response.options().contains(&DccpOption::DataDropped(&blocks)), "{:?}", response.options());
    assert!(!pair.received.contains_key(&S));
}

#[test]
fn only_response_and_reset_are_valid_in_request() {
    for packet_type in T::ALL {
        let mut pair = Pair::new(config(), Link::default());
        pair.log.clear();
        let gss = pair.client.sequences.gss;
        // With the right number, and with another.
        for (ack, right) in [(gss.add(9), false), (gss, true)] {
            let bytes = pair.forge(S, packet_type, Seq48::new(5_000), Some(ack));
            pair.deliver(C, &bytes, 0, Ecn::NotEct);
            let expected = match packet_type {
                T::Response if right => State::PartOpen,
                T::Reset if right => State::TimeWait,
                _ => State::Request,
            };
            assert_eq!(pair.client.state(), expected, "{packet_type} {right}");
        }
        let resets = pair.sent(C, T::Reset);
        let expected = match packet_type {
            T::Reset => 0,
            T::Response => 1,
            _ => 2,
        };
        assert_eq!(resets.len(), expected, "{packet_type}");
        for r in resets {
            assert_eq!(r.packet().reset, Some((ResetCode::PACKET_ERROR, [packet_type.number(), 0, 0])));
            assert_eq!(r.ack, Some(5_000));
        }
    }
}

#[test]
fn no_common_ccid_ends_the_connection_at_both_ends() {
    use super::super::Ccids;
    use super::harness::TEST_CCID;
    let client = Config { ccids: Ccids::both(2), ..config() };
    let server = Config { local_port: 2_002, remote_port: 1_001, ccids: Ccids::both(TEST_CCID), ..config() };
    let mut pair = Pair::with(client, server, Link::default());
    pair.run(TimeDelta::from_secs(10));
    let reason = |c: &Connection| c.end().map(|e| e.reason);
    assert_eq!(reason(&pair.client), Some(EndReason::NoCommonCcid));
    assert_eq!(pair.server.as_ref().and_then(reason), Some(EndReason::NoCommonCcid));
}

#[test]
fn a_configuration_that_is_none_is_refused() {
    use super::super::Ccids;
    let now = Timestamp::ZERO;
    let refusal = |c: Config| Connection::connect(c, now).map(|_| ()).map_err(|e| e.to_string());
    assert_eq!(refusal(Config { ccids: Ccids::both(77), ..config() }), Err("no controller is named `CCID 77`".into()));
    assert!(refusal(Config { sequence_window: 31, ..config() }).is_err_and(|e| e.contains("sequence_window")));
    assert!(refusal(Config { checksum_coverage: 16, ..config() }).is_err_and(|e| e.contains("checksum_coverage")));
    let params = vec![(2, "no such thing".to_owned(), 1.0)];
    assert!(
        refusal(Config { ccids: Ccids { params, ..Ccids::both(2) }, ..config() })
            .is_err_and(|e| e.contains("no such thing"))
    );
    let ack = [0, 1, 0, 2, 6, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let d = Datagram { bytes: &ack, payload: 0, ecn: Ecn::NotEct };
    assert!(Connection::accept(config(), now, &d, None).is_err_and(|e| e.to_string().contains("DCCP-Ack")));
}
