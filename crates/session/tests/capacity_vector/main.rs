//! Capacity vectors between two ends: when they are sent, who follows them, and what false ones do.

#![allow(clippy::unwrap_used)]

mod attacks;
mod paths;

use crate::common;
use attacks::{Forged, hear};
use common::{Call, Fate, Link, call_plan};
use weir_cc::Limits;
use weir_cc::cue::ForecastSegment;
use weir_media::PerfectCodec;
use weir_session::{CapacityVectorCounters, EndConfig, Endpoint};
use weir_units::{DataRate, TimeDelta, Timestamp};
use weir_wire::rtcp::{Packet, parse_compound};

const LIMITS: Limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(2_000) };
/// The sources of [`call_plan`]'s ends.
const SENDER: u32 = 11;
const RECEIVER: u32 = 22;

fn call(controller: &str, agreed: bool, there: Link) -> Call {
    let source = PerfectCodec::frames(TimeDelta::from_millis(33), Timestamp::ZERO).into();
    let mut plan = call_plan(controller, LIMITS, DataRate::from_kbps(500), source);
    plan.sender.capacity_vectors = agreed;
    plan.receiver.capacity_vectors = agreed;
    let (a, b) = plan.into_ends(Timestamp::ZERO).unwrap();
    Call::new(a, b, there)
}
fn link(kbps: u64) -> Link {
    Link::new(DataRate::from_kbps(kbps), |_, _| Fate::Pass)
}
fn segment(from: i64, to: i64, kbps: u64) -> ForecastSegment {
    let (from, to) = (TimeDelta::from_secs(from), TimeDelta::from_secs(to));
    let median = DataRate::from_kbps(kbps);
    ForecastSegment { from, to, low: median, median, confidence: 1.0 }
}
fn announce(c: &mut Call, segments: &[ForecastSegment]) -> bool {
    c.b.rtcp().announce_capacity(segments, TimeDelta::from_secs(60), c.now)
}
fn counters(end: &Endpoint) -> CapacityVectorCounters {
    end.stats().counters().vectors
}
fn kbps(end: &Endpoint) -> u64 {
    end.target().expect("it sends").media_rate.as_bps() / 1_000
}
/// The times at which an end sent vectors, in tenths of a second, with their serial numbers.
fn vectors(c: &Call, end: usize) -> Vec<(i64, u16)> {
    let of = |(at, bytes, _): &(Timestamp, Vec<u8>, _)| {
        let at = (*at - Timestamp::ZERO).as_millis() / 100;
        parse_compound(bytes)
            .flatten()
            .filter_map(move |p| if let Packet::Capacity(v) = p { Some((at, v.serial)) } else { None })
            .collect::<Vec<_>>()
    };
    c.sent[end].iter().filter(|(_, _, t)| !t.is_rtp()).flat_map(of).collect()
}

#[test]
fn the_sender_falls_before_a_hole_that_the_receiver_foresees() {
    for controller in ["fixed+map", "sluice+map", "nada+map", "fbra+map"] {
        let mut c = call(controller, true, link(3_000));
        c.run_until(Timestamp::from_secs(10));
        let before = kbps(&c.a);
        assert!(before > 350, "{controller}: {before}");
        assert!(announce(&mut c, &[segment(0, 5, 3_000), segment(5, 8, 100), segment(8, 60, 3_000)]));
        c.run_until(Timestamp::from_millis(13_000));
        assert!(kbps(&c.a) >= before, "{controller}: {}", kbps(&c.a));
        c.run_until(Timestamp::from_millis(14_500));
        // 0.95 of 100 kbit/s, 1.5 s before the hole.
        assert!((90..=96).contains(&kbps(&c.a)), "{controller}: {}", kbps(&c.a));
        c.run_until(Timestamp::from_secs(30));
        assert!(kbps(&c.a) > before * 9 / 10, "{controller}: {}", kbps(&c.a));
        let (sent, heard) = (counters(&c.b), counters(&c.a));
        assert_eq!((heard.accepted, heard.repeated, heard.contradicted), (1, sent.sent - 1, 0), "{controller}");
        assert_eq!((counters(&c.a).sent, counters(&c.b).accepted), (0, 0));
    }
}

