//! Scenarios, controllers and budgets of a file, looked up: what is run, what is read from it, and what is asked of that.

use super::applied::{self, Applied, Column, Number};
use super::budget::{Bound, Than};
use super::file::{At, GateFile, Of, Suite};
use super::metrics::{self, Kind};
use super::sprt::Sprt;
use crate::rfc::{self, SUITES};
use crate::rows::{self, Better, Reading, Row};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use weir_cc::Registry;
use weir_lab::results::RunResult;
use weir_lab::scenario::{InputError, Scenario, ScenarioFile, builtin_scenarios, split_parameters, suggest};

/// Most budgets of a file, each counted for each controller and scenario.
const MAX_CHECKS: usize = 10_000;

/// All that a gate runs and asks.
#[derive(Debug)]
pub struct Plan<'a> {
    pub(super) file: &'a GateFile,
    pub(super) conditions: Vec<Condition>,
    pub(super) places: Vec<Place>,
    pub(super) asked: Vec<Asked>,
    pub(super) sprt: Sprt,
}

/// A scenario of a suite, and the numbers that are read from its runs.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) suite: String,
    /// The scenario with its variant, or the row.
    pub(super) name: String,
    reads: Reads,
    pub(super) columns: Vec<Column>,
}

#[derive(Debug)]
enum Reads {
    Scenario,
    Row(Row),
    Case,
}

/// A controller in a condition.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) condition: usize,
    /// As the file has it.
    pub(super) controller: String,
    /// The same without parameters, as flows of results have it.
    plain: String,
    pub(super) scenario: Scenario,
}

/// Whom a value is compared with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Other {
    None,
    Baseline,
    Place(usize),
}

/// A budget of one place.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) place: usize,
    pub(super) column: usize,
    pub(super) bound: Bound,
    pub(super) better: Better,
    pub(super) other: Other,
    pub(super) text: String,
    pub(super) unit: &'static str,
    pub(super) line: usize,
}

impl<'a> Plan<'a> {
    /// Looks up all that a file names.
    ///
    /// # Errors
    /// A scenario, row, controller, parameter, flow or metric that does not exist, at its place in the file; too few runs for any
    /// budget to pass.
    pub fn new(file: &'a GateFile, registry: &Registry) -> Result<Self, InputError> {
        for name in file.named() {
            if let Err(e) = registry.find(split_parameters(name, registry).0) {
                let error = file.at_name(name, &e.to_string(), "weir show controllers");
                return Err(suggest::controller(error, &e, registry, &[]));
            }
        }
        let mut plan = Self {
            file,
            conditions: Vec::new(),
            places: Vec::new(),
            asked: Vec::new(),
            sprt: Sprt::new(file.error, 1),
        };
        for suite in &file.suites {
            plan.add(suite, registry)?;
        }
        let count = plan.asked.len();
        plan.sprt = Sprt::new(file.error, count);
        let needed = plan.sprt.hits_to_pass();
        if needed > file.runs {
            let message = format!(
                "{} seeds decide nothing: {count} budgets with the error {} need {needed} seeds at least",
                file.runs, file.error
            );
            let help = format!("runs = {needed} or more; twice as many leave room for a seed that misses");
            return Err(file.fault(file.runs_at.clone(), "runs", message, help));
        }
        Ok(plan)
    }

    /// Budgets, each counted for each controller and scenario.
    pub fn budgets(&self) -> usize {
        self.asked.len()
    }

    /// Numbers of a run, in the order of its condition's columns. `None` for a run without series.
    pub(super) fn read(&self, place: &Place, run: &RunResult) -> Option<Vec<Option<f64>>> {
        let condition = &self.conditions[place.condition];
        let reading = Reading::of(run)?;
        let phases = match condition.reads {
            Reads::Case => rfc::judge(&place.scenario, run, None)?,
            _ => Vec::new(),
        };
        let one = |column: &Column| match (&column.metric, &condition.reads) {
            (Number::Row(at), Reads::Row(row)) => row.metrics.get(*at)?.read(&reading),
            // A case without a phase that can be judged is not passed.
            (Number::Failed, _) if phases.is_empty() => None,
            (Number::Failed, _) => Some(phases.iter().filter(|p| !p.passed).count() as f64),
            (Number::Named(name), Reads::Case) => metrics::of_phases(&phases, name, column.better),
            (Number::Named(name), _) => metrics::of_run(run, name, column.flow.as_deref(), &place.plain, column.better),
            (Number::Row(_), _) => None,
        };
        Some(condition.columns.iter().map(|c| one(c).filter(|v| v.is_finite())).collect())
    }

