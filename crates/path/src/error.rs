use std::fmt::Display;

/// A value of a configuration that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("link: {field} is {value}: expected {expected}")]
pub struct ConfigError {
    /// The field, as the configuration spells it.
    pub field: &'static str,
    /// What stands there.
    pub value: String,
    /// What may stand there.
    pub expected: String,
}

impl ConfigError {
    pub(crate) fn new(field: &'static str, value: impl Display, expected: impl Into<String>) -> Self {
        Self { field, value: value.to_string(), expected: expected.into() }
    }
}
