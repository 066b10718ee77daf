//! Conditions that a paper leaves open, each run at two ends: they show whether a number that is not near depends on it.

use super::{Cell, ExplainedCell, OpenCondition, Paper, Place, Published, Verdict, is_near, stat};
use serde::{Deserialize, Serialize};
use weir_cc::Registry;
use weir_lab::results::RunResult;
use weir_lab::scenario::{InputError, ScenarioFile};

/// A condition that the paper leaves open, and the numbers that may depend on it: those of every list that is not empty.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// Short name, part of the names of its runs' scenarios.
    pub id: String,
    /// The condition in words.
    pub condition: String,
    /// Its two ends.
    pub ends: [End; 2],
    /// Tables, by the paper's own numbers.
    #[serde(default)]
    pub tables: Vec<String>,
    /// Conditions as published.
    #[serde(default)]
    pub conditions: Vec<String>,
    /// Algorithms as published.
    #[serde(default)]
    pub algorithms: Vec<String>,
    /// Metrics as published.
    #[serde(default)]
    pub metrics: Vec<String>,
    /// Library of encoders without which its ends are not run and explain nothing: not every build has each.
    #[serde(default)]
    pub library: Option<String>,
}

/// One end of a condition: the number's scenario with other values, another variant, scenario or controller; as it is if
/// nothing is given.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// The end in words.
    pub name: String,
    /// Places in the scenario, such as `links.bottleneck.queue`, and their values.
    #[serde(default)]
    pub set: toml::Table,
    /// Variants in place of the number's own.
    #[serde(default)]
    pub variants: Vec<String>,
    /// Scenario in place of the number's own, by the last part of its name.
    #[serde(default)]
    pub scenario: Option<String>,
    /// Controller in place of the number's own.
    #[serde(default)]
    pub controller: Option<String>,
}

impl End {
    /// Whether the paper's own runs have it.
    pub(super) fn is_as_run(&self) -> bool {
        self.set.is_empty() && self.only_sets()
    }

    /// Whether it is a change of a scenario's values alone.
    pub(super) fn only_sets(&self) -> bool {
        self.variants.is_empty() && self.scenario.is_none() && self.controller.is_none()
    }
}

impl Condition {
    /// Whether a published number is among those that it may decide.
    pub(super) fn covers(&self, p: &Published) -> bool {
        let among = |list: &[String], name: &String| list.is_empty() || list.contains(name);
        among(&self.tables, &p.table)
            && among(&self.conditions, &p.condition)
            && among(&self.algorithms, &p.algorithm)
            && among(&self.metrics, &p.metric)
    }

    /// The name of the scenario that one end runs for a number, by its last part.
    fn scenario(&self, end: usize, p: &Published, place: Option<&Place>) -> String {
        let own = place.and_then(|place| place.measured_in.as_ref()).unwrap_or(&p.scenario);
        let scenario = self.ends[end].scenario.as_ref().unwrap_or(own);
        format!("{scenario}{}", self.suffix(end))
    }

    /// Follows the name of a scenario with the values of one end; empty if the end sets none.
    pub(super) fn suffix(&self, end: usize) -> String {
        if self.ends[end].set.is_empty() { String::new() } else { format!("~{}-{}", self.id, end + 1) }
    }

    /// A published number, by its position, as one end measures it; `None` if it does not depend on the condition or was not run.
    pub(super) fn measured_at(&self, end: usize, paper: &Paper, i: usize, runs: &[RunResult]) -> Option<f64> {
        let p = paper.published.get(i).filter(|p| self.covers(p))?;
        let (p, place) = self.at(end, p, paper.place(p));
        stat(&p, place.as_ref(), runs).map(|s| s.mean)
    }

