//! Fits of links that are known, and predictions beside what controllers really do on them.
//!
//! A controller's run over each generated link is recorded at both ends, as a call would be, and the link fitted from the recording
//! alone. The fit stands beside the link; other controllers' runs over the fitted link stand beside their runs over the true one, and beside
//! those over a link whose capacity is the rate that arrived, and over the links of iBox's two models.

mod bayes;
mod ibox;
mod links;
mod score;

pub use links::{Kind, KnownLink};
pub use score::{FitScore, Predicted, Summary};

use score::{compare, predict};
use std::sync::Mutex;
use weir_fit::{FitError, fit, fit_by_seconds};
use weir_lab::results::RunResult;
use weir_lab::run::{RunError, RunOptions, Task, run, run_each};
use weir_lab::scenario::{InputError, Scenario};
use weir_report::recorded;
use weir_timeline::Call;

/// Length of a run, in s.
pub const LENGTH: f64 = 60.0;

/// Controllers and draws of a trial.
#[derive(Clone, PartialEq, Debug)]
pub struct Trial {
    /// The controller whose run is recorded.
    pub recorded: String,
    /// Controllers that are predicted.
    pub predicted: Vec<String>,
    /// Links drawn within the bounds of each fit.
    pub draws: u64,
    /// Whether the fit has statistics once a second in the place of packets.
    pub by_seconds: bool,
}

/// Why a link has no score.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrialError {
    /// A controller does not exist.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A run failed, or was stopped.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The recording has no fit.
    #[error(transparent)]
    Fit(#[from] FitError),
    /// The fitted link cannot be run.
    #[error(transparent)]
    WhatIf(#[from] weir_fit::WhatIfError),
}

/// Records, fits and predicts on one link; also returns the recorded run.
///
/// # Errors
/// A controller does not exist, a run is stopped, or the recording is too short.
pub fn on_link(link: &KnownLink, trial: &Trial, options: &RunOptions<'_>) -> Result<(RunResult, FitScore), TrialError> {
    let scenario = link.scenario(&trial.recorded, options.registry)?;
    let quiet = RunOptions { series: true, progress: &|_| {}, ..*options };
    let (truth, calls) = recorded::run(&scenario, link.number, &quiet)?;
    let call = calls.into_iter().find(|c| c.name == links::FLOW).map_or_else(|| Call::new(Vec::new()), |c| c.call);
    let found = if trial.by_seconds { fit_by_seconds(&call)? } else { fit(&call)? };
    let mut score = compare(link, &truth, &found);
    score.predicted = predict(link, &found, &call, trial, &quiet)?;
    Ok((truth, score))
}

/// Scores on all links, `threads` at a time, in the links' order, and what kept single links from having one. A stopped trial has what
/// was done.
///
/// # Errors
/// A controller does not exist.
pub fn judge(
    links: &[KnownLink],
    trial: &Trial,
    threads: usize,
    options: &RunOptions<'_>,
) -> Result<(Vec<FitScore>, Vec<String>), InputError> {
    let scenarios = links.iter().map(|l| l.scenario(&trial.recorded, options.registry));
    let scenarios: Vec<Scenario> = scenarios.collect::<Result<_, _>>()?;
    let slots: Vec<Mutex<Option<Result<FitScore, String>>>> = links.iter().map(|_| Mutex::new(None)).collect();
    let tasks =
        scenarios.iter().enumerate().map(|(id, s)| Task { scenario: s, seed: links[id].number, series: true, id });
    let make = |task: &Task<'_>, options: &RunOptions<'_>| -> Result<RunResult, RunError> {
        let (result, score) = match on_link(&links[task.id], trial, options) {
            Ok((result, score)) => (Ok(result), Ok(score)),
            Err(TrialError::Run(e @ RunError::Stopped { .. })) => return Err(e),
            Err(e) => (run(task.scenario, task.seed, options), Err(format!("link {}: {e}", links[task.id].number))),
        };
        if let Ok(mut slot) = slots[task.id].lock() {
            *slot = Some(score);
        }
        // The runs of a link report nothing, since the one that is recorded is a small part of them.
        (options.progress)(1.0);
        result
    };
    run_each(tasks, links.len() as u64, threads, options, &make, &mut |_, _| {});
    let (mut scores, mut failed) = (Vec::new(), Vec::new());
    for slot in slots {
        match slot.into_inner().ok().flatten() {
            Some(Ok(score)) => scores.push(score),
            Some(Err(e)) => failed.push(e),
            None => {}
        }
    }
    Ok((scores, failed))
}
