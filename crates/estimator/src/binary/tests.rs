//! Both messages, there and back, and what no message is.

use super::*;
use crate::protocol::{Carries, Event, PacketFate};

fn packets() -> Vec<PacketFate> {
    let lost = PacketFate {
        sequence: 7,
        sent_ns: -1,
        arrived_ns: None,
        size_bytes: 1_200,
        ce: false,
        probe: 0,
        was_lost: false,
    };
    let late = PacketFate { arrived_ns: Some(i64::MIN), ce: true, probe: 9, was_lost: true, ..lost.clone() };
    vec![lost, late]
}

/// Every kind, with and without what may be absent.
fn events() -> Vec<Event> {
    let sent = |carries| Event::Sent {
        now_ns: 1,
        sequence: u64::MAX,
        size_bytes: 1_200,
        carries,
        probe: 3,
        queued_bytes: 4,
        in_flight_bytes: 5,
    };
    let feedback = |rtt_ns, packets| Event::Feedback { now_ns: 2, packets, in_flight_bytes: 9, rtt_ns };
    let report = |rtt_ns| Event::Report {
        now_ns: 3,
        fraction_lost: 0.25,
        cumulative_lost: -4,
        highest_sequence: 70_000,
        expected: 12,
        jitter_ns: 1_000,
        rtt_ns,
    };
    let received = |sent_ns, marker, ce| Event::Received {
        now_ns: 9,
        sequence: 65_536,
        sent_ns,
        size_bytes: 1_212,
        payload_bytes: 1_180,
        rtp_timestamp: u32::MAX,
        marker,
        ce,
    };
    vec![
        sent(Carries::Media),
        sent(Carries::Padding),
        sent(Carries::Repair),
        sent(Carries::Retransmission),
        feedback(None, Vec::new()),
        feedback(Some(100), packets()),
        report(None),
        report(Some(0)),
        Event::Estimate { now_ns: 4, rate_bps: None, message: Message::Tmmbr },
        Event::Estimate { now_ns: 4, rate_bps: Some(300_000), message: Message::Remb },
        Event::Queue { now_ns: 5, added_bytes: 1, queued_bytes: 2, oldest_age_ns: 3 },
        Event::Limits { now_ns: 6, floor_bps: 1, ceiling_bps: 2 },
        Event::Timer { now_ns: 7 },
        Event::Rtcp { now_ns: 8, bytes: Vec::new() },
        Event::Rtcp { now_ns: 8, bytes: vec![0x81, 0xcd, 0, 9, 255] },
        Event::Rtcp { now_ns: 8, bytes: vec![7; 8] },
        received(None, false, false),
        received(Some(-3), true, false),
        received(Some(3), false, true),
        Event::Rtt { now_ns: 10, rtt_ns: 50_000_000 },
        Event::Target { now_ns: 11, media_bps: 1, pacing_bps: u64::MAX },
    ]
}

fn answers() -> Vec<Answer> {
    let probe = Probe { id: 1, rate_bps: 2e6, min_packets: 5, min_bytes: 6_000 };
    let full = Answer {
        turn: u64::MAX,
        media_bps: 1.5e6,
        pacing_bps: Some(0.1),
        paces_payload: true,
        padding_bps: Some(0.0),
        window_bytes: Some(0),
        max_queue_age_ns: Some(-1),
        overhead_bytes: Some(40),
        timer_ns: Some(i64::MAX),
        repair: Some(Repair::ReedSolomon { block: 10, repair: 2 }),
        probes: vec![probe.clone(), Probe { id: 2, ..probe }],
        report: Some(Message::Tmmbr),
        about: None,
    };
    let repair = Some(Repair::Parity { interval: 255 });
    let remb = Answer { report: Some(Message::Remb), probes: Vec::new(), pacing_bps: None, repair, ..full.clone() };
    let standby = Answer { repair: Some(Repair::Standby { interval: 2 }), ..remb.clone() };
    vec![Answer { turn: 3, media_bps: 0.25, ..Answer::default() }, full, remb, standby]
}

fn turn(events: &[Event]) -> Vec<u8> {
    let mut out = Vec::new();
    write_turn(12, events, &mut out);
    out
}

fn answer(a: &Answer) -> Vec<u8> {
    let mut out = Vec::new();
    write_answer(a, &mut out);
    out
}

#[test]
fn what_is_written_is_read_and_has_the_lengths_of_the_documentation() {
    let all = events();
    let read = read_turn(&turn(&all)).expect("sound");
    assert_eq!((read.turn, &read.events), (12, &all));
    let lengths = [48, 48, 48, 48, 32, 112, 64, 64, 24, 24, 40, 32, 16, 16, 24, 24, 40, 40, 40, 24, 32];
    assert_eq!(all.len(), lengths.len());
    for (event, length) in all.iter().zip(lengths) {
        let bytes = turn(std::slice::from_ref(event));
        assert_eq!(bytes.len(), HEAD + length, "{event:?}");
        assert_eq!(bytes[..8], [[length as u8, 0, 0, 0], [1, 0, 0, 0]].concat(), "{event:?}");
    }
    for a in answers() {
        assert_eq!(read_answer(&answer(&a)).expect("sound"), a);
        assert_eq!(answer(&a).len(), HEAD + ANSWER + PROBE * a.probes.len());
    }
}

