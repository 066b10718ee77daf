//! Arguments of `weir media quality`.

use clap::ValueHint;
use std::path::PathBuf;
use weir_media::FrameRate;

pub(super) const EXAMPLES: &str = "\
Files are YUV4MPEG2 (.y4m) or, with --size, raw I420; - is standard input. A built-in clip may replace a file. PSNR of
equal pictures is reported as 100 dB. With libvmaf (--features vmaf) VMAF is measured too, by the model vmaf_v0.6.1.
ssim_tiled has adjacent 8x8 windows, ssim_overlapped is that of ffmpeg's filter for
luma, ssim_gaussian that of Wang et al. 2004. SI and TI are those of ITU-T P.910.

Examples:
  weir media quality reference.y4m decoded.y4m
  weir media quality talking-head:640x480@15 decoded.y4m --json | jq '.metrics[] | {metric, mean}'
  ffmpeg -i call.mp4 -f yuv4mpegpipe - | weir media quality reference.y4m - --frames frames.csv --cdf cdf.csv
  weir media quality --size 352x288 --fps 25 reference.yuv decoded.yuv";

#[derive(clap::Args, Debug)]
pub(crate) struct QualityArgs {
    /// Reference: a file, - or a built-in clip
    #[arg(value_name = "REFERENCE", value_hint = ValueHint::FilePath)]
    pub(crate) reference: String,
    /// File compared with the reference, or -
    #[arg(value_name = "DISTORTED", value_hint = ValueHint::FilePath)]
    pub(crate) distorted: String,
    /// Size of raw I420, and of a clip without one
    #[arg(long, value_name = "WxH", value_parser = crate::values::size)]
    pub(crate) size: Option<(u32, u32)>,
    /// Pictures a second of raw I420, and of a clip without one
    #[arg(long, alias = "rate", value_name = "N", default_value = "30", value_parser = crate::values::frame_rate)]
    pub(crate) fps: FrameRate,
    /// Range of the luma of which SI and TI are measured: as stored, or stretched from 16..235 to 0..255 as ffmpeg's siti has it
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
