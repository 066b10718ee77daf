//! How far measured numbers agree with published ones: a verdict on each, and counts.

use super::Cell;
use super::orders::{LostOrder, pairs};
use serde::{Deserialize, Serialize};

/// Greatest relative difference of a number that is near.
const NEAR: f64 = 0.2;
/// Greatest difference of a level that is near, in dB.
const NEAR_DB: f64 = 1.5;
/// Share in percent up to which the difference counts, not the ratio.
const SMALL_PERCENT: f64 = 0.5;
/// Greatest difference of a small share that is near, in points.
const NEAR_POINTS: f64 = 0.1;
/// Greatest difference of a time in whole seconds that is near, in seconds: it is rounded.
const NEAR_SECONDS: f64 = 0.5;

/// How a measured number stands beside the published one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Within what [`is_near`] allows.
    Near,
    /// Not near, but at one end of a condition that the paper leaves open it is, or the two ends enclose the published value.
    Explained,
    /// Neither.
    Far,
}

impl Verdict {
    /// In the words of a table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Near => "near",
            Self::Explained => "near, explained",
            Self::Far => "far",
        }
    }
}

/// Counts of verdicts, and of published orders between algorithms that are kept. Bounds (metrics that end in `_at_least` and
/// `_at_most`) are near if they hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Agreement {
    /// Published numbers.
    pub cells: usize,
    /// Those measured.
    pub measured: usize,
    /// Those near: levels in dB within 1.5 dB, percentages up to 0.5 within 0.1 points, times of whole seconds within half a second or
    /// 20 %, others within 20 %; bounds on the right side.
    pub near: usize,
    /// Those that are not near and explained: a condition that the paper leaves open was set to two ends, and one is near or the
    /// two enclose the published value.
    #[serde(default)]
    pub explained: usize,
    /// Pairs of algorithms that a paper's number distinguishes by more than 2 % under one condition.
    pub orders: usize,
    /// Pairs whose order is the published one.
    pub orders_kept: usize,
    /// Of the others, those whose two 95 % confidence intervals overlap: the runs do not decide them.
    #[serde(default)]
    pub orders_open: usize,
    /// Of the others, those that are not open and kept at one end of a condition that the paper leaves open.
    #[serde(default)]
    pub orders_explained: usize,
}

impl Agreement {
    /// Goal of the share of measured numbers that are near.
    pub const NEAR_GOAL: f64 = 0.7;
    /// Goal of the share of measured numbers that are near or explained.
    pub const EXPLAINED_GOAL: f64 = 0.95;
    /// Goal of the share of orders that are kept.
    pub const ORDERS_GOAL: f64 = 0.9;

    /// Of some cells, by their verdicts, and of the orders between them that are not kept.
    pub fn of(cells: &[Cell], lost: &[LostOrder]) -> Self {
        let measured = || cells.iter().filter(|c| c.measured.is_some());
        let count = |verdict: Verdict| measured().filter(|c| c.verdict == Some(verdict)).count();
        let pairs = pairs(cells);
        Self {
            cells: cells.len(),
            measured: measured().count(),
            near: count(Verdict::Near),
            explained: count(Verdict::Explained),
            orders: pairs.len(),
            orders_kept: pairs.iter().filter(|p| p.kept).count(),
            orders_open: lost.iter().filter(|o| o.open).count(),
            orders_explained: lost.iter().filter(|o| !o.open && o.kept_at.is_some()).count(),
        }
    }

    /// The counts of two lists of numbers together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            cells: self.cells + other.cells,
            measured: self.measured + other.measured,
            near: self.near + other.near,
            explained: self.explained + other.explained,
            orders: self.orders + other.orders,
            orders_kept: self.orders_kept + other.orders_kept,
            orders_open: self.orders_open + other.orders_open,
            orders_explained: self.orders_explained + other.orders_explained,
        }
    }
}

