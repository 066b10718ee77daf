//! Several streams under one controller: allocation, and separate numbering, reports and repair.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Call, Fate, Link, Recorded, Recorder};
use proptest::prelude::*;
use std::collections::BTreeMap;
use weir_cc::{FeedbackFormat, Limits, Registry, ReportPlan, Setup};
use weir_media::PerfectCodec;
use weir_session::allocation::{Demand, MediaKind, Priority};
use weir_session::{
    Datagram, Endpoint, EndpointConfig, IncomingConfig, IncomingId, Kind, Label, NackConfig, Outcome, OutgoingConfig,
    OutgoingId, ReceiveConfig, RepairChoice, RetransmissionConfig, SendConfig, StreamError, StreamIdentity,
};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{Packet, check_compound, parse_compound};
use weir_wire::rtp::PacketView;

const AUDIO: u32 = 11;
const LOW: u32 = 101;
const HIGH: u32 = 102;
const SCREEN: u32 = 103;

fn kbps(k: u64) -> DataRate {
    DataRate::from_kbps(k)
}
fn ms(t: i64) -> TimeDelta {
    TimeDelta::from_millis(t)
}
fn demand(least: u64, most: u64, media: MediaKind, simulcast: Option<u8>) -> Demand {
    Demand { least: kbps(least), most: kbps(most), media, simulcast, priority: Priority::Low }
}

fn identity(ssrc: u32, payload_type: u8) -> StreamIdentity {
    StreamIdentity { ssrc, payload_type, clock_rate: 90_000, ..EndpointConfig::default().outgoing() }
}
fn frames(interval: TimeDelta) -> weir_media::Source {
    PerfectCodec::frames(interval, Timestamp::ZERO).into()
}

/// The streams besides audio: source, payload type and demand.
fn videos() -> [(u32, u8, Demand); 3] {
    [
        (LOW, 100, demand(50, 200, MediaKind::Video, Some(1))),
        (HIGH, 100, demand(300, 1_200, MediaKind::Video, Some(1))),
        (SCREEN, 104, demand(50, 1_000, MediaKind::Video, None)),
    ]
}

/// A call with audio; [`add`] adds the other streams.
fn call(controller: &str, link: u64, rule: impl FnMut(u64, &[u8]) -> Fate + 'static) -> Call {
    let registry = Registry::builtin();
    let limits = Limits { floor: kbps(32), ceiling: kbps(3_000) };
    let now = Timestamp::ZERO;
    let setup = Setup { limits, start_rate: kbps(500), now, seed: 1, params: vec![] };
    let pair = registry.make(controller, &setup).unwrap();
    let spec = registry.get(controller).unwrap();
    let (feedback, reports) = (spec.feedback, spec.reports);
    let config = EndpointConfig {
        ssrc: AUDIO,
        remote_ssrc: 22,
        payload_type: 111,
        clock_rate: 48_000,
        abs_send_time: pair.receiver.is_some(),
        transport_sequence: feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide),
        latch: Some(TimeDelta::from_secs(30)),
        ..EndpointConfig::default()
    };
    let send = SendConfig {
        per_packet_feedback: feedback.is_some(),
        reports,
        demand: demand(16, 48, MediaKind::Audio, None),
        ..SendConfig::new(frames(ms(20)), pair.sender, limits)
    };
    let receive = ReceiveConfig { feedback, reports, controller: pair.receiver, ..ReceiveConfig::default() };
    let other = EndpointConfig { ssrc: 22, remote_ssrc: AUDIO, seed: 2, ..config.clone() };
    let ends = [Endpoint::new(config, Some(send), None, now), Endpoint::new(other, None, Some(receive), now)];
    let [a, b] = ends;
    Call::new(a, b, Link::new(kbps(link), rule))
}

fn add(c: &mut Call) -> [OutgoingId; 3] {
    videos().map(|(ssrc, payload_type, demand)| {
        let identity = identity(ssrc, payload_type);
        c.b.add_incoming(IncomingConfig::new(identity, MediaKind::Video), c.now).unwrap();
        c.a.add_outgoing(OutgoingConfig::new(identity, frames(ms(33)), demand), c.now).unwrap()
    })
}