    /// Measures its numbers at both ends, and changes the verdict on those that the ends explain.
    pub(super) fn explain(&self, paper: &Paper, cells: &mut [Cell], runs: &[RunResult]) -> OpenCondition {
        let mut explained = Vec::new();
        for (p, cell) in paper.published.iter().zip(cells) {
            let Some(measured) = cell.measured.filter(|_| self.covers(p) && cell.verdict != Some(Verdict::Near)) else {
                continue;
            };
            let stats = [0, 1].map(|end| {
                let (p, place) = self.at(end, p, paper.place(p));
                stat(&p, place.as_ref(), runs)
            });
            let means = stats.map(|s| s.map(|s| s.mean));
            let holds = decides(p, means);
            if holds {
                cell.verdict = Some(Verdict::Explained);
            }
            explained.push(ExplainedCell {
                table: p.table.clone(),
                condition: p.condition.clone(),
                algorithm: p.algorithm.clone(),
                metric: p.metric.clone(),
                unit: p.unit.clone(),
                published: p.value,
                measured,
                at_ends: means,
                at_ends_ci95: stats.map(|s| s.and_then(|s| s.ci95)),
                explained: holds,
            });
        }
        OpenCondition {
            id: self.id.clone(),
            condition: self.condition.clone(),
            ends: self.ends.clone().map(|e| e.name),
            cells: explained,
        }
    }

    /// A number, and the place where one end measures it.
    fn at(&self, end: usize, p: &Published, place: Option<&Place>) -> (Published, Option<Place>) {
        let scenario = self.scenario(end, p, place);
        let end = &self.ends[end];
        let mut place = place.cloned();
        if place.is_none() && (!end.variants.is_empty() || end.controller.is_some()) {
            place = Some(Place { variants: vec![p.condition.clone()], ..Place::default() });
        }
        let mut p = p.clone();
        match &mut place {
            Some(place) => {
                place.measured_in = Some(scenario);
                place.controller = end.controller.clone().or(place.controller.take());
                if !end.variants.is_empty() {
                    place.variants.clone_from(&end.variants);
                }
            }
            None => p.scenario = scenario,
        }
        (p, place)
    }

    /// Whether it may decide a number of a scenario; `full` gives a scenario's whole name from its last part.
    pub(super) fn concerns(&self, paper: &Paper, scenario: &str, full: &dyn Fn(&str) -> String) -> bool {
        paper.published.iter().filter(|p| self.covers(p)).any(|p| {
            let own = paper.place(p).and_then(|place| place.measured_in.as_ref()).unwrap_or(&p.scenario);
            full(own) == scenario
        })
    }

    /// A scenario with the values of one end, under another name. Errors: a value that the scenario refuses.
    pub(super) fn set_in(
        &self,
        file: ScenarioFile,
        end: usize,
        name: &str,
        paper: &str,
        registry: &Registry,
    ) -> Result<ScenarioFile, InputError> {
        let set = &self.ends[end].set;
        if set.is_empty() {
            return Ok(file);
        }
        let text = changed(file.text(), set)
            .map_err(|why| InputError::whole(paper, why).field(format!("explained.{}.ends[{end}].set", self.id)))?;
        file.with_text(name, &text, registry)
    }

    /// The scenario files of its ends, beside those of the paper's numbers; `full` gives a scenario's whole name. Errors: a
    /// scenario that does not exist or has no such place, a value that it refuses, or an `id` that cannot be part of a name.
    pub(super) fn files(
        &self,
        paper: &Paper,
        full: &dyn Fn(&str) -> String,
        registry: &Registry,
    ) -> Result<Vec<ScenarioFile>, InputError> {
        if self.id.is_empty() || !self.id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            let what = format!("\"{}\": expected letters, digits and hyphens", self.id);
            return Err(InputError::whole(&paper.name, what).field("explained.id"));
        }
        if self.library.as_ref().is_some_and(|l| !weir_lab::run::has_library(l)) {
            return Ok(vec![]);
        }
        let covered: Vec<&Published> = paper.published.iter().filter(|p| self.covers(p)).collect();
        let mut files = Vec::new();
        for (i, end) in self.ends.iter().enumerate() {
            let mut wanted: Vec<Wanted> = Vec::new();
            for p in &covered {
                let place = paper.place(p);
                let own = place.and_then(|place| place.measured_in.as_ref()).unwrap_or(&p.scenario);
                let base = full(end.scenario.as_ref().unwrap_or(own));
                let at = wanted.iter().position(|w| w.base == base).unwrap_or_else(|| {
                    wanted.push(Wanted { base, ..Wanted::default() });
                    wanted.len() - 1
                });
                wanted[at].add(p, place, end);
            }
            for w in wanted {
                let file = ScenarioFile::open(&w.base, registry)?;
                let name = format!("{}{}", file.name(), self.suffix(i));
                let file = self.set_in(file, i, &name, &paper.name, registry)?;
                files.push(file.narrowed(&w.variants, &w.controllers));
            }
        }
        Ok(files)
    }
}

