//! RFC 4340, sections 5.8, 7.7, 9, 11 to 14.

use super::super::{Config, EndReason, SendError, State};
use super::harness::{Link, Pair, Side, TEST_CCID, config};
use crate::feature::Location;
use crate::option::{DccpOption as O, FeatureNumber};
use crate::packet::{PacketType as T, ResetCode};
use crate::queue::Message;
use Side::{Client as C, Server as S};
use weir_units::{DataSize, Ecn, TimeDelta};

/// Delivers an Ack with these option bytes from the client to the server.
fn bring(pair: &mut Pair, packet_type: T, options: &[u8]) {
    let (seq, ack) = (pair.client.sequences.gss.add(1), pair.server().sequences.gss);
    let mut bytes = pair.forge(C, packet_type, seq, Some(ack));
    bytes.extend_from_slice(options);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes[4] = (bytes.len() / 4) as u8;
    pair.deliver(S, &bytes, 0, Ecn::NotEct);
}

#[test]
fn mandatory_resets_where_it_must() {
    type Case<'a> = (&'a [u8], Option<(ResetCode, [u8; 3])>);
    let cases: &[Case<'_>] = &[
        // An unknown option, alone and after Mandatory.
        (&[99, 4, 7, 8], None),
        (&[1, 99, 4, 7, 8], Some((ResetCode::MANDATORY_ERROR, [99, 7, 8]))),
        // A Timestamp is understood; one of a wrong length is not.
        (&[1, 41, 6, 0, 0, 0, 1], None),
        (&[1, 41, 5, 9, 0, 0], Some((ResetCode::MANDATORY_ERROR, [41, 9, 0]))),
        (&[41, 5, 9, 0, 0], None),
        // Mandatory twice, and Mandatory at the end; after it, padding is padding.
        (&[1, 1, 0, 0], Some((ResetCode::OPTION_ERROR, [1, 0, 0]))),
        (&[0, 0, 0, 1], Some((ResetCode::OPTION_ERROR, [1, 0, 0]))),
        (&[1, 0, 0, 0], None),
        // An unknown feature.
        (&[1, 32, 4, 200, 1], Some((ResetCode::MANDATORY_ERROR, [32, 200, 1]))),
    ];
    for (options, expected) in cases {
        let mut pair = Pair::open(config(), Link::default());
        bring(&mut pair, T::Ack, options);
        let sent = pair.sent(S, T::Reset).first().and_then(|s| s.packet().reset);
        assert_eq!(sent, *expected, "{options:?}");
        let end = pair.server().end().map(|e| e.reason);
        assert_eq!(end, expected.map(|(code, data)| EndReason::Reset(code, data)), "{options:?}");
        // On DCCP-Data all of it has no effect (section 7.5.5).
        let mut pair = Pair::open(config(), Link::default());
        bring(&mut pair, T::Data, options);
        assert_eq!(pair.server().state(), State::Open);
    }
}

#[test]
fn ndp_counts_report_packets_without_data() {
    let mut pair = Pair::open(config(), Link::default());
    // Data in one direction only: the server's Acks are without data.
    for i in 0..40u8 {
        pair.send(C, &[i]);
        pair.run(TimeDelta::from_millis(3));
    }
    pair.send(S, b"x");
    pair.run(TimeDelta::from_millis(100));
    for side in [C, S] {
        let mut run = None;
        for s in pair.log.iter().filter(|s| s.from == side) {
            let reported = s.options().iter().find_map(|o| if let O::NdpCount(n) = o { Some(*n) } else { None });
            if let Some(run) = run {
                assert_eq!(reported.unwrap_or(0), run, "{side:?} {}", s.sequence);
            }
            run = Some(if s.packet_type.is_data() { 0 } else { run.or(reported).unwrap_or(0) + 1 });
        }
    }
}

