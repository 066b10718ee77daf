//! Codecs as a system sees them: sources of frames with parameters by name, and the rate that they really give.

use crate::FrameSource;
use core::fmt;
use weir_units::{DataRate, Timestamp};

/// Why a parameter cannot be read or set. Nothing has changed then.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ParamError {
    /// There is none of this name.
    #[error("{kind} {name} is not known: expected one of {known}")]
    Unknown {
        /// What it would be a parameter of.
        kind: &'static str,
        /// The name.
        name: String,
        /// Names that are known, with commas between.
        known: String,
    },
    /// There is, and it cannot have this value.
    #[error("{kind} {name} is {value}: expected {expected}")]
    Value {
        /// What it is a parameter of.
        kind: &'static str,
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What it may be.
        expected: String,
    },
}

impl ParamError {
    /// An error about a name that is none of `known`.
    pub fn unknown(kind: &'static str, name: &str, known: &[&str]) -> Self {
        Self::Unknown { kind, name: name.into(), known: known.join(", ") }
    }
    /// An error about a value.
    pub fn value(kind: &'static str, name: &str, value: impl fmt::Display, expected: impl fmt::Display) -> Self {
        Self::Value { kind, name: name.into(), value: value.to_string(), expected: expected.to_string() }
    }
}

/// The value of a codec's parameter.
#[derive(Clone, PartialEq, Debug)]
pub enum ParamValue {
    /// A number, in the unit that the codec says.
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

/// An encoder whose settings can be read and changed while it runs, by names of its own.
///
/// The rate that it is asked for is its target as a [`FrameSource`]; what it gives is measured. As for names, it is for
/// whoever joins codec and system to use the right ones: a wrong one is an error and changes nothing.
pub trait Codec: FrameSource {
    /// Its name.
    fn name(&self) -> &str;
    /// The names of its parameters.
    fn param_names(&self) -> &[&'static str];
    /// The value of a parameter.
    ///
    /// # Errors
    /// Where there is none of this name.
    fn param(&self, name: &str) -> Result<ParamValue, ParamError>;
    /// Sets a parameter.
    ///
    /// # Errors
    /// Where there is none of this name, or it cannot have this value. It is not changed then.
    fn set_param(&mut self, name: &str, value: ParamValue, now: Timestamp) -> Result<(), ParamError>;
    /// The rate that it is asked for.
    fn requested_bit_rate(&self) -> DataRate;
    /// The rate that it has given over the last second, or since it began.
    fn bit_rate(&self, now: Timestamp) -> DataRate;
}
