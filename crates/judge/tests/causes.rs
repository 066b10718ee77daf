//! The rules for recorded calls find the causes that are put into calls, on each level of evidence.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_judge::causes::{CauseScore, Kind, LEVELS, MadeCall, Summary, Verdict, confusion, judge};
use weir_lab::run::RunOptions;
use weir_timeline::why::Level;

fn scores(calls: &[MadeCall]) -> Vec<CauseScore> {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    judge(calls, 2, &options).expect("the controllers exist")
}

/// Each cause with each magnitude under `gcc`: `calls` of each.
fn under_gcc(seed: u64, calls: u64) -> Vec<MadeCall> {
    MadeCall::generate(seed, calls, &["gcc".to_owned()])
}

#[test]
fn first_answers_are_right_on_calls_that_no_rule_was_chosen_on() {
    let mut calls = under_gcc(1, 2);
    calls.retain(|c| !c.chosen_on);
    assert_eq!(calls.len(), Kind::ALL.len() * 3);
    let found = scores(&calls);
    assert_eq!(found.len(), calls.len() * LEVELS.len());
    for (level, right) in [(Level::Packets, 0.85), (Level::Log, 0.85), (Level::Statistics, 0.8)] {
        let of = Summary::of(&found, level);
        let table = confusion(&found, level);
        assert!((35..=60).contains(&of.judged), "{level:?}: {of:?}");
        assert!((right..=1.0).contains(&of.right), "{level:?}: {of:?} {table:#?}");
        // Over all controllers it is 4 to 5 %; of these 63 calls under one, packets get 5 wrong.
        assert!((0.0..=0.1).contains(&of.wrong), "{level:?}: {of:?} {table:#?}");
        assert_eq!((of.healthy, of.alarmed), (3, 0), "{level:?}: {table:#?}");
    }
}

#[test]
fn causes_that_the_ends_see_whole_are_always_named() {
    let sure = [Kind::Outage, Kind::DelayStep, Kind::SenderLimited, Kind::RouteChange, Kind::Healthy];
    let mut calls = under_gcc(7, 1);
    calls.retain(|c| sure.contains(&c.kind));
    for score in scores(&calls).iter().filter(|s| s.level != Level::Statistics) {
        let fine = [Verdict::Right, Verdict::NoEffect, Verdict::Quiet].contains(&score.verdict);
        assert!(fine && (0.0..=1.0).contains(&score.confidence), "{score:?}");
    }
}

#[test]
fn the_same_calls_give_the_same_answers_on_any_number_of_threads() {
    let mut calls = under_gcc(3, 1);
    calls.retain(|c| [Kind::Policer, Kind::Jitter].contains(&c.kind));
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let on = |threads| judge(&calls, threads, &options).expect("the controller exists");
    let one = on(1);
    assert_eq!((one.len(), &one), (18, &on(3)));
    assert!(one.iter().all(|s| s.verdict != Verdict::Quiet), "{one:#?}");
}
