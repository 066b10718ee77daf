//! A paper's claims as checks.

use super::{Claim, Measured, measure, values};
use serde::{Deserialize, Serialize};
use weir_lab::results::{RunResult, Stat};

/// A claim as stated in a paper's data files: it holds if every check does.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClaimSpec {
    /// Short name.
    pub id: String,
    /// The claim, as the paper means it.
    pub statement: String,
    /// Where the paper makes it.
    pub source: String,
    /// The checks in words, with the source of their numbers.
    pub criterion: String,
    /// The checks.
    pub checks: Vec<Check>,
}

/// A bound on the mean over runs of one metric.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// Scenario, as in a published cell.
    pub scenario: String,
    /// Condition; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The flow by name in the variant that is the condition, or `*` for the mean over a run's RTP flows; the first RTP flow if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// Controller.
    pub controller: String,
    /// Metric, by the name that [`weir_lab::results::RunResult::values`] or
    /// [`weir_lab::results::FlowSummary::values`] gives.
    pub metric: String,
    /// The metric is at least this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The metric is at most this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The metric is below that of each of these controllers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<String>,
    /// The metric is above that of each of these controllers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above: Vec<String>,
    /// The metric is below that under each of these conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below_conditions: Vec<String>,
    /// The metric is above that under each of these conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub above_conditions: Vec<String>,
}

impl Check {
    /// Whether it needs a run, by what is true of the run's condition and of its controller.
    pub(super) fn needs(&self, is_at: impl Fn(&str) -> bool, is_under: impl Fn(&str) -> bool) -> bool {
        let is_own = is_under(&self.controller);
        let is_compared = self.above.iter().chain(&self.below).any(|c| is_under(c));
        let at_own = self.condition.as_deref().is_none_or(&is_at);
        let at_others = self.above_conditions.iter().chain(&self.below_conditions).any(|c| is_at(c));
        at_own && (is_own || is_compared) || at_others && is_own
    }
}

/// Another place for a claim's checks.
#[derive(Clone, Copy, Default)]
pub(super) struct Elsewhere<'a> {
    /// Suffix of the name of a check's scenario.
    pub(super) suffix: &'a str,
    /// Variant in place of a check's condition; the condition itself if absent.
    pub(super) variant: Option<&'a str>,
}

/// Checks a claim at a place; checks for which it has no run, in their own scenarios.
pub(super) fn check(paper: &str, spec: &ClaimSpec, runs: &[RunResult], at: Elsewhere<'_>) -> Claim {
    let mut measured: Vec<Measured> = Vec::new();
    let mut holds = Some(true);
    for c in &spec.checks {
        let mut mean = |controller: &str, condition: Option<&str>| -> Option<f64> {
            let there = format!("{}{}", c.scenario, at.suffix);
            let stat = measure_check(runs, &there, condition.map(|own| at.variant.unwrap_or(own)), controller, c)
                .or_else(|| measure_check(runs, &c.scenario, condition, controller, c));
            let scenario = match condition {
                Some(condition) => format!("{} {condition}", c.scenario),
                None => c.scenario.clone(),
            };
            let number = Measured {
                controller: controller.into(),
                scenario,
                metric: c.metric.clone(),
                value: stat.map(|s: Stat| s.mean),
                sigma: stat.and_then(|s| s.sigma),
                runs: stat.map_or(0, |s| s.runs),
            };
            if !measured.contains(&number) {
                measured.push(number);
            }
            stat.map(|s| s.mean)
        };
        let condition = c.condition.as_deref();
        let own = mean(&c.controller, condition);
        let mut results = vec![
            c.at_least.map_or(Some(true), |bound| own.map(|v| v >= bound)),
            c.at_most.map_or(Some(true), |bound| own.map(|v| v <= bound)),
        ];
        for (others, conditions, is_below) in
            [(&c.below, &c.below_conditions, true), (&c.above, &c.above_conditions, false)]
        {
            let mut holds = |controller: &str, condition: Option<&str>| {
                let other = mean(controller, condition)?;
                own.map(|v| if is_below { v < other } else { v > other })
            };
            results.extend(others.iter().map(|other| holds(other, condition)));
            results.extend(conditions.iter().map(|other| holds(&c.controller, Some(other))));
        }
        for result in results {
            // One failed check refutes the claim, even if other numbers are missing.
            holds = match (holds, result) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (None, _) | (_, None) => None,
                _ => Some(true),
            };
        }
    }
    Claim {
        paper: paper.into(),
        id: spec.id.clone(),
        statement: spec.statement.clone(),
        source: spec.source.clone(),
        criterion: spec.criterion.clone(),
        holds: holds.filter(|_| !spec.checks.is_empty()),
        holds_at: None,
        measured,
    }
}

/// A check's metric in one scenario: of the flow that it names, or as in a published cell.
fn measure_check(
    runs: &[RunResult],
    scenario: &str,
    condition: Option<&str>,
    controller: &str,
    check: &Check,
) -> Option<Stat> {
    match (&check.flow, condition) {
        (Some(flow), Some(variant)) => {
            let all: Vec<&RunResult> = runs.iter().collect();
            Stat::of(&values(&all, scenario, variant, controller).of(Some(flow), &check.metric))
        }
        _ => measure(runs, scenario, condition, controller, &check.metric),
    }
}
