//! One capture of one end: what arrived, with the numbers that are missing.

use super::{call, first, halved};
use crate::why::{EpisodeKind, Explanation, Level, explain};
use crate::{Call, Direction};

/// The receiver's recording alone of a call whose frames of three packets are 30 ms apart.
fn received(rate: impl Fn(f64) -> f64, fate: impl Fn(usize, f64) -> Option<f64>) -> Explanation {
    let mut call = call(rate, fate);
    call.recordings.remove(0);
    for packet in &mut call.recordings[0].packets {
        packet.timestamp = u32::from(packet.sequence) / 3 * 2_700;
    }
    explain(&call)
}

#[test]
fn an_outage_is_seen_by_what_is_missing_behind_it() {
    let found = received(|_| 1.0, |_, s| (!(20.0..23.0).contains(&s)).then_some(20.0));
    assert_eq!(found.level, Level::OneEnd);
    let kinds: Vec<EpisodeKind> = found.episodes.iter().map(|e| e.kind).collect();
    assert!(kinds.contains(&EpisodeKind::Fall) && kinds.contains(&EpisodeKind::Freeze), "{found:#?}");
    for e in &found.episodes {
        assert_eq!(first(std::slice::from_ref(e)), ("outage", 0.85), "{found:#?}");
        assert!((1_700_000_019_000..1_700_000_021_000).contains(&e.from_ms), "{e:?}");
    }
    assert!(found.missing.expect("a way out").contains("the other end's capture"));
}

#[test]
fn loss_and_silence_are_told_apart_with_little_confidence() {
    let lossy = received(halved, |i, s| (s < 18.0 || i % 9 != 4).then_some(20.0));
    assert_eq!(first(&lossy.episodes), ("random-loss", 0.4), "{lossy:#?}");
    // It may as well have been a queue.
    assert_eq!(lossy.episodes[0].causes[1].name, "capacity-fell", "{lossy:#?}");
    let late = received(|_| 1.0, |_, s| Some(20.0 + ((22.0 - s) * 1e3 * f64::from((20.0..22.0).contains(&s)))));
    assert!(late.episodes.iter().any(|e| e.causes[0].name == "stalls" && e.causes[0].confidence < 0.5), "{late:#?}");
    let fell = received(halved, |_, _| Some(20.0));
    assert_eq!(first(&fell.episodes), ("not-known", 0.0), "{fell:#?}");
    assert!(fell.episodes[0].causes[0].evidence.iter().any(|e| e.contains("when packets were sent")), "{fell:#?}");
    let healthy = received(|_| 1.0, |_, _| Some(20.0));
    assert_eq!((healthy.episodes.len(), healthy.level), (0, Level::OneEnd));
}

#[test]
fn what_was_sent_alone_and_captures_of_two_calls_say_what_is_missing() {
    let mut sent = call(halved, |_, _| Some(20.0));
    sent.recordings.truncate(1);
    let found = explain(&sent);
    assert_eq!((first(&found.episodes), found.level), (("not-known", 0.0), Level::OneEnd), "{found:#?}");
    assert!(found.missing.expect("a way out").contains("what was sent, and no feedback"));
    let mut other = call(halved, |_, _| Some(20.0)).recordings.remove(1);
    other.packets.iter_mut().for_each(|p| p.ssrc = 8);
    let two = explain(&Call::new(vec![sent.recordings.remove(0), other]));
    let why = two.missing.expect("two calls");
    assert!(why.contains("No stream of left is in right"), "{why}");
    assert_eq!(explain(&call(halved, |_, _| Some(20.0))).missing, None);
}

#[test]
fn numbers_that_jump_and_packets_that_come_late_are_no_losses() {
    let mut one = call(|_| 1.0, |_, _| Some(20.0));
    one.recordings.remove(0);
    for (i, packet) in one.recordings[0].packets.iter_mut().enumerate() {
        packet.direction = Direction::Passing;
        // The sender restarts in the middle, and each tenth packet arrives behind its next.
        let restart = if i < 2_000 { 0 } else { 20_000 };
        packet.sequence = (i as u16).wrapping_add(restart) + u16::from(i % 10 == 3) - u16::from(i % 10 == 4);
    }
    let found = explain(&one);
    assert_eq!((found.level, found.episodes.as_slice()), (Level::OneEnd, &[][..]));
}

#[test]
fn a_start_is_slow_for_its_losses_where_it_is_longer_than_a_moment_and_ends_with_the_call() {
    let lossy = |seconds: f64| {
        let mut call = call(|_| 1.0, |i, _| (i % 9 != 4).then_some(20.0));
        call.recordings.remove(0);
        let packets = &mut call.recordings[0].packets;
        let first = packets[0].at;
        packets.retain(|p| (p.at - first).as_secs_f64() < seconds);
        let end = packets.iter().map(|p| p.at.as_millis()).max().expect("packets");
        (explain(&call).episodes, end)
    };
    let (found, end) = lossy(4.7);
    assert_eq!((found.len(), found[0].kind, found[0].to_ms), (1, EpisodeKind::SlowStart, end), "{found:#?}");
    assert_eq!(lossy(1.7).0, []);
}

#[test]
fn a_capture_without_media_says_what_may_be_the_reason() {
    let mut call = call(|_| 1.0, |_, _| Some(20.0));
    call.recordings.truncate(1);
    call.recordings[0].packets.clear();
    call.recordings[0].format = crate::Format::Pcap;
    let found = explain(&call);
    assert_eq!((found.level, found.episodes.len()), (Level::None, 0));
    assert!(found.missing.expect("a reason").contains("another interface was captured"));
}
