//! Published numbers and claims beside the measured ones.

mod agreement;
pub mod orders;
mod text;

pub use agreement::{Agreement, Verdict, is_near};
pub use orders::LostOrder;

use serde::{Deserialize, Serialize};

/// A published number with the measured one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cell {
    /// The paper by name.
    pub paper: String,
    /// The paper's own number of the table, or `figN`.
    pub table: String,
    /// Scenario.
    pub scenario: String,
    /// Condition.
    pub condition: String,
    /// Algorithm.
    pub algorithm: String,
    /// Metric.
    pub metric: String,
    /// Unit of both values.
    pub unit: String,
    /// The published value.
    pub published: f64,
    /// Its standard deviation, if the paper gives one.
    pub published_sigma: Option<f64>,
    /// Mean over the runs; `None` if no run measured it.
    pub measured: Option<f64>,
    /// Standard deviation over the runs; `None` with fewer than two.
    pub measured_sigma: Option<f64>,
    /// Half-width of the mean's 95 % confidence interval over the runs (Student's t); `None` with fewer than two.
    #[serde(default)]
    pub measured_ci95: Option<f64>,
    /// Runs that measured it.
    pub runs: usize,
    /// Near, explained or far; `None` if it was not measured.
    #[serde(default)]
    pub verdict: Option<Verdict>,
}

/// A condition that a paper leaves open and that decides some of its numbers, set to two ends.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpenCondition {
    /// Short name.
    pub id: String,
    /// The condition in words.
    pub condition: String,
    /// Its two ends in words.
    pub ends: [String; 2],
    /// The numbers that it is to explain: those that are not near.
    pub cells: Vec<ExplainedCell>,
}

/// A number that is not near, and its value at both ends of a condition.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExplainedCell {
    /// The paper's own number of the table.
    pub table: String,
    /// Condition.
    pub condition: String,
    /// Algorithm.
    pub algorithm: String,
    /// Metric.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// The published value.
    pub published: f64,
    /// Mean over the runs as the scenario has the condition.
    pub measured: f64,
    /// Mean at each end; `None` if no run measured it.
    pub at_ends: [Option<f64>; 2],
    /// Half-widths of these means' 95 % confidence intervals; `None` with fewer than two runs.
    pub at_ends_ci95: [Option<f64>; 2],
    /// Whether one end is near, or the two enclose the published value.
    pub explained: bool,
}

/// A paper's scores if all that an open condition may decide ran at one of its ends, and everything else as it does.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EndScore {
    /// Short name of the condition.
    pub id: String,
    /// The end in words.
    pub end: String,
    /// Whether the paper's runs have this end.
    pub as_run: bool,
    /// Numbers that the condition may decide and that this end measured.
    pub covered: usize,
    /// Of these, the ones that are near as run.
    pub covered_near_as_run: usize,
    /// Of these, the ones that are near at this end.
    pub covered_near: usize,
    /// Numbers of the whole paper that are near.
    pub near: usize,
    /// Orders of the whole paper that are kept.
    pub orders_kept: usize,
    /// Claims of the whole paper that hold.
    pub claims_kept: usize,
}

/// A remark on a result, such as what does not reproduce and what was tried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Note {
    /// Heading.
    pub title: String,
    /// Plain text; blank lines separate paragraphs.
    pub text: String,
}

/// A table of the paper by number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TableTitle {
    /// The paper's own number of the table.
    pub table: String,
    /// Its title.
    pub title: String,
}

/// A paper compared with Weir.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reproduction {
    /// The paper by name.
    pub paper: String,
    /// Its title.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// How far the numbers agree.
    #[serde(default)]
    pub agreement: Agreement,
    /// Every published number.
    pub cells: Vec<Cell>,
    /// The conditions that are to explain numbers that are not near.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<OpenCondition>,
    /// The scores at each end of the open conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<EndScore>,
    /// The published orders between algorithms that the measured numbers do not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_orders: Vec<LostOrder>,
    /// The paper's claims as checks.
    pub claims: Vec<Claim>,
    /// Titles of the tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableTitle>,
    /// Remarks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// A number behind a claim.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// Controller.
    pub controller: String,
    /// Scenario, with its condition if one is named.
    pub scenario: String,
    /// Metric.
    pub metric: String,
    /// Mean over the runs; `None` if no run measured it.
    pub value: Option<f64>,
    /// Standard deviation over the runs; `None` with fewer than two.
    pub sigma: Option<f64>,
    /// Runs that measured it.
    pub runs: usize,
}

/// A claim and its result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Claim {
    /// The paper by name.
    pub paper: String,
    /// Short name.
    pub id: String,
    /// The claim, as the paper means it.
    pub statement: String,
    /// Where the paper makes it.
    pub source: String,
    /// The checks in words.
    pub criterion: String,
    /// Whether it holds here; `None` if a number that it requires was not measured.
    pub holds: Option<bool>,
    /// If it does not, the open condition, by its short name, and the end in words at which it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_at: Option<[String; 2]>,
    /// The numbers behind it.
    pub measured: Vec<Measured>,
}
