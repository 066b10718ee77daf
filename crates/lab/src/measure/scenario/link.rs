//! Links: both directions of a hop as written, and their path model.

use super::capacity::{self, RawCapacity};
use super::error::InputError;
use super::impairment::{self, RawJitter, RawLoss, RawLossPlace, RawReorder};
use super::middlebox::{self, RawBucket, RawEcnFaults};
use super::model::Link;
use super::quantity::Queue;
use super::queue::{self, RawQueue};
use super::resolve_checks::probability;
use super::spanned::At;
use super::station::{self, RawAssist};
use super::steps::{self, RawDelay};
use super::traces::Traces;
use super::tree::Text;
use schemars::JsonSchema;
use serde::Deserialize;
use std::ops::Range;
use weir_path::{Capacity, Limit, LinkConfig, Loss, LossPosition, Variation};

/// Generates the tables of both directions from one list of fields: serde can either refuse unknown fields or flatten
/// one struct into another, not both. [`Direction`] is their common part.
macro_rules! directions {
    ($($(#[doc = $doc:literal])+ $field:ident: $ty:ty,)+) => {
        /// A hop: its forward direction, and the reverse one if that is not simply fast and of the same delay.
        #[derive(Deserialize, JsonSchema, Debug)]
        #[serde(deny_unknown_fields)]
        #[schemars(rename = "Link")]
        pub(super) struct RawLink {
            /// Capacity: a rate, "unlimited", steps or a trace file.
            rate: At<RawCapacity>,
            /// One-way propagation delay.
            delay: At<RawDelay>,
            $($(#[doc = $doc])+ $field: Option<$ty>,)+
            /// The other direction; unlimited and with the same delay if absent.
            reverse: Option<RawReverse>,
        }

        /// The other direction of a hop. Defaults: an unlimited rate, the forward direction's delay, no impairments.
        #[derive(Deserialize, JsonSchema, Default, Debug)]
        #[serde(deny_unknown_fields)]
        #[schemars(rename = "Reverse")]
        struct RawReverse {
            /// Capacity; unlimited if absent.
            rate: Option<At<RawCapacity>>,
            /// One-way propagation delay; that of the forward direction if absent.
            delay: Option<At<RawDelay>>,
            $($(#[doc = $doc])+ $field: Option<$ty>,)+
        }

        /// One direction of a hop.
        struct Direction<'a> {
            span: &'a Range<usize>,
            rate: Option<&'a At<RawCapacity>>,
            delay: &'a RawDelay,
            $($field: Option<&'a $ty>,)+
        }

        impl RawLink {
            fn forward<'a>(&'a self, span: &'a Range<usize>) -> Direction<'a> {
                Direction { span, rate: Some(&self.rate), delay: &self.delay.value, $($field: self.$field.as_ref(),)+ }
            }
        }

        impl RawReverse {
            fn direction<'a>(&'a self, span: &'a Range<usize>, forward: &'a RawDelay) -> Direction<'a> {
                let delay = self.delay.as_ref().map_or(forward, |d| &d.value);
                Direction { span, rate: self.rate.as_ref(), delay, $($field: self.$field.as_ref(),)+ }
            }
        }
    };
}

directions! {
    /// Queue in front of the link: its room, or a table with its `discipline`; drop tail with room for "300 ms" if absent.
    queue: At<RawQueue>,
    /// Queue size above which drop tail marks ECN-capable packets; never if absent.
    ecn_threshold: At<Queue>,
    /// Random loss; none if absent.
    loss: At<RawLoss>,
    /// Where random loss occurs; "egress" if absent.
    loss_place: RawLossPlace,
    /// Random extra delay; none if absent.
    jitter: At<RawJitter>,
    /// Packets held back so that later ones overtake them; none if absent.
    reorder: At<RawReorder>,
    /// Probability that a packet arrives twice; 0 if absent.
    duplicate: At<f64>,
    /// Changes of packets' ECN field that no router should make; none if absent.
    ecn: At<RawEcnFaults>,
    /// Drops packets beyond a rate and a burst before the queue; none if absent.
    policer: At<RawBucket>,
    /// Limits the transmission to a rate and a burst, which is sent at the link's own rate; none if absent.
    shaper: At<RawBucket>,
    /// A base station at this direction of the link, which reports its capacity to RTP flows; none if absent.
    assist: At<RawAssist>,
}

/// Both directions of a hop, forward and reverse.
pub(super) fn resolve(
    text: &Text,
    name: &str,
    raw: &At<RawLink>,
    traces: &mut Traces,
) -> Result<[Link; 2], InputError> {
    let forward = raw.value.forward(&raw.span).resolve(text, name.into(), traces)?;
    let absent = RawReverse::default();
    let reverse = raw.value.reverse.as_ref().unwrap_or(&absent).direction(&raw.span, &raw.value.delay.value);
    Ok([forward, reverse.resolve(text, format!("{name}.reverse"), traces)?])
}

impl Direction<'_> {
    fn resolve(&self, text: &Text, name: String, traces: &mut Traces) -> Result<Link, InputError> {
        let capacity::Resolved { capacity, trace } = match self.rate {
            Some(rate) => capacity::resolve(text, rate, traces)?,
            None => Capacity::Unlimited.into(),
        };
        let shaper = self.shaper.map(|b| middlebox::bucket(text, b)).transpose()?;
        let has_capacity = capacity != Capacity::Unlimited;
        let is_unlimited = !has_capacity && shaper.is_none();
        let queue = queue::resolve(text, self.queue, self.ecn_threshold)?;
        let delay = steps::delay(text, self.delay)?;
        let loss = self.loss.map(|l| impairment::loss(text, l)).transpose()?;
        let jitter = self.jitter.map_or(Ok(Default::default()), |j| impairment::jitter(text, j))?;
        let config = LinkConfig {
            limit: if is_unlimited { Limit::Unlimited } else { queue.limit },
            discipline: queue.discipline,
            loss: loss.as_ref().map_or(Loss::None, |l| l.first),
            loss_position: self.loss_place.map_or(LossPosition::Exit, |p| p.position()),
            jitter: jitter.first,
            reordering: self.reorder.map(|r| impairment::reordering(text, r)).transpose()?,
            duplication: self.duplicate.map_or(Ok(0.0), |p| probability(text, p))?,
            variation: Variation { loss: loss.and_then(|l| l.steps), delay: delay.steps, jitter: jitter.steps },
            ecn: self.ecn.map(|e| middlebox::ecn_faults(text, e)).transpose()?,
            policer: self.policer.map(|b| middlebox::bucket(text, b)).transpose()?,
            shaper,
            capacity,
            delay: delay.first,
        };
        let assist = self.assist.map(|a| station::resolve(text, &a.value)).transpose()?;
        if let Some(a) = self.assist.filter(|_| !has_capacity) {
            return Err(text.error(a.span.clone(), "an unlimited link has no capacity to report"));
        }
        if let Some(threshold) = self.ecn_threshold.filter(|_| is_unlimited) {
            return Err(text.error(threshold.span.clone(), "an unlimited link has no queue that could be marked"));
        }
        if let Some(named) = queue.named.filter(|_| is_unlimited) {
            return Err(text
                .error(named, "an unlimited link has no queue for a discipline to work on")
                .help("give the link a `rate`, or leave `discipline` out"));
        }
        config.check().map_err(|e| {
            let message = format!("{} is {}: expected {}", e.field, e.value, e.expected);
            text.error(self.span.clone(), message)
        })?;
        Ok(Link { name, config, trace, assist })
    }
}
