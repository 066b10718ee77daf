//! Streams of an RTP flow as a file writes them.

use crate::quantity::{Rate, Time};
use crate::spanned::At;
use serde::Deserialize;

/// Kind of a stream's media.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "StreamMedia"))]
pub(crate) enum RawMedia {
    /// Speech under Opus, as a model: served before video.
    Audio,
    /// Pictures: frames of the size given by the stream's rate.
    #[default]
    Video,
}

/// The last that a call gives up where its rate is short.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "Preference"))]
pub(crate) enum RawPreference {
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
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "StreamPriority"))]
pub(crate) enum RawPriority {
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
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { least = \"100 kbps\", most = \"500 kbps\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Encoding"))]
pub(crate) struct RawEncoding {
    /// Rate below which it is off.
    pub(crate) least: At<Rate>,
    /// Rate above which it gains nothing.
    pub(crate) most: At<Rate>,
}

/// One stream of an RTP flow.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { name = \"camera\", most = \"1 Mbps\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Stream"))]
pub(crate) struct RawStream {
    /// Its name in results.
    pub(crate) name: At<String>,
    /// Kind of media; "video" if absent.
    #[serde(default)]
    pub(crate) media: RawMedia,
    /// Rate below which it is of no use; zero if absent. Of audio, headers included.
    pub(crate) least: Option<At<Rate>>,
    /// Rate above which it gains nothing; the flow's ceiling if absent, and of audio what its codec can use (48 kbit/s and more
    /// by headers). Of audio, headers included.
    pub(crate) most: Option<At<Rate>>,
    /// Weight among the streams; "low" if absent.
    #[serde(default)]
    pub(crate) priority: RawPriority,
    /// Frames a second of video; 30 if absent.
    pub(crate) fps: Option<At<f64>>,
    /// Time constant with which the frames' rate follows a higher one, 0 to "1 min", as that of `source`; "0 s", at once, if absent.
    /// Video only.
    pub(crate) rise: Option<At<Time>>,
    /// Rate of the frames alone above which the encoder makes no more, as WebRTC's `maxBitrate`: headers and repair packets come on top; as much
    /// as there is room for if absent. Video only.
    pub(crate) coded_most: Option<At<Rate>>,
    /// Whether a talker pauses (ITU-T P.59) and pauses send almost nothing (DTX); false if absent. Audio only.
    pub(crate) dtx: Option<At<bool>>,
    /// Packet time of audio, one of Opus's from "2.5 ms" to "60 ms"; from 20 to 60 ms as its rate advises if absent. Audio only.
    pub(crate) packet_time: Option<At<Time>>,
    /// Encodings of a simulcast, the lowest first, each its own RTP stream; instead of `least` and `most`. Video only.
    #[serde(default)]
    pub(crate) encodings: Vec<At<RawEncoding>>,
}
