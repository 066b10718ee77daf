//! Ordinary calls in which controllers have failed: mutes, clocks that differ, longer paths, copies, reordering, key frames on
//! slow links, layers at boundaries.
//!
//! The scenarios are those of `scenarios/pathologies/`; [`cases`] has the limits of each. A controller of the first shelf that adapts is
//! judged by being registered, by the limits that hold for all. Limits of its own have their reason beside them.

mod limit;
mod list;
mod page;
mod quantity;
mod report;

pub use limit::{Against, Bounds, Case, Exception, Limit};
pub use list::cases;
pub use page::{Page, write};
pub use quantity::Quantity;
pub use report::{CaseReport, LimitReport, Report, Verdict};

use std::sync::Mutex;
use weir_cc::{Registry, Shelf, Spec};
use weir_lab::results::RunResult;
use weir_lab::run::{RunError, RunOptions, Task, run, run_each};
use weir_lab::scenario::{InputError, Scenario, ScenarioFile};

/// Folder of the scenarios.
pub const FOLDER: &str = "pathologies";
/// The variant with which the others of a scenario are compared.
pub const UNDISTURBED: &str = "none";

/// `gcc` with the parameters of Chrome, whose headers are not those of the cases' links: it is judged where it is named.
const SAME_AS_GCC: &str = "gcc-chrome";

/// The controllers that are judged where none is named: those for general use that adapt.
pub fn controllers(registry: &Registry) -> Vec<String> {
    let is_judged = |s: &&Spec| s.shelf == Shelf::Algorithms && s.adapts && s.name != SAME_AS_GCC;
    registry.specs().filter(is_judged).map(|s| s.name.clone()).collect()
}

/// Numbers of a run, one for each limit of its case.
type Readings = Vec<Option<f64>>;

/// One scenario with its place in the report.
struct Place {
    case: usize,
    controller: String,
    scenario: Scenario,
}

/// Runs each variant of the cases' scenarios under each of the controllers, `threads` runs at a time, each with the seed of its
/// scenario. Where no controllers are given they are those of [`controllers`], and those that a case adds.
///
/// # Errors
/// A controller does not exist, or cannot be configured as a scenario states.
pub fn judge(
    cases: &[Case],
    given: Option<&[String]>,
    threads: usize,
    options: &RunOptions<'_>,
) -> Result<Report, InputError> {
    let all = given.map_or_else(|| controllers(options.registry), <[String]>::to_vec);
    let mut places = Vec::new();
    let mut titles = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        let file = ScenarioFile::builtin(&format!("{FOLDER}/{}", case.name), options.registry)?;
        titles.push(file.title().to_owned());
        let added = case.also.iter().filter(|_| given.is_none()).map(|c| (*c).to_owned());
        for controller in all.iter().cloned().chain(added) {
            for scenario in file.scenarios(Some(std::slice::from_ref(&controller)), options.registry)? {
                places.push(Place { case: at, controller: controller.clone(), scenario });
            }
        }
    }
    let read: Vec<Mutex<Option<Readings>>> = places.iter().map(|_| Mutex::new(None)).collect();
    let tasks = places.iter().enumerate();
    let tasks = tasks.map(|(id, p)| Task { scenario: &p.scenario, seed: p.scenario.seed, series: false, id });
    let make = |task: &Task<'_>, options: &RunOptions<'_>| -> Result<RunResult, RunError> {
        let result = run(task.scenario, task.seed, options)?;
        let limits = &cases[places[task.id].case].limits;
        if let Ok(mut slot) = read[task.id].lock() {
            *slot = Some(limits.iter().map(|l| l.quantity.read(&result)).collect());
        }
        Ok(result)
    };
    let mut failed = Vec::new();
    run_each(tasks, places.len() as u64, threads, options, &make, &mut |task, result| match result {
        Ok(_) | Err(RunError::Stopped { .. }) => {}
        Err(e) => failed.push(format!("{}: {e}", task.scenario.label())),
    });
    let read: Vec<Option<Readings>> = read.into_iter().map(|r| r.into_inner().unwrap_or_default()).collect();
    Ok(Report::of(cases, &titles, &all, &places, &read, failed))
}

#[cfg(test)]
mod tests;
