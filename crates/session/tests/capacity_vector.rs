//! Capacity vectors between two ends: when they are sent, who follows them, and what false ones do.

#![allow(clippy::unwrap_used)]

use crate::common;
use common::{Call, Fate, Link, call_plan};
use weir_cc::Limits;
use weir_cc::cue::ForecastSegment;
use weir_media::PerfectCodec;
use weir_session::{CapacityVectorCounters, Datagram, EndConfig, Endpoint};
use weir_units::{DataRate, Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{CapacityEntry, CapacityVector, Packet, ShortRate, Tenths, parse_compound};

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

/// A vector that an attacker writes.
#[derive(Clone)]
struct Forged {
    from: u32,
    about: u32,
    serial: u16,
    age: u16,
    entries: Vec<CapacityEntry>,
}

impl Forged {
    fn from(from: u32, serial: u16) -> Self {
        Self { from, about: SENDER, serial, age: 0, entries: vec![] }
    }
    /// With stretches of so many tenths of a second and kbit/s.
    fn saying(mut self, stretches: &[(u16, u64)]) -> Self {
        self.entries.extend(stretches.iter().map(|&(tenths, kbps)| {
            let rate = ShortRate::new(DataRate::from_kbps(kbps));
            CapacityEntry { duration: Tenths::from_units(tenths), confidence: 255, low: rate, median: rate }
        }));
        self
    }
    fn bytes(&self) -> Vec<u8> {
        let (validity, age) = (Tenths::from_units(600), Tenths::from_units(self.age));
        let (sender_ssrc, media_ssrc, entries) = (self.from, self.about, (&self.entries).into());
        let mut out = vec![];
        CapacityVector { sender_ssrc, media_ssrc, serial: self.serial, validity, age, entries }.write_into(&mut out);
        out
    }
}

fn hear(c: &mut Call, forged: &Forged) {
    c.a.handle_datagram(c.now, &Datagram::new(&forged.bytes(), Ecn::NotEct));
}

/// Goodput of a call of 60 s over 1 Mbit/s in kbit/s, in which the receiver announces the link's capacity each 5 s and an
/// attacker sends what `forge` makes of the number of the tenth of a second.
fn attacked(controller: &str, mut forge: impl FnMut(u16) -> Option<Forged>) -> (f64, CapacityVectorCounters) {
    let mut c = call(controller, true, link(1_000));
    for tenth in 0..600_u16 {
        if tenth % 50 == 0 {
            announce(&mut c, &[segment(0, 60, 1_000)]);
        }
        if let Some(forged) = forge(tenth) {
            hear(&mut c, &forged);
        }
        c.run_until(Timestamp::from_millis(i64::from(tenth + 1) * 100));
    }
    let (payload, lost) = (c.a.stats().send_counters().payload, c.there.lost.len());
    ((payload as f64 - 1_200.0 * lost as f64) * 8.0 / 60e3, counters(&c.a))
}

#[test]
fn forged_replayed_and_absurd_vectors_leave_a_call_its_rate() {
    type Forge = fn(u16) -> Forged;
    type Count = fn(&CapacityVectorCounters) -> u64;
    let attacks: [(&str, Forge, Count); 9] = [
        ("of another source", |n| Forged::from(99, n).saying(&[(600, 10)]), |c| c.foreign),
        (
            "about another source",
            |n| Forged { about: 7, ..Forged::from(RECEIVER, n).saying(&[(600, 10)]) },
            |c| c.foreign,
        ),
        ("replayed", |_| Forged::from(RECEIVER, 0).saying(&[(600, 10)]), |c| c.stale),
        ("nothing", |n| Forged::from(RECEIVER, 1_000 + n).saying(&[(600, 0)]), |c| c.contradicted),
        ("next to nothing", |n| Forged::from(RECEIVER, 1_000 + n).saying(&[(600, 10)]), |c| c.contradicted),
        ("10^12 bit/s", |n| Forged::from(RECEIVER, 1_000 + n).saying(&[(600, 1_000_000_000)]), |c| c.faulty),
        ("no time", |n| Forged::from(RECEIVER, 1_000 + n).saying(&[(0, 10)]), |c| c.faulty),
        ("the past", |n| Forged { age: 601, ..Forged::from(RECEIVER, 1_000 + n).saying(&[(600, 10)]) }, |c| c.faulty),
        ("without end", |n| Forged::from(RECEIVER, 1_000 + n).saying(&[(1, 10); 1_000]), |c| c.faulty),
    ];
    for controller in ["sluice+map", "gcc+map", "fbra+map"] {
        let (clean, none) = attacked(controller, |_| None);
        assert!((800.0..960.0).contains(&clean) && none.accepted == 12, "{controller}: {clean}, {none:?}");
        for (name, forge, count) in attacks {
            // Ten a second, once the call has begun.
            let (rate, counters) = attacked(controller, |tenth| (tenth > 50).then(|| forge(tenth)));
            let share = rate / clean;
            assert!((0.95..1.1).contains(&share), "{controller}, {name}: {rate} of {clean}");
            assert!(count(&counters) > 500, "{controller}, {name}: {counters:?}");
        }
    }
}

/// A vector of the other end itself, or by who knows its source, its serial number and the call's rate, is believed: what it
/// foretells cannot be disproved before it is there. SRTP keeps all others from it.
#[test]
fn a_lie_of_the_other_end_costs_what_its_own_request_would() {
    for controller in ["sluice+map", "gcc+map"] {
        let (clean, _) = attacked(controller, |_| None);
        let lie = |n: u16| Forged::from(RECEIVER, 1_000 + n).saying(&[(10, 1_000), (590, 0)]);
        // Once: it is found out by what arrives all the same.
        let (once, _) = attacked(controller, |tenth| (tenth == 100).then(|| lie(tenth)));
        // Ten a second: nothing is left but the floor.
        let (always, _) = attacked(controller, |tenth| (tenth > 50).then(|| lie(tenth)));
        assert!((0.7..1.0).contains(&(once / clean)), "{controller}: {once} of {clean}");
        assert!((40.0..300.0).contains(&always), "{controller}: {always}");
    }
}
