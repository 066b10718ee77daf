//! Remote ends that leave, restart, or collide with this end's identifier; and packets that no member has sent.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::toy::{Life, Toy, byte};
use common::{Call, Fate, Link, Recorder};
use std::sync::{Arc, Mutex};
use weir_cc::{FeedbackFormat, Limits, Registry, Setup};
use weir_fec::Scheme;
use weir_media::{ReceivedFrame, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    Datagram, EndConfig, EndPlan, Endpoint, HeaderExtensions, IncomingConfig, OutgoingConfig, OutgoingOptions,
    ReceivingPath, RepairChoice, SendingPath, StreamIdentity,
};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{Packet, parse_compound};

const LATCH: TimeDelta = TimeDelta::from_millis(1_000);

fn ms(n: i64) -> TimeDelta {
    TimeDelta::from_millis(n)
}
fn at(n: i64) -> Timestamp {
    Timestamp::from_millis(n)
}
fn limits() -> Limits {
    Limits { floor: DataRate::from_kbps(150), ceiling: DataRate::from_mbps(3) }
}

fn config(ssrc: u32, remote_ssrc: u32, seed: u64) -> EndConfig {
    EndConfig { ssrc, remote_ssrc, seed, latch: Some(LATCH), ..EndConfig::default() }
}

/// A sender that starts now, under a controller of a constant rate.
fn sender(config: EndConfig, now: Timestamp) -> (Endpoint, Arc<Mutex<Life>>) {
    sender_of(StreamIdentity::of(config.ssrc), config, now)
}

fn sender_of(identity: StreamIdentity, config: EndConfig, now: Timestamp) -> (Endpoint, Arc<Mutex<Life>>) {
    let toy = Toy::starting(now, ms(40));
    let life = toy.life.clone();
    let outgoing =
        OutgoingConfig::new(identity, Source::Custom(Box::new(toy)), Demand::default()).with(OutgoingOptions {
            repair: RepairChoice::Fixed(Scheme::parity(8).unwrap().into()),
            ..OutgoingOptions::default()
        });
    let sending = SendingPath::new(Recorder::new(800).sender());
    (EndPlan::new(config).sends(outgoing).on(sending).make(now).unwrap(), life)
}

fn receiver(config: EndConfig) -> Endpoint {
    let incoming = IncomingConfig {
        playout_deadline: Some(ms(250)),
        content: true,
        ..IncomingConfig::new(StreamIdentity::of(config.remote_ssrc), MediaKind::default())
    };
    let receiving = ReceivingPath::default();
    EndPlan::new(config).receives(incoming).on(receiving).make(Timestamp::ZERO).unwrap()
}

fn link() -> Link {
    Link::new(DataRate::from_mbps(20), |_, _| Fate::Pass)
}

/// Runs until `end`; returns deadlines and numbers of complete frames, checked against those of some source.
fn played(c: &mut Call, life: &Mutex<Life>, end: Timestamp) -> Vec<(Timestamp, u64)> {
    let (mut frame, mut whole, mut offset) = (ReceivedFrame::default(), vec![], None);
    while c.now < end {
        let to = (c.now + ms(20)).min(end);
        c.run_until(to);
        while let Some(e) = c.b.poll_playout(c.now) {
            if c.b.take_frame(&e, &mut frame) && frame.whole {
                let life = life.lock().unwrap();
                // One of an earlier source may still have been waiting.
                let Some(id) = life.id(&frame) else { continue };
                let offset = *offset.get_or_insert(frame.rtp_timestamp.wrapping_sub(life.frames[id as usize].0));
                // It is unknown whether a source's first packet begins a frame.
                frame.whole = !whole.is_empty();
                whole.push((e.at, life.check(&frame, offset)));
            }
        }
    }
    whole
}

#[test]
fn an_unknown_source_is_found_and_nothing_of_it_is_lost() {
    let (a, life) = sender(config(11, 22, 1), Timestamp::ZERO);
    let mut c = Call::new(a, receiver(config(22, 0, 2)), link());
    assert_eq!(c.b.remote().ssrc(), None);
    let frames = played(&mut c, &life, at(3_000));
    assert_eq!((c.b.remote().ssrc(), c.b.stats().counters().sources), (Some(11), 1));
    // From the very first one on, which is the key frame.
    assert!(frames.len() >= 65 && frames.iter().map(|f| f.1).eq(0..frames.len() as u64), "{frames:?}");
    // Repair uses the source that was found.
    assert!(c.b.stats().repair_counters().packets > 10);
    let (s, r) = (c.a.stats().send_counters(), c.b.stats().receive_counters());
    assert!(s.packets - r.packets <= 10 && r.invalid == 0, "{r:?}");
}

