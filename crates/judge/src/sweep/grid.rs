//! Grids: lists of scenarios, controllers, variants, seeds and values, every combination of which is a run.

use super::address::{canonical, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use weir_cc::Registry;
use weir_lab::compare::MAX_RUNS;
use weir_lab::scenario::{InputError, ScenarioFile, suggest};

/// Largest file of a grid in bytes.
const MAX_GRID: u64 = 4 << 20;
/// Name of a scenario that is given as text.
const UNNAMED: &str = "scenario";

/// Lists, every combination of which is run.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grid {
    /// Names of scenarios, paths of their files, their text (anything with a line break) or their tables; one or a list.
    scenarios: Value,
    /// Names of controllers; those that the scenarios name first if absent.
    controllers: Option<OneOrMore>,
    /// Names of variants; all of each scenario if absent.
    variants: Option<OneOrMore>,
    /// A list, or the number n for 1 to n; 1 if absent.
    seeds: Option<Seeds>,
    /// Places in the scenario, such as `links.bottleneck.delay`, each with a value or a list of values.
    #[serde(default)]
    set: Map<String, Value>,
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a name or a list of names")]
enum OneOrMore {
    One(String),
    More(Vec<String>),
}

#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number n (seeds 1 to n) or a list of seeds")]
enum Seeds {
    Count(u32),
    List(Vec<u32>),
}

/// A scenario of a run.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Given {
    /// Its name, or its file's path.
    Named(String),
    /// Its text.
    Text {
        /// The name of its results.
        name: String,
        /// TOML.
        toml: String,
    },
}

impl Given {
    /// Reads and checks it. Errors: as of [`ScenarioFile::open`] and [`ScenarioFile::parse`].
    pub fn open(&self, registry: &Registry) -> Result<ScenarioFile, InputError> {
        match self {
            Self::Named(name) => ScenarioFile::open(name, registry),
            Self::Text { name, toml } => ScenarioFile::parse(name, toml, Path::new("."), registry),
        }
    }
}

/// One run of a grid.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SweepRun {
    /// Its content address: the SHA-256 of what the result depends on.
    pub key: String,
    /// The scenario.
    pub given: Given,
    /// Values that the grid sets in it, as JSON.
    pub set: String,
    /// Its variant.
    pub variant: Option<String>,
    /// The controller; the scenario's own if absent.
    pub controller: Option<String>,
    /// The seed.
    pub seed: u32,
}

fn wrong(field: &str, what: impl Into<String>) -> InputError {
    InputError::whole("grid", what).field(field)
}

impl OneOrMore {
    fn list(&self) -> Vec<String> {
        match self {
            Self::One(name) => vec![name.clone()],
            Self::More(names) => names.clone(),
        }
    }
}

impl Grid {
    fn check_variants(&self, scenarios: &[Value], registry: &Registry) -> Result<(), InputError> {
        let Some(wanted) = self.variants.as_ref().map(OneOrMore::list) else { return Ok(()) };
        let mut known = std::collections::BTreeSet::new();
        for scenario in scenarios {
            let file = identified(scenario, registry)?.0.open(registry)?;
            known.extend(file.variants().into_iter().flatten().map(str::to_owned));
        }
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        match wanted.iter().find(|v| !known.contains(*v)) {
            Some(variant) => Err(wrong("variants", format!("no scenario has a variant \"{variant}\""))
                .help(suggest::help(variant, &names))),
            None => Ok(()),
        }
    }

