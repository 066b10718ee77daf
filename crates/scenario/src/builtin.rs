//! The scenarios that ship with Weir, inside the program.

use crate::embedded::SCENARIOS as FILES;

/// All files: path under `scenarios/` and text.
pub(super) fn files() -> impl Iterator<Item = (&'static str, &'static str)> {
    FILES.iter().copied()
}

/// The text of the file at a path below `scenarios/`, such as `examples/lte-like.csv`; `None` if none of it ships with Weir.
pub fn file(path: &str) -> Option<&'static str> {
    FILES.iter().find(|f| f.0 == path).map(|f| f.1)
}

/// All scenarios: name, such as `rmcat-comparison/responsiveness`, and text, in the order of lists.
pub fn scenarios() -> impl Iterator<Item = (&'static str, &'static str)> {
    files().filter_map(|(path, text)| Some((path.strip_suffix(".toml")?, text)))
}

/// The full name of a scenario: of its name, of its last part if that is unique, or without `.toml`.
pub(super) fn scenario_name(name: &str) -> Option<&'static str> {
    let names = || scenarios().map(|s| s.0);
    if let Some(whole) = names().find(|n| *n == name) {
        return Some(whole);
    }
    let mut last = names().filter(|n| n.rsplit('/').next() == Some(name));
    match (last.next(), last.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}
