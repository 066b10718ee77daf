//! The checkout that is measured, and the machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository's root: the current folder or one above it, or else one above the program; `None` outside of any.
pub fn root() -> Option<PathBuf> {
    let is_root = |p: &Path| p.join("benches/compare").is_dir() && p.join("crates/weir/Cargo.toml").is_file();
    let above = |from: Option<PathBuf>| from?.ancestors().find(|p| is_root(p)).map(Path::to_owned);
    above(std::env::current_dir().ok()).or_else(|| above(std::env::current_exe().ok())).or_else(|| above(built()))
}

/// The folder that tests were built from: their programs may be elsewhere.
#[cfg(debug_assertions)]
fn built() -> Option<PathBuf> {
    Some(env!("CARGO_MANIFEST_DIR").into())
}

/// None: two checkouts would build different programs by this path.
#[cfg(not(debug_assertions))]
fn built() -> Option<PathBuf> {
    None
}

/// Runs git in a folder and returns what it prints. Errors: it does not start, or fails; in words.
pub(crate) fn git(folder: &Path, args: &[&str]) -> Result<String, String> {
    let out = Command::new("git").arg("-C").arg(folder).args(args).stdin(Stdio::null()).output();
    let out = out.map_err(|e| format!("git does not start: {e}"))?;
    if !out.status.success() {
        return Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&out.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
}

/// Where and of what something was measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The commit, short, with its date, and whether files differ from it.
    pub commit: String,
    /// The processor and the number of cores.
    pub machine: String,
    /// Programs that wanted a core on average over the last minute, before the measurement.
    pub load: Option<String>,
}

impl Origin {
    /// The checkout at `root`, and this machine. Errors: git fails.
    pub fn here(root: &Path) -> Result<Self, String> {
        let commit = git(root, &["log", "-1", "--format=%h of %cs"])?;
        let is_changed = !git(root, &["status", "--porcelain", "--untracked-files=no"])?.is_empty();
        let commit = if is_changed { format!("{commit} with changes") } else { commit };
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let processor =
            read("/proc/cpuinfo").and_then(|text| model(&text)).unwrap_or_else(|| std::env::consts::ARCH.into());
        let load = read("/proc/loadavg").and_then(|text| Some(text.split(' ').next()?.to_owned()));
        Ok(Self { commit, machine: format!("{processor}, {cores} cores"), load })
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Commit {}; {}", self.commit, self.machine)?;
        self.load.as_ref().map_or(Ok(()), |load| write!(f, ", load {load} before"))
    }
}

fn read(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The processor's name in /proc/cpuinfo.
fn model(text: &str) -> Option<String> {
    let line = text.lines().find(|l| l.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processor_is_named_as_the_kernel_has_it() {
        assert_eq!(model("processor\t: 0\nmodel name\t: AMD EPYC\n").as_deref(), Some("AMD EPYC"));
        assert_eq!(model("CPU part: 0xd0c\n"), None);
    }

    #[test]
    fn an_origin_is_one_line() {
        let origin = Origin { commit: "abc of 2026-01-01".into(), machine: "AMD EPYC, 2 cores".into(), load: None };
        assert_eq!(origin.to_string(), "Commit abc of 2026-01-01; AMD EPYC, 2 cores");
        let loaded = Origin { load: Some("0.50".into()), ..origin };
        assert_eq!(loaded.to_string(), "Commit abc of 2026-01-01; AMD EPYC, 2 cores, load 0.50 before");
    }
}
