//! Parts of tests that several programs of tests have.

use std::fs;
use std::path::{Path, PathBuf};

/// Files below a folder, by their names and contents.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for path in fs::read_dir(at).expect("there").flatten().map(|e| e.path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let bytes = fs::read(&path).expect("readable");
                    found.push((path.strip_prefix(folder).expect("below").to_owned(), bytes));
                }
            }
        }
    }
    found.sort();
    found
}
