//! A row: a scenario, and the numbers that are read from its runs.

use super::reading::Reading;
use super::score::Better;
use std::collections::BTreeMap;

/// Reads a metric from a run; `None` is "never".
type Read = Box<dyn Fn(&Reading<'_>) -> Option<f64> + Send + Sync>;

/// One number of a row.
pub struct Metric {
    /// Its name.
    pub label: String,
    /// Its unit; none for a ratio.
    pub unit: &'static str,
    /// Direction in which values are better.
    pub better: Better,
    /// The goal, if it has one.
    pub goal: Option<f64>,
    read: Read,
}

impl Metric {
    /// Its value in a run.
    pub fn read(&self, run: &Reading<'_>) -> Option<f64> {
        (self.read)(run)
    }
}

impl std::fmt::Debug for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {:?} {:?}", self.label, self.better, self.goal)
    }
}

/// Where a row's scenario is from.
#[derive(Clone, PartialEq, Debug)]
pub enum Source {
    /// A built-in scenario.
    BuiltIn(&'static str),
    /// A scenario's text, and the files that it names.
    Text(String, BTreeMap<String, Vec<u8>>),
}

/// A scenario, and what is read from its runs.
#[derive(Debug)]
pub struct Row {
    /// Its name on the command line.
    pub key: String,
    /// Events in the scenario.
    pub title: String,
    /// Its scenario.
    pub source: Source,
    /// Numbers read from a run.
    pub metrics: Vec<Metric>,
    /// The controllers that it is for; all if absent.
    pub only: Option<&'static [&'static str]>,
}

impl Row {
    /// Whether a word asks for it: its name, or that without its digits, which asks for all rows of a letter.
    pub fn is_asked(&self, word: &str) -> bool {
        word == self.key || word == self.key.trim_end_matches(|c: char| c.is_ascii_digit())
    }
}

/// Metrics of a row.
#[derive(Default)]
pub(super) struct Metrics(pub(super) Vec<Metric>);

impl Metrics {
    pub(super) fn with(
        mut self,
        label: &str,
        unit: &'static str,
        (better, goal): (Better, impl Into<Option<f64>>),
        read: impl Fn(&Reading<'_>) -> Option<f64> + Send + Sync + 'static,
    ) -> Self {
        self.0.push(Metric { label: label.into(), unit, better, goal: goal.into(), read: Box::new(read) });
        self
    }
}

/// A row with a scenario's text.
pub(super) fn row(key: &str, title: impl Into<String>, text: String, metrics: Metrics) -> Row {
    let source = Source::Text(text, BTreeMap::new());
    Row { key: key.into(), title: title.into(), source, metrics: metrics.0, only: None }
}
