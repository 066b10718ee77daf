//! Processing of packets on a link beside queueing: token buckets, and changes of the ECN field.

use super::checks::probability;
use super::error::InputError;
use super::impairment::RawLossPlace;
use super::quantity::{Rate, Size};
use super::spanned::At;
use super::tree::Text;
use serde::Deserialize;
use weir_path::{EcnFaults, LossPosition, TokenBucket};
use weir_units::DataRate;

/// A token bucket, full at the start.
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { rate = \"2 Mbps\", burst = \"50 kB\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "TokenBucket"))]
pub(super) struct RawBucket {
    /// Rate at which it fills.
    rate: At<Rate>,
    /// Its size. A policer drops all packets that are larger.
    burst: At<Size>,
}

pub(super) fn bucket(text: &Text, raw: &At<RawBucket>) -> Result<TokenBucket, InputError> {
    let RawBucket { rate, burst } = &raw.value;
    if rate.value.0 == DataRate::ZERO {
        return Err(text.error(rate.span.clone(), "expected a rate above zero"));
    }
    if burst.value.0.is_zero() {
        return Err(text.error(burst.span.clone(), "expected a size above zero"));
    }
    Ok(TokenBucket { rate: rate.value.0, burst: burst.value.0 })
}

/// Changes of the ECN field that no router should make (RFC 3168, section 18.1), in this order for each packet: `mark`,
/// `erase`, `bleach`.
#[derive(Deserialize, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { mark = 0.01 }")]
#[cfg_attr(feature = "schema", schemars(rename = "EcnFaults"))]
pub(super) struct RawEcnFaults {
    /// Probability that a packet is marked CE whatever its field; 0 if absent.
    mark: Option<At<f64>>,
    /// Probability that a packet's CE becomes ECT(0); 0 if absent.
    erase: Option<At<f64>>,
    /// Probability that a packet's ECT(0), ECT(1) or CE becomes Not-ECT; 0 if absent.
    bleach: Option<At<f64>>,
    /// Before the queue, which then acts on the changed field, or after it, so that its marks are changed too; "egress"
    /// if absent.
    place: Option<RawLossPlace>,
}

pub(super) fn ecn_faults(text: &Text, raw: &At<RawEcnFaults>) -> Result<EcnFaults, InputError> {
    let RawEcnFaults { mark, erase, bleach, place } = &raw.value;
    let [mark, erase, bleach] = [mark, erase, bleach].map(|p| p.as_ref().map_or(Ok(0.0), |p| probability(text, p)));
    let position = place.map_or(LossPosition::Exit, RawLossPlace::position);
    Ok(EcnFaults { mark: mark?, erase: erase?, bleach: bleach?, position })
}