/// A scenario that an end requires, with the variants and controllers that its numbers name.
#[derive(Default)]
struct Wanted {
    base: String,
    variants: Vec<String>,
    controllers: Vec<String>,
}

impl Wanted {
    fn add(&mut self, p: &Published, place: Option<&Place>, end: &End) {
        let own = place.map_or(std::slice::from_ref(&p.condition), |place| &place.variants);
        let variants = if end.variants.is_empty() { own } else { &end.variants };
        let controller = end.controller.as_ref().or(place.and_then(|place| place.controller.as_ref()));
        self.variants.extend(variants.iter().cloned());
        self.controllers.push(controller.unwrap_or(&p.algorithm).clone());
        if p.metric.starts_with("tcp_friendliness_index") {
            // It is relative to TFRC.
            self.controllers.push("tfrc".into());
        }
    }
}

/// Whether a number depends on a condition as far as its two ends show: one is near, or they enclose it.
fn decides(p: &Published, at_ends: [Option<f64>; 2]) -> bool {
    let near = |m: f64| is_near(&p.metric, &p.unit, p.value, m);
    at_ends.into_iter().flatten().any(near)
        || matches!(at_ends, [Some(a), Some(b)] if a.min(b) <= p.value && p.value <= a.max(b))
}

/// A scenario's text with other values at some places, in its variants too where they have the same.
fn changed(text: &str, set: &toml::Table) -> Result<String, String> {
    let mut file: toml::Table = text.parse().map_err(|e: toml::de::Error| e.message().to_owned())?;
    let mut places = Vec::new();
    flatten("", set, &mut places);
    for (place, value) in places {
        let parts: Vec<&str> = place.split('.').collect();
        put(&mut file, &parts, value);
        let variants = file.get_mut("variants").and_then(toml::Value::as_array_mut);
        for variant in variants.into_iter().flatten().filter_map(toml::Value::as_table_mut) {
            let has = parts.iter().try_fold(&*variant, |t, part| match t.get(*part) {
                Some(toml::Value::Table(inner)) => Some(inner),
                Some(_) => Some(t),
                None => None,
            });
            if has.is_some() {
                put(variant, &parts, value);
            }
        }
    }
    in_order(file, text)
}

/// Tables of flows in a scenario's file.
const FLOWS: [&str; 4] = ["rtp", "tcp", "udp", "dccp"];

/// A file's text with its flows in the order of the original text: a table sorts its names, numbers of a run without a flow's name
/// are those of its first RTP flow, and what is drawn for a flow depends on its place.
fn in_order(mut file: toml::Table, original: &str) -> Result<String, String> {
    let mut flows = Vec::new();
    for kind in FLOWS {
        match file.remove(kind) {
            Some(toml::Value::Table(of_kind)) => {
                flows.extend(of_kind.into_iter().map(|(name, flow)| (kind, name, flow)))
            }
            Some(other) => drop(file.insert(kind.to_owned(), other)),
            None => {}
        }
    }
    flows.sort_by_key(|(kind, name, _)| original.find(&format!("[{kind}.{name}")).unwrap_or(usize::MAX));
    let mut text = toml::to_string(&file).map_err(|e| e.to_string())?;
    for (kind, name, flow) in flows {
        let flow = toml::Table::from_iter([(kind.to_owned(), toml::Table::from_iter([(name, flow)]).into())]);
        text += &format!("\n{}", toml::to_string(&flow).map_err(|e| e.to_string())?);
    }
    Ok(text)
}

/// Sets a value, in tables that are made where there are none: the scenario's reader reports unknown names.
fn put(table: &mut toml::Table, parts: &[&str], value: &toml::Value) {
    let Some((last, above)) = parts.split_last() else { return };
    let mut at = table;
    for part in above {
        let inner = at.entry(*part).or_insert_with(|| toml::Table::new().into());
        if !inner.is_table() {
            *inner = toml::Table::new().into();
        }
        let toml::Value::Table(inner) = inner else { return };
        at = inner;
    }
    at.insert((*last).into(), value.clone());
}

