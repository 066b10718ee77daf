//! Messages between Weir and an estimator, as lines of JSON.
//!
//! Weir writes a [`Turn`]: what has happened, in order of time. The estimator writes one [`Answer`]: what it wants from now on. Times
//! are in nanoseconds since the start of the call, by the sender's clock unless a field says otherwise; rates are in bit/s.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Version of the protocol.
pub const VERSION: u32 = 1;

/// Events since the turn before, written by Weir.
#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq, Debug)]
#[schemars(rename = "EstimatorTurn")]
pub struct Turn {
    /// Counts from 0; the answer repeats it.
    pub turn: u64,
    /// Events in order of time. The first of turn 0 is `configure`.
    pub events: Vec<Event>,
}

/// Kinds of events, as they are named in [`About::events`] and [`About::answers`].
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EstimatorEventKind")]
pub enum Kind {
    /// [`Event::Sent`].
    Sent,
    /// [`Event::Feedback`].
    Feedback,
    /// [`Event::Report`].
    Report,
    /// [`Event::Estimate`].
    Estimate,
    /// [`Event::Queue`].
    Queue,
    /// [`Event::Limits`].
    Limits,
    /// [`Event::Timer`].
    Timer,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 7] =
        [Self::Sent, Self::Feedback, Self::Report, Self::Estimate, Self::Queue, Self::Limits, Self::Timer];
}

/// Something that happened at the sender.
#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq, Debug)]
#[serde(tag = "type", rename_all = "kebab-case")]
#[schemars(rename = "EstimatorEvent")]
pub enum Event {
    /// The begin of a flow; once, before all others.
    Configure {
        /// Version of the protocol.
        version: u32,
        /// When the flow begins.
        now_ns: i64,
        /// Lower bound of the media rate.
        floor_bps: u64,
        /// Upper bound of the media rate.
        ceiling_bps: u64,
        /// Media rate before the first feedback.
        start_bps: u64,
        /// Seed for estimators that use random numbers.
        seed: u64,
    },
    /// A packet has been sent.
    Sent {
        /// When.
        now_ns: i64,
        /// Its transport-wide sequence number, unwrapped: one more than that of the packet before.
        sequence: u64,
        /// RTP header, extensions and payload, without UDP and IP.
        size_bytes: u64,
        /// Its contents.
        #[serde(default, skip_serializing_if = "Carries::is_media")]
        carries: Carries,
        /// Its probe, 0 for none.
        #[serde(default, skip_serializing_if = "is_zero")]
        probe: u32,
        /// Bytes that wait behind it in the sender's queue.
        queued_bytes: u64,
        /// Bytes in flight, this packet included.
        in_flight_bytes: u64,
    },
    /// Per-packet feedback: transport-wide (TWCC) or RFC 8888, in one form. Each packet is reported at most once as lost and at most
    /// once as received.
    Feedback {
        /// When it was received.
        now_ns: i64,
        /// Packets whose fate it tells, in order of sending.
        packets: Vec<PacketFate>,
        /// Bytes sent whose fate is not known yet.
        in_flight_bytes: u64,
        /// Round-trip time by the latest packet; with TWCC it includes the time for which the receiver waited.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rtt_ns: Option<i64>,
    },
    /// A report block of a receiver report (RFC 3550, section 6.4.1).
    Report {
        /// When it was received.
        now_ns: i64,
        /// Share of packets lost since the report before, 0 to 1.
        fraction_lost: f64,
        /// Packets lost since the begin; below 0 if more arrived twice.
        cumulative_lost: i64,
        /// Highest sequence number received, unwrapped.
        highest_sequence: u64,
        /// Packets expected since the report before.
        expected: u64,
        /// Interarrival jitter.
        jitter_ns: i64,
        /// Round-trip time, if the report tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rtt_ns: Option<i64>,
    },
    /// The receiver asks for at most this rate.
    Estimate {
        /// When it was received.
        now_ns: i64,
        /// The rate; absent if the request is withdrawn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate_bps: Option<u64>,
        /// The message that asked.
        message: Message,
    },
    /// A frame has entered the sender's queue.
    Queue {
        /// When.
        now_ns: i64,
        /// Bytes of the frame.
        added_bytes: u64,
        /// Bytes in the queue, the frame included.
        queued_bytes: u64,
        /// Age of the oldest packet in the queue.
        oldest_age_ns: i64,
    },
    /// The application has other bounds.
    Limits {
        /// When.
        now_ns: i64,
        /// Lower bound of the media rate.
        floor_bps: u64,
        /// Upper bound of the media rate.
        ceiling_bps: u64,
    },
    /// The time of the last answer's `timer_ns` has come.
    Timer {
        /// When: `timer_ns`, or later.
        now_ns: i64,
    },
}