fn run(c: &mut Call, seconds: i64) {
    c.run_until(Timestamp::from_secs(seconds));
}

/// RTP bytes sent by source from this time on.
fn sent_bytes(c: &Call, from: i64) -> BTreeMap<u32, u64> {
    let mut sum = BTreeMap::new();
    for (at, bytes, t) in c.sent[0].iter().filter(|s| s.2.is_rtp() && s.0 >= Timestamp::from_secs(from)) {
        let _ = at;
        *sum.entry(PacketView::parse_header(bytes).unwrap().ssrc()).or_default() += t.size.as_bytes();
    }
    sum
}

#[test]
fn every_controller_carries_four_streams_and_none_of_them_starves() {
    for controller in ["gcc", "nada", "scream", "nada-receiver", "gcc-remb", "fbra", "tfrc", "cnadu", "tmmbr"] {
        let mut c = call(controller, 3_000, |_, _| Fate::Pass);
        add(&mut c);
        run(&mut c, 60);
        let rates = sent_bytes(&c, 30).into_iter().map(|(s, b)| (s, b * 8 / 30_000)).collect::<BTreeMap<_, _>>();
        assert!((40..=60).contains(&rates[&AUDIO]), "{controller}: {rates:?}");
        assert!(rates[&LOW] >= 45 && rates[&SCREEN] >= 45, "{controller}: {rates:?}");
        let sum: u64 = rates.values().sum();
        assert!(sum <= 3_050, "{controller}: {rates:?}");
        let target = c.a.target().unwrap().media_rate;
        let shares: u64 = [0, 1, 2, 3]
            .map(|n| c.a.outgoing_ids().nth(n).unwrap())
            .map(|id| c.a.outgoing(id).unwrap().rate().as_bps())
            .iter()
            .sum();
        assert!(shares <= target.as_bps(), "{controller}: {shares} of {target}");
        assert_eq!(c.a.history_counters().unknown, 0, "{controller}");
        assert_eq!((c.a.counters().malformed, c.b.counters().malformed), (0, 0), "{controller}");
        assert_eq!((c.a.counters().unknown_source, c.b.counters().unknown_source), (0, 0), "{controller}");
    }
}

#[test]
fn streams_have_their_own_numbers_and_share_the_paths() {
    let mut c = call("gcc", 3_000, |_, _| Fate::Pass);
    add(&mut c);
    run(&mut c, 20);
    let (mut own, mut path) = (BTreeMap::<u32, u16>::new(), None::<u16>);
    for (_, bytes, _) in c.sent[0].iter().filter(|s| s.2.is_rtp()) {
        let view = PacketView::parse_header(bytes).unwrap();
        let transport = view.transport_sequence(3).unwrap();
        assert!(path.replace(transport).is_none_or(|last| last.wrapping_add(1) == transport));
        let last = own.insert(view.ssrc(), view.sequence());
        assert!(last.is_none_or(|last| last.wrapping_add(1) == view.sequence()));
    }
    assert_eq!(own.len(), 4);
    let counters = c.a.history_counters();
    assert_eq!((counters.unknown, counters.unreported), (0, 0), "{counters:?}");
}

#[test]
fn a_compound_reports_on_all_streams_and_from_all_sources() {
    let mut c = call("scream", 3_000, |_, _| Fate::Pass);
    add(&mut c);
    run(&mut c, 30);
    let (mut senders, mut blocks) = (BTreeMap::<u32, u32>::new(), BTreeMap::<u32, u32>::new());
    for (_, bytes, _) in c.sent.iter().flatten().filter(|s| !s.2.is_rtp()) {
        let has_report =
            parse_compound(bytes).any(|p| matches!(p, Ok(Packet::SenderReport(_) | Packet::ReceiverReport(_))));
        if has_report {
            check_compound(bytes).unwrap();
        }
        for packet in parse_compound(bytes) {
            match packet.unwrap() {
                Packet::SenderReport(sr) => *senders.entry(sr.ssrc).or_default() += 1,
                Packet::ReceiverReport(rr) => rr.blocks.iter().for_each(|b| *blocks.entry(b.ssrc).or_default() += 1),
                _ => {}
            }
        }
    }
    for ssrc in [AUDIO, LOW, HIGH, SCREEN] {
        assert!(senders[&ssrc] >= 10 && blocks[&ssrc] >= 10, "{ssrc}: {senders:?} {blocks:?}");
    }
}

