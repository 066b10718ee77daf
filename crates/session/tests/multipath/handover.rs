//! Paths added and removed in mid-call.

use super::two_paths::{Paths, media_of, only_first_path, plan_of};
use weir_cc::{Limits, Registry, Setup};
use weir_session::{
    CallPlan, Control, Datagram, EndPlan, Handover, PathConfig, PathError, PathUse, ReceivingPath, SendingPath,
};
use weir_units::{DataRate, Ecn, PathId, Timestamp};
use weir_wire::rtcp::{App, mprtcp::Writer};

const A: PathId = PathId::FIRST;
const B: PathId = PathId::new(1);

fn controller(now: Timestamp) -> (SendingPath, ReceivingPath) {
    let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_mbps(1) };
    let setup = Setup { limits, start_rate: DataRate::from_kbps(300), now, seed: 5, params: vec![] };
    Control::new(&Registry::builtin(), "gcc", &setup).expect("built in").into_directions()
}

/// A call over two paths, of which the second is removed after 5 s.
fn over_the_first() -> Paths {
    let mut call = Paths::new(plan_of("gcc", "earliest", 1_000), [(2_000, 10), (2_000, 10)]);
    call.run_until(Timestamp::from_secs(5));
    for end in [&mut call.a, &mut call.b] {
        assert_eq!(end.remove_path(B, Handover::BreakBeforeMake), Ok(()));
        assert_eq!(end.path(B).map(|p| p.usage()), Some(PathUse::Removed));
    }
    call.run_until(Timestamp::from_secs(10));
    assert_eq!(media(&call, B, 5_000, 10_000), 0);
    assert!(media(&call, A, 5_000, 10_000) > 100);
    call
}

/// A call made with one path that can have more.
fn made_with_one(receives_several: bool) -> Paths {
    let mut plan = plan_of("gcc", "earliest", 1_000);
    only_first_path(&mut plan);
    plan.receiver.multipath = receives_several;
    Paths::new(plan, [(700, 10), (700, 10)])
}

fn add(call: &mut Paths) {
    let (sender, half) = controller(call.now);
    assert_eq!(call.a.add_path(sender.into(), call.now), Ok(B));
    assert_eq!(call.b.add_path(half.into(), call.now), Ok(B));
    assert_eq!(call.a.path(B).map(|p| p.usage()), Some(PathUse::Checked));
}

/// Media packets sent on a path between two times in milliseconds.
fn media(call: &Paths, path: PathId, from: i64, to: i64) -> usize {
    let span = Timestamp::from_millis(from)..Timestamp::from_millis(to);
    call.sent[0].iter().filter(|(at, _, t)| t.path == path && media_of(t) && span.contains(at)).count()
}

#[test]
fn an_added_path_carries_media_once_the_other_end_has_answered() {
    let mut call = over_the_first();
    add(&mut call);
    call.run_until(Timestamp::from_secs(20));
    assert_eq!(call.a.path(B).map(|p| p.usage()), Some(PathUse::Open));
    // A round trip is 20 ms.
    assert_eq!(media(&call, B, 10_000, 10_020), 0);
    assert!(media(&call, B, 10_020, 20_000) > 100);
    assert_eq!(call.a.stats().counters().checks_refused + call.b.stats().counters().checks_refused, 0);
}

#[test]
fn a_call_made_with_one_path_gets_a_second_and_hands_over_to_it() {
    let mut call = made_with_one(true);
    call.run_until(Timestamp::from_secs(10));
    assert_eq!((media(&call, B, 0, 10_000), call.a.path(B).map(|p| p.usage())), (0, None));
    let alone = call.received_kbps(5, 10);
    assert!((300.0..710.0).contains(&alone), "{alone} kbit/s");
    add(&mut call);
    call.run_until(Timestamp::from_secs(30));
    assert_eq!(call.a.path(B).map(|p| p.usage()), Some(PathUse::Open));
    let both = call.received_kbps(20, 30);
    assert!((1_000.0..1_400.0).contains(&both), "{both} kbit/s after {alone}");
    for end in [&mut call.a, &mut call.b] {
        assert_eq!(end.remove_path(A, Handover::MakeBeforeBreak), Ok(()));
    }
    call.run_until(Timestamp::from_secs(40));
    assert_eq!(media(&call, A, 30_500, 40_000), 0);
    let other = call.received_kbps(32, 40);
    assert!((300.0..710.0).contains(&other), "{other} kbit/s on the second path");
    let counters = [call.a.stats().counters(), call.b.stats().counters()];
    assert!(counters.iter().all(|c| c.unknown_subflow + c.malformed + c.checks_refused == 0), "{counters:?}");
}

