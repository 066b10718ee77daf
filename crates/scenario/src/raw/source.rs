//! Media sources as a file writes them.

use crate::choice::{Choice, choice};
use crate::quantity::{Rate, Size, Time};
use crate::spanned::At;
use crate::steps::RawSteps;
#[cfg(feature = "schema")]
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
#[cfg(feature = "schema")]
use std::borrow::Cow;
use weir_media::{RateChange, RateControl};

/// A media source.
#[derive(Clone, Debug)]
pub(crate) struct RawSource {
    pub(crate) model: RawModel,
    pub(crate) options: RawSourceTable,
    /// Whether it is written as a table.
    pub(crate) is_table: bool,
}

/// Models of media sources.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "SourceModel"))]
pub(crate) enum RawModel {
    /// Full packets, evenly spaced, at exactly the target rate.
    PerfectPackets,
    /// Equal frames at a fixed frame rate, at exactly the target rate.
    PerfectFrames,
    /// The statistical model of RFC 8593, section 5.1.
    Statistical,
    /// Frame sizes from a recording, scaled to the target rate.
    Trace,
    /// A real encoder with pictures to code, which the receiver decodes.
    Encoder,
    /// Frame sizes of an encoder on scenes of changing complexity (S. Jero, 2013).
    Scenes,
}

pub(crate) const MODELS: &[(&str, RawModel)] = &[
    ("perfect-packets", RawModel::PerfectPackets),
    ("perfect-frames", RawModel::PerfectFrames),
    ("statistical", RawModel::Statistical),
    ("trace", RawModel::Trace),
    ("encoder", RawModel::Encoder),
    ("scenes", RawModel::Scenes),
];

/// A media source with options. Each option lists the models to which it applies.
#[derive(Deserialize, Clone, Default, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { model = \"statistical\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "Source"))]
pub(crate) struct RawSourceTable {
    /// The model.
    pub(crate) model: Option<At<RawModel>>,
    /// Frames a second; 30 if absent, 25 for scenes. perfect-frames, statistical, trace, encoder, scenes.
    pub(crate) fps: Option<At<f64>>,
    /// Time constant with which the frames' rate follows a higher target, 0 to "1 min"; "0 s", at once, if absent. Chromium's VP8
    /// follows with some "750 ms" (docs/fidelity.md). perfect-frames.
    pub(crate) rise: Option<At<Time>>,
    /// Delay with which the encoder follows a new target (tau_v); "100 ms" if absent. statistical.
    pub(crate) reaction: Option<At<Time>>,
    /// Frames in a burst (K_d); 8 if absent. statistical.
    pub(crate) burst_frames: Option<At<u32>>,
    /// Size of a burst's first frame (K_B); "13.5 kB" if absent. statistical.
    pub(crate) burst_size: Option<At<Size>>,
    /// Scale of the deviation of frame intervals (SCALE_t); 0.15 if absent. statistical.
    pub(crate) interval_scale: Option<At<f64>>,
    /// Scale of the deviation of frame sizes (SCALE_B); 0.15 if absent. statistical.
    pub(crate) size_scale: Option<At<f64>>,
    /// Interval of key frames; none if absent, "10 s" for scenes. statistical, scenes.
    pub(crate) key_interval: Option<At<Time>>,
    /// A file of frame sizes in bytes, one per line, searched beside the scenario file. trace.
    pub(crate) file: Option<At<String>>,
    /// "H264", "VP8" or "VP9"; "H264" if absent. encoder.
    pub(crate) codec: Option<At<String>>,
    /// The encoder's library, such as "openh264"; the first that is built in if absent. encoder.
    pub(crate) library: Option<At<String>>,
    /// A built-in clip by name, or a Y4M file, searched beside the scenario file; it repeats. "talking-head" if absent.
    /// encoder.
    pub(crate) clip: Option<At<String>>,
    /// Width and height of a built-in clip, such as "640x480", which is the default. encoder.
    pub(crate) picture: Option<At<String>>,
    /// Whether the camera of a built-in clip has grain, without which its pictures code far better; true if absent. encoder.
    pub(crate) grain: Option<At<bool>>,
    /// Frames between unrequested key frames; none if absent. encoder.
    pub(crate) gop: Option<At<u32>>,
    /// The effect of a new target on the encoder: "seamless" or "restart"; "seamless" if absent, "restart" for scenes.
    /// encoder, scenes.
    pub(crate) rate_change: Option<At<RawRateChange>>,
    /// Maximum bytes of a slice; one slice per frame if absent. encoder.
    pub(crate) slice_size: Option<At<Size>>,
    /// Whether the pictures displayed are scored by VMAF too, which takes a program with libvmaf (feature `vmaf`) and as long as
    /// coding; false if absent. encoder.
    pub(crate) vmaf: Option<At<bool>>,
    /// The material: "movie" or "conference"; "movie" if absent. scenes.
    pub(crate) material: Option<At<RawMaterial>>,
    /// Usual range of the rate that the material needs: the 10th and 90th percentile of a movie's scenes, a
    /// conference's whole band; ["8 Mbps", "30 Mbps"] and ["17.4 Mbps", "27.4 Mbps"] if absent. scenes.
    pub(crate) usual: Option<At<[Rate; 2]>>,
    /// The maximum rate that the material needs; "55 Mbps" if absent. scenes.
    pub(crate) peak: Option<At<Rate>>,
    /// Mean length of a movie's scenes; "3.6 s" if absent. scenes.
    pub(crate) scene_length: Option<At<Time>>,
    /// Share of a movie's scenes that are titles; 0.03 if absent. scenes.
    pub(crate) titles: Option<At<f64>>,
    /// Rate that titles need; "8 kbps" if absent. scenes.
    pub(crate) title_rate: Option<At<Rate>>,
    /// Random deviation of frame sizes, as a share; 0.15 for a movie and 0.08 for a conference if absent. scenes.
    pub(crate) frame_noise: Option<At<f64>>,
    /// Size of a key frame over that of others; 4 if absent. scenes.
    pub(crate) key_ratio: Option<At<f64>>,
    /// The fraction of the material's rate left by the coarsest quantiser; 0.05 if absent. scenes.
    pub(crate) coarsest: Option<At<f64>>,
    /// Time over which smaller frames compensate for a large one; "2 s" if absent. scenes.
    pub(crate) balance: Option<At<Time>>,
    /// How frame sizes follow the target: "exact" or "one-pass"; "exact" if absent. scenes.
    pub(crate) rate_control: Option<At<RawRateControl>>,
    /// Seed of the material, so that every run has the same clip; the flow's own seed if absent. scenes.
    pub(crate) draw: Option<At<u64>>,
    /// Most time by which content is sent before it is due, as a server sends stored content: it has one quality, that of the flow's
    /// start rate, while it is ahead; a live source if absent. At most "2 min", and "30 s" with an encoder, whose content
    /// receivers keep until it is due: 8,192 packets and 16 MB. All models that make frames.
    pub(crate) read_ahead: Option<At<Time>>,
    /// The greatest rate that the application has to send, by steps of time; as much as the target if absent. All models.
    pub(crate) demand: Option<At<RawDemand>>,
}