#[test]
fn encodings_and_screen_give_way_before_audio() {
    let mut c = call("gcc", 260, |_, _| Fate::Pass);
    let [low, high, screen] = add(&mut c);
    run(&mut c, 60);
    assert!(!c.a.outgoing(high).unwrap().is_on());
    assert!(c.a.outgoing(low).unwrap().is_on() && c.a.outgoing(screen).unwrap().is_on());
    let rates = sent_bytes(&c, 30);
    assert!((40..=60).contains(&(rates[&AUDIO] * 8 / 30_000)), "{rates:?}");
    assert_eq!(rates.get(&HIGH), None);
}

#[test]
fn a_target_that_swings_does_not_switch_a_stream_with_each_swing() {
    let recorder = Recorder::new(300);
    let config = EndpointConfig { ssrc: AUDIO, remote_ssrc: 22, payload_type: 111, ..EndpointConfig::default() };
    let send = SendConfig {
        demand: demand(16, 48, MediaKind::Audio, None),
        ..SendConfig::new(frames(ms(20)), recorder.sender(), Limits { floor: kbps(32), ceiling: kbps(3_000) })
    };
    let other = EndpointConfig { ssrc: 22, remote_ssrc: AUDIO, seed: 2, ..config.clone() };
    let a = Endpoint::new(config, Some(send), None, Timestamp::ZERO);
    let b = Endpoint::new(other, None, Some(ReceiveConfig::default()), Timestamp::ZERO);
    let mut c = Call::new(a, b, Link::new(kbps(4_000), |_, _| Fate::Pass));
    let identity = identity(LOW, 100);
    c.b.add_incoming(IncomingConfig::new(identity, MediaKind::Video), c.now).unwrap();
    let asks = demand(200, 400, MediaKind::Video, None);
    let video = c.a.add_outgoing(OutgoingConfig::new(identity, frames(ms(33)), asks), c.now).unwrap();
    // Runs at a target; returns the times at which the video is switched on and off.
    let mut was_on = true;
    let mut at = |c: &mut Call, target: u64, length: i64| {
        *recorder.target.lock().unwrap() = weir_cc::Target::paced(kbps(target), kbps(target * 4));
        let (mut on, mut off, end) = (vec![], 0, c.now + ms(length));
        while c.now < end {
            c.run_until(end.min(c.now + ms(50)));
            let is_on = c.a.outgoing(video).unwrap().is_on();
            match (was_on, is_on) {
                (false, true) => on.push(c.now),
                (true, false) => off += 1,
                _ => {}
            }
            was_on = is_on;
        }
        (on, off)
    };
    // Audio's 16 and the video's 200 kbit/s fit 300 with a fifth to spare, but not 180. Shorter than the hold of 1 s:
    for swing in 0..30 {
        assert_eq!(at(&mut c, 180, 900), (vec![], u32::from(swing == 0)));
        assert_eq!(at(&mut c, 300, 900), (vec![], 0));
    }
    // It is switched on after holds of 1, 2 and 4 s, goes off again soon each time, and would then wait for 8 s.
    at(&mut c, 180, 1_000);
    let swings: Vec<_> = (0..12).map(|_| (at(&mut c, 300, 7_500).0.len(), at(&mut c, 180, 1_000).1)).collect();
    assert_eq!(swings[..3], [(1, 1); 3]);
    assert_eq!(swings[3..], [(0, 0); 9]);
    // At a stable target it is then switched on, with a key frame.
    let before = c.now;
    let (on, off) = at(&mut c, 300, 20_000);
    assert!(on.len() == 1 && off == 0 && (ms(8_000)..=ms(8_200)).contains(&(on[0] - before)), "{on:?} from {before}");
    let counters = c.a.outgoing(video).unwrap().counters();
    assert!((4..=6).contains(&counters.key_frames), "{counters:?}");
    // The audio always has its rate, with padding in place of the video.
    let is_audio = |t: &weir_session::Transmit| t.rtp == Some((OutgoingId::FIRST, Kind::Media));
    let bytes: u64 = c.sent[0].iter().filter(|s| is_audio(&s.2)).map(|s| s.2.size.as_bytes()).sum();
    let rate = bytes as f64 * 8.0 / 1_000.0 / c.now.as_secs_f64();
    assert!((40.0..=60.0).contains(&rate), "{rate} kbit/s");
}

