//! Random impairments of a link: loss, jitter, packets held back.

use super::error::InputError;
use super::quantity::Time;
use super::raw_choice::{Choice, choice};
use super::resolve_checks::probability;
use super::spanned::At;
use super::tree::Text;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use std::borrow::Cow;
use weir_path::{GilbertElliott, Jitter, JitterShape, Loss, LossPosition, Reordering};
use weir_units::TimeDelta;

/// Random loss.
#[derive(Clone, Debug)]
pub(super) enum RawLoss {
    Independent(f64),
    GilbertElliott(RawGilbertElliott),
}

/// Loss in bursts: a good and a bad state, one transition per packet.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "GilbertElliott")]
pub(super) struct RawGilbertElliott {
    /// Probability of a transition from good to bad.
    pub(super) good_to_bad: At<f64>,
    /// Probability of a transition from bad to good.
    pub(super) bad_to_good: At<f64>,
    /// Probability of loss in the good state; 0 if absent.
    pub(super) loss_in_good: Option<At<f64>>,
    /// Probability of loss in the bad state; 1 if absent.
    pub(super) loss_in_bad: Option<At<f64>>,
}

impl Choice for RawLoss {
    type Fields = RawGilbertElliott;
    const EXPECTED: &'static str = "a probability such as 0.01, or a table with `good_to_bad` and `bad_to_good`";
    fn from_number(n: f64) -> Result<Self, String> {
        Ok(Self::Independent(n))
    }
    fn from_table(table: Self::Fields) -> Self {
        Self::GilbertElliott(table)
    }
}
choice!(RawLoss);

impl JsonSchema for RawLoss {
    fn schema_name() -> Cow<'static, str> {
        "Loss".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Each packet's own probability of loss, or a Gilbert-Elliott model.",
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                g.subschema_for::<RawGilbertElliott>(),
            ]
        })
    }
}

pub(super) fn loss(text: &Text, raw: &At<RawLoss>) -> Result<Loss, InputError> {
    Ok(match &raw.value {
        &RawLoss::Independent(p) => {
            Loss::Independent { share: probability(text, &At { value: p, span: raw.span.clone() })? }
        }
        RawLoss::GilbertElliott(g) => {
            let or = |p: &Option<At<f64>>, default| p.as_ref().map_or(Ok(default), |p| probability(text, p));
            Loss::GilbertElliott(GilbertElliott {
                to_bad: probability(text, &g.good_to_bad)?,
                to_good: probability(text, &g.bad_to_good)?,
                loss_good: or(&g.loss_in_good, 0.0)?,
                loss_bad: or(&g.loss_in_bad, 1.0)?,
            })
        }
    })
}

/// Where random loss occurs.
#[derive(Deserialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "LossPlace")]
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

/// Random extra delay.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Jitter")]
pub(super) struct RawJitter {
    /// Maximum extra delay.
    max: Time,
    /// Standard deviation of a normal distribution around half of `max`; uniform if absent.
    sigma: Option<Time>,
    /// Whether packets may be reordered; false if absent.
    #[serde(default)]
    reordering: bool,
}

pub(super) fn jitter(text: &Text, raw: &At<RawJitter>) -> Result<Jitter, InputError> {
    let max = raw.value.max.0;
    let shape = match raw.value.sigma {
        None => JitterShape::Uniform { max },
        Some(sigma) if sigma.0 == TimeDelta::ZERO => {
            return Err(text.error(raw.span.clone(), "`sigma` must be above zero"));
        }
        // Truncated to zero and `max`, so that half of `max` is on either side of the mean.
        Some(sigma) => JitterShape::Normal { deviation: sigma.0, bound: (max / 2).ratio(sigma.0).unwrap_or(0.0) },
    };
    Ok(Jitter { shape, may_reorder: raw.value.reordering })
}

/// Packets held back.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Reorder")]
pub(super) struct RawReorder {
    /// Probability that a packet is held back.
    probability: At<f64>,
    /// How long.
    delay: Time,
}

pub(super) fn reordering(text: &Text, raw: &At<RawReorder>) -> Result<Reordering, InputError> {
    Ok(Reordering { share: probability(text, &raw.value.probability)?, extra: raw.value.delay.0 })
}
