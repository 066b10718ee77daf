//! The lists of `weir show`.

use crate::Done;
use crate::output::{print, print_report};
use crate::session::Session;
use crate::tables::{fold, table};
use serde::Serialize;
use weir_cc::Shelf;
use weir_judge::paper::data::papers;
use weir_lab::scenario::{ScenarioFile, builtin_scenarios};
use weir_path::Discipline;
use weir_session::multipath::SCHEDULERS;

/// Variants of a scenario shown in a list.
const SHOWN_VARIANTS: usize = 6;
/// Line below the controllers.
const WRAPPERS: &str = "NAME+fec, such as gcc+fec: the controller's steps up go out as repair packets first. \
                        NAME+map: a forecast of capacity bounds the controller. \
                        NAME+vidaptive: padding where the encoder leaves room";

/// Output of `--json`: the list that was asked for.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum Listed {
    /// The controllers.
    Controllers(Vec<Controller>),
    /// The scenarios that ship with Weir.
    Scenarios(Vec<ScenarioEntry>),
    /// The papers that ship with Weir.
    Papers(Vec<PaperEntry>),
    /// The codecs, of every library that Weir knows.
    Codecs(Vec<Codec>),
    /// The queue disciplines.
    Disciplines(Vec<DisciplineEntry>),
    /// The packet schedulers of calls over several paths.
    Schedulers(Vec<SchedulerEntry>),
}

/// A controller.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Controller {
    /// Its name; NAME+fec probes with forward error correction, NAME+map is bounded by a forecast of capacity, NAME+vidaptive pads.
    name: String,
    /// Summary in one line.
    summary: String,
    /// The document that it follows.
    source: String,
    /// Whether it adapts its rate to the path.
    adapts: bool,
    /// "algorithms" for general use, "papers" for the results of one paper, "added" from outside Weir.
    shelf: &'static str,
    /// Its parameters.
    params: Vec<Param>,
}

impl Controller {
    fn is_of_a_paper(&self) -> bool {
        self.shelf == shelf_name(Shelf::Papers)
    }
}

const fn shelf_name(shelf: Shelf) -> &'static str {
    match shelf {
        Shelf::Algorithms => "algorithms",
        Shelf::Papers => "papers",
        Shelf::Added => "added",
    }
}

/// A parameter of a controller.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Param {
    /// Name in scenario files.
    name: &'static str,
    /// Unit.
    unit: &'static str,
    /// The value where none is given.
    default: f64,
    /// Least value.
    min: f64,
    /// Greatest value.
    max: f64,
    /// Its effect.
    doc: &'static str,
}

/// A scenario.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct ScenarioEntry {
    /// Its name; the last part is enough.
    name: &'static str,
    /// Title in one line.
    title: String,
    /// Its variants; none where it has one form only.
    variants: Vec<String>,
    /// The controllers that it compares; none where it names its own.
    compares: Vec<String>,
}

/// A paper.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct PaperEntry {
    /// Its name.
    name: &'static str,
    /// Its title.
    title: String,
}

/// A codec of a library.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Codec {
    /// The codec.
    codec: &'static str,
    /// The library.
    library: &'static str,
    /// The library's version; nothing where it is not built in.
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    /// Whether it is built in.
    built_in: bool,
    /// Whether it decodes as well as encodes.
    decodes: bool,
    /// Whether slices can have a size.
    slices: bool,
    /// Whether earlier pictures can be referred to.
    reference_selection: bool,
    /// How to build it in.
    way_out: &'static str,
}

/// A queue discipline.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DisciplineEntry {
    /// Its name.
    name: &'static str,
    /// Summary in one line.
    summary: &'static str,
    /// The document that it follows.
    source: &'static str,
    /// Its parameters.
    params: Vec<DisciplineParam>,
}

/// A packet scheduler.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct SchedulerEntry {
    /// Its name.
    name: &'static str,
    /// Summary in one line.
    summary: &'static str,
    /// Its source.
    source: &'static str,
}

