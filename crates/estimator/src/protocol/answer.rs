//! Answers of estimators.

use super::{Kind, Message, Side, is_false};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Wishes of an estimator from now on. Absent fields have their defaults, not their values of before.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorAnswer"))]
pub struct Answer {
    /// The turn that it answers.
    pub turn: u64,
    /// Rate for the encoders. Weir limits it to the floor and the ceiling. At the receiver: the rate that it asks for.
    pub media_bps: f64,
    /// Rate at which packets leave; 2.5 times `media_bps` if absent (libwebrtc's `kDefaultPaceMultiplier`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_bps: Option<f64>,
    /// Whether `pacing_bps` is a rate of payload and padding alone, without RTP headers; false if absent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub paces_payload: bool,
    /// Rate up to which padding is added; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub padding_bps: Option<f64>,
    /// Bytes that may be in flight; no bound if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// Age at which the sender's queue is discarded; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_queue_age_ns: Option<i64>,
    /// Bytes of headers in each packet that `media_bps` covers; 0 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overhead_bytes: Option<u64>,
    /// When to get a `timer` event, later than the turn's last event; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_ns: Option<i64>,
    /// Repair packets, sent in addition to `media_bps` where the call has a code; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<Repair>,
    /// Probes to be sent now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// At the receiver alone: the message in which the sender is asked for `media_bps` now; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Message>,
    /// In the answer of turn 0 alone: the estimator itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
}

/// Forward error correction.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "scheme", rename_all = "kebab-case", deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorRepair"))]
pub enum Repair {
    /// A parity packet for so many media packets (RFC 5109, RFC 8627).
    Parity {
        /// 2 to 255.
        interval: u8,
    },
    /// None yet, but parity over up to so many of the packets just sent is kept, to be sent at once with a later answer.
    Standby {
        /// 2 to 255.
        interval: u8,
    },
    /// Reed-Solomon blocks (RFC 6865).
    ReedSolomon {
        /// Packets of a block, media and repair, 2 to 255.
        block: u8,
        /// Repair packets of a block, fewer than `block`.
        repair: u8,
    },
}

/// A short burst of packets at a rate.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorProbe"))]
pub struct Probe {
    /// Above 0; `sent` and `feedback` have it for the packets of the burst.
    pub id: u32,
    /// Rate of the burst.
    pub rate_bps: f64,
    /// It has at least so many packets ...
    pub min_packets: u32,
    /// ... and so many bytes.
    pub min_bytes: u64,
}

/// An estimator's description of itself.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorAbout"))]
pub struct About {
    /// Version of the protocol that it speaks.
    pub version: u32,
    /// Its name and version, for lists.
    pub name: String,
    /// Form of all messages after this answer; JSON if absent.
    #[serde(default)]
    pub form: Form,
    /// Ends of the call at which it works, each a process of its own; the sender alone if absent. Where it is at the receiver alone, the
    /// sender sends at the rate that the receiver asks for.
    #[serde(default = "at_sender")]
    pub sides: BTreeSet<Side>,
    /// A controller of Weir that decides on the rate, such as `gcc`, for an estimator that decides on pacing, windows or repair alone: it gets
    /// `target` events, its `media_bps` is bounded by theirs, and fields that its answers do not have are the controller's. None if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// Kinds of events that it wants; all but `rtcp` if absent.
    #[serde(default = "all")]
    pub events: BTreeSet<Kind>,
    /// Kinds of events after which it is asked for an answer at once; those of others go with the next turn. All but `sent` and `queue` if
    /// absent. The fewer, the faster.
    #[serde(default = "deciding")]
    pub answers: BTreeSet<Kind>,
    /// The feedback that it needs; transport-wide at libwebrtc's intervals if absent.
    #[serde(default)]
    pub feedback: Feedback,
}

/// Form of messages. The first turn and its answer are lines of JSON in any case.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorForm"))]
pub enum Form {
    /// A line of JSON a message.
    #[default]
    Json,
    /// A frame of fixed fields a message ([`crate::binary`]).
    Binary,
}

/// Format of per-packet feedback, and its interval.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorFeedback"))]
pub struct Feedback {
    /// The message.
    #[serde(default)]
    pub format: Format,
    /// Interval in ms, 5 to 1,000, or the least one; libwebrtc's, 50 to 250 by the rate, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ms: Option<f64>,
    /// Greatest interval in ms, up to 1,000; `interval_ms` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_interval_ms: Option<f64>,
    /// Share of the media rate that feedback may use, above 0 to 1, which sets the interval within its bounds; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bandwidth_share: Option<f64>,
}

/// A message with per-packet feedback.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorFeedbackFormat"))]
pub enum Format {
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01.
    #[default]
    TransportWide,
    /// RFC 8888.
    Ccfb,
    /// None: reports of RFC 3550 and the receiver's messages alone.
    None,
}

fn at_sender() -> BTreeSet<Side> {
    BTreeSet::from([Side::Sender])
}

/// All kinds but datagrams of RTCP, which are the bytes of what other events say.
pub(crate) fn all() -> BTreeSet<Kind> {
    Kind::ALL.into_iter().filter(|k| *k != Kind::Rtcp).collect()
}

fn deciding() -> BTreeSet<Kind> {
    Kind::ALL.into_iter().filter(|k| !matches!(k, Kind::Sent | Kind::Queue)).collect()
}
