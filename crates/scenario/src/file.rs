//! A scenario file: read once, checked for every variant and controller, then run in any of them.

use super::builtin;
use super::error::InputError;
use super::limits;
use super::model::Scenario;
use super::parameters::{split_parameters, with_parameters};
use super::raw::RawScenario;
use super::request::Request;
use super::resolve::flow::PLACEHOLDER;
use super::resolve::resolve;
use super::suggest;
use super::traces::{Folder, Traces, read_text};
use super::tree::{Text, versions};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;
use toml::de::DeTable;
use weir_cc::Registry;

/// Compared if a file has the placeholder and no list of controllers.
const DEFAULT_COMPARE: [&str; 3] = ["gcc", "nada", "scream"];
/// Greatest size of a scenario file, in bytes.
pub const MAX_SCENARIO: u64 = 4 << 20;

/// The built-in scenario whose name is most similar, if any is similar enough.
fn nearest(name: &str) -> Option<&'static str> {
    let known: Vec<&'static str> = builtin::scenarios().map(|s| s.0).collect();
    let short: Vec<&'static str> = known.iter().filter_map(|n| n.rsplit('/').next()).collect();
    suggest::nearest(name, known.into_iter().chain(short))
}

/// The last parts of a path, without the ending of a scenario file.
fn path_end(path: &str, parts: usize) -> String {
    let all: Vec<&str> = path.strip_suffix(".toml").unwrap_or(path).split(['/', '\\']).collect();
    all[all.len().saturating_sub(parts)..].join("/")
}

/// A scenario file that has been read and checked as a whole.
#[derive(Debug)]
pub struct ScenarioFile {
    name: String,
    text: Text,
    versions: Vec<(Option<String>, RawScenario)>,
    compare: Vec<String>,
    traces: Traces,
    is_told_apart: bool,
    /// The only pairs of variant and controller to run; all if absent.
    pairs: Option<BTreeSet<Pair>>,
}

/// A variant and a controller; `None` where a file has none.
type Pair = (Option<String>, Option<String>);

impl ScenarioFile {
    /// Gives files that have one name but different paths as many of their folders as tell them apart: results and
    /// reports go by the name.
    pub fn tell_apart(files: &mut [Self]) {
        let paths: Vec<(String, String)> = files.iter().map(|f| (f.name.clone(), f.argument().to_owned())).collect();
        for (file, (name, path)) in files.iter_mut().zip(&paths) {
            let others = || paths.iter().filter(|(n, p)| n == name && p != path).map(|(_, p)| p);
            if others().next().is_none() {
                continue;
            }
            let most = path.split(['/', '\\']).count();
            let own = (2..=most).map(|parts| path_end(path, parts)).find(|end| {
                let parts = end.split('/').count();
                others().all(|other| path_end(other, parts) != *end)
            });
            file.name = own.unwrap_or_else(|| path_end(path, most));
            file.is_told_apart = true;
        }
    }

    /// A scenario by the name of a built-in one, full or only its last part, or by the path of a file. Errors: neither
    /// exists, or see [`Self::parse`].
    pub fn open(name_or_path: &str, registry: &Registry) -> Result<Self, InputError> {
        if let Some(name) = builtin::scenario_name(name_or_path) {
            return Self::builtin(name, registry);
        }
        let path = Path::new(name_or_path);
        if path.exists() || name_or_path.ends_with(".toml") {
            return Self::read(path, registry);
        }
        let help = match nearest(name_or_path) {
            None => "`weir show scenarios` shows the built-in ones".into(),
            Some(near) => format!("did you mean `{near}`? `weir show scenarios` shows all"),
        };
        Err(InputError::whole(name_or_path, "neither a built-in scenario nor a file").help(help))
    }

    /// A scenario file from disk. Errors: it cannot be read, or see [`Self::parse`].
    pub fn read(path: &Path, registry: &Registry) -> Result<Self, InputError> {
        let shown = path.display().to_string();
        let text = read_text(path, MAX_SCENARIO).map_err(|why| InputError::whole(&shown, why))?;
        let name = path.file_stem().map_or(shown.clone(), |s| s.to_string_lossy().into_owned());
        let folder = path.parent().map(Path::to_path_buf).unwrap_or_default();
        Self::load(name, Text { file: shown, text }, Folder::Disk(folder), registry)
    }