/// Greatest rate that the application has to send, over time.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { steps = [{ at = \"0 s\", rate = \"1 Mbps\" }] }")]
#[cfg_attr(feature = "schema", schemars(rename = "SourceDemand"))]
pub(crate) struct RawDemand {
    /// Rates from given times on, counted from the start of the flow; the first at "0 s".
    pub(crate) steps: RawSteps<RawDemandStep>,
    /// Time at which the steps repeat; never if absent.
    pub(crate) repeat: Option<At<Time>>,
}

/// A rate from an instant on.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { at = \"10 s\", rate = \"1 Mbps\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "SourceDemandStep"))]
pub(crate) struct RawDemandStep {
    /// The instant.
    pub(crate) at: Time,
    /// The greatest rate; zero if there is nothing to send.
    pub(crate) rate: Rate,
}

/// The material.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "Material"))]
pub(crate) enum RawMaterial {
    /// An action film: scenes of different complexity, with cuts between them.
    Movie,
    /// One scene that changes slowly.
    Conference,
}

/// The encoder's reaction to a new target.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "RateChange"))]
pub(crate) enum RawRateChange {
    /// It follows from the next frame on.
    Seamless,
    /// It restarts with a key frame.
    Restart,
}

/// How an encoder's frame sizes follow its target.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "RateControl"))]
pub(crate) enum RawRateControl {
    /// At once, within the limits of the material.
    Exact,
    /// As libav 0.8 under mediastreamer2: opened again at each new target, with a first key frame that does not depend on
    /// it, an excess that is compensated afterwards, and key frames forced 2 s and 4 s later.
    OnePass,
}

impl RawRateControl {
    pub(crate) fn rate_control(self) -> RateControl {
        match self {
            Self::Exact => RateControl::Exact,
            Self::OnePass => RateControl::OnePass,
        }
    }
}

impl RawRateChange {
    pub(crate) fn rate_change(self) -> RateChange {
        match self {
            Self::Seamless => RateChange::Seamless,
            Self::Restart => RateChange::Restart,
        }
    }
}

impl Choice for RawSource {
    type Fields = RawSourceTable;
    const EXPECTED: &'static str = "a media source: \"perfect-packets\", \"perfect-frames\", \"statistical\", \"encoder\", \"scenes\", or a table with `model`";
    fn from_text(text: &str) -> Result<Self, String> {
        let Some((_, model)) = MODELS.iter().find(|m| m.0 == text) else {
            let names: Vec<_> = MODELS.iter().map(|m| m.0).collect();
            return Err(format!("no media source is named \"{text}\"; {}", crate::suggest::help(text, &names)));
        };
        Ok(Self { model: *model, options: RawSourceTable::default(), is_table: false })
    }
    fn from_table(options: Self::Fields) -> Self {
        let model = options.model.as_ref().map_or(RawModel::PerfectPackets, |m| m.value);
        Self { model, options, is_table: true }
    }
}
choice!(RawSource);

#[cfg(feature = "schema")]
impl JsonSchema for RawSource {
    fn schema_name() -> Cow<'static, str> {
        "SourceOrModel".into()
    }
    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A media source: a model's name, or a table with `model` and its options.",
            "anyOf": [g.subschema_for::<RawModel>(), g.subschema_for::<RawSourceTable>()]
        })
    }
}