#[test]
fn another_source_takes_the_place_of_one_that_is_silent_or_has_left() {
    for (leaves, wait) in [(true, 0), (false, 1_000)] {
        let (a, life) = sender(config(11, 22, 1), Timestamp::ZERO);
        let mut c = Call::new(a, receiver(config(22, 11, 2)), link());
        played(&mut c, &life, at(4_000));
        if leaves {
            c.a.leave(None);
            c.run_until(at(4_100));
            assert!(c.b.remote().has_left() && c.b.stats().counters().byes == 1);
        }
        let start = at(4_100);
        let (a, life) = sender(config(33, 22, 9), start);
        c.a = a;
        c.now = start;
        let (packets, sent_before) = (c.b.stats().receive_counters().packets, c.sent[0].len());
        let frames = played(&mut c, &life, at(9_000));
        assert_eq!(
            (c.b.remote().ssrc(), c.b.stats().counters().sources, c.b.remote().has_left()),
            (Some(33), 1, false)
        );
        // A packet in flight, the silence, and playout.
        assert!(frames[0].0 <= start + ms(wait + 50 + 250 + 100), "{leaves}: {:?}", frames[0]);
        assert!(frames.len() as i64 >= (4_900 - wait - 450) / 40, "{}", frames.len());
        // Reports and counters concern the new source.
        let blocks: Vec<u32> = (c.sent[1].iter().filter(|s| s.0 > at(6_500)))
            .flat_map(|s| parse_compound(&s.1).flatten().collect::<Vec<_>>())
            .filter_map(|p| {
                if let Packet::ReceiverReport(r) = p { Some(r.blocks.iter().collect::<Vec<_>>()) } else { None }
            })
            .flatten()
            .map(|b| b.ssrc)
            .collect();
        assert!(!blocks.is_empty() && blocks.iter().all(|s| *s == 33 || *s == 33 ^ 1 << 31), "{blocks:?}");
        let sent = (c.sent[0].len() - sent_before) as u64;
        assert!(c.b.stats().receive_counters().packets > packets + sent / 2);
        assert_eq!(c.b.stats().playout_stats().unwrap().unusable, 0);
    }
}

#[test]
fn the_source_that_is_there_stays_and_so_it_does_without_latching() {
    let (a, life) = sender(config(11, 22, 1), Timestamp::ZERO);
    let mut c = Call::new(a, receiver(config(22, 11, 2)), link());
    let (mut intruder, _) = sender(config(66, 22, 3), Timestamp::ZERO);
    let mut out = vec![];
    let (mut frames, mut forged) = (0, 0);
    while c.now < at(5_000) {
        let to = c.now + ms(100);
        frames += played(&mut c, &life, to).len();
        intruder.handle_timeout(to);
        while intruder.poll_transmit(to, &mut out).is_some() {
            forged += 1;
            c.b.handle_datagram(to, &Datagram::new(&out, Ecn::NotEct));
        }
    }
    assert_eq!((c.b.remote().ssrc(), c.b.stats().counters().sources), (Some(11), 0));
    assert!(forged > 40 && c.b.stats().counters().unknown_source >= forged - 15 && frames >= 115, "{forged} {frames}");

    // The silence is finite, and replacement requires latching.
    let fixed = EndConfig { latch: None, ..config(22, 44, 2) };
    let (a, life) = sender(config(11, 22, 1), Timestamp::ZERO);
    let mut c = Call::new(a, receiver(fixed), link());
    assert_eq!((played(&mut c, &life, at(4_000)).len(), c.b.stats().counters().sources), (0, 0));
    // Other payload types are not media.
    let (a, life) =
        sender_of(StreamIdentity { payload_type: 100, ..StreamIdentity::of(11) }, config(11, 22, 1), Timestamp::ZERO);
    let mut c = Call::new(a, receiver(config(22, 0, 2)), link());
    assert_eq!((played(&mut c, &life, at(2_000)).len(), c.b.remote().ssrc()), (0, None));
}

