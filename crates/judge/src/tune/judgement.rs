//! Judgement of candidates.

use super::super::rows::{Board, RowKind};
use serde::Serialize;

/// The label of what counts on traces.
const ON_TIME: &str = "on time";
/// Loss of closeness that a goal may have against the start without penalty, since results vary with the seeds.
const NOISE: f64 = 0.01;

/// How good a candidate is. The score is the mean of the worst tenth of the traces, and of the rows how near their goals are on
/// average, less what goals have lost against the start.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judgement {
    /// The sum of the numbers below; greater is better.
    pub score: f64,
    /// Mean on-time share of the worst tenth of the traces; null without traces.
    pub worst_tenth: Option<f64>,
    /// Mean on-time share of all traces.
    pub mean: Option<f64>,
    /// How near the rows' goals are on average, 0 to 1; null without rows.
    pub closeness: Option<f64>,
    /// Goals met.
    pub met: usize,
    /// Closeness that goals have lost against the start, summed.
    pub lost: f64,
}

/// Closeness of each goal at the start.
pub(super) type Start = Vec<f64>;

impl Judgement {
    /// Of the board's controller number `at`, against a start if there is one.
    pub(super) fn of(board: &Board, at: usize, start: Option<&Start>) -> (Self, Start) {
        let name = &board.controllers[at];
        let scores = |kind: RowKind| {
            let rows = board.rows.iter().filter(move |r| r.kind == kind).flat_map(|r| &r.metrics);
            rows.filter_map(|m| Some((m.label.as_str(), m.values.iter().find(|v| v.controller == *name)?)))
        };
        let mut traces: Vec<f64> =
            scores(RowKind::Trace).filter(|s| s.0 == ON_TIME).map(|s| s.1.mean.unwrap_or(0.0)).collect();
        traces.sort_by(f64::total_cmp);
        let goals: Start = scores(RowKind::Scenario).filter_map(|s| s.1.closeness).collect();
        let mean = |of: &[f64]| (!of.is_empty()).then(|| of.iter().sum::<f64>() / of.len() as f64);
        let worst_tenth = mean(&traces[..traces.len().div_ceil(10)]);
        let closeness = mean(&goals);
        let lost =
            start.map_or(0.0, |s| s.iter().zip(&goals).fold(0.0, |lost, (was, is)| lost + (was - is - NOISE).max(0.0)));
        let judgement = Self {
            score: worst_tenth.unwrap_or(0.0) + closeness.unwrap_or(0.0) - lost,
            worst_tenth,
            mean: mean(&traces),
            closeness,
            met: goals.iter().filter(|c| **c >= 1.0).count(),
            lost,
        };
        (judgement, goals)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::rows::{Better, ControllerScore, MetricScores, RowScores};
    use super::*;

    fn row(kind: RowKind, label: &str, mean: f64, closeness: Option<f64>) -> RowScores {
        let score = ControllerScore {
            controller: "a".into(),
            mean: Some(mean),
            runs: vec![Some(mean)],
            met: None,
            closeness,
            worst_closeness: None,
        };
        let metric = MetricScores {
            label: label.into(),
            unit: String::new(),
            better: Better::High,
            goal: None,
            values: vec![score],
        };
        RowScores { key: label.into(), title: String::new(), kind, metrics: vec![metric], fluid: None }
    }

    #[test]
    fn the_worst_traces_count_and_goals_lost_are_subtracted() {
        let traces = (1..=20).map(|k| row(RowKind::Trace, ON_TIME, 0.05 * f64::from(k), Some(1.0)));
        let others = [
            row(RowKind::Group, ON_TIME, 0.0, None),
            row(RowKind::Trace, "lost", 9.0, None),
            row(RowKind::Scenario, "use", 0.9, Some(1.0)),
            row(RowKind::Scenario, "queue", 80.0, Some(0.5)),
            row(RowKind::Scenario, "no goal", 1.0, None),
        ];
        let board = Board {
            controllers: vec!["a".into()],
            runs: 1,
            rows: traces.chain(others).collect(),
            tallies: vec![],
            not_run: vec![],
            failed: vec![],
            undone: 0,
        };
        let (start, kept) = Judgement::of(&board, 0, None);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(start.worst_tenth.expect("traces"), 0.075) && near(start.mean.expect("traces"), 0.525));
        assert!(near(start.closeness.expect("rows"), 0.75) && near(start.score, 0.825));
        assert_eq!((start.met, start.lost, kept.len()), (1, 0.0, 2));
        let (worse, _) = Judgement::of(&board, 0, Some(&vec![1.0, 0.8]));
        assert!(near(worse.lost, 0.29) && near(worse.score, 0.825 - 0.29), "{worse:?}");
    }
}
