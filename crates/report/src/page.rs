//! The report: one HTML file without external resources.
//!
//! uPlot, which the file contains with its licence, draws plots in the browser; tables are plain HTML, so that the numbers can
//! be read without scripts. Light and dark follow the system or a switch; lines differ by dashes as well as by colour.
//!
//! The report's plots over time are uPlot's, all else is Observable Plot's: uPlot zooms and follows the pointer across
//! plots of thousands of points; Plot draws SVG, so also what the page saves as SVG and PNG. `crates/report/assets/page/`
//! is the page's script, `assets/plot/` says how Plot's file is made. Every run keeps an `Outline` (rows of a second,
//! quantiles) for bands and distributions; series are kept for one.

mod charts;
mod command;
mod contenders;
mod document;
mod paths;
mod published;
mod rates;
mod runs_csv;
mod seeds;
mod streams;
mod tables;

pub use command::shell_word;
pub use document::{Document, DocumentChart, DocumentLine, DocumentSection, DocumentTable, render_document};

use crate::atomic_write::write_atomically;
use crate::published::Reproduction;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;
use std::io;
use std::path::Path;
use weir_lab::compare::{Outcome, ScenarioText};
use weir_lab::results::{Aggregate, OUTLINE_QUANTILES, RunResult, aggregate};
use weir_lab::scenario::{Scenario, differing_limits};

const TEMPLATE: &str = include_str!("../assets/report.html.j2");
/// The style of all pages.
pub const STYLE: &str = include_str!("../assets/report.css");
/// The page's own script; each part uses only those before it.
const SCRIPTS: [&str; 6] = [
    include_str!("../assets/page/base.js"),
    include_str!("../assets/page/save.js"),
    include_str!("../assets/page/ranking.js"),
    include_str!("../assets/page/over_time.js"),
    include_str!("../assets/page/distributions.js"),
    include_str!("../assets/page/start.js"),
];
const UPLOT_SCRIPT: &str = include_str!("../assets/uplot/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../assets/uplot/uPlot.min.css");
const UPLOT_LICENCE: &str = include_str!("../assets/uplot/LICENSE");
const PLOT_SCRIPT: &str = include_str!("../assets/plot/plot.iife.min.js");
const PLOT_LICENCE: &str = include_str!("../assets/plot/LICENSE");

/// Maximum points of a plotted line.
pub const MAX_POINTS: usize = 2_000;
/// Maximum bytes of the lines of all plotted runs, so that the file stays below 3 MB.
const DATA_BUDGET: usize = 1_100_000;
/// Maximum bytes of the lines of all runs.
const RUNS_BUDGET: usize = 1_200_000;
/// Largest scenario file that a page contains.
const MAX_SCENARIO: usize = 64 << 10;

/// The results of one controller in one scenario.
#[derive(Clone, PartialEq, Debug)]
pub struct ControllerRuns {
    /// The run that is plotted completely; without series it has tables only.
    pub shown: RunResult,
    /// The others, by seed.
    pub others: Vec<RunResult>,
    /// Statistics over all runs.
    pub aggregate: Aggregate,
}

impl ControllerRuns {
    /// Combines runs that differ only by seed, and shows the first; `None` without runs.
    pub fn new(runs: Vec<RunResult>) -> Option<Self> {
        let aggregate = aggregate(&runs)?;
        let mut runs = runs.into_iter();
        Some(Self { shown: runs.next()?, others: runs.collect(), aggregate })
    }

    /// All runs, beginning with the one shown.
    pub fn runs(&self) -> impl Iterator<Item = &RunResult> {
        std::iter::once(&self.shown).chain(&self.others)
    }
}

/// One scenario, or one variant of it, under several controllers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScenarioReport {
    /// Heading.
    pub title: String,
    /// The scenario's purpose, in plain text; blank lines separate paragraphs.
    pub doc: String,
    /// The bounds of the rate by controller, if they differ.
    pub limits: Option<String>,
    /// The controllers, in the order of the tables.
    pub controllers: Vec<ControllerRuns>,
    /// The scenario's file, if it is known.
    pub source: Option<ScenarioText>,
    /// The command that repeats these runs; empty if it is unknown.
    pub command: String,
}

/// Name and variant of a scenario, its section, and each controller's own scenario.
type Group<'a> = ((&'a str, Option<&'a str>), ScenarioReport, Vec<&'a Scenario>);