#[test]
fn a_source_that_continues_after_bye_restarts() {
    let (a, life) = sender(config(11, 22, 1), Timestamp::ZERO);
    let mut c = Call::new(a, receiver(EndConfig { latch: None, ..config(22, 11, 2) }), link());
    played(&mut c, &life, at(2_000));
    c.a.leave(None);
    c.run_until(at(6_000));
    assert!(c.b.remote().has_left());
    let quiet = c.sent[1].iter().filter(|s| s.0 > at(3_000)).all(|s| {
        let all = parse_compound(&s.1).flatten().collect::<Vec<_>>();
        all.iter()
            .all(|p| !matches!(p, Packet::ReceiverReport(r) if r.blocks.iter().next().is_some_and(|b| b.ssrc == 11)))
    });
    assert!(quiet, "a source that has left is not reported");
    let (a, life) = sender(config(11, 22, 50), at(6_000));
    c.a = a;
    let frames = played(&mut c, &life, at(8_000));
    assert!(!c.b.remote().has_left() && c.b.stats().counters().sources == 1);
    assert!(frames[0].0 <= at(6_400) && frames.len() >= 40, "{}", frames.len());
}

#[test]
fn a_source_that_restarts_without_bye_is_played_at_once() {
    // The same identifier, with new numbers and timestamps.
    let (a, life) = sender(config(11, 22, 1), Timestamp::ZERO);
    let mut c = Call::new(a, receiver(config(22, 11, 2)), link());
    played(&mut c, &life, at(3_000));
    for (seed, start) in [(7, 3_100), (8, 6_000), (12, 9_000)] {
        let (a, life) = sender(config(11, 22, seed), at(start));
        c.a = a;
        c.now = at(start);
        let frames = played(&mut c, &life, at(start + 2_500));
        assert!(frames.first().is_some_and(|f| f.0 <= at(start + 600)), "{seed}: {:?}", frames.first());
        assert!(frames.len() >= 45, "{seed}: {}", frames.len());
    }
}

#[test]
fn a_colliding_identifier_is_replaced_once() {
    let (a, life) = sender(config(11, 22, 1), Timestamp::ZERO);
    let mut c = Call::new(a, receiver(config(22, 11, 2)), link());
    played(&mut c, &life, at(2_000));
    let (_, copy, _) = c.sent[0].iter().rev().find(|s| s.2.is_rtp()).unwrap().clone();
    for _ in 0..50 {
        c.a.handle_datagram(c.now, &Datagram::new(&copy, Ecn::NotEct));
    }
    let now = c.a.stats().ssrc();
    assert!(now != 11 && c.a.stats().counters().collisions == 1);
    let frames = played(&mut c, &life, at(5_000));
    let byes: Vec<u32> = (c.sent[0].iter().filter(|s| !s.2.is_rtp()))
        .flat_map(|s| parse_compound(&s.1).flatten().collect::<Vec<_>>())
        .filter_map(|p| if let Packet::Bye(b) = p { Some(b.sources.iter().collect::<Vec<_>>()) } else { None })
        .flatten()
        .collect();
    assert_eq!(byes, [11, 11 ^ 1 << 31]);
    assert_eq!((c.b.remote().ssrc(), c.b.stats().counters().sources), (Some(now), 1));
    // The other end follows within about a frame, and has repair at once.
    assert!(frames.len() >= 65, "{}", frames.len());
    // Its own packets return under the new identifier: a loop, on which nothing changes.
    let (_, looped, _) = c.sent[0].iter().rev().find(|s| s.2.is_rtp()).unwrap().clone();
    c.a.handle_datagram(c.now, &Datagram::new(&looped, Ecn::NotEct));
    assert_eq!((c.a.stats().ssrc(), c.a.stats().counters().collisions), (now, 2));
}

