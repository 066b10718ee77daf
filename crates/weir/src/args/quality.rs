//! The grammar of `weir quality` and `weir clip`.

use clap::ValueHint;
use std::path::PathBuf;
use weir_media::FrameRate;

#[derive(clap::Args, Debug)]
pub(crate) struct QualityArgs {
    /// What it should be: a file, - or a built-in clip
    #[arg(value_name = "REFERENCE", value_hint = ValueHint::FilePath)]
    pub(crate) reference: String,
    /// What has come of it: a file or -
    #[arg(value_name = "DISTORTED", value_hint = ValueHint::FilePath)]
    pub(crate) distorted: String,
    /// Size of raw I420, and of a clip without one
    #[arg(long, value_name = "WxH", value_parser = crate::values::size)]
    pub(crate) size: Option<(u32, u32)>,
    /// Pictures a second of raw I420, and of a clip without one
    #[arg(long, value_name = "R", default_value = "30", value_parser = crate::values::frame_rate)]
    pub(crate) rate: FrameRate,
    /// What SI and TI are measured of: luma as it is stored, or stretched from 16..235 to 0..255 as ffmpeg's siti has it
    #[arg(long, value_name = "RANGE", value_enum, default_value = "stored")]
    pub(crate) luma: Luma,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Write each picture's numbers as CSV
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) frames: Option<PathBuf>,
    /// Write the cumulative distributions as CSV
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cdf: Option<PathBuf>,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Luma {
    /// As it is stored
    Stored,
    /// Stretched from 16..235 to 0..255
    Stretched,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ClipArgs {
    /// Its name, with a size and a rate where wanted: NAME:640x480@15
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Size; 640x480 if absent
    #[arg(long, value_name = "WxH", value_parser = crate::values::size)]
    pub(crate) size: Option<(u32, u32)>,
    /// Pictures a second; 30 if absent
    #[arg(long, value_name = "R", value_parser = crate::values::frame_rate)]
    pub(crate) rate: Option<FrameRate>,
    /// How many pictures; 300 if absent
    #[arg(long, value_name = "N")]
    pub(crate) frames: Option<u64>,
    /// Seed of texture, motion and grain
    #[arg(long, value_name = "S", default_value = "1")]
    pub(crate) seed: u64,
    /// The file to write, - for standard output; NAME.y4m if absent
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
