//! Other controllers over links within a fit's bounds.

use crate::Fit;
use crate::changes::Changes;
use crate::scenario::{AUDIO, FLOW};
use serde::Serialize;
use std::sync::Mutex;
use weir_lab::results::RunResult;
use weir_lab::run::{RunError, RunOptions, Task, run, run_each};
use weir_lab::scenario::{InputError, Scenario};
use weir_units::Timestamp;

/// A number over the drawn links.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "WhatIfEstimate"))]
pub struct Estimate {
    /// On the likeliest link: the median of its runs.
    pub likely: f64,
    /// Its 5th percentile over the draws.
    pub low: f64,
    /// Its 95th percentile.
    pub high: f64,
}

/// Predicted numbers of a controller.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "WhatIfPrediction"))]
pub struct Prediction {
    /// Its name.
    pub controller: String,
    /// Mean rate that arrived, without repair, in kbit/s.
    pub goodput_kbps: Estimate,
    /// Mean rate that arrived as a recording counts it, repair and audio included, in kbit/s.
    pub received_kbps: Estimate,
    /// 95th percentile of the one-way delay, in ms.
    pub delay_p95_ms: Estimate,
    /// Share of the frames that are late or lost, in percent.
    pub late_percent: Estimate,
    /// Time in which the picture stands still, in s.
    pub frozen_s: Estimate,
}

/// Numbers that controllers are compared in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "WhatIfJudged"))]
pub enum Judged {
    /// Frames late or lost: fewer is better.
    Late,
    /// Goodput: more is better.
    Goodput,
}

/// How two controllers stand to each other in one number.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "WhatIfOrder"))]
pub struct Order {
    /// The number.
    pub by: Judged,
    /// The better one.
    pub better: String,
    /// The other one.
    pub worse: String,
    /// Share of the drawn links on which it is better. Below [`DECIDED`] the order is not decided.
    pub share: f64,
}

/// Share of the draws on which one has to be better for an order to be decided.
pub const DECIDED: f64 = 0.9;

/// Runs over the likeliest link, each with another seed: a controller that is sensitive to single losses differs from run to run.
const SEEDS: usize = 5;

/// Controllers over the links that a call may have gone through.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIf {
    /// Number of links drawn within the bounds.
    pub draws: u64,
    /// The controllers, as they were given.
    pub controllers: Vec<Prediction>,
    /// Orders of all pairs.
    pub orders: Vec<Order>,
}

/// Numbers of one run.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Numbers {
    goodput: f64,
    received: f64,
    delay: f64,
    late: f64,
    frozen: f64,
}

impl Numbers {
    fn of(result: &RunResult) -> Self {
        let Some(flow) = result.flows.iter().find(|f| f.name == FLOW) else { return Self::default() };
        let frames = flow.frames.filter(|f| f.frames > 0);
        let audio = result.flows.iter().find(|f| f.name == AUDIO).map_or(0.0, |f| f.rates.received_bps);
        Self {
            goodput: flow.rates.goodput_bps * 1e-3,
            received: (flow.rates.received_bps + audio) * 1e-3,
            delay: flow.one_way_delay_ms.as_ref().map_or(0.0, |d| d.p95),
            late: frames.map_or(0.0, |f| (f.late + f.lost) as f64 / f.frames as f64 * 100.0),
            frozen: frames.map_or(0.0, |f| f.stalled_s),
        }
    }
}

/// Runs each controller over the likeliest link, with some seeds, and over `draws` links within the bounds, `threads` runs at a time.
///
/// # Errors
/// A controller does not exist, or cannot run here.
pub fn whatif(
    fit: &Fit,
    controllers: &[String],
    draws: u64,
    threads: usize,
    options: &RunOptions<'_>,
) -> Result<WhatIf, WhatIfError> {
    changed_whatif(fit, &Changes::default(), controllers, draws, threads, options)
}

