//! Messages between Weir and an estimator, as lines of JSON or in the binary form ([`crate::binary`]).
//!
//! Weir writes a [`Turn`]: what has happened, in order of time. The estimator writes one [`Answer`]: what it wants from now on. Times
//! are in nanoseconds since the start of the call, by the clock of the estimator's end unless a field says otherwise; rates are in bit/s.

mod answer;

pub use answer::{About, Answer, Feedback, Form, Format, Probe, Repair};

pub(crate) use answer::all;

use serde::{Deserialize, Serialize};

/// Version of the protocol. 2 has the binary form, raw RTCP, the receiver's side, repair, and decisions over one of Weir's controllers beside 1.
pub const VERSION: u32 = 2;
/// The oldest version that is spoken.
pub const OLDEST: u32 = 1;

/// Events since the turn before, written by Weir.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorTurn"))]
pub struct Turn {
    /// Counts from 0; the answer repeats it.
    pub turn: u64,
    /// Events in order of time. The first of turn 0 is `configure`.
    pub events: Vec<Event>,
}

/// Kinds of events, as they are named in [`About::events`] and [`About::answers`].
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorEventKind"))]
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
    /// [`Event::Rtcp`].
    Rtcp,
    /// [`Event::Received`].
    Received,
    /// [`Event::Rtt`].
    Rtt,
    /// [`Event::Target`].
    Target,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 11] = [
        Self::Sent,
        Self::Feedback,
        Self::Report,
        Self::Estimate,
        Self::Queue,
        Self::Limits,
        Self::Timer,
        Self::Rtcp,
        Self::Received,
        Self::Rtt,
        Self::Target,
    ];
}

/// The end of a call at which an estimator is.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorSide"))]
pub enum Side {
    /// The media sender.
    #[default]
    Sender,
    /// The media receiver.
    Receiver,
}

impl Side {
    fn is_sender(&self) -> bool {
        *self == Self::Sender
    }
}

/// Something that happened at the estimator's end.
#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorEvent"))]
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
        /// The end of the call; the sender's if absent.
        #[serde(default, skip_serializing_if = "Side::is_sender")]
        side: Side,
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
    /// A datagram of RTCP as it came, before the events that Weir makes of it. Only for estimators that name it in `events`.
    Rtcp {
        /// When it was received.
        now_ns: i64,
        /// Its bytes, after decryption: a compound, or a packet of reduced size (RFC 5506). Two hexadecimal digits a byte in JSON.
        #[serde(with = "hex")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        bytes: Vec<u8>,
    },
    /// At the receiver: a packet of media has arrived.
    Received {
        /// When, by the receiver's clock.
        now_ns: i64,
        /// Its RTP sequence number, unwrapped.
        sequence: u64,
        /// When it was sent, by the sender's clock, whose zero is another: from the extension for the absolute send time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent_ns: Option<i64>,
        /// RTP header, extensions and payload, without UDP and IP.
        size_bytes: u64,
        /// Bytes of media payload among them.
        payload_bytes: u64,
        /// RTP timestamp, as it stands in the packet.
        rtp_timestamp: u32,
        /// Whether it is the last packet of a frame.
        #[serde(default, skip_serializing_if = "is_false")]
        marker: bool,
        /// Whether it arrived with the mark "congestion experienced".
        #[serde(default, skip_serializing_if = "is_false")]
        ce: bool,
    },
    /// At the receiver: the session has measured the round-trip time.
    Rtt {
        /// When.
        now_ns: i64,
        /// The round-trip time.
        rtt_ns: i64,
    },
    /// The controller that decides on the rate ([`About::over`]) has another target.
    Target {
        /// When.
        now_ns: i64,
        /// Its media rate: the most that answers can have.
        media_bps: u64,
        /// Its pacing rate.
        pacing_bps: u64,
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
            | Self::Timer { now_ns }
            | Self::Rtcp { now_ns, .. }
            | Self::Received { now_ns, .. }
            | Self::Rtt { now_ns, .. }
            | Self::Target { now_ns, .. } => *now_ns,
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
            Self::Rtcp { .. } => Some(Kind::Rtcp),
            Self::Received { .. } => Some(Kind::Received),
            Self::Rtt { .. } => Some(Kind::Rtt),
            Self::Target { .. } => Some(Kind::Target),
        }
    }
}

/// Contents of a packet.
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorCarries"))]
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
#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorMessage"))]
pub enum Message {
    /// draft-alvestrand-rmcat-remb-03.
    Remb,
    /// RFC 5104, section 4.2.1.
    Tmmbr,
}

/// The fate of a packet.
#[derive(Serialize, Deserialize, Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "EstimatorPacketFate"))]
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

fn is_zero(n: &u32) -> bool {
    *n == 0
}

fn is_false(b: &bool) -> bool {
    !b
}

/// Bytes as hexadecimal digits, which every language reads without a library.
mod hex {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};
    use std::borrow::Cow;

    const DIGITS: &[u8; 16] = b"0123456789abcdef";

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
        let digits = bytes.iter().flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]]);
        to.serialize_str(&digits.map(char::from).collect::<String>())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        let text = Cow::<'de, str>::deserialize(from)?;
        let digit = |d: u8| char::from(d).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let byte = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
        let bytes = text.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>();
        bytes.ok_or_else(|| D::Error::custom("expected two hexadecimal digits a byte"))
    }
}
