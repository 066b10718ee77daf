//! The folder of a sweep.

use super::address::digest;
use super::grid::SweepRun;
use super::rows::{self, Column};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use weir_report::atomic_write::write_atomically;

/// The layout's number.
pub const FORMAT: u64 = 2;
/// The file that marks a sweep's folder.
const MARK: &str = "weir-sweep.json";
/// Digits of a file's name.
const NAME_DIGITS: usize = 32;

/// A run and what came of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SweepResult {
    /// The run.
    #[serde(flatten)]
    pub run: SweepRun,
    /// The result's JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A folder of results, one row a flow, and of failures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dataset {
    folder: PathBuf,
}

impl Dataset {
    /// A sweep's folder, which is made if it is missing. Errors, in words: it has files and is no sweep, or of another layout.
    pub fn open(folder: &Path) -> Result<Self, String> {
        let failed = |e: io::Error| format!("out: {}: {e}", folder.display());
        fs::create_dir_all(folder).map_err(failed)?;
        let mark = folder.join(MARK);
        match fs::read_to_string(&mark) {
            Ok(text) => {
                let found = serde_json::from_str::<Value>(&text).ok().and_then(|v| v.get("format").cloned());
                if found != Some(FORMAT.into()) {
                    let found = found.map_or_else(|| "none".into(), |f| f.to_string());
                    return Err(format!("out: {} has the layout {found}: this version has {FORMAT}", folder.display()));
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if fs::read_dir(folder).map_err(failed)?.next().is_some() {
                    return Err(format!("out: {} has files and is no sweep: give an empty folder", folder.display()));
                }
                write_atomically(&mark, |out| writeln!(out, "{{\"format\": {FORMAT}}}")).map_err(failed)?;
            }
            Err(e) => return Err(failed(e)),
        }
        Ok(Self { folder: folder.into() })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The keys of the runs that are kept. Failed ones are among them unless they are to be repeated. Errors, in words: a file
    /// that cannot be read.
    pub fn keys(&self, repeat_failures: bool) -> Result<BTreeSet<String>, String> {
        let parts = if repeat_failures { &["runs"][..] } else { &["runs", "failures"] };
        let mut keys = BTreeSet::new();
        for part in parts {
            for path in files(&self.folder.join(part))? {
                let found = rows::keys(&path)
                    .map_err(|e| format!("{}: {e}: delete the file, and its runs are made again", path.display()))?;
                keys.extend(found);
            }
        }
        Ok(keys)
    }

    /// The failures that are kept, in the order of their files: number and all.
    pub fn failures(&self) -> Result<usize, String> {
        let count = |path: PathBuf| rows::keys(&path).map(|k| k.len()).map_err(|e| format!("{}: {e}", path.display()));
        files(&self.folder.join("failures"))?.into_iter().map(count).sum()
    }

    /// Keeps results, all of one controller; each file is written whole or not at all. Errors, in words: a file cannot be written.
    pub fn keep(&self, results: &[SweepResult]) -> Result<(), String> {
        // Rows are in one order, whoever made them first.
        let mut results: Vec<&SweepResult> = results.iter().collect();
        results.sort_by(|a, b| a.run.key.cmp(&b.run.key));
        let controller = results.first().and_then(|r| r.run.controller.clone()).unwrap_or_else(|| "None".into());
        let runs = self.folder.join("runs").join(format!("controller={}", quoted(&controller)));
        let (mut flows, mut failed) = (Table::default(), Table::default());
        for kept in results {
            match &kept.result {
                Some(result) => flows.add_flows(&kept.run, result)?,
                None => {
                    failed.begin(&kept.run);
                    failed.text("controller", kept.run.controller.clone());
                    failed.text("error", kept.error.clone());
                }
            }
        }
        flows.write(&runs)?;
        failed.write(&self.folder.join("failures"))
    }
}

/// Parquet files below a folder, by name; none if there is no such folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let entries = match fs::read_dir(&folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            other => other.map_err(|e| format!("{}: {e}", folder.display()))?,
        };
        for path in entries.flatten().map(|e| e.path()) {
            if path.is_dir() && depth < 4 {
                folders.push((path, depth + 1));
            } else if path.extension().is_some_and(|e| e == "parquet") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// A name in a partition's folder: what is not unreserved in RFC 3986, section 2.3, is percent-encoded.
fn quoted(name: &str) -> String {
    let byte = |b: u8| match b {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(b).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}

/// Rows whose columns differ.
#[derive(Default)]
struct Table {
    keys: BTreeSet<String>,
    rows: usize,
    seeds: Vec<i64>,
    texts: BTreeMap<String, Vec<Option<String>>>,
    numbers: BTreeMap<String, Vec<Option<f64>>>,
}

impl Table {
    fn begin(&mut self, run: &SweepRun) {
        self.rows += 1;
        self.keys.insert(run.key.clone());
        self.seeds.push(i64::from(run.seed));
        self.text("key", Some(run.key.clone()));
        self.text("set", Some(run.set.clone()));
        self.text("variant", run.variant.clone());
    }
    fn text(&mut self, name: &str, value: Option<String>) {
        let column = self.texts.entry(name.into()).or_default();
        column.resize(self.rows - 1, None);
        column.push(value);
    }
    /// Every number of an object, by its path.
    fn numbers(&mut self, path: &str, value: &Value) {
        match value {
            Value::Number(n) => {
                let column = self.numbers.entry(path.into()).or_default();
                column.resize(self.rows - 1, None);
                column.push(n.as_f64());
            }
            Value::Object(fields) => {
                for (name, inner) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.numbers(&path, inner);
                }
            }
            _ => {}
        }
    }
    fn add_flows(&mut self, run: &SweepRun, result: &str) -> Result<(), String> {
        let value: Value = serde_json::from_str(result).map_err(|e| format!("a result that is no JSON: {e}"))?;
        let text = |v: Option<&Value>| v.and_then(Value::as_str).map(str::to_owned);
        for flow in value.get("flows").and_then(Value::as_array).into_iter().flatten() {
            self.begin(run);
            self.text("scenario", text(value.get("scenario")));
            self.text("flow", text(flow.get("name")));
            self.text("result", Some(result.into()));
            self.numbers("", flow);
        }
        Ok(())
    }
    fn write(self, folder: &Path) -> Result<(), String> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut columns = vec![("seed".to_owned(), Column::Whole(self.seeds))];
        for (name, mut values) in self.texts {
            values.resize(self.rows, None);
            columns.push((name, Column::Text(values)));
        }
        for (name, mut values) in self.numbers {
            values.resize(self.rows, None);
            columns.push((name, Column::Number(values)));
        }
        let name = digest(&self.keys.into_iter().collect::<String>());
        let path = folder.join(format!("{}.parquet", &name[..NAME_DIGITS]));
        let bytes = rows::bytes(&columns).map_err(|e| format!("{}: {e}", path.display()))?;
        let written = fs::create_dir_all(folder).and_then(|()| write_atomically(&path, |out| out.write_all(&bytes)));
        written.map_err(|e| format!("{}: {e}", path.display()))
    }
}
