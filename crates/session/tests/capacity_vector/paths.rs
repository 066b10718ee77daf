//! A vector for each path of a call over two.

use super::attacks::{ATTACKS, Forged};
use super::{RECEIVER, counters, segment};
use crate::multipath::two_paths::{Paths, plan_of};
use weir_cc::cue::ForecastSegment;
use weir_session::{Datagram, Handover};
use weir_units::{Ecn, PathId, TimeDelta, Timestamp};
use weir_wire::rtcp::mprtcp::{Block, Writer};
use weir_wire::rtcp::{Packet, parse_compound};

const A: PathId = PathId::FIRST;
const B: PathId = PathId::new(1);

/// 1 and 2 Mbit/s at 20 and 60 ms.
fn call(controller: &str, agreed: bool) -> Paths {
    call_over(controller, agreed, [(1_000, 10), (2_000, 30)])
}
fn call_over(controller: &str, agreed: bool, links: [(u64, i64); 2]) -> Paths {
    let mut plan = plan_of(controller, "earliest", 2_500);
    (plan.sender.capacity_vectors, plan.receiver.capacity_vectors) = (agreed, agreed);
    Paths::new(plan, links)
}
fn announce(c: &mut Paths, path: PathId, segments: &[ForecastSegment]) -> bool {
    let now = c.now;
    c.b.path_mut(path).is_some_and(|mut p| p.announce_capacity(segments, TimeDelta::from_secs(60), now))
}
/// The targets of both paths, in kbit/s.
fn targets(c: &Paths) -> [u64; 2] {
    [A, B].map(|p| c.a.path(p).and_then(|p| p.stats()).expect("a path").target.as_bps() / 1_000)
}
/// Forged vectors in a path's block.
fn in_block(subflow: u16, forged: &[Forged]) -> Vec<u8> {
    let mut out = vec![];
    let mut writer = Writer::new(&mut out, RECEIVER, 11);
    for f in forged {
        writer.reports(subflow, |out| out.extend(f.bytes()));
    }
    writer.finish();
    out
}
fn hear(c: &mut Paths, bytes: &[u8]) {
    c.a.handle_datagram(c.now, &Datagram::new(bytes, Ecn::NotEct));
}

#[test]
fn each_paths_controller_follows_the_vector_of_its_own() {
    for controller in ["sluice+map", "gcc+map", "nada+map", "fbra+map"] {
        let mut c = call(controller, true);
        c.run_until(Timestamp::from_secs(20));
        let before = targets(&c);
        let (hole, after) = (segment(6, 9, 110), segment(9, 60, 1_000));
        assert!(announce(&mut c, A, &[segment(0, 6, 1_000), hole, after]));
        assert!(announce(&mut c, B, &[segment(0, 12, 2_000), segment(12, 15, 120), segment(15, 60, 2_000)]));
        // 1.5 s before each path's hole, and not the other's.
        c.run_until(Timestamp::from_millis(25_500));
        let [a, b] = targets(&c);
        assert!((100..=105).contains(&a) && b > before[1] / 2, "{controller}: {a} and {b} of {before:?}");
        c.run_until(Timestamp::from_millis(31_500));
        let [a, b] = targets(&c);
        assert!(a > before[0] / 4 && (100..=114).contains(&b), "{controller}: {a} and {b} of {before:?}");
        let (sent, heard) = (counters(&c.b), counters(&c.a));
        assert_eq!((heard.accepted, heard.repeated + 2), (2, sent.sent), "{controller}: {heard:?}");
        assert_eq!((heard.contradicted, heard.of_no_path), (0, 0), "{controller}");
    }
}

#[test]
fn a_vector_names_its_path_and_takes_the_other_where_that_is_dead() {
    let mut c = call("sluice+map", true);
    c.run_until(Timestamp::from_secs(10));
    c.dead = Some(0);
    c.run_until(Timestamp::from_secs(13));
    c.sent = [vec![], vec![]];
    let many: Vec<_> = (0..64).map(|n| segment(n, n + 1, 1_000 + n as u64)).collect();
    assert!(announce(&mut c, A, &many) && announce(&mut c, B, &many));
    c.run_until(Timestamp::from_secs(16));
    let mut seen = [0, 0];
    for (_, bytes, t) in c.sent[1].iter().filter(|(.., t)| !t.is_rtp()) {
        assert!(bytes.len() <= 1_200, "{}", bytes.len());
        for packet in parse_compound(bytes) {
            let Ok(Packet::Mprtcp(m)) = packet else { continue };
            for block in m.blocks.iter() {
                let Block::Reports(r) = block else { continue };
                let vectors = r.packets().filter(|p| matches!(p, Ok(Packet::Capacity(_)))).count();
                seen[usize::from(r.subflow)] += vectors;
                assert!(vectors == 0 || t.path == B, "on {:?}", t.path);
            }
        }
    }
    assert!(seen.iter().all(|n| *n > 0), "{seen:?}");
    assert_eq!((counters(&c.a).accepted, counters(&c.a).faulty), (2, 0));
}

