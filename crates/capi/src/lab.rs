//! Simulations: a scenario's text in, the result of `weir run --json` out.

use crate::failure::{Failure, Status};
use std::path::Path;
use weir_lab::run::RunOptions;
use weir_lab::scenario::{InputError, ScenarioFile};

fn refused(e: &InputError) -> Failure {
    let help = e.help_text().map_or_else(String::new, |h| format!("; {h}"));
    Failure::new(Status::BadValue, format!("{e}{help}"))
}

/// One run of a scenario: the name of one that is built in, a path, or TOML. Returns JSON.
pub(crate) fn run(scenario: &str, controller: Option<&str>, seed: Option<u64>) -> Result<String, Failure> {
    let registry = crate::policies::registry();
    // Every table of TOML has a key with `=` or a header.
    let file = if scenario.contains(['=', '[']) {
        ScenarioFile::parse("scenario", scenario, Path::new("."), &registry)
    } else {
        ScenarioFile::open(scenario, &registry)
    };
    let file = file.map_err(|e| refused(&e))?;
    let scenario = file.one(None, controller, &registry).map_err(|e| refused(&e))?;
    let stop = std::sync::atomic::AtomicBool::new(false);
    let options = RunOptions { registry: &registry, series: false, stop: &stop, progress: &|_| {} };
    let result = weir_lab::run::run(&scenario, seed.unwrap_or(scenario.seed), &options);
    let result = result.map_err(|e| Failure::new(Status::RunFailed, e.to_string()))?;
    serde_json::to_string(&result).map_err(|e| Failure::new(Status::Internal, e.to_string()))
}
