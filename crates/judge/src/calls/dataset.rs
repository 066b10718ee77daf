//! The folder of many calls.

use super::row::{CallFailure, CallResult, CallRow};
use crate::sweep::folder::{self, files, quoted};
use crate::sweep::rows;
use crate::sweep::table::Table;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The layout's number.
pub const FORMAT: u64 = 1;
/// The file that marks the folder.
const MARK: &str = "weir-calls.json";
/// Folders of rows and of failures.
pub(super) const FITS: &str = "fits";
pub(super) const CONTROLLERS: &str = "controllers";
pub(super) const FAILURES: &str = "failures";

/// A folder of fits, one row a call, of controllers over their links, one row a call and controller, and of failures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallsDataset {
    folder: PathBuf,
}

impl CallsDataset {
    /// The folder, which is made if it is missing. Errors, in words: it has files and is of something else, or of another layout.
    pub fn open(folder: &Path) -> Result<Self, String> {
        folder::open(folder, MARK, FORMAT, "folder of calls")?;
        Ok(Self { folder: folder.into() })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn files(&self, part: &str) -> Result<Vec<PathBuf>, String> {
        files(&self.folder.join(part))
    }

    /// The keys of a part's rows.
    fn keys_of(&self, part: &str) -> Result<BTreeSet<String>, String> {
        let mut keys = BTreeSet::new();
        for path in self.files(part)? {
            keys.extend(rows::keys(&path).map_err(|e| unreadable(&path, &e))?);
        }
        Ok(keys)
    }

    /// The keys of all rows that are kept. Errors, in words: a file that cannot be read.
    pub fn keys(&self) -> Result<BTreeSet<String>, String> {
        let mut keys = self.keys_of(FITS)?;
        keys.extend(self.keys_of(CONTROLLERS)?);
        Ok(keys)
    }

    /// The failures that are kept, by key; those of rows that were made later are left out. Errors, in words: a file that cannot be read.
    pub fn failures(&self) -> Result<BTreeMap<String, CallFailure>, String> {
        let mut out = BTreeMap::new();
        for path in self.files(FAILURES)? {
            let take = |row: rows::Values| {
                let failure = CallFailure {
                    key: row.text("key").into(),
                    call: row.text("call").into(),
                    controller: row.texts.get("controller").cloned(),
                    error: row.text("error").into(),
                };
                out.insert(failure.key.clone(), failure);
            };
            rows::each(&path, |_| true, take).map_err(|e| unreadable(&path, &e))?;
        }
        if !out.is_empty() {
            let made = self.keys()?;
            out.retain(|key, _| !made.contains(key));
        }
        Ok(out)
    }

    /// Forgets failures, so that their rows are made again. Errors, in words: a file cannot be deleted.
    pub fn forget_failures(&self) -> Result<(), String> {
        self.files(FAILURES)?
            .into_iter()
            .try_for_each(|path| fs::remove_file(&path).map_err(|e| format!("{}: {e}", path.display())))
    }

    /// Keeps rows and failures; each file is written whole or not at all. Errors, in words: a file cannot be written.
    pub fn keep(&self, results: &[CallResult]) -> Result<(), String> {
        // Rows are in one order, whoever made them first.
        let mut rows: Vec<&CallRow> = results.iter().flat_map(|r| &r.rows).collect();
        rows.sort_by(|a, b| (&a.controller, &a.key).cmp(&(&b.controller, &b.key)));
        for part in rows.chunk_by(|a, b| a.controller == b.controller) {
            let mut table = Table::default();
            for row in part {
                table.begin(&row.key);
                row.texts.iter().for_each(|(name, text)| table.text(name, Some(text.clone())));
                row.numbers.iter().for_each(|(name, number)| table.number(name, *number));
            }
            table.write(&match part.first().and_then(|r| r.controller.as_ref()) {
                None => self.folder.join(FITS),
                Some(name) => self.folder.join(CONTROLLERS).join(format!("controller={}", quoted(name))),
            })?;
        }
        let mut failures: Vec<&CallFailure> = results.iter().flat_map(|r| &r.failures).collect();
        failures.sort_by(|a, b| a.key.cmp(&b.key));
        let mut table = Table::default();
        for failure in failures {
            table.begin(&failure.key);
            table.text("call", Some(failure.call.clone()));
            table.text("controller", failure.controller.clone());
            table.text("error", Some(failure.error.clone()));
        }
        table.write(&self.folder.join(FAILURES))
    }
}

pub(super) fn unreadable(path: &Path, e: &impl std::fmt::Display) -> String {
    format!("{}: {e}: delete the file, and its rows are made again", path.display())
}