/// One section for each scenario and variant that has a finished run, in the order of the plan.
pub fn sections(outcome: &Outcome) -> Vec<ScenarioReport> {
    let mut sections: Vec<Group> = Vec::new();
    for (scenario, runs, aggregate) in outcome.groups() {
        let Some((shown, others)) = runs.split_first() else { continue };
        let controller = ControllerRuns { shown: shown.clone(), others: others.to_vec(), aggregate };
        let key = (scenario.name.as_str(), scenario.variant.as_deref());
        match sections.iter_mut().find(|s| s.0 == key) {
            Some((_, section, scenarios)) => {
                section.controllers.push(controller);
                scenarios.push(scenario);
            }
            None => {
                let variant = key.1.map(|v| format!(" [{v}]")).unwrap_or_default();
                let section = ScenarioReport {
                    title: format!("{}{variant}", scenario.title),
                    doc: scenario.doc.clone(),
                    limits: None,
                    controllers: vec![controller],
                    source: outcome.text_of(&scenario.name).cloned(),
                    command: command::repeat(outcome, &scenario.name),
                };
                sections.push((key, section, vec![scenario]));
            }
        }
    }
    let titles: Vec<String> = sections.iter().map(|s| s.1.title.clone()).collect();
    let with_limits = |((name, _), section, scenarios): Group<'_>| {
        // Scenarios of one title also show their names.
        let is_shared = titles.iter().filter(|t| **t == section.title).count() > 1;
        let title = if is_shared { format!("{} ({name})", section.title) } else { section.title };
        ScenarioReport { limits: differing_limits(scenarios), title, ..section }
    };
    sections.into_iter().map(with_limits).collect()
}

/// Runs that were stopped early.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped {
    /// Runs that finished.
    pub done: usize,
    /// Runs that were requested.
    pub asked: usize,
}

/// The contents of a report.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// Heading.
    pub title: String,
    /// One or two sentences below it.
    pub summary: String,
    /// The command that repeats this report.
    pub command: String,
    /// Set if not all runs were made.
    pub stopped: Option<Stopped>,
    /// A paper's numbers with the measured ones.
    pub reproduction: Option<Reproduction>,
    /// The scenarios.
    pub scenarios: Vec<ScenarioReport>,
}

/// Why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The template failed, which is a bug of Weir.
    #[error("cannot fill the report's template: {0:#}")]
    Template(#[from] minijinja::Error),
    /// The plots' data did not serialise, which is a bug of Weir.
    #[error("cannot write the plots' data: {0}")]
    Data(#[from] serde_json::Error),
    /// The file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: String,
        /// The error.
        source: io::Error,
    },
}

#[derive(Serialize)]
struct Section {
    id: String,
    title: String,
    paragraphs: Vec<String>,
    facts: Vec<(String, String)>,
    command: String,
    /// Number of its scenario's file, and the file's name.
    file: Option<(usize, String)>,
    tables: Vec<tables::Table>,
    has_charts: bool,
}

/// A scenario's file in the page.
#[derive(Serialize, PartialEq)]
struct File {
    name: String,
    text: String,
    is_cut: bool,
}

/// The data of the page's script.
#[derive(Serialize, Default)]
struct PageData<'a> {
    quantities: &'a [contenders::Quantity],
    /// Cumulative shares at which distributions are given.
    shares: &'a [f64],
    contenders: Vec<contenders::Contender>,
    sections: Vec<SectionData>,
    /// All numbers of all runs.
    csv: Option<String>,
}

#[derive(Serialize)]
struct SectionData {
    title: String,
    /// Seeds of the runs, beginning with that of the plotted one.
    seeds: Vec<u64>,
    #[serde(flatten)]
    charts: charts::Charts,
    cdfs: Vec<seeds::Cdf>,
}

fn scenario_tables(s: &ScenarioReport, styles: &[String]) -> Vec<tables::Table> {
    let mut all = tables::scenario(s, styles);
    all.extend(streams::table(s, |name| styles.iter().position(|n| n == name)));
    all.extend(paths::tables(s, |name| styles.iter().position(|n| n == name)));
    all
}

/// Adds a scenario's file if it is missing, and returns its number.
fn add_file(files: &mut Vec<File>, source: &ScenarioText) -> (usize, String) {
    let end = (0..=MAX_SCENARIO.min(source.text.len())).rev().find(|&i| source.text.is_char_boundary(i)).unwrap_or(0);
    let last = source.argument.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = if last.ends_with(".toml") { last.to_owned() } else { format!("{last}.toml") };
    let file = File { name, text: source.text[..end].into(), is_cut: end < source.text.len() };
    let at = files.iter().position(|f| *f == file).unwrap_or_else(|| {
        files.push(file);
        files.len() - 1
    });
    (at, files[at].name.clone())
}

/// Seeds of a section's runs, each once, in the order of the runs.
fn seeds_of(s: &ScenarioReport) -> Vec<u64> {
    let mut seeds = Vec::new();
    for seed in s.controllers.iter().flat_map(|c| c.runs().map(|r| r.seed)) {
        if !seeds.contains(&seed) {
            seeds.push(seed);
        }
    }
    seeds
}