#[test]
fn both_directions_get_a_second_path() {
    // Two calls in opposite directions, joined.
    let [there, back] = [1, 2].map(|n| {
        let mut plan = plan_of("gcc", "earliest", 1_000);
        only_first_path(&mut plan);
        plan.sender.seed = n;
        plan
    });
    let mut there = there;
    let mut back = back;
    // The streams of the second end have a source of their own.
    for identity in [&mut back.outgoing[0].identity, &mut back.incoming[0].identity] {
        identity.ssrc = 22;
    }
    let path = |from: &mut CallPlan, to: &mut CallPlan| PathConfig {
        sending: from.sending.pop(),
        receiving: to.receiving.pop(),
        number: None,
    };
    let paths = [path(&mut there, &mut back), path(&mut back, &mut there)];
    let [on_a, on_b] = paths;
    let make =
        |end, outgoing, incoming, path| EndPlan { end, outgoing, incoming, paths: vec![path], ..EndPlan::default() };
    let a =
        make(there.sender, there.outgoing, back.incoming, on_a).make(Timestamp::ZERO).expect("sources of their own");
    let b =
        make(there.receiver, back.outgoing, there.incoming, on_b).make(Timestamp::ZERO).expect("sources of their own");
    let mut call = Paths::of_ends((a, b), [(700, 10), (700, 10)]);
    call.run_until(Timestamp::from_secs(10));
    for end in [&mut call.a, &mut call.b] {
        let (sender, half) = controller(call.now);
        let path = PathConfig { sending: Some(sender), receiving: Some(half), number: None };
        assert_eq!(end.add_path(path, call.now), Ok(B));
    }
    call.run_until(Timestamp::from_secs(30));
    for (end, sent) in [&call.a, &call.b].into_iter().zip(&call.sent) {
        assert_eq!(end.path(B).map(|p| p.usage()), Some(PathUse::Open));
        let on_b = sent.iter().filter(|(_, _, t)| t.path == B && media_of(t)).count();
        let stats = end.path(B).and_then(|p| p.stats()).expect("a path");
        assert!(on_b > 200 && stats.received_packets > 200 && stats.rtt.is_some(), "{on_b}, {stats:?}");
        assert_eq!(end.stats().counters().unknown_subflow + end.stats().counters().checks_refused, 0);
    }
}

#[test]
fn a_path_that_only_the_sender_adds_carries_nothing() {
    let mut call = made_with_one(false);
    let (sender, half) = controller(call.now);
    assert_eq!(call.b.add_path(half.into(), call.now), Err(PathError::SinglePath));
    assert_eq!(call.a.add_path(sender.into(), call.now), Ok(B));
    call.run_until(Timestamp::from_secs(20));
    assert_eq!(call.a.path(B).map(|p| p.usage()), Some(PathUse::Failed));
    assert_eq!(media(&call, B, 0, 20_000), 0);
    assert!(media(&call, A, 0, 20_000) > 200);
}

#[test]
fn no_media_goes_to_an_address_where_nobody_answers() {
    let mut call = over_the_first();
    call.dead = Some(1);
    add(&mut call);
    let from = call.sent[0].len();
    call.run_until(Timestamp::from_secs(60));
    assert_eq!(call.a.path(B).map(|p| p.usage()), Some(PathUse::Failed));
    let there: Vec<_> = call.sent[0][from..].iter().filter(|(.., t)| t.path == B).collect();
    assert!(there.len() == 5 && there.iter().all(|(.., t)| !t.is_rtp() && t.size.as_bytes() < 50), "{there:?}");
    assert!(media(&call, A, 50_000, 60_000) > 200);
    // It can be tried again.
    call.dead = None;
    let (sender, _) = controller(call.now);
    assert_eq!(call.a.add_path(sender.into(), call.now), Ok(B));
    call.run_until(Timestamp::from_secs(70));
    assert_eq!(call.a.path(B).map(|p| p.usage()), Some(PathUse::Open));
}

#[test]
fn a_forged_answer_opens_nothing() {
    let mut call = over_the_first();
    call.dead = Some(1);
    add(&mut call);
    let app = |subtype, data: &[u8]| {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out, 22, 11);
        writer.reports(1, |out| App { subtype, ssrc: 22, name: *b"WPCK", data }.write_into(out));
        writer.finish();
        out
    };
    for guess in 0..1_000u64 {
        call.a.handle_datagram(call.now, &Datagram::new(&app(1, &guess.to_be_bytes()), Ecn::NotEct));
    }
    assert_eq!(
        (call.a.path(B).map(|p| p.usage()), call.a.stats().counters().checks_refused),
        (Some(PathUse::Checked), 1_000)
    );
    // A storm of challenges has one answer at a time.
    let sent = call.sent[0].len();
    for guess in 0..1_000u64 {
        call.a.handle_datagram(call.now, &Datagram::new(&app(0, &guess.to_be_bytes()), Ecn::NotEct));
    }
    call.run_until(call.now + weir_units::TimeDelta::from_millis(1));
    assert!(call.sent[0][sent..].iter().filter(|(.., t)| t.path == B).count() <= 2);
}