#[test]
fn a_target_that_follows_what_is_sent_rises_until_all_streams_are_on() {
    // NADA does not rise far above the received rate: without padding the audio alone would limit it.
    let mut c = call("nada", 3_000, |_, _| Fate::Pass);
    c.a.outgoing(OutgoingId::FIRST).unwrap().set_demand(demand(16, 32, MediaKind::Audio, None), c.now);
    for (ssrc, payload_type, least) in [(LOW, 100, 400), (SCREEN, 104, 700)] {
        let identity = identity(ssrc, payload_type);
        c.b.add_incoming(IncomingConfig::new(identity, MediaKind::Video), c.now).unwrap();
        let asks = demand(least, least * 2, MediaKind::Video, None);
        c.a.add_outgoing(OutgoingConfig::new(identity, frames(ms(33)), asks), c.now).unwrap();
    }
    run(&mut c, 2);
    assert!(c.a.outgoing_ids().collect::<Vec<_>>().into_iter().any(|id| !c.a.outgoing(id).unwrap().is_on()));
    run(&mut c, 40);
    assert!(c.a.outgoing_ids().collect::<Vec<_>>().into_iter().all(|id| c.a.outgoing(id).unwrap().is_on()));
    // There is padding only while a stream is off.
    let padding = c.sent[0].iter().filter(|s| matches!(s.2.rtp, Some((_, Kind::Padding)))).map(|s| s.0);
    assert!(padding.clone().count() > 10 && padding.max().unwrap() < Timestamp::from_secs(30));
}

#[test]
fn streams_are_paused_changed_and_removed_while_the_call_runs() {
    let mut c = call("gcc", 3_000, |_, _| Fate::Pass);
    let [low, high, screen] = add(&mut c);
    run(&mut c, 20);
    c.a.outgoing(screen).unwrap().set_paused(true, c.now);
    run(&mut c, 30);
    let paused = sent_bytes(&c, 21);
    assert_eq!(paused.get(&SCREEN), None, "{paused:?}");
    let now = c.now;
    c.a.outgoing(screen).unwrap().set_paused(false, now);
    c.a.outgoing(high).unwrap().set_demand(demand(300, 400, MediaKind::Video, Some(1)), now);
    run(&mut c, 50);
    let rates = sent_bytes(&c, 40);
    assert!(rates[&SCREEN] * 8 / 10_000 > 400, "{rates:?}");
    assert!(rates[&HIGH] * 8 / 10_000 <= 450, "{rates:?}");
    let keys = c.a.outgoing(screen).unwrap().counters().key_frames;
    assert!(keys >= 1, "a stream that goes on begins with a key frame");
    c.a.remove_outgoing(screen, c.now).unwrap();
    assert_eq!(c.a.remove_outgoing(screen, c.now), Err(StreamError::Unknown));
    assert!(c.a.outgoing(screen).is_none());
    run(&mut c, 55);
    let goodbyes = c.sent[0].iter().flat_map(|s| parse_compound(&s.1)).filter_map(|p| match p {
        Ok(Packet::Bye(b)) => Some(b.sources.iter().collect::<Vec<_>>()),
        _ => None,
    });
    assert_eq!(goodbyes.collect::<Vec<_>>(), [vec![SCREEN]]);
    assert!(!c.b.remote_left(), "the other streams go on");
    assert_eq!(sent_bytes(&c, 51).get(&SCREEN), None);
    for id in [low, high] {
        c.a.remove_outgoing(id, c.now).unwrap();
    }
    assert_eq!(c.a.remove_outgoing(OutgoingId::FIRST, c.now), Err(StreamError::LastStream));
    run(&mut c, 60);
    let only = sent_bytes(&c, 56);
    assert!(only.len() == 1 && (40..=60).contains(&(only[&AUDIO] * 8 / 4_000)), "{only:?}");
}