/// A call under a controller, with the feedback that it requires.
fn controlled(name: &str, seed: u64, start: Timestamp) -> ([Endpoint; 2], Arc<Mutex<Life>>) {
    let registry = Registry::builtin();
    let setup = Setup { limits: limits(), start_rate: DataRate::from_kbps(500), now: start, seed, params: vec![] };
    let pair = registry.make(name, &setup).unwrap();
    let spec = registry.get(name).unwrap();
    let toy = Toy::starting(start, ms(40));
    let life = toy.life.clone();
    let outgoing =
        OutgoingConfig::new(StreamIdentity::of(1_000 + seed as u32), Source::Custom(Box::new(toy)), Demand::default());
    let sending = SendingPath {
        per_packet_feedback: spec.feedback.is_some(),
        reports: spec.reports,
        ..SendingPath::new(pair.sender)
    };
    let incoming = IncomingConfig {
        playout_deadline: Some(ms(400)),
        content: true,
        ..IncomingConfig::new(StreamIdentity::of(0), MediaKind::default())
    };
    let receiving = ReceivingPath { feedback: spec.feedback, reports: spec.reports, controller: pair.receiver };
    let base = EndConfig {
        // Every end has its own clock.
        ntp_epoch: EndConfig::default().ntp_epoch + seed as u32 * 1_000,
        extensions: HeaderExtensions {
            abs_send_time: receiving.controller.is_some(),
            transport_sequence: spec.feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide),
            ..HeaderExtensions::default()
        },
        ..config(1_000 + seed as u32, 0, seed)
    };
    let other =
        EndConfig { ssrc: 2_000 + seed as u32, seed: seed + 1, ntp_epoch: base.ntp_epoch + 500, ..base.clone() };
    (
        [
            EndPlan::new(base).sends(outgoing).on(sending).make(start).unwrap(),
            EndPlan::new(other).receives(incoming).on(receiving).make(start).unwrap(),
        ],
        life,
    )
}

/// A call continues this long after a restart: the latch, a packet that a full window lets out after half a second,
/// feedback on it after a quarter, the playout deadline, and the way there and back.
const CONTINUES: TimeDelta = TimeDelta::from_millis(1_000 + 500 + 250 + 400 + 100);

#[test]
fn calls_survive_a_restart_of_either_end_under_every_controller() {
    for spec in Registry::builtin().specs().filter(|s| s.is_interactive()) {
        // Copa's frames leave at twice its rate: it takes their queue for that of others, competes, and swings up to the ceiling.
        let most = if spec.name == "copa" { 3_000.0 } else { 2_600.0 };
        let ([a, b], life) = controlled(&spec.name, 1, Timestamp::ZERO);
        let mut c = Call::new(a, b, Link::new(DataRate::from_mbps(2), |_, _| Fate::Pass));
        played(&mut c, &life, at(15_000));
        // Another sender.
        let ([a, _], life) = controlled(&spec.name, 5, at(15_000));
        c.a = a;
        let frames = played(&mut c, &life, at(30_000));
        assert!(frames.first().is_some_and(|f| f.0 <= at(15_000) + CONTINUES), "{}: {:?}", spec.name, frames.first());
        assert!(frames.len() >= 300, "{}: {}", spec.name, frames.len());
        let target = c.a.target().unwrap().media_rate.as_kbps_f64();
        assert!((200.0..=most).contains(&target), "{}: {target}", spec.name);
        // Another receiver, with another clock.
        let ([_, b], _) = controlled(&spec.name, 9, at(30_000));
        c.b = b;
        let frames = played(&mut c, &life, at(45_000));
        assert!(frames.first().is_some_and(|f| f.0 <= at(30_000) + CONTINUES), "{}: {:?}", spec.name, frames.first());
        assert!(frames.len() >= 300, "{}: {}", spec.name, frames.len());
        let target = c.a.target().unwrap().media_rate.as_kbps_f64();
        assert!((200.0..=most).contains(&target), "{}: {target}", spec.name);
        // Reports on the previous sender were in flight.
        assert!(c.a.stats().history_counters().unknown < 300, "{}", spec.name);
    }
}

#[test]
fn a_path_that_becomes_longer_is_followed() {
    let (a, life) = sender(config(11, 22, 1), Timestamp::ZERO);
    let delayed = |n, _: &[u8]| if n > 150 { Fate::Delay(ms(700)) } else { Fate::Pass };
    let mut c = Call::new(a, receiver(config(22, 11, 2)), Link::new(DataRate::from_mbps(20), delayed));
    let frames = played(&mut c, &life, at(6_000));
    let longest = frames.windows(2).map(|w| w[1].0 - w[0].0).max().unwrap();
    assert!((ms(500)..=ms(2_000)).contains(&longest) && frames.len() > 80, "{longest} {}", frames.len());
    assert!(frames.last().unwrap().0 > at(5_900));
}

