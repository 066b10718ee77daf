use std::fmt::Display;

/// An invalid value in a source's configuration, a trace or a picture file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {field} is {value}: expected {expected}")]
pub struct MediaError {
    /// The model, or the file and line.
    pub place: String,
    /// The field.
    pub field: &'static str,
    /// The value found.
    pub value: String,
    /// The valid values, and how to correct it.
    pub expected: String,
}

impl MediaError {
    /// An error for the value of a field at a place: a model, a file and line, a device.
    pub fn new(place: impl Display, field: &'static str, value: impl Display, expected: impl Display) -> Self {
        Self { place: place.to_string(), field, value: value.to_string(), expected: expected.to_string() }
    }
}