#[test]
fn timestamps_are_echoed_and_measure() {
    let link = Link { delay: TimeDelta::from_millis(35), ..Link::default() };
    let mut pair = Pair::open(Config { timestamps: true, ..config() }, link);
    for i in 0..100u8 {
        pair.send(C, &[i]);
        pair.run(TimeDelta::from_millis(10));
    }
    let stamps = pair.log.iter().filter(|s| s.options().iter().any(|o| matches!(o, O::Timestamp(_)))).count();
    let echoes = pair.log.iter().filter(|s| s.options().iter().any(|o| matches!(o, O::TimestampEcho { .. }))).count();
    // Once per round trip of 70 ms within 1 s.
    assert!((12..=16).contains(&stamps) && stamps - echoes <= 1, "{stamps} {echoes}");
    let rtt = pair.client.rtt().expect("measured");
    assert!((rtt.as_millis_f64() - 70.0).abs() < 1.0, "{rtt}");
}

#[test]
fn acknowledgements_say_how_long_they_were_held() {
    let mut pair = Pair::open(config(), Link::default());
    pair.send(C, b"one");
    pair.run(TimeDelta::from_millis(200));
    // The CCID of tests acknowledges a single packet after 50 ms.
    let ack = pair.sent(S, T::Ack)[0];
    assert!(ack.options().contains(&O::ElapsedTime(5_000)), "{:?}", ack.options());
}

#[test]
fn data_that_does_not_fit_the_receive_queue_is_reported_dropped() {
    let mut pair = Pair::with(
        config(),
        Config { local_port: 2_002, remote_port: 1_001, receive_capacity: 4, ..config() },
        Link::default(),
    );
    pair.run(TimeDelta::from_millis(200));
    // Delivers eight directly, so that the application reads nothing in between.
    let (seq, now) = (pair.client.sequences.gss, pair.now);
    for i in 1..=8 {
        let mut bytes = pair.forge(C, T::Data, seq.add(i), None);
        bytes.push(i as u8);
        let datagram = super::super::Datagram { bytes: &bytes, payload: 0, ecn: Ecn::NotEct };
        pair.server().handle_datagram(now, &datagram);
    }
    pair.log.clear();
    pair.flush();
    assert_eq!(pair.received[&S].len(), 4);
    let options = pair.sent(S, T::Ack)[0].options();
    // Section 11.7: a drop block of four, code 2. And the queue was more than half full: Slow Receiver.
    assert!(options.contains(&O::DataDropped(&[0xa3])) && options.contains(&O::SlowReceiver), "{options:?}");
    assert_eq!(pair.server().counters().data_dropped, 4);
}

#[test]
fn slow_receiver_is_signalled_while_it_lasts() {
    let mut pair = Pair::open(config(), Link::default());
    pair.server().set_slow_receiver(true);
    pair.send(C, b"1");
    pair.send(C, b"2");
    pair.run(TimeDelta::from_millis(45));
    assert!(pair.client.peer_is_slow(pair.now));
    pair.server().set_slow_receiver(false);
    pair.run(TimeDelta::from_millis(200));
    assert!(!pair.client.peer_is_slow(pair.now));
}

#[test]
fn a_wrong_data_checksum_drops_the_data() {
    let mut pair = Pair::open(Config { data_checksum: true, ..config() }, Link::default());
    pair.send(C, b"right");
    let mut bytes = pair.log[0].bytes.clone();
    assert!(pair.log[0].options().iter().any(|o| matches!(o, O::DataChecksum(_))));
    pair.run(TimeDelta::from_millis(30));
    assert_eq!(pair.received[&S], [b"right"]);
    // The same again with one bit inverted, as the next packet.
    let last = bytes.len() - 1;
    bytes[last] ^= 4;
    let next = pair.client.sequences.send().get().to_be_bytes();
    bytes[10..16].copy_from_slice(&next[2..]);
    pair.deliver(S, &bytes, 0, Ecn::NotEct);
    pair.run(TimeDelta::from_millis(100));
    assert_eq!((pair.received[&S].len(), pair.server().counters().data_dropped), (1, 1));
    let ack = pair.sent(S, T::Ack).into_iter().next_back().expect("an acknowledgement");
    assert!(ack.options().contains(&O::DataDropped(&[0xb0])), "{:?}", ack.options());
    // It counts as received (section 9.3).
    assert_eq!(ack.ack, Some(pair.client.sequences.gss.get()));
}

