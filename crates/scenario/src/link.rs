//! Links: both directions of a hop as written, and their path model.

use super::capacity::{self, RawCapacity};
use super::checks::probability;
use super::error::InputError;
use super::impairment::{self, RawJitter, RawLoss, RawLossPlace, RawReorder};
use super::middlebox::{self, RawBucket, RawEcnFaults};
use super::model::Link;
use super::quantity::Queue;
use super::queue::{self, RawQueue};
use super::radio::{self, RawCellular, RawWifi};
use super::spanned::At;
use super::station::{self, RawAssist};
use super::steps::{self, RawDelay};
use super::suggest;
use super::traces::Traces;
use super::tree::Text;
use serde::Deserialize;
use std::ops::Range;
use weir_path::{Capacity, Limit, LinkConfig, Members, Radio, Variation, presets};
use weir_units::{DataRate, TimeDelta};

/// Generates the tables of both directions from one list of fields: serde can either refuse unknown fields or flatten
/// one struct into another, not both. [`Direction`] is their common part.
macro_rules! directions {
    ($($(#[doc = $doc:literal])+ $field:ident: $ty:ty,)+) => {
        /// A hop: its forward direction, and the reverse one if that is not simply fast and of the same delay.
        #[derive(Deserialize, Debug)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields, expecting = "a table such as { rate = \"1 Mbps\", delay = \"50 ms\" }")]
        #[cfg_attr(feature = "schema", schemars(rename = "Link"))]
        pub(super) struct RawLink {
            /// Capacity: a rate, "unlimited", steps or a trace file; on a radio link that of its medium. The preset's if absent.
            pub(super) rate: Option<At<RawCapacity>>,
            /// One-way propagation delay; the preset's if absent.
            delay: Option<At<RawDelay>>,
            $($(#[doc = $doc])+ $field: Option<$ty>,)+
            /// The other direction; unlimited and with the same delay if absent.
            reverse: Option<RawReverse>,
        }

        /// The other direction of a hop. Defaults: an unlimited rate, the forward direction's delay, no impairments.
        #[derive(Deserialize, Default, Debug)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(deny_unknown_fields, expecting = "a table such as { rate = \"500 kbps\" }")]
        #[cfg_attr(feature = "schema", schemars(rename = "Reverse"))]
        struct RawReverse {
            /// Capacity; the preset's, or unlimited, if absent.
            rate: Option<At<RawCapacity>>,
            /// One-way propagation delay; the preset's, or that of the forward direction, if absent.
            delay: Option<At<RawDelay>>,
            $($(#[doc = $doc])+ $field: Option<$ty>,)+
        }

        /// One direction of a hop.
        struct Direction<'a> {
            span: &'a Range<usize>,
            rate: Option<&'a At<RawCapacity>>,
            delay: Option<&'a RawDelay>,
            $($field: Option<&'a $ty>,)+
        }

        impl RawLink {
            fn forward<'a>(&'a self, span: &'a Range<usize>) -> Direction<'a> {
                let delay = self.delay.as_ref().map(|d| &d.value);
                Direction { span, rate: self.rate.as_ref(), delay, $($field: self.$field.as_ref(),)+ }
            }
        }

        impl RawReverse {
            fn direction<'a>(&'a self, span: &'a Range<usize>, forward: Option<&'a RawDelay>) -> Direction<'a> {
                let forward = forward.filter(|_| self.preset.is_none());
                let delay = self.delay.as_ref().map(|d| &d.value).or(forward);
                Direction { span, rate: self.rate.as_ref(), delay, $($field: self.$field.as_ref(),)+ }
            }
        }
    };
}

directions! {
    /// A named link, such as "bufferbloat" or "policed" (scenarios/README.md lists them), of which the other fields replace
    /// single properties; none if absent.
    preset: At<String>,
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
    /// A Wi-Fi medium, which transmits at `rate`: contention, aggregates and retries; none if absent.
    wifi: At<RawWifi>,
    /// A cell of LTE or NR, which transmits at `rate`: slots, other users, HARQ and uplink grants; none if absent.
    cellular: At<RawCellular>,
    /// A base station at this direction of the link, which reports its capacity to RTP flows; none if absent.
    assist: At<RawAssist>,
}

/// Checks that a link has a rate and a delay. Errors: it has neither these nor a preset.
pub(super) fn check(text: &Text, raw: &At<RawLink>) -> Result<(), InputError> {
    let RawLink { rate, delay, preset, .. } = &raw.value;
    if let (None, Some(missing)) = (preset, rate.is_none().then_some("rate").or(delay.is_none().then_some("delay"))) {
        return Err(text
            .error(raw.span.clone(), format!("missing field `{missing}`"))
            .help("give the link a rate and a delay, or a `preset`"));
    }
    Ok(())
}

/// Both directions of a hop, forward and reverse.
pub(super) fn resolve(
    text: &Text,
    name: &str,
    raw: &At<RawLink>,
    traces: &mut Traces,
) -> Result<[Link; 2], InputError> {
    let forward = raw.value.forward(&raw.span).resolve(text, name.into(), traces)?;
    if let (true, Some(_)) = (radio::is_shared(&forward.config), &raw.value.reverse) {
        let message = "stations share one medium in both directions, so the link has no `reverse`";
        return Err(text.error(raw.span.clone(), message).help("leave `reverse` or `stations` out"));
    }
    let absent = RawReverse::default();
    let written = raw.value.delay.as_ref().map(|d| &d.value);
    let mut reverse = raw.value.reverse.as_ref().unwrap_or(&absent).direction(&raw.span, written);
    let preset_delay = RawDelay::constant(forward.config.delay);
    if reverse.delay.is_none() && reverse.preset.is_none() {
        reverse.delay = Some(&preset_delay);
    }
    Ok([forward, reverse.resolve(text, format!("{name}.reverse"), traces)?])
}

impl Direction<'_> {
    /// The link as its preset has it; without one, unlimited and without impairments.
    fn base(&self, text: &Text) -> Result<LinkConfig, InputError> {
        let Some(name) = self.preset else {
            let mut plain = LinkConfig::constant(DataRate::ZERO, TimeDelta::ZERO);
            plain.capacity = Capacity::Unlimited;
            return Ok(plain);
        };
        let known: Vec<&str> = presets::ALL.iter().map(|p| p.name).collect();
        presets::by_name(&name.value).map(|p| p.config()).ok_or_else(|| {
            text.error(name.span.clone(), format!("no preset is named `{}`", name.value))
                .help(suggest::help(&name.value, &known))
        })
    }

    fn radio(&self, text: &Text, base: Option<Radio>) -> Result<Option<Radio>, InputError> {
        match (self.wifi, self.cellular) {
            (Some(_), Some(both)) => Err(text.error(both.span.clone(), "a link is `wifi` or `cellular`, not both")),
            (Some(wifi), None) => radio::wifi(text, wifi).map(|w| Some(Radio::Wifi(w))),
            (None, Some(cell)) => radio::cellular(text, cell).map(|c| Some(Radio::Cellular(c))),
            (None, None) => Ok(base),
        }
    }

    fn resolve(&self, text: &Text, name: String, traces: &mut Traces) -> Result<Link, InputError> {
        let base = self.base(text)?;
        let capacity::Resolved { capacity, trace } = match self.rate {
            Some(rate) => capacity::resolve(text, rate, traces)?,
            None => base.capacity.into(),
        };
        let shaper = self.shaper.map(|b| middlebox::bucket(text, b)).transpose()?.or(base.shaper);
        let has_capacity = capacity != Capacity::Unlimited;
        let is_unlimited = !has_capacity && shaper.is_none();
        let queue = match (self.queue, self.ecn_threshold, self.preset) {
            (None, None, Some(_)) => queue::Resolved { limit: base.limit, discipline: base.discipline, named: None },
            _ => queue::resolve(text, self.queue, self.ecn_threshold)?,
        };
        let delay = match self.delay {
            Some(delay) => steps::delay(text, delay)?,
            None => steps::Delay { first: base.delay, steps: base.variation.delay },
        };
        let (loss, loss_steps) = match self.loss {
            Some(loss) => impairment::loss(text, loss).map(|l| (l.first, l.steps))?,
            None => (base.loss, base.variation.loss),
        };
        let (jitter, jitter_steps) = match self.jitter {
            Some(jitter) => impairment::jitter(text, jitter).map(|j| (j.first, j.steps))?,
            None => (base.jitter, base.variation.jitter),
        };
        let config = LinkConfig {
            limit: if is_unlimited { Limit::Unlimited } else { queue.limit },
            discipline: queue.discipline,
            loss,
            loss_position: self.loss_place.map_or(base.loss_position, |p| p.position()),
            jitter,
            reordering: self.reorder.map(|r| impairment::reordering(text, r)).transpose()?.or(base.reordering),
            duplication: self.duplicate.map_or(Ok(base.duplication), |p| probability(text, p))?,
            variation: Variation { loss: loss_steps, delay: delay.steps, jitter: jitter_steps },
            ecn: self.ecn.map(|e| middlebox::ecn_faults(text, e)).transpose()?.or(base.ecn),
            policer: self.policer.map(|b| middlebox::bucket(text, b)).transpose()?.or(base.policer),
            shaper,
            capacity,
            delay: delay.first,
            radio: self.radio(text, base.radio)?,
            members: Members::default(),
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
