//! Budgets as they apply to a scenario: the number that each reads, and the direction in which it is better.

use super::budget::{Bound, Budget, Than};
use super::file::{At, GateFile, Suite};
use super::metrics::{self, Kind};
use crate::rows::{Better, Row, shown};
use std::ops::Range;
use weir_lab::scenario::{InputError, suggest};

/// A number that is read from each run of a condition.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Column {
    pub(super) flow: Option<String>,
    pub(super) metric: Number,
    /// Direction in which the worst of several flows or phases is looked for.
    pub(super) better: Better,
    /// Its name in baselines; of a number that cannot be compared none.
    pub(super) key: Option<String>,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Number {
    /// Of a row, by its place there.
    Row(usize),
    Named(String),
    /// Phases of a case that fail a criterion.
    Failed,
}

/// A budget that applies to a condition, before it is asked of controllers.
pub(super) struct Applied {
    pub(super) column: Column,
    pub(super) bound: Bound,
    pub(super) better: Better,
    pub(super) than: Option<Than>,
    pub(super) text: String,
    pub(super) unit: &'static str,
    pub(super) at: Range<usize>,
    pub(super) field: String,
}

/// A budget of the values of a scenario's flows, of its run, or of the phases of a case.
pub(super) fn of_values(
    file: &GateFile,
    text: &At,
    budget: &Budget,
    kind: Kind,
    flows: &[String],
    field: String,
) -> Result<Applied, InputError> {
    let fault = |message, help| file.fault(text.span.clone(), &field, message, help);
    let Some(own) = metrics::direction(kind, &budget.metric) else {
        let message = format!("no metric is named `{}`", budget.metric);
        return Err(fault(message, suggest::help(&budget.metric, &metrics::names(kind))));
    };
    if let Some(flow) = &budget.of {
        if kind == Kind::Case || !metrics::is_of_flows(&budget.metric) {
            let message = format!("`{}` is of the whole run, not of `{flow}`", budget.metric);
            return Err(fault(message, format!("write `{}` alone", budget.metric)));
        }
        if !flows.contains(flow) {
            let known: Vec<&str> = flows.iter().map(String::as_str).collect();
            return Err(fault(format!("no flow is named `{flow}`"), suggest::help(flow, &known)));
        }
    }
    let better = match (&budget.bound, own) {
        (Bound::AtMost(_), _) => Better::Low,
        (Bound::AtLeast(_), _) => Better::High,
        (_, Some(better)) => better,
        (_, None) => {
            let message = format!("more of `{}` is neither better nor worse", budget.metric);
            return Err(fault(message, "give it a bound: METRIC <= N, or METRIC >= N".into()));
        }
    };
    let name = budget.of.as_ref().map_or_else(|| budget.metric.clone(), |of| format!("{of}: {}", budget.metric));
    let key = (own == Some(better)).then_some(name);
    let column = Column { flow: budget.of.clone(), metric: Number::Named(budget.metric.clone()), better, key };
    Ok(Applied::new(column, budget, better, "", text, field))
}

/// The budgets of a suite that are for a row, or the row's own goals.
pub(super) fn of_row(row: &Row, suite: &Suite) -> Vec<Applied> {
    let mut applied = Vec::new();
    for (i, (text, budget)) in suite.budgets.iter().enumerate() {
        let is_for_it = budget.of.as_ref().is_none_or(|of| *of == row.key);
        let Some(at) = row.metrics.iter().position(|m| m.label == budget.metric).filter(|_| is_for_it) else {
            continue;
        };
        let metric = &row.metrics[at];
        let better = match &budget.bound {
            Bound::AtMost(_) => Better::Low,
            Bound::AtLeast(_) => Better::High,
            _ => metric.better,
        };
        let column = row_column(row, at);
        let field = format!("{}.budgets[{i}]", suite.field);
        applied.push(Applied::new(column, budget, better, metric.unit, text, field));
    }
    if suite.budgets.is_empty() {
        let goals = row.metrics.iter().enumerate().filter_map(|(at, m)| Some((at, m, m.goal?)));
        applied = goals.map(|(at, m, goal)| own_goal(row, at, (m.better, goal, m.unit), suite)).collect();
    }
    applied
}

impl Applied {
    fn new(column: Column, budget: &Budget, better: Better, unit: &'static str, at: &At, field: String) -> Self {
        let than = match &budget.bound {
            Bound::NoWorse { than, .. } => Some(than.clone()),
            _ => None,
        };
        let bound = budget.bound.clone();
        Self { column, bound, better, than, text: at.text.clone(), unit, at: at.span.clone(), field }
    }
}

/// A row's number, which has one value a run whatever is asked of it.
fn row_column(row: &Row, at: usize) -> Column {
    let metric = &row.metrics[at];
    Column { flow: None, metric: Number::Row(at), better: metric.better, key: Some(metric.label.clone()) }
}

/// A row's own goal as a budget.
fn own_goal(row: &Row, at: usize, (better, goal, unit): (Better, f64, &'static str), suite: &Suite) -> Applied {
    let label = &row.metrics[at].label;
    let (bound, text) = match better {
        Better::High => (Bound::AtLeast(goal), format!("{label} >= {goal}")),
        Better::Low => (Bound::AtMost(goal), format!("{label} <= {goal}")),
        Better::One => {
            let (low, high) = (goal.min(1.0 / goal), goal.max(1.0 / goal));
            (Bound::Near(goal), format!("{label} from {} to {}", shown(Some(low)), shown(Some(high))))
        }
    };
    let (column, field) = (row_column(row, at), suite.field.clone());
    Applied { column, bound, better, than: None, text, unit, at: suite.span(), field }
}

/// The criteria of RFC 8867 as one budget.
pub(super) fn criteria(at: Range<usize>, suite: &Suite) -> Applied {
    let column =
        Column { flow: None, metric: Number::Failed, better: Better::Low, key: Some("phases that fail".into()) };
    Applied {
        column,
        bound: Bound::AtMost(0.0),
        better: Better::Low,
        than: None,
        text: "every phase passes".into(),
        unit: "phases that fail",
        at,
        field: suite.field.clone(),
    }
}
