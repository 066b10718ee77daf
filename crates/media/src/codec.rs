//! Codecs for an adaptive system: sources of frames with named parameters and a measured rate.

use crate::FrameSource;
use core::fmt;
use weir_units::{DataRate, Timestamp};

/// Why a parameter could not be read or set. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParamError {
    /// The name is unknown.
    #[error("{kind} {name} is not known: expected one of {known}")]
    Unknown {
        /// The kind of object.
        kind: &'static str,
        /// The name.
        name: String,
        /// Known names, separated by commas.
        known: String,
    },
    /// The value is not supported.
    #[error("{kind} {name} is {value}: expected {expected}")]
    Value {
        /// The kind of object.
        kind: &'static str,
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// The supported values.
        expected: String,
    },
}

impl ParamError {
    /// An error for a name not among `known`.
    pub fn unknown(kind: &'static str, name: &str, known: &[&str]) -> Self {
        Self::Unknown { kind, name: name.into(), known: known.join(", ") }
    }
    /// An error for a value.
    pub fn value(kind: &'static str, name: &str, value: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self::Value { kind, name: name.into(), value: value.to_string(), expected: expected.to_string() }
    }
}

/// The value of a codec's parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamValue {
    /// A number, in the parameter's unit.
    Number(f64),
    /// A word.
    Text(String),
}

impl fmt::Display for ParamValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => n.fmt(f),
            Self::Text(t) => t.fmt(f),
        }
    }
}

impl From<f64> for ParamValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for ParamValue {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// An encoder whose parameters can be read and changed by name while it runs.
///
/// Its requested rate is its target as a [`FrameSource`]; its actual rate is measured. The caller must use the codec's
/// parameter names: a wrong one is an error and changes nothing.
pub trait Codec: FrameSource {
    /// Its name.
    fn name(&self) -> &str;
    /// The names of its parameters.
    fn param_names(&self) -> &[&'static str];
    /// The value of a parameter.
    ///
    /// # Errors
    /// The name is unknown.
    fn param(&self, name: &str) -> Result<ParamValue, ParamError>;
    /// Sets a parameter.
    ///
    /// # Errors
    /// The name is unknown, or the value is not supported. The parameter is unchanged then.
    fn set_param(&mut self, name: &str, value: ParamValue, now: Timestamp) -> Result<(), ParamError>;
    /// The requested rate.
    fn requested_bit_rate(&self) -> DataRate;
    /// The actual rate over the last second, or since the start.
    fn bit_rate(&self, now: Timestamp) -> DataRate;
}
