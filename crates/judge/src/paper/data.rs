//! The papers that Weir reproduces, as data: published numbers, figures and claims, and their scenarios.

use super::{Check, ClaimSpec, Condition, Note, Paper, Place, Published, TableTitle};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_cc::Registry;
use weir_lab::embedded::PAPERS as FILES;
use weir_lab::results::RunResult;
use weir_lab::scenario::{InputError, MAX_SCENARIO, ScenarioFile, read_text, suggest};
use weir_report::figures::{self, Overlay};

mod figure;

pub use figure::{Curve, Figure, LineSpec, Plot, Sweep};

/// The file that describes a paper in its folder.
const DESCRIPTION: &str = "reproduce.toml";

/// The text of a paper's file inside the program.
fn embedded(paper: &str, file: &str) -> Option<&'static str> {
    let path = format!("{paper}/{file}");
    FILES.iter().find(|f| f.0 == path).map(|f| f.1)
}

/// Names and descriptions of the papers inside the program.
fn descriptions() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().filter_map(|(path, text)| Some((path.strip_suffix(DESCRIPTION)?.strip_suffix('/')?, *text)))
}

const HEADER: &str = "paper,table,scenario,condition,algorithm,metric,unit,value,sigma";

/// A paper, as described in its folder.
#[derive(Clone, PartialEq, Debug)]
pub struct PaperData {
    /// Its numbers and claims.
    pub paper: Paper,
    /// Its authors.
    pub authors: String,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// Runs of each of its scenarios.
    pub runs: Option<u32>,
    /// Runs where only its score is wanted.
    pub score: Option<ScoreRuns>,
    /// Ends of open conditions, by the condition and the end's position, at which its scenarios run.
    at: Vec<(Condition, usize)>,
    /// The curves that its figures draw over runs, by file.
    curves: Vec<(String, Vec<(f64, f64)>)>,
}

/// How often a paper's scenarios run where only its score is wanted.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreRuns {
    /// Runs of each scenario.
    pub runs: u32,
    /// Runs of each scenario at the ends of open conditions, if not as many: an end shows that a number may depend on it, not how much.
    #[serde(default)]
    ends: Option<u32>,
    /// Runs of those that need another number, by the last part of their names.
    #[serde(default)]
    of: BTreeMap<String, u32>,
}

impl ScoreRuns {
    /// Runs of a scenario, or of the same with other values at the end of an open condition, if it needs a number of its own.
    pub fn of(&self, scenario: &str) -> Option<u32> {
        let last = scenario.rsplit('/').next().unwrap_or(scenario);
        let (own, is_end) = last.split_once('~').map_or((last, false), |(own, _)| (own, true));
        self.of.get(own).copied().or(self.ends.filter(|_| is_end))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    title: String,
    #[serde(default)]
    authors: String,
    published: String,
    #[serde(default)]
    runs: Option<u32>,
    #[serde(default)]
    score: Option<ScoreRuns>,
    #[serde(default)]
    tables: Vec<TableTitle>,
    #[serde(default)]
    places: Vec<Place>,
    #[serde(default)]
    figures: Vec<Figure>,
    #[serde(default)]
    explained: Vec<Condition>,
    #[serde(default)]
    claims: Vec<ClaimSpec>,
    #[serde(default)]
    notes: Vec<Note>,
}

/// Names and titles of the papers that ship with Weir.
pub fn papers() -> impl Iterator<Item = (&'static str, String)> {
    descriptions().map(|(name, text)| {
        let title = toml::from_str::<Description>(text).map(|d| d.title).unwrap_or_default();
        (name, title)
    })
}

impl PaperData {
    /// A paper by the name of one that ships with Weir, or by a folder with a `reproduce.toml`.
    /// Errors: neither exists, or one of its files is invalid.
    pub fn open(name_or_folder: &str) -> Result<Self, InputError> {
        if let Some((name, text)) = descriptions().find(|d| d.0 == name_or_folder) {
            let open = |wanted: &str| {
                let shown = format!("{name}/{wanted}");
                match embedded(name, wanted) {
                    Some(text) => Ok((shown, Arc::from(text))),
                    None => Err(InputError::whole(shown, "the paper's folder has no such file")),
                }
            };
            return Self::parse(name, &format!("{name}/{DESCRIPTION}"), &Arc::from(text), open);
        }
        let folder = Path::new(name_or_folder);
        if !folder.is_dir() {
            let known: Vec<&str> = descriptions().map(|d| d.0).collect();
            return Err(InputError::whole(name_or_folder, "neither a paper that ships with Weir nor a folder")
                .help(suggest::help(name_or_folder, &known)));
        }
        let read = |file: &Path| -> Result<(String, Arc<str>), InputError> {
            let shown = file.display().to_string();
            match read_text(file, MAX_SCENARIO) {
                Ok(text) => Ok((shown, text)),
                Err(why) => Err(InputError::whole(shown, why)),
            }
        };
        let (shown, description) = read(&folder.join(DESCRIPTION))?;
        let name = folder.file_name().map_or(name_or_folder.into(), |n| n.to_string_lossy());
        Self::parse(&name, &shown, &description, |published| read(&folder.join(published)))
    }

