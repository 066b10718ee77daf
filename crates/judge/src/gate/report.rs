//! The answer of a gate: a verdict for each budget, with the values that it rests on.

use super::sprt::Verdict;
use serde::Serialize;

/// A gate's answer. The same file, seed and controllers give the same bytes on every run, unless time or a stop ends the runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "GateReport"))]
pub struct Report {
    /// The gate's file.
    pub file: String,
    /// Of all budgets: fails if one does, undecided if one is and none fails.
    pub verdict: Verdict,
    /// The controllers judged.
    pub controllers: Vec<String>,
    /// The first seed.
    pub seed: u64,
    /// Most seeds of each controller in each scenario.
    pub runs: u32,
    /// Accepted probability of a wrong verdict, over all budgets.
    pub error: f64,
    /// The same of each budget: `error` over their number.
    pub error_of_each: f64,
    /// Runs made.
    pub made: u64,
    /// Why runs ended before every budget was decided or had all its seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// The budgets, in the order of the file, each for each controller and scenario.
    pub checks: Vec<Check>,
}

/// Reason for which runs ended early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", schemars(rename = "GateEnded"))]
pub enum Ended {
    /// The file's time was over.
    Time,
    /// Ctrl-C or SIGTERM.
    Stopped,
}

/// A budget of one controller in one scenario.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "GateCheck"))]
pub struct Check {
    /// The suite's name.
    pub suite: String,
    /// The scenario with its variant, or the row.
    pub scenario: String,
    /// The controller judged.
    pub controller: String,
    /// The budget.
    pub budget: String,
    /// Its line in the gate's file, from 1.
    pub line: usize,
    /// The metric's unit where the row has one; of other metrics the name has it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Seeds that met the budget, up to the verdict.
    pub hits: u32,
    /// Seeds that did not.
    pub misses: u32,
    /// Values of these seeds, from the first seed on; null for "never".
    pub values: Vec<Option<f64>>,
    /// Median of the values; null for "never", of which there is more than any number, and where there is no value.
    pub median: Option<f64>,
    /// Values of the same seeds that these are compared with, of a budget that compares.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<Option<f64>>,
    /// Median of those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub median_of_others: Option<f64>,
    /// The seed that missed the budget by most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst_seed: Option<u64>,
    /// Why there is no result: a program that died, a scenario that cannot run. The budget fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// Why it is undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The longest of the worst seed's episodes in words, of a budget that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// File of the plot of the worst seed, beside that of `--markdown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plot: Option<String>,
}

impl Check {
    /// Where and of whom it is.
    pub fn title(&self) -> String {
        format!("{}, {}: {}", self.scenario, self.controller, self.budget)
    }

    /// The measured values in words.
    pub fn measured(&self) -> String {
        if self.values.is_empty() {
            return "no seed was run".into();
        }
        if self.values.iter().all(Option::is_none) {
            let seeds = self.values.len();
            return format!(
                "no value in {seeds} seeds: it was never reached, or the scenario's flows have no such number"
            );
        }
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        let median = |m: Option<f64>| m.map_or_else(|| "never".into(), |m| format!("{}{unit}", digits(Some(m))));
        let beside =
            if self.others.is_empty() { String::new() } else { format!(" beside {}", median(self.median_of_others)) };
        let seeds = self.hits + self.misses;
        format!("median {}{beside}, {} of {seeds} seeds keep it", median(self.median), self.hits)
    }

    /// The verdict in one sentence.
    pub fn sentence(&self) -> String {
        let reason = self.broken.as_ref().or(self.note.as_ref());
        match reason {
            Some(reason) => format!("{} {}: {reason}", self.title(), self.verdict.said()),
            None => format!("{} {}: {}", self.title(), self.verdict.said(), self.measured()),
        }
    }
}

impl Report {
    /// How many budgets have a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.checks.iter().filter(|c| c.verdict == verdict).count()
    }

    /// The verdict over these budgets.
    pub(super) fn over(checks: &[Check]) -> Verdict {
        let has = |verdict| checks.iter().any(|c| c.verdict == verdict);
        match (has(Verdict::Fails), has(Verdict::Undecided)) {
            (true, _) => Verdict::Fails,
            (false, true) => Verdict::Undecided,
            (false, false) => Verdict::Passes,
        }
    }

    /// The verdicts and their numbers in one line.
    pub fn summary(&self) -> String {
        let [passes, fails, undecided] =
            [Verdict::Passes, Verdict::Fails, Verdict::Undecided].map(|verdict| self.count(verdict));
        let all = self.checks.len();
        let ended = match self.ended {
            None => "",
            Some(Ended::Time) => "; the file's time ended the runs: more of it, or fewer scenarios, decide more",
            Some(Ended::Stopped) => "; the runs were stopped",
        };
        let said = self.verdict.said();
        format!("the gate {said}: {passes} of {all} budgets pass, {fails} fail, {undecided} are undecided{ended}")
    }
}

/// A value in three digits or so, small ones too; `None` is "never".
pub fn digits(value: Option<f64>) -> String {
    let Some(v) = value else { return "never".into() };
    match v.abs() {
        0.0 => "0".into(),
        a if a >= 100.0 => format!("{v:.0}"),
        a if a >= 10.0 => format!("{v:.1}"),
        a if a >= 1.0 => format!("{v:.2}"),
        a if a >= 0.001 => format!("{v:.3}"),
        _ => format!("{v:.1e}"),
    }
}

/// Median; "never" is more than any number, and the upper one of two in the middle decides.
pub(super) fn median(values: &[Option<f64>]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().map(|v| v.unwrap_or(f64::INFINITY)).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().filter(|v| v.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_have_digits_too() {
        let shown = [0.0, 0.0123, 0.00012, -0.5, 1.234, 12.34, 123.4, 1.5e6].map(|v| digits(Some(v)));
        assert_eq!(shown, ["0", "0.012", "1.2e-4", "-0.500", "1.23", "12.3", "123", "1500000"]);
        assert_eq!(digits(None), "never");
    }

    #[test]
    fn a_median_of_never_is_never() {
        assert_eq!(median(&[Some(3.0), Some(1.0), Some(2.0)]), Some(2.0));
        assert_eq!(median(&[Some(3.0), None, Some(2.0)]), Some(3.0));
        assert_eq!(median(&[Some(3.0), None]), None);
        assert_eq!(median(&[]), None);
    }
}
