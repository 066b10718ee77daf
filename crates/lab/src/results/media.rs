//! Results of a media flow: frames, pictures and repair.

use super::Distribution;
use serde::{Deserialize, Serialize};

/// Frames of a media flow.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrameSummary {
    /// Frames with a known fate.
    pub frames: u64,
    /// Played.
    pub played: u64,
    /// Complete, but after their playout time.
    pub late: u64,
    /// Never complete, or not before playout had proceeded.
    pub lost: u64,
    /// Capture to completion in ms, of complete frames whose capture time is known: from the sender's first report on.
    pub delay_ms: Option<Distribution>,
    /// Number of stalls.
    pub stalls: u64,
    /// Time in stalls, in s.
    pub stalled_s: f64,
    /// The longest stall, in s.
    pub longest_stall_s: f64,
}

impl FrameSummary {
    /// Together with another stream of the flow: the sum of the frames, and the stalls of the stream that stalled longer.
    /// The delay stays this one's, since distributions do not add up.
    pub(crate) fn with(self, other: &Self) -> Self {
        let worse = if other.stalled_s > self.stalled_s { *other } else { self };
        Self {
            frames: self.frames + other.frames,
            played: self.played + other.played,
            late: self.late + other.late,
            lost: self.lost + other.lost,
            delay_ms: self.delay_ms,
            stalls: worse.stalls,
            stalled_s: worse.stalled_s,
            longest_stall_s: worse.longest_stall_s,
        }
    }
}

/// Forward error correction of a media flow.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RepairSummary {
    /// Repair packets sent.
    pub sent: u64,
    /// Repair packets that arrived.
    pub received: u64,
    /// Media packets recovered.
    pub recovered: u64,
    /// Frames completed by repair.
    pub frames_recovered: u64,
    /// Frames that were protected, lost packets and were not completed.
    pub frames_unrecovered: u64,
    /// Frames recovered over frames lost under protection (FFRE, Nagy and others 2014, section 5.1).
    pub ffre: Option<f64>,
    /// Media packets lost and not recovered, as a share of those sent.
    pub residual_loss: f64,
    /// Media packets recovered over those lost.
    pub recovery: Option<f64>,
    /// From the departure of recovered media packets to their recovery, in ms; absent where it is not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<Distribution>,
}

/// Frames made by a media flow's source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CodedFrames {
    /// All of them.
    pub frames: u64,
    /// Key frames among them.
    pub key: u64,
    /// Those without their first packet, or their last with `decodes_with`: refused by the transport or lost on the path.
    pub headless: u64,
}

impl CodedFrames {
    /// This number as a share of all.
    pub fn share(&self, part: u64) -> Option<f64> {
        (self.frames > 0).then(|| part as f64 / self.frames as f64)
    }
}

/// Pictures of a flow with content, as displayed by the receiver, against the coded ones.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QualitySummary {
    /// Pictures compared: all captured with a playout time before the end. One that was not displayed is compared with
    /// the last that was.
    pub pictures: u64,
    /// Pictures shown.
    pub shown: u64,
    /// Of them, those of which parts were guessed.
    pub concealed: u64,
    /// Frames that were received and yielded no picture.
    pub undecodable: u64,
    /// Pictures replaced by the last one.
    pub frozen: u64,
    /// Freezes (W3C webrtc-stats).
    pub freezes: u64,
    /// Their time together, in s.
    pub frozen_s: f64,
    /// Key frames coded.
    pub key_frames: u64,
    /// PSNR of luma in dB.
    pub psnr_db: Option<Distribution>,
    /// Structural similarity of luma over 8 x 8 windows (Wang and others 2004).
    pub ssim: Option<Distribution>,
    /// VMAF (model vmaf_v0.6.1), 0 to 100, of the same pictures; only where the scenario asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vmaf: Option<Distribution>,
    /// Share of the pictures with a PSNR below 20 dB, which Jero, 2013, section 3.4.1, calls unwatchable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub below_20_db: Option<f64>,
    /// PSNR of luma in dB, mean over the pictures that were shown: without those in whose place an earlier one stayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown_psnr_db: Option<f64>,
    /// Width of the pictures as they were coded, mean over those shown; they are displayed at the captured size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<f64>,
    /// Times that a picture of another size was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_changes: Option<u64>,
}

/// How often forward error correction was used to probe, and how it ended.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probing {
    /// Times that it was enabled.
    pub enabled: u64,
    /// Times that the rate went up after it.
    pub raised: u64,
    /// Number of times that the rate was kept.
    pub kept: u64,
    /// Times that congestion ended it.
    pub failed: u64,
    /// (raised + kept) / enabled (FRCC, Nagy and others 2014, section 5.1).
    pub frcc: Option<f64>,
}