    fn parse(
        name: &str,
        file: &str,
        text: &Arc<str>,
        open: impl Fn(&str) -> Result<(String, Arc<str>), InputError>,
    ) -> Result<Self, InputError> {
        let d: Description = toml::from_str(text).map_err(|e| {
            let span = e.span().unwrap_or(0..0);
            InputError::at(file, text, span, e.message())
        })?;
        let (csv_name, csv) = open(&d.published)?;
        let published = published(&csv_name, &csv)?;
        let paper = Paper {
            name: name.into(),
            title: d.title,
            tables: d.tables,
            published,
            places: d.places,
            explained: d.explained,
            claims: d.claims,
            notes: d.notes,
        };
        let mut curves = Vec::new();
        for c in d.figures.iter().flat_map(|f| &f.curves) {
            let (shown, text) = open(&c.file)?;
            let points = figure::curve(&text).map_err(|why| InputError::whole(shown, why))?;
            curves.push((c.file.clone(), points));
        }
        let runs = d.runs.filter(|r| *r > 0);
        Ok(Self { paper, authors: d.authors, figures: d.figures, runs, score: d.score, at: Vec::new(), curves })
    }

    /// This paper without its figures: only what its numbers and claims need is run then.
    pub fn without_figures(mut self) -> Self {
        self.figures.clear();
        self
    }

    /// This paper with every scenario that an open condition may decide at one of its ends, 0 or 1; several as several calls. No
    /// other ends are run beside, and no figures. Errors: no condition has that name, or its end is not a change of values.
    pub fn at(mut self, id: &str, end: usize) -> Result<Self, InputError> {
        let known: Vec<&str> = self.paper.explained.iter().map(|c| c.id.as_str()).collect();
        let Some(condition) = self.paper.explained.iter().find(|c| c.id == id).cloned() else {
            return Err(InputError::whole(&self.paper.name, format!("no open condition is named `{id}`"))
                .help(suggest::help(id, &known)));
        };
        if !condition.ends[end].only_sets() {
            let message = format!("end {} of `{id}` is another variant, scenario or controller", end + 1);
            return Err(InputError::whole(&self.paper.name, message)
                .help("only ends that set values of a scenario can be those of all runs"));
        }
        self.at.push((condition, end));
        Ok(self.without_figures())
    }

    /// This paper with the runs of its own scenarios alone, not of the ends of its open conditions.
    pub fn without_ends(mut self) -> Self {
        self.paper.explained.clear();
        self
    }

