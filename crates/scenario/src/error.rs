//! Errors of scenario files: the file, the position, the field, and what was expected.

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Longest line of a file that is shown, in bytes: in one of a megabyte nobody finds the place.
const LONGEST_SHOWN: usize = 400;

/// Text for a terminal, on which a control character, from a file of somebody else, could write anything anywhere.
fn plain(text: String) -> String {
    let is_kept = |c: char| !c.is_control() || matches!(c, '\n' | '\t');
    if text.chars().all(is_kept) {
        return text;
    }
    text.chars().map(|c| if is_kept(c) { c } else { char::REPLACEMENT_CHARACTER }).collect()
}

/// The same of a file's text, in which every byte keeps its place.
fn plain_source(text: &Arc<str>) -> Arc<str> {
    let is_kept = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
    if text.chars().all(is_kept) {
        return text.clone();
    }
    // All control characters have one or two bytes.
    let other = |c: char| if c.len_utf8() == 1 { '?' } else { '\u{bf}' };
    text.chars().map(|c| if is_kept(c) { c } else { other(c) }).collect::<String>().into()
}

/// Why a file, or something that it names, cannot be used.
#[derive(Debug, Clone)]
pub struct InputError(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    file: String,
    source: Option<NamedSource<Arc<str>>>,
    /// Whether the lines around the place are short enough to be shown.
    is_shown: bool,
    span: Option<Range<usize>>,
    /// Where the text is not shown.
    line: Option<usize>,
    field: Option<String>,
    message: String,
    help: Option<String>,
}

impl InputError {
    /// An error about a whole file, or about a name if there is no file.
    pub fn whole(file: impl Into<String>, message: impl Into<String>) -> Self {
        let (file, message) = (plain(file.into()), plain(message.into()));
        let (source, span, line, field, help) = (None, None, None, None, None);
        Self(Box::new(Inner { file, source, is_shown: false, span, line, field, message, help }))
    }
    /// An error at a place in a file; `span` is in bytes.
    pub fn at(file: &str, text: &Arc<str>, span: Range<usize>, message: impl Into<String>) -> Self {
        let mut e = Self::whole(file, message);
        // A span past the end, as at an unexpected end of file, is shown at the last character.
        let start = floor_char(text, span.start);
        let end = floor_char(text, span.end.max(start));
        // The line before and the one behind are shown as well.
        let first = text[..start].rsplit('\n').take(2).map(|line| line.len() + 1).sum::<usize>();
        let last = text[end..].split('\n').take(2).map(|line| line.len() + 1).sum::<usize>();
        let around = &text[(start + 1).saturating_sub(first)..(end + last).saturating_sub(1).min(text.len())];
        e.0.is_shown = around.split('\n').all(|line| line.len() <= LONGEST_SHOWN);
        e.0.span = Some(start..end);
        e.0.source = Some(NamedSource::new(&e.0.file, plain_source(text)));
        e
    }
    /// An error in a line, from 1, of a file whose text is not shown: it may be anything, as a file that a scenario names may be.
    pub fn at_line(file: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        let mut e = Self::whole(file, message);
        e.0.line = Some(line);
        e
    }
    /// With the field's path, such as `links.bottleneck.rate`.
    #[must_use]
    pub fn field(mut self, field: impl Into<String>) -> Self {
        let field = plain(field.into());
        self.0.field = (!field.is_empty()).then_some(field);
        self
    }
    /// With a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(plain(help.into()));
        self
    }
    /// The file's name.
    pub fn file(&self) -> &str {
        &self.0.file
    }
    /// Line and column of the place, both from 1, the column in characters.
    pub fn position(&self) -> Option<(usize, usize)> {
        if let Some(line) = self.0.line {
            return Some((line, 1));
        }
        let (source, span) = (self.0.source.as_ref()?, self.0.span.as_ref()?);
        let before = source.inner().get(..span.start)?;
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Some((line, column))
    }
    /// The fault, without its place.
    pub fn message(&self) -> &str {
        &self.0.message
    }
    /// The field's path, if there is one.
    pub fn field_path(&self) -> Option<&str> {
        self.0.field.as_deref()
    }
    /// The remedy, if there is one.
    pub fn help_text(&self) -> Option<&str> {
        self.0.help.as_deref()
    }
}

fn floor_char(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.file)?;
        if let Some((line, column)) = self.position() {
            write!(f, ":{line}:{column}")?;
        }
        if let Some(field) = &self.0.field {
            write!(f, ": {field}")?;
        }
        write!(f, ": {}", self.0.message)
    }
}

impl std::error::Error for InputError {}

impl Diagnostic for InputError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|h| Box::new(h) as _)
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.source.as_ref().filter(|_| self.0.is_shown).map(|s| s as _)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.0.span.clone()?;
        let label = self.0.field.clone().unwrap_or_else(|| "here".into());
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some(label), span))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_reach_no_terminal_and_places_stay() {
        let text: Arc<str> = "a = 1\nb = \"\u{1b}[2J\u{9b}\" # \u{1b}]0;x\nc = x\n".into();
        let at = text.find('x').expect("there")..text.find('x').expect("there") + 1;
        let e = InputError::at("f\u{1b}.toml", &text, at.clone(), "`\u{1b}[2J`").field("b\u{7}").help("\u{8}no");
        let source = e.0.source.as_ref().expect("a text").inner().clone();
        assert_eq!(source.len(), text.len());
        assert_eq!(source.get(at), Some("x"));
        let all = format!("{e}{source}{}", e.help_text().expect("a help"));
        assert!(all.chars().all(|c| !c.is_control() || c == '\n'), "{all:?}");
        assert!(e.to_string().starts_with("f\u{fffd}.toml:2:"), "{e}");
    }

    #[test]
    fn a_text_is_shown_where_its_lines_are_short() {
        let long = "x".repeat(LONGEST_SHOWN + 1);
        let shown = |text: &str, word: &str| {
            let text: Arc<str> = text.into();
            let start = text.find(word).expect("there");
            let e = InputError::at("f", &text, start..start + word.len(), "no");
            assert!(e.position().is_some());
            e.source_code().is_some()
        };
        assert!(shown("a = 1\nb = 2\nc = 3\n", "b"));
        assert!(shown("a", "a"));
        assert!(!shown(&format!("a = 1\nb = {long}\n"), "b"));
        assert!(!shown(&format!("{long}\nb = 2\n"), "b"));
        assert!(!shown(&format!("b = 2\n{long}"), "b"));
        assert!(shown(&format!("{long}\n\n\nb = 2\n\n{long}"), "b"));
    }
}
