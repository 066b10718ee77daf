//! Media sources of a flow.

use std::io::Cursor;
use std::sync::Arc;
use weir_media::y4m::Y4mReader;
use weir_media::{PictureSource, RateChange, ScenesConfig, VideoCodec};
use weir_units::{DataSize, TimeDelta};

/// Source of the media.
#[derive(Clone, PartialEq, Debug)]
pub enum Source {
    /// Packets of full payload, spaced evenly so that the target rate is met exactly.
    PerfectPackets,
    /// Frames of equal size at a fixed frame rate that meet the target rate exactly.
    PerfectFrames {
        /// Frames a second.
        fps: f64,
        /// Time constant with which they follow a higher target; zero for at once.
        rise: TimeDelta,
    },
    /// The statistical model of RFC 8593, section 5.1.
    Statistical(Statistical),
    /// Frame sizes from a recording, scaled to the target rate (RFC 8593, section 5.2).
    Trace {
        /// Frames a second.
        fps: f64,
        /// File name as written in the scenario.
        file: String,
        /// Frame sizes in order; it repeats.
        sizes: Arc<[DataSize]>,
    },
    /// Frame sizes of an encoder on scenes of changing complexity (S. Jero, 2013).
    Scenes(Box<ScenesConfig>),
    /// A real encoder, run in virtual time.
    Encoder(Box<Video>),
}

impl Source {
    /// Frames per second, if it makes frames.
    pub fn frame_rate(&self) -> Option<f64> {
        match self {
            Self::PerfectPackets => None,
            Self::PerfectFrames { fps, .. } | Self::Trace { fps, .. } => Some(*fps),
            Self::Statistical(s) => Some(s.fps),
            Self::Scenes(s) => Some(1.0 / s.frame_interval.as_secs_f64()),
            Self::Encoder(v) => Some(v.fps),
        }
    }
}

/// A real encoder and its material.
#[derive(Clone, PartialEq, Debug)]
pub struct Video {
    /// How pictures are coded.
    pub codec: VideoCodec,
    /// The encoder's library; the first that is built in if absent.
    pub library: Option<String>,
    /// The pictures; they repeat.
    pub clip: Clip,
    /// Pictures a second.
    pub fps: f64,
    /// Frames between unrequested key frames; none if absent.
    pub gop: Option<u32>,
    /// The effect of a new target.
    pub rate_change: RateChange,
    /// Maximum bytes of a slice; one slice per frame if absent.
    pub slice_size: Option<DataSize>,
    /// Whether the pictures displayed are scored by VMAF too.
    pub vmaf: bool,
}

/// Pictures to code.
#[derive(Clone, PartialEq, Debug)]
pub enum Clip {
    /// One that is drawn.
    BuiltIn {
        /// Its name.
        name: String,
        /// Samples a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Whether the drawn camera has grain.
        grain: bool,
    },
    /// A Y4M file.
    File {
        /// As the scenario names it.
        name: String,
        /// Its content.
        bytes: Arc<[u8]>,
    },
}

impl Clip {
    /// Width and height of its pictures; for a file by its header, if that is valid.
    pub fn size(&self) -> Option<(u32, u32)> {
        match self {
            Self::BuiltIn { width, height, .. } => Some((*width, *height)),
            Self::File { name, bytes } => Some(Y4mReader::new(name.clone(), Cursor::new(&bytes[..])).ok()?.size()),
        }
    }
}

/// Parameters of the statistical model, by RFC 8593, figure 2.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Statistical {
    /// Frames a second (FPS).
    pub fps: f64,
    /// Delay with which the encoder follows a new target (tau_v).
    pub reaction: TimeDelta,
    /// Frames in the burst after a large change or a key frame (K_d).
    pub burst_frames: u32,
    /// Size of the first frame of a burst (K_B).
    pub burst_size: DataSize,
    /// Scale of the Laplacian deviation of frame intervals (SCALE_t).
    pub interval_scale: f64,
    /// Scale of the Laplacian deviation of frame sizes (SCALE_B).
    pub size_scale: f64,
    /// Interval of key frames; none if absent.
    pub key_interval: Option<TimeDelta>,
}
