//! Values with their positions in the file.

#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer};
#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// A value and its byte range in the file.
#[derive(Clone, Debug)]
pub(super) struct At<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let spanned = toml::Spanned::<T>::deserialize(d)?;
        let span = spanned.span();
        Ok(Self { value: spanned.into_inner(), span })
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for At<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }
    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A table of named values, in the order of the file.
#[derive(Clone, Debug)]
pub(super) struct Named<T>(pub(super) Vec<(At<String>, At<T>)>);

impl<T> Default for Named<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Named<T> {
    pub(super) fn iter(&self) -> impl Iterator<Item = (&At<String>, &At<T>)> {
        self.0.iter().map(|(k, v)| (k, v))
    }
    pub(super) fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(k, _)| k.value == name).map(|(_, v)| &v.value)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let map = BTreeMap::<toml::Spanned<String>, toml::Spanned<T>>::deserialize(d)?;
        let at = |s: Range<usize>| s.start;
        let mut all: Vec<_> = map
            .into_iter()
            .map(|(k, v)| {
                let (ks, vs) = (k.span(), v.span());
                (At { value: k.into_inner(), span: ks }, At { value: v.into_inner(), span: vs })
            })
            .collect();
        all.sort_by_key(|(k, _)| at(k.span.clone()));
        Ok(Self(all))
    }
}

#[cfg(feature = "schema")]
impl<T: JsonSchema> JsonSchema for Named<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("Named{}", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, T>::json_schema(generator)
    }
}