/// Whether a measured number is near the published one. `unit` decides by how much it may differ: see [`Agreement::near`].
pub fn is_near(metric: &str, unit: &str, published: f64, measured: f64) -> bool {
    if metric.ends_with("_at_least") {
        return measured >= published;
    }
    if metric.ends_with("_at_most") {
        return measured <= published;
    }
    let relative = NEAR * published.abs();
    let tolerance = match unit {
        "dB" => NEAR_DB,
        "percent" if published.abs() <= SMALL_PERCENT => NEAR_POINTS,
        "s" if published.fract() == 0.0 => relative.max(NEAR_SECONDS),
        _ => relative,
    };
    // Decimals have no exact representation: 1.2 is 20 % above 1.
    (measured - published).abs() <= tolerance * (1.0 + 1e-9)
}

#[cfg(test)]
mod tests {
    use super::super::orders::lost;
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
            measured_ci95: None,
            runs: 1,
            verdict: measured.map(|m| if is_near(metric, "kbps", published, m) { Verdict::Near } else { Verdict::Far }),
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
        let expected = Agreement { cells: 5, measured: 4, near: 2, orders: 1, ..Agreement::default() };
        assert_eq!(Agreement::of(&cells, &[]), expected);
    }

    #[test]
    fn a_tie_is_no_order() {
        let orders = |a: f64, b: f64| {
            let cells = [cell("a", "goodput", a, Some(1.0)), cell("b", "goodput", b, Some(2.0))];
            let counts = Agreement::of(&cells, &[]);
            (counts.orders, counts.orders_kept)
        };
        assert_eq!([orders(100.0, 98.0), orders(100.0, 97.9), orders(97.9, 100.0)], [(0, 0), (1, 0), (1, 1)]);
        assert_eq!(orders(0.0, 0.0), (0, 0));
    }

    #[test]
    fn an_order_is_open_where_intervals_overlap_and_counted_once() {
        let with = |algorithm: &str, published, measured, interval| Cell {
            measured_ci95: interval,
            ..cell(algorithm, "goodput", published, Some(measured))
        };
        let order = |a: f64, interval, kept_at: Option<[String; 2]>| {
            let cells = [with("a", 100.0, a, interval), with("b", 90.0, 109.0, Some(4.0))];
            let lost: Vec<_> = lost([&cells[0], &cells[1]], kept_at).into_iter().collect();
            let counts = Agreement::of(&cells, &lost);
            assert_eq!((counts.orders, counts.orders_kept), (1, 0));
            (counts.orders_open, counts.orders_explained)
        };
        let end = || Some(["queue".to_owned(), "10 packets".to_owned()]);
        // 104 ± 1 and 109 ± 4 touch, 103 ± 1 does not; without an interval nothing is open.
        assert_eq!([order(104.0, Some(1.0), None), order(103.0, Some(1.0), None)], [(1, 0), (0, 0)]);
        assert_eq!([order(104.0, Some(1.0), end()), order(103.0, Some(1.0), end())], [(1, 0), (0, 1)]);
        assert_eq!(order(104.0, None, end()), (0, 1));
    }

    #[test]
    fn the_unit_decides_how_much_is_near() {
        let near = |unit, published, measured| is_near("m", unit, published, measured);
        // 1.5 dB, whatever the level.
        assert!(near("dB", 27.48, 28.98) && !near("dB", 27.48, 29.0) && !near("dB", 5.0, 3.4));
        // A tenth of a point up to half a percent, a fifth above.
        assert!(near("percent", 0.0, 0.1) && !near("percent", 0.0, 0.11));
        assert!(near("percent", 0.5, 0.6) && !near("percent", 0.5, 0.61) && !near("percent", 0.1, 0.21));
        assert!(near("percent", 10.0, 12.0) && !near("percent", 10.0, 12.1) && !near("percent", 0.6, 0.73));
        // Whole seconds are rounded, others are not.
        assert!(near("s", 1.0, 1.5) && !near("s", 1.0, 1.51) && near("s", 10.0, 12.0) && !near("s", 1.5, 1.81));
        assert!(near("kbps", 100.0, 80.0) && !near("kbps", 100.0, 79.9));
        assert!(is_near("x_at_most", "percent", 1.0, 0.0) && !is_near("x_at_least", "percent", 1.0, 0.99));
    }
}
