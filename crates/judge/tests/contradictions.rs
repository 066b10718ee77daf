//! Numbers of one run do not contradict each other: over all controllers, the rows of the scoreboard, the scenarios that ship,
//! and generated links.
//!
//! `weir judge contradictions --links 200` scans more links.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_judge::contradictions::{Places, controllers, scan};
use weir_lab::run::RunOptions;

/// Generated links: each kind four times.
const LINKS: u64 = 24;

/// Runs all of them on two threads; each has many comparisons, and none contradicts.
fn holds(places: &Places, registry: &Registry) {
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry, series: true, stop: &stop, progress: &|_| {} };
    let scan = scan(places, 2, &options);
    assert_eq!((scan.failed.len(), scan.undone, scan.runs), (0, 0, places.len()), "{:#?}", scan.failed);
    let each = scan.comparisons as f64 / scan.runs as f64;
    assert!((100.0..100_000.0).contains(&each), "{each} comparisons a run");
    let first = scan.contradicting.iter().take(20).collect::<Vec<_>>();
    assert!(first.is_empty(), "{} of {} runs: {first:#?}", scan.contradicting.len(), scan.runs);
}

#[test]
fn numbers_of_generated_links_agree() {
    let registry = Registry::builtin();
    let all = controllers(&registry);
    assert!(all.len() >= 20, "{all:?}");
    let mut places = Places::default();
    places.add_links(&all, (7, LINKS), &registry).expect("they exist");
    holds(&places, &registry);
}

#[test]
fn numbers_of_the_scoreboards_rows_agree() {
    let registry = Registry::builtin();
    let mut places = Places::default();
    places.add_rows(&controllers(&registry), &registry).expect("they exist");
    assert!(places.len() >= 400, "{}", places.len());
    holds(&places, &registry);
}

#[test]
fn numbers_of_shipped_scenarios_agree() {
    let registry = Registry::builtin();
    let mut places = Places::default();
    places.add_shipped(&registry).expect("they ship");
    // About a hundred of all, in step with none of the tables of variants.
    let step = (places.len() / 100) | 1;
    let sample = places.every(step);
    assert!(sample.len() >= 90, "{}", sample.len());
    holds(&sample, &registry);
}

#[test]
fn numbers_of_calls_with_streams_agree() {
    let registry = Registry::builtin();
    let some = ["gcc", "nada", "scream2", "sluice", "tfrc"].map(str::to_owned);
    let mut places = Places::default();
    for name in ["calls/three-calls", "examples/applications", "pathologies/first-picture"] {
        places.add_scenario(name, &some, &registry).expect("it ships");
    }
    holds(&places, &registry);
}
