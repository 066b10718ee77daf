//! How far measured numbers agree with published ones, as two shares.

use super::Cell;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Relative difference from the published number up to which a number counts as near.
const NEAR: f64 = 0.2;

/// Shares of numbers near the published ones, and of published orders between algorithms that are kept. Bounds (metrics that
/// end in `_at_least` and `_at_most`) count as near if they hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Agreement {
    /// Published numbers.
    pub cells: usize,
    /// Those measured.
    pub measured: usize,
    /// Those within 20 % of the published value, or, for bounds, on the right side of it.
    pub near: usize,
    /// Pairs of algorithms that a paper's number distinguishes under one condition.
    pub orders: usize,
    /// Pairs whose order is the published one.
    pub orders_kept: usize,
}

impl Agreement {
    /// Of some cells.
    pub fn of(cells: &[Cell]) -> Self {
        let mut a = Self { cells: cells.len(), ..Self::default() };
        for (i, c) in cells.iter().enumerate() {
            let Some(measured) = c.measured else { continue };
            a.measured += 1;
            a.near += usize::from(is_near(&c.metric, c.published, measured));
            let comparable = |o: &&Cell| {
                (&o.table, &o.scenario, &o.condition, &o.metric) == (&c.table, &c.scenario, &c.condition, &c.metric)
                    && o.published != c.published
            };
            for other in cells[i + 1..].iter().filter(comparable) {
                let Some(theirs) = other.measured else { continue };
                a.orders += 1;
                a.orders_kept += usize::from((c.published < other.published) == (measured < theirs));
            }
        }
        a
    }
}

fn is_near(metric: &str, published: f64, measured: f64) -> bool {
    if metric.ends_with("_at_least") {
        measured >= published
    } else if metric.ends_with("_at_most") {
        measured <= published
    } else {
        (measured - published).abs() <= NEAR * published.abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(algorithm: &str, metric: &str, published: f64, measured: Option<f64>) -> Cell {
        Cell {
            paper: "p".into(),
            table: "1".into(),
            scenario: "s".into(),
            condition: "c".into(),
            algorithm: algorithm.into(),
            metric: metric.into(),
            unit: "kbps".into(),
            published,
            published_sigma: None,
            measured,
            measured_sigma: None,
            runs: 1,
        }
    }

    #[test]
    fn counts_what_is_near_and_in_order() {
        let cells = [
            cell("a", "goodput", 100.0, Some(80.0)),
            cell("b", "goodput", 90.0, Some(109.0)),
            cell("c", "goodput", 50.0, None),
            cell("a", "loss_at_most", 1.0, Some(1.0)),
            cell("b", "loss_at_least", 1.0, Some(0.9)),
        ];
        // 80 is 20 % off 100, 109 more than 20 % off 90; the order of a and b is reversed.
        assert_eq!(Agreement::of(&cells), Agreement { cells: 5, measured: 4, near: 2, orders: 1, orders_kept: 0 });
    }
}