/// Places with their values; tables in tables are places with dots.
fn flatten<'a>(above: &str, set: &'a toml::Table, places: &mut Vec<(String, &'a toml::Value)>) {
    for (name, value) in set {
        let place = if above.is_empty() { name.clone() } else { format!("{above}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten(&place, inner, places),
            value => places.push((place, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(value: f64, unit: &str) -> Published {
        Published { value, unit: unit.into(), metric: "loss_rate".into(), ..Published::default() }
    }

    #[test]
    fn an_end_that_is_near_or_both_around_it_explain_a_number() {
        let p = published(10.0, "percent");
        assert!(decides(&p, [Some(9.0), Some(1.0)]) && decides(&p, [Some(30.0), Some(12.0)]));
        assert!(decides(&p, [Some(2.0), Some(40.0)]) && decides(&p, [Some(40.0), Some(2.0)]));
        assert!(!decides(&p, [Some(13.0), Some(40.0)]) && !decides(&p, [Some(1.0), Some(7.0)]));
        // An end that did not run encloses nothing.
        assert!(!decides(&p, [Some(2.0), None]) && decides(&p, [None, Some(11.0)]) && !decides(&p, [None, None]));
    }

    /// A condition without a change, which every paper's numbers may depend on.
    fn condition(id: &str) -> Condition {
        Condition { id: id.into(), condition: "The length of the queue".into(), ..Condition::default() }
    }

    #[test]
    fn an_identifier_that_is_no_part_of_a_name_is_refused() {
        let paper = Paper::default();
        let files = |c: &Condition| c.files(&paper, &|s| s.into(), &Registry::builtin());
        let refused = files(&condition("a/b")).expect_err("a slash");
        assert_eq!(refused.field_path(), Some("explained.id"));
        assert_eq!(files(&condition("a-1")).expect("no number").len(), 0);
    }

    #[test]
    fn ends_that_need_a_library_run_only_in_builds_that_have_it() {
        let paper = Paper { published: vec![published(1.0, "percent")], ..Paper::default() };
        let end = || End { scenario: Some("quick".into()), controller: Some("gcc".into()), ..End::default() };
        let c = Condition { ends: [end(), end()], ..condition("encoder") };
        let files = |c: &Condition| c.files(&paper, &|s| s.into(), &Registry::builtin()).expect("sound").len();
        assert_eq!(files(&c), 2);
        assert_eq!(files(&Condition { library: Some("no-such-library".into()), ..c }), 0);
    }

    #[test]
    fn values_are_set_where_the_scenario_and_its_variants_have_them() {
        let text = "title = \"x\"\n[[variants]]\nname = \"a\"\nlinks.l.queue = \"1 packets\"\n[[variants]]\nname = \"b\"\n\
                    links.l.delay = \"1 ms\"\n[links.l]\nqueue = \"5 packets\"\n";
        let set: toml::Table = "\"links.l.queue\" = \"9 packets\"\n".parse().expect("TOML");
        let out: toml::Table = changed(text, &set).expect("has the place").parse().expect("TOML");
        assert_eq!(out["links"]["l"]["queue"].as_str(), Some("9 packets"));
        assert_eq!(out["variants"][0]["links"]["l"]["queue"].as_str(), Some("9 packets"));
        assert!(out["variants"][1]["links"]["l"].get("queue").is_none());
        // Flows stay in their order.
        let text = "title = \"x\"\n[rtp.call]\nfloor = \"1 kbps\"\n[rtp.back]\nfloor = \"2 kbps\"\n[[variants]]\nname = \"a\"\n";
        let out = changed(text, &set).expect("has the place");
        assert!(out.find("[rtp.call]") < out.find("[rtp.back]") && out.contains("[rtp.back]"), "{out}");
        assert_eq!(out.parse::<toml::Table>().expect("TOML")["rtp"].as_table().map(|t| t.len()), Some(2));
        // A table replaces a value, and a place that nobody has is made.
        let set: toml::Table = "links.l.queue.packets = 3\nlinks.m.delay = \"1 ms\"\n".parse().expect("TOML");
        let out: toml::Table = changed(text, &set).expect("has the place").parse().expect("TOML");
        assert_eq!(out["links"]["l"]["queue"]["packets"].as_integer(), Some(3));
        assert_eq!(out["links"]["m"]["delay"].as_str(), Some("1 ms"));
    }
}
