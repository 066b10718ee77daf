//! Calls over two paths: rates add up, a path that fails is left, and what strangers send is counted.

mod coupling;
mod detection;
mod establishment;
mod failures;
mod handover;
mod offers;
mod policies;
mod reports;
mod shared;
mod skew;
pub(crate) mod two_paths;

use crate::common;
use two_paths::{Paths, media_of, plan_of, subflow_of};
use weir_session::multipath::SCHEDULERS;
use weir_session::{Datagram, Kind, Outcome};
use weir_units::{DataRate, Ecn, PathId, TimeDelta, Timestamp};
use weir_wire::rtcp::mprtcp::{self, Interface, InterfaceAddress};
use weir_wire::rtcp::{ReceiverReport, ReportBlock};
use weir_wire::rtp::PacketView;

const A: PathId = PathId::FIRST;
const B: PathId = PathId::new(1);

fn seconds(s: i64) -> Timestamp {
    Timestamp::from_secs(s)
}

/// 1 and 2 Mbit/s at 20 and 60 ms, for 60 s.
fn aggregate(controller: &str, scheduler: &str) -> Paths {
    let mut call = Paths::new(plan_of(controller, scheduler, 3_000), [(1_000, 10), (2_000, 30)]);
    call.run_until(seconds(60));
    call
}

#[test]
fn two_paths_carry_more_than_the_faster_alone() {
    for controller in ["gcc", "nada", "scream"] {
        let call = aggregate(controller, "earliest");
        let kbps = call.received_kbps(20, 60);
        assert!((2_000.0..3_000.0).contains(&kbps), "{controller}: {kbps} kbit/s");
        let stats = [A, B].map(|p| call.a.path(p).and_then(|p| p.stats()).expect("a path"));
        let shares = stats.map(|s| s.sent_bytes as f64 / stats.iter().map(|s| s.sent_bytes).sum::<u64>() as f64);
        assert!((0.2..0.5).contains(&shares[0]), "{controller}: {shares:?}");
        assert!(stats.iter().all(|s| s.rtt.is_some_and(|rtt| rtt > TimeDelta::from_millis(19))), "{stats:?}");
        let received = [A, B].map(|p| call.b.path(p).and_then(|p| p.stats()).expect("a path").received_packets);
        assert!(received.iter().zip(stats).all(|(r, s)| *r <= s.sent_packets && *r > 0), "{received:?}");
    }
}

#[test]
fn every_scheduler_runs_a_call() {
    for spec in SCHEDULERS {
        let call = aggregate("gcc", spec.name);
        let kbps = call.received_kbps(20, 60);
        // One path's worth at least.
        assert!((700.0..3_000.0).contains(&kbps), "{}: {kbps} kbit/s", spec.name);
        assert_eq!(call.b.stats().counters().malformed + call.a.stats().counters().malformed, 0, "{}", spec.name);
        assert_eq!(
            call.b.stats().counters().unknown_subflow + call.a.stats().counters().unknown_subflow,
            0,
            "{}",
            spec.name
        );
    }
}

#[test]
fn packets_are_numbered_by_subflow() {
    let call = aggregate("gcc", "round-robin");
    let mut next = [None; 2];
    let mut rtp = 0;
    for (_, bytes, t) in call.sent[0].iter().filter(|(.., t)| t.is_rtp()) {
        let number = subflow_of(bytes).expect("a subflow number");
        assert_eq!(usize::from(number.subflow), t.path.index());
        let expected = next[t.path.index()].replace(number.sequence.wrapping_add(1));
        assert!(expected.is_none_or(|e| e == number.sequence), "{expected:?} is {number:?}");
        rtp += 1;
    }
    assert!(rtp > 5_000 && next.iter().all(Option::is_some));
}

#[test]
fn padding_is_sent_between_frames() {
    let call = aggregate("gcc", "round-robin");
    let (mut paddings, mut last) = (0, None);
    for (_, bytes, t) in &call.sent[0] {
        let Some((_, kind @ (Kind::Media | Kind::Padding))) = t.rtp else { continue };
        let view = PacketView::parse_header(bytes).expect("written by an endpoint");
        if kind == Kind::Padding {
            paddings += 1;
            assert!(last.is_none_or(|is_end| is_end), "inside a frame, at {}", view.sequence());
        } else {
            last = Some(view.marker());
        }
    }
    assert!(paddings > 20, "{paddings}");
}

#[test]
fn feedback_on_a_path_takes_that_path() {
    let call = aggregate("scream", "round-robin");
    let mut by_path = [0, 0];
    for (_, bytes, t) in call.sent[1].iter().filter(|(_, bytes, _)| bytes[1] == weir_wire::rtcp::MPRTCP) {
        let Some(Ok(weir_wire::rtcp::Packet::Mprtcp(m))) = weir_wire::rtcp::parse_compound(bytes).next() else {
            panic!("written by an endpoint")
        };
        for block in m.blocks.iter() {
            let mprtcp::Block::Reports(r) = block else { panic!("{block:?}") };
            assert_eq!(usize::from(r.subflow), t.path.index());
            assert!(r.packets().all(|p| p.is_ok()));
            by_path[t.path.index()] += 1;
        }
    }
    assert!(by_path.iter().all(|n| *n > 100), "{by_path:?}");
}