#[test]
fn less_coverage_than_agreed_drops_the_data() {
    let partial = Config { checksum_coverage: 2, minimum_checksum_coverage: 2, ..config() };
    let mut pair = Pair::open(partial.clone(), Link::default());
    pair.send(C, b"eight by");
    assert_eq!(pair.log[0].packet().header.checksum_coverage, 2);
    // Four bytes have to be there to be covered.
    pair.send(C, b"x");
    assert_eq!(pair.log[1].packet().header.checksum_coverage, 0);
    pair.run(TimeDelta::from_millis(100));
    assert_eq!(pair.received[&S].len(), 2);
    // An end that requires full coverage is sent nothing else, and drops partial coverage (section 9.2.1).
    let mut pair = Pair::open(config(), Link::default());
    let mut bytes = pair.forge(C, T::Data, pair.client.sequences.gss.add(1), None);
    bytes[5] = 1;
    bytes.extend_from_slice(b"uncovered");
    pair.deliver(S, &bytes, 0, Ecn::NotEct);
    assert_eq!(pair.server().counters().data_dropped, 1);
    pair.run(TimeDelta::from_millis(100));
    assert!(pair.sent(S, T::Ack)[0].options().contains(&O::DataDropped(&[0x80])));
}

#[test]
fn ecn_marks_are_acknowledged_and_only_sent_for_where_both_agree() {
    let mut pair = Pair::open(config(), Link { marks: 1.0, ..Link::default() });
    pair.send(C, b"marked");
    assert_eq!(pair.log[0].transmit.ecn, Ecn::Ect0);
    pair.run(TimeDelta::from_millis(100));
    let options = pair.sent(S, T::Ack)[0].options();
    let first = options.iter().find_map(|o| if let O::AckVector { runs, .. } = o { Some(runs[0]) } else { None });
    assert_eq!(first.map(|b| b >> 6), Some(1), "{options:?}");
    assert!(pair.client.counters().data_marked >= 1);
    // By the sender's wish, and by a receiver that cannot read the field (section 12.1).
    for (ecn, incapable) in [(false, 0), (true, 1)] {
        let mut pair = Pair::open(Config { ecn, ..config() }, Link::default());
        assert!(pair.server().change_feature(Location::Local, FeatureNumber::ECN_INCAPABLE, &[incapable]));
        pair.run(TimeDelta::from_secs(1));
        assert_eq!(pair.client.feature(Location::Remote, FeatureNumber::ECN_INCAPABLE), incapable);
        pair.log.clear();
        pair.send(C, b"plain");
        assert_eq!(pair.log[0].transmit.ecn, Ecn::NotEct);
    }
}

#[test]
fn acknowledgements_ride_on_data_and_part_from_it_where_both_do_not_fit() {
    // Data waits at the server when an acknowledgement is due.
    let mut pair = Pair::open(config(), Link::default());
    let (seq, now) = (pair.client.sequences.gss, pair.now);
    let arrive = |pair: &mut Pair, n: std::ops::RangeInclusive<u64>| {
        for i in n {
            let bytes = pair.forge(C, T::Data, seq.add(i), None);
            let datagram = super::super::Datagram { bytes: &bytes, payload: 0, ecn: Ecn::NotEct };
            pair.server().handle_datagram(now, &datagram);
        }
    };
    arrive(&mut pair, 1..=2);
    pair.send(S, b"answer");
    assert_eq!(pair.types(), [(S, T::DataAck)]);
    // Alternating holes make a vector that leaves no room for the longest data.
    for i in 0..300 {
        arrive(&mut pair, 4 + 2 * i..=4 + 2 * i);
    }
    pair.log.clear();
    let longest = vec![7; pair.server().max_packet_size().as_bytes() as usize];
    pair.send(S, &longest);
    assert_eq!(pair.types(), [(S, T::Ack), (S, T::Data)]);
    assert!(pair.log.iter().all(|s| s.transmit.size <= DataSize::from_bytes(1_472)));
    assert_eq!(pair.log[1].packet().data.len(), longest.len());
}

