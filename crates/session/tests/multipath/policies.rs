//! Policies of the application for paths, under every scheduler.

use super::two_paths::{Paths, media_of, plan_of};
use weir_session::PathError;
use weir_session::multipath::{PathClass, PathPolicy, SCHEDULERS};
use weir_units::{DataRate, DataSize, PathId, Timestamp};

const A: PathId = PathId::FIRST;
const B: PathId = PathId::new(1);

fn seconds(s: i64) -> Timestamp {
    Timestamp::from_secs(s)
}

fn call(controller: &str, scheduler: &str) -> Paths {
    Paths::new(plan_of(controller, scheduler, 2_000), [(1_500, 10), (1_500, 30)])
}

/// RTP bytes of media sent on a path in a span.
fn bytes(call: &Paths, path: PathId, from: i64, to: i64) -> u64 {
    let span = seconds(from)..seconds(to);
    let sent = call.sent[0].iter().filter(|(at, _, t)| t.path == path && media_of(t) && span.contains(at));
    sent.map(|(.., t)| t.size.as_bytes()).sum()
}

#[test]
fn a_backup_carries_media_only_while_no_other_path_can() {
    for spec in SCHEDULERS {
        let mut call = call("gcc", spec.name);
        call.a.path_mut(A).expect("a path").set_policy(PathPolicy::of(PathClass::Backup), call.now).expect("a path");
        call.run_until(seconds(20));
        assert!(bytes(&call, A, 0, 20) == 0 && bytes(&call, B, 0, 20) > 500_000, "{}", spec.name);
        call.dead = Some(1);
        call.run_until(seconds(40));
        assert!(bytes(&call, A, 22, 40) > 300_000, "{}: {}", spec.name, bytes(&call, A, 22, 40));
        call.dead = None;
        call.run_until(seconds(60));
        assert_eq!(bytes(&call, A, 42, 60), 0, "{}", spec.name);
    }
}

#[test]
fn a_metered_path_helps_while_the_preferred_one_does_not_suffice() {
    let mut call = call("gcc", "earliest");
    call.a.path_mut(A).expect("a path").set_policy(PathPolicy::of(PathClass::Preferred), call.now).expect("a path");
    call.a.path_mut(B).expect("a path").set_policy(PathPolicy::of(PathClass::Metered), call.now).expect("a path");
    call.a.set_sufficient_rate(Some(DataRate::from_kbps(1_000)), call.now);
    call.run_until(seconds(60));
    // At the start both, then the preferred one alone; once its link has a third of the rate, both again.
    assert!(bytes(&call, B, 0, 5) > 10_000, "{}", bytes(&call, B, 0, 5));
    assert_eq!(bytes(&call, B, 40, 60), 0);
    assert!((1_000.0..1_500.0).contains(&call.received_kbps(40, 60)), "{}", call.received_kbps(40, 60));
    call.set_rate(0, 500);
    call.run_until(seconds(120));
    assert!(bytes(&call, B, 90, 120) > 2_000_000, "{}", bytes(&call, B, 90, 120));
    let kbps = call.received_kbps(90, 120);
    assert!((1_400.0..2_000.0).contains(&kbps), "{kbps}");
}

#[test]
fn a_budget_is_kept() {
    let mut call = call("fixed", "round-robin");
    let budget = Some(DataSize::from_bytes(1_000_000));
    call.a
        .path_mut(B)
        .expect("a path")
        .set_policy(PathPolicy { budget, ..PathPolicy::default() }, call.now)
        .expect("a path");
    call.run_until(seconds(5));
    let left = call.a.path(B).and_then(|p| p.policy()).and_then(|p| p.budget).expect("a budget").as_bytes();
    assert_eq!(left, 1_000_000 - call.a.path(B).and_then(|p| p.stats()).expect("a path").sent_bytes);
    call.run_until(seconds(60));
    let sent = call.a.path(B).and_then(|p| p.stats()).expect("a path").sent_bytes;
    assert!((1_000_000..1_001_500).contains(&sent), "{sent}");
    assert_eq!(call.a.path(B).and_then(|p| p.policy()).and_then(|p| p.budget), Some(DataSize::ZERO));
    // The media rate is that of the first path from then on.
    let target = call.a.target().expect("a sender").media_rate;
    assert_eq!(target, call.a.path(A).and_then(|p| p.stats()).expect("a path").target);
}

#[test]
fn a_share_reduces_what_a_path_carries() {
    for scheduler in ["earliest", "round-robin"] {
        let mut call = call("fixed", scheduler);
        call.run_until(seconds(10));
        let whole = bytes(&call, B, 0, 10) as f64;
        call.a
            .path_mut(B)
            .expect("a path")
            .set_policy(PathPolicy { share: 0.25, ..PathPolicy::default() }, call.now)
            .expect("a path");
        call.run_until(seconds(20));
        let [a, b] = [A, B].map(|p| bytes(&call, p, 11, 20) as f64 / 0.9);
        assert!((0.2..0.3).contains(&(b / whole)), "{scheduler}: {b} of {whole}");
        assert!((0.9..1.1).contains(&(a / whole)), "{scheduler}: {a} beside {whole}");
    }
}

#[test]
fn unknown_paths_are_errors() {
    let mut call = call("gcc", "earliest");
    let now = call.now;
    assert!(call.a.path_mut(PathId::new(2)).is_none());
    assert_eq!(call.a.path(PathId::new(2)).and_then(|p| p.policy()), None);
    assert_eq!(call.a.path(B).and_then(|p| p.policy()), Some(PathPolicy::default()));
    // The receiving end sends nothing.
    assert_eq!(call.b.path_mut(B).expect("a path").set_policy(PathPolicy::default(), now), Err(PathError::SinglePath));
}