#[test]
fn sources_in_use_and_too_many_streams_are_refused() {
    let mut c = call("fixed", 3_000, |_, _| Fate::Pass);
    add(&mut c);
    let config = |ssrc| OutgoingConfig::new(identity(ssrc, 100), frames(ms(33)), Demand::default());
    assert_eq!(c.a.add_outgoing(config(LOW), c.now), Err(StreamError::SourceInUse(LOW)));
    assert_eq!(c.b.add_outgoing(config(7), c.now), Err(StreamError::NoPath));
    for n in 0..28 {
        c.a.add_outgoing(config(1_000 + n), c.now).unwrap();
    }
    assert_eq!(c.a.add_outgoing(config(2_000), c.now), Err(StreamError::TooMany));
    assert!(StreamError::SourceInUse(LOW).to_string().contains("0x00000065"));
}

#[test]
fn losses_of_each_stream_are_repaired_by_its_own_retransmissions() {
    let mut c =
        call(
            "fixed",
            4_000,
            |n, bytes| if n.is_multiple_of(11) && bytes[1] & 0x7f == 100 { Fate::Lose } else { Fate::Pass },
        );
    let mut ids = vec![];
    for (ssrc, payload_type, demand) in videos() {
        let identity = identity(ssrc, payload_type);
        let incoming = IncomingConfig {
            nack: Some(NackConfig::default()),
            playout_deadline: Some(ms(400)),
            ..IncomingConfig::new(identity, MediaKind::Video)
        };
        ids.push(c.b.add_incoming(incoming, c.now).unwrap());
        let outgoing = OutgoingConfig {
            retransmission: Some(RetransmissionConfig::default()),
            ..OutgoingConfig::new(identity, frames(ms(33)), Demand { simulcast: None, ..demand })
        };
        c.a.add_outgoing(outgoing, c.now).unwrap();
    }
    run(&mut c, 30);
    let lost = c.there.lost.len() as u64;
    assert!(lost > 50, "{lost}");
    let recovered: Vec<u64> = ids.iter().map(|&id| c.b.incoming(id).unwrap().recovery_stats().recovered).collect();
    assert!(recovered.iter().sum::<u64>() >= lost * 9 / 10, "{recovered:?} of {lost}");
    let resent = c.sent[0].iter().filter(|s| matches!(s.2.rtp, Some((_, Kind::Retransmission)))).count() as u64;
    assert!(resent >= lost * 9 / 10 && resent <= lost * 2, "{resent} for {lost}");
}

#[test]
fn controllers_that_go_by_reports_hear_of_all_streams_at_once() {
    let recorder = Recorder::new(600);
    let limits = Limits { floor: kbps(32), ceiling: kbps(3_000) };
    let plan = ReportPlan { extended: true, ..ReportPlan::every(ms(500)) };
    let config = EndpointConfig { ssrc: AUDIO, remote_ssrc: 22, payload_type: 111, ..EndpointConfig::default() };
    let send = SendConfig {
        reports: Some(plan),
        demand: demand(16, 48, MediaKind::Audio, None),
        ..SendConfig::new(frames(ms(20)), recorder.sender(), limits)
    };
    let receive = ReceiveConfig { reports: Some(plan), ..ReceiveConfig::default() };
    let other = EndpointConfig { ssrc: 22, remote_ssrc: AUDIO, seed: 2, ..config.clone() };
    let a = Endpoint::new(config, Some(send), None, Timestamp::ZERO);
    let b = Endpoint::new(other, None, Some(receive), Timestamp::ZERO);
    let rule =
        |n: u64, bytes: &[u8]| if n.is_multiple_of(10) && bytes[1] & 0x7f == 100 { Fate::Lose } else { Fate::Pass };
    let mut c = Call::new(a, b, Link::new(kbps(4_000), rule));
    add(&mut c);
    run(&mut c, 30);
    let recorded = recorder.recorded();
    let blocks: Vec<_> =
        recorded.iter().filter_map(|t| if let Recorded::Block(b) = t { Some(*b) } else { None }).collect();
    let reports = recorder.intervals();
    assert!(blocks.len() >= 40 && blocks.len().abs_diff(reports.len()) <= 1, "{} {}", blocks.len(), reports.len());
    assert!(blocks.windows(2).all(|w| w[0].now < w[1].now), "one block a compound");
    // Nothing is reported twice; packets are in send order, with the actual losses.
    let packets: Vec<_> = reports.iter().flat_map(|r| r.1.clone()).collect();
    let mut numbers: Vec<u64> = packets.iter().map(|p| p.sequence).collect();
    assert!(reports.iter().all(|r| r.1.windows(2).all(|w| w[0].sequence < w[1].sequence)));
    numbers.sort_unstable();
    let count = numbers.len();
    numbers.dedup();
    assert_eq!(numbers.len(), count);
    let lost = packets.iter().filter(|p| p.fate == weir_cc::cue::Fate::Lost).count();
    assert!(lost.abs_diff(c.there.lost.len()) <= 8, "{lost} of {}", c.there.lost.len());
    let last = blocks.last().unwrap();
    assert!((last.cumulative_lost - lost as i64).abs() <= 8, "{last:?} {lost}");
}

