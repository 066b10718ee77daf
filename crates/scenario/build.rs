//! Lists the files of `scenarios/`, `papers/` and `twins/` to be embedded in the program: adding a file to a folder there is
//! enough. The scenarios' schema is embedded beside them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    for folder in ["scenarios", "papers", "twins"] {
        // Links beside this file include the folders in a packaged archive. If links are not checked out, the root has
        // them.
        let places = [package.join(folder), package.join("../..").join(folder)];
        let from = places.iter().find(|p| p.is_dir()).unwrap_or(&places[1]).canonicalize()?;
        println!("cargo::rerun-if-changed={}", from.display());
        fs::write(out.join(format!("{folder}.rs")), listing(&from)?)?;
        if folder == "scenarios" {
            fs::copy(from.join("schema.json"), out.join("schema.json"))?;
        }
    }
    Ok(())
}

/// Rust source of a slice with the path of each file below `folder`, separated by `/`, and its text. Files of the
/// folder itself and hidden ones are omitted; the order is that of the paths.
pub(crate) fn listing(folder: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    walk(folder, "", &mut files)?;
    files.sort();
    let mut source = String::from("&[\n");
    for (below, path) in files {
        // Writing into a string does not fail.
        let _ = writeln!(source, "    ({below:?}, include_str!({:?})),", path.display().to_string());
    }
    source.push_str("]\n");
    Ok(source)
}

fn walk(folder: &Path, below: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|n| n.to_str()).filter(|n| !n.starts_with('.')) else { continue };
        let here = if below.is_empty() { name.to_owned() } else { format!("{below}/{name}") };
        if path.is_dir() {
            walk(&path, &here, files)?;
        } else if !below.is_empty() {
            files.push((here, path));
        }
    }
    Ok(())
}
