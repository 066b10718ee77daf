//! Errors of scenario files: the file, the position, the field, and what was expected.

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Why a file, or something that it names, cannot be used.
#[derive(Debug, Clone)]
pub struct InputError(Box<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    file: String,
    source: Option<NamedSource<Arc<str>>>,
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
        let (file, message) = (file.into(), message.into());
        Self(Box::new(Inner { file, source: None, span: None, line: None, field: None, message, help: None }))
    }
    /// An error at a place in a file; `span` is in bytes.
    pub fn at(file: &str, text: &Arc<str>, span: Range<usize>, message: impl Into<String>) -> Self {
        let mut e = Self::whole(file, message);
        // A span past the end, as at an unexpected end of file, is shown at the last character.
        let start = floor_char(text, span.start);
        let end = floor_char(text, span.end.max(start));
        e.0.span = Some(start..end);
        e.0.source = Some(NamedSource::new(file, text.clone()));
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
        let field = field.into();
        self.0.field = (!field.is_empty()).then_some(field);
        self
    }
    /// With a remedy.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(help.into());
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
        self.0.source.as_ref().map(|s| s as _)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.0.span.clone()?;
        let label = self.0.field.clone().unwrap_or_else(|| "here".into());
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(Some(label), span))))
    }
}