#[test]
fn data_longer_than_a_packet_are_refused() {
    let mut pair = Pair::open(config(), Link::default());
    let max = pair.client.max_packet_size();
    assert_eq!(max, DataSize::from_bytes(1_500 - 28 - 92));
    let now = pair.now;
    let bytes = vec![0; max.as_bytes() as usize + 1];
    let refused = pair.client.send(now, &Message { bytes: &bytes, ..Message::default() });
    assert_eq!(refused, Err(SendError::TooLong { size: DataSize::from_bytes(1_381), max }));
    let refused = pair.client.send(now, &Message { bytes: &[1], payload: 1_380, ..Message::default() });
    assert!(refused.is_err());
    pair.client.set_queue(crate::queue::QueueConfig { capacity: 1, ..pair.client.queue().config() });
    assert_eq!(pair.client.send(now, &Message { bytes: &[1], payload: 1_379, ..Message::default() }), Ok(()));
    assert_eq!(pair.client.send(now, &Message::default()), Err(SendError::WouldBlock));
    pair.run(TimeDelta::from_millis(50));
    assert_eq!(pair.received[&S], [[1]]);
    assert_eq!(pair.server().counters().data_bytes_received, 5 + 1_380);
}

#[test]
fn path_mtu_is_probed_by_syncs() {
    let probing = Config { max_mtu: DataSize::from_bytes(9_000), initial_mtu: DataSize::from_bytes(1_280), ..config() };
    for (path, least) in [(9_000, 9_000), (4_352, 4_345), (1_280, 1_280)] {
        let mut pair = Pair::open(probing.clone(), Link { mtu: path, ..Link::default() });
        pair.run(TimeDelta::from_secs(20));
        let found = pair.client.path_mtu().as_bytes();
        assert!((least..=path).contains(&found), "{found} of {path}");
        let probes: Vec<_> = pair.log.iter().filter(|s| s.transmit.is_probe).collect();
        assert!(probes.iter().all(|s| s.packet_type == T::Sync));
        // Data of that length pass.
        let longest = vec![7; pair.client.max_packet_size().as_bytes() as usize];
        pair.send(C, &longest);
        pair.run(TimeDelta::from_millis(50));
        assert_eq!(pair.received[&S].last(), Some(&longest));
        let now = pair.now;
        pair.client.on_path_mtu(now, DataSize::from_bytes(1_300));
        assert_eq!(pair.client.path_mtu().as_bytes(), found.min(1_300));
    }
}

#[test]
fn both_directions_may_have_ccids_of_their_own() {
    use super::super::Ccids;
    let ccids = Ccids { send: vec![2], receive: vec![TEST_CCID], params: Vec::new() };
    let server = Ccids { send: vec![2, TEST_CCID], receive: vec![TEST_CCID, 2], params: Vec::new() };
    let mut pair = Pair::with(
        Config { ccids, ..config() },
        Config { local_port: 2_002, remote_port: 1_001, ccids: server, ..config() },
        Link::default(),
    );
    pair.run(TimeDelta::from_millis(500));
    assert_eq!(pair.client.ccids(), Some((2, TEST_CCID)));
    assert_eq!(pair.server().ccids(), Some((TEST_CCID, 2)));
    for i in 0..50u8 {
        pair.send(C, &[i]);
        pair.send(S, &[i]);
        pair.run(TimeDelta::from_millis(20));
    }
    assert_eq!((pair.received[&C].len() >= 48, pair.received[&S].len() >= 48), (true, true));
}

