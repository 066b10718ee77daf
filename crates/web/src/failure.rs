//! Failures, as a page shows them.

use serde::Serialize;
use weir_lab::run::RunError;
use weir_lab::scenario::InputError;

/// A failure: what, where in the scenario's text if it is there, and a way out if one is known.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Failure {
    /// `request` (a fault of the page), `scenario` (of its text, or of what it names), `run` or `recording`.
    pub kind: &'static str,
    /// The fault, with the value.
    pub message: String,
    /// The field's path, such as `links.bottleneck.rate`.
    pub field: Option<String>,
    /// Line, from 1.
    pub line: Option<usize>,
    /// Column in characters, from 1.
    pub column: Option<usize>,
    /// The way out.
    pub help: Option<String>,
}

impl Failure {
    pub(crate) fn request(message: impl Into<String>) -> Self {
        Self { kind: "request", message: message.into(), field: None, line: None, column: None, help: None }
    }

    pub(crate) fn recording(message: impl Into<String>) -> Self {
        Self { kind: "recording", ..Self::request(message) }
    }
}

impl From<InputError> for Failure {
    fn from(e: InputError) -> Self {
        let (line, column) = e.position().unzip();
        let (field, help) = (e.field_path().map(str::to_owned), e.help_text().map(str::to_owned));
        Self { kind: "scenario", message: e.message().to_owned(), field, line, column, help }
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Self {
        Self { kind: "run", ..Self::request(e.to_string()) }
    }
}