    fn add(&mut self, suite: &Suite, registry: &Registry) -> Result<(), InputError> {
        let file = self.file;
        let before = self.asked.len();
        match &suite.of {
            Of::Scenario(at) => {
                let path = file.path(&at.text);
                let is_file = Path::new(&path).exists() || at.text.ends_with(".toml");
                let is_name = builtin_scenarios().any(|s| s.0 == at.text || s.0.rsplit('/').next() == Some(&*at.text));
                let open = if is_name || !is_file {
                    ScenarioFile::builtin(&at.text, registry)
                } else {
                    ScenarioFile::open(&path, registry)
                };
                let field = format!("{}.scenario", suite.field);
                let scenario = open.map_err(|e| self.wrapped(e, at.span.clone(), &field))?;
                self.scenario(suite, &at.text, &scenario, at.span.clone(), Kind::Scenario, registry)?;
            }
            Of::Rows(words) => {
                for row in self.rows(words, suite)? {
                    self.row(suite, row, registry)?;
                }
                self.all_are_used(suite)?;
            }
            Of::Rfc8867(span) => {
                for name in SUITES[0].cases {
                    let case = ScenarioFile::builtin(name, registry)?;
                    self.scenario(suite, name, &case, span.clone(), Kind::Case, registry)?;
                }
            }
        }
        if self.asked.len() == before {
            let message = "none of the controllers has a budget to keep here";
            let help = "name a scenario that is for these controllers; none is compared with itself";
            return Err(file.fault(suite.span(), &suite.field, message, help));
        }
        if self.asked.len() > MAX_CHECKS {
            let message = format!("more than {MAX_CHECKS} budgets over all controllers and scenarios");
            return Err(file.fault(suite.span(), &suite.field, message, "make two files of this one"));
        }
        Ok(())
    }

    /// An error about a file that the gate's file names: at its own place where it has one, else where it is named.
    fn wrapped(&self, e: InputError, span: Range<usize>, field: &str) -> InputError {
        if e.position().is_some() {
            return e;
        }
        let help = e.help_text().unwrap_or("`weir show scenarios` shows the built-in ones").to_owned();
        self.file.fault(span, field, format!("{}: {}", e.file(), e.message()), help)
    }

    fn rows(&self, words: &[At], suite: &Suite) -> Result<Vec<Row>, InputError> {
        let all = rows::rows();
        if let Some(unknown) = words.iter().find(|w| !all.iter().any(|r| r.is_asked(&w.text))) {
            let known: Vec<&str> = all.iter().map(|r| r.key.as_str()).collect();
            let message = format!("no row is named `{}`", unknown.text);
            let help = format!("rows: {}", known.join(", "));
            return Err(self.file.fault(unknown.span.clone(), &format!("{}.rows", suite.field), message, help));
        }
        Ok(all.into_iter().filter(|r| words.iter().any(|w| r.is_asked(&w.text))).collect())
    }

    /// Each variant of a scenario with the budgets of a suite.
    fn scenario(
        &mut self,
        suite: &Suite,
        name: &str,
        scenario: &ScenarioFile,
        at: Range<usize>,
        kind: Kind,
        registry: &Registry,
    ) -> Result<(), InputError> {
        if scenario.controllers().is_empty() {
            let message = format!("`{name}` names its controllers itself");
            let help = "write controller = \"$controller\" in the flows that are judged";
            return Err(self.file.fault(at, &suite.field, message, help));
        }
        let first = self.conditions.len();
        for variant in scenario.variants() {
            let name = variant.map_or_else(|| name.to_owned(), |v| format!("{name} [{v}]"));
            let reads = if kind == Kind::Case { Reads::Case } else { Reads::Scenario };
            self.conditions.push(Condition { suite: suite.name.clone(), name, reads, columns: Vec::new() });
        }
        let names: Vec<String> = self.judged_and_compared(suite);
        let mut flows: Vec<String> = Vec::new();
        for controller in &names {
            let all = rows::variants(scenario, controller, registry).map_err(|e| self.of_controller(e, controller))?;
            flows = all.iter().flat_map(|s| s.flows.iter().map(|f| f.name.clone())).collect();
            let plain = split_parameters(controller, registry).0.to_owned();
            for (i, scenario) in all.into_iter().enumerate() {
                let (controller, plain) = (controller.clone(), plain.clone());
                self.places.push(Place { condition: first + i, controller, plain, scenario });
            }
        }
        let mut applied = Vec::new();
        for (i, (text, budget)) in suite.budgets.iter().enumerate() {
            let field = format!("{}.budgets[{i}]", suite.field);
            applied.push(applied::of_values(self.file, text, budget, kind, &flows, field)?);
        }
        if applied.is_empty() {
            applied.push(applied::criteria(at, suite));
        }
        for condition in first..self.conditions.len() {
            for budget in &applied {
                self.ask(condition, budget)?;
            }
        }
        Ok(())
    }