#[test]
fn make_before_break_leaves_no_gap() {
    // Frames are 33 ms apart.
    for (handover, most) in [(Handover::MakeBeforeBreak, 100), (Handover::BreakBeforeMake, 2_000)] {
        let mut call = over_the_first();
        add(&mut call);
        for end in [&mut call.a, &mut call.b] {
            assert_eq!(end.remove_path(A, handover), Ok(()));
        }
        call.run_until(Timestamp::from_secs(20));
        // The first path is left, and the second has taken over.
        assert_eq!(media(&call, A, 10_500, 20_000), 0, "{handover:?}");
        assert!(media(&call, B, 11_000, 20_000) > 200, "{handover:?}");
        assert_eq!(media(&call, A, 10_001, 20_000) > 0, handover == Handover::MakeBeforeBreak);
        let start = Timestamp::from_secs(10);
        let times: Vec<_> =
            call.sent[0].iter().filter(|(at, _, t)| media_of(t) && *at >= start).map(|(at, ..)| *at).collect();
        let gap = times.windows(2).map(|w| (w[1] - w[0]).as_millis()).max().expect("media");
        assert!(gap < most, "{handover:?}: {gap} ms");
    }
}

#[test]
fn numbers_out_of_range_and_too_many_paths_are_errors() {
    let mut call = Paths::new(plan_of("gcc", "earliest", 1_000), [(2_000, 10), (2_000, 10)]);
    let now = call.now;
    for n in [2, 7, 8, 255] {
        assert_eq!(call.a.remove_path(PathId::new(n), Handover::BreakBeforeMake), Err(PathError::Unknown));
        assert_eq!(call.a.path(PathId::new(n)).map(|p| p.usage()), None);
    }
    for n in 2..8 {
        assert_eq!(call.a.add_path(controller(now).0.into(), now), Ok(PathId::new(n)));
    }
    assert_eq!(call.a.add_path(controller(now).0.into(), now), Err(PathError::TooMany));
    for n in 1..8 {
        assert_eq!(call.a.remove_path(PathId::new(n), Handover::BreakBeforeMake), Ok(()));
    }
    assert_eq!(call.a.remove_path(A, Handover::BreakBeforeMake), Err(PathError::LastPath));
    let mut plan = plan_of("gcc", "earliest", 1_000);
    plan.sending.truncate(1);
    let (mut single, _) = plan.into_ends(now).expect("one source");
    assert_eq!(single.add_path(controller(now).0.into(), now), Err(PathError::SinglePath));
}

#[test]
fn an_address_counts_as_the_paths_once_its_challenge_is_answered() {
    let mut call = Paths::new(plan_of("gcc", "earliest", 1_000), [(2_000, 10), (2_000, 10)]);
    call.run_until(Timestamp::from_secs(2));
    let (now, mut challenge, mut other) = (call.now, Vec::new(), Vec::new());
    assert!(
        !call.a.path_mut(PathId::new(2)).is_some_and(|mut p| p.challenge_address(now, &mut challenge))
            && challenge.is_empty()
    );
    assert!(call.a.path_mut(B).is_some_and(|mut p| p.challenge_address(now, &mut other)));
    assert!(call.a.path_mut(B).is_some_and(|mut p| p.challenge_address(now, &mut challenge)));
    assert!(challenge != other && challenge.len() < 50);
    fn datagram(bytes: &[u8]) -> Datagram<'_> {
        Datagram { path: B, ..Datagram::new(bytes, Ecn::NotEct) }
    }
    // The answer to the first one, which the second has replaced, and one from nowhere.
    for bytes in [&other, &challenge] {
        call.b.handle_datagram(now, &datagram(bytes));
        let mut answer = Vec::new();
        while let Some(t) = call.b.poll_transmit(now, &mut answer) {
            if t.path == B && !t.is_rtp() && answer.windows(4).any(|w| w == b"WPCK") {
                break;
            }
            answer.clear();
        }
        let before = call.a.stats().counters().checks_refused;
        call.a.handle_datagram(now, &datagram(&answer));
        let is_current = bytes == &challenge;
        assert_eq!(call.a.path_mut(B).is_some_and(|mut p| p.take_address_answer()), is_current);
        assert_eq!(call.a.stats().counters().checks_refused - before, u64::from(!is_current));
        assert!(!call.a.path_mut(B).is_some_and(|mut p| p.take_address_answer()), "once");
    }
    assert_eq!(call.a.path(B).map(|p| p.usage()), Some(PathUse::Open));
}
