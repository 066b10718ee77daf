//! The judgement as one HTML file without external resources: cases beside controllers, then every number.

use super::limit::{Against, Bounds};
use super::report::{CaseReport, LimitReport, Report, Verdict};
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;
use std::path::Path;
use weir_report::atomic_write::write_atomically;
use weir_report::page::{ReportError, STYLE};

const TEMPLATE: &str = include_str!("../../assets/pathologies/page.html.j2");
/// Colours by choice, as on the scoreboard's page.
const SCRIPT: &str = include_str!("../../assets/scoreboard/page.js");
const OWN_STYLE: &str = include_str!("../../assets/scoreboard/page.css");

/// A report, and what its page says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The numbers.
    pub report: &'a Report,
    /// The command that makes them again.
    pub command: &'a str,
}

/// A cell of either kind of table.
#[derive(Serialize)]
struct Cell {
    text: String,
    /// Details, shown where one points at it.
    note: String,
    kept: bool,
    /// Whether the controller has bounds of its own.
    own: bool,
}

/// A limit in one variant.
#[derive(Serialize)]
struct Line {
    variant: String,
    quantity: String,
    bounds: String,
    cells: Vec<Option<Cell>>,
}

/// A case with all of its numbers.
#[derive(Serialize)]
struct Section {
    case: String,
    title: String,
    controllers: Vec<String>,
    lines: Vec<Line>,
    /// Controllers with bounds of their own, those bounds and their reason.
    exceptions: Vec<[String; 3]>,
}

/// A case in the table of all.
#[derive(Serialize)]
struct Row {
    case: String,
    title: String,
    cells: Vec<Option<Cell>>,
}

/// Writes the page, completely or not at all. Errors: the file cannot be written.
pub fn write(page: &Page<'_>, path: &Path) -> Result<(), ReportError> {
    let html = render(page)?;
    write_atomically(path, |out| out.write_all(html.as_bytes()))
        .map_err(|source| ReportError::Write { path: path.display().to_string(), source })
}

pub(super) fn render(page: &Page<'_>) -> Result<String, ReportError> {
    let report = page.report;
    let mut env = Environment::new();
    env.set_auto_escape_callback(|_| AutoEscape::Html);
    env.add_template("pathologies", TEMPLATE)?;
    let judged = report.judged();
    let [limits, kept, own] = report.tally(None);
    let html = env.get_template("pathologies")?.render(context! {
        command => page.command,
        version => env!("CARGO_PKG_VERSION"),
        controllers => judged.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>(),
        runs => report.runs(),
        limits,
        kept,
        own,
        undone => report.undone,
        failed => &report.failed,
        rows => Serde(report.cases.iter().map(|c| row(c, &judged)).collect::<Vec<_>>()),
        sections => Serde(report.cases.iter().map(|c| section(c, &judged)).collect::<Vec<_>>()),
        style => STYLE,
        own_style => OWN_STYLE,
        script => SCRIPT,
    })?;
    Ok(html)
}

fn row(case: &CaseReport, judged: &[&str]) -> Row {
    let cell = |c: &&str| {
        let [all, kept, own] = case.tally(Some(c));
        let note = if own > 0 { format!("{own} by bounds of its own") } else { String::new() };
        (all > 0).then(|| Cell { text: format!("{kept} of {all}"), note, kept: kept == all, own: own > 0 })
    };
    Row { case: case.case.clone(), title: case.title.clone(), cells: judged.iter().map(cell).collect() }
}

fn section(case: &CaseReport, judged: &[&str]) -> Section {
    let controllers: Vec<&str> = judged.iter().copied().filter(|c| case.tally(Some(c))[0] > 0).collect();
    let mut exceptions = Vec::new();
    for (limit, verdict) in case.verdicts() {
        if let Some((bounds, reason)) = verdict.own.zip(verdict.reason.as_ref()) {
            let what = format!("{} ({})", bounds.text(limit.against, &limit.unit), limit.quantity);
            let line = [verdict.controller.clone(), what, reason.clone()];
            if !exceptions.contains(&line) {
                exceptions.push(line);
            }
        }
    }
    let line = |limit: &LimitReport| Line {
        variant: limit.variant.clone(),
        quantity: limit.quantity.clone(),
        bounds: limit.bounds.text(limit.against, &limit.unit),
        cells: controllers
            .iter()
            .map(|c| limit.verdicts.iter().find(|v| v.controller == *c).map(|v| cell(limit, v)))
            .collect(),
    };
    Section {
        case: case.case.clone(),
        title: case.title.clone(),
        lines: case.limits.iter().map(line).collect(),
        controllers: controllers.into_iter().map(str::to_owned).collect(),
        exceptions,
    }
}

fn cell(limit: &LimitReport, verdict: &Verdict) -> Cell {
    let beside = verdict.value.zip(verdict.undisturbed);
    let mut note = beside.map_or_else(String::new, |(value, undisturbed)| {
        format!("{} {}, {} undisturbed", shown(value), limit.unit, shown(undisturbed))
    });
    if let (Some(own), Some(reason)) = (verdict.own, &verdict.reason) {
        let gap = if note.is_empty() { "" } else { "; " };
        note += &format!("{gap}its own bounds, {}: {reason}", own.text(limit.against, &limit.unit));
    }
    Cell {
        text: verdict.compared.map_or_else(|| "none".into(), shown),
        note,
        kept: verdict.kept,
        own: verdict.own.is_some(),
    }
}

/// A number in three digits or so.
fn shown(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 || v == libm::round(v) => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

impl Bounds {
    /// In words, as "at least 0.9 of undisturbed"; `unit` may be empty.
    pub fn text(&self, against: Against, unit: &str) -> String {
        let (unit, tail) = match against {
            Against::Itself => (unit, ""),
            Against::Share => ("", " of undisturbed"),
            Against::More => (unit, " more than undisturbed"),
        };
        let gap = if unit.is_empty() { "" } else { " " };
        let range = match (self.low, self.high) {
            (Some(low), Some(high)) => format!("{} to {}", shown(low), shown(high)),
            (Some(low), None) => format!("at least {}", shown(low)),
            (None, Some(high)) => format!("at most {}", shown(high)),
            (None, None) => "any".into(),
        };
        format!("{range}{gap}{unit}{tail}")
    }
}

impl Verdict {
    /// The number as it is compared, with the numbers behind it, as "0.31 (610 of 1,950 kbit/s)"; `unit` may be empty.
    pub fn text(&self, against: Against, unit: &str) -> String {
        let Some(compared) = self.compared else { return "none".into() };
        let gap = if unit.is_empty() { "" } else { " " };
        match (against, self.value.zip(self.undisturbed)) {
            (Against::Share, Some((v, u))) => format!("{} ({} of {}{gap}{unit})", shown(compared), shown(v), shown(u)),
            (Against::More, Some((v, u))) => format!("{} ({} less {}{gap}{unit})", shown(compared), shown(v), shown(u)),
            _ => format!("{}{gap}{unit}", shown(compared)),
        }
    }
}