#[test]
fn media_leave_a_path_that_dies() {
    let mut call = Paths::new(plan_of("gcc", "earliest", 3_000), [(1_500, 10), (1_500, 30)]);
    call.run_until(seconds(20));
    call.dead = Some(0);
    call.run_until(seconds(30));
    // The last packet on the dead path but for probes of it, and what arrived meanwhile.
    let died = seconds(20);
    let media = |from: Timestamp, to: Timestamp, path: PathId| {
        call.sent[0].iter().filter(|(at, _, t)| t.path == path && media_of(t) && (from..to).contains(at)).count()
    };
    let half = died + TimeDelta::from_millis(600);
    assert!(media(died, half, A) > 0);
    assert!(
        media(half, seconds(30), A) * 20 < media(half, seconds(30), B),
        "{} beside {}",
        media(half, seconds(30), A),
        media(half, seconds(30), B)
    );
    let kbps = call.received_kbps(22, 30);
    assert!((600.0..1_600.0).contains(&kbps), "{kbps} kbit/s");
    // And it is used again when it is back.
    call.dead = None;
    call.run_until(seconds(60));
    let after = media_count(&call, seconds(45), seconds(60));
    assert!(after.iter().all(|n| *n > 200), "{after:?}");
}

fn media_count(call: &Paths, from: Timestamp, to: Timestamp) -> [usize; 2] {
    [A, B]
        .map(|p| call.sent[0].iter().filter(|(at, _, t)| t.path == p && media_of(t) && (from..to).contains(at)).count())
}

#[test]
fn redundant_packets_survive_losses_of_either_path() {
    let mut call = Paths::new(plan_of("fixed", "redundant", 500), [(2_000, 10), (2_000, 30)]);
    call.lose_every = [Some(7), Some(5)];
    call.run_until(seconds(20));
    let (a, b) = (call.a.stats().send_counters(), call.b.stats().receive_counters());
    let copies = media_count(&call, Timestamp::ZERO, seconds(20));
    assert_eq!(copies[0], copies[1]);
    // A packet is lost where both copies are: 1 in 35.
    let distinct = call.distinct_received() as f64 / a.packets as f64;
    assert!((0.96..0.98).contains(&distinct), "{distinct}");
    // A copy counts as such: of two, 1 in 5 and 1 in 7 are lost.
    assert!(b.packets <= a.packets && b.packets + b.copies > a.packets * 3 / 2, "{b:?} of {} sent", a.packets);
}

#[test]
fn a_second_controller_alone_is_no_second_path_at_the_receiver() {
    // An end that knows one path ignores the numbers, and everything arrives.
    let mut plan = plan_of("fixed", "round-robin", 500);
    plan.receiving.truncate(1);
    let mut call = Paths::new(plan, [(2_000, 10), (2_000, 10)]);
    call.run_until(seconds(5));
    let (sent, received) = (call.a.stats().send_counters().packets, call.b.stats().receive_counters().packets);
    assert!(sent > 200 && received + 10 >= sent, "{received} of {sent}");
}

#[test]
fn hostile_numbers_and_addresses_are_counted() {
    let mut call = Paths::new(plan_of("gcc", "round-robin", 1_000), [(2_000, 10), (2_000, 10)]);
    call.run_until(seconds(3));
    let (before_a, before_b) = (call.a.stats().counters(), call.b.stats().counters());
    let (_, packet, t) = call.sent[0].iter().rfind(|(.., t)| t.is_rtp()).cloned().expect("RTP");
    let now = call.now;
    // 10,000 subflows.
    for subflow in 2..10_002u16 {
        let mut forged = packet.clone();
        let number = weir_wire::rtp::mprtp::SubflowNumber { subflow, sequence: 7 };
        assert!(weir_wire::rtp::mprtp::renumber(&mut forged, 6, number));
        let outcome =
            call.b.handle_datagram(now, &Datagram { payload: t.payload, ..Datagram::new(&forged, Ecn::NotEct) });
        assert!(matches!(outcome, Outcome::Rtp { .. }), "{outcome:?}");
    }
    assert_eq!(call.b.stats().counters().unknown_subflow - before_b.unknown_subflow, 10_000);
    assert!(call.b.path(PathId::new(2)).and_then(|p| p.stats()).is_none());
    // Reports on a subflow that is not there, an address, and numbers that jump.
    let mut out = Vec::new();
    let mut writer = mprtcp::Writer::new(&mut out, 22, 11);
    let block =
        |highest_sequence| ReportBlock { ssrc: 11, highest_sequence, fraction_lost: 255, ..ReportBlock::default() };
    for (subflow, highest) in [(0, 5), (0, u32::MAX), (1, 0x8000_0000), (60_000, 1)] {
        let blocks = [block(highest)];
        let rr = ReceiverReport { ssrc: 22, blocks: (&blocks).into(), extension: &[] };
        assert!(writer.reports(subflow, |out| rr.write_into(out)));
    }
    let address = InterfaceAddress::V4(std::net::Ipv4Addr::new(203, 0, 113, 9));
    assert!(writer.interface(&Interface::new(9, address).expect("valid")));
    writer.finish();
    call.a.handle_datagram(now, &Datagram::new(&out, Ecn::NotEct));
    assert_eq!(call.a.stats().counters().unknown_subflow - before_a.unknown_subflow, 1);
    assert_eq!(call.a.stats().counters().interfaces_offered, 1);
    // The call goes on.
    call.run_until(seconds(20));
    assert!(call.received_kbps(10, 20) > 500.0);
}

#[test]
fn the_rate_is_the_sum_of_the_paths() {
    let call = aggregate("fixed", "round-robin");
    let target = call.a.target().expect("a sender").media_rate;
    let sum = [A, B].map(|p| call.a.path(p).and_then(|p| p.stats()).expect("a path").target.as_bps()).iter().sum();
    assert_eq!(target, DataRate::from_bps(sum));
}