/// A parameter of a queue discipline.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct DisciplineParam {
    /// Name in scenario files.
    name: &'static str,
    /// The value where none is given.
    default: String,
    /// Values allowed.
    allowed: String,
    /// Its effect.
    doc: String,
}

/// Kinds of lists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Controllers,
    Scenarios,
    Papers,
    Codecs,
    Disciplines,
    Schedulers,
}

/// Parts of a table that are shown only if asked for.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Shown {
    /// Parameters.
    pub(super) params: bool,
    /// Controllers for the results of one paper.
    pub(super) papers: bool,
}

/// The controllers for general use, and with [`Shown::papers`] the others under a heading of their own.
fn shelves_text(all: &[Controller], shown: Shown) -> String {
    let text = if shown.params { params_text } else { controllers_text };
    let (papers, general): (Vec<&Controller>, Vec<&Controller>) = all.iter().partition(|c| c.is_of_a_paper());
    let wrappers = fold(WRAPPERS);
    if shown.papers {
        let (general, papers) = (text(&general), text(&papers));
        return format!("For general use\n\n{general}\nFor the results of one paper each\n\n{papers}\n{wrappers}\n");
    }
    let more = format!("{} more are for the results of one paper each: weir show controllers --all", papers.len());
    format!("{}\n{wrappers}\n{}\n", text(&general), fold(&more))
}

fn controllers_text(of: &[&Controller]) -> String {
    let mut t = table(&["controller", "what it is", "source"], 3);
    of.iter().for_each(|c| t.add_row([&c.name, &c.summary, &c.source]));
    format!("{t}\n")
}

fn params_text(of: &[&Controller]) -> String {
    let part = |c: &&Controller| {
        let heading = fold(&format!("{}: {}", c.name, c.summary));
        if c.params.is_empty() {
            return format!("{heading}\nno parameters\n");
        }
        let mut t = table(&["parameter", "unit", "default", "from", "to", "what it is"], 2).last_is_text();
        for p in &c.params {
            let [default, min, max] = [p.default, p.min, p.max].map(|n| n.to_string());
            t.add_row([p.name, p.unit, &default, &min, &max, p.doc]);
        }
        format!("{heading}\n{t}\n")
    };
    of.iter().map(part).collect::<Vec<_>>().join("\n")
}

/// Prints a list; JSON has all of it.
pub(super) fn show(session: &Session, kind: Kind, shown: Shown, json: bool) -> Done {
    let listed = match kind {
        Kind::Controllers => Listed::Controllers(controllers(session)),
        Kind::Papers => Listed::Papers(papers().map(|(name, title)| PaperEntry { name, title }).collect()),
        Kind::Disciplines => Listed::Disciplines(disciplines()),
        Kind::Codecs => Listed::Codecs(codecs()),
        Kind::Schedulers => Listed::Schedulers(schedulers().collect()),
        Kind::Scenarios => Listed::Scenarios(scenarios(session)?),
    };
    if json { print_report("list", &listed) } else { print(&listed.text(shown)) }
}

fn schedulers() -> impl Iterator<Item = SchedulerEntry> {
    SCHEDULERS.iter().map(|s| SchedulerEntry { name: s.name, summary: s.summary, source: s.source })
}

fn controllers(session: &Session) -> Vec<Controller> {
    let all = session.registry.specs().map(|s| Controller {
        name: s.name.clone(),
        summary: s.summary.clone(),
        source: s.source.clone(),
        adapts: s.adapts,
        shelf: shelf_name(s.shelf),
        params: (s.params.iter())
            .map(|p| Param { name: p.name, unit: p.unit, default: p.default, min: p.min, max: p.max, doc: p.doc })
            .collect(),
    });
    all.collect()
}

fn scenarios(session: &Session) -> Result<Vec<ScenarioEntry>, crate::output::Failure> {
    let entry = |name| {
        let file = ScenarioFile::builtin(name, &session.registry)?;
        let variants = file.variants().into_iter().flatten().map(str::to_owned).collect();
        Ok(ScenarioEntry { name, title: file.title().into(), variants, compares: file.controllers().to_vec() })
    };
    builtin_scenarios().map(|(name, _)| entry(name)).collect()
}

