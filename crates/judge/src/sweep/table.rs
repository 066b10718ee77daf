//! Rows whose columns differ, as one file.

use super::address::digest;
use super::rows::{self, Column};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use weir_report::atomic_write::write_atomically;

/// Digits of a file's name.
const NAME_DIGITS: usize = 32;

/// Rows whose columns differ. Each has a key.
#[derive(Default)]
pub(crate) struct Table {
    keys: BTreeSet<String>,
    rows: usize,
    wholes: BTreeMap<String, Vec<i64>>,
    texts: BTreeMap<String, Vec<Option<String>>>,
    numbers: BTreeMap<String, Vec<Option<f64>>>,
}

impl Table {
    /// Begins a row; values go into the row begun last.
    pub(crate) fn begin(&mut self, key: &str) {
        self.rows += 1;
        self.keys.insert(key.to_owned());
        self.text("key", Some(key.to_owned()));
    }
    /// A whole number, which every row has.
    pub(crate) fn whole(&mut self, name: &str, value: i64) {
        self.wholes.entry(name.into()).or_default().push(value);
    }
    pub(crate) fn text(&mut self, name: &str, value: Option<String>) {
        let column = self.texts.entry(name.into()).or_default();
        column.resize(self.rows - 1, None);
        column.push(value);
    }
    pub(crate) fn number(&mut self, name: &str, value: Option<f64>) {
        let column = self.numbers.entry(name.into()).or_default();
        column.resize(self.rows - 1, None);
        column.push(value);
    }
    /// Every number of an object, by its path.
    pub(crate) fn numbers(&mut self, path: &str, value: &Value) {
        match value {
            Value::Number(n) => self.number(path, n.as_f64()),
            Value::Object(fields) => {
                for (name, inner) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    self.numbers(&path, inner);
                }
            }
            _ => {}
        }
    }
    /// Writes a file, whole or not at all, whose name is a digest of the rows' keys; none of no rows. Errors, in words: it cannot be written.
    pub(crate) fn write(self, folder: &Path) -> Result<(), String> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut columns: Vec<(String, Column)> = Vec::new();
        columns.extend(self.wholes.into_iter().map(|(name, values)| (name, Column::Whole(values))));
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