#[test]
fn data_wait_while_the_other_end_may_not_take_them() {
    // Section 11.7.2, Drop Code 0: the sender should not send until it believes that the constraint no longer applies.
    let mut pair = Pair::open(config(), Link::default());
    pair.run(TimeDelta::from_secs(1));
    pair.send(C, b"dropped");
    pair.run(TimeDelta::from_millis(25));
    let (seq, ack) = (pair.server().sequences.gss.add(1), pair.client.sequences.gss);
    let bytes = pair.forge_with(S, T::Ack, seq, Some(ack), &[O::DataDropped(&[0x80])]);
    pair.deliver(C, &bytes, 0, Ecn::NotEct);
    let reported = pair.now;
    pair.log.clear();
    pair.send(C, b"later");
    assert!(pair.sent(C, T::Data).is_empty());
    // A repeated report of the same packet delays nothing.
    pair.run(TimeDelta::from_millis(30));
    let bytes = pair.forge_with(S, T::Ack, seq.add(1), Some(ack), &[O::DataDropped(&[0x80])]);
    pair.deliver(C, &bytes, 0, Ecn::NotEct);
    pair.run(TimeDelta::from_millis(100));
    let left = pair.log.iter().find(|s| s.from == C && s.packet_type.is_data()).expect("data");
    assert_eq!(left.at.saturating_since(reported), pair.client.rtt().expect("measured"));
}

#[test]
fn applications_may_report_unusable_data() {
    use crate::data_dropped::DropCode;
    let mut pair = Pair::open(config(), Link::default());
    let (seq, now) = (pair.client.sequences.gss, pair.now);
    let mut out = Vec::new();
    for i in 1..=2 {
        let bytes = pair.forge(C, T::Data, seq.add(i), None);
        let datagram = super::super::Datagram { bytes: &bytes, payload: 0, ecn: Ecn::NotEct };
        pair.server().handle_datagram(now, &datagram);
    }
    let first = pair.server().receive(&mut out).expect("data");
    assert_eq!(first.sequence, seq.add(1));
    pair.server().report_dropped(first.sequence, DropCode::CORRUPT);
    // Not less than that afterwards, and nothing that was not received.
    pair.server().report_dropped(first.sequence, DropCode::RECEIVE_BUFFER);
    pair.server().report_dropped(seq.add(9), DropCode::RECEIVE_BUFFER);
    pair.flush();
    let options = pair.sent(S, T::Ack)[0].options();
    assert!(options.contains(&O::DataDropped(&[0x00, 0xb0])), "{options:?}");
}

#[test]
fn vectors_stay_short_for_any_pattern() {
    use super::super::Ccids;
    // The choice of packets that acknowledge depends on the timing of both ends; no pattern may leave vectors that are never
    // acknowledged.
    for (delay, gap_client, gap_server) in [(0, 1, 1), (20, 2, 2), (20, 7, 1), (5, 5, 0), (1, 3, 7)] {
        let link = Link { delay: TimeDelta::from_millis(delay), ..Link::default() };
        let mut pair = Pair::open(Config { ccids: Ccids::both(2), ..config() }, link);
        for i in 0..3_000 {
            for (side, gap) in [(C, gap_client), (S, gap_server)] {
                if gap > 0 && i % gap == 0 {
                    let now = pair.now;
                    pair.end(side).send(now, &Message { bytes: b"data", ..Message::default() }).ok();
                }
            }
            pair.run(TimeDelta::from_millis(1));
        }
        let bytes = [C, S].map(|side| pair.end(side).halves.vector.option_bytes());
        assert!(bytes.iter().all(|b| *b <= 16), "{delay} {gap_client} {gap_server}: {bytes:?}");
    }
}