impl Event {
    /// When it happened, in ns.
    pub const fn now_ns(&self) -> i64 {
        match self {
            Self::Configure { now_ns, .. }
            | Self::Sent { now_ns, .. }
            | Self::Feedback { now_ns, .. }
            | Self::Report { now_ns, .. }
            | Self::Estimate { now_ns, .. }
            | Self::Queue { now_ns, .. }
            | Self::Limits { now_ns, .. }
            | Self::Timer { now_ns } => *now_ns,
        }
    }

    /// Its kind; `None` for `configure`, which every estimator gets.
    pub const fn kind(&self) -> Option<Kind> {
        match self {
            Self::Configure { .. } => None,
            Self::Sent { .. } => Some(Kind::Sent),
            Self::Feedback { .. } => Some(Kind::Feedback),
            Self::Report { .. } => Some(Kind::Report),
            Self::Estimate { .. } => Some(Kind::Estimate),
            Self::Queue { .. } => Some(Kind::Queue),
            Self::Limits { .. } => Some(Kind::Limits),
            Self::Timer { .. } => Some(Kind::Timer),
        }
    }
}

/// Contents of a packet.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EstimatorCarries")]
pub enum Carries {
    /// Media.
    #[default]
    Media,
    /// Padding alone.
    Padding,
    /// Forward error correction.
    Repair,
    /// A retransmission (RFC 4588).
    Retransmission,
}

impl Carries {
    fn is_media(&self) -> bool {
        *self == Self::Media
    }
}

/// A message that asks for a rate.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EstimatorMessage")]
pub enum Message {
    /// draft-alvestrand-rmcat-remb-03.
    Remb,
    /// RFC 5104, section 4.2.1.
    Tmmbr,
}

/// The fate of a packet.
#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq, Eq, Debug)]
#[schemars(rename = "EstimatorPacketFate")]
pub struct PacketFate {
    /// Its sequence number, as in `sent`.
    pub sequence: u64,
    /// When it was sent.
    pub sent_ns: i64,
    /// When it arrived, by the receiver's clock, whose zero is another; absent if it is reported lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrived_ns: Option<i64>,
    /// Its size, as in `sent`.
    pub size_bytes: u64,
    /// Whether it arrived with the mark "congestion experienced".
    #[serde(default, skip_serializing_if = "is_false")]
    pub ce: bool,
    /// Its probe, 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub probe: u32,
    /// Whether an earlier feedback had it as lost, which its arrival revokes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub was_lost: bool,
}

/// Wishes of an estimator from now on. Absent fields have their defaults, not their values of before.
#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EstimatorAnswer")]
pub struct Answer {
    /// The turn that it answers.
    pub turn: u64,
    /// Rate for the encoders. Weir limits it to the floor and the ceiling.
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
    /// Probes to be sent now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Probe>,
    /// In the answer of turn 0 alone: the estimator itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<About>,
}

/// A short burst of packets at a rate.
#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EstimatorProbe")]
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
#[derive(Serialize, Deserialize, JsonSchema, Clone, PartialEq, Debug)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EstimatorAbout")]
pub struct About {
    /// Version of the protocol that it speaks.
    pub version: u32,
    /// Its name and version, for lists.
    pub name: String,
    /// Kinds of events that it wants; all if absent.
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

/// Format of per-packet feedback, and its interval.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, PartialEq, Debug, Default)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "EstimatorFeedback")]
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
#[derive(Serialize, Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "EstimatorFeedbackFormat")]
pub enum Format {
    /// draft-holmer-rmcat-transport-wide-cc-extensions-01.
    #[default]
    TransportWide,
    /// RFC 8888.
    Ccfb,
}

fn all() -> BTreeSet<Kind> {
    Kind::ALL.into()
}

fn deciding() -> BTreeSet<Kind> {
    Kind::ALL.into_iter().filter(|k| !matches!(k, Kind::Sent | Kind::Queue)).collect()
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_false(b: &bool) -> bool {
    !b
}
