//! Many scenarios, variants, controllers and seeds at once: what to run, running it, and what came of it.
//!
//! Runs are made set by set. A set is one run of each scenario, variant and controller; results are taken in that
//! order and a set counts once it is complete, so that a stop leaves as many runs of one controller as of another.
//! Runs start as threads become free, at most a few ahead of the oldest one in progress; above 10,000 runs only
//! statistics are kept.

mod group;
mod journal;
mod outcome;
mod plan;
mod sets;

pub use journal::Journal;
pub use outcome::{Missing, Outcome, OutcomeJson, ScenarioText, Stopped};
pub use plan::{KEPT_FLOWS, KEPT_RUNS, MAX_RUNS, Plan, Repeat};

#[cfg(test)]
mod tests {
    use super::outcome::Finished;
    use super::*;
    use crate::results::Aggregate;
    use crate::run::RunOptions;
    use crate::scenario::{Scenario, ScenarioFile};
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use weir_cc::Registry;

    const TEXT: &str = r#"
        title = "Small"
        duration = "2 s"
        compare = ["fixed", "nada"]
        links.bottleneck = { rate = "1 Mbps", delay = "20 ms", loss = 0.02 }
        rtp.video.controller = "$controller"
        [[variants]]
        name = "slow"
        links.bottleneck.rate = "500 kbps"
        [[variants]]
        name = "fast"
    "#;

    fn plan(text: &str, runs: u32) -> Result<Plan, crate::scenario::InputError> {
        let registry = Registry::builtin();
        let file = ScenarioFile::parse("small", text, ".".as_ref(), &registry).expect("reads");
        Plan::new(&[file], None, Repeat { runs, own: false, seed: Some(7) }, &registry)
    }

    /// The outcome where the stop flag goes up as so many runs have begun.
    fn outcome(plan: &Plan, threads: usize, stop_at: u64) -> Outcome {
        let (registry, stop, begun) = (Registry::builtin(), AtomicBool::new(stop_at == 0), AtomicU64::new(0));
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        plan.run(threads, &options, None, &|_: &Scenario, _| {
            if begun.fetch_add(1, Ordering::Relaxed) + 1 == stop_at {
                stop.store(true, Ordering::Relaxed);
            }
        })
    }

    #[test]
    fn groups_by_variant_and_controller_whatever_the_threads() {
        let plan = plan(TEXT, 3).expect("plans");
        assert_eq!((plan.runs(), plan.sets()), (12, 3));
        let (one, two) = (outcome(&plan, 1, 99), outcome(&plan, 2, 99));
        let json = |o: &Outcome| serde_json::to_string(&o.json()).expect("JSON");
        assert_eq!(json(&one), json(&two));
        assert_eq!((one.stopped.as_ref(), one.count()), (None, 12));
        let seeds: Vec<u64> = one.runs().map(|r| r.seed).collect();
        assert_eq!(seeds, [7, 8, 9].repeat(4));
        let series: Vec<bool> = one.runs().map(|r| r.series.is_some()).collect();
        assert_eq!(series, [true, false, false].repeat(4));
        let labels: Vec<String> = one.aggregates().map(|(s, _)| s.label()).collect();
        assert_eq!(labels, ["small [slow] fixed", "small [slow] nada", "small [fast] fixed", "small [fast] nada"]);
    }

    #[test]
    fn names_given_twice_run_once_and_huge_series_are_not_kept() {
        let registry = Registry::builtin();
        let read = |text: &str| ScenarioFile::parse("small", text, ".".as_ref(), &registry).expect("reads");
        let twice = ["fixed".to_owned(), "fixed".to_owned()];
        let repeat = Repeat { runs: 2, own: true, seed: None };
        let plan = Plan::new(&[read(TEXT), read(TEXT)], Some(&twice), repeat, &registry).expect("plans");
        assert_eq!(plan.runs(), 4);
        let many = TEXT.replace(
            "rtp.video.controller",
            "sample_interval = \"1 ms\"\nrtp.video.count = 1001\nrtp.video.controller",
        );
        let plan = Plan::new(&[read(&many)], Some(&twice), Repeat { runs: 1, own: true, seed: None }, &registry)
            .expect("plans");
        assert!(plan.groups.iter().all(|g| !g.keeps_series()));
    }

    #[test]
    fn a_scenario_may_have_runs_of_its_own() {
        let of = |name: &'static str| plan(TEXT, 3).expect("plans").with_runs(move |n| (n == name).then_some(5));
        assert_eq!((of("small").runs(), of("other").runs()), (20, 12));
        let registry = Registry::builtin();
        let file = ScenarioFile::parse("small", TEXT, ".".as_ref(), &registry).expect("reads");
        let file = file.with_pairs(|v, c| v == Some("slow") || c == Some("nada"));
        let plan = Plan::new(&[file], None, Repeat { runs: 1, own: true, seed: None }, &registry).expect("plans");
        assert_eq!(plan.runs(), 3);
    }