    /// This paper with only one of its tables, without figures and claims. Errors: it has no such table.
    pub fn with_table(mut self, table: &str) -> Result<Self, InputError> {
        let known: Vec<String> = self.paper.published.iter().map(|p| p.table.clone()).collect();
        self.paper.published.retain(|p| p.table == table);
        self.paper.tables.retain(|t| t.table == table);
        if self.paper.published.is_empty() {
            let mut known: Vec<&str> = known.iter().map(String::as_str).collect();
            known.dedup();
            return Err(InputError::whole(&self.paper.name, format!("the paper has no table {table}"))
                .help(suggest::help(table, &known)));
        }
        let left = &self.paper.published;
        self.paper.explained.retain(|e| left.iter().any(|p| e.covers(p)));
        self.paper.claims.clear();
        self.figures.clear();
        Ok(self)
    }

    /// The scenarios of its numbers, figures and claims, each once, by the names that
    /// [`weir_lab::scenario::ScenarioFile::open`] accepts.
    pub fn scenarios(&self) -> Vec<String> {
        let numbers = self.paper.published.iter().map(|p| {
            let elsewhere = self.paper.place(p).and_then(|place| place.measured_in.as_ref());
            elsewhere.unwrap_or(&p.scenario)
        });
        let figures = self.figures.iter().flat_map(Figure::scenarios);
        let checks = self.paper.claims.iter().flat_map(|c| &c.checks).map(|c| &c.scenario);
        let mut all: Vec<String> = Vec::new();
        for short in numbers.chain(figures).chain(checks) {
            let name = self.full_name(short);
            if !all.contains(&name) {
                all.push(name);
            }
        }
        all
    }

    /// The name of one of its scenarios that [`ScenarioFile::open`] accepts, from its last part.
    fn full_name(&self, short: &str) -> String {
        let whole = format!("{}/{short}", self.paper.name);
        if weir_lab::scenario::builtin_scenarios().any(|s| s.0 == whole) { whole } else { short.into() }
    }

    /// The files of [`Self::scenarios`], and those of the ends of its open conditions. Without figures each has only the variants and
    /// controllers that numbers and claims need. Errors: a scenario that does not exist, or an end that does not fit its scenario.
    pub fn files(&self, registry: &Registry) -> Result<Vec<ScenarioFile>, InputError> {
        let open = |name: &String| {
            let mut file = ScenarioFile::open(name, registry)?;
            for (condition, end) in &self.at {
                if condition.concerns(&self.paper, name, &|short| self.full_name(short)) {
                    let own = file.name().to_owned();
                    file = condition.set_in(file, *end, &own, &self.paper.name, registry)?;
                }
            }
            Ok(if self.figures.is_empty() { self.narrowed(file, name) } else { file })
        };
        let mut files = self.scenarios().iter().map(open).collect::<Result<Vec<_>, _>>()?;
        for condition in &self.paper.explained {
            files.extend(condition.files(&self.paper, &|short| self.full_name(short), registry)?);
        }
        Ok(files)
    }

    /// A scenario with only the pairs of variant and controller that the paper's numbers and claims name.
    fn narrowed(&self, file: ScenarioFile, name: &str) -> ScenarioFile {
        let variants: Vec<String> = file.variants().into_iter().flatten().map(str::to_owned).collect();
        let named = |scenario: &str| self.full_name(scenario) == name;
        let numbers: Vec<Need<'_>> = (self.paper.published.iter())
            .map(|p| Need::of_number(p, self.paper.place(p)))
            .filter(|n| named(n.scenario))
            .collect();
        let checks: Vec<&Check> =
            self.paper.claims.iter().flat_map(|c| &c.checks).filter(|c| named(&c.scenario)).collect();
        file.with_pairs(|variant, controller| {
            // A condition that is no variant is a window, which every run has.
            let is_at = |c: &str| Some(c) == variant || c.is_empty() || !variants.iter().any(|v| v == c);
            let is_under = |c: &str| c.is_empty() || controller.is_none_or(|own| own == c);
            numbers.iter().any(|n| n.variants.iter().any(|v| is_at(v)) && n.controllers.iter().any(|c| is_under(c)))
                || checks.iter().any(|c| c.needs(is_at, is_under))
        })
    }