    /// A built-in scenario by its name, full or only its last part. Errors: there is none, or it requires a controller that
    /// the registry lacks.
    pub fn builtin(name: &str, registry: &Registry) -> Result<Self, InputError> {
        let name = builtin::scenario_name(name).unwrap_or(name);
        let text = builtin::scenarios().find(|s| s.0 == name).map(|s| s.1);
        let text = text.ok_or_else(|| {
            let error = InputError::whole(name, format!("no built-in scenario has the name `{name}`"));
            nearest(name).map_or(error.clone(), |near| error.help(format!("did you mean `{near}`?")))
        })?;
        let folder = name.rsplit_once('/').map_or(String::new(), |f| f.0.to_owned());
        let text = Text { file: format!("{name}.toml"), text: text.into() };
        Self::load(name.into(), text, Folder::BuiltIn(folder), registry)
    }

    /// A scenario from text; files that it names are searched in `folder`. Errors: the fault, its position, and a
    /// remedy. Every variant is checked with every controller to compare.
    pub fn parse(name: &str, text: &str, folder: &Path, registry: &Registry) -> Result<Self, InputError> {
        let text = Text { file: name.into(), text: text.into() };
        Self::load(name.into(), text, Folder::Disk(folder.into()), registry)
    }

    /// A scenario from text, and the files that it names by the names that it uses, so that none is read from disk.
    /// Errors: as of [`Self::parse`]; a file that it names was not given.
    pub fn parse_with_files(
        name: &str,
        text: &str,
        files: BTreeMap<String, Vec<u8>>,
        registry: &Registry,
    ) -> Result<Self, InputError> {
        let text = Text { file: name.into(), text: text.into() };
        Self::load(name.into(), text, Folder::Given(Arc::new(files)), registry)
    }

    /// A built-in scenario's text after changes; files that it names are those that ship beside it, and none is read from
    /// disk. Errors: as of [`Self::parse`].
    pub fn edited(name: &str, text: &str, registry: &Registry) -> Result<Self, InputError> {
        let name = builtin::scenario_name(name).unwrap_or(name);
        let folder = name.rsplit_once('/').map_or(String::new(), |f| f.0.to_owned());
        let text = Text { file: name.into(), text: text.into() };
        Self::load(name.into(), text, Folder::BuiltIn(folder), registry)
    }