/// The same with changes to the scenario. A controller's numbers do not depend on those that are run beside it.
///
/// # Errors
/// As [`whatif`].
pub fn changed_whatif(
    fit: &Fit,
    changes: &Changes,
    controllers: &[String],
    draws: u64,
    threads: usize,
    options: &RunOptions<'_>,
) -> Result<WhatIf, WhatIfError> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for draw in [None; SEEDS].into_iter().chain((0..draws).map(Some)) {
        let file = fit.changed_scenario("What if", controllers, draw, changes).open("what-if", options.registry)?;
        for controller in controllers {
            scenarios.push(file.one(None, Some(controller), options.registry)?);
        }
    }
    let seed = |i: usize| 1 + (i / controllers.len().max(1)) as u64;
    let numbers = Mutex::new(vec![None; scenarios.len()]);
    let tasks = scenarios.iter().enumerate().map(|(id, s)| Task { scenario: s, seed: seed(id), series: false, id });
    let make = |task: &Task<'_>, options: &RunOptions<'_>| run(task.scenario, task.seed, options);
    let mut failed = None;
    run_each(tasks, scenarios.len() as u64, threads, options, &make, &mut |task, result| match result {
        Ok(result) => {
            if let Some(slot) = numbers.lock().ok().as_mut().and_then(|n| n.get_mut(task.id)) {
                *slot = Some(Numbers::of(&result));
            }
        }
        Err(e) => failed = Some(e),
    });
    if let Some(e) = failed {
        return Err(WhatIfError::Run(Box::new(e)));
    }
    // A stop leaves runs out that had not begun.
    let numbers: Option<Vec<Numbers>> = numbers.into_inner().unwrap_or_default().into_iter().collect();
    let stopped = || WhatIfError::Run(Box::new(RunError::Stopped { at: Timestamp::ZERO }));
    let numbers = numbers.ok_or_else(stopped)?;
    let of = |c: usize| numbers.iter().skip(c).step_by(controllers.len().max(1)).copied().collect::<Vec<_>>();
    let all: Vec<Vec<Numbers>> = (0..controllers.len()).map(of).collect();
    let predictions = controllers.iter().zip(&all).map(|(name, runs)| Prediction {
        controller: name.clone(),
        goodput_kbps: estimate(runs, |n| n.goodput),
        received_kbps: estimate(runs, |n| n.received),
        delay_p95_ms: estimate(runs, |n| n.delay),
        late_percent: estimate(runs, |n| n.late),
        frozen_s: estimate(runs, |n| n.frozen),
    });
    Ok(WhatIf { draws, controllers: predictions.collect(), orders: orders(controllers, &all) })
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WhatIfError {
    /// A controller does not exist, or the fitted scenario is none.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A run failed or was stopped.
    #[error(transparent)]
    Run(Box<RunError>),
}

/// The first runs are of the likeliest link.
fn estimate(runs: &[Numbers], number: impl Fn(&Numbers) -> f64) -> Estimate {
    let quantile = |runs: &[Numbers], q: f64| {
        let mut values: Vec<f64> = runs.iter().map(&number).collect();
        values.sort_by(f64::total_cmp);
        values.get(((values.len().max(1) - 1) as f64 * q + 0.5) as usize).copied().unwrap_or(f64::NAN)
    };
    let likely = quantile(runs.get(..SEEDS).unwrap_or(runs), 0.5);
    Estimate { likely, low: quantile(runs, 0.05), high: quantile(runs, 0.95) }
}

fn orders(names: &[String], all: &[Vec<Numbers>]) -> Vec<Order> {
    let mut out = Vec::new();
    for by in [Judged::Late, Judged::Goodput] {
        let better = |a: &Numbers, b: &Numbers| match by {
            Judged::Late => a.late < b.late,
            Judged::Goodput => a.goodput > b.goodput,
        };
        for (i, a) in all.iter().enumerate() {
            for (j, b) in all.iter().enumerate().skip(i + 1) {
                let wins = |x: &[Numbers], y: &[Numbers]| x.iter().zip(y).filter(|(x, y)| better(x, y)).count() as f64;
                let (first, second) = (wins(a, b), wins(b, a));
                let (better, worse, n) = if first >= second { (i, j, first) } else { (j, i, second) };
                let share = n / a.len().max(1) as f64;
                out.push(Order { by, better: names[better].clone(), worse: names[worse].clone(), share });
            }
        }
    }
    out
}
