use std::fmt::Display;

/// A value of a source's configuration, or a line of its traces, that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {field} is {value}: expected {expected}")]
pub struct MediaError {
    /// The model, or the file and line of a trace.
    pub place: String,
    /// The field.
    pub field: &'static str,
    /// What stands there.
    pub value: String,
    /// What may stand there, and the way out.
    pub expected: String,
}

impl MediaError {
    pub(crate) fn new(place: impl Display, field: &'static str, value: impl Display, expected: impl Display) -> Self {
        Self { place: place.to_string(), field, value: value.to_string(), expected: expected.to_string() }
    }
}
