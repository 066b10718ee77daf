//! The worth of each cue and mechanism of figure 8.1 of V. Singh's dissertation: one call with all of them, with all but one,
//! and with none, over generated and recorded rides.
//!
//! The call is the shipped scenario `rtp-cc-thesis/synthesis`, whose variants leave one out; a ride replaces the capacity of its
//! LTE and Wi-Fi links. Runs with the same ride and seed are compared in pairs: the gain of a cue is what the call with all has more than
//! that without it, relative to that without it.

mod reading;
mod rides;
mod worth;

pub use reading::{Measure, Measures};
pub use rides::{Ride, RideKind};
pub use worth::{CueWorth, Table, Variant};

use std::sync::atomic::Ordering;
use weir_lab::run::{RunError, RunOptions, Task, run, run_each};
use weir_lab::scenario::{InputError, Scenario, ScenarioFile};

/// The scenario.
pub const SCENARIO: &str = "rtp-cc-thesis/synthesis";
/// Names of its variants with all cues, and without any.
pub const ALL: &str = "all";
/// See [`ALL`].
pub const NONE: &str = "none";
/// Gain, as a share, from which a cue earns its place on a ride, and most that it may cost: 1 % (guess).
pub const MATTERS: f64 = 0.01;

/// Runs each variant over each ride with seeds 1 to `seeds`, `threads` runs at a time. Errors: the scenario lacks something
/// that is replaced.
pub fn judge(rides: &[Ride], seeds: u64, threads: usize, options: &RunOptions<'_>) -> Result<Table, InputError> {
    let file = ScenarioFile::builtin(SCENARIO, options.registry)?;
    let variants = file.scenarios(None, options.registry)?;
    let mut scenarios = Vec::with_capacity(variants.len() * rides.len());
    for variant in &variants {
        for ride in rides {
            scenarios.push(driven(variant, ride)?);
        }
    }
    let tasks = scenarios.iter().enumerate().flat_map(|(place, scenario)| {
        (0..seeds as usize).map(move |n| Task {
            scenario,
            seed: n as u64 + 1,
            series: false,
            id: place * seeds as usize + n,
        })
    });
    let total = scenarios.len() as u64 * seeds;
    let mut read: Vec<Option<Measures>> = vec![None; scenarios.len() * seeds as usize];
    let mut failed = Vec::new();
    let make = |task: &Task<'_>, options: &RunOptions<'_>| run(task.scenario, task.seed, options);
    run_each(tasks, total, threads, options, &make, &mut |task, result| match result {
        Ok(result) => read[task.id] = Measures::of(&result),
        Err(RunError::Stopped { .. }) => {}
        Err(e) => failed.push(format!("{}: {e}", task.scenario.label())),
    });
    let undone = if options.stop.load(Ordering::Relaxed) { read.iter().filter(|m| m.is_none()).count() } else { 0 };
    let names: Vec<&str> = variants.iter().filter_map(|v| v.variant.as_deref()).collect();
    Ok(Table::of(&names, rides, seeds as usize, &read, failed, undone))
}

/// A variant over a ride.
fn driven(variant: &Scenario, ride: &Ride) -> Result<Scenario, InputError> {
    let mut scenario = variant.clone();
    for (name, capacity) in [("lte", &ride.lte), ("wifi", &ride.wifi)] {
        let missing = || InputError::whole(SCENARIO, format!("it has no link `{name}`")).field("links");
        let link = scenario.link(name).ok_or_else(missing)?;
        scenario.links[link].config.capacity = capacity.clone();
        scenario.links[link].trace = None;
    }
    scenario.name = format!("{SCENARIO} over {}", ride.name);
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use weir_cc::Registry;

    #[test]
    fn a_call_on_the_move_is_worse_off_without_its_second_path() {
        let (registry, stop) = (Registry::builtin(), AtomicBool::new(false));
        let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
        let rides = Ride::all(1, 1, 1).expect("rides");
        let table = judge(&rides, 1, 2, &options).expect("judged");
        assert!(table.failed.is_empty() && table.undone == 0, "{table:#?}");
        assert_eq!((table.rides.len(), table.variants.len(), table.cues.len()), (2, 13, 11));
        let quality = |name: &str| {
            let v = table.variants.iter().find(|v| v.name == name).expect(name);
            v.over_rides(Measure::Psnr).expect("measured").mean
        };
        assert!((20.0..50.0).contains(&quality(ALL)), "{}", quality(ALL));
        assert!(quality(ALL) > quality("one-path"), "{table:#?}");
        let path = table.cues.iter().find(|c| c.without == "one-path").expect("a row");
        assert!(path.earns > 0 && path.best > MATTERS, "{path:#?}");
    }
}
