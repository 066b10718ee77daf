//! Parameters of disciplines, set by name in scenario files and on the command line.

use crate::error::ConfigError;
use crate::limit::Limit;
use std::cmp::Ordering;
use std::fmt;
use weir_units::TimeDelta;

/// The value of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value {
    /// A time.
    Time(TimeDelta),
    /// An amount of queued data.
    Amount(Limit),
    /// A number without a unit.
    Number(f64),
    /// On or off.
    Switch(bool),
}

impl Value {
    /// The kind of value, with its article.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Time(_) => "a time",
            Self::Amount(_) => "an amount in bytes, packets or time",
            Self::Number(_) => "a number",
            Self::Switch(_) => "true or false",
        }
    }

    /// Compares two values of one kind, if the kind has an order.
    fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Time(a), Self::Time(b)) => a.partial_cmp(b),
            (Self::Number(a), Self::Number(b)) => a.partial_cmp(b),
            _ => None,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Divided, not multiplied by a millionth, which has no exact value: 0.8 and not 0.7999999999999999.
            Self::Time(t) => write!(f, "{} ms", t.as_nanos() as f64 / 1e6),
            Self::Amount(a) => a.fmt(f),
            Self::Number(n) => n.fmt(f),
            Self::Switch(on) => on.fmt(f),
        }
    }
}

/// A type of parameters.
pub trait Setting: Copy {
    /// The value.
    fn value(self) -> Value;
    /// From a value, if it has the right kind.
    fn from_value(value: Value) -> Option<Self>;
}

macro_rules! setting {
    ($($ty:ty: $variant:ident,)+) => {$(
        impl Setting for $ty {
            fn value(self) -> Value {
                Value::$variant(self)
            }
            fn from_value(value: Value) -> Option<Self> {
                match value {
                    Value::$variant(v) => Some(v),
                    _ => None,
                }
            }
        }
    )+};
}
setting! { TimeDelta: Time, Limit: Amount, f64: Number, bool: Switch, }

/// Description of one parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// The name in scenario files and on the command line.
    pub name: &'static str,
    /// Meaning, and source of the default.
    pub doc: String,
    /// The default value, which also determines the kind.
    pub default: Value,
    /// The least and the greatest valid value. Amounts are above zero, switches on or off.
    pub range: Option<(Value, Value)>,
}

impl Parameter {
    /// The valid values, in words.
    pub fn expected(&self) -> String {
        match self.range {
            Some((least, greatest)) => format!("{} between {least} and {greatest}", self.default.kind()),
            None => self.default.kind().into(),
        }
    }

    /// Whether a value is valid.
    pub fn allows(&self, value: Value) -> bool {
        let in_range = |(least, greatest): (Value, Value)| {
            value.compare(&least).is_some_and(Ordering::is_ge) && value.compare(&greatest).is_some_and(Ordering::is_le)
        };
        let positive = match value {
            Value::Amount(limit) => limit.check(self.name).is_ok(),
            _ => true,
        };
        std::mem::discriminant(&value) == std::mem::discriminant(&self.default)
            && positive
            && self.range.is_none_or(in_range)
    }
}

/// A set of parameters, as declared by `parameters!`.
pub trait Parameters: Default {
    /// All of them in the order of declaration.
    fn parameters() -> Vec<Parameter>;
    /// The value of one.
    fn get(&self, name: &str) -> Option<Value>;
    /// Sets one. Errors: an unknown name, or a value of another kind or out of range.
    fn set(&mut self, name: &str, value: Value) -> Result<(), ConfigError>;
    /// Checks every value. Errors: the first one out of range.
    fn check(&self) -> Result<(), ConfigError>;
}

/// The error for an unknown name.
pub(super) fn unknown(name: &str, known: &[Parameter]) -> ConfigError {
    let names: Vec<&str> = known.iter().map(|p| p.name).collect();
    let expected = if names.is_empty() { "no parameter: it has none".into() } else { names.join(", ") };
    ConfigError::new("queue", name, expected)
}

/// Declares a discipline's parameters: a struct with public fields, its `Default`, and [`Parameters`] for it.
macro_rules! parameters {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[doc = $doc:literal])+ $field:ident : $ty:ty = $default:expr $(, $least:expr => $greatest:expr)?;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Debug)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: $ty,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::queue::Parameters for $name {
            fn parameters() -> Vec<$crate::queue::Parameter> {
                use $crate::queue::parameter::{Parameter, Setting};
                vec![$(Parameter {
                    name: stringify!($field),
                    doc: [$($doc.trim()),+].join(" "),
                    default: Setting::value($default),
                    range: None::<(_, _)>$(.or(Some((Setting::value($least), Setting::value($greatest)))))?,
                },)*]
            }
            fn get(&self, name: &str) -> Option<$crate::queue::Value> {
                use $crate::queue::parameter::Setting;
                match name {
                    $(stringify!($field) => Some(Setting::value(self.$field)),)*
                    _ => None,
                }
            }
            fn set(&mut self, name: &str, value: $crate::queue::Value) -> Result<(), $crate::ConfigError> {
                use $crate::queue::parameter::{Setting, unknown};
                let all = Self::parameters();
                let known = all.iter().find(|p| p.name == name).ok_or_else(|| unknown(name, &all))?;
                if !known.allows(value) {
                    return Err($crate::ConfigError::new(known.name, value, known.expected()));
                }
                $(if name == stringify!($field) && let Some(v) = Setting::from_value(value) {
                    self.$field = v;
                })*
                Ok(())
            }
            fn check(&self) -> Result<(), $crate::ConfigError> {
                let mut copy = *self;
                for p in Self::parameters() {
                    if let Some(value) = self.get(p.name) {
                        copy.set(p.name, value)?;
                    }
                }
                Ok(())
            }
        }
    };
}
pub(super) use parameters;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_below_a_millisecond_are_shown_as_they_were_given() {
        let shown = |us| Value::Time(TimeDelta::from_micros(us)).to_string();
        assert_eq!([800, 400, 15_000].map(shown), ["0.8 ms", "0.4 ms", "15 ms"]);
    }
}
