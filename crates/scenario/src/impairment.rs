//! Random impairments of a link: loss, jitter, packets held back.

use super::checks::probability;
use super::choice::{Choice, choice};
use super::error::InputError;
use super::quantity::Time;
use super::spanned::At;
use super::steps::{self, RawSteps, Start};
use super::tree::Text;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
#[cfg(feature = "schema")]
use std::borrow::Cow;
use weir_path::{GilbertElliott, Jitter, JitterShape, Loss, LossPosition, Reordering, Steps};
use weir_units::TimeDelta;

/// Random loss.
#[derive(Clone, Debug)]
pub(super) enum RawLoss {
    Independent(f64),
    Table(RawLossTable),
}

/// Loss in bursts by a good and a bad state with one transition per packet: `good_to_bad` and `bad_to_good`. Or loss that
/// changes: `steps`.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { good_to_bad = 0.01, bad_to_good = 0.3 }")]
#[cfg_attr(feature = "schema", schemars(rename = "LossTable"))]
pub(super) struct RawLossTable {
    /// Probability of a transition from good to bad.
    good_to_bad: Option<At<f64>>,
    /// Probability of a transition from bad to good.
    bad_to_good: Option<At<f64>>,
    /// Probability of loss in the good state; 0 if absent.
    loss_in_good: Option<At<f64>>,
    /// Probability of loss in the bad state; 1 if absent.
    loss_in_bad: Option<At<f64>>,
    /// Losses from given times on; the first at "0 s".
    steps: Option<RawSteps<RawLossStep>>,
    /// Time at which the steps repeat; never if absent.
    repeat: Option<At<Time>>,
}

/// Loss from an instant on.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { at = \"10 s\", loss = 0.05 }")]
#[cfg_attr(feature = "schema", schemars(rename = "LossStep"))]
pub(super) struct RawLossStep {
    /// The instant.
    at: Time,
    /// The loss.
    loss: At<RawLoss>,
}

impl Start for RawLossStep {
    fn at(&self) -> Time {
        self.at
    }
}

impl Choice for RawLoss {
    type Fields = RawLossTable;
    const EXPECTED: &'static str =
        "a probability such as 0.01, or a table with `good_to_bad` and `bad_to_good`, or with `steps`";
    fn from_number(n: f64) -> Result<Self, String> {
        Ok(Self::Independent(n))
    }
    fn from_table(table: Self::Fields) -> Self {
        Self::Table(table)
    }
}
choice!(RawLoss);

#[cfg(feature = "schema")]
impl JsonSchema for RawLoss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Each packet's own probability of loss, a Gilbert-Elliott model, or losses that change in steps.",
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                g.subschema_for::<RawLossTable>(),
            ]
        })
    }
}

/// Loss: the first one, and its steps if it changes.
pub(super) struct ResolvedLoss {
    pub(super) first: Loss,
    pub(super) steps: Option<Steps<Loss>>,
}

pub(super) fn loss(text: &Text, raw: &At<RawLoss>) -> Result<ResolvedLoss, InputError> {
    let table = match &raw.value {
        RawLoss::Table(table) => table,
        RawLoss::Independent(_) => return Ok(ResolvedLoss { first: constant_loss(text, raw)?, steps: None }),
    };
    let Some(steps) = &table.steps else {
        return Ok(ResolvedLoss { first: constant_loss(text, raw)?, steps: None });
    };
    let states = [&table.good_to_bad, &table.bad_to_good, &table.loss_in_good, &table.loss_in_bad];
    if let Some(p) = states.into_iter().flatten().next() {
        return Err(text.error(p.span.clone(), "a table with `steps` has a loss in each of them, and none beside"));
    }
    let steps = steps::resolve(text, steps, table.repeat.as_ref(), |s| constant_loss(text, &s.loss))?;
    Ok(ResolvedLoss { first: steps.values()[0], steps: Some(steps) })
}

/// A loss that does not change.
fn constant_loss(text: &Text, raw: &At<RawLoss>) -> Result<Loss, InputError> {
    let table = match &raw.value {
        &RawLoss::Independent(p) => {
            let share = probability(text, &At { value: p, span: raw.span.clone() })?;
            return Ok(Loss::Independent { share });
        }
        RawLoss::Table(table) => table,
    };
    if let Some(steps) = &table.steps {
        return Err(text.error(steps.span.clone(), "a step has no steps of its own"));
    }
    if let Some(repeat) = &table.repeat {
        return Err(text.error(repeat.span.clone(), "`repeat` belongs to `steps`"));
    }
    let needed = |p: &Option<At<f64>>, name: &str| match p {
        Some(p) => probability(text, p),
        None => Err(text.error(raw.span.clone(), format!("missing field `{name}`")).help(RawLoss::EXPECTED)),
    };
    let or = |p: &Option<At<f64>>, default| p.as_ref().map_or(Ok(default), |p| probability(text, p));
    Ok(Loss::GilbertElliott(GilbertElliott {
        to_bad: needed(&table.good_to_bad, "good_to_bad")?,
        to_good: needed(&table.bad_to_good, "bad_to_good")?,
        loss_good: or(&table.loss_in_good, 0.0)?,
        loss_bad: or(&table.loss_in_bad, 1.0)?,
    }))
}

