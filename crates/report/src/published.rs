//! Published numbers and claims beside the measured ones.

mod agreement;
mod text;

pub use agreement::Agreement;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A published number with the measured one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// Runs that measured it.
    pub runs: usize,
}

/// A remark on a result, such as what does not reproduce and what was tried.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// Heading.
    pub title: String,
    /// Plain text; blank lines separate paragraphs.
    pub text: String,
}

/// A table of the paper by number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TableTitle {
    /// The paper's own number of the table.
    pub table: String,
    /// Its title.
    pub title: String,
}

/// A paper compared with Weir.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
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
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// The numbers behind it.
    pub measured: Vec<Measured>,
}
