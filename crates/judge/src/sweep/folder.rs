//! Folders of Parquet files, with a mark that says whose they are.

use serde_json::Value;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use weir_report::atomic_write::write_atomically;

/// Makes sure that a folder is one of files under this mark, and makes it if it is missing. Errors, in words: it has files and not the
/// mark, or the mark of another layout; `what` it should be, with its article.
pub(crate) fn open(folder: &Path, mark: &str, format: u64, what: &str) -> Result<(), String> {
    let failed = |e: io::Error| format!("out: {}: {e}", folder.display());
    fs::create_dir_all(folder).map_err(failed)?;
    let mark = folder.join(mark);
    match fs::read_to_string(&mark) {
        Ok(text) => {
            let found = serde_json::from_str::<Value>(&text).ok().and_then(|v| v.get("format").cloned());
            if found == Some(format.into()) {
                return Ok(());
            }
            let found = found.map_or_else(|| "none".into(), |f| f.to_string());
            Err(format!("out: {} has the layout {found}: this version has {format}", folder.display()))
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if fs::read_dir(folder).map_err(failed)?.next().is_some() {
                return Err(format!("out: {} has files and is no {what}: give an empty folder", folder.display()));
            }
            write_atomically(&mark, |out| writeln!(out, "{{\"format\": {format}}}")).map_err(failed)
        }
        Err(e) => Err(failed(e)),
    }
}

/// Parquet files below a folder, by name; none if there is no such folder.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
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
pub(crate) fn quoted(name: &str) -> String {
    let byte = |b: u8| match b {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(b).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(byte).collect()
}
