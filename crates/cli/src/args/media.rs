//! Arguments of `weir media`.

mod clip;
mod quality;

pub(crate) use clip::ClipArgs;
pub(crate) use quality::{Luma, QualityArgs};

use clap::Subcommand;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir media clip sports --fps 25 --out sports.y4m
  weir media quality sports.y4m decoded.y4m";

#[derive(Subcommand, Debug)]
pub(crate) enum MediaCommand {
    /// Write a built-in clip as YUV4MPEG2
    #[command(after_help = clip::EXAMPLES)]
    Clip(ClipArgs),
    /// Measure the quality of video against its reference: PSNR, SSIM, detail and motion
    #[command(after_help = quality::EXAMPLES)]
    Quality(QualityArgs),
}
