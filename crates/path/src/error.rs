use std::fmt::Display;

/// An invalid value in a configuration.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("link: {field} is {value}: expected {expected}")]
pub struct ConfigError {
    /// The field, as spelt in the configuration.
    pub field: &'static str,
    /// Its value.
    pub value: String,
    /// The valid values.
    pub expected: String,
}

impl ConfigError {
    pub(crate) fn new(field: &'static str, value: impl Display, expected: impl Into<String>) -> Self {
        Self { field, value: value.to_string(), expected: expected.into() }
    }
}