    /// Draws its figures from runs with time series, as `figN.svg` in a folder; those without such a run are
    /// omitted. Returns the paths. Errors are those of the file system; each file is written completely or not at all.
    pub fn write_figures(
        &self,
        runs: &[&RunResult],
        folder: &Path,
        formats: &[figures::Format],
    ) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for f in &self.figures {
            let overlays: Vec<Overlay> = f.curves.iter().filter_map(|c| self.overlay(c)).collect();
            let plots = f.draw(runs, &overlays);
            if plots.is_empty() {
                continue;
            }
            for &format in formats {
                let path = folder.join(format!("fig{}.{}", f.figure, format.extension()));
                figures::write(&path, &format!("Figure {}: {}", f.figure, f.title), &plots, format)?;
                paths.push(path);
            }
        }
        Ok(paths)
    }

    fn overlay(&self, curve: &Curve) -> Option<Overlay> {
        let points = self.curves.iter().find(|c| c.0 == curve.file)?.1.clone();
        let (variant, controller) = (curve.variant.clone(), curve.controller.clone());
        Some(Overlay { variant, controller, label: curve.label.clone(), points })
    }
}

/// The runs that measure a number.
struct Need<'a> {
    scenario: &'a str,
    variants: &'a [String],
    controllers: Vec<&'a str>,
}

impl<'a> Need<'a> {
    fn of_number(p: &'a Published, place: Option<&'a Place>) -> Self {
        let scenario = place.and_then(|place| place.measured_in.as_ref()).unwrap_or(&p.scenario);
        let controller = place.and_then(|place| place.controller.as_ref()).unwrap_or(&p.algorithm);
        // The index is relative to TFRC.
        let beside = p.metric.starts_with("tcp_friendliness_index").then_some("tfrc");
        let variants = place.map_or(std::slice::from_ref(&p.condition), |place| &place.variants[..]);
        Self { scenario, variants, controllers: std::iter::once(controller.as_str()).chain(beside).collect() }
    }
}