/// The report as HTML.
pub fn render(report: &Report) -> Result<String, ReportError> {
    let styles = style_names(report);
    let lines: usize = report.scenarios.iter().map(|s| charts::line_count(s) + rates::line_count(s)).sum();
    // A number has about five bytes with its comma.
    let points = (DATA_BUDGET / 5 / lines.max(1)).clamp(150, MAX_POINTS);
    let room = seeds::Room::new(&report.scenarios, RUNS_BUDGET);
    let layout = charts::Layout { styles: &styles, points, room };
    let (mut sections, mut data, mut ranked, mut files) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (i, s) in report.scenarios.iter().enumerate() {
        let mut charts = charts::section(s, layout);
        charts.add(
            "Streams of each call",
            s.controllers.iter().flat_map(|c| streams::charts(&c.shown, points)).collect(),
        );
        charts.add(
            "Paths of each call",
            s.controllers.iter().flat_map(|c| streams::path_charts(&c.shown, points)).collect(),
        );
        charts.add("Rates within the controllers", rates::charts(s, points));
        let cdfs = seeds::distributions(s, room, &styles);
        sections.push(Section {
            id: format!("s{i}"),
            title: s.title.clone(),
            paragraphs: paragraphs(&s.doc).into_iter().chain(s.limits.clone()).collect(),
            facts: tables::facts(s),
            command: s.command.clone(),
            file: s.source.as_ref().map(|source| add_file(&mut files, source)),
            tables: scenario_tables(s, &styles),
            has_charts: !charts.groups.is_empty() || !cdfs.is_empty(),
        });
        ranked.extend(contenders::of_section(i, s, &styles));
        data.push(SectionData { title: s.title.clone(), seeds: seeds_of(s), charts, cdfs });
    }
    let data = PageData {
        quantities: &contenders::QUANTITIES,
        shares: &OUTLINE_QUANTILES,
        contenders: ranked,
        sections: data,
        csv: runs_csv::table(&report.scenarios),
    };
    Page {
        title: &report.title,
        summary: &report.summary,
        command: &report.command,
        stopped: report.stopped,
        overview: tables::overview(report, &styles),
        published: report.reproduction.as_ref().map(published::view),
        sections,
        files,
        data,
        ..Page::default()
    }
    .render()
}

/// Values for the template.
#[derive(Default)]
struct Page<'a> {
    title: &'a str,
    summary: &'a str,
    command: &'a str,
    stopped: Option<Stopped>,
    overview: Option<tables::Table>,
    published: Option<published::PublishedView>,
    sections: Vec<Section>,
    files: Vec<File>,
    data: PageData<'a>,
    /// Terms and their meanings, instead of those of runs.
    notes: &'a [(String, String)],
}

impl Page<'_> {
    fn render(self) -> Result<String, ReportError> {
        let has_csv = self.data.csv.is_some();
        // "</" would end the script element that holds the data, and "<!--" would change how it is read.
        let data = serde_json::to_string(&self.data)?.replace("</", "<\\/").replace("<!--", "<\\u0021--");
        let mut env = Environment::new();
        env.set_auto_escape_callback(|_| AutoEscape::Html);
        env.add_filter("column_kinds", |rows: Vec<Vec<String>>| tables::column_kinds(&rows));
        env.add_template("report", TEMPLATE)?;
        let html = env.get_template("report")?.render(context! {
            title => self.title,
            summary => paragraphs(self.summary),
            command => self.command,
            stopped => self.stopped.map(|s| (s.done, s.asked)),
            version => env!("CARGO_PKG_VERSION"),
            overview => Serde(self.overview),
            published => Serde(self.published),
            sections => Serde(self.sections),
            files => Serde(self.files),
            notes => Serde(self.notes),
            has_csv,
            style => STYLE,
            script => SCRIPTS.concat(),
            uplot_script => UPLOT_SCRIPT,
            uplot_style => UPLOT_STYLE,
            uplot_licence => UPLOT_LICENCE,
            plot_script => PLOT_SCRIPT,
            plot_licence => PLOT_LICENCE,
            data,
        })?;
        Ok(html)
    }
}

/// Writes the report to a file, completely or not at all.
pub fn write(report: &Report, path: &Path) -> Result<(), ReportError> {
    let html = render(report)?;
    write_atomically(path, |out| out.write_all(html.as_bytes()))
        .map_err(|source| ReportError::Write { path: path.display().to_string(), source })
}

/// The names with the same line style in the whole report: the controllers of all scenarios.
fn style_names(report: &Report) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for name in report.scenarios.iter().flat_map(contenders::names) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn paragraphs(text: &str) -> Vec<String> {
    text.split("\n\n").map(|p| p.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|p| !p.is_empty()).collect()
}