    fn load(name: String, text: Text, folder: Folder, registry: &Registry) -> Result<Self, InputError> {
        if text.text.len() as u64 > MAX_SCENARIO {
            return Err(InputError::whole(&text.file, format!("larger than {} MiB", MAX_SCENARIO >> 20)));
        }
        let source: Arc<str> = text.text.clone();
        let trees = versions(&text, &source)?;
        let read = |tree: Spanned<DeTable<'_>>| {
            RawScenario::deserialize(toml::de::Deserializer::from(tree)).map_err(|e| text.parse_error(&e))
        };
        let versions = trees.into_iter().map(|v| Ok((v.name, read(v.tree)?))).collect::<Result<Vec<_>, _>>()?;
        let uses_placeholder =
            versions.iter().any(|(_, raw)| raw.rtp.iter().any(|(_, f)| f.value.controller.value == PLACEHOLDER));
        let first = &versions[0].1;
        for c in first.controllers.iter().map(|(name, _)| name).chain(first.compare.iter().flatten()) {
            if let Err(e) = registry.find(&c.value) {
                return Err(suggest::controller(text.error(c.span.clone(), e.to_string()), &e, registry, &[]));
            }
        }
        let compare = match &first.compare {
            _ if !uses_placeholder => Vec::new(),
            Some(names) => names.iter().map(|n| n.value.clone()).collect(),
            None => DEFAULT_COMPARE.map(str::to_owned).to_vec(),
        };
        if uses_placeholder && compare.is_empty() {
            return Err(InputError::whole(&text.file, "nothing to compare").field("compare"));
        }
        let mut file =
            Self { name, text, versions, compare, traces: Traces::new(folder), is_told_apart: false, pairs: None };
        file.check(registry)?;
        Ok(file)
    }

    /// A variant as it is written, with its overrides in place. Errors: it is unknown.
    pub(super) fn tree(&self, variant: Option<&str>) -> Result<Spanned<DeTable<'_>>, InputError> {
        let found = versions(&self.text, &self.text.text)?.into_iter().find(|v| v.name.as_deref() == variant);
        found.map(|v| v.tree).ok_or_else(|| InputError::whole(&self.text.file, "no such variant"))
    }
    /// Where the files that it names are.
    pub(super) fn folder(&self) -> &Folder {
        self.traces.folder()
    }

    fn check(&mut self, registry: &Registry) -> Result<(), InputError> {
        let mut traces = self.traces.clone();
        for variant in self.variants() {
            for controller in self.each_controller(None) {
                self.resolve(variant, controller.as_deref(), registry, &mut traces)?;
            }
        }
        self.traces = traces;
        Ok(())
    }

    /// The name by which it is found: `folder/stem` if built in, the file's stem otherwise.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Name as a command-line argument: the name where built in, the path otherwise.
    pub fn argument(&self) -> &str {
        // Only a built-in scenario and a file told apart from others have a folder in the name.
        if self.name.contains('/') && !self.is_told_apart { &self.name } else { &self.text.file }
    }
    /// One line for lists.
    pub fn title(&self) -> &str {
        &self.versions[0].1.title
    }
    /// The scenario's purpose, and its source.
    pub fn doc(&self) -> &str {
        self.versions[0].1.doc.trim()
    }
    /// Effects of bounds that nobody wrote, a line for each flow that they limit or share out, under the controllers to which it
    /// applies.
    ///
    /// # Errors
    /// As for [`Self::scenarios`].
    pub fn unwritten_limits(&self, registry: &Registry) -> Result<Vec<String>, InputError> {
        let mut lines: Vec<(String, Vec<String>)> = Vec::new();
        for scenario in self.scenarios(None, registry)? {
            for line in limits::unwritten(&scenario) {
                let at = lines.iter().position(|l| l.0 == line).unwrap_or(lines.len());
                if at == lines.len() {
                    lines.push((line, Vec::new()));
                }
                let under = &mut lines[at].1;
                under.extend(scenario.controller.clone().filter(|c| !under.contains(c)));
            }
        }
        let words = |(line, under): (String, Vec<String>)| match under.len() {
            0 => line,
            n if n == self.compare.len() => line,
            _ => format!("{line} (under {})", under.join(", ")),
        };
        Ok(lines.into_iter().map(words).collect())
    }
    /// The file's text.
    pub fn text(&self) -> &str {
        &self.text.text
    }
    /// SHA-256 of the contents of the files that it names, traces and clips among them, if it names any.
    pub fn digest_of_files(&self) -> Option<String> {
        self.traces.digest()
    }
    /// The variants' names in order; one `None` if the file has no variants.
    pub fn variants(&self) -> Vec<Option<&str>> {
        self.versions.iter().map(|v| v.0.as_deref()).collect()
    }
    /// The controllers that replace `$controller`; none if the file has no placeholder.
    pub fn controllers(&self) -> &[String] {
        &self.compare
    }

    /// The file with one more controller to compare, where it compares any and not this one already.
    pub fn and_compares(mut self, controller: &str) -> Self {
        if !self.compare.is_empty() && self.compare.iter().all(|c| c != controller) {
            self.compare.push(controller.into());
        }
        self
    }

    /// This file with another name and text; files that the text names are searched where this file's are. Errors: as of
    /// [`Self::parse`].
    pub fn with_text(&self, name: &str, text: &str, registry: &Registry) -> Result<Self, InputError> {
        let text = Text { file: name.into(), text: text.into() };
        Self::load(name.into(), text, self.traces.folder().clone(), registry)
    }

    /// The file with only some of its variants and controllers; all variants, or all controllers, if none of those named is its.
    pub fn narrowed(mut self, variants: &[String], controllers: &[String]) -> Self {
        let wanted = |v: &Option<String>| v.as_ref().is_some_and(|v| variants.contains(v));
        if self.versions.iter().any(|v| wanted(&v.0)) {
            self.versions.retain(|v| wanted(&v.0));
        }
        if self.compare.iter().any(|c| controllers.contains(c)) {
            self.compare.retain(|c| controllers.contains(c));
        }
        self
    }

    /// The file with only some pairs of variant and controller: those for which `is_wanted` is true, or all if it is for none.
    pub fn with_pairs(mut self, is_wanted: impl Fn(Option<&str>, Option<&str>) -> bool) -> Self {
        let all = self
            .variants()
            .into_iter()
            .flat_map(|v| self.each_controller(None).into_iter().map(move |c| (v.map(str::to_owned), c)));
        let wanted: BTreeSet<Pair> = all.filter(|(v, c)| is_wanted(v.as_deref(), c.as_deref())).collect();
        self.pairs = Some(wanted).filter(|w| !w.is_empty());
        self
    }

    /// The scenario of one variant and controller. `controller` is required if the file has the placeholder, and
    /// otherwise ignored; parameters may follow its name, as in `gcc:beta=0.9`, and count for every flow under it. Errors: an
    /// unknown name.
    pub fn scenario(
        &self,
        variant: Option<&str>,
        controller: Option<&str>,
        registry: &Registry,
    ) -> Result<Scenario, InputError> {
        let under = self.under(controller, registry)?;
        under.scenario(self, variant, registry, &mut self.traces.clone())
    }

    /// The scenario of one variant and controller; where none is given, the first that the file has. Errors: an unknown
    /// name.
    pub fn one(
        &self,
        variant: Option<&str>,
        controller: Option<&str>,
        registry: &Registry,
    ) -> Result<Scenario, InputError> {
        let variant = variant.or_else(|| self.versions[0].0.as_deref());
        let controller = controller.or_else(|| self.compare.first().map(String::as_str));
        self.scenario(variant, controller, registry)
    }

    /// Every variant with every controller: those given, as for [`Self::scenario`], or those that the file compares. Errors: an
    /// unknown name, or a controller that cannot be configured as the file states.
    pub fn scenarios(&self, controllers: Option<&[String]>, registry: &Registry) -> Result<Vec<Scenario>, InputError> {
        let mut all = Vec::new();
        let mut traces = self.traces.clone();
        let each = self.each_controller(controllers);
        let each: Vec<Under<'_>> = each.iter().map(|c| self.under(c.as_deref(), registry)).collect::<Result<_, _>>()?;
        for variant in self.variants() {
            for under in &each {
                let pair = (variant.map(str::to_owned), under.controller.map(str::to_owned));
                if self.pairs.as_ref().is_some_and(|p| controllers.is_none() && !p.contains(&pair)) {
                    continue;
                }
                all.push(under.scenario(self, variant, registry, &mut traces)?);
            }
        }
        Ok(all)
    }

    /// A controller, and the file with the parameters behind its name.
    fn under<'a>(&self, controller: Option<&'a str>, registry: &Registry) -> Result<Under<'a>, InputError> {
        let controller = controller.filter(|_| !self.compare.is_empty());
        let (name, params) = controller.map_or(("", None), |c| split_parameters(c, registry));
        // A name that is unknown is refused where it is resolved.
        let Some(params) = params.filter(|_| registry.find(name).is_ok()) else {
            return Ok(Under { controller, name: controller, with: None });
        };
        let text = Text { file: self.text.file.clone(), text: with_parameters(self.text(), name, params)?.into() };
        let mut with = Self::load(self.name.clone(), text, self.traces.folder().clone(), registry)?;
        with.is_told_apart = self.is_told_apart;
        Ok(Under { controller, name: Some(name), with: Some(with) })
    }

    fn each_controller(&self, given: Option<&[String]>) -> Vec<Option<String>> {
        if self.compare.is_empty() {
            return vec![None];
        }
        given.unwrap_or(&self.compare).iter().cloned().map(Some).collect()
    }

    fn resolve(
        &self,
        variant: Option<&str>,
        controller: Option<&str>,
        registry: &Registry,
        traces: &mut Traces,
    ) -> Result<Scenario, InputError> {
        let known = || self.versions.iter().filter_map(|v| v.0.as_deref()).collect::<Vec<_>>();
        let found = self.versions.iter().find(|v| v.0.as_deref() == variant);
        let (_, raw) = found.ok_or_else(|| {
            let e = InputError::whole(
                &self.text.file,
                match variant {
                    Some(v) => format!("no variant is named \"{v}\""),
                    None => "the file has variants: name one".into(),
                },
            );
            e.help(suggest::help(variant.unwrap_or_default(), &known()))
        })?;
        let controller = controller.filter(|_| !self.compare.is_empty());
        if controller.is_none() && !self.compare.is_empty() {
            let names: Vec<&str> = self.compare.iter().map(String::as_str).collect();
            return Err(InputError::whole(&self.text.file, "the file compares controllers: name one")
                .help(suggest::help("", &names)));
        }
        if let Some(Err(e)) = controller.map(|c| registry.find(c)) {
            return Err(suggest::controller(InputError::whole(&self.text.file, e.to_string()), &e, registry, &[]));
        }
        resolve(&self.text, raw, traces, &Request { name: &self.name, variant, controller, registry })
    }
}

/// A controller of a file.
struct Under<'a> {
    /// As it was given.
    controller: Option<&'a str>,
    /// Without parameters.
    name: Option<&'a str>,
    /// The file with its parameters, if there are any.
    with: Option<ScenarioFile>,
}

impl Under<'_> {
    fn scenario(
        &self,
        file: &ScenarioFile,
        variant: Option<&str>,
        registry: &Registry,
        traces: &mut Traces,
    ) -> Result<Scenario, InputError> {
        let scenario = self.with.as_ref().unwrap_or(file).resolve(variant, self.name, registry, traces)?;
        Ok(Scenario { controller: self.controller.map(Into::into), ..scenario })
    }
}
