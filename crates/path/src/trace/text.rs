//! Lines and cells of a trace, and errors.

use std::fmt::Display;

/// An invalid line of a trace.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {field} is {value:?}: expected {expected}")]
pub struct TraceError {
    /// The name that the caller gave the text.
    pub file: String,
    /// The line, counted from 1; the last one if the whole text is at fault.
    pub line: usize,
    /// The field or column.
    pub field: String,
    /// Its value.
    pub value: String,
    /// The valid values, and how to correct it.
    pub expected: String,
}

impl TraceError {
    pub(super) fn new(file: &str, line: usize, field: &str, value: impl Display, expected: impl Display) -> Self {
        let (value, expected) = (value.to_string(), expected.to_string());
        Self { file: file.into(), line, field: field.into(), value, expected }
    }
}

/// Lines with their numbers, without blank ones and comments that begin with `#`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let numbered = text.lines().enumerate().map(|(i, l)| (i + 1, l.trim().trim_start_matches('\u{feff}')));
    numbered.filter(|(_, l)| !l.is_empty() && !l.starts_with('#'))
}

/// The cells of a line, separated by commas, semicolons or spaces, but not by those between quotes.
pub(super) fn cells(line: &str) -> impl Iterator<Item = &str> {
    let outside = || line.split('"').step_by(2);
    let separator = [',', ';'].into_iter().find(|&c| outside().any(|part| part.contains(c)));
    let mut is_quoted = false;
    let ends = move |c: char| {
        is_quoted ^= c == '"';
        !is_quoted && Some(c) == separator
    };
    let (by_mark, by_blank) = match separator {
        Some(_) => (Some(line.split(ends)), None),
        None => (None, Some(line.split_whitespace())),
    };
    by_mark.into_iter().flatten().chain(by_blank.into_iter().flatten()).map(|s| s.trim().trim_matches('"'))
}