    /// A grid in a TOML file. Errors: it cannot be read, or the fault and its place.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let file = path.display().to_string();
        let text: Arc<str> =
            weir_lab::scenario::read_text(path, MAX_GRID).map_err(|why| InputError::whole(&file, why))?;
        toml::from_str(&text).map_err(|e: toml::de::Error| {
            let error = match e.span() {
                Some(span) => InputError::at(&file, &text, span, e.message()),
                None => InputError::whole(&file, e.message()),
            };
            with_nearest(error, e.message())
        })
    }

    /// A grid as JSON. Errors: the fault.
    pub fn from_json(text: &str) -> Result<Self, InputError> {
        serde_json::from_str(text).map_err(|e| {
            let message = e.to_string();
            with_nearest(InputError::whole("grid", message.as_str()), &message)
        })
    }

    /// Every run, in the order of the grid's keys, seeds varying fastest; none twice. Errors: a scenario, controller, variant or place
    /// that does not exist; more than a million runs. A variant has to be of one of the scenarios.
    pub fn runs(&self, registry: &Registry) -> Result<Vec<SweepRun>, InputError> {
        let controllers = self.controllers.as_ref().map_or(vec![None], |c| c.list().into_iter().map(Some).collect());
        let mut policies = Vec::new();
        for name in controllers.iter().flatten() {
            let spec = suggest::find(registry, "controllers", name)?;
            // The name of a policy file does not determine its contents, so the key of the run depends on its source too.
            policies.push(registry.specs().all(|s| s.name != *name).then(|| spec.source.clone()));
        }
        policies.resize(controllers.len(), None);
        let seeds = match &self.seeds {
            None => vec![1],
            Some(Seeds::Count(n)) => (1..=(*n).min(MAX_RUNS as u32 + 1)).collect(),
            Some(Seeds::List(list)) => list.clone(),
        };
        let mut places = Vec::new();
        flatten("", &self.set, &mut places);
        let scenarios = match &self.scenarios {
            Value::Array(list) => &list[..],
            one => std::slice::from_ref(one),
        };
        let lists = [("scenarios", scenarios.len()), ("controllers", controllers.len()), ("seeds", seeds.len())];
        let variants = self.variants.as_ref().map(|v| ("variants".to_owned(), v.list().len()));
        let set = places.iter().map(|(place, values)| (format!("set.{place}"), values.len()));
        let mut all = lists.map(|(name, n)| (name.to_owned(), n)).into_iter().chain(variants).chain(set);
        if let Some((field, _)) = all.find(|(_, n)| *n == 0) {
            return Err(
                wrong(&field, "there is none, so that nothing would be run").help("give one or more, or leave it out")
            );
        }
        drop(all);
        self.check_variants(scenarios, registry)?;
        let mut runs = Vec::new();
        let mut known = std::collections::BTreeSet::new();
        for scenario in scenarios {
            let (given, content, text) = identified(scenario, registry)?;
            let file = given.open(registry)?;
            if self.controllers.is_some() && file.controllers().is_empty() {
                let message = format!("`{}` names its controllers itself", file.name());
                let help = "write controller = \"$controller\" in its flows, or leave controllers out";
                return Err(wrong("controllers", message).help(help));
            }
            let files = file.digest_of_files();
            let variants = match &self.variants {
                Some(names) => names.list().into_iter().map(Some).collect(),
                None => file.variants().into_iter().map(|v| v.map(str::to_owned)).collect::<Vec<_>>(),
            };
            let all = combinations(&places);
            let each = [all.len(), variants.len(), controllers.len(), seeds.len()];
            let more = each.iter().fold(1_u64, |n, len| n.saturating_mul(*len as u64));
            if more.saturating_add(runs.len() as u64) > MAX_RUNS {
                return Err(InputError::whole("grid", format!("more than {MAX_RUNS} runs"))
                    .help("several grids into one folder"));
            }
            // The places are those of all combinations; values that are refused are failures of their runs.
            if let Some(values) = all.first().filter(|v| !v.is_empty())
                && let Err(e) = changed(&text, values)?.open(registry)
                && e.message().starts_with("unknown field")
            {
                let help = e.help_text().unwrap_or_default().to_owned();
                return Err(wrong("set", e.message()).help(help));
            }
            for values in all {
                let given = if values.is_empty() { given.clone() } else { changed(&text, &values)? };
                let set = Value::Object(values.into_iter().map(|(place, v)| (place.into(), v.clone())).collect());
                for variant in &variants {
                    for (controller, policy) in controllers.iter().zip(&policies) {
                        for seed in &seeds {
                            let mut about = json!({
                                "weir": env!("CARGO_PKG_VERSION"), "scenario": content, "set": set, "variant": variant,
                                "controller": controller, "seed": seed,
                            });
                            if let Some(files) = &files {
                                about["files"] = files.as_str().into();
                            }
                            if let Some(policy) = policy {
                                about["policy"] = policy.as_str().into();
                            }
                            let key = digest(&canonical(&about));
                            if !known.insert(key.clone()) {
                                continue;
                            }
                            let (given, set) = (given.clone(), canonical(&set));
                            let (variant, controller) = (variant.clone(), controller.clone());
                            runs.push(SweepRun { key, given, set, variant, controller, seed: *seed });
                        }
                    }
                }
            }
        }
        Ok(runs)
    }
}

/// The error of a reader, with the nearest name if it is about an unknown one.
fn with_nearest(error: InputError, message: &str) -> InputError {
    let mut names = message.split('`').skip(1).step_by(2);
    match names.next() {
        Some(given) if message.starts_with("unknown field `") => {
            error.help(suggest::help(given, &names.collect::<Vec<_>>()))
        }
        _ => error,
    }
}

/// Places with their values; tables in tables are places with dots.
fn flatten<'a>(above: &str, set: &'a Map<String, Value>, places: &mut Vec<(String, &'a [Value])>) {
    for (name, value) in set {
        let place = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value {
            Value::Object(inner) => flatten(&place, inner, places),
            Value::Array(values) => places.push((place, values)),
            one => places.push((place, std::slice::from_ref(one))),
        }
    }
}

