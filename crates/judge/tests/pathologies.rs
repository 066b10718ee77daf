//! No controller for general use fails in an ordinary call: every limit of every case of `weir judge pathologies`.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_judge::pathologies::{Case, FOLDER, cases, controllers, judge};
use weir_lab::run::RunOptions;
use weir_lab::scenario::ScenarioFile;

/// Judges these cases on two threads, under the controllers that are given or all; every limit is kept.
fn hold(chosen: &[Case], given: Option<&[String]>, least: usize) {
    let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let report = judge(chosen, given, 2, &options).expect("judged");
    assert_eq!((report.undone, report.failed.len()), (0, 0), "{:#?}", report.failed);
    let broken = report.broken().map(|(case, l, v)| {
        let bounds = v.own.unwrap_or(l.bounds).text(l.against, &l.unit);
        let number = v.text(l.against, &l.unit);
        format!("{}, {}, {}, {}: {number}, limit {bounds}", v.controller, case.case, l.variant, l.quantity)
    });
    let broken: Vec<String> = broken.collect();
    assert!(broken.is_empty(), "{broken:#?}");
    let [limits, kept, _] = report.tally(None);
    assert!(kept == limits && limits >= least, "{kept} of {limits}");
}

/// Whether the case has a real encoder.
fn encodes(case: &Case) -> bool {
    matches!(case.name, "first-picture" | "slow-link-key-frames")
}

#[test]
fn no_controller_fails_in_an_ordinary_call() {
    let all = controllers(&Registry::builtin());
    assert!(all.len() >= 8, "{all:?}");
    let models: Vec<Case> = cases().into_iter().filter(|c| !encodes(c)).collect();
    assert_eq!(models.len() + 2, cases().len());
    hold(&models, None, 1_000);
}

/// Under the controllers that the scenarios name: encoders take most of the judge's time.
#[test]
fn key_frames_of_encoders_leave_and_do_not_take_the_link() {
    let registry = Registry::builtin();
    for case in cases().into_iter().filter(encodes) {
        let file = ScenarioFile::builtin(&format!("{FOLDER}/{}", case.name), &registry).expect("it ships");
        hold(std::slice::from_ref(&case), Some(file.controllers()), 8);
    }
}
