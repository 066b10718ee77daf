//! A scenario's network as text, for another file whose only flow takes the path of the first one here.

use super::error::InputError;
use super::file::ScenarioFile;
use super::model::Link;
use super::traces::Folder;
use serde::Deserialize;
use std::fmt::Write as _;
use toml::de::DeTable;
use toml::{Spanned, Table, Value};
use weir_cc::Registry;
use weir_path::Capacity;

/// Kinds of flows.
const FLOWS: [&str; 4] = ["rtp", "tcp", "udp", "dccp"];
/// Fields of the network path, which a flow of any kind has.
const WAY: [&str; 5] = ["direction", "path", "dscp", "access_delay", "access_rate"];

/// Parts of a scenario file: the network of one of its variants, without its flows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct NetworkText {
    /// Fields of the whole file, such as `topology`; they come before all tables.
    pub fields: String,
    /// The tables of links.
    pub tables: String,
    /// Fields of a flow that takes the first flow's path.
    pub flow: String,
}

impl ScenarioFile {
    /// The network of a variant, the first if none is given, as text. Recorded capacities become steps, so that the text needs
    /// no other file; recorded opportunities stay in theirs, named by its full path. Errors: an unknown variant.
    pub fn network_text(&self, variant: Option<&str>, registry: &Registry) -> Result<NetworkText, InputError> {
        let scenario = self.one(variant, None, registry)?;
        let tree = self.tree(scenario.variant.as_deref())?;
        let base = match self.folder() {
            Folder::Disk(folder) => std::path::absolute(folder).ok(),
            Folder::BuiltIn(_) | Folder::Given(_) => None,
        };
        let failed = |e: toml::ser::Error| InputError::whole(self.name(), e.to_string());
        let table = |name: &str| tree.get_ref().get(name).and_then(|v| v.get_ref().as_table());
        let mut text = NetworkText::default();
        for field in ["topology", "bottleneck"] {
            if let Some(value) = tree.get_ref().get(field) {
                text.fields += &toml::to_string(&nested(&[field], plain(value)?)).map_err(failed)?;
            }
        }
        if let Some(access) = tree.get_ref().get("access") {
            text.tables += &toml::to_string(&nested(&["access"], plain(access)?)).map_err(failed)?;
        }
        // One after the other: their order may be that of a row.
        let links = table("links").into_iter().flatten();
        let mut links: Vec<_> = links.map(|(name, value)| (name.span().start, name.get_ref(), value)).collect();
        links.sort_by_key(|l| l.0);
        for (_, name, value) in links {
            let mut link = plain(value)?;
            for (place, of) in [(None, name.to_string()), (Some("reverse"), format!("{name}.reverse"))] {
                let capacity = scenario.link(&of).map(|index| &scenario.links[index]);
                let part = match place {
                    None => Some(&mut link),
                    Some(place) => link.get_mut(place),
                };
                if let (Some(rate), Some(capacity)) = (part.and_then(|p| p.get_mut("rate")), capacity) {
                    without_files(rate, capacity, base.as_deref());
                }
            }
            text.tables += &toml::to_string(&nested(&["links", name], link)).map_err(failed)?;
        }
        if let Some(flow) = FLOWS.iter().filter_map(|kind| first(table(kind)?)).min_by_key(|f| f.0).map(|f| f.1) {
            let mut way = Table::new();
            for field in WAY {
                if let Some(value) = flow.get(field) {
                    way.insert(field.into(), plain(value)?);
                }
            }
            let paths = flow.get("multipath").and_then(|m| m.get_ref().as_table()?.get("paths")?.get_ref().as_array());
            if let Some(path) = paths.and_then(|paths| paths.first()) {
                way.insert("path".into(), plain(path)?);
            }
            text.flow = toml::to_string(&way).map_err(failed)?;
        }
        Ok(text)
    }
}

/// The first of a table's entries in the file, and where it is.
fn first<'a, 'i>(flows: &'a DeTable<'i>) -> Option<(usize, &'a DeTable<'i>)> {
    let flows = flows.iter().filter_map(|(name, flow)| Some((name.span().start, flow.get_ref().as_table()?)));
    flows.min_by_key(|f| f.0)
}

fn nested(path: &[&str], value: Value) -> Table {
    let value =
        path.iter().rev().fold(value, |value, name| Value::Table(Table::from_iter([(name.to_string(), value)])));
    value.as_table().cloned().unwrap_or_default()
}

/// A value without its positions.
fn plain(value: &Spanned<toml::de::DeValue<'_>>) -> Result<Value, InputError> {
    let value = value.clone();
    Value::deserialize(toml::de::ValueDeserializer::from(value))
        .map_err(|e| InputError::whole("the scenario", e.message().to_owned()))
}

/// A capacity without the file that it names.
fn without_files(rate: &mut Value, link: &Link, base: Option<&std::path::Path>) {
    let Some(table) = rate.as_table_mut() else { return };
    let Some(Value::String(file)) = table.get("trace") else { return };
    match &link.config.capacity {
        Capacity::Schedule(schedule) => {
            let steps = schedule.steps().iter().map(|step| {
                let at = ("at".to_owned(), Value::String(format!("{} s", decimal((step.at).as_nanos()))));
                let rate = ("rate".to_owned(), Value::String(format!("{} bps", step.rate.as_bps())));
                Value::Table(Table::from_iter([at, rate]))
            });
            let mut steps = Table::from_iter([("steps".to_owned(), Value::Array(steps.collect()))]);
            if let Some(period) = schedule.period() {
                steps.insert("repeat".into(), Value::String(format!("{} s", decimal(period.as_nanos()))));
            }
            *table = steps;
        }
        _ => {
            if let Some(base) = base {
                let path = base.join(file).display().to_string();
                table.insert("trace".into(), Value::String(path));
            }
        }
    }
}

/// Nanoseconds as seconds, exactly.
fn decimal(nanos: i64) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "{}.{:09}", nanos / 1_000_000_000, nanos.rem_euclid(1_000_000_000));
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