#[test]
fn without_agreement_nothing_is_sent_or_followed() {
    let mut c = call("fixed+map", false, link(3_000));
    assert!(!announce(&mut c, &[segment(0, 60, 100)]));
    c.run_until(Timestamp::from_secs(5));
    assert_eq!(vectors(&c, 1), []);
    hear(&mut c, &Forged::from(RECEIVER, 1).saying(&[(600, 100)]));
    assert_eq!((kbps(&c.a), counters(&c.a).not_agreed, counters(&c.a).accepted), (500, 1, 0));
    // An end that receives nothing has nothing to announce.
    let mut c = call("fixed+map", true, link(3_000));
    assert!(!c.a.rtcp().announce_capacity(&[segment(0, 60, 100)], TimeDelta::from_secs(60), c.now));
    assert!(EndConfig::default() == EndConfig { capacity_vectors: false, ..EndConfig::default() });
}

#[test]
fn a_vector_is_sent_at_once_and_repeated_with_reports() {
    // The first reports with it are lost.
    let mut c = call("fixed+map", true, link(3_000));
    let mut lost = 0;
    c.back = Link::new(DataRate::from_mbps(10), move |_, bytes| {
        let has = parse_compound(bytes).flatten().any(|p| matches!(p, Packet::Capacity(_)));
        lost += u32::from(has);
        if has && lost <= 2 { Fate::Lose } else { Fate::Pass }
    });
    c.run_until(Timestamp::from_secs(10));
    announce(&mut c, &[segment(0, 60, 200)]);
    c.run_until(Timestamp::from_millis(10_400));
    // A feedback interval later at the latest.
    assert!(matches!(vectors(&c, 1)[..], [(100..=104, 1)]), "{:?}", vectors(&c, 1));
    c.run_until(Timestamp::from_secs(80));
    let sent = vectors(&c, 1);
    assert!(sent.iter().all(|(at, serial)| *serial == 1 && *at < 700), "{sent:?}");
    // 1, 2 and 4 s apart, then 8, each delayed to the next regular report; for 60 s.
    assert!((8..=10).contains(&sent.len()), "{sent:?}");
    assert!(sent.windows(2).all(|w| w[1].0 - w[0].0 >= 10), "{sent:?}");
    let heard = counters(&c.a);
    assert_eq!((heard.accepted, heard.repeated), (1, sent.len() as u64 - 3));
    // However often it is given, it is sent once a second at most, always the newest.
    c.sent = [vec![], vec![]];
    for n in 0..100 {
        announce(&mut c, &[segment(0, 60, 200 + n)]);
        c.run_until(Timestamp::from_millis(80_000 + 100 * (n as i64 + 1)));
    }
    let sent = vectors(&c, 1);
    assert!((5..=11).contains(&sent.len()), "{sent:?}");
    assert!(sent.windows(2).all(|w| w[1].0 - w[0].0 >= 10), "{sent:?}");
}

#[test]
fn rtcp_keeps_to_its_share_with_the_longest_vectors() {
    let mut c = call("sluice+map", true, link(3_000));
    for second in 0..60 {
        let many: Vec<_> = (0..200).map(|n| segment(n, n + 1, 1_000 + n as u64)).collect();
        announce(&mut c, &many);
        c.run_until(Timestamp::from_secs(second + 1));
    }
    assert!(counters(&c.a).accepted > 30, "{:?}", counters(&c.a));
    let largest = c.sent[1].iter().map(|(_, bytes, _)| bytes.len()).max();
    assert!(largest.is_some_and(|n| (536..=1_200).contains(&n)), "{largest:?}");
    let rate = c.b.stats().counters().rtcp_bytes as f64 * 8.0 / 60.0;
    // 5 % of the session bandwidth of 2 Mbit/s are both ends'.
    assert!((10e3..75e3).contains(&rate), "{rate}");
}

#[test]
fn a_vector_ends_with_its_sender() {
    let mut c = call("fixed+map", true, link(3_000));
    announce(&mut c, &[segment(0, 60, 200)]);
    c.run_until(Timestamp::from_secs(3));
    // The bound grows while the queue stays empty.
    assert!((190..=300).contains(&kbps(&c.a)), "{}", kbps(&c.a));
    c.b.leave(None);
    c.run_until(Timestamp::from_secs(4));
    assert_eq!(kbps(&c.a), 500);
    // Withdrawn by the receiver itself.
    let mut c = call("fixed+map", true, link(3_000));
    announce(&mut c, &[segment(0, 60, 200)]);
    c.run_until(Timestamp::from_secs(3));
    announce(&mut c, &[]);
    c.run_until(Timestamp::from_secs(6));
    assert_eq!((kbps(&c.a), counters(&c.a).accepted), (500, 2));
}
