//! States the commit, target and features of the build for `weir --version`.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-env-changed=WEIR_COMMIT");
    println!("cargo::rustc-env=WEIR_COMMIT={}", commit());
    println!("cargo::rustc-env=WEIR_TARGET={}", env::var("TARGET").unwrap_or_default());
    println!("cargo::rustc-env=WEIR_FEATURES={}", features().join(", "));
}

/// The commit of a release build: as given by `WEIR_COMMIT`, or of the checkout. Other builds have none: each commit would
/// compile the program and its tests again.
fn commit() -> String {
    let given = env::var("WEIR_COMMIT").ok().filter(|c| !c.is_empty() && c.chars().all(|c| c.is_ascii_alphanumeric()));
    let of_checkout = || {
        let root = Path::new(&env::var_os("CARGO_MANIFEST_DIR")?).join("../..");
        // In a packaged archive the folder above may be another project's.
        let is_ours = env::var("PROFILE").is_ok_and(|p| p == "release") && root.join("crates/cli/build.rs").exists();
        let log = root.join(".git/logs/HEAD");
        if !is_ours || fs::metadata(&log).is_err() {
            return None;
        }
        println!("cargo::rerun-if-changed={}", log.display());
        let git = Command::new("git").arg("-C").arg(&root).args(["rev-parse", "--short=12", "HEAD"]).output().ok()?;
        let text = String::from_utf8(git.stdout).ok()?;
        Some(text.trim().to_owned()).filter(|c| git.status.success() && !c.is_empty())
    };
    given.or_else(of_checkout).unwrap_or_else(|| "not stated".into())
}

/// The features that are built in, by their names in the manifest.
fn features() -> Vec<String> {
    let names = env::vars().filter_map(|(name, _)| name.strip_prefix("CARGO_FEATURE_").map(str::to_owned));
    let mut names: Vec<_> = names.map(|n| n.to_lowercase().replace('_', "-")).collect();
    // Groups of others.
    names.retain(|n| n != "default" && n != "full");
    names.sort();
    if names.is_empty() { vec!["none".into()] } else { names }
}