/// A value for each place, the last place varying fastest.
fn combinations<'a>(places: &'a [(String, &'a [Value])]) -> Vec<Vec<(&'a str, &'a Value)>> {
    places.iter().fold(vec![Vec::new()], |all, (place, values)| {
        let with = |before: Vec<(&'a str, &'a Value)>| {
            values.iter().map(move |v| before.iter().copied().chain([(place.as_str(), v)]).collect())
        };
        // A grid of more runs is refused by the first scenario's.
        all.into_iter().flat_map(with).take(MAX_RUNS as usize + 1).collect()
    })
}

/// A scenario, what identifies it, and its text.
fn identified(scenario: &Value, registry: &Registry) -> Result<(Given, Value, String), InputError> {
    match scenario {
        Value::String(text) if text.contains('\n') => {
            Ok((Given::Text { name: UNNAMED.into(), toml: text.clone() }, scenario.clone(), text.clone()))
        }
        Value::String(name) => {
            let text = ScenarioFile::open(name, registry)?.text().to_owned();
            Ok((Given::Named(name.clone()), text.clone().into(), text))
        }
        Value::Object(tables) => {
            let toml = toml::to_string(tables).map_err(|e| wrong("scenarios", format!("no scenario: {e}")))?;
            let name = tables.get("title").and_then(Value::as_str).unwrap_or(UNNAMED).to_owned();
            Ok((Given::Text { name, toml: toml.clone() }, scenario.clone(), toml))
        }
        other => Err(wrong("scenarios", format!("{other}: expected names, paths, texts or tables of scenarios"))),
    }
}

/// A scenario with other values at some places.
fn changed(text: &str, values: &[(&str, &Value)]) -> Result<Given, InputError> {
    let mut tables: toml::Table = text.parse().map_err(|e: toml::de::Error| wrong("scenarios", e.message()))?;
    for (place, value) in values {
        let value = toml::Value::try_from(value).map_err(|e| wrong("set", format!("`{place}`: {e}")))?;
        let mut at = &mut tables;
        let (above, last) = place.rsplit_once('.').unwrap_or(("", place));
        for part in above.split('.').filter(|p| !p.is_empty()) {
            let tables = at.iter().filter(|(_, v)| v.is_table()).map(|(name, _)| name.as_str());
            let help = suggest::help(part, &tables.collect::<Vec<_>>());
            // A scenario may leave a controller at its defaults; that it exists is checked with the scenario.
            if place.starts_with("controllers.") && !at.contains_key(part) {
                at.insert(part.into(), toml::Value::Table(toml::Table::new()));
            }
            at = at.get_mut(part).and_then(toml::Value::as_table_mut).ok_or_else(|| {
                wrong("set", format!("`{place}`: the scenario has no table `{part}` there")).help(help.clone())
            })?;
        }
        at.insert(last.into(), value);
    }
    let name = tables.get("title").and_then(toml::Value::as_str).unwrap_or(UNNAMED).to_owned();
    let toml = toml::to_string(&tables).map_err(|e| wrong("set", e.to_string()))?;
    Ok(Given::Text { name, toml })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONE: &str =
        "title = \"x\"\nduration = \"1 s\"\nlinks.b = { rate = \"1 Mbps\", delay = \"20 ms\" }\nrtp.v.controller = ";

    #[test]
    fn controllers_for_a_scenario_that_names_its_own_are_refused() {
        let runs = |controller: &str| {
            let text = format!("{ALONE}\"{controller}\"\n");
            let grid = json!({ "scenarios": text, "controllers": ["nada", "scream"] });
            Grid::from_json(&grid.to_string()).expect("a grid").runs(&Registry::builtin())
        };
        assert_eq!(runs("$controller").expect("two runs").len(), 2);
        let error = runs("gcc").expect_err("the same run twice");
        assert!(error.to_string().contains("names its controllers itself"), "{error}");
    }

    #[test]
    fn another_content_of_a_trace_is_another_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let (scenario, trace) = (folder.path().join("s.toml"), folder.path().join("c.csv"));
        let text = ALONE.replace("rate = \"1 Mbps\"", "rate = { trace = \"c.csv\" }");
        std::fs::write(&scenario, format!("{text}\"gcc\"\n")).expect("written");
        let key = |rate: &str| {
            std::fs::write(&trace, format!("0,{rate}\n1,{rate}\n")).expect("written");
            let grid = json!({ "scenarios": scenario.to_str() });
            let runs = Grid::from_json(&grid.to_string()).expect("a grid").runs(&Registry::builtin());
            runs.expect("a run")[0].key.clone()
        };
        assert_eq!(key("1000"), key("1000"));
        assert_ne!(key("1000"), key("2000"));
    }

    #[test]
    fn a_parameter_is_set_where_the_scenario_has_none_and_other_tables_are_not_made() {
        let (text, half) = ("title = \"x\"\n[links.b]\nrate = \"1 Mbps\"\n", Value::from(0.5));
        let Ok(Given::Text { toml, .. }) = changed(text, &[("controllers.gcc.params.beta", &half)]) else {
            unreachable!("a text")
        };
        let table: toml::Table = toml.parse().expect("TOML");
        assert_eq!(table["controllers"]["gcc"]["params"]["beta"].as_float(), Some(0.5));
        let Err(error) = changed(text, &[("lniks.b.loss", &half)]) else { unreachable!("no such table") };
        assert!(error.to_string().contains("no table `lniks`"), "{error}");
    }
}
