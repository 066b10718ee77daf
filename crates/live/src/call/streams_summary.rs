//! Statistics of a call of several streams.

use crate::call::loopback::VideoSummary;
use crate::call::observer::EndSummary;
use serde::Serialize;
use weir_media::AUDIO_CLOCK_HZ;
use weir_media::audio::AudioPlayoutStats;
use weir_session::{Endpoint, IncomingId};
use weir_units::{TimeDelta, Timestamp};

/// Interval between samples of the lag between sound and pictures.
const LIP_INTERVAL: TimeDelta = TimeDelta::from_secs(1);

/// The report of both ends of a call of several streams.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamsSummary {
    /// The sending end.
    pub sender: EndSummary,
    /// The receiving end.
    pub receiver: EndSummary,
    /// Each stream, in the order given.
    pub streams: Vec<StreamSummary>,
    /// The lag between sound and camera, if there are both.
    pub lips: Option<LipSummary>,
}

/// One stream of a call.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CallStream"))]
pub struct StreamSummary {
    /// Its name.
    pub name: String,
    /// RTP packets sent.
    pub sent_packets: u64,
    /// Mean rate sent, as UDP payload, with padding.
    pub sent_rate_bps: f64,
    /// Mean rate of the packets among these that have padding alone, in RTP bytes.
    pub padding_rate_bps: f64,
    /// Packets lost, by their sequence numbers (RFC 3550, appendix A.3).
    pub lost_packets: u64,
    /// Times that the share-out switched it on or off.
    pub switches: u64,
    /// Playout, of audio.
    pub audio: Option<AudioSummary>,
    /// Encoder and decoder, of video.
    pub video: Option<VideoSummary>,
}

/// Playout of audio.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AudioSummary {
    /// Packets played.
    pub played: u64,
    /// Packets received too late.
    pub late: u64,
    /// Seconds of packets played.
    pub played_s: f64,
    /// Seconds recovered by in-band FEC.
    pub recovered_s: f64,
    /// Seconds concealed.
    pub concealed_s: f64,
    /// Seconds of silence that was not sent.
    pub silent_s: f64,
    /// Share of speech that was concealed.
    pub concealed_share: Option<f64>,
    /// Mean time from capture to playout.
    pub delay_ms: Option<f64>,
    /// Samples decoded, if there is a decoder.
    pub decoded_samples: u64,
    /// Slots that the decoder failed in.
    pub undecodable: u64,
}

impl AudioSummary {
    pub(crate) fn with(self, stats: &AudioPlayoutStats) -> Self {
        let seconds = |samples: u64| samples as f64 / f64::from(AUDIO_CLOCK_HZ);
        Self {
            played: stats.played,
            late: stats.late,
            played_s: seconds(stats.played_samples),
            recovered_s: seconds(stats.recovered_samples),
            concealed_s: seconds(stats.concealed_samples),
            silent_s: seconds(stats.silent_samples),
            concealed_share: stats.concealed_share(),
            delay_ms: stats.delay.mean().map(TimeDelta::as_millis_f64),
            ..self
        }
    }
}

/// How much later pictures are displayed than the sound of the same time is played, sampled once per second. By ITU-R
/// BT.1359-1, viewers detect pictures that are 45 ms late or 125 ms early.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LipSummary {
    /// Samples.
    pub samples: u64,
    /// Mean; negative if sound is later.
    pub mean_ms: f64,
    /// The greatest, without sign.
    pub greatest_ms: f64,
}

/// Samples the lag between sound and camera.
pub(crate) struct Lips {
    audio: IncomingId,
    /// The camera's encodings from the lowest up, and frames of each played at the last sample.
    camera: Vec<(IncomingId, u64)>,
    next: Option<Timestamp>,
    offsets: Vec<TimeDelta>,
}

impl Lips {
    pub(crate) fn new(audio: IncomingId, camera: Vec<IncomingId>) -> Self {
        Self { audio, camera: camera.into_iter().map(|id| (id, 0)).collect(), next: None, offsets: Vec::new() }
    }

    pub(crate) fn look(&mut self, now: Timestamp, endpoint: &mut Endpoint) {
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + LIP_INTERVAL);
        // The displayed encoding is the highest one that plays.
        let mut shown = None;
        for (id, before) in &mut self.camera {
            let Some(stream) = endpoint.incoming(*id) else { continue };
            let played = stream.playout_stats().map_or(0, |s| s.played);
            if played > std::mem::replace(before, played) {
                shown = stream.playout_lag();
            }
        }
        let audio = endpoint.incoming(self.audio).and_then(|s| s.playout_lag());
        if let (Some(video), Some(audio)) = (shown, audio) {
            self.offsets.push(video - audio);
        }
    }

    /// `None` if there was no sample.
    pub(crate) fn summary(self) -> Option<LipSummary> {
        let ms = || self.offsets.iter().map(|o| o.as_millis_f64());
        let samples = self.offsets.len() as u64;
        let greatest_ms = ms().map(f64::abs).reduce(f64::max)?;
        Some(LipSummary { samples, mean_ms: ms().sum::<f64>() / samples as f64, greatest_ms })
    }
}