#[test]
fn repair_packets_protect_their_own_stream() {
    use weir_fec::{Protection, Scheme};
    let mut c =
        call(
            "fixed",
            4_000,
            |n, bytes| if n.is_multiple_of(17) && bytes[1] & 0x7f == 100 { Fate::Lose } else { Fate::Pass },
        );
    let mut ids = vec![];
    for (ssrc, payload_type, demand) in videos() {
        let identity = identity(ssrc, payload_type);
        let incoming =
            IncomingConfig { playout_deadline: Some(ms(400)), ..IncomingConfig::new(identity, MediaKind::Video) };
        ids.push(c.b.add_incoming(incoming, c.now).unwrap());
        let protection = Protection::Equal(Scheme::Parity { interval: 4 });
        let outgoing = OutgoingConfig {
            repair: RepairChoice::Fixed(protection),
            ..OutgoingConfig::new(identity, frames(ms(33)), Demand { simulcast: None, ..demand })
        };
        c.a.add_outgoing(outgoing, c.now).unwrap();
    }
    run(&mut c, 30);
    let lost = c.there.lost.len() as u64;
    let recovered: u64 = ids.iter().map(|&id| c.b.incoming(id).unwrap().recovery_stats().recovered).sum();
    assert!(lost > 30 && recovered * 10 >= lost * 7, "{recovered} of {lost}");
}

#[test]
fn unknown_sources_find_their_stream_by_payload_type_mid_and_rid() {
    let label = |text| Some(Label::new(text).unwrap());
    let limits = Limits { floor: kbps(32), ceiling: kbps(3_000) };
    let recorder = Recorder::new(900);
    let config = EndpointConfig {
        ssrc: AUDIO,
        remote_ssrc: 22,
        payload_type: 111,
        mid: label("a"),
        ..EndpointConfig::default()
    };
    let send = SendConfig {
        demand: demand(16, 48, MediaKind::Audio, None),
        ..SendConfig::new(frames(ms(20)), recorder.sender(), limits)
    };
    let a = Endpoint::new(config.clone(), Some(send), None, Timestamp::ZERO);
    let other = EndpointConfig { ssrc: 22, remote_ssrc: 0, seed: 2, ..config };
    let b = Endpoint::new(other, None, Some(ReceiveConfig::default()), Timestamp::ZERO);
    let mut c = Call::new(a, b, Link::new(kbps(4_000), |_, _| Fate::Pass));
    let encodings = [
        ("lo", LOW, demand(50, 200, MediaKind::Video, Some(1))),
        ("hi", HIGH, demand(100, 400, MediaKind::Video, Some(1))),
    ];
    let mut ids = vec![IncomingId::FIRST];
    // The receiver lists them in reverse: the labels decide.
    for (rid, ..) in encodings.iter().rev() {
        let identity = StreamIdentity { mid: label("v"), rid: label(rid), ..identity(0, 100) };
        ids.push(c.b.add_incoming(IncomingConfig::new(identity, MediaKind::Video), c.now).unwrap());
    }
    for (rid, ssrc, demand) in encodings {
        let identity = StreamIdentity { mid: label("v"), rid: label(rid), ..identity(ssrc, 100) };
        c.a.add_outgoing(OutgoingConfig::new(identity, frames(ms(33)), demand), c.now).unwrap();
    }
    run(&mut c, 10);
    let found: Vec<u32> = ids.iter().map(|&id| c.b.incoming(id).unwrap().identity().ssrc).collect();
    assert_eq!(found, [AUDIO, HIGH, LOW]);
    // After the first report packets are sent without labels.
    let labelled = |s: &&(Timestamp, Vec<u8>, weir_session::Transmit)| {
        s.2.is_rtp() && PacketView::parse_header(&s.1).unwrap().extension(9).is_some()
    };
    assert!(c.sent[0].iter().find(|s| s.2.is_rtp()).is_some_and(|s| labelled(&s)));
    let late = c.sent[0].iter().filter(|s| s.0 > Timestamp::from_secs(8)).filter(labelled).count();
    assert_eq!(late, 0);
}

