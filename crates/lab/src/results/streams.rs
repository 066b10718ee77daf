//! Streams of a call in a result.

use super::FrameSummary;
use serde::{Deserialize, Serialize};

/// One stream of a flow that has several.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamSummary {
    /// Name in the scenario.
    pub name: String,
    /// "audio" or "video".
    pub media: String,
    /// Mean share of the target in bit/s.
    pub share_bps: f64,
    /// Mean rate of RTP sent, with headers, padding, repair and retransmissions, in bit/s.
    pub sent_bps: f64,
    /// RTP packets sent: media, padding, repair and retransmissions.
    pub packets: u64,
    /// Packets lost on the path, as a share of those expected.
    pub loss: f64,
    /// Padding, as a share of the RTP bytes sent. Results of earlier versions have none.
    #[serde(default)]
    pub padding: f64,
    /// Fraction of the time in which it had a share of the target.
    pub on: f64,
    /// Times that it went on or off.
    pub switches: u32,
    /// Share of speech concealed; of audio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concealed: Option<f64>,
    /// Longest time between two packets of sound played, in s; of audio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_silence_s: Option<f64>,
    /// Mean time in a packet of sound that was played, in ms; of audio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_time_ms: Option<f64>,
    /// Mean opinion score of conversation, 1 to 4.5, by delay and concealed sound (E-model, ITU-T G.107, with the impairments of G.711 and
    /// concealment, since there are none for Opus): the codec's bit rate does not count; of audio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mos: Option<f64>,
    /// Its frames; of video with a playout deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<FrameSummary>,
}