    /// A row with the budgets of a suite that are for it, or its own goals.
    fn row(&mut self, suite: &Suite, row: Row, registry: &Registry) -> Result<(), InputError> {
        let condition = self.conditions.len();
        let only = row.only;
        let applied = applied::of_row(&row, suite);
        for controller in self.judged_and_compared(suite) {
            let plain = split_parameters(&controller, registry).0.to_owned();
            if only.is_some_and(|only| !only.contains(&plain.as_str())) {
                continue;
            }
            let scenario =
                rows::scenario(&row, &controller, registry).map_err(|e| self.of_controller(e, &controller))?;
            self.places.push(Place { condition, controller, plain, scenario });
        }
        let name = format!("row {}", row.key);
        self.conditions.push(Condition {
            suite: suite.name.clone(),
            name,
            reads: Reads::Row(row),
            columns: Vec::new(),
        });
        applied.iter().try_for_each(|budget| self.ask(condition, budget))
    }

    /// Each budget of a suite of rows has to be for one of them.
    fn all_are_used(&self, suite: &Suite) -> Result<(), InputError> {
        let rows = self.conditions.iter().filter(|c| c.suite == suite.name).filter_map(|c| match &c.reads {
            Reads::Row(row) => Some(row),
            _ => None,
        });
        let rows: Vec<&Row> = rows.collect();
        for (i, (text, budget)) in suite.budgets.iter().enumerate() {
            let is_of = |r: &&&Row| budget.of.as_ref().is_none_or(|of| *of == r.key);
            let has = |r: &&Row| r.metrics.iter().any(|m| m.label == budget.metric);
            if rows.iter().filter(is_of).any(has) {
                continue;
            }
            let known: Vec<&str> = rows.iter().flat_map(|r| r.metrics.iter().map(|m| m.label.as_str())).collect();
            let of = budget.of.as_ref().map_or_else(String::new, |of| format!(" of the row `{of}`"));
            let message = format!("none of these rows has a metric `{}`{of}", budget.metric);
            let field = format!("{}.budgets[{i}]", suite.field);
            return Err(self.file.fault(text.span.clone(), &field, message, suggest::help(&budget.metric, &known)));
        }
        Ok(())
    }

    /// The controllers judged, then those that budgets of a suite compare with.
    fn judged_and_compared(&self, suite: &Suite) -> Vec<String> {
        let mut names: Vec<String> = self.file.controllers().map(str::to_owned).collect();
        for (_, budget) in &suite.budgets {
            if let Bound::NoWorse { than: Than::Controller(name), .. } = &budget.bound
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        names
    }

    fn of_controller(&self, e: InputError, controller: &str) -> InputError {
        let help = e.help_text().unwrap_or("weir show controllers --params").to_owned();
        self.file.at_name(controller, e.message(), &help)
    }

    /// Asks a budget of every controller judged in a condition.
    fn ask(&mut self, condition: usize, budget: &Applied) -> Result<(), InputError> {
        let columns = &mut self.conditions[condition].columns;
        let column = columns.iter().position(|c| *c == budget.column).unwrap_or(columns.len());
        if column == columns.len() {
            columns.push(budget.column.clone());
        }
        let here: BTreeMap<&str, usize> = (self.places.iter().enumerate())
            .filter(|(_, p)| p.condition == condition)
            .map(|(i, p)| (p.controller.as_str(), i))
            .collect();
        for controller in self.file.controllers() {
            let Some(&place) = here.get(controller) else { continue };
            let other = match &budget.than {
                None => Other::None,
                Some(Than::Baseline) => Other::Baseline,
                Some(Than::Controller(name)) if name == controller => continue,
                Some(Than::Controller(name)) => match here.get(name.as_str()) {
                    Some(&other) => Other::Place(other),
                    None => {
                        let message = format!("`{name}` does not run in {}", self.conditions[condition].name);
                        let help = "compare with a controller that does, or give the suite other rows";
                        return Err(self.file.fault(budget.at.clone(), &budget.field, message, help));
                    }
                },
            };
            self.asked.push(Asked {
                place,
                column,
                bound: budget.bound.clone(),
                better: budget.better,
                other,
                text: budget.text.clone(),
                unit: budget.unit,
                line: self.file.line(&budget.at),
            });
        }
        Ok(())
    }
}