#[test]
fn a_datagram_comes_with_what_it_was() {
    let mut c = call("gcc", 3_000, |_, _| Fate::Pass);
    add(&mut c);
    run(&mut c, 5);
    let rtp = c.sent[0].iter().rev().find(|s| matches!(s.2.rtp, Some((id, Kind::Media)) if id != OutgoingId::FIRST));
    let (bytes, payload) = rtp.map(|s| (s.1.clone(), s.2.payload)).unwrap();
    let ssrc = PacketView::parse_header(&bytes).unwrap().ssrc();
    let outcome = c.b.handle_datagram(c.now, &Datagram { payload, ..Datagram::new(&bytes, Ecn::NotEct) });
    let Outcome::Rtp { stream, kind: Kind::Media } = outcome else { panic!("{outcome:?}") };
    assert_eq!(c.b.incoming(stream).unwrap().identity().ssrc, ssrc);
    let rtcp = c.sent[1].iter().rev().find(|s| !s.2.is_rtp()).map(|s| s.1.clone()).unwrap();
    let outcome = c.a.handle_datagram(c.now, &Datagram::new(&rtcp, Ecn::NotEct));
    assert!(outcome.is_of_call() && !outcome.is_rtp(), "{outcome:?}");
    for bad in [&b""[..], b"\x16\xfe\xff", &[0x80; 5]] {
        let outcome = c.b.handle_datagram(c.now, &Datagram::new(bad, Ecn::NotEct));
        assert!(!outcome.is_of_call(), "{bad:?}: {outcome:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Bytes from the network, including damaged real packets, neither cause a panic nor exceed an end's memory bounds.
    #[test]
    fn hostile_datagrams_do_no_harm(seed: u64, flips in proptest::collection::vec((any::<u16>(), any::<u16>(), any::<u8>()), 1..60)) {
        let mut c = call(["gcc", "scream", "fbra"][(seed % 3) as usize], 3_000, |_, _| Fate::Pass);
        add(&mut c);
        c.run_until(Timestamp::from_millis(2_500));
        for (which, at, value) in flips {
            for end in [0, 1] {
                let all = &c.sent[1 - end];
                let Some((_, bytes, t)) = all.get(usize::from(which) % all.len().max(1)) else { continue };
                let (mut bytes, payload) = (bytes.clone(), t.payload);
                let i = usize::from(at) % bytes.len();
                bytes[i] = value;
                let datagram = Datagram { payload, ..Datagram::new(&bytes, Ecn::Ce) };
                let receiver = if end == 0 { &mut c.a } else { &mut c.b };
                receiver.handle_datagram(c.now, &datagram);
            }
        }
        c.run_until(Timestamp::from_millis(4_000));
        prop_assert!(c.a.outgoing_ids().count() == 4 && c.b.incoming_ids().count() == 4);
    }
}