#[test]
fn memory_is_bounded_and_good_media_is_played_after_any_input() {
    let (a, life) = sender(EndConfig { latch: None, ..config(11, 22, 1) }, Timestamp::ZERO);
    let mut n = 0;
    // The network duplicates and reorders; every tenth datagram is 30 ms late.
    let rule = move |_, _: &[u8]| {
        n += 1;
        if n % 10 == 0 { Fate::Delay(ms(30)) } else { Fate::Pass }
    };
    let mut c = Call::new(a, receiver(config(22, 11, 2)), Link::new(DataRate::from_mbps(20), rule));
    let (mut frames, mut x, mut seen) = (0, 1u64, 0);
    while c.now < at(20_000) {
        let to = c.now + ms(40);
        frames += played(&mut c, &life, to).len();
        let fresh: Vec<Vec<u8>> = c.sent[0][seen..].iter().map(|s| s.1.clone()).collect();
        seen = c.sent[0].len();
        for bytes in fresh {
            for kind in 0..6u64 {
                x += 1;
                let mut bad = bytes.clone();
                match kind {
                    // A duplicate, a fragment, a flipped bit after the header, another source, noise, a large jump.
                    0 => {}
                    1 => bad.truncate(usize::from(byte(3, x)) % bytes.len()),
                    2 => bad[1] ^= 0x7f,
                    3 => bad[8..12].copy_from_slice(&x.to_be_bytes()[4..]),
                    4 => bad.iter_mut().skip(1).enumerate().for_each(|(i, b)| *b = byte(x, i as u64)),
                    _ => bad[2..4].copy_from_slice(&[byte(4, x), byte(5, x)]),
                }
                // Packets with our own identifier that are in sequence by chance can be rejected by encryption only.
                if kind == 5 && bad[2..4] == bytes[2..4] || kind == 2 && bytes[1] & 0x7f > 96 {
                    continue;
                }
                if kind == 5 || kind == 2 {
                    bad[8..12].copy_from_slice(&[9; 4]);
                }
                let payload = if kind == 4 { 5_000_000 } else { 0 };
                c.b.handle_datagram(c.now, &Datagram { payload, ..Datagram::new(&bad, Ecn::Ce) });
                c.a.handle_datagram(c.now, &Datagram::new(&bad, Ecn::NotEct));
            }
        }
        let (counters, kept) = c.b.stats().content_counters();
        assert!(kept <= DataSize::from_bytes(300_000) && counters.crowded_out == 0, "{kept} {counters:?}");
    }
    assert!(frames >= 480, "{frames}");
    let e = c.b.stats().counters();
    assert!(e.malformed > 500 && e.unknown_source > 2_000 && e.sources == 0, "{e:?}");
    assert_eq!(c.b.remote().ssrc(), Some(11));
}

/// A limit by REMB holds as long as its source is there, and ends with it.
#[test]
fn a_limit_does_not_outlive_its_source() {
    use weir_wire::rtcp::{Bye, ReceiverReport, Remb, ScaledRate};
    let plan = |name: &str| {
        let limits = weir_cc::Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_mbps(2) };
        let source = weir_media::PerfectCodec::frames(TimeDelta::from_millis(33), Timestamp::ZERO).into();
        common::call_plan(name, limits, DataRate::from_mbps(1), source)
    };
    for name in ["gcc", "sluice"] {
        for ending in ["bye", "silence", "none"] {
            let (a, b) = plan(name).into_ends(Timestamp::ZERO).unwrap();
            let mut c = Call::new(a, b, Link::new(DataRate::from_mbps(10), |_, _| Fate::Pass));
            let send = |c: &mut Call, write: &dyn Fn(&mut Vec<u8>)| {
                let mut out = vec![];
                ReceiverReport { ssrc: 77, ..ReceiverReport::default() }.write_into(&mut out);
                write(&mut out);
                c.a.handle_datagram(c.now, &Datagram::new(&out, Ecn::NotEct));
            };
            c.run_until(Timestamp::from_secs(10));
            send(&mut c, &|out| {
                let rate = ScaledRate::new(DataRate::from_kbps(200));
                Remb { sender_ssrc: 77, media_ssrc: 0, rate, sources: (&[11]).into() }.write_into(out);
            });
            let rate = |c: &Call| c.a.target().unwrap().media_rate.as_kbps_f64();
            for s in 11..200 {
                if ending != "silence" {
                    send(&mut c, &|_| {});
                }
                c.run_until(Timestamp::from_secs(s));
                assert!(s > 30 || rate(&c) <= 200.0, "{name}: {}", rate(&c));
            }
            assert_eq!(rate(&c) > 1_000.0, ending == "silence", "{name}, {ending}: {}", rate(&c));
            if ending == "bye" {
                send(&mut c, &|out| Bye { sources: (&[77]).into(), reason: None }.write_into(out));
                c.run_until(Timestamp::from_secs(230));
                assert!(rate(&c) > 1_000.0, "{name}: {}", rate(&c));
            }
        }
    }
}
