use super::*;
use crate::connection::Config;
use crate::option::FeatureNumber;
use crate::packet::{Header, PacketWriter, WireSequence};
use crate::queue::Message;
use weir_units::{Ecn, TimeDelta};

const PEER: u64 = 77;
const SERVICE: ServiceCode = ServiceCode::RTP_VIDEO;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_secs(1_000) + TimeDelta::from_millis(ms)
}

fn connection() -> Config {
    Config { service_code: SERVICE, local_port: 5_004, ..Config::default() }
}

fn listener(change: impl FnOnce(&mut ListenerConfig)) -> Listener {
    let mut config = ListenerConfig::new(connection(), [7; 32]);
    change(&mut config);
    Listener::new(config).expect("a configuration")
}

fn client(port: u16, now: Timestamp) -> Connection {
    let config = Config { local_port: port, remote_port: 5_004, seed: u64::from(port), ..connection() };
    Connection::connect(config, now).expect("a configuration")
}

fn with(bytes: &[u8]) -> Datagram<'_> {
    Datagram { bytes, payload: 0, ecn: Ecn::NotEct }
}

fn next(connection: &mut Connection, now: Timestamp) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    connection.poll_transmit(now, &mut out).map(|_| out)
}

/// The reply to a datagram.
fn reply(listener: &mut Listener, now: Timestamp, peer: u64, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut out = vec![1, 2, 3];
    match listener.handle_datagram(now, peer, &with(bytes), &mut out) {
        ListenerEvent::Reply => Some(out),
        ListenerEvent::Nothing => None,
        ListenerEvent::Accepted(_) => panic!("accepted"),
    }
}

fn accepted(listener: &mut Listener, now: Timestamp, peer: u64, bytes: &[u8]) -> Box<Connection> {
    match listener.handle_datagram(now, peer, &with(bytes), &mut Vec::new()) {
        ListenerEvent::Accepted(connection) => connection,
        other => panic!("{other:?}"),
    }
}

fn reset_code(reply: Option<Vec<u8>>) -> Option<ResetCode> {
    let bytes = reply?;
    Some(parse(&bytes, 0).expect("what was written").reset?.0)
}

/// Any packet of ports 9 and 5004, without options.
fn packet(packet_type: PacketType, service: ServiceCode, port: u16) -> Vec<u8> {
    packet_with(packet_type, service, port, &[])
}