#[test]
fn what_names_no_path_of_the_call_is_ignored() {
    let mut c = call("sluice+map", true);
    c.run_until(Timestamp::from_secs(10));
    let before = targets(&c);
    let low = Forged::from(RECEIVER, 1).saying(&[(600, 300)]);
    // As in a call over one path.
    hear(&mut c, &low.bytes());
    assert_eq!((counters(&c.a).of_no_path, targets(&c)), (1, before));
    for subflow in [2, 7, 8, 255, u16::MAX] {
        let unknown = c.a.stats().counters().unknown_subflow;
        hear(&mut c, &in_block(subflow, std::slice::from_ref(&low)));
        assert_eq!((c.a.stats().counters().unknown_subflow, targets(&c)), (unknown + 1, before), "{subflow}");
    }
    // A path that was removed.
    c.a.remove_path(B, Handover::BreakBeforeMake).expect("there are two");
    c.b.remove_path(B, Handover::BreakBeforeMake).expect("there are two");
    hear(&mut c, &in_block(1, std::slice::from_ref(&low)));
    assert_eq!((counters(&c.a).of_no_path, counters(&c.a).accepted), (2, 0));
    assert!(!announce(&mut c, B, &[segment(0, 60, 300)]) && !announce(&mut c, PathId::new(5), &[]));
    assert!(announce(&mut c, A, &[segment(0, 60, 300)]));
    // Of a call over one path.
    let mut c = call("sluice+map", false);
    c.run_until(Timestamp::from_secs(1));
    hear(&mut c, &in_block(0, &[low]));
    assert_eq!((counters(&c.a).not_agreed, counters(&c.a).accepted), (1, 0));
    assert!(!announce(&mut c, A, &[segment(0, 60, 300)]));
}

/// Goodput from the tenth to the 60th second over two links of 1 Mbit/s, in which the receiver announces both links' capacities each 5 s and an attacker
/// sends datagrams each tenth of a second.
fn attacked(forge: impl Fn(u16) -> Vec<Vec<u8>>) -> f64 {
    let mut c = call_over("sluice+map", true, [(1_000, 10), (1_000, 30)]);
    for tenth in 0..600_u16 {
        if tenth % 50 == 0 {
            announce(&mut c, A, &[segment(0, 60, 1_000)]);
            announce(&mut c, B, &[segment(0, 60, 1_000)]);
        }
        if tenth > 80 {
            forge(tenth).iter().for_each(|bytes| hear(&mut c, bytes));
        }
        c.run_until(Timestamp::from_millis(i64::from(tenth + 1) * 100));
    }
    c.received_kbps(10, 60)
}

#[test]
fn attacks_on_either_path_leave_the_call_its_rate() {
    let clean = attacked(|_| vec![]);
    assert!((1_600.0..2_000.0).contains(&clean), "{clean}");
    for (name, forge, ..) in ATTACKS {
        let rate = attacked(|n| (0..2).map(|path| in_block(path, &forge(n))).collect());
        println!("{name}: {:.1} %", 100.0 * rate / clean);
        assert!((0.95..1.05).contains(&(rate / clean)), "{name}: {rate} of {clean}");
    }
    // On paths that do not exist, and without one.
    let low = |n| Forged::from(RECEIVER, 1_000 + n).saying(&[(600, 10)]);
    let nowhere = attacked(|n| {
        let mut all: Vec<Vec<u8>> = (2..50).map(|path| in_block(path, &[low(n)])).collect();
        all.push(low(n).bytes());
        all
    });
    println!("nowhere: {:.1} %", 100.0 * nowhere / clean);
    assert!((0.95..1.05).contains(&(nowhere / clean)), "{nowhere} of {clean}");
    // Fifty blocks of the same path in a datagram.
    let many = attacked(|n| vec![in_block(0, &(0..50).map(|i| low(50 * (n % 400) + i)).collect::<Vec<_>>())]);
    println!("fifty blocks: {:.1} %", 100.0 * many / clean);
    assert!((0.95..1.05).contains(&(many / clean)), "{many} of {clean}");
}
