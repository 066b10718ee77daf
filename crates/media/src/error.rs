use std::fmt::Display;

/// A value of a source's configuration, a line of its traces or a picture of its file that cannot be used.
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
    /// An error about the value of a field, at a place: a model, a file and line, a device.
    pub fn new(place: impl Display, field: &'static str, value: impl Display, expected: impl Display) -> Self {
        Self { place: place.to_string(), field, value: value.to_string(), expected: expected.to_string() }
    }
}
