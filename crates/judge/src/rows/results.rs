//! The numbers of a scoreboard.

use super::fluid::Fluid;
use super::score::{Better, mean_of};
use serde::Serialize;

/// RowKind of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum RowKind {
    /// A scenario.
    Scenario,
    /// A recorded capacity; judged in its group only.
    Trace,
    /// Means over the traces of a folder, or over all.
    Group,
}

/// A scoreboard.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Board {
    /// The controllers, the first of which orders the tables.
    pub controllers: Vec<String>,
    /// Runs of each row under each controller, with seeds from 1 on.
    pub runs: u32,
    /// The rows, in their order.
    pub rows: Vec<RowScores>,
    /// Each controller's goals.
    pub tallies: Vec<Tally>,
    /// Rows that were not run, and why.
    pub not_run: Vec<String>,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
    /// Runs that a stop left undone.
    pub undone: usize,
}

/// A row's numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RowScores {
    /// Its name on the command line.
    pub key: String,
    /// Events in the scenario.
    pub title: String,
    /// Its kind.
    pub kind: RowKind,
    /// Numbers measured.
    pub metrics: Vec<MetricScores>,
    /// Results of fluid senders, on traces: one that knows the capacity, one that knows the rate delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fluid: Option<FluidScores>,
}

/// Results of fluid senders on a trace.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FluidScores {
    /// Knows the capacity, a round trip and 50 ms late.
    pub causal: Fluid,
    /// Knows the rate delivered and the queue, equally late.
    pub reactive: Fluid,
}

/// One number of a row, by controller.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MetricScores {
    /// Its name.
    pub label: String,
    /// Its unit; empty for a ratio.
    pub unit: String,
    /// Direction in which values are better.
    pub better: Better,
    /// The goal, if it has one.
    pub goal: Option<f64>,
    /// The controllers that were run, in their order.
    pub values: Vec<ControllerScore>,
}

/// A controller's number.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControllerScore {
    /// The controller.
    pub controller: String,
    /// Mean over the runs; null for "never", in at least half of them.
    pub mean: Option<f64>,
    /// Each run's value, by seed; null for "never".
    pub runs: Vec<Option<f64>>,
    /// Whether the mean meets the goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// How near the mean is to the goal: 1 where it is met, 0 for "never".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closeness: Option<f64>,
    /// The same of the worst run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_closeness: Option<f64>,
}

/// A controller's goals.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tally {
    /// The controller.
    pub controller: String,
    /// Goals of the rows that it was run in.
    pub goals: usize,
    /// Goals met.
    pub met: usize,
    /// Rows with every goal met.
    pub whole: Vec<String>,
    /// The goal that it is furthest from; absent if all are met.
    pub worst: Option<Furthest>,
}

/// The goal that a controller is furthest from.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Furthest {
    /// The row.
    pub row: String,
    /// The number.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// Mean over the runs; null for "never".
    pub mean: Option<f64>,
    /// The goal.
    pub goal: f64,
    /// How near the mean is, 0 to 1.
    pub closeness: f64,
}

impl ControllerScore {
    pub(super) fn new(controller: &str, runs: Vec<Option<f64>>, better: Better, goal: Option<f64>) -> Self {
        let mean = mean_of(&runs);
        let close = |v: Option<f64>| goal.map(|g| better.closeness(g, v));
        Self {
            controller: controller.into(),
            mean,
            met: goal.map(|g| better.meets(g, mean)),
            closeness: close(mean),
            worst_closeness: runs.iter().filter_map(|v| close(*v)).reduce(f64::min),
            runs,
        }
    }
}