fn disciplines() -> Vec<DisciplineEntry> {
    let entry = |d: Discipline| DisciplineEntry {
        name: d.name(),
        summary: d.summary(),
        source: d.source(),
        params: (d.parameters().into_iter())
            .map(|p| DisciplineParam {
                name: p.name,
                default: p.default.to_string(),
                allowed: p.expected(),
                doc: p.doc.to_string(),
            })
            .collect(),
    };
    Discipline::all().into_iter().map(entry).collect()
}

fn codecs() -> Vec<Codec> {
    let video = weir_codecs::list().into_iter().map(|l| Codec {
        codec: l.codec.name(),
        library: l.name,
        version: l.version,
        built_in: l.built_in,
        decodes: l.decodes,
        slices: l.capabilities.slices,
        reference_selection: l.capabilities.reference_selection,
        way_out: l.way_out,
    });
    let audio = weir_codecs::audio_list().into_iter().map(|l| Codec {
        codec: l.codec.name(),
        library: l.name,
        version: l.version,
        built_in: l.built_in,
        decodes: true,
        slices: false,
        reference_selection: false,
        way_out: l.way_out,
    });
    video.chain(audio).collect()
}

impl Listed {
    fn text(&self, shown: Shown) -> String {
        let mut out = String::new();
        match self {
            Self::Controllers(all) => out = shelves_text(all, shown),
            Self::Papers(all) => {
                let mut t = table(&["paper", "title"], 2);
                all.iter().for_each(|p| t.add_row([p.name, &p.title]));
                out = format!("{t}\n");
            }
            Self::Disciplines(all) if shown.params => {
                for d in all {
                    let mut t = table(&["parameter", "default", "allowed", "what it is"], 4);
                    d.params.iter().for_each(|p| t.add_row([p.name, &p.default, &p.allowed, &p.doc]));
                    out.push_str(&format!("{}\n{t}\n\n", fold(&format!("{}: {} ({})", d.name, d.summary, d.source))));
                }
            }
            Self::Disciplines(all) => {
                let mut t = table(&["discipline", "what it is", "source"], 3);
                all.iter().for_each(|d| t.add_row([d.name, d.summary, d.source]));
                let note = "In a scenario file: queue = { discipline = \"codel\", target = \"5 ms\" }";
                out = format!("{t}\n{}\n", fold(note));
            }
            Self::Schedulers(all) => {
                let mut t = table(&["scheduler", "what it does", "source"], 3);
                all.iter().for_each(|s| t.add_row([s.name, s.summary, s.source]));
                let note = "In a scenario file: multipath = { scheduler = \"earliest\", paths = [[\"wifi\"], [\"cellular\"]] }";
                out = format!("{t}\n{}\n", fold(note));
            }
            Self::Codecs(all) => {
                let names = ["codec", "library", "version", "decodes", "slices", "references", "to build it in"];
                let mut t = table(&names, 7);
                let word = |on: bool| if on { "yes" } else { "no" };
                for c in all {
                    let (version, way_out) =
                        if c.built_in { (c.version.as_str(), "") } else { ("not built in", c.way_out) };
                    let [decodes, slices, references] = [c.decodes, c.slices, c.reference_selection].map(word);
                    t.add_row([c.codec, c.library, version, decodes, slices, references, way_out]);
                }
                out = format!("{t}\n");
            }
            Self::Scenarios(all) => {
                let mut t = table(&["scenario", "what it is", "variants", "compares"], 4);
                for s in all {
                    let shown = match s.variants.len() {
                        0..=SHOWN_VARIANTS => s.variants.join("; "),
                        n => format!("{}; ... {n} in all", s.variants[..SHOWN_VARIANTS].join("; ")),
                    };
                    t.add_row([s.name, &s.title, &shown, &s.compares.join(", ")]);
                }
                out = format!("{t}\nA name's last part is enough: weir run quick\n");
            }
        }
        out
    }
}