fn packet_with(packet_type: PacketType, service: ServiceCode, port: u16, options: &[DccpOption<'_>]) -> Vec<u8> {
    let header = Header {
        source_port: 9,
        destination_port: port,
        ccval: 0,
        checksum_coverage: 0,
        packet_type,
        sequence: WireSequence::Long(Seq48::new(1_000)),
        acknowledgement: packet_type.has_acknowledgement().then_some(WireSequence::Long(Seq48::new(5))),
    };
    let mut out = Vec::new();
    let mut writer = PacketWriter::new(&mut out, &header);
    match packet_type {
        PacketType::Request | PacketType::Response => writer.service_code(service),
        PacketType::Reset => writer.reset(ResetCode::ABORTED, [0; 3]),
        _ => {}
    }
    assert!(options.iter().all(|o| writer.option(o)));
    writer.finish();
    out
}

/// A client in PARTOPEN, its first Ack, and the Response.
fn answered(listener: &mut Listener, port: u16) -> (Connection, Vec<u8>, Vec<u8>) {
    let mut client = client(port, at(0));
    let request = next(&mut client, at(0)).expect("a Request");
    let response = reply(listener, at(10), PEER, &request).expect("a Response");
    client.handle_datagram(at(20), &with(&response));
    assert_eq!(client.state(), State::PartOpen);
    let ack = next(&mut client, at(20)).expect("an Ack");
    (client, response, ack)
}

/// Sends one datagram in each direction.
fn talk(client: &mut Connection, server: &mut Connection) {
    let mut out = Vec::new();
    for ms in 30..60 {
        let now = at(ms);
        if ms == 35 {
            client.send(now, &Message { bytes: b"up", ..Message::default() }).expect("room");
            server.send(now, &Message { bytes: b"down", ..Message::default() }).expect("room");
        }
        while client.poll_transmit(now, &mut out).is_some() {
            server.handle_datagram(now, &with(&out));
        }
        while server.poll_transmit(now, &mut out).is_some() {
            client.handle_datagram(now, &with(&out));
        }
    }
    assert_eq!((client.state(), server.state()), (State::Open, State::Open));
    assert!(server.receive(&mut out).is_some() && out == b"up");
    assert!(client.receive(&mut out).is_some() && out == b"down");
    let flipped = server.ccids().map(|(send, receive)| (receive, send));
    assert!(flipped.is_some() && client.ccids() == flipped);
}

#[test]
fn requests_become_connections_when_they_open() {
    let mut l = listener(|c| c.cookies = Cookies::Never);
    let mut c = client(9, at(0));
    let request = next(&mut c, at(0)).expect("a Request");
    let first = reply(&mut l, at(10), PEER, &request).expect("a Response");
    assert_eq!((l.half_open(), l.counters().requests), (1, 1));
    // It was lost: another Request, another Response with the next number (section 8.1.3).
    c.handle_timeout(at(1_000));
    let request = next(&mut c, at(1_000)).expect("a Request");
    let second = reply(&mut l, at(1_010), PEER, &request).expect("a Response");
    let number = |r: &[u8]| parse(r, 0).expect("a Response").header.sequence.extend(Seq48::new(0));
    assert_eq!(number(&second), number(&first).next());
    assert_eq!(parse(&second, 0).expect("a Response").service_code, Some(SERVICE));
    c.handle_datagram(at(1_020), &with(&second));
    let ack = next(&mut c, at(1_020)).expect("an Ack");
    let server = accepted(&mut l, at(1_030), PEER, &ack);
    assert_eq!((server.state(), l.half_open(), l.counters().accepted), (State::Open, 0, 1));
    let (mut c, _, ack) = answered(&mut l, 10);
    let mut server = accepted(&mut l, at(25), PEER, &ack);
    talk(&mut c, &mut server);
}

#[test]
fn cookies_keep_nothing_until_they_come_back() {
    let mut l = listener(|c| c.cookies = Cookies::Always);
    let (mut c, response, ack) = answered(&mut l, 9);
    assert_eq!((l.half_open(), l.counters().cookies_sent), (0, 1));
    let cookie = |bytes: &[u8]| {
        let packet = parse(bytes, 0).expect("a packet");
        packet.options.iter().map_while(Result::ok).find_map(|o| match o {
            DccpOption::InitCookie(c) => Some(c.to_vec()),
            _ => None,
        })
    };
    assert!(cookie(&response).is_some() && cookie(&response) == cookie(&ack));
    // Another listener with the same secret would do: nothing else is kept.
    let mut l = listener(|c| c.cookies = Cookies::Always);
    let mut server = accepted(&mut l, at(25), PEER, &ack);
    talk(&mut c, &mut server);
    // Only once.
    assert_eq!(reset_code(reply(&mut l, at(30), PEER, &ack)), Some(ResetCode::NO_CONNECTION));
    assert_eq!((l.counters().accepted, l.counters().cookies_stale), (1, 1));
}

#[test]
fn a_connection_made_from_a_cookie_is_the_one_that_was_answered() {
    let open = |cookies| {
        let mut l = listener(|c| {
            c.cookies = cookies;
            c.connection.sequence_window = 4_321;
            c.connection.minimum_checksum_coverage = 1;
        });
        let (mut client, _, ack) = answered(&mut l, 9);
        let mut server = accepted(&mut l, at(25), PEER, &ack);
        talk(&mut client, &mut server);
        (client.ccids(), client.counters().unexpected, server.counters().bad_options, client.max_packet_size())
    };
    assert_eq!(open(Cookies::Always), open(Cookies::Never));
}

#[test]
fn cookies_of_others_are_refused() {
    let mut l = listener(|c| c.cookies = Cookies::Always);
    let (_, _, ack) = answered(&mut l, 9);
    let start = ack.windows(2).position(|w| w[0] == 36).expect("an Init Cookie") + 2;
    let length = usize::from(ack[start - 1]) - 2;
    for i in 0..length {
        let mut forged = ack.clone();
        forged[start + i] ^= 1 << (i % 8);
        assert_eq!(reset_code(reply(&mut l, at(30), PEER, &forged)), Some(ResetCode::BAD_INIT_COOKIE), "byte {i}");
    }
    assert_eq!(l.counters().cookies_forged, length as u64);
    // From another address, or after too long.
    assert_eq!(reset_code(reply(&mut l, at(30), PEER + 1, &ack)), Some(ResetCode::BAD_INIT_COOKIE));
    assert_eq!(reset_code(reply(&mut l, at(62_000), PEER, &ack)), Some(ResetCode::BAD_INIT_COOKIE));
    assert_eq!((l.counters().cookies_stale, l.half_open()), (1, 0));
    let mut other_secret = listener(|c| c.key = [8; 32]);
    assert_eq!(reset_code(reply(&mut other_secret, at(30), PEER, &ack)), Some(ResetCode::BAD_INIT_COOKIE));
    // On a DCCP-Data it is ignored (section 8.1.4).
    let data = packet_with(PacketType::Data, SERVICE, 5_004, &[DccpOption::InitCookie(&ack[start..start + length])]);
    assert_eq!(reset_code(reply(&mut l, at(30), PEER, &data)), Some(ResetCode::NO_CONNECTION));
    accepted(&mut l, at(59_000), PEER, &ack);
}

#[test]
fn of_two_responses_the_client_takes_one() {
    let mut l = listener(|c| c.cookies = Cookies::Always);
    let mut c = client(9, at(0));
    let request = next(&mut c, at(0)).expect("a Request");
    let first = reply(&mut l, at(10), PEER, &request).expect("a Response");
    c.handle_timeout(at(1_000));
    let request = next(&mut c, at(1_000)).expect("a Request");
    let second = reply(&mut l, at(1_010), PEER, &request).expect("a Response");
    // Both are received, and the first again: the cookie and the acknowledged number are of one of them.
    let mut ack = None;
    for response in [&first, &second, &first] {
        c.handle_datagram(at(1_020), &with(response));
        ack = next(&mut c, at(1_020)).or(ack);
    }
    let server = accepted(&mut l, at(1_030), PEER, &ack.expect("an Ack"));
    assert_eq!(server.state(), State::Open);
}

#[test]
fn cookies_begin_when_many_are_half_open() {
    let mut l = listener(|c| c.cookies = Cookies::From(3));
    for port in 1..=5 {
        answered(&mut l, port);
    }
    assert_eq!((l.half_open(), l.counters().cookies_sent), (3, 2));
}

#[test]
fn services_not_offered_are_refused() {
    let code = |l: &mut Listener, service, port| {
        reset_code(reply(l, at(0), PEER, &packet(PacketType::Request, service, port)))
    };
    let mut l = listener(|c| c.services = vec![ServiceCode::RTP_AUDIO, ServiceCode::INVALID]);
    assert_eq!(code(&mut l, SERVICE, 6), Some(ResetCode::CONNECTION_REFUSED));
    assert_eq!(code(&mut l, ServiceCode(1), 5_004), Some(ResetCode::BAD_SERVICE_CODE));
    // Never, for any offer (section 8.1.2).
    assert_eq!(code(&mut l, ServiceCode::INVALID, 5_004), Some(ResetCode::BAD_SERVICE_CODE));
    assert_eq!(code(&mut l, ServiceCode::RTP_AUDIO, 5_004), None);
    assert_eq!((l.half_open(), l.counters().refused), (1, 3));
    l.set_busy(true);
    let mut other = packet(PacketType::Request, SERVICE, 5_004);
    other[1] = 10;
    assert_eq!(reset_code(reply(&mut l, at(0), PEER, &other)), Some(ResetCode::TOO_BUSY));
    let mut l = listener(|c| (c.cookies, c.most_half_open, c.pairs) = (Cookies::Never, 2, PairUse::One));
    assert_eq!(code(&mut l, SERVICE, 5_004), None);
    assert_eq!(reset_code(reply(&mut l, at(0), PEER, &other)), Some(ResetCode::ENCAPSULATED_PORT_REUSE));
    assert_eq!(reset_code(reply(&mut l, at(0), PEER + 1, &other)), None);
    assert_eq!(reset_code(reply(&mut l, at(0), PEER + 2, &other)), Some(ResetCode::TOO_BUSY));
    let mut out = Vec::new();
    assert!(matches!(l.refuse_reuse(at(0), &with(&other), &mut out), ListenerEvent::Reply));
    assert_eq!(reset_code(Some(out)), Some(ResetCode::ENCAPSULATED_PORT_REUSE));
}

#[test]
fn strays_are_reset_at_a_bounded_rate() {
    let mut l = listener(|_| {});
    for packet_type in PacketType::ALL {
        let expected = match packet_type {
            PacketType::Request => continue,
            PacketType::Reset => None,
            _ => Some(ResetCode::NO_CONNECTION),
        };
        assert_eq!(reset_code(reply(&mut l, at(0), PEER, &packet(packet_type, SERVICE, 5_004))), expected);
    }
    assert!(reply(&mut l, at(0), PEER, &[0; 11]).is_none());
    assert_eq!(l.counters().malformed, 1);

    // Never more bytes than were received, nor more Resets than allowed.
    let mut l = listener(|c| c.resets_per_second = 100);
    let short = {
        let mut p = packet(PacketType::Data, SERVICE, 5_004);
        p.truncate(12);
        (p[4], p[8]) = (3, 2 << 1);
        p
    };
    let (mut came, mut left, mut resets) = (0, 0, 0);
    for ms in 0..10_000 {
        let stray = if ms % 3 == 0 { short.clone() } else { packet(PacketType::Ack, SERVICE, 5_004) };
        came += stray.len();
        if let Some(reset) = reply(&mut l, at(ms), PEER, &stray) {
            (left, resets) = (left + reset.len(), resets + 1);
        }
        assert!(left <= came + FIRST_CREDIT);
    }
    assert!((900..=1_101).contains(&resets), "{resets}");
    assert_eq!(l.counters().resets, resets);
    assert_eq!(l.counters().rate_limited, 10_000 - resets);
    let mut l = listener(|_| {});
    let of_short = (0..1_000).filter(|_| reply(&mut l, at(0), PEER, &short).is_some()).count();
    assert_eq!(of_short, (1_000 * 12 + FIRST_CREDIT) / 28);
}

#[test]
fn half_open_connections_are_given_up() {
    let mut l = listener(|c| c.half_open_timeout = TimeDelta::from_secs(480));
    let (_, _, _) = answered(&mut l, 9);
    let due = l.poll_timeout().expect("one is half open");
    assert_eq!(due, at(10) + TimeDelta::from_secs(480));
    l.handle_timeout(due - TimeDelta::from_millis(1));
    assert_eq!(l.half_open(), 1);
    l.handle_timeout(due);
    assert_eq!((l.half_open(), l.counters().given_up, l.poll_timeout()), (0, 1, None));
    let mut out = Vec::new();
    assert_eq!(l.poll_transmit(&mut out), Some(PEER));
    assert_eq!(reset_code(Some(out.clone())), Some(ResetCode::ABORTED));
    assert_eq!(l.poll_transmit(&mut out), None);
}

#[test]
fn responses_are_no_amplifiers() {
    // Requests with Changes that have the longest possible Confirms.
    let sets: [&[DccpOption<'_>]; 4] = [
        &[],
        &[DccpOption::ChangeR(FeatureNumber::MINIMUM_CHECKSUM_COVERAGE, &[0])],
        &[
            DccpOption::ChangeL(FeatureNumber::MINIMUM_CHECKSUM_COVERAGE, &[0]),
            DccpOption::ChangeL(FeatureNumber::CCID, &[2]),
            DccpOption::ChangeR(FeatureNumber::CCID, &[2]),
        ],
        &[DccpOption::ChangeL(FeatureNumber(77), &[1]), DccpOption::Timestamp(1)],
    ];
    for options in sets {
        let mut l = listener(|c| c.cookies = Cookies::Always);
        let request = packet_with(PacketType::Request, SERVICE, 5_004, options);
        let response = reply(&mut l, at(0), PEER, &request).expect("a Response");
        assert!(response.len() + 28 < 3 * (request.len() + 28), "{} for {}", response.len(), request.len());
    }
    // Requests that do not fit a cookie are refused.
    let many = [1; 250];
    let options = [DccpOption::ChangeL(FeatureNumber(77), &many)];
    let mut l = listener(|c| c.cookies = Cookies::Always);
    let request = packet_with(PacketType::Request, SERVICE, 5_004, &options);
    assert_eq!(reset_code(reply(&mut l, at(0), PEER, &request)), Some(ResetCode::TOO_BUSY));
}

#[test]
fn initial_numbers_are_unique() {
    let number = |l: &mut Listener, peer| {
        let request = packet(PacketType::Request, SERVICE, 5_004);
        let response = reply(l, at(0), peer, &request).expect("a Response");
        parse(&response, 0).expect("a Response").header.sequence.extend(Seq48::new(0)).get()
    };
    let mut l = listener(|_| {});
    let mut numbers: Vec<_> = (0..20).map(|peer| number(&mut l, peer)).collect();
    assert_eq!(number(&mut listener(|_| {}), 3), numbers[3], "of the address and the secret");
    numbers.extend((0..20).map(|peer| number(&mut listener(|c| c.key = [8; 32]), peer)));
    numbers.sort_unstable();
    // 40 of 2^48 at random: the nearest two are closer than 2^20 in one of 300,000 cases.
    assert!(numbers.windows(2).all(|w| w[1] - w[0] > 1 << 20));
}

#[test]
fn a_configuration_that_is_none_is_refused() {
    let mut config = ListenerConfig::new(connection(), [0; 32]);
    config.connection.ccids.send = vec![99];
    assert!(Listener::new(config).is_err());
}

proptest::proptest! {
    /// For any input: no panic, no more half-open connections than allowed, every reply a valid packet.
    #[test]
    fn garbage_is_harmless(
        packets in proptest::collection::vec((0u64..4, 0u8..10, 0u16..3, proptest::collection::vec(proptest::num::u8::ANY, 0..80)), 1..60),
        always in proptest::bool::ANY,
    ) {
        let mut l = listener(|c| {
            c.most_half_open = 3;
            c.cookies = if always { Cookies::Always } else { Cookies::Never };
        });
        let mut out = Vec::new();
        for (i, (peer, packet_type, port, tail)) in packets.iter().enumerate() {
            let packet_type = PacketType::from_number(*packet_type).expect("below 10");
            let mut bytes = packet(packet_type, SERVICE, 5_003 + port);
            let padded = tail.len() / 4 * 4;
            bytes.extend_from_slice(&tail[..padded]);
            if i % 2 == 0 {
                bytes[4] += (padded / 4) as u8;
            }
            if let ListenerEvent::Reply = l.handle_datagram(at(i as i64 * 100), *peer, &with(&bytes), &mut out) {
                proptest::prop_assert!(parse(&out, 0).is_ok());
            }
            proptest::prop_assert!(l.half_open() <= 3);
        }
        l.handle_timeout(at(1_000_000));
        proptest::prop_assert_eq!(l.half_open(), 0);
    }
}
