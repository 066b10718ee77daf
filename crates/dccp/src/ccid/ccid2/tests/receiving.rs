//! When the receiver acknowledges (RFC 4340, section 11.3).

use super::{ms, setup};
use crate::ccid::ccid2::{Config, Receiver};
use crate::ccid::{CcidReceiver, ReceivedPacket};
use crate::option::{DccpOption, Options};
use crate::packet::{Header, PacketType, PacketWriter, WireSequence, parse};
use weir_units::{DataSize, Ecn, Seq48, TimeDelta, Timestamp};

fn receiver() -> Receiver {
    Receiver::new(&setup(), &Config::default())
}

fn packet(now_ms: i64, seq: u64) -> ReceivedPacket<'static> {
    ReceivedPacket {
        now: Timestamp::from_millis(now_ms),
        sequence: Seq48::new(seq),
        packet_type: PacketType::Data,
        data: DataSize::from_bytes(1_000),
        ecn: Ecn::Ect0,
        ccval: 0,
        ndp_count: None,
        rtt: Some(ms(50)),
        options: Options::new(&[], PacketType::Data),
    }
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

#[test]
fn every_ack_ratio_packets() {
    let mut r = receiver();
    let mut seq = 0;
    // Zero signals that the sender does not use it: then the initial value applies.
    for (ratio, want) in [(2, 50), (1, 100), (5, 20), (0, 50)] {
        r.on_ack_ratio(ratio);
        let mut acks = 0;
        for n in 0..100 {
            seq += 1;
            r.on_packet(&packet(n, seq));
            if r.wants_ack(at(n)) {
                r.on_ack_sent(at(n));
                acks += 1;
            }
        }
        assert_eq!(acks, want, "{ratio}");
    }
}

#[test]
fn after_a_fifth_of_a_second_at_the_latest() {
    let mut r = receiver();
    assert_eq!((r.poll_timeout(), r.wants_ack(at(0))), (None, false));
    r.on_packet(&packet(10, 7));
    assert_eq!((r.poll_timeout(), r.wants_ack(at(209))), (Some(at(210)), false));
    assert!(r.wants_ack(at(210)));
    r.on_ack_sent(at(210));
    assert_eq!((r.poll_timeout(), r.wants_ack(at(400))), (None, false));
}

#[test]
fn at_once_after_gaps_and_late_packets() {
    let mut r = receiver();
    let wants = |r: &mut Receiver, seq| {
        r.on_packet(&packet(0, seq));
        let wants = r.wants_ack(at(0));
        if wants {
            assert!(r.poll_timeout().is_some_and(|t| t <= at(0)) || r.waiting >= 2);
            r.on_ack_sent(at(0));
        }
        wants
    };
    let seen: Vec<_> = [1, 2, 4, 5, 6, 3, 7, 8].map(|n| wants(&mut r, n)).to_vec();
    assert_eq!(seen, [false, true, true, false, true, true, false, true]);
}

#[test]
fn packets_without_data_make_no_acknowledgement_due() {
    let mut r = receiver();
    let without = |seq| ReceivedPacket { packet_type: PacketType::Ack, data: DataSize::ZERO, ..packet(0, seq) };
    (1..50).for_each(|n| r.on_packet(&without(2 * n)));
    assert_eq!((r.poll_timeout(), r.wants_ack(at(1_000_000))), (None, false));
    // The gap that they reported is acknowledged with the next data.
    r.on_packet(&packet(0, 99));
    assert!(r.wants_ack(at(0)));
}

#[test]
fn marks_at_once_but_once_a_round_trip() {
    let mut r = receiver();
    r.on_ack_ratio(100);
    let mut acks = Vec::new();
    for n in 0..200 {
        r.on_packet(&ReceivedPacket { ecn: Ecn::Ce, ..packet(n, n as u64) });
        if r.wants_ack(at(n)) {
            acks.push(n);
            r.on_ack_sent(at(n));
        }
    }
    assert_eq!(acks, [0, 50, 100, 150]);
}

#[test]
fn reports_how_long_it_has_waited() {
    for (held, want) in [(0, None), (200_000, Some(20_000)), (999, None), (1_000, Some(100))] {
        let mut r = receiver();
        r.on_packet(&packet(0, 1));
        r.on_packet(&packet(1_000, 2));
        // The acknowledged packet is the one with the greatest number, not the last received.
        r.on_packet(&packet(1_500, 1));
        let header = Header {
            source_port: 1,
            destination_port: 2,
            ccval: 0,
            checksum_coverage: 0,
            packet_type: PacketType::Ack,
            sequence: WireSequence::Short(1),
            acknowledgement: Some(WireSequence::Short(2)),
        };
        let mut out = Vec::new();
        let mut w = PacketWriter::new(&mut out, &header);
        r.write_options(at(1_000) + TimeDelta::from_micros(held), &mut w);
        w.finish();
        let packet = parse(&out, 0).expect("our own");
        let reported = packet.options.iter().find_map(|o| match o {
            Ok(DccpOption::ElapsedTime(t)) => Some(t),
            _ => None,
        });
        assert_eq!(reported, want, "{held} us");
    }
}
