use super::{Finding, lint};
use crate::recording::SendClock;
use crate::schema::{Direction, Packet, Reported, Rtcp, RtcpKind, Stream, StreamKind};
use crate::{Format, Recording};
use weir_units::{RemoteTimestamp, TimeDelta, Timestamp};

fn at(ms: i64) -> Timestamp {
    Timestamp::from_secs(1_700_000_000) + TimeDelta::from_millis(ms)
}

fn packet(n: u32) -> Packet {
    Packet {
        at: at(i64::from(n) * 10),
        number: n + 1,
        direction: Direction::Sent,
        ssrc: 7,
        sequence: n as u16,
        timestamp: n * 900,
        payload_type: 96,
        marker: true,
        size: 1000,
        padding: None,
        transport_sequence: Some(n as u16),
    }
}

fn rtcp(number: u32, ms: i64, kind: RtcpKind) -> Rtcp {
    Rtcp { at: at(ms), number, direction: Direction::Received, sender_ssrc: 9, size: 60, kind, fingerprint: None }
}

fn recording(packets: Vec<Packet>, rtcp: Vec<Rtcp>) -> Recording {
    let mut out = Recording::new("log", Format::EventLog);
    (out.packets, out.rtcp) = (packets, rtcp);
    out
}

fn rules(found: &[Finding]) -> Vec<(&'static str, u64, u32)> {
    found.iter().map(|f| (f.rule, f.count, f.packets[0].number)).collect()
}

#[test]
fn a_call_by_the_rules_has_no_finding() {
    let feedback = (0..100u32).map(|n| rtcp(n + 1, i64::from(n) * 100, RtcpKind::Twcc { count: n as u8 })).collect();
    assert_eq!(lint(&recording((0..1000).map(packet).collect(), feedback)), []);
    // Reordering and B-frames are no fault either.
    let mut packets: Vec<Packet> = (0..1000).map(packet).collect();
    packets.swap(500, 501);
    packets[600].timestamp -= 2 * 900;
    // Retransmissions have the timestamp of the first sending.
    packets.extend((100..200).rev().map(|n| Packet { ssrc: 8, number: 2000 + n, ..packet(n) }));
    packets[1000..].iter_mut().zip(0..).for_each(|(p, n)| (p.sequence, p.at) = (n, at(20_000)));
    assert_eq!(lint(&recording(packets, vec![])), []);
}

#[test]
fn send_times_that_drift_are_named() {
    let of = |ahead_s: f64| {
        let mut out = recording((0..1000).map(packet).collect(), vec![]);
        out.send_clocks = vec![SendClock { id: 3, at: at(9_990), number: 1000, over_s: 40.0, ahead_s }];
        lint(&out)
    };
    assert_eq!(of(0.004), []);
    let found = of(-0.4);
    assert_eq!(rules(&found), [("send-time-drift", 1, 1000)]);
    assert!(found[0].packets[0].text.contains("400 ms less far"), "{found:?}");
}

#[test]
fn numbers_and_timestamps_that_jump_are_named() {
    let mut packets: Vec<Packet> = (0..1000).map(packet).collect();
    packets[100..].iter_mut().for_each(|p| p.sequence = p.sequence.wrapping_add(10_000));
    packets[400..].iter_mut().for_each(|p| p.timestamp = p.timestamp.wrapping_sub(90_000 * 60));
    packets[700..].iter_mut().for_each(|p| p.timestamp = p.timestamp.wrapping_add(90_000 * 3600));
    packets.iter_mut().take(1).for_each(|p| p.payload_type = 72);
    let found = lint(&recording(packets, vec![]));
    let expected = [
        ("payload-type-like-rtcp", 1, 1),
        ("sequence-jump", 1, 101),
        ("timestamp-back", 1, 401),
        ("timestamp-jump", 1, 701),
    ];
    assert_eq!(rules(&found), expected, "{found:#?}");
    assert!(found.iter().all(|f| f.section.contains("RFC") && !f.effect.is_empty() && f.direction == "sent"));
}

#[test]
fn feedback_that_skips_repeats_and_rests_is_named() {
    let mut feedback: Vec<Rtcp> =
        (0..100u32).map(|n| rtcp(n + 1, i64::from(n) * 100, RtcpKind::Twcc { count: n as u8 })).collect();
    feedback[50].size = 1400;
    feedback.drain(60..80);
    let mut out = recording((0..1000).map(packet).collect(), feedback);
    let report = |ms, sequence, arrival| Reported {
        at: at(ms),
        direction: Direction::Received,
        ssrc: None,
        sequence,
        arrival: Some(RemoteTimestamp::from_millis(arrival)),
    };
    out.reported = vec![report(100, 1, 10), report(100, 2, 9_000), report(200, 1, 10)];
    let found = lint(&out);
    let expected = [
        ("feedback-delta-overflow", 1, 2),
        ("feedback-larger-than-mtu", 1, 51),
        ("feedback-rare", 1, 81),
        ("feedback-repeats", 1, 3),
        ("feedback-skips", 1, 81),
    ];
    assert_eq!(rules(&found), expected, "{found:#?}");
}

#[test]
fn requests_without_end_and_without_an_answer_are_named() {
    let mut all: Vec<Rtcp> = (0..9u32).map(|n| rtcp(n + 1, 1000 + i64::from(n) * 100, RtcpKind::Pli)).collect();
    all.extend((0..6u32).map(|n| rtcp(n + 10, 3000 + i64::from(n) * 500, RtcpKind::Nack(2))));
    let mut out = recording((0..1000).map(packet).collect(), all);
    assert_eq!(rules(&lint(&out)), [("picture-requests-without-end", 1, 8)]);
    let kind = StreamKind::Video;
    out.streams = vec![Stream { at: at(0), direction: Direction::Sent, kind, ssrc: 7, rtx: Some(8) }];
    let found = lint(&out);
    assert_eq!(rules(&found)[1], ("retransmission-never-answered", 6, 10), "{found:#?}");
    assert_eq!(found[1].packets.len(), 5);
    let again: Vec<Packet> = (300..600).step_by(20).map(|n| Packet { ssrc: 8, ..packet(n) }).collect();
    out.packets.extend(again);
    out.sort();
    assert_eq!(rules(&lint(&out)).len(), 1);
}
