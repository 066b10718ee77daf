//! Two ends of a call over a minimal link, with real bytes in both directions.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::{Call, Fate, Link};
use weir_cc::{FeedbackFormat, Limits, Registry, Setup};
use weir_media::{PerfectCodec, Source};
use weir_session::allocation::{Demand, MediaKind};
use weir_session::{
    Datagram, EndConfig, EndPlan, HeaderExtensions, IncomingConfig, OutgoingConfig, ReceivingPath, SendingPath,
    StreamIdentity,
};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{Packet, check_compound, parse_compound};

fn call(controller: &str, seed: u64, lose: fn(u64) -> bool) -> Call {
    let registry = Registry::builtin();
    let kbps = DataRate::from_kbps;
    let limits = Limits { floor: kbps(150), ceiling: kbps(3_000) };
    let now = Timestamp::ZERO;
    let setup = Setup { limits, start_rate: kbps(500), now, seed, params: vec![] };
    let pair = registry.make(controller, &setup).expect("built in");
    let spec = registry.get(controller).expect("built in");
    let (feedback, reports) = (spec.feedback, spec.reports);
    let config = EndConfig {
        ssrc: 11,
        remote_ssrc: 22,
        seed,
        extensions: HeaderExtensions {
            abs_send_time: pair.receiver.is_some(),
            transport_sequence: feedback.is_some_and(|f| f.format == FeedbackFormat::TransportWide),
            ..HeaderExtensions::default()
        },
        ..EndConfig::default()
    };
    // Pudica finds the link by frames, and does not by single packets.
    let codec = match controller {
        "pudica" => PerfectCodec::frames(TimeDelta::from_millis(33), now),
        _ => PerfectCodec::packets(DataSize::from_bytes(1_000), now),
    };
    let source = Source::from(codec);
    let outgoing = OutgoingConfig::new(StreamIdentity::of(11), source, Demand::default());
    let sending = SendingPath { per_packet_feedback: feedback.is_some(), reports, ..SendingPath::new(pair.sender) };
    let incoming = IncomingConfig::new(StreamIdentity::of(11), MediaKind::default());
    let receiving = ReceivingPath { feedback, reports, controller: pair.receiver };
    let a = EndPlan::new(config.clone()).sends(outgoing).on(sending).make(now).unwrap();
    let other = EndConfig { ssrc: 22, remote_ssrc: 11, seed: seed + 1, ..config };
    let b = EndPlan::new(other).receives(incoming).on(receiving).make(now).unwrap();
    let rule = move |n, _: &[u8]| if lose(n) { Fate::Lose } else { Fate::Pass };
    Call::new(a, b, Link::new(kbps(2_000), rule))
}

fn run(call: &mut Call, seconds: i64) {
    call.run_until(Timestamp::from_secs(seconds));
}

/// RTP datagrams sent by the sender.
fn media(call: &Call) -> u64 {
    for (_, bytes, t) in &call.sent[0] {
        assert_eq!(t.size.as_bytes(), bytes.len() as u64 + u64::from(t.payload));
    }
    call.sent[0].iter().filter(|(_, _, t)| t.is_rtp()).count() as u64
}

/// RTCP datagrams from both ends.
fn rtcp(call: &Call) -> [Vec<Vec<u8>>; 2] {
    assert!(call.sent[1].iter().all(|(_, _, t)| !t.is_rtp()), "the receiver sends no media");
    [0, 1].map(|end| call.sent[end].iter().filter(|(_, _, t)| !t.is_rtp()).map(|(_, bytes, _)| bytes.clone()).collect())
}

#[test]
fn a_constant_rate_arrives_whole_and_is_reported() {
    let mut c = call("fixed", 1, |_| false);
    run(&mut c, 20);
    // 500 kbit/s in packets of 1,000 bytes: 62.5 a second.
    let (media, rtcp) = (media(&c), rtcp(&c));
    assert!((1_248..=1_252).contains(&media), "{media}");
    let r = c.b.stats().receive_counters();
    assert!(media - r.packets <= 4 && r.invalid == 0, "{r:?}");
    let rtt = c.a.stats().rtt().expect("measured").as_millis_f64();
    assert!((100.0..106.0).contains(&rtt), "{rtt}");
    for datagram in rtcp.iter().flatten() {
        check_compound(datagram).expect("a compound by RFC 3550");
    }
    // T_rr_interval of 1 s, 0.5 to 1.5 s apart.
    assert!((13..=40).contains(&rtcp[1].len()), "{}", rtcp[1].len());
    assert_eq!(c.a.stats().counters().malformed + c.b.stats().counters().malformed, 0);
}

