//! Values that change at given times: their starts, and a link's delay, loss and jitter by steps.

use super::choice::{Choice, choice};
use super::error::InputError;
use super::quantity::Time;
use super::spanned::At;
use super::tree::Text;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
#[cfg(feature = "schema")]
use std::borrow::Cow;
use std::ops::Range;
use weir_path::Steps;
use weir_units::TimeDelta;

/// Checks the starts of steps, and returns their period. Errors: no steps, a first one that is not at zero, one that is not
/// later than the one before, or a period that ends before the last one begins.
pub(super) fn check(
    text: &Text,
    list: &Range<usize>,
    starts: &[At<Time>],
    repeat: Option<&At<Time>>,
) -> Result<Option<TimeDelta>, InputError> {
    let (Some(first), Some(last)) = (starts.first(), starts.last()) else {
        return Err(text.error(list.clone(), "expected at least one step"));
    };
    if first.value.0 != TimeDelta::ZERO {
        return Err(text.error(first.span.clone(), "the first step must be at \"0 s\""));
    }
    if let Some(w) = starts.windows(2).find(|w| w[1].value.0 <= w[0].value.0) {
        return Err(text.error(w[1].span.clone(), "every step must be later than the previous one"));
    }
    let end = last.value.0;
    if let Some(r) = repeat.filter(|r| r.value.0 <= end) {
        return Err(text.error(r.span.clone(), format!("expected a time after the last step, which is at {end}")));
    }
    Ok(repeat.map(|r| r.value.0))
}

/// A list of steps as written.
pub(super) type RawSteps<S> = At<Vec<At<S>>>;

/// A step: its start.
pub(super) trait Start {
    fn at(&self) -> Time;
}

/// Steps as written, with each one's value. Errors: see [`check`].
pub(super) fn resolve<S: Start, T: Copy>(
    text: &Text,
    raw: &RawSteps<S>,
    repeat: Option<&At<Time>>,
    value: impl Fn(&S) -> Result<T, InputError>,
) -> Result<Steps<T>, InputError> {
    let starts: Vec<_> = raw.value.iter().map(|s| At { value: s.value.at(), span: s.span.clone() }).collect();
    let period = check(text, &raw.span, &starts, repeat)?;
    let step = |s: &At<S>| Ok((s.value.at().0, value(&s.value)?));
    let steps = raw.value.iter().map(step).collect::<Result<_, InputError>>()?;
    Steps::new(steps, period).map_err(|e| text.error(raw.span.clone(), e.to_string()))
}

/// A propagation delay.
#[derive(Clone, Debug)]
pub(super) enum RawDelay {
    Constant(Time),
    Steps(RawDelaySteps),
}

/// A delay that changes.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { steps = [{ at = \"0 s\", delay = \"50 ms\" }] }")]
#[cfg_attr(feature = "schema", schemars(rename = "DelaySteps"))]
pub(super) struct RawDelaySteps {
    /// Delays from given times on; the first at "0 s".
    steps: RawSteps<RawDelayStep>,
    /// Time at which the steps repeat; never if absent.
    repeat: Option<At<Time>>,
}

/// A delay from an instant on.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { at = \"10 s\", delay = \"50 ms\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "DelayStep"))]
pub(super) struct RawDelayStep {
    /// The instant.
    at: Time,
    /// The delay.
    delay: Time,
}

impl RawDelay {
    /// A delay that does not change.
    pub(super) fn constant(delay: TimeDelta) -> Self {
        Self::Constant(Time(delay))
    }
}

impl Start for RawDelayStep {
    fn at(&self) -> Time {
        self.at
    }
}

impl Choice for RawDelay {
    type Fields = RawDelaySteps;
    const EXPECTED: &'static str = "a time such as \"50 ms\", or a table with `steps`";
    fn from_text(text: &str) -> Result<Self, String> {
        Time::read(text).map(Self::Constant)
    }
    fn from_table(table: Self::Fields) -> Self {
        Self::Steps(table)
    }
}
choice!(RawDelay);

#[cfg(feature = "schema")]
impl JsonSchema for RawDelay {
    fn schema_name() -> Cow<'static, str> {
        "Delay".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A delay, or a table with `steps`.",
            "anyOf": [g.subschema_for::<Time>(), g.subschema_for::<RawDelaySteps>()]
        })
    }
}

/// A delay: the first one, and its steps if it changes.
pub(super) struct Delay {
    pub(super) first: TimeDelta,
    pub(super) steps: Option<Steps<TimeDelta>>,
}

pub(super) fn delay(text: &Text, raw: &RawDelay) -> Result<Delay, InputError> {
    match raw {
        RawDelay::Constant(delay) => Ok(Delay { first: delay.0, steps: None }),
        RawDelay::Steps(table) => {
            let steps = resolve(text, &table.steps, table.repeat.as_ref(), |s| Ok(s.delay.0))?;
            Ok(Delay { first: steps.values()[0], steps: Some(steps) })
        }
    }
}
