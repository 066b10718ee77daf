//! Runs on the testbed beside the simulated ones of the same row, controller and seeds.

use super::board::LIVE;
use super::results::{Board, RowKind};

/// Most that a share of the link, of a flow or of time may differ.
const SHARE: f64 = 0.05;
/// Most that a delay may differ, in ms.
const DELAY_MS: f64 = 20.0;

/// A number of a row on the testbed beside the simulated one.
#[derive(Clone, PartialEq, Debug)]
pub struct Agreement {
    /// The row.
    pub row: String,
    /// The number.
    pub metric: String,
    /// Its unit; empty for a ratio.
    pub unit: String,
    /// The controller.
    pub controller: String,
    /// Mean over the simulated runs; `None` for "never".
    pub simulated: Option<f64>,
    /// The least and the greatest of the simulated runs, of those that have a number.
    pub range: Option<(f64, f64)>,
    /// Mean over the runs on the testbed; `None` for "never".
    pub live: Option<f64>,
    /// Whether the means differ by at most 0.05 (ratios) or 20 ms (delays); `None` for other units, and where one is "never".
    pub within: Option<bool>,
    /// Whether the testbed's number is within that of the simulated runs' range, or in it for other units; `None` where either is "never".
    pub in_range: Option<bool>,
}

impl Agreement {
    /// The testbed's number less the simulated one.
    pub fn difference(&self) -> Option<f64> {
        Some(self.live? - self.simulated?)
    }
}

fn range(runs: &[Option<f64>]) -> Option<(f64, f64)> {
    let numbers = runs.iter().flatten().copied();
    numbers.map(|n| (n, n)).reduce(|(least, most), (n, _)| (least.min(n), most.max(n)))
}

/// Each number that a controller has both simulated and on the testbed, in the order of the rows.
pub fn agreements(board: &Board) -> Vec<Agreement> {
    let pairs: Vec<(&str, &str)> = board
        .controllers
        .iter()
        .filter_map(|c| c.strip_suffix(LIVE).map(|simulated| (simulated, c.as_str())))
        .collect();
    let mut all = Vec::new();
    for row in board.rows.iter().filter(|r| r.kind == RowKind::Scenario) {
        for metric in &row.metrics {
            let of = |name: &str| metric.values.iter().find(|v| v.controller == name);
            for (simulated, live) in pairs.iter().filter_map(|(s, l)| of(s).zip(of(l))) {
                let mut agreement = Agreement {
                    row: row.key.clone(),
                    metric: metric.label.clone(),
                    unit: metric.unit.clone(),
                    controller: simulated.controller.clone(),
                    simulated: simulated.mean,
                    range: range(&simulated.runs),
                    live: live.mean,
                    within: None,
                    in_range: None,
                };
                let bound = match metric.unit.as_str() {
                    "" => Some(SHARE),
                    "ms" => Some(DELAY_MS),
                    _ => None,
                };
                agreement.within = bound.zip(agreement.difference()).map(|(most, d)| d.abs() <= most);
                let most = bound.unwrap_or(0.0);
                agreement.in_range =
                    agreement.range.zip(live.mean).map(|((a, b), live)| (a - most..=b + most).contains(&live));
                all.push(agreement);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::results::{ControllerScore, MetricScores, RowScores};
    use super::super::score::Better;
    use super::*;

    #[test]
    fn ratios_and_delays_have_bounds_and_all_numbers_the_range_of_the_simulated_runs() {
        let metric = |unit: &str, simulated, live| MetricScores {
            label: "number".into(),
            unit: unit.into(),
            better: Better::Low,
            goal: None,
            values: [("gcc", simulated), ("gcc@live", vec![live]), ("nada", vec![Some(9.0)])]
                .map(|(name, runs)| ControllerScore::new(name, runs, Better::Low, None))
                .into(),
        };
        let metrics = vec![
            metric("", vec![Some(0.9)], Some(0.86)),
            metric("", vec![Some(1.0), Some(0.8)], Some(0.76)),
            metric("ms", vec![Some(30.0)], Some(49.0)),
            metric("ms", vec![Some(30.0)], Some(51.0)),
            metric("s", vec![Some(1.0), Some(3.0)], Some(2.9)),
            metric("s", vec![Some(1.0), Some(3.0)], Some(3.1)),
            metric("ms", vec![None], Some(9.0)),
        ];
        let row = |kind| RowScores { key: "a".into(), title: "".into(), kind, metrics: metrics.clone(), fluid: None };
        let board = Board {
            controllers: ["gcc", "gcc@live", "nada"].map(str::to_owned).into(),
            runs: 1,
            rows: vec![row(RowKind::Scenario), row(RowKind::Group)],
            tallies: vec![],
            not_run: vec![],
            failed: vec![],
            undone: 0,
        };
        let found = agreements(&board);
        let within: Vec<_> = found.iter().map(|a| a.within).collect();
        assert_eq!(within, [Some(true), Some(false), Some(true), Some(false), None, None, None]);
        let in_range: Vec<_> = found.iter().map(|a| a.in_range).collect();
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(in_range, [yes, yes, yes, no, yes, no, None]);
        assert_eq!((found[1].range, found[6].range), (Some((0.8, 1.0)), None));
    }
}