    #[test]
    fn a_stop_before_the_first_run_leaves_nothing() {
        let o = outcome(&plan(TEXT, 3).expect("plans"), 1, 0);
        let stopped = o.stopped.as_ref().expect("stopped");
        assert_eq!((stopped.finished, stopped.planned, stopped.sets, stopped.missing.len()), (0, 12, 0, 4));
        assert!(o.failures.is_empty() && o.runs().count() == 0 && o.groups().count() == 0);
        assert!(stopped.to_string().contains("nothing to compare"), "{stopped}");
    }

    #[test]
    fn a_stop_leaves_as_many_runs_of_each_controller_and_names_what_is_missing() {
        let plan = plan(TEXT, 3).expect("plans");
        // The seventh run is the third of the second set.
        let o = outcome(&plan, 1, 7);
        let stopped = o.stopped.clone().expect("stopped");
        assert_eq!((stopped.finished, stopped.planned, stopped.used), (6, 12, 4));
        assert_eq!((stopped.sets, stopped.planned_sets), (1, 3));
        let last = stopped.missing.last().expect("missing");
        assert_eq!((&last.controller[..], &last.condition[..], last.finished, last.planned), ("nada", "fast", 1, 3));
        let text = stopped.to_string();
        for part in ["stopped after 6 of 12 runs", "run 1 to 1 of 3", "2 that finished", "small [fast] nada 1 of 3"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let json = serde_json::to_value(o.json()).expect("JSON");
        assert_eq!((json["stopped"]["planned"].as_u64(), json["stopped"]["sets"].as_u64()), (Some(12), Some(1)));
        for o in [o, outcome(&plan, 2, 7), outcome(&plan, 3, 7)] {
            let stopped = o.stopped.as_ref().expect("stopped");
            assert!(stopped.finished < 12 && stopped.used == 4 * stopped.sets, "{stopped:?}");
            let seeds: Vec<u64> = (7..7 + stopped.sets).collect();
            assert!(o.aggregates().all(|(_, a)| a.seeds == seeds), "{stopped:?}");
            assert_eq!(o.runs().count() as u64, stopped.used);
        }
    }

    #[test]
    fn a_stop_of_runs_made_elsewhere_leaves_whole_sets_too() {
        let all = outcome(&plan(TEXT, 3).expect("plans"), 2, 99);
        let cut =
            |(i, g): (usize, Finished)| (g.scenario, g.runs.into_iter().take(if i < 3 { 2 } else { 1 }).collect());
        let groups: Vec<_> = all.groups.into_iter().enumerate().map(cut).collect();
        let o = Outcome::stopped(groups, 3);
        let s = o.stopped.as_ref().expect("stopped");
        assert_eq!((s.finished, s.planned, s.used, s.sets, s.planned_sets), (7, 12, 4, 1, 3));
        let missing: Vec<u64> = s.missing.iter().map(|m| m.finished).collect();
        assert_eq!((missing, o.runs().count()), (vec![2, 2, 2, 1], 4));
        assert!(o.aggregates().all(|(_, a)| a.seeds == [7]));
    }

    #[test]
    fn more_runs_than_are_kept_are_joined_as_they_finish() {
        // 1,000 runs of 200 flows are 200,000 results of flows.
        let flows = |count: u32| {
            TEXT.replace("rtp.video.controller", &format!("rtp.video.count = {count}\nrtp.video.controller"))
        };
        assert!(plan(&flows(200), 250).expect("plans").keeps_runs());
        let over = plan(&flows(200), 251).expect("plans");
        assert!(!over.keeps_runs());
        assert!(!plan(TEXT, 2_501).expect("plans").keeps_runs());

        let plan = plan(TEXT, 5).expect("plans");
        let kept = outcome(&plan, 2, 99);
        let joined: Vec<Aggregate> = {
            let mut joiners = vec![crate::results::Joiner::default(); 4];
            kept.runs().enumerate().for_each(|(i, run)| joiners[i / 5].add(run));
            joiners.iter().filter_map(|j| j.aggregate()).collect()
        };
        for ((_, all), joined) in kept.aggregates().zip(joined) {
            assert_eq!((&all.seeds, &all.controller), (&joined.seeds, &joined.controller));
            for (flow, other) in all.flows.iter().zip(&joined.flows) {
                assert_eq!(flow.metrics.keys().collect::<Vec<_>>(), other.metrics.keys().collect::<Vec<_>>());
                for (name, stat) in &flow.metrics {
                    let same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
                    let (other, sigma) = (&other.metrics[name], stat.sigma.expect("five runs"));
                    assert!(same(stat.mean, other.mean) && same(sigma, other.sigma.expect("five runs")), "{name}");
                    assert_eq!((stat.min, stat.max, stat.runs), (other.min, other.max, other.runs), "{name}");
                }
            }
        }
    }

    #[test]
    fn too_many_runs_are_refused_with_the_number_that_is_not() {
        let e = plan(TEXT, 1_000_000_000).expect_err("refused");
        for part in ["--runs", "4000000000 runs", "1000000"] {
            assert!(e.to_string().contains(part), "{part} in {e}");
        }
        assert!(e.help_text().is_some_and(|h| h.contains("--runs 250000")), "{e:?}");
        assert_eq!(plan(TEXT, 250_000).expect("plans").runs(), MAX_RUNS);
    }
}