/// Where random loss occurs.
#[derive(Deserialize, Clone, Copy, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "LossPlace"))]
pub(super) enum RawLossPlace {
    /// Before the queue.
    Ingress,
    /// After the link, as in a receiving device.
    Egress,
}

impl RawLossPlace {
    pub(super) const fn position(self) -> LossPosition {
        match self {
            Self::Ingress => LossPosition::Entry,
            Self::Egress => LossPosition::Exit,
        }
    }
}

/// Random extra delay: `max`, or `steps` if it changes.
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { max = \"30 ms\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Jitter"))]
pub(super) struct RawJitter {
    /// Maximum extra delay.
    max: Option<Time>,
    /// Standard deviation of a normal distribution around half of `max`; uniform if absent.
    sigma: Option<Time>,
    /// Whether packets may be reordered; false if absent.
    #[serde(default)]
    reordering: bool,
    /// Extra delays from given times on; the first at "0 s".
    steps: Option<RawSteps<RawJitterStep>>,
    /// Time at which the steps repeat; never if absent.
    repeat: Option<At<Time>>,
}

/// Random extra delay from an instant on.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { at = \"10 s\", max = \"30 ms\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "JitterStep"))]
pub(super) struct RawJitterStep {
    /// The instant.
    at: Time,
    /// Maximum extra delay; "0 s" is none.
    max: Time,
    /// Standard deviation of a normal distribution around half of `max`; uniform if absent.
    sigma: Option<Time>,
}

impl Start for RawJitterStep {
    fn at(&self) -> Time {
        self.at
    }
}

/// Jitter: the first one, and the steps of its distribution if it changes.
#[derive(Default)]
pub(super) struct ResolvedJitter {
    pub(super) first: Option<Jitter>,
    pub(super) steps: Option<Steps<JitterShape>>,
}

pub(super) fn jitter(text: &Text, raw: &At<RawJitter>) -> Result<ResolvedJitter, InputError> {
    let RawJitter { max, sigma, reordering, steps, repeat } = &raw.value;
    let wrong = |message: &str| text.error(raw.span.clone(), message);
    let shape = |max: Time, sigma: Option<Time>| {
        let max = max.0;
        Ok(match sigma {
            None => JitterShape::Uniform { max },
            Some(sigma) if sigma.0 == TimeDelta::ZERO => return Err(wrong("`sigma` must be above zero")),
            // Truncated to zero and `max`, so that half of `max` is on either side of the mean.
            Some(sigma) => JitterShape::Normal { deviation: sigma.0, bound: (max / 2).ratio(sigma.0).unwrap_or(0.0) },
        })
    };
    let (first, steps) = match (max, steps) {
        (Some(_), Some(_)) => return Err(wrong("expected `max` or `steps`, not both")),
        (None, None) => return Err(wrong("missing field `max`")),
        (Some(_), None) if repeat.is_some() => return Err(wrong("`repeat` belongs to `steps`")),
        (None, Some(_)) if sigma.is_some() => return Err(wrong("`sigma` belongs to each step")),
        (Some(max), None) => (shape(*max, *sigma)?, None),
        (None, Some(steps)) => {
            let steps = steps::resolve(text, steps, repeat.as_ref(), |s| shape(s.max, s.sigma))?;
            (steps.values()[0], Some(steps))
        }
    };
    Ok(ResolvedJitter { first: Some(Jitter { shape: first, may_reorder: *reordering }), steps })
}

/// Packets held back.
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { probability = 0.01, delay = \"20 ms\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Reorder"))]
pub(super) struct RawReorder {
    /// Probability that a packet is held back.
    probability: At<f64>,
    /// How long.
    delay: Time,
}

pub(super) fn reordering(text: &Text, raw: &At<RawReorder>) -> Result<Reordering, InputError> {
    Ok(Reordering { share: probability(text, &raw.value.probability)?, extra: raw.value.delay.0 })
}
