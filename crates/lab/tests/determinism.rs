//! Same scenario, same seed, same bytes of result: every shipped scenario twice, with one thread and with two. Of files with many
//! variants, some of them.

use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::run::parts::SAMPLING_INTERVAL;
use weir_lab::run::{Job, RunOptions, run, run_many};
use weir_lab::scenario::{Flow, Scenario, ScenarioFile, Source, builtin_scenarios};
use weir_path::Capacity;
use weir_units::TimeDelta;

#[test]
fn every_shipped_scenario_gives_the_same_at_one_thread_and_at_two() {
    let registry = Registry::builtin();
    let mut jobs = Vec::new();
    for (name, _) in builtin_scenarios() {
        let file = ScenarioFile::builtin(name, &registry).expect("shipped scenarios are sound");
        for mut scenario in some(file.scenarios(None, &registry).expect("shipped scenarios are sound")) {
            shorten(&mut scenario);
            jobs.push(Job { seed: scenario.seed, scenario });
        }
    }
    assert!(jobs.len() > 400, "{} runs", jobs.len());
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
    let digests = |threads| -> Vec<String> {
        let results = run_many(&jobs, threads, &options, &|_| {});
        results.into_iter().map(|r| r.expect("shipped scenarios run").digest()).collect()
    };
    let (once, twice) = (digests(1), digests(2));
    for ((job, a), b) in jobs.iter().zip(&once).zip(&twice) {
        assert_eq!(a, b, "{} differs from run to run", job.scenario.label());
    }
    let mut distinct = once.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(distinct.len(), once.len(), "no two scenarios give the same result");
}

/// At most nine variants, at steps without a factor in common with their number, so that every column of a table has some.
fn some(variants: Vec<Scenario>) -> Vec<Scenario> {
    const MOST: usize = 9;
    let count = variants.len();
    if count <= MOST {
        return variants;
    }
    let share = |a: usize, b: usize| (2..=a.min(b)).any(|k| a.is_multiple_of(k) && b.is_multiple_of(k));
    let step = (count * 3 / 5..).find(|&step| !share(step, count)).expect("count + 1 is one");
    let taken: Vec<usize> = (0..MOST).map(|k| k * step % count).collect();
    variants.into_iter().enumerate().filter(|(i, _)| taken.contains(i)).map(|(_, v)| v).collect()
}

/// Runs are cut after as many bits as the bottleneck carries in a minute or two on a link of two megabits, and those of real encoders
/// early: all of them whole take three minutes of two processors.
fn shorten(scenario: &mut Scenario) {
    const BITS: f64 = 200e6;
    const VARYING: TimeDelta = TimeDelta::from_secs(60);
    const PICTURES: TimeDelta = TimeDelta::from_secs(4);
    let codes = |f: &Flow| f.rtp().is_some_and(|r| matches!(r.source, Source::Encoder(_)));
    let most = match scenario.links[scenario.bottleneck].config.capacity {
        _ if scenario.flows.iter().any(codes) => PICTURES,
        Capacity::Constant(rate) => TimeDelta::from_secs_f64(BITS / rate.as_bps_f64()),
        _ => VARYING,
    };
    if scenario.duration > most {
        scenario.duration = most;
        scenario.flows.iter_mut().for_each(|f| f.stop = f.stop.min(most));
        scenario.windows.retain(|w| w.to <= most);
    }
}

#[test]
fn runs_that_look_at_every_flow_each_time_give_the_same() {
    let registry = Registry::builtin();
    let stop = AtomicBool::new(false);
    for name in ["rmcat-comparison/fairness", "rfc8867/5.8-pause-resume", "rtp-cc-thesis/three-calls", "dccp/alone"] {
        let file = ScenarioFile::builtin(name, &registry).expect("shipped");
        let mut scenario = file.scenarios(None, &registry).expect("shipped").remove(0);
        // A row of the series ends with each sample, and contains all flows.
        scenario.sample_interval = SAMPLING_INTERVAL;
        let result = |series| {
            let options = RunOptions { registry: &registry, series, stop: &stop, progress: &|_| {} };
            let mut result = run(&scenario, 1, &options).expect("shipped scenarios run");
            result.series = None;
            result.digest()
        };
        assert_eq!(result(true), result(false), "{name}");
    }
}

#[test]
fn another_seed_gives_another_result() {
    let registry = Registry::builtin();
    let file = ScenarioFile::builtin("rmcat-comparison/random-loss", &registry).expect("shipped");
    let scenario = file.scenarios(None, &registry).expect("shipped").remove(1);
    let stop = AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let jobs: Vec<Job> = (1..=2).map(|seed| Job { scenario: scenario.clone(), seed }).collect();
    let results: Vec<String> =
        run_many(&jobs, 1, &options, &|_| {}).into_iter().map(|r| r.expect("runs").digest()).collect();
    assert_ne!(results[0], results[1]);
}