/// The JSON form has the same fields: what one form says, the other says.
#[test]
fn both_forms_say_the_same() {
    for event in events() {
        let json = serde_json::to_string(&event).expect("JSON");
        let back: Event = serde_json::from_str(&json).expect("the same");
        assert_eq!(read_turn(&turn(&[back])).expect("sound").events, [event], "{json}");
    }
    for a in answers() {
        let json = serde_json::to_string(&a).expect("JSON");
        assert_eq!(read_answer(&answer(&serde_json::from_str(&json).expect("the same"))).expect("sound"), a, "{json}");
    }
    let rtcp = serde_json::to_string(&Event::Rtcp { now_ns: 1, bytes: vec![0x81, 0xcd] }).expect("JSON");
    assert_eq!(rtcp, r#"{"type":"rtcp","now_ns":1,"bytes":"81cd"}"#);
    for bytes in ["8", "8x", "+1", "\u{e9}"] {
        let json = format!(r#"{{"type":"rtcp","now_ns":1,"bytes":"{bytes}"}}"#);
        assert!(serde_json::from_str::<Event>(&json).is_err(), "{bytes}");
    }
}

#[test]
fn each_shorter_or_changed_message_is_an_error_or_another_message() {
    let sound = turn(&events());
    for length in 0..sound.len() {
        assert!(read_turn(&sound[..length]).is_err(), "{length} bytes");
    }
    for a in answers() {
        let bytes = answer(&a);
        for length in 0..bytes.len() {
            assert!(read_answer(&bytes[..length]).is_err(), "{length} bytes");
        }
    }
    // Whatever bit is changed, nothing panics, and what is read again is the same.
    let mut changed = sound.clone();
    for at in 0..sound.len() {
        for bit in 0..8 {
            changed[at] ^= 1 << bit;
            if let Ok(read) = read_turn(&changed) {
                assert_eq!(read_turn(&turn(&read.events)).map(|t| t.events.len()), Ok(read.events.len()));
            }
            changed[at] = sound[at];
        }
    }
}

#[test]
fn faults_say_what_is_wrong() {
    let head = |length: u32, count: u32| [&length.to_le_bytes()[..], &count.to_le_bytes(), &[0; 8]].concat();
    let event = |kind: u8, flags: u8, small: u8, number: u32, more: usize| {
        let mut body = vec![kind, flags, small, 0];
        body.extend(number.to_le_bytes());
        body.extend(vec![0; 8 + more]);
        [head(body.len() as u32, 1), body].concat()
    };
    for (bytes, said) in [
        (vec![0; 8], "it ends within a field"),
        (head(8, 0), "0 bytes follow its head, which has a length of 8"),
        (head(0, 3), "it has 0 events; its head says 3"),
        (event(99, 0, 0, 0, 0), "no event has the kind 99"),
        (event(7, 1, 0, 0, 0), "flags 0x1"),
        (event(1, 0, 4, 0, 32), "has the number 4"),
        (event(4, 0, 2, 0, 8), "has the number 2"),
        // No memory for what a number promises.
        (event(2, 0, 0, u32::MAX, 16), "a feedback of 4294967295 packets has 0 bytes"),
        (event(8, 0, 0, u32::MAX, 16), "it ends within a field"),
    ] {
        let fault = read_turn(&bytes).expect_err(said);
        assert!(fault.contains(said), "{said}: {fault}");
    }
    let with = |at: usize, value: &[u8]| {
        let mut bytes = answer(&answers()[0]);
        bytes[at..at + value.len()].copy_from_slice(value);
        bytes
    };
    for (bytes, said) in [
        (with(0, &1_000_000u32.to_le_bytes()), "a length of 1000000; expected 56 with 0 probes"),
        (with(4, &9u32.to_le_bytes()), "9 probes; expected at most"),
        (with(HEAD, &0x1000u32.to_le_bytes()), "its flags are 0x1000; bits above 0xfff"),
        (with(HEAD, &0x600u32.to_le_bytes()), "no scheme has both"),
        (with(HEAD + 6, &[3]), "its repair is 3 and 0"),
        (with(HEAD, &0x180u32.to_le_bytes()), "one of REMB and TMMBR"),
        (with(HEAD + 8, &f64::NAN.to_le_bytes()), "media_bps = NaN"),
        (with(HEAD + 16, &f64::INFINITY.to_le_bytes()), "pacing_bps = inf"),
        (b"hello, this is no answer, and it is long".to_vec(), "its head has"),
    ] {
        let fault = read_answer(&bytes).expect_err(said);
        assert!(fault.contains(said), "{said}: {fault}");
    }
}
