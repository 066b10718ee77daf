//! Orders between algorithms: pairs that a published number distinguishes, and whether the measured numbers have the same order.

use super::Cell;
use serde::{Deserialize, Serialize};

/// Relative difference of two published numbers up to which neither is the greater.
const TIE: f64 = 0.02;

/// Two algorithms that a published number distinguishes, and whose measured order is not the published one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostOrder {
    /// The paper's own number of the table.
    pub table: String,
    /// Scenario.
    pub scenario: String,
    /// Condition.
    pub condition: String,
    /// Metric.
    pub metric: String,
    /// Unit of the values.
    pub unit: String,
    /// The two algorithms.
    pub algorithms: [String; 2],
    /// Their published values.
    pub published: [f64; 2],
    /// Means over the runs.
    pub measured: [f64; 2],
    /// Half-widths of these means' 95 % confidence intervals; `None` with fewer than two runs.
    pub measured_ci95: [Option<f64>; 2],
    /// Whether the two intervals overlap: the runs do not decide the order.
    pub open: bool,
    /// The open condition, by its short name, and the end in words at which the order is the published one.
    pub kept_at: Option<[String; 2]>,
}

/// A pair of cells under one condition whose published values differ by more than a tie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pair {
    /// Positions in the list of cells, the smaller first.
    pub cells: [usize; 2],
    /// Whether the measured order is the published one.
    pub kept: bool,
}

/// The pairs of a list of cells that have an order: of one table, condition and metric, both measured.
pub fn pairs(cells: &[Cell]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (i, a) in cells.iter().enumerate() {
        let Some(measured) = a.measured else { continue };
        for (j, b) in cells.iter().enumerate().skip(i + 1).filter(|(_, b)| comparable(a, b)) {
            let Some(other) = b.measured else { continue };
            pairs.push(Pair { cells: [i, j], kept: is_kept([a, b], [measured, other]) });
        }
    }
    pairs
}

fn comparable(a: &Cell, b: &Cell) -> bool {
    (&a.table, &a.scenario, &a.condition, &a.metric) == (&b.table, &b.scenario, &b.condition, &b.metric)
        && (a.published - b.published).abs() > TIE * a.published.abs().max(b.published.abs())
}

/// Whether two values have the published order of two cells.
pub fn is_kept([a, b]: [&Cell; 2], [first, second]: [f64; 2]) -> bool {
    (a.published < b.published) == (first < second)
}

/// A pair whose order is not kept, of cells that are measured; `kept_at` is where it is.
pub fn lost([a, b]: [&Cell; 2], kept_at: Option<[String; 2]>) -> Option<LostOrder> {
    let measured = [a.measured?, b.measured?];
    let measured_ci95 = [a.measured_ci95, b.measured_ci95];
    let open = match measured_ci95 {
        [Some(own), Some(other)] => (measured[0] - measured[1]).abs() <= own + other,
        _ => false,
    };
    Some(LostOrder {
        table: a.table.clone(),
        scenario: a.scenario.clone(),
        condition: a.condition.clone(),
        metric: a.metric.clone(),
        unit: a.unit.clone(),
        algorithms: [a.algorithm.clone(), b.algorithm.clone()],
        published: [a.published, b.published],
        measured,
        measured_ci95,
        open,
        kept_at,
    })
}
