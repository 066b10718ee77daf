//! The answers: every number of every question, by controller.

use super::question::Bound;
use serde::Serialize;

/// Answers of all controllers.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Rfc9743Answers"))]
pub struct Answers {
    /// The controllers, as named.
    pub controllers: Vec<String>,
    /// Runs of each, with seeds from 1 on.
    pub runs: u32,
    /// The questions, in the order of the RFC.
    pub questions: Vec<Answer>,
    /// Bounds kept, by controller.
    pub tallies: Vec<Tally>,
    /// Runs that failed, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// Runs that a stop left undone.
    pub undone: u64,
}

/// A question's answer.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Rfc9743Answer"))]
pub struct Answer {
    /// Section of the RFC.
    pub section: String,
    /// Its title.
    pub title: String,
    /// The criterion in a few words.
    pub asks: String,
    /// The cases.
    pub cases: Vec<CaseAnswer>,
}

/// A case's numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Rfc9743Case"))]
pub struct CaseAnswer {
    /// The command that makes the runs of the first controller.
    pub command: String,
    /// The variants of its scenario; empty for all.
    pub variants: String,
    /// The numbers.
    pub checks: Vec<CheckAnswer>,
}

/// A number with its bound.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Rfc9743Check"))]
pub struct CheckAnswer {
    /// The number in words.
    pub quantity: String,
    /// Its unit; empty for a ratio.
    pub unit: String,
    /// The bound that it has to keep.
    pub bound: Bound,
    /// Reason of the bound.
    pub why: String,
    /// By controller.
    pub values: Vec<Value>,
}

/// A controller's value.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Rfc9743Value"))]
pub struct Value {
    /// The controller.
    pub controller: String,
    /// Mean over seeds, of the worst variant; absent for "never".
    pub value: Option<f64>,
    /// That variant, of a case with several.
    pub variant: String,
    /// Whether the bound is kept; absent where there is none.
    pub kept: Option<bool>,
}

/// A controller's sum.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Rfc9743Tally"))]
pub struct Tally {
    /// The controller.
    pub controller: String,
    /// Numbers with a bound.
    pub bounds: usize,
    /// Bounds kept.
    pub kept: usize,
}

impl Answers {
    /// Counts what is kept.
    pub(super) fn count(&mut self) {
        let checks = || self.questions.iter().flat_map(|q| &q.cases).flat_map(|c| &c.checks);
        let of = |controller: &String| {
            let kept = checks().flat_map(|c| &c.values).filter(|v| v.controller == *controller).filter_map(|v| v.kept);
            let kept: Vec<bool> = kept.collect();
            Tally { controller: controller.clone(), bounds: kept.len(), kept: kept.iter().filter(|k| **k).count() }
        };
        let tallies = self.controllers.iter().map(of).collect();
        self.tallies = tallies;
    }
}
