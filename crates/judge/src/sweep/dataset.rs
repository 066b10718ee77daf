//! The folder of a sweep.

use super::folder::{self, files, quoted};
use super::grid::SweepRun;
use super::rows;
use super::table::Table;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The layout's number.
pub const FORMAT: u64 = 2;
/// The file that marks a sweep's folder.
const MARK: &str = "weir-sweep.json";

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
        folder::open(folder, MARK, FORMAT, "sweep")?;
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
                Some(result) => add_flows(&mut flows, &kept.run, result)?,
                None => {
                    begin(&mut failed, &kept.run);
                    failed.text("controller", kept.run.controller.clone());
                    failed.text("error", kept.error.clone());
                }
            }
        }
        flows.write(&runs)?;
        failed.write(&self.folder.join("failures"))
    }
}

fn begin(table: &mut Table, run: &SweepRun) {
    table.begin(&run.key);
    table.whole("seed", i64::from(run.seed));
    table.text("set", Some(run.set.clone()));
    table.text("variant", run.variant.clone());
}

fn add_flows(table: &mut Table, run: &SweepRun, result: &str) -> Result<(), String> {
    let value: Value = serde_json::from_str(result).map_err(|e| format!("a result that is no JSON: {e}"))?;
    let text = |v: Option<&Value>| v.and_then(Value::as_str).map(str::to_owned);
    for flow in value.get("flows").and_then(Value::as_array).into_iter().flatten() {
        begin(table, run);
        table.text("scenario", text(value.get("scenario")));
        table.text("flow", text(flow.get("name")));
        table.text("result", Some(result.into()));
        table.numbers("", flow);
    }
    Ok(())
}
