//! Fields that are either a plain value or a table.

use super::quantity::{Size, Time};
use super::spanned::At;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de};
#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// Passes a string or a number to one reader and a table to another.
pub(super) trait Choice: Sized {
    type Fields: for<'de> Deserialize<'de>;
    const EXPECTED: &'static str;
    fn from_text(text: &str) -> Result<Self, String> {
        Err(format!("expected {}, found \"{text}\"", Self::EXPECTED))
    }
    fn from_number(n: f64) -> Result<Self, String> {
        Err(format!("expected {}, found {n}", Self::EXPECTED))
    }
    fn from_bool(b: bool) -> Result<Self, String> {
        Err(format!("expected {}, found {b}", Self::EXPECTED))
    }
    fn from_table(table: Self::Fields) -> Self;
}

pub(super) fn choose<'de, C: Choice, D: Deserializer<'de>>(d: D) -> Result<C, D::Error> {
    struct Visitor<C>(PhantomData<C>);
    impl<'de, C: Choice> de::Visitor<'de> for Visitor<C> {
        type Value = C;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(C::EXPECTED)
        }
        fn visit_str<E: de::Error>(self, v: &str) -> Result<C, E> {
            C::from_text(v).map_err(E::custom)
        }
        fn visit_bool<E: de::Error>(self, v: bool) -> Result<C, E> {
            C::from_bool(v).map_err(E::custom)
        }
        fn visit_i64<E: de::Error>(self, v: i64) -> Result<C, E> {
            C::from_number(v as f64).map_err(E::custom)
        }
        fn visit_u64<E: de::Error>(self, v: u64) -> Result<C, E> {
            C::from_number(v as f64).map_err(E::custom)
        }
        fn visit_f64<E: de::Error>(self, v: f64) -> Result<C, E> {
            C::from_number(v).map_err(E::custom)
        }
        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<C, A::Error> {
            C::Fields::deserialize(de::value::MapAccessDeserializer::new(map)).map(C::from_table)
        }
    }
    d.deserialize_any(Visitor(PhantomData))
}

macro_rules! choice {
    ($name:ty) => {
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                $crate::choice::choose(d)
            }
        }
    };
}
pub(super) use choice;

/// A controller's parameter.
#[derive(Clone, Debug)]
pub(super) enum RawNumber {
    /// In the parameter's own unit.
    Plain(f64),
    /// With its unit.
    Text(String),
}

/// A table where only a number is valid.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct NoTable {}

impl Choice for RawNumber {
    type Fields = NoTable;
    const EXPECTED: &'static str = "a number in the parameter's unit, true or false, or a string with a unit";
    fn from_text(text: &str) -> Result<Self, String> {
        Ok(Self::Text(text.into()))
    }
    fn from_number(n: f64) -> Result<Self, String> {
        Ok(Self::Plain(n))
    }
    fn from_bool(b: bool) -> Result<Self, String> {
        Ok(Self::Plain(f64::from(u8::from(b))))
    }
    fn from_table(NoTable {}: NoTable) -> Self {
        // Fails as a number later, with the parameter's name and range.
        Self::Plain(f64::NAN)
    }
}
choice!(RawNumber);

#[cfg(feature = "schema")]
impl JsonSchema for RawNumber {
    fn schema_name() -> Cow<'static, str> {
        "ParameterValue".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number in the parameter's unit, true or false, or a string with a unit.",
            "type": ["number", "boolean", "string"],
        })
    }
}

/// A quantity, or a distribution of it.
#[derive(Clone, Debug)]
pub(super) enum RawDistribution<T> {
    Constant(T),
    Table(RawDistributionTable<T>),
}

/// A random quantity: exactly one of its fields.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { exponential = \"10 s\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Distribution{T}"))]
pub(super) struct RawDistributionTable<T> {
    /// Uniform between two values.
    pub(super) uniform: Option<[T; 2]>,
    /// Exponential of this mean.
    pub(super) exponential: Option<T>,
    /// Pareto.
    pub(super) pareto: Option<RawPareto<T>>,
}

/// A Pareto distribution.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { mean = \"10 s\", shape = 1.5 }")]
#[cfg_attr(feature = "schema", schemars(rename = "Pareto{T}"))]
pub(super) struct RawPareto<T> {
    /// Mean.
    pub(super) mean: T,
    /// Shape, above 1.
    pub(super) shape: At<f64>,
}

/// A schema, where there are schemas.
#[cfg(feature = "schema")]
pub(super) use schemars::JsonSchema as Described;
#[cfg(not(feature = "schema"))]
pub(super) trait Described {}
#[cfg(not(feature = "schema"))]
impl<T> Described for T {}

/// A quantity that a distribution can be of.
pub(super) trait Quantity: for<'de> Deserialize<'de> + Described {
    const EXPECTED: &'static str;
    fn from_text(text: &str) -> Result<Self, String>;
    /// In bytes or seconds.
    fn number(&self) -> f64;
}

impl Quantity for Size {
    const EXPECTED: &'static str = "a size such as \"75 kB\", or a table with `uniform`, `exponential` or `pareto`";
    fn from_text(text: &str) -> Result<Self, String> {
        Self::read(text)
    }
    fn number(&self) -> f64 {
        self.0.as_bytes() as f64
    }
}
impl Quantity for Time {
    const EXPECTED: &'static str = "a time such as \"10 s\", or a table with `uniform`, `exponential` or `pareto`";
    fn from_text(text: &str) -> Result<Self, String> {
        Self::read(text)
    }
    fn number(&self) -> f64 {
        self.0.as_secs_f64()
    }
}

impl<T: Quantity> Choice for RawDistribution<T> {
    type Fields = RawDistributionTable<T>;
    const EXPECTED: &'static str = T::EXPECTED;
    fn from_text(text: &str) -> Result<Self, String> {
        <T as Quantity>::from_text(text).map(Self::Constant)
    }
    fn from_table(table: Self::Fields) -> Self {
        Self::Table(table)
    }
}
impl<'de, T: Quantity> Deserialize<'de> for RawDistribution<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        choose(d)
    }
}
#[cfg(feature = "schema")]
impl<T: Quantity> JsonSchema for RawDistribution<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrDistribution", T::schema_name()).into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [g.subschema_for::<T>(), g.subschema_for::<RawDistributionTable<T>>()]
        })
    }
}
