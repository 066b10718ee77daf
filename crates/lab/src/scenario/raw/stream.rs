//! Streams of an RTP flow as a file writes them.

use crate::scenario::quantity::{Rate, Time};
use crate::scenario::spanned::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// Kind of a stream's media.
#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "StreamMedia")]
pub(in crate::scenario) enum RawMedia {
    /// Speech under Opus, as a model: served before video.
    Audio,
    /// Pictures: frames of the size given by the stream's rate.
    #[default]
    Video,
}

/// The last that a call gives up where its rate is short.
#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Preference")]
pub(in crate::scenario) enum RawPreference {
    /// The frame rate: pictures become smaller first.
    Motion,
    /// The size of the pictures: there are fewer of them first.
    Sharpness,
    /// The sound: pictures become smaller and fewer, and are switched off before it has less.
    Sound,
    /// Nothing: all pictures at their size, whatever the quantiser; the sound is served first.
    None,
}

/// Weight of a stream among those of its flow: each level has twice the weight of the one before (RFC 8835).
#[derive(Deserialize, JsonSchema, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "StreamPriority")]
pub(in crate::scenario) enum RawPriority {
    /// Weight 1.
    VeryLow,
    /// Weight 2.
    #[default]
    Low,
    /// Weight 4.
    Medium,
    /// Weight 8.
    High,
}

/// One encoding of a simulcast.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields, expecting = "a table such as { least = \"100 kbps\", most = \"500 kbps\" }")]
#[schemars(rename = "Encoding")]
pub(in crate::scenario) struct RawEncoding {
    /// Rate below which it is off.
    pub(in crate::scenario) least: At<Rate>,
    /// Rate above which it gains nothing.
    pub(in crate::scenario) most: At<Rate>,
}

/// One stream of an RTP flow.
#[derive(Deserialize, JsonSchema, Clone, Debug)]
#[serde(deny_unknown_fields, expecting = "a table such as { name = \"camera\", most = \"1 Mbps\" }")]
#[schemars(rename = "Stream")]
pub(in crate::scenario) struct RawStream {
    /// Its name in results.
    pub(in crate::scenario) name: At<String>,
    /// Kind of media; "video" if absent.
    #[serde(default)]
    pub(in crate::scenario) media: RawMedia,
    /// Rate below which it is of no use; zero if absent. Of audio, headers included.
    pub(in crate::scenario) least: Option<At<Rate>>,
    /// Rate above which it gains nothing; the flow's ceiling if absent, and of audio what its codec can use (48 kbit/s and more
    /// by headers). Of audio, headers included.
    pub(in crate::scenario) most: Option<At<Rate>>,
    /// Weight among the streams; "low" if absent.
    #[serde(default)]
    pub(in crate::scenario) priority: RawPriority,
    /// Frames a second of video; 30 if absent.
    pub(in crate::scenario) fps: Option<At<f64>>,
    /// Whether a talker pauses (ITU-T P.59) and pauses send almost nothing (DTX); false if absent. Audio only.
    pub(in crate::scenario) dtx: Option<At<bool>>,
    /// Packet time of audio, one of Opus's from "2.5 ms" to "60 ms"; from 20 to 60 ms as its rate advises if absent. Audio only.
    pub(in crate::scenario) packet_time: Option<At<Time>>,
    /// Encodings of a simulcast, the lowest first, each its own RTP stream; instead of `least` and `most`. Video only.
    #[serde(default)]
    pub(in crate::scenario) encodings: Vec<At<RawEncoding>>,
}