fn published(file: &str, text: &Arc<str>) -> Result<Vec<Published>, InputError> {
    let mut rows = Vec::new();
    let mut start = 0;
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let row = line.trim_end();
        let span = start..start + row.len();
        start += line.len();
        let error = |what: String| InputError::at(file, text, span.clone(), what);
        if i == 0 {
            if row.trim_start_matches('\u{feff}') != HEADER {
                return Err(error(format!("expected the header {HEADER}")));
            }
            continue;
        }
        if row.is_empty() {
            continue;
        }
        let columns: Vec<&str> = row.split(',').map(str::trim).collect();
        let [paper, table, scenario, condition, algorithm, metric, unit, value, sigma] = columns[..] else {
            return Err(error(format!("expected 9 columns, found {}", columns.len())));
        };
        let number = |column: &str, text: &str| {
            let n = text.parse::<f64>().ok().filter(|n| n.is_finite());
            n.ok_or_else(|| error(format!("expected a number, found \"{text}\"")).field(column))
        };
        rows.push(Published {
            paper: paper.into(),
            table: table.into(),
            scenario: scenario.into(),
            condition: condition.into(),
            algorithm: algorithm.into(),
            metric: metric.into(),
            unit: unit.into(),
            value: number("value", value)?,
            sigma: if sigma.is_empty() { None } else { Some(number("sigma", sigma)?) },
        });
    }
    if rows.is_empty() { Err(InputError::whole(file, "expected at least one number")) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_figure_and_claim_has_its_scenario() {
        let registry = Registry::builtin();
        for (name, title) in papers() {
            assert!(!title.is_empty(), "{name}");
            let data = PaperData::open(name).unwrap_or_else(|e| panic!("{e}"));
            for s in data.scenarios() {
                assert!(ScenarioFile::open(&s, &registry).is_ok(), "{s}");
            }
            let there = |scenario: &str, condition: Option<&str>, controller: &str| {
                let full = format!("{name}/{scenario}");
                let file = ScenarioFile::open(&full, &registry).unwrap_or_else(|e| panic!("{e}"));
                let compared = controller.is_empty() || file.controllers().iter().any(|c| c == controller);
                assert!(compared, "{full}: {controller}");
                let all = file.scenarios(None, &registry).unwrap_or_else(|e| panic!("{e}"));
                if let Some(c) = condition.filter(|c| !c.is_empty()) {
                    let variant = all.iter().any(|s| s.variant.as_deref() == Some(c));
                    assert!(variant || all[0].windows.iter().any(|w| w.name == c), "{full}: {c}");
                }
            };
            for p in &data.paper.published {
                assert_eq!(p.paper, name);
                assert!(data.paper.tables.iter().any(|t| t.table == p.table), "table {}", p.table);
                let Some(place) = data.paper.place(p) else {
                    there(&p.scenario, Some(&p.condition), &p.algorithm);
                    continue;
                };
                let scenario = place.measured_in.as_ref().unwrap_or(&p.scenario);
                let controller = place.controller.as_ref().unwrap_or(&p.algorithm);
                assert!(!place.variants.is_empty(), "{}", place.condition);
                place.variants.iter().for_each(|v| there(scenario, Some(v), controller));
            }
            for f in &data.figures {
                f.controllers.iter().for_each(|c| there(&f.scenario, None, c));
            }
            data.files(&registry).unwrap_or_else(|e| panic!("{name}: {e}"));
            for e in &data.paper.explained {
                assert!(data.paper.published.iter().any(|p| e.covers(p)), "{name}: {}", e.id);
            }
            for c in data.paper.claims.iter().flat_map(|c| &c.checks) {
                let all = std::iter::once(&c.controller).chain(&c.above).chain(&c.below);
                all.for_each(|controller| there(&c.scenario, c.condition.as_deref(), controller));
                let others = c.above_conditions.iter().chain(&c.below_conditions);
                others.for_each(|condition| there(&c.scenario, Some(condition), &c.controller));
            }
        }
    }

    #[test]
    fn the_paper_publishes_24_numbers_in_two_tables() {
        let data = PaperData::open("rmcat-comparison").expect("ships");
        assert_eq!(data.paper.published.len(), 24);
        let last = &data.paper.published[23];
        assert_eq!((last.algorithm.as_str(), last.value, last.sigma), ("scream", 13.04, None));
        let one = data.clone().with_table("1").expect("exists");
        assert_eq!((one.paper.published.len(), one.scenarios().len()), (15, 1));
        let e = data.with_table("3").expect_err("two tables");
        assert!(e.help_text().is_some_and(|h| h.contains("`1`, `2`")), "{e}");
    }

    #[test]
    fn without_figures_only_what_numbers_and_claims_need_is_run() {
        let registry = Registry::builtin();
        let labels = |data: &PaperData| -> Vec<String> {
            let files = data.files(&registry).expect("valid");
            files.iter().flat_map(|f| f.scenarios(None, &registry).expect("valid")).map(|s| s.label()).collect()
        };
        let whole = PaperData::open("dp-fec").expect("ships");
        let (all, needed) = (labels(&whole), labels(&whole.clone().without_figures()));
        assert!(
            needed.len() < all.len() && needed.iter().all(|l| all.contains(l)),
            "{} of {}",
            needed.len(),
            all.len()
        );
        let has = |label: &str| needed.iter().any(|l| l == label);
        // A number, its index against TFRC, a claim, and what only a figure shows.
        assert!(has("dp-fec/1gbps-short-tcp [load 25%, 3] fixed") && has("dp-fec/1gbps-short-tcp [load 25%, 3] tfrc"));
        assert!(has("dp-fec/1gbps-short-tcp [load 75%, 8] fixed"));
        assert!(
            !has("dp-fec/1gbps-short-tcp [load 75%, 9] fixed") && !has("dp-fec/1gbps-short-tcp [load 75%, 8] tfrc")
        );
        // A condition that is a window is in every run.
        let windows = PaperData::open("rmcat-comparison").expect("ships").without_figures();
        assert!(labels(&windows).iter().any(|l| l.contains("responsiveness")));
    }

    #[test]
    fn all_runs_may_be_at_an_end_of_a_condition() {
        let registry = Registry::builtin();
        let whole = PaperData::open("fbra").expect("ships");
        let at = whole.clone().at("objects", 1).expect("is open").without_ends();
        let text = |data: &PaperData, name: &str| -> String {
            let files = data.files(&registry).expect("valid");
            files.iter().find(|f| f.name() == name).expect("is run").text().to_owned()
        };
        // The scenarios of its numbers have the end's value, the others are as they were.
        assert!(text(&at, "fbra/1-rtp-10-short-tcp").contains("187.5 kB"));
        let other = "fbra/variable-capacity";
        assert_eq!(text(&at, other), text(&whole, other));
        assert!(at.files(&registry).expect("valid").iter().all(|f| !f.name().contains('~')));
        let unknown = whole.clone().at("object", 0).expect_err("no such condition");
        assert!(unknown.help_text().is_some_and(|h| h.contains("`objects`")), "{unknown}");
        let controller = whole.at("browser", 1).expect_err("another controller");
        assert!(controller.to_string().contains("end 2 of `browser`"), "{controller}");
    }

    #[test]
    fn a_score_may_need_other_runs_of_one_scenario() {
        for (name, _) in papers() {
            let data = PaperData::open(name).expect("ships");
            assert!(data.score.is_some_and(|s| s.runs > 0), "{name}");
        }
        let score = PaperData::open("rtp-cc-thesis").expect("ships").score.expect("given");
        assert_eq!(score.of("rtp-cc-thesis/circuit-breaker"), Some(16));
        assert_eq!((score.of("circuit-breaker~bursts-2"), score.of("rtp-cc-thesis/slow-link")), (Some(16), None));
        let score = PaperData::open("fbra").expect("ships").score.expect("given");
        assert_eq!((score.of("variable-capacity"), score.of("variable-capacity~objects-2")), (None, Some(2)));
        assert_eq!(score.of("testbed-2-rtp-1mbps~browser-2"), Some(1));
    }

    #[test]
    fn says_what_is_wrong_with_a_paper() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
        let path = folder.path().display().to_string();
        let open = || PaperData::open(&path).expect_err("wrong");
        assert!(open().to_string().contains("reproduce.toml"));
        put("reproduce.toml", "title = \"x\"\npublished = \"p.csv\"\nclaim = []\n");
        assert_eq!(open().position(), Some((3, 1)));
        put("reproduce.toml", "title = \"x\"\npublished = \"p.csv\"\n");
        put("p.csv", "paper\n");
        assert!(open().to_string().contains("expected the header"));
        put("p.csv", &format!("{HEADER}\na,1,s,c,gcc,utilisation,percent,many,\n"));
        assert_eq!((open().position(), open().field_path()), (Some((2, 1)), Some("value")));
        put("p.csv", &format!("{HEADER}\na,1\n"));
        assert!(open().to_string().contains("expected 9 columns, found 2"));
        put("p.csv", &format!("{HEADER}\na,1,s,c,gcc,utilisation,percent,3,\n"));
        assert!(PaperData::open(&path).is_ok());
        assert!(PaperData::open("rmcat-comparisn").expect_err("mistyped").help_text().is_some());
    }
}