#[test]
fn losses_reach_the_sender_as_report_blocks() {
    let mut c = call("fixed", 3, |n| n % 10 == 0);
    run(&mut c, 60);
    let lost: Vec<u8> = (rtcp(&c)[1].iter())
        .flat_map(|d| parse_compound(d).flatten().collect::<Vec<_>>())
        .filter_map(|p| match p {
            Packet::ReceiverReport(rr) => rr.blocks.iter().next().map(|b| b.fraction_lost),
            _ => None,
        })
        .collect();
    let mean = lost.iter().map(|&f| f64::from(f) / 256.0).sum::<f64>() / lost.len() as f64;
    assert!((0.08..0.12).contains(&mean), "{mean}");
}

#[test]
fn every_controller_finds_its_rate_and_keeps_its_counters_clean() {
    for spec in Registry::builtin().specs().filter(|s| s.is_interactive()) {
        let mut c = call(&spec.name, 5, |_| false);
        run(&mut c, 50);
        // In the mean: one that has just grown may be above the link.
        let mut target = 0.0;
        for second in 51..=60 {
            run(&mut c, second);
            target += c.a.target().expect("sends").media_rate.as_kbps_f64() / 10.0;
        }
        assert!((400.0..=2_400.0).contains(&target), "{}: {target} kbit/s", spec.name);
        let h = c.a.stats().history_counters();
        assert_eq!((h.unknown, h.late), (0, 0), "{}: {h:?}", spec.name);
        assert_eq!((c.a.stats().counters().malformed, c.b.stats().counters().malformed), (0, 0), "{}", spec.name);
        assert!(c.a.stats().bytes_in_flight() < DataSize::from_bytes(300_000), "{}", spec.name);
        let bandwidth = c.b.stats().counters().rtcp_bytes as f64 * 8.0 / 60.0;
        assert!(bandwidth < 0.06 * 2e6, "{}: RTCP takes {bandwidth} bit/s", spec.name);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for spec in Registry::builtin().specs() {
        let bytes = |seed| {
            let mut c = call(&spec.name, seed, |n| n % 50 == 0);
            run(&mut c, 10);
            (rtcp(&c), media(&c))
        };
        assert_eq!(bytes(9), bytes(9), "{}", spec.name);
        assert_ne!(bytes(9).0, bytes(10).0, "{}", spec.name);
    }
}

#[test]
fn garbage_is_counted_and_changes_nothing() {
    let mut c = call("fixed", 1, |_| false);
    run(&mut c, 2);
    let before = c.a.target();
    let mut x = 12_345u64;
    for n in 0..20_000usize {
        let mut bytes: Vec<u8> = (0..n % 97)
            .map(|_| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (x >> 33) as u8
            })
            .collect();
        if let [first, second, ..] = &mut bytes[..] {
            *first = 0x80 | (*first & 0x3f);
            if n % 2 == 0 {
                *second = 200 + (*second % 8);
            }
        }
        for end in [&mut c.a, &mut c.b] {
            end.handle_datagram(c.now, &Datagram { payload: (n % 3) as u32 * 100, ..Datagram::new(&bytes, Ecn::Ce) });
        }
    }
    assert!(c.a.stats().counters().malformed > 1_000 && c.b.stats().counters().unknown_source > 1_000);
    assert_eq!(c.a.target(), before);
}

#[test]
fn leaving_sends_a_goodbye_and_then_nothing() {
    let mut c = call("fixed", 1, |_| false);
    run(&mut c, 1);
    c.a.leave(None);
    let mut out = Vec::new();
    assert!(c.a.poll_transmit(c.now, &mut out).is_some_and(|t| !t.is_rtp()));
    check_compound(&out).expect("compound");
    assert!(parse_compound(&out).flatten().any(|p| matches!(p, Packet::Bye(_))));
    assert_eq!((c.a.poll_transmit(c.now, &mut out), c.a.poll_timeout(c.now)), (None, None));
}
