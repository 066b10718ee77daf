//! The report: one HTML file that needs nothing beside it.
//!
//! Plots are drawn in the browser by uPlot, which stands in the file with its licence; tables are plain HTML, so that the
//! numbers are there for a reader without scripts too. Light and dark follow the system or a switch; every line differs
//! from the others by its dashes as well as by its colour.

mod charts;
mod streams;
mod tables;

use crate::measure::compare::Outcome;
use crate::measure::results::{Aggregate, RunResult, aggregate};
use crate::publish::atomic_write::write_atomically;
use crate::publish::reproduce::Reproduction;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;
use std::io;
use std::path::Path;

const TEMPLATE: &str = include_str!("../../../assets/report.html.j2");
const STYLE: &str = include_str!("../../../assets/report.css");
const SCRIPT: &str = include_str!("../../../assets/report.js");
const UPLOT_SCRIPT: &str = include_str!("../../../assets/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../../../assets/uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("../../../assets/uplot/LICENSE");

/// Most points of a plotted line.
pub const MAX_POINTS: usize = 2_000;
/// Bytes that all plotted lines together may take, so that the file stays below 3 MB.
const DATA_BUDGET: usize = 2_400_000;

/// What one controller gave in one scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct ControllerRuns {
    /// The run that is plotted; without series it has tables only.
    pub shown: RunResult,
    /// All runs joined.
    pub aggregate: Aggregate,
}

impl ControllerRuns {
    /// Joins runs that differ by seed only and shows the first; `None` of no runs.
    pub fn new(runs: Vec<RunResult>) -> Option<Self> {
        let aggregate = aggregate(&runs)?;
        Some(Self { shown: runs.into_iter().next()?, aggregate })
    }
}

/// One scenario, or one variant of it, under several controllers.
#[derive(Clone, PartialEq, Debug)]
pub struct ScenarioReport {
    /// Heading.
    pub title: String,
    /// What the scenario shows, in plain text; blank lines part paragraphs.
    pub doc: String,
    /// The controllers, in the order of the tables.
    pub controllers: Vec<ControllerRuns>,
}

/// One section for each scenario and variant that has a finished run, in the order of the plan.
pub fn sections(outcome: &Outcome) -> Vec<ScenarioReport> {
    let mut sections: Vec<((&str, Option<&str>), ScenarioReport)> = Vec::new();
    for (scenario, runs) in outcome.groups() {
        let Some(controller) = ControllerRuns::new(runs.to_vec()) else { continue };
        let key = (scenario.name.as_str(), scenario.variant.as_deref());
        match sections.iter_mut().find(|s| s.0 == key) {
            Some((_, section)) => section.controllers.push(controller),
            None => {
                let variant = key.1.map(|v| format!(" [{v}]")).unwrap_or_default();
                let section = ScenarioReport {
                    title: format!("{}{variant}", scenario.title),
                    doc: scenario.doc.clone(),
                    controllers: vec![controller],
                };
                sections.push((key, section));
            }
        }
    }
    sections.into_iter().map(|s| s.1).collect()
}

/// Everything that a report shows.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// Heading of the whole.
    pub title: String,
    /// One or two sentences below it.
    pub summary: String,
    /// The command that makes this report again.
    pub command: String,
    /// A paper's numbers beside the measured ones.
    pub reproduction: Option<Reproduction>,
    /// The scenarios.
    pub scenarios: Vec<ScenarioReport>,
}

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The template failed: a bug of ours.
    #[error("cannot fill the report's template: {0:#}")]
    Template(#[from] minijinja::Error),
    /// The plots' data did not serialise: a bug of ours.
    #[error("cannot write the plots' data: {0}")]
    Data(#[from] serde_json::Error),
    /// The file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// What went wrong.
        source: io::Error,
    },
}

#[derive(Serialize)]
struct Section {
    id: String,
    title: String,
    paragraphs: Vec<String>,
    facts: Vec<(String, String)>,
    tables: Vec<tables::Table>,
    has_charts: bool,
}

fn scenario_tables(s: &ScenarioReport, controllers: &[String]) -> Vec<tables::Table> {
    let mut all = tables::scenario(s, controllers);
    all.extend(streams::table(s, |name| controllers.iter().position(|n| n == name)));
    all
}

/// The report as HTML.
pub fn render(report: &Report) -> Result<String, ReportError> {
    let controllers = controller_names(report);
    let lines: usize = report.scenarios.iter().map(charts::line_count).sum();
    // A number takes about five bytes with its comma.
    let points = (DATA_BUDGET / 5 / lines.max(1)).clamp(150, MAX_POINTS);
    let (mut sections, mut plots) = (Vec::new(), Vec::new());
    for (i, s) in report.scenarios.iter().enumerate() {
        let mut charts = charts::section(s, &controllers, points);
        charts.add(
            "Streams of each call",
            s.controllers.iter().flat_map(|c| streams::charts(&c.shown, points)).collect(),
        );
        sections.push(Section {
            id: format!("s{i}"),
            title: s.title.clone(),
            paragraphs: paragraphs(&s.doc),
            facts: tables::facts(s),
            tables: scenario_tables(s, &controllers),
            has_charts: !charts.groups.is_empty(),
        });
        plots.push(charts);
    }
    // "</" would end the script element that holds the data.
    let data = serde_json::to_string(&plots)?.replace("</", "<\\/");
    let mut env = Environment::new();
    env.set_auto_escape_callback(|_| AutoEscape::Html);
    env.add_template("report", TEMPLATE)?;
    let html = env.get_template("report")?.render(context! {
        title => report.title.clone(),
        summary => paragraphs(&report.summary),
        command => report.command.clone(),
        version => env!("CARGO_PKG_VERSION"),
        overview => Serde(tables::overview(report, &controllers)),
        published => Serde(report.reproduction.as_ref().map(tables::published)),
        sections => Serde(sections),
        style => STYLE,
        script => SCRIPT,
        uplot_script => UPLOT_SCRIPT,
        uplot_style => UPLOT_STYLE,
        uplot_licence => UPLOT_LICENCE,
        data,
    })?;
    Ok(html)
}

/// Renders the report into a file, which comes into being whole.
pub fn write(report: &Report, path: &Path) -> Result<(), ReportError> {
    let html = render(report)?;
    write_atomically(path, |out| out.write_all(html.as_bytes()))
        .map_err(|source| ReportError::Write { path: path.display().to_string(), source })
}

/// The controllers of all scenarios, each with one line style throughout.
fn controller_names(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for c in report.scenarios.iter().flat_map(|s| &s.controllers) {
        if !names.contains(&c.shown.controller) {
            names.push(c.shown.controller.clone());
        }
    }
    names
}

fn paragraphs(text: &str) -> Vec<String> {
    text.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|p| !p.is_empty()).collect()
}
